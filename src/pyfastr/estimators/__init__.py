"""What users call: estimators and transformers with the scikit-learn interface."""

from pyfastr.estimators.regressor import FasTRRegressor
from pyfastr.estimators.scaler import TensorScaler

__all__ = ["FasTRRegressor", "TensorScaler"]
