"""FasTRRegressor: what the mathematics says of equal problems."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression

from pyfastr import FasTRRegressor

SHAPES = [(7,), (6, 5), (5, 4, 3), (3, 4, 2, 3)]
TENSORS = SHAPES[1:]
# Sweeps go on until only rounding is left, so that equal problems have equal answers.
EXACT = {"tol": 1e-7, "random_state": 0}


def assert_close(found, expected, tolerance=1e-6):
    """Equal up to a share of the largest entry."""
    assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("n_samples", [5, 80])
@pytest.mark.parametrize("threshold", [0.0, 0.2])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_samples_that_are_vectors_give_the_closed_form_of_ee_ridge(
    draw, n_samples, threshold, fit_intercept
):
    X, y, _ = draw((7,), n_samples)
    model = FasTRRegressor(threshold, 0.1, fit_intercept=fit_intercept).fit(X, y)
    centre = X.mean(axis=0) if fit_intercept else np.zeros(7)
    mean = y.mean() if fit_intercept else 0.0
    gram = (X - centre).T @ (X - centre)
    epsilon = 0.1 * np.trace(gram) / 7
    u = np.linalg.solve(gram + epsilon * np.eye(7), (X - centre).T @ (y - mean))
    w = np.sign(u) * np.maximum(np.abs(u) - threshold * np.abs(u).max(), 0)
    assert_allclose(model.coef_, w, rtol=1e-10, atol=1e-12)
    assert_allclose(model.intercept_, mean - centre @ w, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", TENSORS)
@pytest.mark.parametrize("threshold", [0.0, 0.1])
def test_the_factors_are_a_fixed_point_of_the_papers_update(draw, shape, threshold):
    X, y, _ = draw(shape)
    model = FasTRRegressor(threshold, 0.01, **EXACT).fit(X, y)
    again = FasTRRegressor(threshold, 0.01, init=model.factors_, **EXACT).fit(X, y)
    assert again.n_iter_ <= 3
    assert_close(again.coef_, model.coef_)


@pytest.mark.parametrize("order", [(1, 0), (2, 0, 1), (1, 2, 0), (3, 1, 0, 2)])
@pytest.mark.parametrize("parameters", [{}, {"threshold": 0.1, "ridge": 0.1}])
def test_permuting_the_modes_permutes_the_factors(draw, order, parameters):
    shape = TENSORS[len(order) - 2]
    X, y, _ = draw(shape)
    model = FasTRRegressor(**parameters, **EXACT).fit(X, y)
    permuted = FasTRRegressor(**parameters, **EXACT)
    permuted.fit(X.transpose(0, *(m + 1 for m in order)), y)
    for factor, m in zip(permuted.factors_, order, strict=True):
        sign = np.sign(factor[:, 0] @ model.factors_[m][:, 0])
        assert_close(factor * sign, model.factors_[m], 1e-5)
    # Ridge and threshold shrink each mode's solution by its own amount, and the mode that is
    # updated last gives W its scale.
    if not parameters:
        assert_close(permuted.coef_, model.coef_.transpose(order), 1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("a", "c"), [(2.0**40, 2.0**-70), (1e-3, 1e7), (-3.0, 1.0), (1.0, -1.0)])
def test_units_of_x_and_y_scale_coefficient_and_intercept(draw, shape, a, c):
    X, y, _ = draw(shape)
    model = FasTRRegressor(**EXACT).fit(X, y)
    scaled = FasTRRegressor(**EXACT).fit(a * X, c * y)
    assert_close(scaled.coef_, model.coef_ * (c / a))
    assert scaled.intercept_ == pytest.approx(c * model.intercept_, rel=1e-6)
    assert_close(scaled.predict(a * X), c * model.predict(X))
    assert_close(scaled.history_["loss"][-1:], c**2 * model.history_["loss"][-1:])


def test_a_y_whose_square_is_infinite_can_be_fitted(draw):
    X, y, _ = draw((6, 5))
    model = FasTRRegressor(**EXACT).fit(X, y)
    huge = FasTRRegressor(**EXACT).fit(X, 1e200 * y)
    assert_close(huge.coef_, 1e200 * model.coef_)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("a", [1e-150, 1e150])
@pytest.mark.parametrize("c", [1e-150, 1.0, 1e150])
def test_extreme_units_are_units_like_others(draw, shape, a, c):
    X, y, _ = draw(shape)
    model = FasTRRegressor(n_init=4, **EXACT).fit(X, y)
    scaled = FasTRRegressor(n_init=4, **EXACT).fit(a * X, c * y)
    assert_close(scaled.coef_ * a / c, model.coef_)
    assert scaled.intercept_ == pytest.approx(c * model.intercept_, rel=1e-6)
    assert_close(scaled.predict(a * X), c * model.predict(X))
    assert np.isfinite(scaled.history_["loss"]).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_constants_added_to_y_or_x_move_only_the_intercept(draw, shape):
    X, y, _ = draw(shape)
    model = FasTRRegressor(**EXACT).fit(X, y)
    more = FasTRRegressor(**EXACT).fit(X, y + 100)
    assert_close(more.coef_, model.coef_)
    assert more.intercept_ == pytest.approx(model.intercept_ + 100)
    array = 10 * np.random.default_rng(1).normal(size=shape)
    moved = FasTRRegressor(**EXACT).fit(X + array, y)
    assert_close(moved.coef_, model.coef_)
    assert moved.intercept_ == pytest.approx(model.intercept_ - np.sum(array * model.coef_))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("refit_support", [False, True])
def test_whole_weights_equal_repeated_samples(starts_of, draw, shape, refit_support):
    X, y, _ = draw(shape, 100)
    weights = np.random.default_rng(1).integers(0, 4, size=100)
    # What has no weight is not there, however wrong it may be.
    y[weights == 0] = 1e20
    options = {"refit_support": refit_support, "threshold": 0.05} | EXACT
    if len(shape) > 1:
        options["init"] = starts_of(shape)
    weighted = FasTRRegressor(**options).fit(X, y, sample_weight=weights)
    repeated = FasTRRegressor(**options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_close(weighted.coef_, repeated.coef_)
    assert weighted.intercept_ == pytest.approx(repeated.intercept_)
    assert weighted.history_["loss"][-1] == pytest.approx(repeated.history_["loss"][-1])


@pytest.mark.parametrize("shape", TENSORS)
def test_whole_weights_equal_repeated_samples_also_after_a_search(draw, shape):
    X, y, _ = draw(shape, 100)
    weights = np.random.default_rng(1).integers(0, 4, size=100)
    weighted = FasTRRegressor(**EXACT).fit(X, y, sample_weight=weights)
    repeated = FasTRRegressor(**EXACT).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_close(weighted.coef_, repeated.coef_, 1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_equal_weights_are_none(draw, shape):
    X, y, _ = draw(shape)
    plain = FasTRRegressor(random_state=0).fit(X, y)
    weighted = FasTRRegressor(random_state=0).fit(X, y, sample_weight=np.full(80, 7.0))
    assert_array_equal(weighted.coef_, plain.coef_)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [True, False])
def test_covariates_equal_partialling_out(draw, shape, weighted):
    X, y, _ = draw(shape)
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(80, 2)) + X.reshape(80, -1)[:, :2]
    weights = rng.random(80) if weighted else None
    y = y + Z @ [3.0, -2.0]
    model = FasTRRegressor(**EXACT).fit(X, y, sample_weight=weights, covariates=Z)
    nuisance = LinearRegression().fit(Z, np.c_[y, X.reshape(80, -1)], sample_weight=weights)
    rest = np.c_[y, X.reshape(80, -1)] - nuisance.predict(Z)
    bare = FasTRRegressor(fit_intercept=False, **EXACT)
    bare.fit(rest[:, 1:].reshape(X.shape), rest[:, 0], sample_weight=weights)
    assert_close(model.coef_, bare.coef_)
    # What is left is fitted by the covariates alone, without penalty.
    fitted = X.reshape(80, -1) @ model.coef_.ravel()
    left = LinearRegression().fit(Z, y - fitted, sample_weight=weights)
    assert_allclose(model.covariate_coef_, left.coef_, rtol=1e-6)
    assert model.intercept_ == pytest.approx(left.intercept_)
    assert_close(model.predict(X, Z), fitted + left.predict(Z))


def test_covariates_that_repeat_the_intercept_do_no_harm(draw):
    X, y, _ = draw((6, 5))
    plain = FasTRRegressor(**EXACT).fit(X, y)
    Z = np.c_[np.ones(80), np.ones(80), np.zeros(80)]
    model = FasTRRegressor(**EXACT).fit(X, y, covariates=Z)
    assert_close(model.coef_, plain.coef_)
    assert_close(model.predict(X, Z), plain.predict(X))
