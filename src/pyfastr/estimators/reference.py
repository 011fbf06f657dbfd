"""Ridge regression on flattened samples, in the folds of a choice: what structure competes with.

Its coefficient has an entry for each of X, and is never made. With the inner products of all pairs
of samples (dual), or with the samples themselves where these have fewer entries than there are
samples (primal), one eigendecomposition for each fold serves all penalties.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines import Engine
from pyfastr.estimators.choice_policy import ReferencePolicy
from pyfastr.estimators.comparison import (
    Comparison,
    Predictions,
    compare,
    constant_predictions,
)
from pyfastr.estimators.data import Data
from pyfastr.estimators.folds import HeldOut, Split, held_out
from pyfastr.estimators.ranking import score_columns
from pyfastr.estimators.scoring import Scoring
from pyfastr.estimators.sklearn_private import BaseScorer
from pyfastr.estimators.tried import Tried
from pyfastr.solver.count_ridge import count_predictors, features_of
from pyfastr.solver.flat_ridge import FlatTask, by_features, by_samples, ridge_predictors
from pyfastr.solver.losses import POISSON

Array = NDArray[Any]
# Penalties and predictors of each output of a fold.
Solver = Callable[[Sequence[FlatTask], Array], list[tuple[Array, Array]]]


@dataclass(frozen=True)
class ReferenceFits:
    """Ridge regressions of every fold and penalty.

    Attributes
    ----------
    alphas : ndarray of shape (A,)
        Relative penalties.
    penalties : ndarray of shape (F * T, A)
        The same as scikit-learn's Ridge counts them or, of counts, its PoissonRegressor.
    predictors : ndarray of shape (F * T * A, n_samples)
        Linear ones, with intercept and covariates; those of a fold's own training samples too. In
        the order of folds, outputs and penalties.
    data : Data
        With a row of weights for each fold.
    """

    alphas: Array
    penalties: Array
    predictors: Array
    data: Data

    def take(self, which: int) -> "ReferenceFits":
        """Return those of one penalty."""
        part, step = slice(which, which + 1), len(self.alphas)
        return ReferenceFits(
            self.alphas[part], self.penalties[:, part], self.predictors[which::step], self.data
        )

    def unseen(self, scores: Array) -> Predictions:
        """Return what each fold is predicted with the penalty that the other folds prefer.

        `scores` are those of all folds and penalties ``(F, A)``.
        """
        step, rows = len(self.alphas), []
        n_outputs = len(self.predictors) // scores.size
        for fold in range(len(scores)):
            others = np.delete(scores, fold, axis=0)
            others = others[np.isfinite(others).all(axis=1)]
            best = int(np.argmax(others.mean(axis=0))) if len(others) else _best(scores)
            first = fold * n_outputs * step
            rows.append(self.predictors[first + best : first + n_outputs * step : step])
        return Predictions(np.concatenate(rows), self.data)


@dataclass(frozen=True, eq=False)
class Reference:
    """How well flattened ridge regression predicts what the folds held out.

    Attributes
    ----------
    alpha : float
        The best penalty as scikit-learn's Ridge counts it (of counts, PoissonRegressor): the mean
        of the folds'.
    best_index : int
        Its place in `results`.
    score : float
        Its mean score over the folds, beside which the `best_score_` of the choice stands.
    scores : ndarray of shape (n_folds,)
        Those of each fold.
    results : dict of arrays
        With keys of scikit-learn's GridSearchCV. `param_alpha` is relative to the mean squared
        length of a sample beside intercept and covariates.
    held_out : HeldOut
        Its predictions.
    unseen_score, unseen_score_of_choice : float
        The same of it and of the choice, where each fold is predicted by what the other folds alone
        would have chosen. The best of many points owes some of its score to chance; these do not.
    lead, lead_error : float
        How far it is ahead of the choice so, and the standard error of that, in units of the score:
        paired over samples, or over folds where the score is not a default.
    is_better : bool
        Whether it is clearly ahead, of the choice and of predicting a constant.
    """

    alpha: float
    best_index: int
    score: float
    scores: Array
    results: dict[str, Any]
    held_out: HeldOut
    unseen_score: float
    unseen_score_of_choice: float
    lead: float
    lead_error: float
    is_better: bool


@dataclass(frozen=True)
class NoReference:
    """Why there is none, to stand in a sentence."""

    reason: str


def reference_of(tried: Tried, policy: ReferencePolicy, *, alone: bool) -> Reference | NoReference:
    """Put flattened ridge regression beside a choice, in its folds, if that costs little.

    Parameters
    ----------
    tried : Tried
        What there was to choose from.
    policy : ReferencePolicy
    alone : bool
        Whether a single point was chosen, rather than the mean of several.
    """
    scoring, splits = tried.scoring, tried.splits
    if scoring.classes is not None:
        # Its decisions are not log-odds, whatever the loss of the choice.
        scoring = replace(scoring, loss="squared")
    folds = tried.candidates[0].fits.data
    engine = folds.problem.engine.nearby()
    reason = why_not(engine, scoring, policy)
    if reason:
        return NoReference(reason)
    with warnings.catch_warnings():
        # Warnings about folds without a score were given for the choice already.
        warnings.simplefilter("ignore")
        fits = fit_reference(folds, engine, policy)
        ours = _Ours(tried.seen(alone=alone), tried.unseen(alone=alone))
        try:
            return _best_of(fits, ours, scoring, splits, policy)
        except ValueError as error:
            if scoring.scorer is None:
                raise
            # Some scores are of positive numbers only, or the like, which ridge does not promise.
            return NoReference(f"scoring does not take its predictions: {error}")


@dataclass(frozen=True)
class _Ours:
    """What folds are predicted by what all of them have chosen, or all but each itself."""

    seen: Predictions
    unseen: Predictions


def _best_of(
    fits: ReferenceFits,
    ours: _Ours,
    scoring: Scoring,
    splits: Sequence[Split],
    policy: ReferencePolicy,
) -> Reference | NoReference:
    """Choose the penalty, and compare what it predicts with ours."""
    scores = scoring.scores(fits, splits)
    is_usable = np.isfinite(scores).all(axis=1)
    if not is_usable.any():
        return NoReference("no fold has a finite score")
    best, theirs = _best(scores), fits.unseen(scores)
    chosen = fits.take(best)
    alpha = float(chosen.penalties.mean())
    if not 0 < alpha < np.inf:
        size = scoring.data.largest_entry
        return NoReference(f"its penalty leaves the range of floats, as X is of size {size:.3g}")
    nothing = constant_predictions(scoring.data, len(splits))
    beside, of_use = (compare(own, theirs, scoring, splits) for own in (ours.unseen, nothing))
    seen = compare(ours.seen, chosen, scoring, splits)
    return Reference(
        alpha=alpha,
        best_index=best,
        score=float(scores[is_usable, best].mean()),
        scores=scores[:, best],
        results={"param_alpha": fits.alphas, **score_columns(scores)},
        held_out=held_out([chosen], splits, scoring.targets),
        unseen_score=beside.theirs,
        unseen_score_of_choice=beside.ours,
        lead=beside.lead,
        lead_error=beside.error,
        is_better=_is_better(beside, seen, of_use, scoring, policy),
    )


def _best(scores: Array) -> int:
    """Return the number of the best penalty, by scores ``(F, A)``."""
    return int(np.argmax(scores[np.isfinite(scores).all(axis=1)].mean(axis=0)))


def _is_better(
    beside: Comparison,
    seen: Comparison,
    of_use: Comparison,
    scoring: Scoring,
    policy: ReferencePolicy,
) -> bool:
    """Whether the reference is clearly ahead of a choice, and of predicting a constant.

    What most folds would have chosen may fail in one that all of them together have seen, so that
    the choice of all must not be clearly ahead either.
    """
    chance, unit = policy.chance, 1.0
    if scoring.scorer is not None:
        chance, unit = policy.chance_of_folds, max(of_use.lead, 0.0)
    least = policy.least_lead * unit
    # The score of a constant is a matter of rounding.
    varies = bool(np.ptp(scoring.data.y, axis=-1).any())
    # Of small folds, sums over all samples may tell another story than R² or D² of each.
    predicts = of_use.theirs > 0 or not scoring.is_of_samples
    is_of_use = predicts and of_use.is_clear(policy.chance_of_folds, least)
    is_ahead = beside.is_clear(chance, least) and not seen.is_reversed(policy.chance)
    return varies and is_of_use and is_ahead


def reference_sentence(reference: Reference, scoring: Scoring) -> str:
    """Say in plain words that the reference is better than a choice, and what to do."""
    estimator, name = {
        "squared": ("Ridge", "R²"),
        "poisson": ("PoissonRegressor", "D²"),
    }.get(scoring.loss, ("", ""))
    if scoring.classes is not None:
        estimator, name = "RidgeClassifier", "area under the ROC curve"
    if scoring.scorer is not None:
        name = "score"
    theirs, ours = reference.unseen_score, reference.unseen_score_of_choice
    data, level = scoring.data, "" if scoring.data.fit_intercept else ", fit_intercept=False"
    beside = "" if data.weights is None else " with the same sample_weight"
    if data.covariates is not None:
        beside += ", and take the covariates out of X and y"
    return (
        "Ridge regression on the flattened samples predicts held-out samples better "
        f"({name} {theirs:.3g} against {ours:.3g}): a sum of so few outer products does not "
        f"describe how y depends on X. To predict, use sklearn.linear_model.{estimator}"
        f"(alpha={reference.alpha:.3g}{level}) on X.reshape(len(X), -1){beside}."
    )


def why_not(engine: Engine, scoring: Scoring, policy: ReferencePolicy) -> str:
    """Say why flattened ridge regression would cost too much, or cannot be scored; empty if not."""
    if not isinstance(scoring.scorer, BaseScorer | None):
        return "scoring is a function of fitted FasTR estimators"
    n_samples, n_entries = engine.n_samples, prod(engine.shape)
    is_dual = n_entries > n_samples
    size = min(n_samples, n_entries)
    most = policy.most_counts if scoring.data.loss is POISSON else policy.most_samples
    if size > most:
        what = "samples" if is_dual else "entries of a sample"
        return f"{size} {what} are more than {most}, and it takes their third power of time"
    if 3 * 8 * n_samples * size > engine.budget.batch:
        return f"its matrix of {n_samples} x {size} does not fit the memory budget"
    if is_dual and engine.n_product_passes > policy.most_passes:
        return f"within the memory budget it would read X {engine.n_product_passes} times"
    return ""


def fit_reference(folds: Data, engine: Engine, policy: ReferencePolicy) -> ReferenceFits:
    """Fit ridge regression on flattened samples for every fold and penalty.

    Data in memory are read once. Intercept and covariates are not penalised, and labels are taken
    for numbers.

    Parameters
    ----------
    folds : Data
        With a row of weights for each fold.
    engine : Engine
        With the same X.
    policy : ReferencePolicy
    """
    alphas = np.array(policy.count_alphas if folds.loss is POISSON else policy.alphas)
    solve, tasks, step = _solver(folds, engine), _tasks(folds), folds.n_outputs or 1
    folds_of_tasks = [tasks[first : first + step] for first in range(0, len(tasks), step)]
    found = [one for outputs in folds_of_tasks for one in solve(outputs, alphas)]
    weights = np.ones((1, 1)) if folds.weights is None else np.atleast_2d(folds.weights)
    weight = weights.mean(axis=1, keepdims=True)
    weight = 1 / engine.n_samples if folds.loss is POISSON else folds.weight_unit * weight
    with np.errstate(over="ignore", under="ignore"):
        units = np.square(engine.scale) * weight
    penalties = np.stack([own for own, _ in found]) * units
    return ReferenceFits(alphas, penalties, np.concatenate([own for _, own in found]), folds)


def _solver(folds: Data, engine: Engine) -> Solver:
    """Read X, and return what makes penalties and predictors of the outputs of a fold."""
    share = _share(folds)
    is_dual = prod(engine.shape) > engine.n_samples
    if is_dual:
        X = engine.sample_products(share)
    else:
        X = engine.flattened()
        X -= share @ X
    if folds.loss is POISSON:
        features = features_of(X) if is_dual else X
        return lambda outputs, alphas: [count_predictors(features, o, alphas) for o in outputs]
    decompose = partial(by_samples if is_dual else by_features, X)

    def solve(outputs: Sequence[FlatTask], alphas: Array) -> list[tuple[Array, Array]]:
        pairs = zip(decompose(outputs), outputs, strict=True)
        return [ridge_predictors(spectrum, own, alphas) for spectrum, own in pairs]

    return solve


def _share(folds: Data) -> Array:
    """Return the weights of the mean to subtract from X: an intercept absorbs it. Else zeros."""
    n_samples = folds.source.shape[0]
    if not folds.fit_intercept:
        return np.zeros(n_samples)
    weights = np.ones((1, n_samples)) if folds.weights is None else np.atleast_2d(folds.weights)
    total: Array = weights.sum(axis=0)
    return total / total.sum()


def _tasks(folds: Data) -> list[FlatTask]:
    """Return what each fold is to predict of each output."""
    samples, target = folds.problem.samples, np.atleast_2d(folds.y)
    n_folds = len(samples.response)
    weights = np.ones((1, len(samples))) if samples.weights is None else samples.weights
    rows = (
        np.broadcast_to(a, (n_folds, *a.shape[1:])) for a in (target, weights, samples.nuisance)
    )
    return [FlatTask(*own) for own in zip(*rows, strict=True)]
