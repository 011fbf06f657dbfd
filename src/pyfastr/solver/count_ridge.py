"""Poisson regression of counts with a ridge on samples as vectors, for a grid of penalties."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.solving import solve
from pyfastr.solver.flat_ridge import FlatTask, size_of
from pyfastr.solver.losses import POISSON

Array = NDArray[Any]

# Newton steps of one penalty, and the change of a linear predictor that ends them.
MOST_STEPS, SMALL_STEP = 50, 1e-8


def features_of(products: Array) -> Array:
    """Return coordinates of the samples ``(n_samples, rank)`` that have these inner products."""
    values, vectors = np.linalg.eigh(products)
    kept = values > values.max(initial=0.0) * len(values) * np.finfo(float).eps
    features: Array = vectors[:, kept] * np.sqrt(values[kept])
    return features


def count_predictors(X: Array, task: FlatTask, alphas: Array) -> tuple[Array, Array]:
    """Return penalties ``(A,)`` and linear predictors ``(A, n_samples)`` of all samples.

    Each Newton step solves one system of the size of the features. The solution of a penalty is
    where the steps of the next smaller one begin.
    """
    own, y, g = task.without_nuisance(X), task.y[task.train], task.weights[task.train]
    total = g @ np.square(own[task.train]).sum(axis=1) * np.average(y, weights=g)
    penalties = alphas * size_of(total, task)
    columns = np.hstack([own, task.nuisance])
    coefficients = _first(columns, task)
    found = np.empty((len(alphas), len(columns)))
    for which in np.argsort(-alphas):
        ridge = np.repeat([penalties[which], 0.0], [own.shape[1], task.nuisance.shape[1]])
        coefficients = _newton(columns[task.train], y, g, ridge, coefficients)
        found[which] = columns @ coefficients
    return penalties, found


def _first(columns: Array, task: FlatTask) -> Array:
    """Return coefficients of a constant mean, if there is an intercept."""
    level = np.log(np.average(task.y, weights=task.weights))
    n_nuisance = task.nuisance.shape[1]
    constant = task.explaining.sum(axis=1)
    spans = np.allclose(task.nuisance[task.train] @ constant, 1)
    return np.concatenate([np.zeros(columns.shape[1] - n_nuisance), constant * level * spans])


def _newton(columns: Array, y: Array, g: Array, ridge: Array, coefficients: Array) -> Array:
    """Take damped Newton steps to the least penalised loss."""
    # Columns of the nuisance beyond its rank are zero.
    diagonal = np.diag(ridge + ~columns.any(axis=0))
    for _ in range(MOST_STEPS):
        mean = POISSON.mean(columns @ coefficients)
        slope = columns.T @ (g * (y - mean)) - ridge * coefficients
        curvature = (columns * (g * mean)[:, None]).T @ columns + diagonal
        step = solve(curvature[None], slope[None, :, None])[0, :, 0]
        size = np.abs(columns @ step).max()
        if size <= SMALL_STEP:
            break
        coefficients = coefficients + step * POISSON.trusted_share(size)
    return coefficients
