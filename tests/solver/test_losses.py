"""Losses against their derivatives, and what is profiled out of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.metrics import log_loss, mean_poisson_deviance

from pyfastr.solver.losses import LOGISTIC, LOSSES, POISSON, SQUARED, Observed

NAMES = sorted(LOSSES)


def targets(name, n_models=3, n_samples=40, seed=0):
    rng = np.random.default_rng(seed)
    predictor = rng.normal(size=(n_models, n_samples))
    draw = {
        "squared": lambda: predictor + rng.normal(size=predictor.shape),
        "logistic": lambda: (rng.random(predictor.shape) < expit(predictor)).astype(float),
        "poisson": lambda: rng.poisson(np.exp(predictor)).astype(float),
    }
    return draw[name](), predictor


def observed(name, n_columns=2, weighted=True, seed=0):
    """Targets beside an intercept and covariates, orthonormal in the weights, and fitted values."""
    target, _ = targets(name, seed=seed)
    rng = np.random.default_rng(seed + 1)
    weights = rng.integers(0, 3, target.shape).astype(float) if weighted else np.ones(target.shape)
    C = np.stack([orthonormal(n_columns, g, rng) for g in weights])
    ones = np.ones((len(target), 1))
    fitted = rng.normal(size=target.shape)
    return Observed(LOSSES[name], target, C, weights if weighted else None, ones), fitted


def orthonormal(n_columns, g, rng):
    columns = np.column_stack([np.ones(len(g)), rng.normal(size=(len(g), n_columns - 1))])
    _, R = np.linalg.qr(columns * np.sqrt(g)[:, None])
    return columns @ np.linalg.inv(R)


@pytest.mark.parametrize("name", NAMES)
def test_slope_and_curvature_are_those_of_the_mean_and_the_variance(name):
    loss, (target, predictor), step = LOSSES[name], targets(name), 1e-4
    below, at, above = (loss.losses(target, predictor + s * step) for s in (-1, 0, 1))
    mean = loss.mean(predictor)
    assert_allclose((above - below) / (2 * step), mean - target, atol=1e-7)
    assert_allclose((above - 2 * at + below) / step**2, loss.variance(mean), atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_working_response_is_a_newton_step(name):
    loss, (target, predictor) = LOSSES[name], targets(name)
    curvature, response = loss.working(target, predictor)
    assert_allclose(curvature * (response - predictor), target - loss.mean(predictor), atol=1e-12)


def test_losses_are_those_of_scikit_learn():
    labels, predictor = targets("logistic", 1)
    assert_allclose(
        LOGISTIC.losses(labels, predictor).mean(), log_loss(labels[0], expit(predictor[0]))
    )
    counts, predictor = targets("poisson", 1)
    expected = mean_poisson_deviance(counts[0], np.exp(predictor[0]))
    assert_allclose(2 * POISSON.losses(counts, predictor).mean(), expected)
    assert_allclose(POISSON.deviance(counts, predictor), expected * counts.size)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("name", ["logistic", "poisson"])
def test_the_offset_minimises_the_loss(name, n_columns, weighted):
    seen, fitted = observed(name, n_columns, weighted)
    found = seen.mean_loss(seen.predictor(fitted))
    for k, C in enumerate(seen.nuisance):
        g = np.ones(len(C)) if seen.weights is None else seen.weights[k]

        def mean_loss(gamma, k=k, C=C, g=g):
            return np.mean(g * seen.loss.losses(seen.target[k], fitted[k] + C @ gamma))

        best = minimize(mean_loss, np.zeros(n_columns), method="BFGS", options={"gtol": 1e-8})
        assert found[k] <= best.fun + 1e-9
        assert_allclose(found[k], best.fun, rtol=1e-6)


@pytest.mark.parametrize("far", [-300.0, -8.0, 8.0, 300.0])
def test_an_intercept_of_counts_is_found_however_far_away(far):
    seen, fitted = observed("poisson", 1)
    assert_allclose(seen.predictor(fitted + far), seen.predictor(fitted), atol=1e-8)
    total = np.sum(seen.weights * POISSON.mean(seen.predictor(fitted + far)), axis=1)
    assert_allclose(total, np.sum(seen.weights * seen.target, axis=1))


@pytest.mark.parametrize("far", [-6.0, 6.0])
def test_covariates_of_counts_are_found_from_far_away(far):
    seen, fitted = observed("poisson", 3)
    away = fitted + far * seen.nuisance[:, :, 1] / np.abs(seen.nuisance[:, :, 1]).max()
    assert_allclose(seen.predictor(away), seen.predictor(fitted), atol=1e-6)


def test_the_scale_is_that_of_fitted_values():
    seen, fitted = observed("poisson", 2)
    tenth = Observed(seen.loss, seen.target, seen.nuisance, seen.weights, 0.1 * np.ones((3, 1)))
    assert_allclose(tenth.predictor(10 * fitted), seen.predictor(fitted))
    assert_allclose(tenth.offset(10 * fitted), seen.offset(fitted))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_of_counts_are_positive_and_finite(dtype):
    predictor = np.array([-1e30, -500.0, 0.0, 500.0, 1e30], dtype)
    mean = POISSON.mean(predictor)
    assert mean.dtype == dtype
    assert (mean > 0).all()
    assert np.isfinite(mean**2).all()
    assert np.isfinite(POISSON.losses(np.ones(5), predictor)).all()


def test_zeros_alone_leave_an_offset_that_is_finite():
    ones = np.ones((1, 1))
    seen = Observed(POISSON, np.zeros((1, 9)), np.full((1, 9, 1), 1 / 3), None, ones)
    assert np.isfinite(seen.predictor(np.arange(9.0)[None])).all()
    assert (POISSON.mean(seen.predictor(np.arange(9.0)[None])) < 1e-3).all()


def test_the_search_for_starts_does_not_see_units_of_counts_nor_the_null_model():
    y, C = targets("poisson", 2, 60)[0], np.full((2, 60, 1), 60**-0.5)
    response = POISSON.start(y, C, None)
    assert_allclose(POISSON.start(1000 * y, C, None), response, atol=1e-9)
    assert np.isfinite(response).all()
    # A model that is right in the mean has nothing to seek.
    assert_allclose(POISSON.start(np.full((2, 60), 3.0), C, None), 0, atol=1e-9)


def test_what_a_loss_takes_for_y():
    y = np.array([0.0, 2.0, -1.0, -3.0])
    assert SQUARED.flaw_of(y, None) == LOGISTIC.flaw_of(y, None) == ""
    assert POISSON.flaw_of(y, None) == (
        "y holds -1 at sample 2; expected counts of 0 or more for loss='poisson'. Use "
        "loss='squared' for such data."
    )
    assert POISSON.flaw_of(np.abs(y), None) == ""
    assert POISSON.flaw_of(np.abs(y), np.array([1.0, 1.0, 0.0, 0.0])) == ""
    assert POISSON.flaw_of(np.abs(y), np.array([1.0, 0.0, 0.0, 0.0])) == (
        "y holds 0 for all samples that count; expected at least one count above 0 for "
        "loss='poisson'. Check y and sample_weight."
    )
    assert POISSON.flaw_of(np.array([1.0, 1e100]), None) == ""
    assert POISSON.flaw_of(np.array([1.0, 2e100, 1.5e100]), None) == (
        "y holds 2e+100 at sample 1; expected counts up to 1e+100 for loss='poisson'. Rescale y, "
        "which moves only the intercept."
    )
    assert_array_equal(LOGISTIC.target(np.array([-1.0, 1.0])), [0, 1])


def test_curvature_at_rest_is_the_mean_variance_where_nothing_is_known():
    counts, weights = np.array([[1.0, 3.0], [0.0, 8.0]]), np.array([[1.0, 2.0], [0.0, 4.0]])
    assert SQUARED.curvature_at_rest(counts, None) == 1.0
    assert_array_equal(SQUARED.curvature_at_rest(counts, weights), [1.5, 2.0])
    assert LOGISTIC.curvature_at_rest(counts, None) == 0.25
    assert_array_equal(LOGISTIC.curvature_at_rest(counts, weights), [0.375, 0.5])
    assert_array_equal(POISSON.curvature_at_rest(counts, None), [2.0, 4.0])
    assert_array_equal(POISSON.curvature_at_rest(counts, weights), [3.5, 16.0])


def test_losses_are_read_in_units_of_y():
    loss = np.array([4.0, 9.0])
    assert_allclose(SQUARED.in_units_of_y(loss, 3.0), 9 * loss)
    assert np.isinf(SQUARED.in_units_of_y(loss, 1e200)).all()
    assert_array_equal(LOGISTIC.in_units_of_y(loss, 3.0), loss)
    assert_array_equal(POISSON.in_units_of_y(loss, 3.0), 2 * loss)


def test_steps_are_taken_whole_as_far_as_they_can_be_trusted():
    sizes = np.array([0.0, 1.0, 4.0, 16.0])
    assert_allclose(LOGISTIC.trusted_share(sizes), [1.0, 1.0, 1.0, 0.25])
    assert_allclose(POISSON.trusted_share(sizes[1:]), np.log1p(sizes[1:]) / sizes[1:])
    assert POISSON.trusted_share(np.array([1e-12]))[0] == pytest.approx(1)


def test_labels_keep_their_units_and_responses_are_of_size_one():
    response, scales = np.array([[0.5, -0.5], [1.0, 3.0]]), np.array([2.0, 10.0])
    own, units = LOGISTIC.rescaled(response, scales)
    assert_array_equal(own, [[1.0, -1.0], [10.0, 30.0]])
    assert_array_equal(units, [1.0, 1.0])
    for loss in (SQUARED, POISSON):
        same, kept = loss.rescaled(response, scales)
        assert_array_equal(same, response)
        assert_array_equal(kept, scales)


def test_counts_are_equal_if_they_differ_by_rounding():
    assert POISSON.are_equal(np.full(3, 7.0))
    assert POISSON.are_equal(np.array([7.0, 7.0 + 1e-8]))
    assert not POISSON.are_equal(np.array([7.0, 7.0 + 1e-6]))
    assert not POISSON.are_equal(np.array([0.0, 1.0]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_offsets_of_counts_begin_at_the_level_that_makes_means_equal(n_columns, weighted):
    seen, fitted = observed("poisson", n_columns, weighted)
    first = POISSON.first_offset(seen.target, fitted, seen.nuisance, seen.weights)
    assert_allclose(first, np.broadcast_to(first[:, :1], first.shape))
    g = np.ones(fitted.shape) if seen.weights is None else seen.weights
    total = np.sum(g * np.exp(fitted + first), axis=1)
    assert_allclose(total, np.sum(g * seen.target, axis=1))


def test_offsets_begin_at_zero_where_there_is_no_intercept():
    seen, fitted = observed("poisson", 3)
    rest = seen.nuisance[:, :, 1:]
    assert not POISSON.first_offset(seen.target, fitted, rest, seen.weights).any()
    assert not LOGISTIC.first_offset(seen.target, fitted, seen.nuisance, None).any()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_columns", [1, 2])
def test_the_offset_of_squares_is_a_projection(n_columns, weighted):
    seen, fitted = observed("squared", n_columns, weighted)
    found = seen.offset(fitted)
    for k, C in enumerate(seen.nuisance):
        g = np.ones(len(C)) if seen.weights is None else seen.weights[k]
        # The columns are orthonormal in the weights.
        assert_allclose(found[k], C @ (C.T @ (g * (seen.target[k] - fitted[k]))), atol=1e-12)


def test_fitted_values_that_went_astray_are_no_place_to_begin():
    seen, fitted = observed("poisson", 1)
    fitted[1] = 400 * np.arange(fitted.shape[1]) / fitted.shape[1]
    fitted[2] = np.log(seen.target[2] + 1e-3)
    assert POISSON.is_worth_keeping(seen, fitted).tolist()[1:] == [False, True]
    assert LOGISTIC.is_worth_keeping(seen, fitted).tolist() == [True] * 3
