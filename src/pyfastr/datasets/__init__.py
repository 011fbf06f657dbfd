"""Data to try the estimators on."""

from pyfastr.datasets.cmu2008 import fetch_cmu2008, load_cmu2008, make_cmu2008_like
from pyfastr.datasets.simulation import make_tensor_regression

__all__ = ["fetch_cmu2008", "load_cmu2008", "make_cmu2008_like", "make_tensor_regression"]
