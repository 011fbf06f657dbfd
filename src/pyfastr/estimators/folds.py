"""Fits of every fold and grid point in one batch, and their scores on held-out samples."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import UndefinedMetricWarning

from pyfastr.estimators.classifier import calibrate
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import FasTRBase
from pyfastr.estimators.namespaces import is_dispatched, settle
from pyfastr.estimators.sklearn_private import BaseScorer, safe_indexing
from pyfastr.estimators.validation import share_input
from pyfastr.estimators.warning import warn
from pyfastr.solver.losses import POISSON
from pyfastr.solver.models import Models
from pyfastr.solver.solve import GridFits, Settings, solve_grid
from pyfastr.sources import Source, some_samples
from pyfastr.sources.namespaces import take

Array = NDArray[Any]
Split = tuple[Array, Array]


@dataclass(frozen=True)
class TaskFits:
    """Models of every task, ridge and threshold, and their predictions of all samples.

    A task is a fold, a permuted response or a resample.

    Attributes
    ----------
    models : Models
        In the order of tasks, ridges and thresholds.
    predictors : ndarray of shape (K, n_samples)
        Linear ones, with intercept and covariates; those of a task's own training samples too.
    nuisance : ndarray of shape (K, q)
        Coefficients of intercept and covariates.
    begun_from : Models
        What the sweeps of each model began from.
    data : Data
        Of the tasks.
    """

    models: Models
    predictors: Array
    nuisance: Array
    begun_from: Models
    data: Data

    def take(self, which: slice) -> "TaskFits":
        """Return some of the fits."""
        return replace(
            self,
            models=self.models.take(which),
            predictors=self.predictors[which],
            nuisance=self.nuisance[which],
            begun_from=self.begun_from.take(which),
        )


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What folds predicted for samples that they did not train on.

    Attributes
    ----------
    samples, folds : ndarray of int of shape (n_held_out,)
        Number of the sample, and of the fold that held it out.
    target : ndarray of shape (n_held_out,)
        Its response; of classes 0 or 1, their place in `classes_`.
    prediction : ndarray of shape (n_held_out,)
        Predicted response, or decision value.
    """

    samples: Array
    folds: Array
    target: Array
    prediction: Array


def held_out(points: Sequence[TaskFits], splits: Sequence[Split], targets: Array) -> HeldOut:
    """Return the held-out predictions of a point of the grid, or the mean of several points'."""
    tests = [test for _, test in splits]
    samples = np.concatenate(tests)
    means = np.mean([fits.predictors for fits in points], axis=0)
    predictors = np.concatenate([own[test] for own, test in zip(means, tests, strict=True)])
    folds = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
    return HeldOut(samples, folds, targets[samples], points[0].data.loss.predict(predictors))


def mean_of(points: Sequence[TaskFits]) -> TaskFits:
    """Return one model whose coefficient is the mean of all: its terms are those of all."""
    first = points[0]
    y_scale = first.data.problem.y_scale
    scales, components = [], []
    for fits in points:
        models = fits.models
        share = y_scale[models.task] / (y_scale[0] * len(models) * len(points))
        scales.append((models.scales * share[:, None]).reshape(1, -1))
        components.append([c.reshape(1, -1, c.shape[-1]) for c in models.components])
    every = np.concatenate(scales, axis=1)
    used = np.flatnonzero(every[0]) if every.any() else slice(1)
    terms = [np.concatenate(c, axis=1)[:, used] for c in zip(*components, strict=True)]
    mean = Models(terms, every[:, used])
    if len(terms) == 1:  # a sum of vectors is one
        mean = mean.replace(0, (mean.scales @ mean.components[0][0])[None])
    return replace(
        first,
        models=mean,
        predictors=np.mean([fits.predictors for fits in points], axis=(0, 1))[None],
        nuisance=np.mean([fits.nuisance for fits in points], axis=(0, 1))[None],
        begun_from=mean,
    )


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
    fits: GridFits = solve_grid(tasks.problem, ridges, thresholds, settings, rng)
    nuisance = tasks.nuisance_coefficients(fits.models, fits.fitted)
    scale = tasks.problem.y_scale[fits.models.task][:, None]
    predictors = fits.fitted * scale + nuisance @ tasks.nuisance_columns.T
    return TaskFits(fits.models, predictors, nuisance, fits.begun_from, tasks)


class KnownRegressor(RegressorMixin, BaseEstimator):
    """An estimator whose predictions are known already: X holds the numbers of samples."""

    def __init__(self, prediction: Array) -> None:
        self.prediction = prediction

    def fit(self, X: Any, y: Any) -> "KnownRegressor":
        """Do nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Array) -> Array:
        """Look the predictions up."""
        return self.prediction[X[:, 0]]


class KnownClassifier(ClassifierMixin, BaseEstimator):
    """The same for decision values of two classes."""

    def __init__(self, decision: Array, classes: Array, calibration: Callable[[], float]) -> None:
        self.decision = decision
        self.classes = classes
        self.calibration = calibration

    @property
    def classes_(self) -> Array:
        """The two classes."""
        return self.classes

    def fit(self, X: Any, y: Any) -> "KnownClassifier":
        """Do nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Array) -> Array:
        """Look the decisions up."""
        return self.decision[X[:, 0]]

    def predict(self, X: Array) -> Array:
        """Return the class on whose side the decision is."""
        return self.classes[(self.decision_function(X) > 0).astype(int)]

    def predict_proba(self, X: Array) -> Array:
        """Return calibrated probabilities."""
        positive = expit(self.calibration() * self.decision_function(X))
        return np.column_stack([1 - positive, positive])


@dataclass(frozen=True)
class Scoring:
    """How held-out predictions are scored.

    Attributes
    ----------
    scorer : callable or None
        One of scikit-learn; None is R², D², or the area under the ROC curve, of all models at once.
    X, y : array-like
        As the user gave them; a scorer of the user's own may look at X.
    data : Data
    classes : ndarray of shape (2,) or None
    loss : str
    twin : estimator
        Not fitted, but it knows the input of fits; scorers of the user's own are given copies
        that are fitted.
    """

    scorer: Callable[..., float] | None
    X: Any
    y: Any
    data: Data
    classes: Array | None
    loss: str
    twin: FasTRBase

    def scores(self, fits: TaskFits, splits: Sequence[Split]) -> Array:
        """Return the scores ``(F, K / F)`` of each fold's models on its held-out samples."""
        each = len(fits.models) // len(splits)
        rows = [slice(f * each, (f + 1) * each) for f in range(len(splits))]
        return np.stack(
            [self._fold(fits, part, *split) for part, split in zip(rows, splits, strict=True)]
        )

    @property
    def targets(self) -> Array:
        """The response, or the numbers of classes."""
        return self.data.y if self.classes is None else (self.data.y > 0).astype(int)

    @property
    def is_of_samples(self) -> bool:
        """Whether the score is R² or D², a sum over samples."""
        return self.scorer is None and self.classes is None

    def losses(self, fits: TaskFits, splits: Sequence[Split]) -> Array:
        """Return squared errors or deviances ``(S, K / F)`` of all samples that are held out.

        The score of a small fold is relative to a variance of its own, which few samples tell
        badly; the samples of all folds say more. One that several folds hold out has the mean of
        its errors.
        """
        y = self.data.y
        weights = np.ones(len(y)) if self.data.weights is None else self.data.weights
        each = len(fits.models) // len(splits)
        total, count = np.zeros((len(y), each)), np.zeros(len(y))
        for fold, (_, test) in enumerate(splits):
            predictors = fits.predictors[fold * each : (fold + 1) * each]
            total[test] += 2 * self.data.loss.losses(y[test], predictors[:, test]).T
            count[test] += 1
        held = (count > 0) & (weights > 0)
        return total[held] * (weights[held] / weights[held].mean() / count[held])[:, None]

    def _fold(self, fits: TaskFits, part: slice, train: Array, test: Array) -> Array:
        """Scores of one fold."""
        if self.scorer is None:
            score = SCORES[self.loss] if self.classes is None else auc_scores
            weights = None if self.data.weights is None else self.data.weights[test]
            return score(self.data.y[test], fits.predictors[part][:, test], weights)
        numbers = range(part.start, part.stop)
        return np.array([self._one(fits, k, train, test) for k in numbers])

    def _one(self, fits: TaskFits, which: int, train: Array, test: Array) -> float:
        """Score of one model by a scorer of scikit-learn, or by one of the user's own."""
        assert self.scorer is not None
        y = safe_indexing(self.y, test)
        if not isinstance(self.scorer, BaseScorer):
            fitted = self.fitted(fits, which, train)
            return float(self.scorer(fitted, self._samples(test), y))
        known = self._known(fits.predictors[which], train)
        return float(self.scorer(known, test[:, None], y, **self._weight_option(test)))

    def _samples(self, which: Array) -> Any:
        """Return some samples; those of files are not read before the scorer does."""
        if isinstance(self.X, Source):
            return some_samples(self.X, which)
        if is_dispatched(self.X):
            return take(self.X, which, axis=0)
        return safe_indexing(self.X, which)

    def _known(self, predictor: Array, train: Array) -> BaseEstimator:
        if self.classes is None:
            return KnownRegressor(self.data.loss.predict(predictor))
        weights = None if self.data.weights is None else self.data.weights[train]
        return KnownClassifier(
            predictor,
            self.classes,
            lambda: calibrate(self.loss, predictor[train], self.data.y[train], weights),
        )

    def fitted(self, fits: TaskFits, which: int, train: Array) -> FasTRBase:
        """Make a fitted estimator of one model."""
        twin: Any = clone(self.twin)
        share_input(self.twin, twin)
        twin._set_factors(fits.data, fits.models.take(slice(which, which + 1)))
        twin._set_nuisance(fits.data, fits.nuisance[which])
        if self.classes is not None:
            known: Any = self._known(fits.predictors[which], train)
            twin.calibration_ = known.calibration()
        settle(twin, self.X)
        return twin

    def _weight_option(self, test: Array) -> dict[str, Array]:
        """Weigh the held-out samples where the score can."""
        score = getattr(self.scorer, "_score_func", None)
        if self.data.weights is None or score is None:
            return {}
        known = "sample_weight" in inspect.signature(score).parameters
        return {"sample_weight": self.data.weights[test]} if known else {}


def r2_scores(y: Array, predictions: Array, weights: Array | None) -> Array:
    """R² of every row of predictions, as `sklearn.metrics.r2_score` has it."""
    if len(y) < 2:
        warn("R² is not defined for folds of one held-out sample; pass another `scoring`.")
        return np.full(len(predictions), np.nan)
    g = np.ones(len(y)) if weights is None else weights
    if not g.any():
        return np.full(len(predictions), np.nan)
    unexplained = ((y - predictions) ** 2) @ g
    total = ((y - np.average(y, weights=g)) ** 2) @ g
    if total == 0:
        return np.where(unexplained == 0, 1.0, 0.0)
    return 1 - unexplained / total


def d2_scores(counts: Array, predictors: Array, weights: Array | None) -> Array:
    """D² of every row of logarithms of means, as `sklearn.metrics.d2_tweedie_score` has it.

    Where that is not defined, for counts that are all the same, there is nothing to explain: 0.
    """
    if len(counts) < 2:
        warn("D² is not defined for folds of one held-out sample; pass another `scoring`.")
        return np.full(len(predictors), np.nan)
    g = np.ones(len(counts)) if weights is None else weights
    if not g.any():
        return np.full(len(predictors), np.nan)
    if np.ptp(counts[g > 0]) == 0:
        return np.zeros(len(predictors))
    unexplained = POISSON.losses(counts, predictors) @ g
    mean = np.full(len(counts), np.log(np.average(counts, weights=g)))
    return 1 - unexplained / (POISSON.losses(counts, mean) @ g)


def auc_scores(labels: Array, decisions: Array, weights: Array | None) -> Array:
    """Area under the ROC curve of every row, as `sklearn.metrics.roc_auc_score` has it."""
    g = np.ones(len(labels)) if weights is None else weights
    positive, negative = (np.where(side, g, 0.0) for side in (labels > 0, labels < 0))
    if not (positive.any() and negative.any()):
        warn(
            "The ROC curve of held-out samples of one class is not defined; use fewer or "
            "stratified folds.",
            UndefinedMetricWarning,
        )
        return np.full(len(decisions), np.nan)
    won = [positive @ _share_below(row, negative) for row in decisions]
    return np.array(won) / (positive.sum() * negative.sum())


# What regressors are scored by, for each loss.
SCORES = {"squared": r2_scores, "poisson": d2_scores}


def _share_below(values: Array, weights: Array) -> Array:
    """Weight of all that is below each value, and half the weight of its equals."""
    distinct, rank = np.unique(values, return_inverse=True)
    at = np.bincount(rank, weights, minlength=len(distinct))
    return (np.cumsum(at) - at / 2)[rank]
