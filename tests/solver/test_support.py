"""Refits on a support, and the support with the most evidence."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.datasets import make_tensor_regression
from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.problem import make_problem
from pyfastr.solver.support import hop, refit, thin_supports
from pyfastr.solver.sweep import run_sweeps
from pyfastr.sources import ArraySource

POLICY = SearchPolicy()
CASES = [((9, 8), 60), ((6, 5, 5), 60), ((4, 5, 3, 4), 60)]


def draw(shape, n_samples, seed):
    """A problem whose coefficient has half of each component zero and no tiny entry beside."""
    rng = np.random.default_rng(seed)
    components = []
    for p in shape:
        w = rng.choice([-1, 1], size=p) * (0.5 + rng.random(p))
        w[rng.permutation(p)[: p // 2]] = 0
        components.append(w[None, None] / np.linalg.norm(w))
    truth = Models(components, np.ones((1, 1)))
    X, _ = make_tensor_regression(n_samples, shape, random_state=seed)
    signal = X.reshape(n_samples, -1) @ truth.coefficient().ravel()
    problem = make_problem(
        ArraySource(X), signal + 0.02 * rng.normal(size=n_samples), x_scale=1.0, fit_intercept=True
    )
    return X, problem, truth


@pytest.mark.parametrize(("shape", "n_samples"), CASES)
def test_a_refit_is_least_squares_on_the_same_support(naive, shape, n_samples):
    X, problem, truth = draw(shape, n_samples, 0)
    rng = np.random.default_rng(1)
    shaken = [c * (1 + 0.2 * rng.normal(size=c.shape)) for c in truth.components]
    found = refit(problem, Models(shaken, truth.scales), 1e-9, 100, 1e-5, POLICY)
    X, y = X - X.mean(axis=0), problem.samples.response[0]
    residual = y - X.reshape(n_samples, -1) @ found.coefficient().ravel()
    for mode, component in enumerate(found.components):
        used = truth.components[mode][0, 0] != 0
        assert_array_equal(component[0, 0] != 0, used)
        P = naive.project(X, found.components, mode)[0, 0][:, used]
        assert_allclose(P.T @ residual, 0, atol=1e-6 * np.linalg.norm(P.T @ y))


def test_a_refit_has_the_ridge_of_as_many_parameters():
    rng = np.random.default_rng(0)
    X, used, ridge = rng.normal(size=(80, 8, 8)), np.array([1, 2, 5, 6]), 0.5
    y = X[:, 1, 2] - X[:, 5, 6] + rng.normal(size=80)
    small = X[:, used][:, :, used].copy()
    problem, alone = (
        make_problem(ArraySource(A), y, x_scale=1.0, fit_intercept=True) for A in (X, small)
    )
    start = Models.random(1, 1, (4, 4), rng)
    wide = [np.zeros((1, 1, 8)) for _ in range(2)]
    for component, own in zip(wide, start.components, strict=True):
        component[..., used] = own
    found = refit(problem, Models(wide, start.scales), ridge, 200, 1e-7, POLICY)
    # 7 of 15 parameters are left, two spared, and 4 of the 8 entries that a ridge is relative to.
    own = Penalty(ridge * (5 / 13) ** 2 * 4 / 8)
    expected = run_sweeps(alone, start, own, max_iter=200, tol=1e-7)[0]
    assert_allclose(found.coefficient()[np.ix_(used, used)], expected.coefficient(), rtol=1e-5)


def test_a_refit_of_one_entry_is_least_squares():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4, 5))
    y = 3 + 0.5 * X[:, 1, 2] + rng.normal(size=60)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    one = Models([np.eye(4)[None, [1]], np.eye(5)[None, [2]]], np.ones((1, 1)))
    found = refit(problem, one, 10.0, 20, 1e-9, POLICY)
    slope = np.polyfit(X[:, 1, 2], y, 1)[0]
    assert_allclose(found.coefficient()[1, 2] * problem.y_scale, slope, rtol=1e-9)


@pytest.mark.parametrize("n_samples", [12, 60])
def test_a_refit_of_few_entries_is_finite_whatever_the_samples(n_samples):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 40, 3))
    # Two entries that are the same in all samples.
    X[:, 1] = X[:, 0]
    y = X[:, 0, 2] + 0.1 * rng.normal(size=n_samples)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    rows = [np.eye(40)[[0]] + np.eye(40)[[1]], np.eye(40)[[7]]]
    models = Models([np.stack(rows), np.tile(np.eye(3)[2], (2, 1, 1))], np.ones((2, 1)))
    for ridge in (0.0, 1e-5, 10.0):
        found = refit(problem, models, ridge, 20, 1e-9, POLICY)
        assert all(np.isfinite(c).all() for c in found.components)
        assert np.isfinite(found.scales).all()


@pytest.mark.parametrize(("shape", "n_samples"), CASES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_support_of_the_truth_has_the_most_evidence(shape, n_samples, seed):
    _, problem, truth = draw(shape, n_samples, seed)
    rng = np.random.default_rng(seed)
    # Near the truth, and anywhere.
    near = [c + 0.05 * rng.normal(size=c.shape) for c in truth.components]
    candidates = Models.concatenate([Models(near, truth.scales), Models.random(3, 1, shape, rng)])
    found = thin_supports(problem, candidates, 1e-5, POLICY).best().models
    assert len(found) == 1
    for component, true in zip(found.components, truth.components, strict=True):
        used = (component != 0)[0, 0]
        # None of the true entries is lost, and at most one false entry is left in a mode.
        assert used[true[0, 0] != 0].all()
        assert used.sum() <= np.count_nonzero(true) + 1
    cosine = np.sum(found.coefficient() * truth.coefficient()) / np.linalg.norm(found.coefficient())
    assert abs(cosine) > 0.999


@pytest.mark.parametrize("seed", [0, 4])
def test_hops_find_the_support_that_thinning_alone_misses(seed):
    _, problem, truth = draw((12, 12), 24, seed)
    rng = np.random.default_rng(0)
    models = Models.random(32, 1, problem.shape, rng)
    before = thin_supports(problem, models, 1e-5, POLICY)
    after = hop(problem, models, 1e-5, rng, POLICY)
    assert after.evidence.min() < before.evidence.min()
    for component, true in zip(after.best().models.components, truth.components, strict=True):
        assert_array_equal(component[0, 0] != 0, true[0, 0] != 0)
