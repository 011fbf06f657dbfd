"""What users call: estimators and transformers with the scikit-learn interface."""

from pyfastr.estimators.classifier import FasTRClassifier
from pyfastr.estimators.fitting import theory_threshold
from pyfastr.estimators.path import FasTRPath, fastr_path
from pyfastr.estimators.regressor import FasTRRegressor
from pyfastr.estimators.scaler import TensorScaler
from pyfastr.estimators.selection import FasTRClassifierCV, FasTRRegressorCV

__all__ = [
    "FasTRClassifier",
    "FasTRClassifierCV",
    "FasTRPath",
    "FasTRRegressor",
    "FasTRRegressorCV",
    "TensorScaler",
    "fastr_path",
    "theory_threshold",
]
