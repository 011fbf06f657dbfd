"""Whether flattened ridge regression predicts held-out samples better than a choice does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.estimators.areas import share_below
from pyfastr.estimators.data import Data
from pyfastr.estimators.folds import Predicted, Split
from pyfastr.estimators.ranking import mean_and_error
from pyfastr.estimators.scoring import Scoring
from pyfastr.solver.losses import POISSON

Array = NDArray[Any]


@dataclass(frozen=True)
class Predictions:
    """Linear predictors ``(F * T, n_samples)`` of one model a fold and output."""

    predictors: Array
    data: Data


@dataclass(frozen=True)
class Comparison:
    """Two ways to predict the same held-out samples.

    Attributes
    ----------
    ours, theirs : float
        Mean scores over the folds, of the choice and of the reference.
    lead : float
        How far the reference is ahead.
    error : float
        Standard error of the lead, paired over samples, or over folds if the score is of these.
    """

    ours: float
    theirs: float
    lead: float
    error: float

    def is_clear(self, chance: float, least: float) -> bool:
        """Whether the reference is ahead by more than so many standard errors, and than `least`."""
        return bool(self.lead > max(chance * self.error, least))

    def is_reversed(self, chance: float) -> bool:
        """Whether the choice is ahead by more than so many standard errors."""
        return bool(-self.lead > chance * self.error)


def constant_predictions(data: Data, n_folds: int) -> Predictions:
    """Return what is predicted without a look at X: the mean of all samples."""
    level = np.average(np.atleast_2d(data.y), weights=data.weights, axis=1)
    level = np.log(level) if data.loss is POISSON else level
    rows = np.broadcast_to(np.tile(level, n_folds)[:, None], (n_folds * len(level), len(data.y.T)))
    return Predictions(rows, data)


def compare(
    ours: Predicted, theirs: Predicted, scoring: Scoring, splits: Sequence[Split]
) -> Comparison:
    """Compare a choice with a reference, one model a fold of each.

    Parameters
    ----------
    ours, theirs : Predicted
        With linear predictors of shape (F * T, n_samples).
    scoring : Scoring
    splits : sequence of (ndarray, ndarray)
    """
    scores = np.hstack([scoring.scores(own, splits) for own in (ours, theirs)])
    scores = scores[np.isfinite(scores).all(axis=1)]
    mean = scores.mean(axis=0)
    if scoring.is_of_samples:
        lead, error = _by_losses(ours, theirs, scoring, splits)
    else:
        lead, error = float(mean[1] - mean[0]), _error_of_mean(scores[:, 1] - scores[:, 0])
        if scoring.scorer is None:
            error = _error_of_areas(ours, theirs, scoring, splits)
    return Comparison(float(mean[0]), float(mean[1]), lead, error)


def _by_losses(
    ours: Predicted, theirs: Predicted, scoring: Scoring, splits: Sequence[Split]
) -> tuple[float, float]:
    """Pair the losses of all held-out samples, relative to what a constant leaves."""
    three = (ours, theirs, constant_predictions(scoring.data, len(splits)))
    losses = [scoring.losses(own, splits)[:, 0] for own in three]
    gains, total = losses[0] - losses[1], losses[2].mean()
    if total == 0:
        return 0.0, 0.0
    return float(gains.mean() / total), _error_of_mean(gains) / float(total)


def _error_of_mean(differences: Array) -> float:
    """Return the standard error of a mean; that of one number is not known."""
    return float(mean_and_error(differences)[1]) if len(differences) > 1 else np.inf


def _error_of_areas(
    ours: Predicted, theirs: Predicted, scoring: Scoring, splits: Sequence[Split]
) -> float:
    """Return the standard error of a difference of areas under ROC curves, by DeLong et al. 1988.

    It is of the shares of the other class that each sample is ranked above or below. Areas of
    several classes are of the same samples. Those that several folds hold out are not as many.
    """
    data, variances = scoring.data, []
    labels = np.atleast_2d(data.y)
    weights = np.ones(labels.shape[1]) if data.weights is None else data.weights
    both = np.stack([theirs.predictors, ours.predictors], axis=1)
    both = both.reshape(len(splits), len(labels), *both.shape[1:])
    for fold, (_, test) in enumerate(splits):
        pairs = zip(labels[:, test], both[fold][..., test], strict=True)
        terms = np.mean([_terms_of_area(y, pair, weights[test]) for y, pair in pairs], axis=0)
        variances.append(float(np.sum(terms**2)))
    known = np.array(variances)[np.isfinite(variances)]
    if not len(known):
        return np.inf
    tests = np.concatenate([test for _, test in splits])
    repeats = len(tests) / len(np.unique(tests))
    return float(np.sqrt(known.sum() * repeats) / len(known))


def _terms_of_area(labels: Array, pair: Array, weights: Array) -> Array:
    """Return each sample's part in the difference of two rows' areas.

    The sum of their squares is its variance; NaN where a class has too few samples to tell one.
    """
    terms = np.full(len(labels), np.nan)
    for side in (1, -1):
        others = np.where(labels * side < 0, weights, 0.0)
        own = labels * side > 0
        if np.count_nonzero(weights[own]) > 1 and others.any():
            g = weights[own] / weights[own].sum()
            shares = np.subtract(*share_below(pair * side, others)[:, own]) / others.sum()
            terms[own] = g * (shares - g @ shares) / np.sqrt(1 - g @ g)
    return terms
