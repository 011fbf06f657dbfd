"""One of several outputs, or of more than two classes, as a fitted model of its own."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.coefficient import LazyCoefficient
from pyfastr.estimators.ranking import score_columns, scores_path

Array = NDArray[Any]

# Fitted attributes with a first axis, or a list, of outputs.
_ROWS = ("scales_", "covariate_coef_")
_ITEMS: dict[str, Callable[[Any], Any]] = {
    "intercept_": float,
    "n_iter_": int,
    "converged_": bool,
    "evidence_": float,
}


def n_outputs_of(model: Any) -> int | None:
    """Return how many outputs, or classes beyond two, a fitted estimator has; None if it is one."""
    scales = getattr(model, "scales_", None)
    return None if scales is None or scales.ndim == 1 else int(scales.shape[0])


def outputs_of(model: Any) -> list[Any]:
    """Return each output of a fitted estimator as a fitted estimator; of a single one the model.

    Parameters
    ----------
    model : FasTRRegressor, FasTRClassifier, or a CV twin

    Returns
    -------
    list of estimator
        Of more than two classes, each has the classes False and True: whether a sample is of it.
    """
    check_is_fitted(model)
    n_outputs = n_outputs_of(model)
    return [model] if n_outputs is None else [_output(model, t) for t in range(n_outputs)]


def models_of_outputs(model: Any) -> list[Any]:
    """Return each output of a fitted estimator, or of the last step of a fitted pipeline.

    Parameters
    ----------
    model : estimator or Pipeline

    Returns
    -------
    list of estimator or Pipeline
    """
    if not hasattr(model, "steps"):
        return outputs_of(model)
    *before, (name, last) = model.steps
    found = []
    for one in models_of_outputs(last):
        found.append(copy(model))
        found[-1].steps = [*before, (name, one)]
    return found


def check_one_output(model: Any, purpose: str) -> None:
    """Refuse several outputs where one is expected, and say how to take one.

    Parameters
    ----------
    model : estimator
    purpose : str
        What the outputs cannot have together, to begin a sentence with.
    """
    n_outputs = n_outputs_of(model)
    if n_outputs is not None:
        raise ValueError(
            f"{purpose} of one output, but {type(model).__name__} has {n_outputs}; expected one of "
            "them. Use model.outputs_[i], which is a fitted model of output or class i alone."
        )


def _output(model: Any, t: int) -> Any:
    """Return one output."""
    one = copy(model)
    own = vars(one)
    for name in _ROWS:
        if name in own:
            own[name] = own[name][t, ...]
    for name, kind in _ITEMS.items():
        if name in own:
            own[name] = kind(own[name][t])
    for name in ("starts_", "design_"):
        if own.get(name) is not None:
            own[name] = own[name][t]
    own["factors_"] = [factor[t, ...] for factor in own["factors_"]]
    if "_coefficient" in own:
        own["_coefficient"] = LazyCoefficient(own["factors_"], own["scales_"])
    if "history_" in own:
        moved = ~np.isnan(own["history_"]["change"][t])
        own["history_"] = {name: rows[t][moved] for name, rows in own["history_"].items()}
    if "classes_" in own:
        own["classes_"] = np.array([False, True])
    _narrow_choice(own, t)
    return one


def _narrow_choice(own: dict[str, Any], t: int) -> None:
    """Leave one output of what a choice by folds has; the reference is to all of them."""
    if "best_estimator_" in own:
        own["best_estimator_"] = _output(own["best_estimator_"], t)
    if "held_out_" in own:
        own["held_out_"] = _held_out(own["held_out_"], t)
    for name in [name for name in own if name.startswith("reference_")]:
        del own[name]
    if "output_scores_" in own:
        _narrow_scores(own, own.pop("output_scores_")[t])


def _narrow_scores(own: dict[str, Any], scores: Array) -> None:
    """Put scores ``(F, G)`` of one output in the place of means over all."""
    own["cv_results_"] = own["cv_results_"] | score_columns(scores)
    params = own["cv_results_"]["params"]
    points = [(each["n_terms"], each["ridge"], each["threshold"]) for each in params]
    own["scores_path_"] = scores_path(points, scores)
    own["best_score_"] = float(own["cv_results_"]["mean_test_score"][own["best_index_"]])


def _held_out(found: Any, t: int) -> Any:
    """Leave one output, or one class against the rest, of held-out predictions."""
    targets = found.target
    target = (targets == t).astype(int) if targets.ndim == 1 else targets[:, t]
    return replace(found, target=target, prediction=found.prediction[:, t])
