"""The methods the paper names, behind the same estimator interface."""

from pyfastr.baselines.elementary import ElementaryRidge, elementary_ridge_path
from pyfastr.baselines.published import PublishedFasTR

__all__ = [
    "ElementaryRidge",
    "PublishedFasTR",
    "elementary_ridge_path",
]
