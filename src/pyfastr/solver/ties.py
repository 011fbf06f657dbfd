"""Two modes that share one component up to its sign, as every sample is symmetric in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.models import Models, unit

Array = NDArray[Any]

# An entry that the threshold has taken out of a solution halves with every update. Below this
# share of the largest it is zero.
VANISHING = 1 / 64
# A second step in a sweep that leads back by more than this share of the first shows that the first
# went too far. At 1 the two can swing for ever; less than it, and steps get shorter than need be.
MOST_BACK = 0.5


@dataclass(frozen=True)
class Ties:
    """Which two modes are tied, if any: the component of the second is that of the first, or minus.

    Both have the same projection P then, and the update of the pair has the fixed points of the
    paper's, ``w = +-S((P'P + e I)^-1 P'y)`` up to length. Taking over the solution u itself would
    swing around them, because P holds w too. The pair that is closest to u beside the old w has
    the direction of ``u + w``, or of ``u - w`` and the other sign: that is the Gauss-Newton step of
    the one component that both have.

    Attributes
    ----------
    modes : tuple of two int, or None
        In ascending order.
    """

    modes: tuple[int, int] | None = None

    def __bool__(self) -> bool:
        return self.modes is not None

    def own(self, n_modes: int) -> list[int]:
        """Return the modes that have a component of their own."""
        return [m for m in range(n_modes) if self.modes is None or m != self.modes[1]]

    def source(self, mode: int) -> int:
        """Return the mode whose component a mode has."""
        return self.modes[0] if self.modes is not None and mode == self.modes[1] else mode

    def multiplicity(self, mode: int) -> int:
        """Return how many modes have the component of one."""
        return 1 if self.modes is None or mode not in self.modes else 2

    def signs(self, models: Models) -> Array:
        """Return the signs ``(K, R)`` by which components of the pair differ; 1 if none is tied."""
        if self.modes is None:
            return np.ones_like(models.scales)
        first, second = (models.components[m] for m in self.modes)
        return _sign(first, second)

    def replace(self, models: Models, mode: int, solution: Array) -> Models:
        """Return models with the solution ``(K, R, p_mode)`` of an update taken over."""
        new = models.replace(mode, solution)
        if self.modes is None or mode not in self.modes:
            return new
        return Models(self.follow(new.components, mode), new.scales, new.task)

    def nearest(self, models: Models) -> Models:
        """Return the models whose pairs are tied and closest to those of some models."""
        if self.modes is None:
            return models
        return Models(self.follow(models.components, None), models.scales, models.task)

    def follow(self, components: Sequence[Array], updated: int | None) -> list[Array]:
        """Return components ``(..., p_m)`` of unit length with the pair tied.

        Parameters
        ----------
        components : sequence of M arrays
        updated : int or None
            The mode whose component is new; where it is zero the pair comes to be.
        """
        tied = list(components)
        if self.modes is None or updated not in (None, *self.modes):
            return tied
        first, second = self.modes
        new, other = (second, first) if updated == second else (first, second)
        sign = _sign(tied[new], tied[other])[..., None]
        middle = tied[new] + sign * tied[other]
        if updated is not None:
            middle = _without_vanishing(middle, tied[new])
        tied[new] = unit(middle)[0]
        tied[other] = sign * tied[new]
        return tied


class TiedSweep:
    """The updates of one sweep, in which a pair is updated twice: the second can mend the first.

    Where residuals are large, the step to the middle may go so far beyond a fixed point that the
    next leads back to where it began, or farther away. The second solution shows that: it points
    back, and not by much less. The sweep then takes as much of the first step as the secant of both
    says, and none of the second.

    Parameters
    ----------
    ties : Ties
    is_exact : bool
        Whether updates of the same models have the same solution, so that two can be compared.
    """

    def __init__(self, ties: Ties, *, is_exact: bool = True) -> None:
        self.ties, self._is_exact = ties, is_exact
        self._first: _Move | None = None

    def replace(self, models: Models, mode: int, solution: Array) -> Models:
        """Return models with the solution ``(K, R, p_mode)`` of an update taken over."""
        new = self.ties.replace(models, mode, solution)
        modes = self.ties.modes
        if modes is None or mode not in modes or not self._is_exact:
            return new
        if self._first is None:
            self._first = _Move.of(models, solution, modes[0])
            return new
        first, then = self._first, _Move.of(models, solution, modes[0])
        too_far, share = _secant(first, then)
        return self._shortened(new, first, too_far, share) if too_far.any() else new

    def _shortened(self, new: Models, first: "_Move", which: Array, share: Array) -> Models:
        """Return new models, some of them with a share of the sweep's first move instead."""
        assert self.ties.modes is not None
        components = list(new.components)
        signs, chosen = self.ties.signs(new)[..., None], which[:, None, None]
        middle = first.start + share[:, None, None] * (first.target - first.start)
        tied = unit(_without_vanishing(middle, first.target))[0]
        for mode, own in zip(self.ties.modes, (tied, signs * tied), strict=True):
            components[mode] = np.where(chosen, own, components[mode])
        return Models(components, np.where(which[:, None], first.length, new.scales), new.task)


@dataclass(frozen=True)
class _Move:
    """From one component to the solution of its update, both of unit length and of one direction.

    Attributes
    ----------
    start, target : ndarray of shape (K, R, p)
    length : ndarray of shape (K, R)
        Of the solution.
    """

    start: Array
    target: Array
    length: Array

    @classmethod
    def of(cls, models: Models, solution: Array, mode: int) -> "_Move":
        """Take an update of either of two modes as one of the first."""
        target, length = unit(solution)
        start = models.components[mode]
        return cls(start * _sign(target, start)[..., None], target, length)

    @property
    def step(self) -> Array:
        """The difference, in proportion to the terms' scales."""
        return self.length[..., None] * (self.target - self.start)


def _secant(first: _Move, then: _Move) -> tuple[Array, Array]:
    """Tell which first moves went too far, and what share of them the secant says to take."""
    step, after = first.step, then.step
    # Either may have been turned around.
    after = after * _sign(first.target, then.start)[..., None]
    goes_back = _dot(after, after) > MOST_BACK**2 * _dot(step, step)
    too_far = (_dot(step, after) < 0) & goes_back
    turn = step - after
    return too_far, _dot(step, turn) / (2 * np.where(too_far, _dot(turn, turn), 1))


def _dot(first: Array, second: Array) -> Array:
    return np.einsum("krp,krp->k", first, second)


def _without_vanishing(middle: Array, solution: Array) -> Array:
    """Take out what is small and has left the solution, and all where that is zero."""
    size = np.abs(middle)
    limit = VANISHING * size.max(axis=-1, keepdims=True)
    limit = np.where(solution.any(axis=-1, keepdims=True), limit, np.inf)
    return np.where((solution == 0) & (size <= limit), 0, middle)


def _sign(first: Array, second: Array) -> Array:
    """Return the sign of inner products along the last axis, 1 where they are zero."""
    product = np.einsum("...p,...p->...", first, second)
    return np.where(product < 0, -1, 1).astype(first.dtype)


UNTIED = Ties()
