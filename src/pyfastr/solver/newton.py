"""One update of a loss that is not quadratic: a Newton step, as far as the loss falls."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines import Projected
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.problem import Problem
from pyfastr.solver.update import ridge_solution, solve_regularised

Array = NDArray[Any]

# Steps that raise the objective are halved up to so many times.
HALVINGS = 8


def newton_step(
    problem: Problem,
    projected: Projected,
    old: Array,
    fitted: Array,
    task: Array,
    penalty: Penalty,
    mask: Array | None,
) -> Array:
    """Step from old vectors ``(K, q)``, with fitted values, towards the ridge solution of the loss.

    The ridge is relative to the samples' curvature where nothing is known, as that of samples the
    model is sure of vanishes.
    """
    observed = problem.observed(task)
    kept = observed.loss.is_worth_keeping(observed, fitted)[:, None]
    old, fitted = np.where(kept, old, 0.0), np.where(kept, fitted, 0.0)
    curvature, response = observed.loss.working(observed.target, observed.predictor(fitted))
    weights = curvature if observed.weights is None else curvature * observed.weights
    at_rest = observed.loss.curvature_at_rest(observed.target, observed.weights)
    eased = penalty.eased(at_rest / np.mean(weights, axis=1))
    response = response / observed.scale
    new, trace = _towards(problem, projected, curvature, response, task, eased, mask)
    amount = eased.ridge * trace / old.shape[1] * observed.scale[:, 0] ** 2
    ahead = projected.times(new)

    def objective(length: Array) -> Array:
        # Fitted values are linear in the vectors, so steps are tried without X.
        predictor = observed.predictor(fitted + length * (ahead - fitted))
        size = np.sum((old + length * (new - old)) ** 2, axis=1)
        return observed.mean_loss(predictor) * problem.n_samples + amount * size / 2

    return old + shortened(objective, len(old)) * (new - old)


def _towards(
    problem: Problem,
    projected: Projected,
    curvature: Array,
    response: Array,
    task: Array,
    penalty: Penalty,
    mask: Array | None,
) -> tuple[Array, Array]:
    """Ridge solution of the weighted least squares of a step, and the trace of its Gram matrix."""
    if projected.n_features > problem.n_samples:
        features = projected.whole() if mask is None else projected.whole() * mask[:, None]
        Q, z = problem.whiten(features, response, task, curvature)
        return ridge_solution(Q, z, penalty), np.einsum("kni,kni->k", Q, Q)
    gram, moment = projected.products(curvature, response)
    if mask is not None:
        gram, moment = gram * (mask[:, :, None] & mask[:, None, :]), moment * mask
    trace = np.einsum("kii->k", gram)
    return solve_regularised(gram, moment, penalty, gram.shape[1]), trace


def shortened(objective: Callable[[Array], Array], n_models: int) -> Array:
    """Return lengths ``(K, 1)`` of steps: 1, or halves of it where the objective rises."""
    length = np.ones((n_models, 1))
    before = objective(0 * length)
    for _ in range(HALVINGS):
        rises = objective(length) > before + 1e-12 * np.abs(before)
        if not rises.any():
            return length
        length[rises] /= 2
    return np.where(rises[:, None], 0.0, length)
