"""The joint polish ends where the alternating updates stand still."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.datasets import make_tensor_regression
from pyfastr.solver.models import Models, relative_change
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.polish import Step, polish
from pyfastr.solver.problem import make_problem
from pyfastr.solver.sweep import cyclic_sweep
from pyfastr.sources import ArraySource

POLICY = SearchPolicy()
SHAPES = [(6, 5), (5, 4, 3), (3, 4, 2, 3)]


def draw(shape, *, n_terms=1, n_models=6, n_samples=60, **options):
    """A problem with a solution, and random starts."""
    X, y, W = make_tensor_regression(n_samples, shape, n_terms=n_terms, coef=True, random_state=0)
    source = ArraySource(X, block_bytes=8000)
    options = {"fit_intercept": True, **options}
    problem = make_problem(source, y / W.std() + 1, x_scale=1.0, **options)
    return X, problem, Models.random(n_models, n_terms, shape, np.random.default_rng(0))


@pytest.mark.parametrize(("shape", "n_terms"), [*((s, 1) for s in SHAPES), ((6, 5), 2)])
@pytest.mark.parametrize("weighted", [True, False])
def test_without_ridge_a_sweep_changes_nothing_where_it_ends(shape, n_terms, weighted):
    weights = np.random.default_rng(1).random(100) if weighted else None
    _, problem, starts = draw(shape, n_terms=n_terms, n_samples=100, sample_weight=weights)
    found = polish(problem, starts, [Step(0.0)] * 200, POLICY)
    after, _ = cyclic_sweep(problem, found.models, Penalty(0.0))
    assert_allclose(relative_change(after, found.models), 0, atol=1e-6)
    assert_allclose(problem.losses(after), found.rss / 100, rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ridge", [1e-5, 1e-3, 0.1])
def test_a_sweep_of_the_same_ridge_changes_less_than_the_ridge_where_it_ends(shape, ridge):
    # Modes have ridges of their own, but share the length of W: no point suits all of them,
    # and alternating updates stop at one that the last mode prefers.
    _, problem, starts = draw(shape)
    found = polish(problem, starts, [Step(ridge)] * 100, POLICY)
    after, _ = cyclic_sweep(problem, found.models, Penalty(ridge))
    assert (relative_change(after, found.models) < ridge).all()


@pytest.mark.parametrize(("n_samples", "shape"), [(12, (9, 8)), (10, (6, 5, 4))])
def test_with_fewer_samples_than_entries_it_still_ends_where_a_sweep_stands_still(n_samples, shape):
    _, problem, starts = draw(shape, n_samples=n_samples)
    found = polish(problem, starts, [Step(0.1)] * 100, POLICY)
    after, _ = cyclic_sweep(problem, found.models, Penalty(0.1))
    assert (relative_change(after, found.models) < 0.1).all()
    assert np.isfinite(found.objective).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_gradient_is_zero_where_it_ends(naive, shape):
    X, problem, starts = draw(shape)
    found = polish(problem, starts, [Step(0.0)] * 100, POLICY)
    X, y = X - X.mean(axis=0), problem.samples.response[0]
    for k in range(len(starts)):
        residual = y - X.reshape(60, -1) @ found.models.coefficient(k).ravel()
        assert_allclose(found.rss[k], residual @ residual, rtol=1e-10)
        for mode in range(len(shape)):
            P = naive.project(X, [c[k : k + 1] for c in found.models.components], mode)[0, 0]
            size = np.linalg.norm(P.T @ y)
            assert_allclose(P.T @ residual, 0, atol=1e-6 * size)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_terms", [1, 2])
def test_more_steps_never_leave_larger_residuals(shape, n_terms):
    _, problem, starts = draw(shape, n_terms=n_terms)
    rss = [polish(problem, starts, [Step(0.0)] * n, POLICY).rss for n in range(1, 16)]
    assert (np.diff(rss, axis=0) <= 1e-12 * rss[0]).all()
    assert (rss[-1] < rss[0]).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_masked_entries_stay_zero_and_the_others_are_fitted(naive, shape):
    X, problem, starts = draw(shape, n_models=4)
    rng = np.random.default_rng(3)
    masks = [rng.random(c.shape) < 0.7 for c in starts.components]
    for mask in masks:
        mask[..., 0] = True
    found = polish(problem, starts, [Step(0.0)] * 200, POLICY, masks)
    X, y = X - X.mean(axis=0), problem.samples.response[0]
    for mode, (component, mask) in enumerate(zip(found.models.components, masks, strict=True)):
        assert_array_equal(component[~mask], 0)
        for k in range(4):
            residual = y - X.reshape(60, -1) @ found.models.coefficient(k).ravel()
            P = naive.project(X, [c[k : k + 1] for c in found.models.components], mode)[0, 0]
            size = np.linalg.norm(P.T @ y)
            assert_allclose((P.T @ residual)[mask[k, 0]], 0, atol=1e-6 * size)


@pytest.mark.parametrize("shape", SHAPES)
def test_models_do_not_know_of_each_other(shape):
    _, problem, starts = draw(shape)
    ridges = np.geomspace(1e-5, 1.0, 6)
    together = polish(problem, starts, [Step(ridges)] * 5, POLICY)
    for k in range(6):
        alone = polish(problem, starts.take(slice(k, k + 1)), [Step(ridges[k])] * 5, POLICY)
        one = together.take(np.array([k]))
        assert_allclose(relative_change(one.models, alone.models), 0, atol=1e-7)
        assert_allclose(one.rss, alone.rss, rtol=1e-8)
        assert_allclose(one.objective, alone.objective, rtol=1e-8)


def test_a_model_of_zeros_stays_finite():
    _, problem, starts = draw((6, 5))
    starts.scales[0] = 0
    found = polish(problem, starts, [Step(1e-5)] * 10, POLICY)
    assert np.isfinite(found.rss).all()
    assert all(np.isfinite(c).all() for c in found.models.components)
