"""Where starts begin: at random, or at rank-one approximations of weighted sums of samples."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.contraction import project_own
from pyfastr.engines.kernels import cache_parts
from pyfastr.engines.parallel import map_threads
from pyfastr.solver.journal import once
from pyfastr.solver.models import Models, put, unit
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.problem import Problem
from pyfastr.solver.streams import Streams
from pyfastr.solver.ties import Ties

Array = NDArray[Any]
Kind = Literal["mixed", "spectral", "random"]


def propose(
    problem: Problem,
    n_models: int,
    n_terms: int,
    kind: Kind,
    streams: Streams,
    policy: SearchPolicy,
    tasks: Array | None = None,
) -> Models:
    """Draw so many starts for each task: random, spectral, or half of each."""
    tasks = np.arange(problem.n_tasks) if tasks is None else tasks
    task = np.repeat(tasks, n_models)
    draws = [streams.normal(task, (n_terms, p)) for p in problem.shape]
    models = Models([unit(d)[0] for d in draws], np.ones((len(task), n_terms)), task)
    models = problem.ties.nearest(models)
    n_random = {"random": n_models, "spectral": 0, "mixed": n_models // 2}[kind]
    spectral = np.flatnonzero(np.arange(len(models)) % n_models >= n_random)
    if not len(spectral):
        return models
    n_sweeps = policy.proposals.power_sweeps
    make = partial(_spectral, problem, models.take(spectral), streams, n_sweeps)
    return put(models, spectral, once("spectral starts", make, streams, problem.engine))


def _spectral(problem: Problem, models: Models, streams: Streams, n_sweeps: int) -> Models:
    """Rank-one approximations of ``sum_i g_i y_i X_i``, g drawn from Exp(1) for each start.

    The sums take one pass over X; the power sweeps then work on one array a start.
    """
    K, R = models.scales.shape
    task = np.repeat(models.task, R)
    draw = streams.weights(task)
    rows = [c.reshape(K * R, -1) for c in models.components]
    done = []
    for part in problem.engine.batches(K * R, 24.0 * np.prod(problem.shape)):
        sums = problem.engine.drawn_sums(task[part], draw.take(part))
        own = [r[part].astype(sums.dtype) for r in rows]
        power = partial(_power_sweeps_of_part, sums, own, n_sweeps, problem.ties)
        done += map_threads(power, cache_parts(sums))
    components = [np.concatenate(c).reshape(K, R, -1) for c in zip(*done, strict=True)]
    return Models(components, models.scales, models.task).astype(float)


def _power_sweeps_of_part(
    sums: Array, rows: list[Array], n_sweeps: int, ties: Ties, part: slice
) -> list[Array]:
    """Rank-one approximations of some of the sums, from their rows of components."""
    return power_sweeps(sums[part], [r[part] for r in rows], Penalty(0.0), n_sweeps, ties)


def sparse_starts(problem: Problem, policy: SearchPolicy) -> Models:
    """One start a task: a sparse rank-one approximation of ``sum_i y_i X_i``.

    Beginning at the largest entry, power sweeps with a threshold stay where few entries stand out
    of the noise; those of dense starts, and the annealing, are led away by the noise of all.
    """
    tasks, own = np.arange(problem.n_tasks), policy.proposals
    found = []
    for part in problem.engine.batches(len(tasks), 24.0 * np.prod(problem.shape)):
        sums = problem.engine.drawn_sums(tasks[part]).astype(float, copy=False)
        sparse = Penalty(0.0, own.sparse_threshold)
        rows = power_sweeps_from_largest(sums, sparse, own.power_sweeps, problem.ties)
        found.append(Models([r[:, None] for r in rows], np.ones((len(sums), 1)), tasks[part]))
    return Models.concatenate(found)


def power_sweeps_from_largest(
    sums: Array, penalty: Penalty, n_sweeps: int, ties: Ties
) -> list[Array]:
    """Rank-one approximations of arrays ``(L, p1, ..., pM)``, begun at the largest entry of each.

    Returns M arrays of shape ``(L, p_m)``.
    """
    largest = np.abs(sums).reshape(len(sums), -1).argmax(axis=1)
    at = np.unravel_index(largest, sums.shape[1:])
    return power_sweeps(sums, unit_rows(at, sums.shape[1:]), penalty, n_sweeps, ties)


def unit_rows(at: Sequence[Array], shape: Sequence[int]) -> list[Array]:
    """Rows ``(L, p_m)`` of every mode that are one at a place of their own, and zero elsewhere."""
    pairs = zip(at, shape, strict=True)
    return [np.equal(own[:, None], np.arange(p)).astype(float) for own, p in pairs]


def power_sweeps(
    sums: Array, rows: list[Array], penalty: Penalty, n_sweeps: int, ties: Ties
) -> list[Array]:
    """Rank-one approximations of arrays ``(L, p1, ..., pM)``, begun at rows ``(L, p_m)``."""
    rows = ties.follow(rows, None)
    for _ in range(n_sweeps):
        for m in range(len(rows)):
            rows[m] = unit(penalty.shrink(project_own(sums[:, None], rows, m)[:, 0]))[0]
            rows = ties.follow(rows, m)
    return rows
