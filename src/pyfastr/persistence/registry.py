"""The classes that a model file may hold. No other name in a file is ever looked up."""

from importlib import import_module
from typing import Any

ESTIMATORS = {
    "FasTRClassifier": "pyfastr.estimators",
    "FasTRClassifierCV": "pyfastr.estimators",
    "FasTRRegressor": "pyfastr.estimators",
    "FasTRRegressorCV": "pyfastr.estimators",
    "NiftiClassifier": "pyfastr.imaging",
    "NiftiRegressor": "pyfastr.imaging",
    "NiftiTransformer": "pyfastr.imaging",
    "SliceSelector": "pyfastr.estimators.selector",
    "TensorScaler": "pyfastr.estimators",
}
RECORDS = {
    "Design": "pyfastr.solver.design",
    "HeldOut": "pyfastr.estimators.folds",
    "Reference": "pyfastr.estimators.reference",
    "Starts": "pyfastr.solver.rounds",
}
# The class of the best estimator of a choice.
TWINS = {"FasTRRegressorCV": "FasTRRegressor", "FasTRClassifierCV": "FasTRClassifier"}


def find(registry: dict[str, str], name: str) -> Any:
    """Return a registered class."""
    return getattr(import_module(registry[name]), name)


def is_registered(registry: dict[str, str], value: Any) -> bool:
    """Whether a value is of a registered class, and not of one derived from it."""
    name = type(value).__name__
    return name in registry and type(value) is find(registry, name)
