"""EE-Ridge of vectors against its closed form."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.solver.penalties import Penalty
from pyfastr.solver.problem import make_problem
from pyfastr.solver.vector import VectorTask, refit_vectors, ridge_starts, shrunk
from pyfastr.sources import ArraySource


def draw(n_samples, n_features=9, dtype=float):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n_samples, n_features)) + 2).astype(dtype)
    return X, X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=n_samples)


def found_coefficient(X, y, ridge, threshold, used=None, block_bytes=100, **options):
    options = {"fit_intercept": True, **options}
    source = ArraySource(X, block_bytes=block_bytes)
    problem = make_problem(source, y, x_scale=float(np.abs(X).max()), **options)
    models = shrunk(VectorTask(problem).solutions([ridge], used), Penalty(ridge, threshold))
    return models.coefficient() * problem.y_scale[0] / problem.x_scale


def closed_form(X, y, ridge, threshold):
    gram = X.T @ X
    epsilon = ridge * np.trace(gram) / len(gram)
    u = np.linalg.solve(gram + epsilon * np.eye(len(gram)), X.T @ y)
    return np.sign(u) * np.maximum(np.abs(u) - threshold * np.abs(u).max(), 0)


@pytest.mark.parametrize("n_samples", [5, 9, 40])
@pytest.mark.parametrize("threshold", [0.0, 0.3])
@pytest.mark.parametrize("block_bytes", [1, 100, 1 << 20])
def test_it_is_the_thresholded_ridge_solution_of_centred_data(n_samples, threshold, block_bytes):
    X, y = draw(n_samples)
    found = found_coefficient(X, y, 0.1, threshold, block_bytes=block_bytes)
    expected = closed_form(X - X.mean(axis=0), y - y.mean(), 0.1, threshold)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_samples", [5, 40])
def test_weights_and_covariates(n_samples, naive):
    X, y = draw(n_samples)
    rng = np.random.default_rng(1)
    weights, Z = rng.random(n_samples), rng.normal(size=(n_samples, 2))
    found = found_coefficient(X, y, 0.1, 0.2, sample_weight=weights, covariates=Z)
    bare = naive.partial_out(X, y, np.c_[np.ones(n_samples), Z], weights)
    assert_allclose(found, closed_form(*bare, 0.1, 0.2), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n_samples", [3, 40])
def test_features_that_are_not_used_have_no_coefficient(n_samples):
    X, y = draw(n_samples)
    used = np.arange(9) % 2 == 0
    found = found_coefficient(X, y, 0.1, 0.0, used)
    bare = X[:, used] - X[:, used].mean(axis=0)
    assert_array_equal(found[~used], 0)
    assert_allclose(found[used], closed_form(bare, y - y.mean(), 0.1, 0.0), rtol=1e-10, atol=1e-12)
    assert_array_equal(found_coefficient(X, y, 0.1, 0.0, np.zeros(9, bool)), 0)


@pytest.mark.parametrize("n_samples", [5, 40])
def test_float32_keeps_its_precision(n_samples):
    X, y = draw(n_samples, dtype=np.float32)
    exact = X.astype(float)
    expected = closed_form(exact - exact.mean(axis=0), y - y.mean(), 0.1, 0.0)
    assert_allclose(found_coefficient(X, y, 0.1, 0.0), expected, atol=1e-5)


@pytest.mark.parametrize("n_samples", [5, 40])
def test_refits_are_ridge_solutions_of_the_features_that_are_left(n_samples):
    X, y = draw(n_samples)
    problem = make_problem(ArraySource(X), np.stack([y, y[::-1]]), x_scale=1.0, fit_intercept=True)
    thresholds, ridges = np.array([0.6, 0.0, 0.3, 0.1] * 2), np.array([0.1, 0.1, 1.0, 1.0] * 2)
    starts = ridge_starts(problem, [0.1, 1.0]).take(np.array([0, 0, 1, 1, 2, 2, 3, 3]))
    models = shrunk(starts, Penalty(ridges, thresholds))
    # In an order of their own, several tasks among each other.
    order = np.array([5, 0, 3, 6, 1, 2, 7, 4])
    found = refit_vectors(problem, models.take(order), ridges[order])
    assert_array_equal(found.task, models.task[order])
    for k, number in enumerate(order):
        used = models.coefficient(number) != 0
        target = (y, y[::-1])[number // 4]
        bare = X[:, used] - X[:, used].mean(axis=0)
        eased = ridges[number] * used.mean()
        expected = closed_form(bare, target - target.mean(), eased, 0.0)
        own = found.coefficient(k) * problem.y_scale[number // 4]
        assert_array_equal(own[~used], 0)
        assert_allclose(own[used], expected, rtol=1e-9, atol=1e-12)


class Counted(ArraySource):
    """Counts how often blocks are read."""

    n_reads = 0

    def read(self, rows):
        self.n_reads += 1
        return super().read(rows)


def test_x_is_read_no_more_often_for_more_ridges_and_thresholds():
    X, y = draw(40)
    n_reads = []
    for ridges, thresholds in (([0.1], [0.1]), ([0.1, 1.0, 10.0], np.linspace(0, 0.9, 9))):
        source = Counted(X)
        problem = make_problem(source, y, x_scale=1.0, fit_intercept=True)
        each = np.repeat(np.arange(len(ridges)), len(thresholds))
        ridge = np.repeat(ridges, len(thresholds))
        starts = ridge_starts(problem, ridges).take(each)
        models = shrunk(starts, Penalty(ridge, np.tile(thresholds, len(ridges))))
        refit_vectors(problem, models, ridge)
        n_reads.append(source.n_reads)
    assert n_reads[0] == n_reads[1] > 0
