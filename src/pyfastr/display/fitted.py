"""What displays read off fitted models, and what they say where it is missing."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.namespaces import hosted
from pyfastr.estimators.outputs import check_one_output

_REASONS = {
    "starts_": "how the search went; the mean of the folds' models (refitted_=False) had none of "
    "its own",
    "history_": "the sweeps of a fit; the mean of the folds' models (refitted_=False) had none",
    "scores_path_": "the scores of a choice; use FasTRRegressorCV or FasTRClassifierCV",
    "held_out_": "predictions of held-out samples, from a choice by folds; use FasTRRegressorCV or "
    "FasTRClassifierCV with criterion='cv', or pass X and y",
}


def fitted_part(model: Any) -> Any:
    """Return the estimator with the coefficient: a pipeline's last step, or what images fitted.

    One that is on a device comes as a copy on the host. One of several outputs is refused.

    Parameters
    ----------
    model : estimator or Pipeline

    Returns
    -------
    estimator
    """
    part = part_of_any(model)
    check_one_output(part, "What is shown is")
    return part


def part_of_any(model: Any) -> Any:
    """Return the same, though it be of several outputs."""
    if isinstance(model, type):
        raise TypeError(
            f"estimator is the class {model.__name__}; expected a fitted object of it. Call it and "
            "then fit."
        )
    if hasattr(model, "steps"):
        return part_of_any(model.steps[-1][1])
    check_is_fitted(model)
    return part_of_any(model.estimator_) if hasattr(model, "estimator_") else hosted(model)


def attribute_of(model: Any, name: str) -> Any:
    """Return a fitted attribute, or say what it is and why there is none.

    Parameters
    ----------
    model : estimator or Pipeline
    name : str

    Returns
    -------
    object
    """
    part = fitted_part(model)
    if not hasattr(part, name):
        reason = _REASONS.get(name, "what models of pyfastr leave; fit one of them")
        raise AttributeError(f"This {type(part).__name__} has no {name}, {reason}.")
    return getattr(part, name)
