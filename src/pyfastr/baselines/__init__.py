"""The methods the paper names, behind the same estimator interface."""

from pyfastr.baselines.dantzig import DantzigSelector
from pyfastr.baselines.elementary import ElementaryRidge, elementary_ridge_path
from pyfastr.baselines.gltrm import GLTRM
from pyfastr.baselines.ortrr import OrTRR
from pyfastr.baselines.published import PublishedFasTR
from pyfastr.baselines.remurs import Remurs, remurs_path
from pyfastr.baselines.sturm import Sturm, sturm_path
from pyfastr.baselines.surf import SURF
from pyfastr.baselines.vectorized import VectorizedElasticNet, VectorizedLasso

__all__ = [
    "GLTRM",
    "SURF",
    "DantzigSelector",
    "ElementaryRidge",
    "OrTRR",
    "PublishedFasTR",
    "Remurs",
    "Sturm",
    "VectorizedElasticNet",
    "VectorizedLasso",
    "elementary_ridge_path",
    "remurs_path",
    "sturm_path",
]
