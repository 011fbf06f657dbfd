"""How predictions of held-out samples are scored: all models at once, or by any scorer."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import UndefinedMetricWarning

from pyfastr.estimators.areas import share_below
from pyfastr.estimators.classifier import calibrate, predicted_classes, probabilities
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import FasTRBase
from pyfastr.estimators.folds import Predicted, Split, TaskFits
from pyfastr.estimators.namespaces import is_dispatched, settle
from pyfastr.estimators.reading import LARGEST
from pyfastr.estimators.sklearn_private import BaseScorer, safe_indexing
from pyfastr.estimators.validation import share_input
from pyfastr.estimators.warning import warn
from pyfastr.solver.losses import POISSON
from pyfastr.solver.problem import power_of_two
from pyfastr.sources import Source, some_samples
from pyfastr.sources.namespaces import take

Array = NDArray[Any]


class Known(BaseEstimator):
    """An estimator whose predictions are known already: X holds the numbers of samples."""

    def fit(self, X: Any, y: Any) -> Self:
        """Do nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class KnownRegressor(RegressorMixin, Known):
    """One of predicted numbers."""

    def __init__(self, prediction: Array) -> None:
        self.prediction = prediction

    def predict(self, X: Array) -> Array:
        """Look the predictions up."""
        return self.prediction[X[:, 0]]


class KnownClassifier(ClassifierMixin, Known):
    """One of decision values of two classes, or of each of more."""

    def __init__(self, decision: Array, classes: Array, calibration: Callable[[], float]) -> None:
        self.decision = decision
        self.classes = classes
        self.calibration = calibration

    @property
    def classes_(self) -> Array:
        """The classes."""
        return self.classes

    def decision_function(self, X: Array) -> Array:
        """Look the decisions up."""
        return self.decision[X[:, 0]]

    def predict(self, X: Array) -> Array:
        """Return the class that the decision is for."""
        return predicted_classes(self.decision_function(X), self.classes)

    def predict_proba(self, X: Array) -> Array:
        """Return calibrated probabilities."""
        return probabilities(self.decision_function(X), self.calibration())


@dataclass(frozen=True)
class Scoring:
    """How held-out predictions are scored.

    Attributes
    ----------
    scorer : callable or None
        One of scikit-learn; None is R², D², or the area under the ROC curve, of all models at once
        and the mean over outputs, or over classes each against the rest.
    X, y : array-like
        As the user gave them; a scorer of the user's own may look at X.
    data : Data
    classes : ndarray of shape (n_classes,) or None
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

    def scores(self, fits: Predicted, splits: Sequence[Split]) -> Array:
        """Return the scores ``(F, K / F)`` of each fold's models on its held-out samples."""
        mean: Array = self.output_scores(fits, splits).mean(axis=0)
        return mean

    def output_scores(self, fits: Predicted, splits: Sequence[Split]) -> Array:
        """Return those of each output, ``(T, F, points)``; a scorer takes all of them for one."""
        folds = zip(self._rows(fits, splits), splits, strict=True)
        return np.stack([self._fold(fits, own, *split) for own, split in folds], axis=1)

    def _rows(self, fits: Predicted, splits: Sequence[Split]) -> Array:
        """Numbers of the models ``(F, T, points)`` of every fold and output."""
        n_models, n_outputs = len(fits.predictors), self.data.n_outputs or 1
        return np.arange(n_models).reshape(len(splits), n_outputs, -1)

    @property
    def targets(self) -> Array:
        """The response, or the numbers of classes."""
        y = self.data.y
        if self.classes is None:
            return y.T
        numbers: Array = (y > 0).astype(int) if self.data.n_outputs is None else y.argmax(axis=0)
        return numbers

    @property
    def is_of_samples(self) -> bool:
        """Whether the score is R² or D², a sum over samples."""
        return self.scorer is None and self.classes is None

    def losses(self, fits: Predicted, splits: Sequence[Split]) -> Array:
        """Return squared errors or deviances ``(S, K / F)`` of all samples that are held out.

        The score of a small fold is relative to a variance of its own, which few samples tell
        badly; the samples of all folds say more. One that several folds hold out has the mean of
        its errors, in squared units of `data`. Those of several outputs are averaged, each relative
        to what it has to explain.
        """
        rows, data = self._rows(fits, splits), self.data
        scale = data.units[:, None, None]
        target = np.atleast_2d(data.loss.target(data.y))[:, None] / scale
        n_samples = data.source.shape[0]
        weights = np.ones(n_samples) if data.weights is None else data.weights
        total, count = np.zeros((n_samples, rows.shape[2])), np.zeros(n_samples)
        units = data.loss_units[:, None, None]
        for own, (_, test) in zip(rows, splits, strict=True):
            predictors = fits.predictors[own][..., test] / scale
            losses = data.loss.losses(target[..., test], predictors)
            total[test] += 2 * np.mean(losses / units, axis=0).T
            count[test] += 1
        held = self.held_out_samples(splits)
        return total[held] * (weights[held] / weights[held].mean() / count[held])[:, None]

    def held_out_samples(self, splits: Sequence[Split]) -> Array:
        """Return the numbers of the samples that `losses` are of."""
        held = np.unique(np.concatenate([test for _, test in splits]))
        weights = self.data.weights
        return held if weights is None else held[weights[held] > 0]

    def _fold(self, fits: Predicted, rows: Array, train: Array, test: Array) -> Array:
        """Scores of one fold, ``(T, points)``."""
        if self.scorer is not None:
            return self._by_scorer(fits, rows, train, test)[None]
        score = SCORES[self.loss] if self.classes is None else auc_scores
        weights = None if self.data.weights is None else self.data.weights[test]
        pairs = zip(np.atleast_2d(self.data.y)[:, test], rows, strict=True)
        return np.stack([score(y, fits.predictors[own][:, test], weights) for y, own in pairs])

    def _by_scorer(self, fits: Predicted, rows: Array, train: Array, test: Array) -> Array:
        """Scores of the points of one fold; NaN where a score of scikit-learn is not defined."""
        scores, flaw = np.full(rows.shape[1], np.nan), ""
        for point, own in enumerate(rows.T):
            try:
                scores[point] = self._one(fits, own, train, test)
            except ValueError as error:
                # The reference tells of it in its own words, and users' functions in theirs.
                if not (isinstance(fits, TaskFits) and isinstance(self.scorer, BaseScorer)):
                    raise
                flaw = str(error).partition("\n")[0]
        if flaw:
            warn(f"scoring is not defined for some points of a fold, which count as NaN: {flaw}")
        return scores

    def _one(self, fits: Predicted, which: Array, train: Array, test: Array) -> float:
        """Score of one point by a scorer of scikit-learn, or by one of the user's own."""
        assert self.scorer is not None
        y = safe_indexing(self.y, test)
        if isinstance(fits, TaskFits) and not isinstance(self.scorer, BaseScorer):
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

    def _known(self, predictors: Array, train: Array) -> BaseEstimator:
        """Make an estimator that knows what the models of one point predict, one an output."""
        own = predictors[0] if self.data.n_outputs is None else predictors.T
        if self.classes is None:
            return KnownRegressor(self.data.loss.predict(own))
        labels = np.atleast_2d(self.data.y)[:, train]
        weights = None if self.data.weights is None else self.data.weights[train]
        return KnownClassifier(
            own,
            self.classes,
            lambda: calibrate(self.loss, predictors[:, train], labels, weights),
        )

    def fitted(self, fits: TaskFits, which: Array, train: Array) -> FasTRBase:
        """Make a fitted estimator of the models of one point, one an output."""
        twin: Any = clone(self.twin)
        share_input(self.twin, twin)
        twin._set_factors(fits.data, fits.models.take(which))
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
    g = _usable_shares("R²", weights, len(y))
    if g is None:
        return np.full(len(predictions), np.nan)
    # In units of y its squares are in range, however large or small it is.
    unit = power_of_two(np.abs(y).max())
    y, predictions = y / unit, predictions / unit
    with np.errstate(over="ignore"):
        unexplained = ((y - predictions) ** 2) @ g
    if np.ptp(y[g > 0]) == 0:
        return np.where(unexplained <= g.sum() * ROUNDING**2, 1.0, 0.0)
    return _gain_over(((y - np.average(y, weights=g)) ** 2) @ g, unexplained)


def d2_scores(counts: Array, predictors: Array, weights: Array | None) -> Array:
    """D² of every row of logarithms of means, as `sklearn.metrics.d2_tweedie_score` has it.

    Where that is not defined, for counts that are all the same, there is nothing to explain: 0.
    """
    g = _usable_shares("D²", weights, len(counts))
    if g is None:
        return np.full(len(predictors), np.nan)
    if POISSON.are_equal(counts[g > 0]):
        return np.zeros(len(predictors))
    unexplained = POISSON.losses(counts, predictors) @ g
    mean = np.full(len(counts), np.log(np.average(counts, weights=g)))
    return _gain_over(POISSON.losses(counts, mean) @ g, unexplained)


def auc_scores(labels: Array, decisions: Array, weights: Array | None) -> Array:
    """Area under the ROC curve of every row, as `sklearn.metrics.roc_auc_score` has it."""
    g = _shares(weights, len(labels))
    positive, negative = (np.where(side, g, 0.0) for side in (labels > 0, labels < 0))
    if not (positive.any() and negative.any()):
        warn(
            "The ROC curve of held-out samples of one class is not defined; use folds that each "
            "hold out samples of every class, fewer of them if a class is small.",
            UndefinedMetricWarning,
        )
        return np.full(len(decisions), np.nan)
    areas = share_below(decisions, negative) @ positive / (positive.sum() * negative.sum())
    if weights is None:
        return areas
    # Sums of weights end in other last digits for each order of samples, which must not break ties.
    return np.clip(np.round(areas, AREA_DIGITS), 0, 1)


def _gain_over(total: Array, unexplained: Array) -> Array:
    """Return shares that are explained; those of models that went astray stay finite."""
    with np.errstate(over="ignore"):
        scores: Array = 1 - unexplained / total
    return np.maximum(scores, -LARGEST)


def _usable_shares(score: str, weights: Array | None, n_samples: int) -> Array | None:
    """Return weights as shares, or None where the score of so few samples is not defined."""
    if n_samples < 2:
        warn(f"{score} is not defined for folds of one held-out sample; pass another `scoring`.")
        return None
    g = _shares(weights, n_samples)
    return g if g.any() else None


def _shares(weights: Array | None, n_samples: int) -> Array:
    """Return weights as shares of the largest: scores are the same, and no product overflows."""
    if weights is None:
        return np.ones(n_samples)
    return weights / max(weights.max(), np.finfo(float).tiny)


# A constant that is missed by this share of it is predicted.
ROUNDING = 16 * float(np.finfo(float).eps)
# Areas that differ by less are the same.
AREA_DIGITS = 12
# What regressors are scored by, for each loss.
SCORES = {"squared": r2_scores, "poisson": d2_scores}
