"""CMU2008, the functional MRI data of the paper's Table 3."""

from pyfastr.datasets.cmu2008.fetch import fetch_cmu2008
from pyfastr.datasets.cmu2008.load import load_cmu2008
from pyfastr.datasets.cmu2008.simulate import make_cmu2008_like

__all__ = ["fetch_cmu2008", "load_cmu2008", "make_cmu2008_like"]
