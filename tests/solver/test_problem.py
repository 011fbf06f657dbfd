"""What is made of features, fits and response: weights in, intercept and covariates out."""

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
    """A problem of three tasks, features of four models, and what is not to count."""
    rng = np.random.default_rng(0)
    covariates = rng.normal(size=(N_SAMPLES, n_covariates))
    problem = make_problem(
        ArraySource(rng.normal(size=(N_SAMPLES, 3, 2))),
        rng.normal(size=(3, N_SAMPLES)),
        x_scale=1.0,
        fit_intercept=fit_intercept,
        sample_weight=WEIGHTS[kind](rng),
        covariates=covariates if n_covariates else None,
    )
    features = rng.normal(size=(len(TASK), N_SAMPLES, N_FEATURES)) + shift
    nuisance = np.hstack([np.ones((N_SAMPLES, int(fit_intercept))), covariates])
    return problem, features, nuisance


def weights_of(problem, task):
    """The weights of a task, all 1 where there are none."""
    given = problem.samples.weights
    return np.ones(N_SAMPLES) if given is None else given[task]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shift", [0.0, 3.0, 1e6])
@pytest.mark.parametrize("n_covariates", [0, 2])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_whitening_partials_out_and_weighs(naive, kind, n_covariates, shift, fit_intercept):
    problem, features, nuisance = draw(kind, n_covariates, shift=shift, fit_intercept=fit_intercept)
    response = problem.samples.response_of(TASK)
    further = np.random.default_rng(1).exponential(size=features.shape[:2])
    # Of features a million times as large as what is left, as many digits are lost.
    tolerance = 1e-12 * max(1, shift)
    for extra in (None, further):
        Q, z = problem.whiten(features, response, TASK, extra)
        for k, task in enumerate(TASK):
            g = weights_of(problem, task) * (1 if extra is None else extra[k])
            expected = naive.partial_out(features[k], response[k], nuisance, g)
            assert_allclose(Q[k], expected[0], rtol=0, atol=tolerance)
            assert_allclose(z[k], expected[1], rtol=0, atol=1e-12)


def test_features_that_an_intercept_explains_leave_nothing():
    problem, features, _ = draw("folds", 0)
    constant = np.full_like(features, 1 / 3)
    Q, _ = problem.whiten(constant, problem.samples.response[TASK], TASK)
    assert_array_equal(Q, 0)
    # One of several as well: rounding must not look like a small feature.
    features[:, :, 2] = 1e3
    Q, _ = problem.whiten(features, problem.samples.response[TASK], TASK)
    assert_allclose(Q[:, :, 2], 0, atol=1e-12)


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("n_covariates", [0, 2])
def test_residuals_are_what_nuisance_and_fit_leave(naive, kind, n_covariates):
    problem, _, nuisance = draw(kind, n_covariates)
    fitted = np.random.default_rng(2).normal(size=(len(TASK), N_SAMPLES))
    found, losses = problem.residuals(fitted, TASK), problem.losses_of(fitted, TASK)
    for k, task in enumerate(TASK):
        z = problem.samples.response[task] - fitted[k]
        g = weights_of(problem, task)
        _, expected = naive.partial_out(np.ones((N_SAMPLES, 1)), z, nuisance, g)
        assert_allclose(found[k], expected, rtol=0, atol=1e-12)
        assert_allclose(losses[k], np.mean(expected**2), rtol=1e-12)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_misfit_is_what_the_best_multiple_of_a_fit_leaves(kind):
    problem, *_ = draw(kind, 0)
    response = problem.samples.response[TASK]
    fitted = np.random.default_rng(2).normal(size=response.shape) + response
    found = problem.misfits_of(fitted, TASK)
    for k, task in enumerate(TASK):
        g, z = weights_of(problem, task), response[k]
        f = fitted[k] - np.average(fitted[k], weights=g)
        best = (g * f * z).sum() / (g * f * f).sum()
        assert_allclose(found[k], (g * (z - best * f) ** 2).sum() / (g * z * z).sum(), rtol=1e-10)
    assert_allclose(problem.misfits_of(-7 * fitted, TASK), found, rtol=1e-10)


def test_misfit_of_nothing_is_all_there_is():
    problem, *_ = draw("none", 0)
    assert_array_equal(problem.misfits_of(np.zeros((len(TASK), N_SAMPLES)), TASK), 1)
