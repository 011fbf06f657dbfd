"""Each proximal operator against a generic optimiser of its definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar

from pyfastr.baselines.proximal import (
    singular_value_threshold,
    soft_threshold,
    tubal_threshold,
    unfolding_threshold,
)


def optimise(objective, n_variables):
    start = np.random.default_rng(1).standard_normal(n_variables)
    return minimize(objective, start, method="BFGS", options={"gtol": 1e-7, "maxiter": 5000}).x


def nuclear_proximal(Z, threshold):
    """Minimise with ``V = LR'``: the nuclear norm is the least ``(‖L‖² + ‖R‖²)/2`` of all."""
    m, n = Z.shape
    k = min(m, n)

    def factors(x):
        return x[: m * k].reshape(m, k), x[m * k :].reshape(n, k)

    def objective(x):
        L, R = factors(x)
        return 0.5 * np.sum((L @ R.T - Z) ** 2) + 0.5 * threshold * np.sum(x**2)

    L, R = factors(optimise(objective, (m + n) * k))
    return L @ R.T


def tubal_proximal(Z, threshold):
    """The same for each slice after the transform of the last mode, L and R complex."""
    m, n, p = Z.shape
    k, n_slices = min(m, n), p // 2 + 1
    # Slices that stand for a conjugate pair count twice.
    pairs = np.array([1 if 2 * s in (0, p) else 2 for s in range(n_slices)])

    def tensor(x):
        real, imaginary = x.reshape(2, n_slices, m + n, k)
        LR = real + 1j * imaginary
        slices = LR[:, :m] @ LR[:, m:].conj().swapaxes(1, 2)
        return np.fft.irfft(np.moveaxis(slices, 0, -1), n=p, axis=-1)

    def objective(x):
        sizes = np.sum(x.reshape(2, n_slices, -1) ** 2, axis=(0, 2))
        return 0.5 * np.sum((tensor(x) - Z) ** 2) + 0.5 * threshold * (pairs @ sizes) / p

    return tensor(optimise(objective, 2 * n_slices * (m + n) * k))


@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.0])
def test_soft_threshold_minimises_its_objective(threshold):
    values = np.linspace(-2, 2, 9)
    expected = [
        minimize_scalar(lambda v, z=z: 0.5 * (v - z) ** 2 + threshold * abs(v), (-3, 3)).x
        for z in values
    ]
    assert_allclose(soft_threshold(values, threshold), expected, atol=1e-7)


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (4, 1)])
@pytest.mark.parametrize("threshold", [0.3, 1.5])
def test_singular_value_threshold_minimises_its_objective(shape, threshold):
    Z = np.random.default_rng(0).standard_normal(shape)
    result = singular_value_threshold(Z, threshold)
    assert_allclose(result, nuclear_proximal(Z, threshold), atol=1e-4)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_unfolding_threshold_minimises_its_objective(mode):
    tensors = np.random.default_rng(0).standard_normal((2, 3, 2, 2))
    result = unfolding_threshold(tensors, np.array([0.4, 1.2]), mode)
    for Z, V, threshold in zip(tensors, result, [0.4, 1.2], strict=True):
        front = np.moveaxis(Z, mode, 0)
        expected = nuclear_proximal(front.reshape(len(front), -1), threshold)
        assert_allclose(V, np.moveaxis(expected.reshape(front.shape), 0, mode), atol=1e-4)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("length", [2, 3])
def test_tubal_threshold_minimises_its_objective(mode, length):
    Z = np.random.default_rng(0).standard_normal((3, 2, length))
    placed = np.moveaxis(Z, 2, mode)
    result = tubal_threshold(placed[np.newaxis], np.array([0.8]), mode)[0]
    assert_allclose(np.moveaxis(result, mode, 2), tubal_proximal(Z, 0.8), atol=1e-4)


@pytest.mark.parametrize("shape", [(6, 6), (6, 11), (6, 40), (40, 6)])
@pytest.mark.parametrize("dtype", [float, complex])
def test_the_singular_values_are_the_thresholded_ones(shape, dtype):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((3, *shape)).astype(dtype)
    if dtype is complex:
        Z += 1j * rng.standard_normal(Z.shape)
    thresholds = np.array([0.0, 2.0, 100.0])
    left, values, right = np.linalg.svd(Z, full_matrices=False)
    kept = np.maximum(values - thresholds[:, np.newaxis], 0)
    expected = (left * kept[:, np.newaxis]) @ right
    assert_allclose(singular_value_threshold(Z, thresholds), expected, atol=1e-12)


def test_no_more_than_the_largest_singular_values_are_kept():
    Z = np.random.default_rng(0).standard_normal((5, 7))
    left, values, right = np.linalg.svd(Z, full_matrices=False)
    expected = (left[:, :2] * (values[:2] - 0.1)) @ right[:2]
    assert_allclose(singular_value_threshold(Z, 0.1, n_singular=2), expected, atol=1e-12)
    full = singular_value_threshold(Z, 0.1)
    assert_allclose(singular_value_threshold(Z, 0.1, n_singular=9), full, atol=1e-12)


def test_zero_stays_zero():
    zero = np.zeros((2, 3, 4, 5))
    thresholds = np.array([0.0, 1.0])
    assert_array_equal(unfolding_threshold(zero, thresholds, 1), zero)
    assert_array_equal(tubal_threshold(zero, thresholds, 1), zero)
