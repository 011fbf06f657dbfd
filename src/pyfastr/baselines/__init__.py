"""The methods the paper names, behind the same estimator interface."""

from pyfastr.baselines.gltrm import GLTRM
from pyfastr.baselines.ortrr import OrTRR
from pyfastr.baselines.published import PublishedFasTR
from pyfastr.baselines.surf import SURF

__all__ = ["GLTRM", "SURF", "OrTRR", "PublishedFasTR"]
