"""The logistic loss as weighted least squares, renewed at every update (IRLS)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[Any]

# A sample's share in the curvature never vanishes, however sure the model is of it.
SMALLEST_CURVATURE = 1e-5
OFFSET_STEPS, SMALL_OFFSET_STEP, LARGEST_OFFSET_STEP = 25, 1e-9, 4.0
# Newton steps that raise the loss are halved up to so many times.
HALVINGS = 8


def log_loss(labels: Array, decision: Array, weights: Array | None) -> Array:
    """Weighted mean of ``log(1 + exp(-label * decision))`` along the last axis."""
    losses = np.logaddexp(0, -labels * decision)
    return np.mean(losses if weights is None else losses * weights, axis=-1)


def working(labels: Array, decision: Array) -> tuple[Array, Array]:
    """Weights and response of the least squares that a Newton step solves."""
    probability = expit(decision)
    curvature = np.maximum(probability * (1 - probability), SMALLEST_CURVATURE)
    return curvature, decision + ((labels + 1) / 2 - probability) / curvature


def profiled_offset(labels: Array, fitted: Array, C: Array, weights: Array | None) -> Array:
    """Best contribution ``C @ gamma`` of intercept and covariates beside the fitted values.

    Parameters
    ----------
    labels, fitted : ndarray of shape (K or 1, n_samples), (K, n_samples)
    C : ndarray of shape (K or 1, n_samples, q)
    weights : ndarray of shape (K, n_samples) or None
    """
    offset = np.zeros_like(fitted)
    if not C.shape[2]:
        return offset
    for _ in range(OFFSET_STEPS):
        curvature, response = working(labels, fitted + offset)
        g = curvature if weights is None else curvature * weights
        weighted = (g[:, :, None] * C).transpose(0, 2, 1)
        gram = weighted @ C
        diagonal = np.arange(C.shape[2])
        gram[:, diagonal, diagonal] += gram[:, diagonal, diagonal] == 0
        gamma = np.linalg.solve(gram, weighted @ (response - fitted)[:, :, None])
        step = (C @ gamma)[..., 0] - offset
        size = np.abs(step if weights is None else step * (weights > 0)).max(axis=1, keepdims=True)
        if np.all(size <= SMALL_OFFSET_STEP):
            break
        # The quadratic model is true only nearby.
        offset = offset + step * np.minimum(1, LARGEST_OFFSET_STEP / np.maximum(size, 1e-300))
    return offset


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
