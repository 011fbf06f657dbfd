"""Sparse unit-rank tensor regression with the scikit-learn interface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyfastr import baselines, datasets, display, imaging, inference, metrics
    from pyfastr.config import config_context, get_config, set_config
    from pyfastr.estimators import (
        FasTRClassifier,
        FasTRClassifierCV,
        FasTRRegressor,
        FasTRRegressorCV,
        SliceSelector,
        TensorScaler,
        fastr_path,
        theory_threshold,
    )
    from pyfastr.persistence import load, save

__version__ = "0.1.0"

__all__ = [
    "FasTRClassifier",
    "FasTRClassifierCV",
    "FasTRRegressor",
    "FasTRRegressorCV",
    "SliceSelector",
    "TensorScaler",
    "__version__",
    "baselines",
    "config_context",
    "datasets",
    "display",
    "fastr_path",
    "get_config",
    "imaging",
    "inference",
    "load",
    "metrics",
    "save",
    "set_config",
    "theory_threshold",
]

_ESTIMATORS = {
    "FasTRClassifier",
    "FasTRClassifierCV",
    "FasTRRegressor",
    "FasTRRegressorCV",
    "SliceSelector",
    "TensorScaler",
    "fastr_path",
    "theory_threshold",
}
_FILES = {"load", "save"}
_SETTINGS = {"config_context", "get_config", "set_config"}
_MODULES = {"baselines", "datasets", "display", "imaging", "inference", "metrics"}


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that importing the package stays fast."""
    if name in _ESTIMATORS:
        return getattr(import_module("pyfastr.estimators"), name)
    if name in _FILES:
        return getattr(import_module("pyfastr.persistence"), name)
    if name in _SETTINGS:
        return getattr(import_module("pyfastr.config"), name)
    if name in _MODULES:
        return import_module(f"pyfastr.{name}")
    raise AttributeError(f"module 'pyfastr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
