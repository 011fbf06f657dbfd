"""Samples that are vectors (M = 1): the update is the whole fit, and X is its own projection.

X is as large as the features here, so Gram matrices are gathered block by block.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.polish import Polished
from pyfastr.solver.problem import ROUNDING, Problem
from pyfastr.solver.support import Supported, evidence
from pyfastr.solver.update import solve_regularised
from pyfastr.sources import is_in_memory

Array = NDArray[Any]


def elementary_ridge(
    problem: Problem, penalty: Penalty, task: int = 0, used: Array | None = None
) -> Models:
    """Fit EE-Ridge (Yang, Lozano, Ravikumar 2014), optionally to some of the features only.

    The problem has one task; the model is given the number it has elsewhere.
    """
    used = np.ones(problem.shape[0], bool) if used is None else used
    solution = np.zeros(problem.shape[0])
    if used.any():
        solution[used] = penalty.shrink(_Whitened(problem, used).ridge_solution(penalty))
    start = Models([np.ones((1, 1, 1))], np.ones((1, 1)), np.array([task]))
    return start.replace(0, solution[None, None])


def refit_vector(problem: Problem, models: Models, ridge: float) -> Models:
    """Fit the non-zero entries of one model anew, without threshold; fewer need less ridge."""
    used = models.components[0][0, 0] != 0
    eased = Penalty(ridge * used.mean())
    return elementary_ridge(problem, eased, int(models.task[0]), used)


def most_evident_vector(problem: Problem, ridge: float, policy: SearchPolicy) -> Supported:
    """Choose the threshold whose support has the most evidence after a refit."""

    def least_squares(threshold: float) -> Models:
        found = elementary_ridge(problem, Penalty(ridge, threshold))
        return refit_vector(problem, found, policy.evidence.vector_ridge)

    thresholds = (0.0, *policy.evidence.vector_thresholds)
    models = Models.concatenate([least_squares(threshold) for threshold in thresholds])
    rss = np.sum(problem.residuals(fitted_vectors(problem, models), models.task) ** 2, axis=1)
    n_free = np.count_nonzero(models.components[0], axis=(1, 2))
    merit = evidence(problem, Polished(models, rss, rss), n_free, policy)
    return Supported(models, merit).best()


def fitted_vectors(problem: Problem, models: Models) -> Array:
    """``<w, x_i>`` of every model, ``(K, n_samples)``, in one pass."""
    source = problem.projector.source
    vectors = models.components[0][:, 0] * (models.scales / problem.x_scale)
    return np.concatenate([source.read(rows) @ vectors.T for rows in source.slices]).T


class _Whitened:
    """Blocks of X without nuisance and weighted, of some features."""

    def __init__(self, problem: Problem, used: Array) -> None:
        self.problem, self.used = problem, used
        self.source = problem.projector.source
        self.nuisance = problem.nuisance[0]
        weights = problem.weights
        self.root = np.ones(problem.n_samples) if weights is None else np.sqrt(weights[0])
        self.explained = np.zeros((self.nuisance.shape[1], int(used.sum())))
        C = self.nuisance * (self.root**2)[:, None]
        self.size = 0.0
        for rows in self.source.slices:
            block = self._plain(rows)
            self.explained += C[rows].T @ block
            self.size += float(np.vdot(block, block * (self.root[rows, None] > 0)))

    def _plain(self, rows: slice) -> Array:
        block = self.source.read(rows)
        block = block if self.used.all() else block[:, self.used]
        return (block / self.problem.x_scale).astype(float, copy=False)

    def read(self, rows: slice) -> Array:
        """Return one whitened block."""
        block = self._plain(rows)
        block -= self.nuisance[rows] @ self.explained
        block *= self.root[rows, None]
        return block

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        for rows in self.source.slices:
            yield rows, self.read(rows)

    def ridge_solution(self, penalty: Penalty) -> Array:
        """Solve in the smaller of the spaces of features and samples."""
        n, p = self.problem.n_samples, self.explained.shape[1]
        z = self.problem.response[0] * self.root
        if p <= n:
            gram, rhs = np.zeros((p, p)), np.zeros(p)
            for rows, block in self._blocks():
                gram += block.T @ block
                rhs += block.T @ z[rows]
            if self._is_rounding(gram):
                return rhs * 0
            return solve_regularised(gram[None], rhs[None], penalty, p)[0]
        solution, kernel = np.zeros(p), self._kernel()
        if self._is_rounding(kernel):
            return solution
        dual = solve_regularised(kernel[None], z[None], penalty, p)[0]
        for rows, block in self._blocks():
            solution += block.T @ dual[rows]
        return solution

    def _is_rounding(self, gram: Array) -> bool:
        """Whether X varies no more than rounding beside the nuisance."""
        return bool(np.trace(gram) <= (ROUNDING * np.finfo(float).eps) ** 2 * self.size)

    def _kernel(self) -> Array:
        """Inner products of all pairs of samples: for each group of blocks, a pass up to it."""
        kernel = np.empty((self.problem.n_samples,) * 2)
        for group in self._groups():
            held = {rows.start: (rows, self.read(rows)) for rows in group}
            for others in self.source.slices:
                if others.start > group[-1].start:
                    break
                other = held[others.start][1] if others.start in held else self.read(others)
                for rows, block in held.values():
                    if rows.start >= others.start:
                        kernel[rows, others] = block @ other.T
                        kernel[others, rows] = kernel[rows, others].T
        return kernel

    def _groups(self) -> list[list[slice]]:
        """Blocks that are held at one time: single ones, or of files what the budget allows."""
        in_memory = is_in_memory(self.source)
        room = 1 if in_memory else self.problem.projector.budget.batch // (8 * len(self.used))
        groups: list[list[slice]] = []
        for rows in self.source.slices:
            if groups and rows.stop - groups[-1][0].start <= room:
                groups[-1].append(rows)
            else:
                groups.append([rows])
        return groups
