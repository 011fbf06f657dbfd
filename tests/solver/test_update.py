"""The ridge of one update against its definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.solver.penalties import Penalty
from pyfastr.solver.update import ridge_solution


def draw(n_samples, n_features, n_models=3):
    rng = np.random.default_rng(n_samples)
    return rng.normal(size=(n_models, n_samples, n_features)), rng.normal(size=(3, n_samples))


@pytest.mark.parametrize(("n_samples", "n_features"), [(12, 5), (5, 5), (5, 12), (1, 3), (7, 1)])
@pytest.mark.parametrize("ridge", [1e-3, 0.5, 20.0])
def test_the_ridge_solution_is_its_closed_form_in_features_and_in_samples(
    n_samples, n_features, ridge
):
    Q, z = draw(n_samples, n_features)
    found = ridge_solution(Q, z, Penalty(ridge))
    for u, A, b in zip(found, Q, z, strict=True):
        epsilon = ridge * np.trace(A.T @ A) / n_features
        primal = np.linalg.solve(A.T @ A + epsilon * np.eye(n_features), A.T @ b)
        dual = A.T @ np.linalg.solve(A @ A.T + epsilon * np.eye(n_samples), b)
        assert_allclose(u, primal, rtol=1e-9, atol=1e-12)
        assert_allclose(u, dual, rtol=1e-9, atol=1e-12)


def test_models_may_share_a_response_and_differ_in_their_ridge():
    Q, z = draw(9, 4)
    ridges = np.array([1e-2, 1.0, 7.0])
    found = ridge_solution(Q, z[:1], Penalty(ridges))
    alone = [ridge_solution(A[None], z[:1], Penalty(r))[0] for A, r in zip(Q, ridges, strict=True)]
    assert_allclose(found, alone, rtol=1e-12)


@pytest.mark.parametrize("n_samples", [3, 20])
def test_the_ridge_is_free_of_units(n_samples):
    Q, z = draw(n_samples, 6)
    expected = ridge_solution(Q, z, Penalty(0.3))
    assert_allclose(ridge_solution(1e-4 * Q, 1e5 * z, Penalty(0.3)), 1e9 * expected, rtol=1e-9)


@pytest.mark.parametrize("n_samples", [3, 20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_features_no_solution(n_samples, dtype):
    Q, z = np.zeros((2, n_samples, 6), dtype), np.ones((2, n_samples), dtype)
    assert_array_equal(ridge_solution(Q, z, Penalty(0.1)), 0)
    assert_array_equal(ridge_solution(Q, z, Penalty(0.0)), 0)


@pytest.mark.parametrize("n_samples", [3, 20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_ridge_dependent_features_still_give_the_least_squares_fit(n_samples, dtype):
    Q, z = draw(n_samples, 3)
    # Orthonormal, so that the ridge which rounding needs shrinks all directions alike.
    Q, z = np.linalg.qr(Q)[0].astype(dtype), z.astype(dtype)
    Q = np.concatenate([Q, Q, 0 * Q], axis=2)
    found = ridge_solution(Q, z, Penalty(0.0))
    assert np.isfinite(found).all()
    for u, A, b in zip(found, Q, z, strict=True):
        best = A @ np.linalg.lstsq(A, b, rcond=1e-6)[0]
        assert_allclose(A @ u, best, atol=3 * np.finfo(dtype).eps ** 0.75 * np.abs(b).max())
