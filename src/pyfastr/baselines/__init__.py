"""The methods the paper names, behind the same estimator interface."""

from pyfastr.baselines.dantzig import DantzigSelector
from pyfastr.baselines.elementary import ElementaryRidge, elementary_ridge_path
from pyfastr.baselines.published import PublishedFasTR
from pyfastr.baselines.vectorized import VectorizedElasticNet, VectorizedLasso

__all__ = [
    "DantzigSelector",
    "ElementaryRidge",
    "PublishedFasTR",
    "VectorizedElasticNet",
    "VectorizedLasso",
    "elementary_ridge_path",
]
