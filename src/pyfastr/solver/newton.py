"""One update of a loss that is not quadratic: a Newton step, as far as the loss falls."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.penalties import Penalty
from pyfastr.solver.problem import Problem
from pyfastr.solver.update import ridge_solution

Array = NDArray[Any]

# Steps that raise the objective are halved up to so many times.
HALVINGS = 8


def newton_step(
    problem: Problem, features: Array, old: Array, task: Array, penalty: Penalty
) -> Array:
    """Step from old vectors ``(K, q)`` towards the ridge solution of the loss.

    The ridge is relative to the samples' curvature where nothing is known, as that of samples the
    model is sure of vanishes.
    """
    observed = problem.observed(task)

    def mean_loss(w: Array) -> Array:
        return observed.mean_loss(observed.predictor((features @ w[:, :, None])[..., 0]))

    old = observed.loss.begin(old, mean_loss)
    predictor = observed.predictor((features @ old[:, :, None])[..., 0])
    curvature, response = observed.loss.working(observed.target, predictor)
    Q, z = problem.whiten(features, response / observed.scale, task, curvature)
    weights = curvature if observed.weights is None else curvature * observed.weights
    at_rest = observed.loss.curvature_at_rest(observed.target, observed.weights)
    eased = penalty.eased(at_rest / np.mean(weights, axis=1))
    trace = np.einsum("kni,kni->k", Q, Q) / features.shape[2]
    amount = eased.ridge * trace * observed.scale[:, 0] ** 2

    def objective(w: Array) -> Array:
        return mean_loss(w) * problem.n_samples + amount * np.sum(w**2, axis=1) / 2

    return shortened(old, ridge_solution(Q, z, eased), objective)


def shortened(old: Array, new: Array, objective: Callable[[Array], Array]) -> Array:
    """Go from old to new vectors ``(K, q)``, halving the steps of those whose objective rises."""
    before = objective(old)
    length = np.ones((len(old), 1))
    for _ in range(HALVINGS):
        trial = old + length * (new - old)
        rises = objective(trial) > before + 1e-12 * np.abs(before)
        if not rises.any():
            return trial
        length[rises] /= 2
    return np.where(rises[:, None], old, trial)
