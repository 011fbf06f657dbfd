"""One more term for every model, begun from what the others leave unexplained."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.contraction import project_own
from pyfastr.solver.journal import once
from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import ProposalPolicy, SearchPolicy
from pyfastr.solver.problem import Problem
from pyfastr.solver.proposals import power_sweeps, unit_rows
from pyfastr.solver.ties import Ties

Array = NDArray[Any]


def with_another_term(problem: Problem, models: Models, policy: SearchPolicy) -> Models:
    """Give every model a term of scale zero, in the direction that lowers its loss the fastest.

    That is the rank-one approximation of ``sum_i r_i X_i``, where the residuals r are those of the
    target's mean. The sums of a batch of models take one pass over X. Matrices with tied modes have
    terms of a sign, which no update turns around: each model comes twice then, the second time
    with the term of the other sign.
    """
    make = partial(_steepest_terms, problem, models, policy)
    new = once("new terms", make, problem.engine)
    n_ways = len(new[0]) // len(models)
    grown = models.take(np.repeat(np.arange(len(models)), n_ways))
    pairs = zip(grown.components, new, strict=True)
    components = [np.concatenate([own, rows[:, None]], axis=1) for own, rows in pairs]
    scales = np.concatenate([grown.scales, np.zeros((len(grown), 1))], axis=1)
    return Models(components, scales, grown.task)


def _steepest_terms(problem: Problem, models: Models, policy: SearchPolicy) -> list[Array]:
    """Components ``(K, p_m)`` of the new terms, or ``(2 K, p_m)`` of those of both signs."""
    slopes, found = problem.slopes(problem.engine.fitted(models), models.task), []
    for part in problem.engine.batches(len(models), 24.0 * np.prod(problem.shape)):
        sums = problem.engine.weighted_sums(slopes[part]).astype(float, copy=False)
        rows = _nearest(sums, policy.proposals, problem.ties)
        if problem.ties and len(problem.shape) == 2:
            rows = _with_other_sign(sums, rows, policy.proposals, problem.ties)
        found.append(rows)
    return [np.concatenate(rows) for rows in zip(*found, strict=True)]


def _with_other_sign(
    sums: Array, rows: list[Array], policy: ProposalPolicy, ties: Ties
) -> list[Array]:
    """Put behind each approximation ``+-w w'`` of a matrix the best one of the other sign."""
    values = np.einsum("lp,lpq,lq->l", rows[0], sums, rows[0])
    sign = np.where(values < 0, -1.0, 1.0)[:, None]
    # Turned around and lifted by what the first has, all other eigenvalues are positive.
    lifted = np.abs(values)[:, None, None] * np.eye(sums.shape[1]) - sign[..., None] * sums
    other = _nearest(lifted, policy, ties)
    pairs = ((rows[0], other[0]), (rows[1], -sign * other[0]))
    return [np.stack(pair, axis=1).reshape(-1, sums.shape[1]) for pair in pairs]


def _nearest(sums: Array, policy: ProposalPolicy, ties: Ties) -> list[Array]:
    """Rank-one approximations of arrays ``(L, p1, ..., pM)``, the best of several starts.

    Power sweeps find that of a matrix from anywhere, but of a tensor that is mostly noise only from
    nearby.
    """
    dense, shape = Penalty(0.0), sums.shape[1:]
    n_starts = policy.steepest_starts if sum(p > 1 for p in shape) > 2 else 1
    best, reached = list[Array](), np.full(len(sums), -np.inf)
    for at in _large_entries(sums, n_starts):
        rows = unit_rows(at, shape)
        rows = power_sweeps(sums, rows, dense, policy.steepest_sweeps, ties)
        value = np.abs(np.sum(project_own(sums[:, None], rows, 0)[:, 0] * rows[0], axis=-1))
        ahead = value > reached
        best = [np.where(ahead[:, None], r, b) for r, b in zip(rows, best or rows, strict=True)]
        reached = np.maximum(value, reached)
    return power_sweeps(sums, best, dense, policy.power_sweeps, ties)


def _large_entries(sums: Array, n_entries: int) -> Iterator[tuple[Array, ...]]:
    """Yield where the largest entries of different slices of the longest mode are, in order."""
    shape = sums.shape[1:]
    mode = int(np.argmax(shape))
    rest = shape[:mode] + shape[mode + 1 :]
    slices = np.abs(np.moveaxis(sums, mode + 1, 1)).reshape(len(sums), shape[mode], -1)
    order = np.argsort(-slices.max(axis=2), axis=1, kind="stable")
    for which in order.T[:n_entries]:
        within = slices[np.arange(len(sums)), which].argmax(axis=1)
        at = np.unravel_index(within, rest) if rest else ()
        yield (*at[:mode], which, *at[mode:])
