"""Fits of every fold and grid point in one batch, and their predictions of held-out samples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyfastr.estimators.data import Data
from pyfastr.solver.design import Design
from pyfastr.solver.finish import Finished
from pyfastr.solver.grid import grow_grid, solve_grid
from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.settings import Settings
from pyfastr.solver.solve import designs_at_end

Array = NDArray[Any]
Split = tuple[Array, Array]


@dataclass(frozen=True)
class TaskFits:
    """Models of every task, ridge and threshold, and their predictions of all samples.

    A task is a fold, an output of a fold, a permuted response or a resample.

    Attributes
    ----------
    models : Models
        In the order of tasks, ridges and thresholds.
    predictors : ndarray of shape (K, n_samples)
        Linear ones, with intercept and covariates; those of a task's own training samples too.
    nuisance : ndarray of shape (K, q)
        Coefficients of intercept and covariates.
    data : Data
        Of the tasks.
    """

    models: Models
    predictors: Array
    nuisance: Array
    data: Data

    def take(self, which: slice | Array) -> "TaskFits":
        """Return some of the fits."""
        return replace(
            self,
            models=self.models.take(which),
            predictors=self.predictors[which],
            nuisance=self.nuisance[which],
        )


class Predicted(Protocol):
    """Linear predictors ``(K, n_samples)`` of models, in the order of folds and outputs."""

    @property
    def predictors(self) -> Array: ...

    @property
    def data(self) -> Data: ...


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What folds predicted for samples that they did not train on.

    Attributes
    ----------
    samples, folds : ndarray of int of shape (n_held_out,)
        Number of the sample, and of the fold that held it out.
    target : ndarray of shape (n_held_out,) or (n_held_out, n_outputs)
        Its response; of classes their place in `classes_`, a vector.
    prediction : ndarray of shape (n_held_out,) or (n_held_out, n_outputs)
        Predicted response, or decision value.
    """

    samples: Array
    folds: Array
    target: Array
    prediction: Array


def held_out(points: Sequence[Predicted], splits: Sequence[Split], targets: Array) -> HeldOut:
    """Return the held-out predictions of a point of the grid, or the mean of several points'."""
    tests, data = [test for _, test in splits], points[0].data
    samples = np.concatenate(tests)
    means = np.mean([fits.predictors for fits in points], axis=0)
    if data.n_outputs is not None:
        means = means.reshape(len(tests), data.n_outputs, -1)
    predictors = np.concatenate([own[..., test].T for own, test in zip(means, tests, strict=True)])
    folds = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
    return HeldOut(samples, folds, targets[samples], data.loss.predict(predictors))


def mean_of(points: Sequence[TaskFits]) -> TaskFits:
    """Return one model an output whose coefficient is the mean of all: its terms are those of all.

    It is of the output's task in the first fold.
    """
    first, n_outputs = points[0], points[0].data.n_outputs or 1
    y_scale = first.data.problem.y_scale
    scales, components = [], []
    for fits in points:
        models = fits.models
        n_models = len(models) // n_outputs * len(points)
        share = y_scale[models.task] / (y_scale[models.task % n_outputs] * n_models)
        scales.append(_terms_of_outputs((models.scales * share[:, None])[..., None], n_outputs))
        components.append([_terms_of_outputs(c, n_outputs) for c in models.components])
    every = np.concatenate(scales, axis=1)[..., 0]
    used = np.flatnonzero(every.any(axis=0)) if every.any() else slice(1)
    terms = [np.concatenate(c, axis=1)[:, used] for c in zip(*components, strict=True)]
    mean = Models(terms, every[:, used], np.arange(n_outputs))
    if len(terms) == 1:  # a sum of vectors is one
        sums = [s[None] @ c for s, c in zip(mean.scales, mean.components[0], strict=True)]
        mean = mean.replace(0, np.stack(sums))
    return replace(
        first,
        models=mean,
        predictors=_means_of_outputs([fits.predictors for fits in points], n_outputs),
        nuisance=_means_of_outputs([fits.nuisance for fits in points], n_outputs),
    )


def _terms_of_outputs(values: Array, n_outputs: int) -> Array:
    """Put the terms ``(F * T, R, p)`` of all models of an output together: ``(T, F R, p)``."""
    own = values.reshape(-1, n_outputs, *values.shape[1:]).swapaxes(0, 1)
    return own.reshape(n_outputs, -1, values.shape[-1])


def _means_of_outputs(rows: list[Array], n_outputs: int) -> Array:
    """Average rows ``(F * T, q)`` over folds and points."""
    n_rows, width = rows[0].shape
    own = np.stack(rows).reshape(len(rows) * n_rows // n_outputs, n_outputs, width)
    means: Array = own.mean(axis=0)
    return means


def known_solutions(fits: TaskFits, data: Data) -> Models | None:
    """Return the solutions that folds have found, as those of the outputs of all data."""
    found = fits.models
    some = found.scales.all(axis=1)
    if not some.any():
        return None
    output = found.task[some] % (data.n_outputs or 1)
    return Models([c[some] for c in found.components], found.scales[some], output)


def mean_design(fits: TaskFits, data: Data, settings: Settings) -> Design | list[Design] | None:
    """Return the mean of what all samples say of the models of folds."""
    n_outputs, found = data.n_outputs or 1, fits.models
    output = found.task % n_outputs
    units = fits.data.problem.y_scale[found.task] / data.problem.y_scale[output]
    models = Models(found.components, found.scales * units[:, None], output)
    several = designs_at_end(data.problem, models, settings)
    if several is None:
        return None
    means = [Design.mean_of(several[output::n_outputs]) for output in range(n_outputs)]
    return means if data.n_outputs else means[0]


def training_weights(splits: Sequence[Split], n_samples: int) -> Array:
    """Return weights ``(F, n_samples)`` that count how often a fold trains on each sample."""
    return np.stack([np.bincount(train, minlength=n_samples) for train, _ in splits]).astype(float)


def fit_folds(
    data: Data,
    splits: Sequence[Split],
    ridges: Sequence[float],
    thresholds: Sequence[float],
    settings: Settings,
    rng: np.random.Generator,
) -> TaskFits:
    """Fit a grid to the training samples of every fold.

    A fold is a row of sample weights, so all folds share each pass over X, and the fitted values
    of held-out rows are the predictions.
    """
    folds = data.tasks(weights=training_weights(splits, data.source.shape[0]))
    return fit_tasks(folds, ridges, thresholds, settings, rng)


def fit_tasks(
    tasks: Data,
    ridges: Sequence[float],
    thresholds: Sequence[float],
    settings: Settings,
    rng: np.random.Generator,
) -> TaskFits:
    """Fit a grid to every task: a fold, a permuted response or a resample."""
    return _task_fits(tasks, solve_grid(tasks.problem, ridges, thresholds, settings, rng))


def grow_folds(
    fits: TaskFits, ridges: Sequence[float], thresholds: Sequence[float], settings: Settings
) -> TaskFits:
    """Add a term to the fits of every fold at points that each have a ridge and a threshold."""
    tasks = fits.data
    ridge, threshold = (np.tile(each, tasks.problem.n_tasks) for each in (ridges, thresholds))
    penalty = Penalty(ridge, threshold)
    return _task_fits(tasks, grow_grid(tasks.problem, fits.models, penalty, settings))


def _task_fits(tasks: Data, fits: Finished) -> TaskFits:
    """Add what intercept and covariates contribute to fits."""
    nuisance = tasks.nuisance_coefficients(fits.models, fits.fitted)
    predictors = tasks.with_nuisance(fits.models, fits.fitted, nuisance)
    return TaskFits(fits.models, predictors, nuisance, tasks)
