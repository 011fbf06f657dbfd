"""Points of the grid with their fits in all folds, and how many terms these are worth."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.estimators.choice_policy import TermsPolicy
from pyfastr.estimators.data import Data
from pyfastr.estimators.folds import Split, TaskFits
from pyfastr.estimators.ranking import Point, mean_and_error
from pyfastr.estimators.scoring import Scoring
from pyfastr.estimators.warning import warn
from pyfastr.solver.progress import tell

Array = NDArray[Any]


@dataclass(frozen=True)
class Candidates:
    """Points with one number of terms.

    Attributes
    ----------
    points : list of Point
    fits : TaskFits
        In the order of folds and points.
    output_scores : ndarray of shape (T, F, G)
        Of each output, or of all in one.
    losses : ndarray of shape (S, G) or None
        Of all samples that are held out, where the score is the default.
    seconds : (float, float)
        What the fits took, and the scores.
    """

    points: list[Point]
    fits: TaskFits
    output_scores: Array
    losses: Array | None
    seconds: tuple[float, float]

    @classmethod
    def scored(
        cls,
        points: list[Point],
        fit: Callable[[], TaskFits],
        scoring: Scoring,
        splits: Sequence[Split],
    ) -> "Candidates":
        """Fit points in all folds, and score them."""
        began = time.perf_counter()
        fits = fit()
        fitted = time.perf_counter()
        scores = scoring.output_scores(fits, splits)
        losses = scoring.losses(fits, splits) if scoring.scorer is None else None
        return cls(points, fits, scores, losses, (fitted - began, time.perf_counter() - fitted))

    @property
    def scores(self) -> Array:
        """Scores ``(F, G)``, means over outputs."""
        mean: Array = self.output_scores.mean(axis=0)
        return mean

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return self.points[0][0]

    @property
    def merits(self) -> Array:
        """What points are compared by, ``(S, G)`` or ``(F, G)``: more is better.

        Folds without any score are left out.
        """
        rows = self.scores if self.losses is None else -self.losses
        is_scored = np.isfinite(rows).any(axis=1)
        return rows[is_scored] if is_scored.any() else rows

    @property
    def mean_merits(self) -> Array:
        """Their means ``(G,)``; points without one come last."""
        return np.nan_to_num(self.merits.mean(axis=0), nan=-np.inf)

    @property
    def best(self) -> int:
        """The number of the best point."""
        return int(np.argmax(self.mean_merits))

    def of(self, point: int) -> TaskFits:
        """Return the fits of one point in all folds."""
        return self.fits.take(slice(point, None, len(self.points)))

    def predictors(self, point: int, fold: int) -> Array:
        """Return what one point predicts in one fold ``(T, n_samples)``, an output a row."""
        n_outputs, n_points = self.fits.data.n_outputs or 1, len(self.points)
        first = fold * n_outputs
        return self.fits.predictors[
            first * n_points + point : (first + n_outputs) * n_points : n_points
        ]

    def take(self, which: Sequence[int]) -> TaskFits:
        """Return the fits of some points in all folds."""
        n_tasks = len(self.fits.models) // len(self.points)
        rows = np.arange(n_tasks)[:, None] * len(self.points) + np.asarray(which)
        return self.fits.take(rows.reshape(-1))

    def promising(self, policy: TermsPolicy, *, first: bool) -> list[int]:
        """Return the points to add a term to, by number.

        The first time these are the best threshold of every ridge and its neighbours, later the
        best of all. What falls far short of the best is left out: another term gains about as much
        at all of them.
        """
        merits = self.merits
        shortfall, error = mean_and_error(merits[:, self.best, None] - merits)
        kept = self._beside_best_thresholds(policy) if first else self._best_points(policy)
        return [i for i in kept if not shortfall[i] > policy.far_behind * error[i]]

    def _best_points(self, policy: TermsPolicy) -> list[int]:
        """Return the best points, in the order of the grid."""
        return sorted(np.argsort(-self.mean_merits, kind="stable")[: policy.best].tolist())

    def _beside_best_thresholds(self, policy: TermsPolicy) -> list[int]:
        """Return the best threshold of every ridge and its neighbours."""
        mean, found = self.mean_merits, []
        for ridge in dict.fromkeys(point[1] for point in self.points):
            own = [i for i, point in enumerate(self.points) if point[1] == ridge]
            own.sort(key=lambda i: self.points[i][2])
            best = int(np.argmax(mean[own]))
            found += own[max(0, best - policy.neighbours) : best + policy.neighbours + 1]
        return found


@dataclass(frozen=True)
class Gain:
    """What the best point gains in held-out samples or folds by more terms.

    Attributes
    ----------
    n_terms : int
    share : float
        Of the loss that fewer terms leave; of scores their difference.
    is_clear : bool
        Whether it is more than chance would give.
    is_worth_it : bool
        Whether it is that, and enough.
    is_of_loss : bool
    """

    n_terms: int
    share: float
    is_clear: bool
    is_worth_it: bool
    is_of_loss: bool


def gain(before: Candidates, after: Candidates, nothing: float, policy: TermsPolicy) -> Gain:
    """Compare the best points of two numbers of terms; `nothing` is the loss of no model at all."""
    fewer, more = (own.merits[:, own.best] for own in (before, after))
    mean, error = mean_and_error(more - fewer)
    chance = policy.chance_of_folds if before.losses is None else policy.chance
    # What a single fold's score gains may all be chance.
    is_clear = len(fewer) > 1 and bool(mean > chance * error)
    if before.losses is None:
        return Gain(after.n_terms, float(mean), is_clear, is_clear, is_of_loss=False)
    left = -float(fewer.mean())
    enough = min(policy.share_of_left * left, policy.share_of_all * nothing)
    share = float(mean) / left if left > 0 else 0.0
    is_worth_it = is_clear and bool(mean > enough)
    return Gain(after.n_terms, share, is_clear, is_worth_it, is_of_loss=True)


def null_loss(data: Data) -> float:
    """Return the mean loss of intercept and covariates alone, as `Scoring.losses` counts it."""
    return float(2 * np.mean(data.null_losses / data.loss_units))


def tell_of_terms(found: Sequence[Candidates], most: int) -> None:
    """Say how long the last number of terms took; at most so many numbers are tried."""
    last = found[-1]
    note = f"{last.n_terms} term(s): {len(last.fits.models)} models in {last.seconds[0]:.1f} s"
    tell("numbers of terms", len(found), most, note)


def warn_of_blind_folds(fits: TaskFits, gains: Array) -> None:
    """Say so where folds are too small to tell models apart, and none was found to predict.

    Evidence is of the squared loss only, takes no mean of folds, and no more terms than samples
    bear.
    """
    problem = fits.data.problem
    n_samples = int(problem.n_effective.max())
    n_free = int(problem.degrees_of_freedom(fits.models.n_terms).max())
    mean, error = mean_and_error(gains)
    if n_samples <= n_free and mean <= error:
        evidence = (
            ', or, if there is little noise, criterion="evidence" (beside refit="auto" and '
            'n_terms="auto"), which holds none out'
        )
        warn(
            f"No model predicts held-out samples better than chance: folds train on {n_samples} "
            f"samples, which {n_free} free parameters can fit whatever they are. Use more samples"
            f"{evidence if fits.data.loss.is_quadratic else ''}."
        )
