"""Sweeps of updates over the modes, until the coefficients stand still."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyfastr.config import current_budget
from pyfastr.solver.models import Models, put, relative_change, unit
from pyfastr.solver.newton import newton_step
from pyfastr.solver.parallel import map_threads
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.problem import Problem
from pyfastr.solver.progress import tell
from pyfastr.solver.projection import CACHE_BYTES
from pyfastr.solver.update import ridge_solution, solve_regularised

Array = NDArray[Any]
Order = Literal["cyclic", "simultaneous"]
# How weights of each model and sample are drawn for an update; None: the problem's own.
DrawWeights = Callable[[], Array]

# Memory above X that a batch of models may take, and how many times that if it serves several
# tasks; larger batches are worked on in parts.
MIN_BATCH_BYTES = 120 << 20
BATCH_SHARE = 0.06
MANY_TASKS = 2
# Of parts of a batch that threads work on (twice as fast as with 2 MB at 1000 x 100 x 100).
WORK_BYTES, ENOUGH_PARTS = 8 << 20, 16


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
        moved = ~np.isnan(loss).all(axis=1)
        return History(list(loss[moved]), list(change[moved]))

    def last_loss(self) -> Array:
        """Return the loss of each model's last sweep."""
        loss = np.asarray(self.loss)
        last = len(loss) - 1 - np.argmax(~np.isnan(loss[::-1]), axis=0)
        return loss[last, np.arange(loss.shape[1])]


def batches(problem: Problem, n_models: int, bytes_per_model: float) -> list[slice]:
    """Cut a batch of models into parts of about one size, each within the memory limit."""
    source = problem.projector.source
    limit = max(MIN_BATCH_BYTES, BATCH_SHARE * np.prod(source.shape) * source.dtype.itemsize)
    limit *= MANY_TASKS if problem.n_tasks > 1 else 1
    limit = min(limit, problem.projector.budget.batch)
    n_parts = ceil(n_models / max(1, limit // bytes_per_model))
    edges = np.linspace(0, n_models, n_parts + 1).astype(int).tolist()
    return [slice(i, j) for i, j in pairwise(edges)]


def cache_parts(array: Array) -> list[slice]:
    """Cut a batch along its first axis into parts that stay in a core's cache."""
    step = max(1, CACHE_BYTES // max(1, array[:1].nbytes))
    return [slice(i, i + step) for i in range(0, len(array), step)]


def work_parts(array: Array) -> list[slice]:
    """Cut a batch into parts on which numpy works much longer than it takes to be called.

    While it is called no other thread works; but there should be enough parts for all threads.
    """
    model = max(1, array[:1].nbytes)
    step = min(min(WORK_BYTES, current_budget().blocks) // model, ceil(len(array) / ENOUGH_PARTS))
    step = max(1, step, CACHE_BYTES // model)
    return [slice(i, i + step) for i in range(0, len(array), step)]


def features_of(projection: Array) -> Array:
    """Put the projections ``(K, R, N, p)`` of a model's terms side by side: ``(K, N, R p)``."""
    K, R, N, p = projection.shape
    if R == 1:
        return projection.reshape(K, N, p)
    features = np.empty((K, N, R, p), projection.dtype)

    def fill(part: slice) -> None:
        features[part] = projection[part].transpose(0, 2, 1, 3)

    map_threads(fill, cache_parts(projection))
    return features.reshape(K, N, R * p)


def all_features(problem: Problem, components: list[Array]) -> Array:
    """Put the projections onto all modes side by side: ``(K, N, q)``, in one pass over X."""
    parts = [features_of(p) for p in problem.projector.project_all(components)]
    K, N = parts[0].shape[:2]
    features = np.empty((K, N, sum(p.shape[2] for p in parts)))

    def fill(some: slice) -> None:
        np.concatenate([p[some] for p in parts], axis=2, out=features[some])

    map_threads(fill, cache_parts(features))
    return features


def solve_mode(
    problem: Problem,
    features: Array,
    models: Models,
    mode: int,
    penalty: Penalty,
    weights: Array | None = None,
) -> Array:
    """Apply the paper's update to projected samples: ``(K, R, p)``, in the type of the models."""

    def solve(part: slice) -> Array:
        some = features[part].astype(models.scales.dtype, copy=False)
        now, task = penalty.take(part), models.task[part]
        mask = now.mask(mode)
        if problem.loss.is_quadratic:
            g = None if weights is None else weights[part]
            solution = least_squares(problem, some, task, now, mask, g)
        else:
            some = some if mask is None else some * mask[:, None]
            old = models.components[mode][part] * models.scales[part][..., None]
            solution = newton_step(problem, some, old.reshape(len(some), -1), task, now)
        return now.shrink(solution)

    solutions = map_threads(solve, work_parts(features))
    return np.concatenate(solutions).reshape(models.components[mode].shape)


def fitted_by(features: Array, solution: Array) -> Array:
    """Fitted values ``(K, N)`` of solutions ``(K, R, p)``, intercept and covariates left out."""
    columns = solution.reshape(len(solution), -1, 1)

    def multiply(part: slice) -> Array:
        return (features[part].astype(columns.dtype, copy=False) @ columns[part])[..., 0]

    return np.concatenate(map_threads(multiply, work_parts(features)))


def least_squares(
    problem: Problem,
    features: Array,
    task: Array,
    penalty: Penalty,
    mask: Array | None = None,
    weights: Array | None = None,
) -> Array:
    """Ridge solution ``(K, q)`` of weighted least squares, zero outside of the mask."""
    response = problem.of(problem.response, task).astype(features.dtype, copy=False)
    _, n, q = features.shape
    if q > n:
        some = features if mask is None else features * mask[:, None]
        return ridge_solution(*problem.whiten(some, response, task, weights), penalty)
    gram, moment = problem.normal_equations(features, response, task, weights)
    if mask is not None:
        gram, moment = gram * (mask[:, :, None] & mask[:, None, :]), moment * mask
    return solve_regularised(gram, moment, penalty, q)


def cyclic_sweep(
    problem: Problem,
    models: Models,
    penalty: Penalty,
    draw_weights: DrawWeights | None = None,
) -> tuple[Models, Array]:
    """Update the modes in turn; return the models and their fitted values ``(K, N)``."""
    K, R = models.scales.shape
    # Terms are put side by side by a copy.
    n_copies = 1 if R == 1 else 2
    itemsize = problem.projector.source.dtype.itemsize
    parts = batches(problem, K, n_copies * problem.n_samples * R * max(models.shape) * itemsize)
    draws = [draw_weights() if draw_weights else None for _ in models.components]
    swept, fitted = [], []
    for part in parts:
        # A whole batch goes as it is: the projector knows components it has seen.
        some = models if len(parts) == 1 else models.take(part)
        features = solution = np.empty(0)
        for mode, weights in enumerate(draws):
            g = None if weights is None else weights[part]
            features = features_of(problem.projector.project(some.components, mode, reuse=True))
            solution = solve_mode(problem, features, some, mode, penalty.take(part), g)
            some = some.replace(mode, solution)
        swept.append(some)
        fitted.append(fitted_by(features, solution))
    return swept[0] if len(parts) == 1 else Models.concatenate(swept), np.concatenate(fitted)


def simultaneous_sweep(problem: Problem, models: Models, penalty: Penalty) -> tuple[Models, Array]:
    """Update all modes from the same old components: other iterates, one pass over X.

    The fitted values are those with the last mode new and the others old; the ones of the models
    returned would take another pass.
    """
    K, R = models.scales.shape
    dtype = models.scales.dtype
    parts, fitted = [], []
    per_model = 2 * problem.n_samples * R * sum(problem.shape) * dtype.itemsize
    for part in batches(problem, K, per_model):
        some, now = models.take(part), penalty.take(part)
        features, solutions = np.empty(0), []
        for mode, projection in enumerate(problem.projector.project_all(some.components)):
            features = features_of(projection)
            solutions.append(solve_mode(problem, features, some, mode, now))
        parts.append(_replace_all(some, solutions))
        fitted.append(fitted_by(features, solutions[-1]))
    return Models.concatenate(parts), np.concatenate(fitted)


def _replace_all(models: Models, solutions: list[Array]) -> Models:
    """Combine solutions that each took the others' old components for granted.

    Where the old coefficient had the wrong sign, every mode turns around; only the first may, or
    the turns would cancel and never end.
    """
    components, scales = zip(*(unit(s) for s in solutions), strict=True)
    turned = [components[0]]
    for new, old in zip(components[1:], models.components[1:], strict=True):
        same_way = np.einsum("krp,krp->kr", new, old) >= 0
        turned.append(np.where(same_way[..., None], new, -new))
    return Models(turned, np.mean(scales, axis=0), models.task)


def run_sweeps(
    problem: Problem,
    models: Models,
    penalty: Penalty,
    *,
    order: Order = "cyclic",
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> tuple[Models, History, Array]:
    """Sweep until every model changes by at most `tol`, or `max_iter` sweeps have run.

    Returns the models, the history, and which models converged. A model that stands still leaves
    the batch, so that the others' sweeps get cheaper.
    """
    one_sweep = cyclic_sweep if order == "cyclic" else simultaneous_sweep
    K = len(models)
    history, converged = History(), np.zeros(K, bool)
    moving = np.arange(K)
    for sweep in range(max_iter):
        old = models if len(moving) == K else models.take(moving)
        now = penalty if len(moving) == K else penalty.take(moving)
        new, fitted = one_sweep(problem, old, now)
        change = relative_change(new, old)
        _record(history, moving, K, problem.losses(fitted, new.task), change)
        models = new if len(moving) == K else put(models, moving, new)
        converged[moving[change <= tol]] = True
        moving = moving[change > tol]
        tell("sweeps", sweep + 1, max_iter)
        if not len(moving):
            break
    return models, history, converged


def _record(history: History, which: Array, n_models: int, loss: Array, change: Array) -> None:
    """Add a sweep to the history."""
    for rows, values in ((history.loss, loss), (history.change, change)):
        row = np.full(n_models, np.nan)
        row[which] = values
        rows.append(row)
