"""All that a choice by folds has tried, and what of it is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.estimators.candidates import Candidates, Gain
from pyfastr.estimators.choice_policy import RankingPolicy
from pyfastr.estimators.comparison import Predictions
from pyfastr.estimators.folds import Split, TaskFits
from pyfastr.estimators.ranking import Point, choose, leading, usable_scores
from pyfastr.estimators.scoring import Scoring
from pyfastr.solver.models import cosines

Array = NDArray[Any]


@dataclass(frozen=True)
class Tried:
    """All points that a choice by folds has tried.

    Attributes
    ----------
    candidates : list of Candidates
        Of each number of terms.
    gains : list of Gain
        Of further terms, if these were added while they showed one.
    scoring : Scoring
    splits : sequence of (ndarray, ndarray)
    simplest : bool
        Whether the simplest model within a standard error is wanted, with any number of terms.
    policy : RankingPolicy
    """

    candidates: list[Candidates]
    gains: list[Gain]
    scoring: Scoring
    splits: Sequence[Split]
    simplest: bool
    policy: RankingPolicy

    @cached_property
    def points(self) -> list[Point]:
        """All points, in the order of `cv_results_`."""
        return [point for own in self.candidates for point in own.points]

    @cached_property
    def output_scores(self) -> Array:
        """Their scores of each output ``(T, F, G)``, or of all in one."""
        return np.concatenate([own.output_scores for own in self.candidates], axis=2)

    @cached_property
    def scores(self) -> Array:
        """Their scores, ``(F, G)``."""
        mean: Array = self.output_scores.mean(axis=0)
        return mean

    @cached_property
    def usable(self) -> Array:
        """Scores of the folds that have any."""
        return usable_scores(self.scores)

    @cached_property
    def losses(self) -> Array | None:
        """Losses ``(S, G)`` of held-out samples, where these are what scores are made of."""
        losses = [own.losses for own in self.candidates if own.losses is not None]
        if not self.scoring.is_of_samples or len(self.usable) < len(self.splits):
            return None
        return np.concatenate(losses, axis=1)

    def leaders(self, without: int | None = None) -> list[int]:
        """Return the best point of as many terms as pay, and what a mean may add to it.

        These are the points, of any number of terms, that fall short of the best of all by chance.
        `without` is the number of a fold that has no say in it.
        """
        seen = self._seen(without)
        best = leading(*seen, self._eligible, policy=self.policy)[0]
        return [best, *(i for i in leading(*seen, policy=self.policy) if i != best)][
            : self.policy.averaged
        ]

    def simplest_of_best(self, without: int | None = None) -> int:
        """Return the simplest point that is as good as the best."""
        return choose(
            self.points,
            *self._seen(without),
            self._eligible,
            one_standard_error=self.simplest,
            policy=self.policy,
        )

    def _seen(self, without: int | None) -> tuple[Array, Array | None]:
        """Return scores and losses of all folds, or of all others if there are any."""
        if without is None:
            return self.usable, self.losses
        scores = np.delete(self.scores, without, axis=0)
        scores = scores[np.isfinite(scores).any(axis=1)]
        if not len(scores):
            return self.usable, self.losses
        if self.losses is None:
            return scores, None
        counted = self.scoring.held_out_samples(self.splits)
        others = ~np.isin(counted, self.splits[without][1])
        return scores, self.losses[others] if others.any() else None

    def unseen(self, *, alone: bool) -> Predictions:
        """Return what each fold is predicted by what the other folds alone would have chosen.

        Of many points, the best in all folds owes some of its score to chance; this does not.

        Parameters
        ----------
        alone : bool
            Whether a single point is chosen, rather than the mean of all leaders.
        """
        folds = range(len(self.splits))
        return self._predictions([self._chosen(fold, alone=alone) for fold in folds])

    def seen(self, *, alone: bool) -> Predictions:
        """Return what each fold is predicted by what all folds have chosen."""
        return self._predictions([self._chosen(alone=alone)] * len(self.splits))

    def _chosen(self, without: int | None = None, *, alone: bool) -> list[int]:
        return [self.simplest_of_best(without)] if alone else self.leaders(without)

    def _predictions(self, chosen: Sequence[Sequence[int]]) -> Predictions:
        """Return the mean of what some points predict, which each fold has its own of."""
        rows = []
        for fold, points in enumerate(chosen):
            own = [self._at(i) for i in points]
            rows.append(np.mean([some.predictors(i, fold) for some, i in own], axis=0))
        return Predictions(np.concatenate(rows), self.candidates[0].fits.data)

    def fits_of(self, index: int) -> TaskFits:
        """Return the fits of a point in all folds."""
        some, index = self._at(index)
        return some.of(index)

    def _at(self, index: int) -> tuple[Candidates, int]:
        """Return where a point is."""
        for own in self.candidates:
            if index < len(own.points):
                return own, index
            index -= len(own.points)
        raise IndexError(index)

    @property
    def _eligible(self) -> Array | None:
        """Which points have the number of terms that folds have shown to pay."""
        if self.simplest or not self.gains:
            return None
        paid = max((g.n_terms for g in self.gains if g.is_worth_it), default=1)
        return np.array([point[0] for point in self.points]) == paid


def agreement(fits: TaskFits) -> float:
    """Return the median cosine of the angle between the coefficients of different folds.

    One fold of five that has missed what the others found leaves most pairs alike. Coefficients
    that are both zero are alike, and what a single fold agrees with is not known: NaN.
    """
    all_pairs, is_zero = cosines(fits.models), ~fits.models.scales.any(axis=1)
    all_pairs[np.ix_(is_zero, is_zero)] = 1.0
    output = fits.models.task % (fits.data.n_outputs or 1)
    others = (output[:, None] == output) & ~np.eye(len(all_pairs), dtype=bool)
    return float(np.median(all_pairs[others])) if others.any() else np.nan
