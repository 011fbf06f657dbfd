"""Samples that are vectors (M = 1): the update is the whole fit, and X is its own projection."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.equations import ROUNDING
from pyfastr.solver.journal import once
from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.polish import Polished
from pyfastr.solver.problem import Problem
from pyfastr.solver.support import Supported, evidence
from pyfastr.solver.update import solve_regularised

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
        by = _by_features if used.sum() <= problem.n_samples else _by_samples
        make = partial(by, problem, penalty, used)
        solution[used] = penalty.shrink(once("vector", make, problem.engine))
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
    rss = problem.engine.losses(models).rss
    n_free = np.count_nonzero(models.components[0], axis=(1, 2))
    merit = evidence(problem, Polished(models, rss, rss), n_free, policy)
    return Supported(models, merit).best()


def _by_features(problem: Problem, penalty: Penalty, used: Array) -> Array:
    """Solve in the space of features, from their Gram matrix."""
    nothing = Models([np.zeros((1, 1, len(used)))], np.zeros((1, 1)))
    found = problem.engine.mode_equations(nothing, 0)
    gram, moment = found.gram[:, used][:, :, used], found.moment[:, used]
    return solve_regularised(gram, moment, penalty, gram.shape[1])[0]


def _by_samples(problem: Problem, penalty: Penalty, used: Array) -> Array:
    """Solve in the space of samples, from the inner products of all pairs."""
    samples, engine = problem.samples, problem.engine
    weights = np.ones(len(samples)) if samples.weights is None else samples.weights[0]
    share = weights / weights.sum() * samples.has_intercept
    shift = engine.weighted_sums(share[None])[0].astype(float)
    products = engine.sample_products(used, shift)
    C, root = samples.nuisance[0], np.sqrt(weights)
    fit = (C * weights[:, None]).T
    left = products - C @ (fit @ products)
    kernel = root[:, None] * (left - (left @ fit.T) @ C.T) * root
    size = np.sum(np.diag(products) * (weights > 0))
    if np.trace(kernel) <= (ROUNDING * np.finfo(float).eps) ** 2 * size:
        return np.zeros(int(used.sum()))
    z = samples.response[:1] * root
    dual = solve_regularised(kernel[None], z, penalty, int(used.sum()))
    weighted = dual * root
    return engine.weighted_sums(weighted - (weighted @ C) @ fit)[0, used]
