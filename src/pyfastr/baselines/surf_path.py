"""The stagewise path of SURF: one unit-rank term that grows and shrinks entry by entry."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.contraction import outside, project_own

Array = NDArray[Any]

# Slices of X across the order of its storage are kept as they are used, up to this size: reading
# them anew costs as much as reading most of X.
MAX_KEPT_BYTES = 1 << 30
# Norms are sums of many steps; closer to the radius than this they have reached it.
RADIUS_ROUNDING = 1e-9
# A path has come to rest when this many steps lowered the held-out error by less than MIN_GAIN.
PATIENCE, MIN_GAIN = 300, 1e-3


@dataclass(frozen=True)
class Stagewise:
    """What a path is made with: the step ε, its slack ξ, and the ridge α."""

    step: float
    slack: float
    ridge: float


@dataclass(frozen=True)
class Split:
    """Which samples a path is fitted to and which it is judged on, and whether it is centred."""

    train: Array
    test: Array
    centre: bool

    @classmethod
    def of(cls, n_samples: int, train: Array, test: Array, centre: bool) -> Self:
        """Turn the indices of a fold into masks."""
        in_train, in_test = np.zeros(n_samples), np.zeros(n_samples, bool)
        in_train[train], in_test[test] = 1.0, True
        if in_train.sum() < 2:
            raise ValueError(
                f"cv leaves {int(in_train.sum())} training samples in a fold; expected at least 2."
            )
        return cls(in_train, in_test, centre)


@dataclass(frozen=True)
class Start:
    """Entry of W that a path begins with, its sign, and λ there."""

    entry: tuple[int, ...]
    sign: float
    penalty: float


@dataclass(frozen=True)
class Step:
    """A change of one entry of one factor (in units of W), and λ after it."""

    mode: int
    index: int
    change: float
    penalty: float


@dataclass(frozen=True)
class StagewisePath:
    """The T points of a path of unit-rank coefficients.

    Attributes
    ----------
    penalties : ndarray of shape (T,)
        λ, never rising.
    norms : ndarray of shape (T,)
        ‖W‖₁.
    factors : list of M ndarrays of shape (T, p_m)
        Of unit ℓ1 norm: W of point t is ``norms[t]`` times the outer product of their rows t.
    test_errors : ndarray of shape (T,)
        Mean squared error on the held-out samples.
    exhausted : bool
        Whether the path ended by its largest length.
    """

    penalties: Array
    norms: Array
    factors: list[Array]
    test_errors: Array
    exhausted: bool


@dataclass(frozen=True)
class Choice:
    """Radius of a term, and λ and error it was chosen at."""

    radius: float
    penalty: float = np.nan
    rmse: float = np.nan
    exhausted: bool = False


class TensorSlices:
    """Slices of X in float64 at one index of one mode, contiguous wherever that pays."""

    def __init__(self, X: Array) -> None:
        self._X = X
        self._kept: dict[tuple[int, int], Array] = {}
        self._room = MAX_KEPT_BYTES
        self.shape = X.shape[1:]

    def at(self, mode: int, index: int) -> Array:
        """Return the slice ``(n_samples, the other modes)``."""
        if (mode, index) in self._kept:
            return self._kept[mode, index]
        part = np.take(self._X, index, axis=mode + 1).astype(np.float64, copy=False)
        if part.nbytes <= self._room:
            self._room -= part.nbytes
            self._kept[mode, index] = part
        return part

    def line(self, entry: Sequence[int], mode: int) -> Array:
        """Return the entries along one mode through one place: ``(n_samples, p_mode)``."""
        place: list[Any] = list(entry)
        place[mode] = slice(None)
        return np.array(self._X[(slice(None), *place)], dtype=np.float64)


class UnitRankTerm:
    """``W = σ w1 ∘ ... ∘ wM`` with factors of unit ℓ1 norm, and all that its next step needs.

    The samples contracted with all factors but one, ``Z_m`` of shape ``(n_samples, p_m)``, are
    kept for every mode. A step at one index adds one contracted slice of X to those of the other
    modes, so that it costs a pass over that slice, not over X.

    Parameters
    ----------
    slices : TensorSlices
    response : ndarray of shape (n_samples,)
        What is to be explained, centred on the training samples if `split` says so.
    split : Split
    start : Start
    settings : Stagewise

    Attributes
    ----------
    penalty : float
        λ.
    norm : float
        σ = ‖W‖₁.
    factors : list of M ndarrays of shape (p_m,)
        Replaced when they change, never written to.
    residual : ndarray of shape (n_samples,)
        What W leaves of the response.
    """

    def __init__(
        self,
        slices: TensorSlices,
        response: Array,
        split: Split,
        start: Start,
        settings: Stagewise,
    ) -> None:
        self._slices, self._response, self._split = slices, response, split
        self._settings = settings
        self._n_train = float(split.train.sum())
        self.penalty, self.norm = start.penalty, settings.step
        self.factors = [
            np.where(np.arange(p) == i, 1.0, 0.0)
            for p, i in zip(slices.shape, start.entry, strict=True)
        ]
        # The first factor carries the sign, and with it the projections onto all others.
        self.factors[0] *= start.sign
        signs = [1.0] + [start.sign] * (len(start.entry) - 1)
        self._features = [
            self._centred(sign * slices.line(start.entry, mode)) for mode, sign in enumerate(signs)
        ]
        self._squares = [self._squared_norms(Z) for Z in self._features]
        self._update_residual()

    def next_step(self) -> Step | None:
        """Choose the backward step if it raises the loss little enough, else the forward one.

        None if the step would leave nothing.
        """
        slopes, curvatures = self._derivatives()
        settings = self._settings
        backward = [
            np.where(w != 0, -np.sign(w) * slope - curvature, -np.inf)
            for w, slope, curvature in zip(self.factors, slopes, curvatures, strict=True)
        ]
        mode, index, gain = _largest(backward)
        drop = gain * settings.step / self._n_train
        if -drop <= self.penalty * settings.step - settings.slack:
            entry = self.norm * self.factors[mode][index]
            # An entry smaller than the step ends at zero, not beyond.
            change = -np.sign(entry) * min(settings.step, abs(entry))
            penalty = self.penalty
        else:
            forward = [np.abs(s) - c for s, c in zip(slopes, curvatures, strict=True)]
            mode, index, gain = _largest(forward)
            change = np.sign(slopes[mode][index]) * settings.step
            drop = gain * settings.step / self._n_train
            penalty = min(self.penalty, (drop - settings.slack) / settings.step)
        step = Step(mode, index, float(change), float(penalty))
        return step if change and self.norm_after(step) > 0 else None

    def apply(self, step: Step) -> None:
        """Change the entry, bring the factor back to unit norm, and all projections with it."""
        changed = self._changed(step)
        old, self.norm = self.norm, float(np.abs(changed).sum())
        self.factors = list(self.factors)
        self.factors[step.mode] = changed / self.norm
        self.penalty = step.penalty
        self._update_features(step, old)
        self._update_residual()

    def norm_after(self, step: Step) -> float:
        """‖W‖₁ after a step."""
        return float(np.abs(self._changed(step)).sum())

    def test_error(self) -> float:
        """Mean squared error on the test samples; NaN if there are none."""
        left = self.residual[self._split.test]
        return float(np.mean(np.square(left))) if left.size else np.nan

    def _changed(self, step: Step) -> Array:
        """σ w_m after a step."""
        changed: Array = self.norm * self.factors[step.mode]
        changed[step.index] += step.change
        return changed

    def _derivatives(self) -> tuple[list[Array], list[Array]]:
        """Slopes of the smooth loss along every σ w_m, and its halved curvatures by ε, times n."""
        masked = self._split.train * self.residual
        sizes = [float(w @ w) for w in self.factors]
        slopes, curvatures = [], []
        for mode, (w, Z, squares) in enumerate(
            zip(self.factors, self._features, self._squares, strict=True)
        ):
            others = prod(outside(range(mode, mode + 1), sizes))
            ridge = self._n_train * self._settings.ridge * others
            slopes.append(2.0 * (masked @ Z - ridge * self.norm * w))
            curvatures.append(self._settings.step * (squares + ridge))
        return slopes, curvatures

    def _update_features(self, step: Step, old_norm: float) -> None:
        """Z_j of the other modes, linear in the changed factor: one contracted slice is added."""
        if len(self.factors) == 1:
            return
        alone = range(step.mode, step.mode + 1)
        part = self._slices.at(step.mode, step.index)[np.newaxis]
        factors = [w[np.newaxis] for w in outside(alone, self.factors)]
        for inner, mode in enumerate(outside(alone, range(len(self.factors)))):
            added = project_own(part, factors, inner)[0] * (step.change / self.norm)
            Z = self._features[mode]
            Z *= old_norm / self.norm
            Z += self._centred(added)
            self._squares[mode] = self._squared_norms(Z)

    def _update_residual(self) -> None:
        """Compute what W leaves of the response, for all samples."""
        self.residual = self._response - self._features[0] @ (self.norm * self.factors[0])

    def _centred(self, features: Array) -> Array:
        """Features less their mean over the training samples, if there is an intercept."""
        if not self._split.centre:
            return features
        return features - (self._split.train @ features) / self._n_train

    def _squared_norms(self, features: Array) -> Array:
        """Sum of squares of every column over the training samples."""
        return self._split.train @ np.square(features)


def trace_path(term: UnitRankTerm, max_iter: int) -> StagewisePath:
    """Follow the path until λ is used up, the held-out error rests, or `max_iter` points."""
    points = [(term.penalty, term.norm, term.factors, term.test_error())]
    resting = exhausted = False
    while not exhausted:
        exhausted = len(points) >= max_iter
        step = None if exhausted else term.next_step()
        if step is None or step.penalty < 0:
            break
        term.apply(step)
        error = term.test_error()
        waited = len(points) - PATIENCE
        resting |= waited >= 0 and points[waited][3] - error < MIN_GAIN
        if resting and step.penalty < points[-1][0]:
            break
        points.append((term.penalty, term.norm, term.factors, error))
    penalties, norms, factors, errors = zip(*points, strict=True)
    columns = [np.array(w) for w in zip(*factors, strict=True)]
    return StagewisePath(np.array(penalties), np.array(norms), columns, np.array(errors), exhausted)


def grow_to_radius(term: UnitRankTerm, radius: float, max_iter: int) -> tuple[int, bool]:
    """Take steps as long as ‖W‖₁ stays below `radius`; the first point is kept even beyond it.

    Returns the number of points, and whether the last is at the radius or at the end of the path,
    where λ is used up and further steps only go to and fro.
    """
    limit = radius * (1 - RADIUS_ROUNDING)
    for n_points in range(1, max_iter):
        step = term.next_step()
        if step is None or term.norm_after(step) >= limit:
            return n_points, True
        term.apply(step)
    return max_iter, term.penalty < 0


def choose(paths: Sequence[StagewisePath]) -> Choice:
    """Choose λ by the mean held-out error, and the mean ‖W‖₁ of the folds whose path has it."""
    penalties = _in_order_of_appearance(np.concatenate([p.penalties for p in paths]))
    errors = np.mean([_error_at(path, penalties) for path in paths], axis=0)
    best = int(errors.argmin())
    last = [np.flatnonzero(path.penalties == penalties[best])[-1:] for path in paths]
    norms = np.concatenate([p.norms[at] for p, at in zip(paths, last, strict=True)])
    cut = any(p.exhausted and len(p.norms) - 1 in at for p, at in zip(paths, last, strict=True))
    return Choice(float(norms.mean()), float(penalties[best]), float(np.sqrt(errors[best])), cut)


def _in_order_of_appearance(values: Array) -> Array:
    """Return the distinct values, each where it first appears."""
    first = np.unique(values, return_index=True)[1]
    return values[np.sort(first)]


def _error_at(path: StagewisePath, penalties: Array) -> Array:
    """Held-out error of a path at any λ, the root of it linear between and beyond its points."""
    # λ stays the same in backward steps: the last point counts. Reversed, that is the first.
    known, where = np.unique(path.penalties[::-1], return_index=True)
    roots = np.sqrt(path.test_errors[::-1][where])
    if len(known) == 1:
        return np.full(len(penalties), np.square(roots[0]))
    left = np.clip(np.searchsorted(known, penalties, side="right") - 1, 0, len(known) - 2)
    slopes = np.diff(roots) / np.diff(known)
    return np.square(roots[left] + slopes[left] * (penalties - known[left]))


def _largest(values: Sequence[Array]) -> tuple[int, int, float]:
    """Mode and index of the largest value, the first one among equals."""
    best = [int(v.argmax()) for v in values]
    mode = int(np.argmax([v[i] for v, i in zip(values, best, strict=True)]))
    return mode, best[mode], float(values[mode][best[mode]])
