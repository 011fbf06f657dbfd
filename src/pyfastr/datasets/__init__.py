"""Data to try the estimators on."""

from pyfastr.datasets.cmu2008 import load_cmu2008
from pyfastr.datasets.simulation import make_tensor_regression

__all__ = ["load_cmu2008", "make_tensor_regression"]
