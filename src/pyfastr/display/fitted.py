"""What displays read off fitted models, and what they say where it is missing."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

_REASONS = {
    "starts_": "how the search went; the mean of the folds' models (refit=False) had none of its "
    "own",
    "history_": "the sweeps of a fit; the mean of the folds' models (refit=False) had none",
    "scores_path_": "the scores of a choice; use FasTRRegressorCV or FasTRClassifierCV",
    "held_out_": "predictions of held-out samples, from a choice by folds; use FasTRRegressorCV or "
    "FasTRClassifierCV with criterion='cv', or pass X and y",
}


def fitted_part(model: Any) -> Any:
    """Return the estimator with the coefficient: a pipeline's last step, or the model itself.

    Parameters
    ----------
    model : estimator or Pipeline

    Returns
    -------
    estimator
    """
    part = model.steps[-1][1] if hasattr(model, "steps") else model
    if isinstance(part, type):
        raise TypeError(
            f"estimator is the class {part.__name__}; expected a fitted object of it. Call it and "
            "then fit."
        )
    check_is_fitted(part)
    return part


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
