"""Models grown term by term, each begun where the samples point to."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.baselines.cp_ridge import Descent, GroupRidge
from pyfastr.engines import LocalEngine
from pyfastr.engines.contraction import project_own
from pyfastr.solver.models import Models, unit

Array = NDArray[Any]

# Power sweeps of a tensor end in local maxima, the best of so many seldom in a low one.
POWER_STARTS, POWER_SWEEPS = 10, 15


def grow(
    problem: GroupRidge, n_terms: int, rng: np.random.Generator, *, max_iter: int, tol: float
) -> Descent:
    """Add terms along what is left of the response, as long as each lowers the objective."""
    best = problem.minimise(
        leading_term(problem.engine, problem.response, rng), max_iter=max_iter, tol=tol
    )
    for _ in range(1, n_terms):
        if not best.models.scales.all():
            break
        added = leading_term(problem.engine, problem.residual(best.models), rng)
        new = problem.minimise(_side_by_side(best.models, added), max_iter=max_iter, tol=tol)
        if new.objectives[-1] >= (1 - tol) * best.objectives[-1]:
            break
        best = new
    return best


def leading_term(engine: LocalEngine, response: Array, rng: np.random.Generator) -> Models:
    """Return the direction of the best unit-rank approximation found of ``sum_i y_i X_i``.

    One pass over X; the power sweeps then work on an array of the size of a sample.
    """
    total = engine.weighted_sums(response[np.newaxis]).astype(np.float64, copy=False)
    rows = [unit(rng.standard_normal((POWER_STARTS, p)))[0] for p in engine.shape]
    sums = np.broadcast_to(total, (POWER_STARTS, 1, *engine.shape))
    for _ in range(POWER_SWEEPS):
        for mode in range(len(rows)):
            rows[mode], sizes = unit(project_own(sums, rows, mode)[:, 0])
    best = int(np.argmax(sizes))
    return Models([row[best].reshape(1, 1, -1) for row in rows], np.ones((1, 1)))


def _side_by_side(first: Models, second: Models) -> Models:
    """Join the terms of two models."""
    components = [
        np.concatenate(pair, axis=1)
        for pair in zip(first.components, second.components, strict=True)
    ]
    return Models(components, np.concatenate([first.scales, second.scales], axis=1))
