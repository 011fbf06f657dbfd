"""What users call: estimators and transformers with the scikit-learn interface."""

from pyfastr.estimators.classifier import FasTRClassifier
from pyfastr.estimators.classifier_cv import FasTRClassifierCV
from pyfastr.estimators.fitting import theory_threshold
from pyfastr.estimators.path import FasTRPath, fastr_path
from pyfastr.estimators.regressor import FasTRRegressor
from pyfastr.estimators.scaler import TensorScaler
from pyfastr.estimators.selection import FasTRRegressorCV
from pyfastr.estimators.selector import SliceSelector

__all__ = [
    "FasTRClassifier",
    "FasTRClassifierCV",
    "FasTRPath",
    "FasTRRegressor",
    "FasTRRegressorCV",
    "SliceSelector",
    "TensorScaler",
    "fastr_path",
    "theory_threshold",
]
