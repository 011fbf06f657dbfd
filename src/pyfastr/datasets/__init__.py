"""Data to try the estimators on."""

from pyfastr.datasets.simulation import make_tensor_regression

__all__ = ["make_tensor_regression"]
