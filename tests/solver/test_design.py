import tracemalloc

import numpy as np
import pytest

from pyfastr.config import config_context
from pyfastr.solver.design import Design, designs
from pyfastr.solver.models import Models
from pyfastr.solver.problem import make_problem
from pyfastr.sources import as_source

SHAPE = (5, 4, 3)


def problem_of(rng, n=40, shape=SHAPE, **options):
    X, y = rng.normal(size=(n, *shape)), rng.normal(size=n)
    return make_problem(as_source(X), y, x_scale=1.0, **{"fit_intercept": True} | options), X


def tangent(X, models):
    """Derivatives of fitted values in all entries of one model, by their definition."""
    N, columns = len(X), []
    for m, component in enumerate(models.components):
        for r in range(models.n_terms):
            for j in range(component.shape[2]):
                others = [c[0, r] for c in models.components]
                others[m] = np.eye(component.shape[2])[j]
                direction = others[0]
                for vector in others[1:]:
                    direction = np.multiply.outer(direction, vector)
                columns.append(X.reshape(N, -1) @ direction.reshape(-1))
    return np.array(columns).T


@pytest.mark.parametrize("n_terms", [1, 2])
def test_without_a_ridge_leverage_is_that_of_least_squares_on_the_tangent(n_terms):
    rng = np.random.default_rng(0)
    problem, X = problem_of(rng, 60)
    models = Models.random(1, n_terms, SHAPE, rng)
    (design,) = designs(problem, models, 0.0)
    A = np.column_stack([np.ones(60), tangent(X, models)])
    hat = A @ np.linalg.pinv(A)
    np.testing.assert_allclose(design.leverage, np.diag(hat), atol=1e-6)
    # Each term has one scale for all its modes.
    assert design.n_effective == pytest.approx(n_terms * (sum(SHAPE) - 2) + 1, abs=1e-5)


def test_fewer_samples_than_entries_are_all_decided_by_themselves():
    rng = np.random.default_rng(0)
    problem, _ = problem_of(rng, 6)
    (design,) = designs(problem, Models.random(1, 1, SHAPE, rng), 0.0)
    np.testing.assert_allclose(design.leverage, 1, atol=1e-6)


def test_a_ridge_takes_parameters_away():
    rng = np.random.default_rng(0)
    problem, _ = problem_of(rng)
    models = Models.random(1, 1, SHAPE, rng)
    left = [designs(problem, models, ridge)[0].n_effective for ridge in (0.0, 0.1, 10.0, 1e6)]
    assert left == sorted(left, reverse=True)
    assert left[-1] == pytest.approx(1, abs=1e-3)


def test_only_entries_of_the_support_take_parameters():
    rng = np.random.default_rng(0)
    problem, _ = problem_of(rng)
    models = Models.random(1, 1, SHAPE, rng)
    models = models.replace(0, np.eye(5)[2][None, None])
    (design,) = designs(problem, models, 0.0)
    assert design.n_effective == pytest.approx(4 + 3 - 1 + 1, abs=1e-5)


def test_samples_without_weight_decide_nothing_and_weights_count_as_repeats():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4, 3)), rng.normal(size=30)
    weights = np.repeat([0.0, 1.0, 2.0], 10)
    repeats = np.repeat(np.arange(30), weights.astype(int))
    models = Models.random(1, 1, (4, 3), rng)
    weighed = make_problem(as_source(X), y, x_scale=1.0, fit_intercept=True, sample_weight=weights)
    repeated = make_problem(as_source(X[repeats]), y[repeats], x_scale=1.0, fit_intercept=True)
    (one,), (other,) = designs(weighed, models, 0.3), designs(repeated, models, 0.3)
    np.testing.assert_allclose(one.leverage[:10], 0, atol=1e-12)
    np.testing.assert_allclose(
        one.leverage, np.bincount(repeats, other.leverage, minlength=30), atol=1e-9
    )


def test_the_slices_that_are_most_alike_are_named():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 5, 4)), rng.normal(size=50)
    X[:, 3] = 2 * X[:, 1] + 1e-4 * rng.normal(size=(50, 4))
    problem = make_problem(as_source(X), y, x_scale=1.0, fit_intercept=True)
    models = Models.random(1, 1, (5, 4), rng)
    (design,) = designs(problem, models, 0.0)
    assert sorted(design.alike[0].tolist()) == [1, 3]
    assert design.correlation[0] > 0.999
    P = X.transpose(0, 2, 1) @ models.components[0][0, 0][:, None]
    expected = np.abs(np.corrcoef(P[..., 0].T)) - np.eye(4)
    assert design.correlation[1] == pytest.approx(expected.max())


@pytest.mark.parametrize("p", [600, 1100, 6000])
def test_modes_of_many_slices_are_compared_in_parts(p):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, p))
    pair = (p - 40, p - 39)
    X[:, pair[0]] = X[:, pair[1]] + 1e-6 * rng.normal(size=30)
    problem = make_problem(as_source(X), rng.normal(size=30), x_scale=1.0, fit_intercept=True)
    tracemalloc.start()
    (design,) = designs(problem, Models.random(1, 1, (p,), rng), 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tuple(design.alike[0]) == pair
    assert design.correlation[0] > 0.999
    assert peak < 8 * (20 * 30 * p + 3 * 512 * min(p, 5000)) + 1e6


def test_slices_that_do_not_vary_are_like_none():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2, 3)), rng.normal(size=20)
    X[:, 1] = 1.0
    problem = make_problem(as_source(X), y, x_scale=1.0, fit_intercept=True)
    (design,) = designs(problem, Models.random(1, 1, (2, 3), rng), 0.1)
    assert design.alike[0].tolist() == [-1, -1]
    assert design.correlation[0] == 0


def test_the_mean_of_designs_keeps_the_most_alike_pair_of_any():
    first = Design(np.array([0.0, 1.0]), 1.0, np.array([[0, 1], [2, 3]]), np.array([0.2, 0.9]))
    other = Design(np.array([1.0, 1.0]), 2.0, np.array([[1, 2], [0, 1]]), np.array([0.5, 0.1]))
    mean = Design.mean_of([first, other])
    assert mean.leverage.tolist() == [0.5, 1.0]
    assert mean.n_effective == 1.5
    assert mean.alike.tolist() == [[1, 2], [2, 3]]
    assert mean.correlation.tolist() == [0.5, 0.9]


def test_it_takes_one_pass_and_keeps_to_the_memory_budget():
    rng = np.random.default_rng(0)
    problem, _ = problem_of(rng)
    before = problem.engine.passes
    designs(problem, Models.random(1, 1, SHAPE, rng), 0.1)
    assert problem.engine.passes == before + 1
    with config_context(memory_budget="16MB"):
        large, _ = problem_of(rng, 16_000)
        assert designs(large, Models.random(1, 1, SHAPE, rng), 0.1) is None
