"""The methods the paper names, behind the same estimator interface."""

from pyfastr.baselines.dantzig import DantzigSelector
from pyfastr.baselines.elementary import ElementaryRidge, elementary_ridge_path
from pyfastr.baselines.published import PublishedFasTR

__all__ = [
    "DantzigSelector",
    "ElementaryRidge",
    "PublishedFasTR",
    "elementary_ridge_path",
]
