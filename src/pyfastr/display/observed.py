"""Predictions beside what was observed: of held-out samples, or of samples that users give."""

from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from pyfastr.display.fitted import attribute_of, fitted_part
from pyfastr.display.traits import unit_of
from pyfastr.estimators.namespaces import on_host
from pyfastr.estimators.reading import LARGEST
from pyfastr.estimators.regressor import score_numbers
from pyfastr.solver.losses import LOSSES
from pyfastr.sources.namespaces import to_host

Array = NDArray[Any]


@dataclass(frozen=True)
class Observed:
    """Targets, predictions or decisions, and folds if these were held out.

    Attributes
    ----------
    target, prediction : ndarray of shape (n,)
    folds : ndarray of shape (n,) or None
    """

    target: Array
    prediction: Array
    folds: Array | None = None


def observe(estimator: Any, X: Any, y: Any, covariates: Any, method: str) -> Observed:
    """Return targets and predictions of samples, or of held-out samples if none are given.

    Parameters
    ----------
    estimator : estimator or Pipeline
    X, y, covariates : array-like or None
    method : str
        What predicts: "predict" or "decision_function".

    Returns
    -------
    Observed
    """
    if (X is None) != (y is None):
        raise ValueError(
            f"{'y' if X is None else 'X'} is given without {'X' if X is None else 'y'}; expected "
            "both, or neither for held-out samples of the fit."
        )
    if X is None:
        held = attribute_of(estimator, "held_out_")
        return Observed(held.target, held.prediction, held.folds)
    part, y = fitted_part(estimator), column_or_1d(*on_host(X, y=y))
    check_consistent_length(X, y)
    if method == "predict":
        check_range(np.asarray(y, float), getattr(part, "loss", "squared"))
    found = _predict(getattr(estimator, method), X, covariates)
    return Observed(y, np.asarray(to_host(found)))


def check_range(y: Array, loss: str) -> None:
    """Refuse numbers that no fit takes, as a fit does; counts may all be zero.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
    loss : str
    """
    size = float(np.abs(y).max(initial=0.0))
    if size > LARGEST:
        raise ValueError(f"y is of size {size:.3g}; expected numbers up to {LARGEST:g}. Rescale y.")
    if size > 0 and (flaw := LOSSES[loss].flaw_of(y, None)):
        raise ValueError(flaw)


def finite_score(loss: str, target: Array, prediction: Array) -> float:
    """Return R² or D², which stay finite where predictions went astray.

    Parameters
    ----------
    loss : str
    target, prediction : ndarray of shape (n_samples,)

    Returns
    -------
    float
    """
    limit = LARGEST * unit_of(target)
    with np.errstate(over="ignore"):
        score = score_numbers(loss, target, np.clip(prediction, -limit, limit))
    return max(score, -LARGEST)


def _predict(method: Any, X: Any, covariates: Any) -> Any:
    """Predict; images call covariates confounds, and pipelines pass them on by name only."""
    if covariates is None:
        return method(X)
    known = signature(method).parameters
    name = "confounds" if "confounds" in known else "covariates"
    return method(X, **{name: covariates})
