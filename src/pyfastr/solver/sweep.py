"""Sweeps of updates over the modes, until the coefficients stand still."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines import Draw
from pyfastr.engines.kernels import ENOUGH_PARTS
from pyfastr.engines.parallel import limited_blas, map_threads
from pyfastr.solver.journal import State, steps
from pyfastr.solver.models import Models, put, relative_change, unit
from pyfastr.solver.newton import newton_step
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.problem import Problem
from pyfastr.solver.progress import tell
from pyfastr.solver.ties import TiedSweep
from pyfastr.solver.update import ridge_solution, solve_regularised

Array = NDArray[Any]
Order = Literal["cyclic", "simultaneous"]
# How further weights of each sample are drawn for an update of models, given their tasks.
DrawWeights = Callable[[Array], Draw]

# Equations that a thread solves in one call at least, and entries of their matrices: fewer are
# solved sooner than threads are asked to.
SOLVED_AT_ONCE, SOLVED_ENTRIES = 32, 1 << 16


@dataclass
class History:
    """How a batch went, a row a sweep and a column a model (NaN once a model has stopped).

    Attributes
    ----------
    loss : list of ndarray of shape (K,)
        Weighted mean of the loss; of squared residuals in units of the response's.
    change : list of ndarray of shape (K,)
        ``||W_t+1 - W_t||_F / ||W_t||_F``.
    """

    loss: list[Array] = field(default_factory=list)
    change: list[Array] = field(default_factory=list)

    def take(self, which: Array) -> "History":
        """Return the columns of some models, without rows in which none of them moved."""
        loss, change = (np.asarray(rows)[:, which] for rows in (self.loss, self.change))
        moved = ~np.isnan(change).all(axis=1)
        return History(list(loss[moved]), list(change[moved]))

    def end(self, loss: Array) -> None:
        """Take in the loss ``(K,)`` after each model's last sweep."""
        moved = ~np.isnan(np.asarray(self.change))
        last = len(moved) - 1 - np.argmax(moved[::-1], axis=0)
        for model, sweep in enumerate(last):
            self.loss[sweep][model] = loss[model]


@dataclass(frozen=True)
class Updated:
    """One mode's solutions, and how well the models fitted before.

    Attributes
    ----------
    solution : ndarray of shape (K, R, p)
    loss : ndarray of shape (K,)
        Weighted mean of the loss of the models that were updated.
    misfit : ndarray of shape (K,)
        Share of the response that these left unexplained at the scale that fits best.
    """

    solution: Array
    loss: Array
    misfit: Array

    def take(self, which: Array) -> "Updated":
        """Return those of some models."""
        return Updated(self.solution[which], self.loss[which], self.misfit[which])

    @staticmethod
    def concatenate(parts: "list[Updated]") -> "Updated":
        """Join batches."""
        if len(parts) == 1:
            return parts[0]
        fields = [(p.solution, p.loss, p.misfit) for p in parts]
        return Updated(*(np.concatenate(own) for own in zip(*fields, strict=True)))


def update_mode(
    problem: Problem, models: Models, mode: int, penalty: Penalty, draw: Draw | None = None
) -> Array:
    """Apply the paper's update to one mode of every model: ``(K, R, p)``, in their type."""
    return _update(problem, models, mode, penalty, draw, judged=False).solution


def judged_update(
    problem: Problem, models: Models, mode: int, penalty: Penalty, draw: Draw | None = None
) -> Updated:
    """Do the same, and say how well the models fit that are updated."""
    return _update(problem, models, mode, penalty, draw, judged=True)


def _update(
    problem: Problem,
    models: Models,
    mode: int,
    penalty: Penalty,
    draw: Draw | None,
    *,
    judged: bool,
) -> Updated:
    """Update in parts that keep to the memory limit."""
    K, R, p = models.components[mode].shape
    in_samples = R * p > problem.n_samples or not problem.loss.is_quadratic
    width = 3 * problem.n_samples if in_samples else 4 * R * p
    done = []
    for part in problem.engine.batches(K, width * R * p * models.scales.dtype.itemsize):
        own = None if draw is None else draw.take(part)
        # A whole batch goes as it is: there is nothing to copy.
        some = models if part == slice(0, K) else models.take(part)
        now = penalty.take(part)
        if in_samples:
            done.append(_update_by_samples(problem, some, mode, now, own))
        else:
            done.append(_update_by_products(problem, some, mode, now, own, judged=judged))
    return Updated.concatenate(done)


def _update_by_products(
    problem: Problem,
    models: Models,
    mode: int,
    penalty: Penalty,
    draw: Draw | None,
    *,
    judged: bool,
) -> Updated:
    """Solve in the space of entries, from Gram matrices and moments."""
    found = problem.engine.mode_equations(models, mode, draw, judged=judged)
    solution = solve_equations(found.gram, found.moment, penalty, mode)
    return Updated(
        solution.reshape(models.components[mode].shape),
        found.fits.rss / problem.n_samples,
        found.fits.misfit,
    )


def _update_by_samples(
    problem: Problem, models: Models, mode: int, penalty: Penalty, draw: Draw | None
) -> Updated:
    """Solve in the space of samples, or of a loss that has to be asked sample by sample."""
    projected = problem.engine.project(models, mode)
    old = (models.components[mode] * models.scales[..., None]).reshape(len(models), -1)
    mask = penalty.mask(mode)
    old = old if mask is None else old * mask
    if problem.loss.is_quadratic:
        features = projected.whole()
        fitted = (features @ old[:, :, None])[..., 0]
        solution = _dual_solution(problem, features, models.task, penalty, mask, draw)
    else:
        fitted = projected.times(old)
        solution = newton_step(problem, projected, old, fitted, models.task, penalty, mask)
    return Updated(
        penalty.shrink(solution).reshape(models.components[mode].shape),
        problem.losses_of(fitted, models.task),
        problem.misfits_of(fitted, models.task),
    )


def _dual_solution(
    problem: Problem,
    features: Array,
    task: Array,
    penalty: Penalty,
    mask: Array | None,
    draw: Draw | None,
) -> Array:
    """Ridge solutions ``(K, q)`` of fewer samples than features, zero outside of the mask."""
    features = features if mask is None else features * mask[:, None]
    g = None if draw is None else draw.exponential(0, problem.n_samples, features.dtype)
    z = problem.samples.response_of(task).astype(features.dtype, copy=False)
    return ridge_solution(*problem.whiten(features, z, task, g), penalty)


def solve_equations(gram: Array, moment: Array, penalty: Penalty, mode: int) -> Array:
    """Ridge solutions ``(K, q)`` of normal equations, zero outside of the mask, and shrunk."""

    def solve(part: slice) -> Array:
        now, some, rhs = penalty.take(part), gram[part], moment[part]
        mask = now.mask(mode)
        if mask is not None:
            some, rhs = some * (mask[:, :, None] & mask[:, None, :]), rhs * mask
        return now.shrink(solve_regularised(some, rhs, now, gram.shape[1]))

    parts = map_threads(solve, solved_parts(gram))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def solved_parts(gram: Array) -> list[slice]:
    """Cut a batch of equations into parts for threads: solving takes long beside reading them."""
    least = max(SOLVED_AT_ONCE, SOLVED_ENTRIES // max(1, gram[0].size))
    step = max(least, ceil(len(gram) / ENOUGH_PARTS))
    return [slice(i, i + step) for i in range(0, len(gram), step)]


def cyclic_sweep(
    problem: Problem,
    models: Models,
    penalty: Penalty,
    draw_weights: DrawWeights | None = None,
) -> tuple[Models, Updated]:
    """Update the modes in turn; return the models, and the first update with its old losses."""
    first = judged_update(problem, models, 0, penalty, draw_weights and draw_weights(models.task))
    return rest_of_sweep(problem, models, first.solution, penalty, draw_weights), first


def unjudged_sweep(problem: Problem, models: Models, penalty: Penalty) -> tuple[Models, None]:
    """Update the modes in turn, where nobody asks for the old losses."""
    first = update_mode(problem, models, 0, penalty)
    return rest_of_sweep(problem, models, first, penalty), None


def rest_of_sweep(
    problem: Problem,
    models: Models,
    first: Array,
    penalty: Penalty,
    draw_weights: DrawWeights | None = None,
) -> Models:
    """Take over the update ``(K, R, p)`` of the first mode, and update the others in turn."""
    sweep = TiedSweep(problem.ties, is_exact=draw_weights is None)
    models = sweep.replace(models, 0, first)
    for mode in range(1, len(models.components)):
        draw = draw_weights and draw_weights(models.task)
        models = sweep.replace(models, mode, update_mode(problem, models, mode, penalty, draw))
    return models


def simultaneous_sweep(
    problem: Problem, models: Models, penalty: Penalty
) -> tuple[Models, Updated]:
    """Update all modes from the same old components: other iterates, one pass over X."""
    if not problem.loss.is_quadratic:
        modes = range(len(models.components))
        found = [judged_update(problem, models, mode, penalty) for mode in modes]
        return _replace_all(problem, models, [f.solution for f in found]), found[0]
    q, widest = sum(c[0].size for c in models.components), max(c[0].size for c in models.components)
    in_samples = widest > problem.n_samples
    update = _simultaneous_by_samples if in_samples else _simultaneous_by_products
    parts, before = [], []
    for part in problem.engine.batches(len(models), 32.0 * q * min(q, 2 * problem.n_samples)):
        some = models.take(part)
        solutions, first = update(problem, some, penalty.take(part))
        parts.append(_replace_all(problem, some, solutions))
        before.append(first)
    return Models.concatenate(parts), Updated.concatenate(before)


def _simultaneous_by_samples(
    problem: Problem, models: Models, penalty: Penalty
) -> tuple[list[Array], Updated]:
    """Solve for every mode in the space of samples, from all features at once."""
    J = problem.engine.project_all(models.components)
    own = (models.components[0] * models.scales[..., None]).reshape(len(models), -1, 1)
    blocks = models.blocks()
    fitted = (J[:, :, blocks[0]] @ own)[..., 0]
    solutions = []
    for mode, block in enumerate(blocks):
        mask = penalty.mask(mode)
        found = _dual_solution(problem, J[:, :, block], models.task, penalty, mask, None)
        solutions.append(penalty.shrink(found).reshape(models.components[mode].shape))
    loss, misfit = (f(fitted, models.task) for f in (problem.losses_of, problem.misfits_of))
    return solutions, Updated(solutions[0], loss, misfit)


def _simultaneous_by_products(
    problem: Problem, models: Models, penalty: Penalty
) -> tuple[list[Array], Updated]:
    """Solve for every mode, from one set of joint equations whose moments are of residuals."""
    found = problem.engine.joint_equations(models)
    solutions = []
    for mode, block in enumerate(models.blocks()):
        gram = found.gram[:, block, block].copy()
        own = (models.components[mode] * models.scales[..., None]).reshape(len(models), -1, 1)
        moment = found.moment[:, block] + (gram @ own)[..., 0]
        solution = solve_equations(gram, moment, penalty, mode)
        solutions.append(solution.reshape(models.components[mode].shape))
    loss = found.fits.rss / problem.n_samples
    return solutions, Updated(solutions[0], loss, found.fits.misfit)


def _replace_all(problem: Problem, models: Models, solutions: list[Array]) -> Models:
    """Combine solutions that each took the others' old components for granted.

    Where the old coefficient had the wrong sign, every mode turns around; only the first may, or
    the turns would cancel and never end.
    """
    components, scales = zip(*(unit(s) for s in solutions), strict=True)
    turned = [components[0]]
    for new, old in zip(components[1:], models.components[1:], strict=True):
        same_way = np.einsum("krp,krp->kr", new, old) >= 0
        turned.append(np.where(same_way[..., None], new, -new))
    if problem.ties.modes is not None:
        # Both solutions of a pair are the same: one, beside what the pair was before.
        first, second = problem.ties.modes
        turned[second] = models.components[second]
        turned = problem.ties.follow(turned, first)
    return Models(turned, np.mean(scales, axis=0), models.task)


SWEEPS: dict[Order, Callable[..., tuple[Models, Updated | None]]] = {
    "cyclic": cyclic_sweep,
    "simultaneous": simultaneous_sweep,
}


@limited_blas()
def run_sweeps(
    problem: Problem,
    models: Models,
    penalty: Penalty,
    *,
    order: Order = "cyclic",
    max_iter: int = 1000,
    tol: float = 1e-3,
    keep_losses: bool = True,
) -> tuple[Models, History, Array]:
    """Sweep until every model changes by at most `tol`, or `max_iter` sweeps have run.

    Returns the models, the history, and which models converged. A model that stands still leaves
    the batch, so that the others' sweeps get cheaper. The loss of a model's last sweep is not known
    yet: `History.end` takes it. Others cost something, too, and may be left unknown.
    """
    one_sweep = SWEEPS[order] if keep_losses or order != "cyclic" else unjudged_sweep
    run = _Run(models)
    for sweep in steps("sweeps", max_iter, run, problem.engine, over=run.stands_still):
        now = penalty if run.all_move else penalty.take(run.moving)
        new, first = one_sweep(problem, run.those_moving(), now)
        run.take_over(new, None if first is None else first.loss, tol)
        tell("sweeps", sweep + 1, max_iter)
    return run.models, run.history(), run.converged


class _Run(State):
    """How far the sweeps of a batch are.

    Attributes
    ----------
    models : Models
    moving : ndarray of int
        Those that still change.
    converged : ndarray of shape (K,) of bool
    loss, change : list of ndarray of shape (K,)
        Rows of the history; the last one's losses are told by the next sweep.
    """

    def __init__(self, models: Models) -> None:
        self.models, self.moving = models, np.arange(len(models))
        self.converged = np.zeros(len(models), bool)
        self.loss, self.change = list[Array](), list[Array]()

    def stands_still(self) -> bool:
        """Whether no model moves any more."""
        return not len(self.moving)

    @property
    def all_move(self) -> bool:
        """Whether all of them do."""
        return len(self.moving) == len(self.models)

    def those_moving(self) -> Models:
        """Return those that are to be swept."""
        return self.models if self.all_move else self.models.take(self.moving)

    def take_over(self, new: Models, loss: Array | None, tol: float) -> None:
        """Go on with swept models, given the losses that they had before, if these are known."""
        change = relative_change(new, self.those_moving())
        if self.loss and loss is not None:
            self.loss[-1] = self._row(loss)
        self.loss.append(np.full(len(self.models), np.nan))
        self.change.append(self._row(change))
        self.models = new if self.all_move else put(self.models, self.moving, new)
        self.converged = self.converged.copy()
        self.converged[self.moving] = change <= tol
        self.moving = self.moving[change > tol]

    def history(self) -> History:
        """Return the history, to which the last losses can be added."""
        return History([row.copy() for row in self.loss], list(self.change))

    def _row(self, values: Array) -> Array:
        """Return a row of the history with values of the models that moved."""
        row = np.full(len(self.models), np.nan)
        row[self.moving] = values
        return row
