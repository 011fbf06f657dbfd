"""The soft threshold and the curvature of penalties against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from pyfastr.solver.penalties import Penalty


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.7, 0.99])
def test_the_soft_threshold_minimises_distance_and_l1_norm(threshold):
    u = np.random.default_rng(0).normal(size=8)
    cost = threshold * np.abs(u).max()

    def objective(parts):
        # |x| = a + b for x = a - b with a, b >= 0 turns the norm into a smooth function.
        a, b = parts.reshape(2, -1)
        residual = a - b - u
        value = 0.5 * residual @ residual + cost * (a + b).sum()
        return value, np.concatenate([residual + cost, cost - residual])

    best = minimize(
        objective, np.ones(16), jac=True, bounds=[(0, None)] * 16, options={"ftol": 0, "gtol": 1e-9}
    )
    a, b = best.x.reshape(2, -1)
    found = Penalty(0.0, threshold).shrink(u)
    assert_allclose(found, a - b, atol=1e-6)
    # Optimality: u - x is a subgradient of the norm at x.
    assert_allclose((u - found)[found != 0], cost * np.sign(found[found != 0]), atol=1e-15)
    assert (np.abs(u - found)[found == 0] <= cost).all()


def test_the_threshold_is_a_share_of_each_vectors_largest_entry():
    vectors = np.random.default_rng(0).normal(size=(2, 3, 7))
    largest = np.abs(vectors).max(axis=-1)
    penalty = Penalty(0.0, 0.25)
    found = penalty.shrink(vectors)
    assert_allclose(np.abs(found).max(axis=-1), 0.75 * largest, rtol=1e-14)
    assert_array_equal(found == 0, np.abs(vectors) <= 0.25 * largest[..., None])
    assert_allclose(penalty.shrink(1e9 * vectors), 1e9 * found, rtol=1e-12)
    assert_array_equal(penalty.shrink(np.zeros(3)), 0)


def test_each_model_has_its_own_threshold_ridge_and_support():
    rng = np.random.default_rng(0)
    vectors, masks = rng.normal(size=(3, 6)), [rng.random((3, 2, 3)) < 0.5]
    ridges, thresholds = np.array([0.1, 1.0, 0.0]), np.array([0.0, 0.2, 0.9])
    gram = np.stack([v[:, None] * v + np.eye(6) for v in vectors])
    all_of_them = Penalty(ridges, thresholds, masks)
    for k in range(3):
        alone = Penalty(ridges[k], thresholds[k])
        assert_array_equal(all_of_them.shrink(vectors)[k], alone.shrink(vectors[k]))
        assert all_of_them.curvature(gram, 6)[k] == alone.curvature(gram[k : k + 1], 6)[0]
        assert_array_equal(all_of_them.take(slice(k, k + 1)).mask(0)[0], masks[0][k].ravel())
    assert Penalty(0.1).mask(0) is None


def test_the_curvature_is_a_share_of_the_mean_diagonal():
    gram = np.diag([1.0, 2.0, 6.0])[None]
    assert_allclose(Penalty(0.5).curvature(gram, 3), [1.5])
    assert_allclose(Penalty(0.5).eased(0.1).curvature(gram, 3), [0.15])
    # What rounding would drown is raised above it, and nothing to fit has the solution zero.
    assert 1e-14 < Penalty(0.0).curvature(gram, 3)[0] < 1e-11
    assert_array_equal(Penalty(0.5).curvature(0 * gram, 3), [1.0])
