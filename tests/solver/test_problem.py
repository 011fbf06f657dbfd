"""What is made of features and response: weights in, intercept and covariates out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.solver.problem import make_problem
from pyfastr.sources import ArraySource

N_SAMPLES, N_FEATURES = 40, 6
TASK = np.array([0, 0, 1, 2])


def folds(rng):
    """Weights of three tasks that leave samples out."""
    weights = np.ones((3, N_SAMPLES))
    for task in range(3):
        weights[task, rng.permutation(N_SAMPLES)[:10]] = 0
    return weights


WEIGHTS = {
    "none": lambda rng: None,
    "folds": folds,
    "weighted folds": lambda rng: folds(rng) * rng.uniform(0.5, 2, (3, N_SAMPLES)),
}


def draw(kind, n_covariates, *, shift=0.0, fit_intercept=True):
    """A problem of three tasks and features of four models."""
    rng = np.random.default_rng(0)
    problem = make_problem(
        ArraySource(rng.normal(size=(N_SAMPLES, 3, 2))),
        rng.normal(size=(3, N_SAMPLES)),
        x_scale=1.0,
        fit_intercept=fit_intercept,
        sample_weight=WEIGHTS[kind](rng),
        covariates=rng.normal(size=(N_SAMPLES, n_covariates)) if n_covariates else None,
    )
    return problem, rng.normal(size=(len(TASK), N_SAMPLES, N_FEATURES)) + shift


def both_ways(problem, features, weights=None):
    """The normal equations, and the products of whitened features that they stand for."""
    response = problem.of(problem.response, TASK)
    Q, z = problem.whiten(features, response, TASK, weights)
    expected = Q.transpose(0, 2, 1) @ Q, (z[:, None] @ Q)[:, 0]
    return problem.normal_equations(features, response, TASK, weights), expected


# A shift of 1e6 is an intercept in whose products nothing else would be left.
@pytest.mark.parametrize("shift", [0.0, 3.0, 1e6])
@pytest.mark.parametrize("n_covariates", [0, 2])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_normal_equations_are_products_of_whitened_features(kind, n_covariates, shift):
    problem, features = draw(kind, n_covariates, shift=shift)
    for weights in (None, np.random.default_rng(1).exponential(size=features.shape[:2])):
        (gram, moment), (gram_too, moment_too) = both_ways(problem, features, weights)
        assert_allclose(gram, gram_too, rtol=1e-10, atol=1e-10 * np.abs(gram_too).max())
        assert_allclose(moment, moment_too, rtol=1e-10, atol=1e-10 * np.abs(moment_too).max())


def test_normal_equations_need_no_nuisance():
    problem, features = draw("folds", 0, fit_intercept=False)
    (gram, moment), (gram_too, moment_too) = both_ways(problem, features)
    assert_allclose(gram, gram_too, rtol=1e-12, atol=1e-12)
    assert_allclose(moment, moment_too, rtol=1e-12, atol=1e-12)


def test_features_that_an_intercept_explains_leave_nothing():
    problem, features = draw("folds", 0)
    constant = np.full_like(features, 1 / 3)
    gram, moment = problem.normal_equations(constant, problem.response[TASK], TASK)
    assert_array_equal(gram, 0)
    assert_array_equal(moment, 0)
    # One of several as well: rounding must not look like a small feature.
    features[:, :, 2] = 1e3
    gram, moment = problem.normal_equations(features, problem.response[TASK], TASK)
    assert_allclose(gram[:, 2], 0, atol=1e-12)
    assert_allclose(moment[:, 2], 0, atol=1e-12)


@pytest.mark.parametrize("kind", ["folds", "weighted folds"])
def test_samples_without_weight_do_not_change_a_bit_of_normal_equations(kind):
    problem, features = draw(kind, 2)
    one = np.array([1])
    wild = features.copy()
    wild[:, problem.weights[1] == 0] = 1e9
    before, after = (
        problem.normal_equations(some[:1], problem.response[one], one) for some in (features, wild)
    )
    assert_array_equal(before[0], after[0])
    assert_array_equal(before[1], after[1])


@pytest.mark.parametrize("kind", WEIGHTS)
def test_misfit_is_what_the_best_multiple_of_a_fit_leaves(kind):
    problem, _ = draw(kind, 0)
    fitted = np.random.default_rng(2).normal(size=(len(TASK), N_SAMPLES)) + problem.response[TASK]
    found = problem.misfit(fitted, TASK)
    for k, task in enumerate(TASK):
        g = np.ones(N_SAMPLES) if problem.weights is None else problem.weights[task]
        f = fitted[k] - np.average(fitted[k], weights=g)
        z = problem.response[task]
        best = (g * f * z).sum() / (g * f * f).sum()
        assert_allclose(found[k], (g * (z - best * f) ** 2).sum() / (g * z * z).sum(), rtol=1e-10)
    assert_allclose(problem.misfit(-7 * fitted, TASK), found, rtol=1e-10)


def test_misfit_of_nothing_is_all_there_is():
    problem, _ = draw("none", 0)
    assert_array_equal(problem.misfit(np.zeros((len(TASK), N_SAMPLES)), TASK), 1)
