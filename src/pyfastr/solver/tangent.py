"""Where sweeps will end, foreseen in the tangent space of the models they begin from.

Near a solution fitted values are linear in the components. The products of that linear problem
take one pass over X for each solution, however many ridges, thresholds and supports begin there,
and its own sweeps do without X. What they leave to the sweeps proper is of second order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.config import current_budget
from pyfastr.engines.solving import inverse
from pyfastr.solver.models import Models, put, relative_change
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import ForesightPolicy, SearchPolicy
from pyfastr.solver.problem import Problem
from pyfastr.solver.ties import TiedSweep, Ties
from pyfastr.solver.update import regularise

Array = NDArray[Any]


@dataclass(frozen=True)
class Foresight:
    """The linear problems of those models of a batch whose sweeps can be foreseen.

    Attributes
    ----------
    rows : ndarray of shape (L,)
        The models.
    points : Models
        P different models that they begin from.
    at : ndarray of shape (L,)
        The point of each.
    gram, moment : ndarrays of shape (P, q, q) and (P, q)
        ``J'J`` and ``J'y``; J has the projections of the samples onto all modes side by side.
    policy : ForesightPolicy
    ties : Ties
    """

    rows: Array
    points: Models
    at: Array
    gram: Array
    moment: Array
    policy: ForesightPolicy
    ties: Ties

    def move(self, models: Models, penalty: Penalty) -> Models:
        """Return the models, those of `rows` moved to where sweeps with a penalty will end."""
        if not len(self.rows):
            return models
        ends = [self._sweep(part, penalty.take(self.rows[part])) for part in self._batches()]
        foreseen = Models.concatenate(ends)
        change = relative_change(foreseen, self.points.take(self.at))
        near = change <= self.policy.largest_change
        return put(models, self.rows[near], foreseen.take(near))

    def _batches(self) -> Iterator[slice]:
        """Cut the rows so that their inverse matrices keep to the memory limit."""
        largest = max(c[0].size for c in self.points.components)
        room = min(self.policy.inverses_bytes, current_budget().foresight // 3)
        step = max(1, room // (8 * len(self.points.components) * largest**2))
        yield from (slice(i, i + step) for i in range(0, len(self.rows), step))

    def _sweep(self, part: slice, penalty: Penalty) -> Models:
        """Sweep over the modes of the linear problems."""
        at = self.at[part]
        start = self.points.take(at)
        now = start
        blocks = self.points.blocks()
        inverses = [self._inverse(at, m, block, penalty) for m, block in enumerate(blocks)]
        for _ in range(self.policy.n_sweeps):
            sweep = TiedSweep(self.ties)
            for m, block in enumerate(blocks):
                moved = [
                    ((c - c0) * now.scales[..., None]).reshape(len(at), -1)
                    for c, c0 in zip(now.components, start.components, strict=True)
                ]
                moved[m][:] = 0
                left = self.moment[at, block] - self._fitted(at, np.hstack(moved), block)
                solution = penalty.shrink((inverses[m] @ left[..., None])[..., 0])
                now = sweep.replace(now, m, solution.reshape(now.components[m].shape))
        return now

    def _fitted(self, at: Array, moved: Array, block: slice) -> Array:
        """Products of a mode's projections with what the other modes' moves explain."""
        fitted = np.empty((len(at), block.stop - block.start))
        for point in np.unique(at):
            own = at == point
            fitted[own] = moved[own] @ self.gram[point][:, block]
        return fitted

    def _inverse(self, at: Array, mode: int, block: slice, penalty: Penalty) -> Array:
        """Inverse matrices of one mode's ridge regressions; zero outside of the masks."""
        gram = self.gram[at, block, block]
        mask = penalty.mask(mode)
        if mask is None:
            return inverse(regularise(gram, penalty, gram.shape[1]))
        inside = mask[:, :, None] & mask[:, None, :]
        return inverse(regularise(gram * inside, penalty, gram.shape[1])) * inside


def foresee(problem: Problem, starts: Models, penalty: Penalty, policy: SearchPolicy) -> Foresight:
    """Make the linear problems of starts that are close to where their sweeps will end."""
    own = policy.foresight
    rows = _candidates(problem, starts, penalty, own)
    keys = np.hstack([starts.task[:, None], starts.flat()])[rows]
    _, first, at = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    q = keys.shape[1] - 1
    room = min(own.products_bytes, 2 * problem.engine.budget.foresight // 3)
    if 8 * len(first) * q**2 > room:
        rows, first, at = rows[:0], first[:0], at[:0]
    points, at = starts.take(rows[first]), at.reshape(-1)
    gram, moment = np.empty((len(points), q, q)), np.empty((len(points), q))
    explained = np.empty(len(points), bool)
    for part in problem.engine.batches(len(points), 8.0 * 2 * q**2):
        some = points.take(part)
        found = problem.engine.joint_equations(some)
        scaled = (some.components[0] * some.scales[..., None]).reshape(len(some), -1, 1)
        gram[part] = found.gram
        # The moments are of residuals; those of the response have the fitted values as well.
        moment[part] = found.moment + (found.gram[:, :, some.blocks()[0]] @ scaled)[..., 0]
        explained[part] = found.fits.rss <= own.unexplained * problem.n_samples
    good = explained[at]
    return Foresight(rows[good], points, at[good], gram, moment, own, problem.ties)


def _candidates(
    problem: Problem, starts: Models, penalty: Penalty, policy: ForesightPolicy
) -> Array:
    """Return the models with samples enough, and a penalty that is small but not nothing.

    Several terms share what they explain in many ways, and sweeps need long to settle on one.
    """
    if not problem.loss.is_quadratic or len(problem.shape) == 1 or starts.n_terms > 1:
        return np.empty(0, int)
    needed = policy.samples_per_parameter * problem.degrees_of_freedom(starts.n_terms)
    enough = problem.n_effective >= needed
    ridge, threshold = (np.broadcast_to(v, len(starts)) for v in (penalty.ridge, penalty.threshold))
    matters = (threshold > 0) | (ridge >= policy.least_ridge)
    small = np.maximum(ridge, threshold) <= policy.largest_penalty
    return np.flatnonzero(enough[starts.task] & matters & small)
