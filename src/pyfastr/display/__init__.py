"""Pictures of fitted models, and reports as Markdown, LaTeX and HTML.

Displays follow scikit-learn's convention: ``from_estimator`` (or ``from_result``) draws at once,
and the object keeps what was drawn. Colours stay apart for colour-blind readers, marks and lines
differ in print, and dark styles of matplotlib are respected.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyfastr.display.coefficient import CoefficientDisplay
    from pyfastr.display.convergence import ConvergenceDisplay
    from pyfastr.display.diagnosis import Diagnosis, diagnose
    from pyfastr.display.factors import FactorsDisplay
    from pyfastr.display.path import PathDisplay
    from pyfastr.display.permutation import PermutationDisplay
    from pyfastr.display.prediction import PredictionDisplay
    from pyfastr.display.report import Report, model_report
    from pyfastr.display.roc import RocDisplay
    from pyfastr.display.selection import SelectionDisplay
    from pyfastr.display.stability import ImportanceDisplay, StabilityDisplay
    from pyfastr.display.starts import StartsDisplay

__all__ = [
    "CoefficientDisplay",
    "ConvergenceDisplay",
    "Diagnosis",
    "FactorsDisplay",
    "ImportanceDisplay",
    "PathDisplay",
    "PermutationDisplay",
    "PredictionDisplay",
    "Report",
    "RocDisplay",
    "SelectionDisplay",
    "StabilityDisplay",
    "StartsDisplay",
    "diagnose",
    "model_report",
]

_HOMES = {
    "CoefficientDisplay": "coefficient",
    "ConvergenceDisplay": "convergence",
    "Diagnosis": "diagnosis",
    "FactorsDisplay": "factors",
    "ImportanceDisplay": "stability",
    "PathDisplay": "path",
    "PermutationDisplay": "permutation",
    "PredictionDisplay": "prediction",
    "Report": "report",
    "RocDisplay": "roc",
    "SelectionDisplay": "selection",
    "StabilityDisplay": "stability",
    "StartsDisplay": "starts",
    "diagnose": "diagnosis",
    "model_report": "report",
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that a report needs no more than it shows."""
    if name in _HOMES:
        return getattr(import_module(f"pyfastr.display.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'pyfastr.display' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
