"""From an estimator and data to tasks of the solver."""

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from pyfastr.estimators.choice import FasTRSelection
from pyfastr.estimators.classifier import LabelsMixin
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import FasTRBase
from pyfastr.estimators.folds import fit_tasks
from pyfastr.estimators.validation import check_tensor_and_response
from pyfastr.inference._progress import Progress
from pyfastr.inference._scaling import Scaling
from pyfastr.solver.losses import LOSSES
from pyfastr.solver.models import Models
from pyfastr.solver.progress import unwatched
from pyfastr.solver.settings import Settings

Array = NDArray[Any]

# Tasks in one batch: enough to share a pass over X, few enough to bound memory.
BATCH = 64


def checked_estimator(estimator: Any) -> Any:
    """Return a copy with checked parameters of one of the package's estimators."""
    if not isinstance(estimator, FasTRBase | FasTRSelection):
        raise TypeError(
            f"estimator is {estimator!r}; expected a FasTRRegressor, FasTRClassifier, "
            "FasTRRegressorCV or FasTRClassifierCV, or a Pipeline of TensorScaler and one of them."
        )
    copy = clone(estimator)
    copy._validate_params()
    by_evidence = getattr(copy, "criterion", "cv") == "evidence"
    if by_evidence or copy.refit_support == "evidence":
        raise ValueError(
            "estimator chooses its support by evidence, whose search is not run on resampled data; "
            "expected refit_support=True or False, and criterion='cv'. Give a threshold instead."
        )
    return copy


def checked_model(estimator: Any) -> Any:
    """Return a copy of an estimator with one threshold and ridge, or of a fitted twin's choice."""
    if not isinstance(estimator, FasTRSelection):
        return checked_estimator(estimator)
    if not hasattr(estimator, "best_estimator_"):
        raise ValueError(
            f"estimator is a {type(estimator).__name__} that has not chosen threshold and ridge; "
            "expected one that is fitted, or an estimator with its own. Call fit first."
        )
    return checked_estimator(estimator.best_estimator_)


def _check_one_output(y: Any) -> None:
    """Refuse several outputs, of which each has a test of its own."""
    shape = np.shape(y)
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has {shape[1]} outputs; expected 1. Give one of its columns, such as y[:, 0]."
        )


def checked_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None
) -> Data:
    """Check what is fitted as the estimator's own fit would."""
    if isinstance(estimator, LabelsMixin):
        tensor, response, weights = estimator._checked(X, y, sample_weight)
        if response.ndim > 1:
            raise ValueError(
                f"y has {len(response)} classes; expected 2. Give one class against the rest, such "
                f"as y == {estimator.classes_.tolist()[0]!r}."
            )
    else:
        _check_one_output(y)
        tensor, response = check_tensor_and_response(estimator, X, y)
        weights = sample_weight
    return Data.check(
        estimator,
        tensor,
        response,
        weights,
        covariates,
        fit_intercept=estimator.fit_intercept,
        loss=LOSSES[estimator.loss],
    )


def strata(estimator: Any, data: Data) -> list[Array]:
    """Return the samples that count, those of each class apart where there are classes."""
    counts = np.ones(len(data.y), bool) if data.weights is None else data.weights > 0
    if not isinstance(estimator, LabelsMixin):
        return [np.flatnonzero(counts)]
    return [np.flatnonzero(counts & (data.y == label)) for label in (-1, 1)]


def fit_resamples(
    data: Data, scaling: Scaling, counts: Array, settings: Settings, rng: np.random.Generator
) -> Models:
    """Fit one model to each resample, a row of ``counts (n_resamples, n_samples)``.

    Resamples with a scaling of their own share no pass over X.
    """
    found: list[Models] = []
    progress = Progress("resamples", "resamples", len(counts))
    for rows in batches(len(counts), 1 if scaling else BATCH):
        scaled, _ = scaling.apply(data, counts[rows][0])
        tasks = scaled.tasks(weights=counts[rows])
        with unwatched():
            fits = fit_tasks(tasks, [settings.ridge], [settings.threshold], settings, rng)
        found.append(fits.models)
        progress.add(len(counts[rows]))
    return Models.concatenate(found)


def batches(total: int, size: int) -> Iterator[slice]:
    """Cut a range into slices."""
    return (slice(first, first + size) for first in range(0, total, size))


def check_count(name: str, value: Any) -> None:
    """Refuse what is no number of repetitions."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{name} is {value!r}; expected a whole number of at least 1.")


def check_share(name: str, value: Any, advice: str) -> None:
    """Refuse what is no share between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} is {value!r}; expected a number above 0 and below 1. {advice}")
