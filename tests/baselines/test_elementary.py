"""ElementaryRidge against its closed form and its linear program."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV

from pyfastr.baselines import ElementaryRidge, elementary_ridge_path, ridge
from pyfastr.datasets import make_tensor_regression

SHAPES = [(7,), (6, 5), (4, 3, 5), (3, 2, 4, 2)]
# Fewer samples than features, and more: the dual and the primal system.
SAMPLES = [5, 80]


def closed_form(X, y, threshold, eps):
    flat = X.reshape(len(X), -1)
    u = np.linalg.inv(flat.T @ flat + eps * np.eye(flat.shape[1])) @ flat.T @ y
    return (np.sign(u) * np.maximum(np.abs(u) - threshold, 0)).reshape(X.shape[1:])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_samples", SAMPLES)
@pytest.mark.parametrize(("threshold", "eps"), [(0.0, 0.1), (0.05, 1.0), (0.2, 10.0)])
def test_it_is_the_formula(shape, n_samples, threshold, eps):
    X, y = make_tensor_regression(n_samples, shape, random_state=0)
    model = ElementaryRidge(threshold, eps).fit(X, y)
    expected = closed_form(X, y, threshold, eps)
    assert_allclose(model.coef_, expected, rtol=1e-9, atol=1e-11)
    assert model.intercept_ == 0.0
    assert model.n_iter_ == 1
    assert model.tensor_shape_in_ == shape


@pytest.mark.parametrize("n_samples", SAMPLES)
def test_it_is_the_sparsest_within_the_threshold_of_the_ridge_solution(n_samples):
    X, y = make_tensor_regression(n_samples, (6, 5), random_state=0)
    distance = ElementaryRidge(0.05).fit(X, y).coef_ - closed_form(X, y, 0.0, 1.0)
    coef = ElementaryRidge(0.05).fit(X, y).coef_
    assert np.abs(distance).max() <= 0.05 + 1e-12
    # Where it is not zero it stands at the border nearest to zero, so no entry can shrink.
    assert_allclose(distance[coef != 0], -0.05 * np.sign(coef[coef != 0]), atol=1e-11)


@pytest.mark.parametrize("n_samples", SAMPLES)
def test_the_path_equals_single_fits(n_samples):
    X, y = make_tensor_regression(n_samples, (4, 3, 5), random_state=0)
    thresholds, ridges = [0.0, 0.1, 1.0], [1e-3, 0.1, 10.0, 1e4]
    coefs = elementary_ridge_path(X, y, thresholds=thresholds, ridges=ridges)
    assert coefs.shape == (3, 4, 4, 3, 5)
    for i, threshold in enumerate(thresholds):
        for j, eps in enumerate(ridges):
            expected = ElementaryRidge(threshold, eps).fit(X, y).coef_
            assert_allclose(coefs[i, j], expected, rtol=1e-7, atol=1e-10)


def test_the_intercept_takes_up_shifts():
    X, y = make_tensor_regression(60, (6, 5), random_state=0)
    model = ElementaryRidge(0.01, fit_intercept=True).fit(X, y)
    shifted = ElementaryRidge(0.01, fit_intercept=True).fit(X + 3.0, y - 7.0)
    assert_allclose(shifted.coef_, model.coef_, atol=1e-10)
    assert_allclose(shifted.predict(X + 3.0), model.predict(X) - 7.0, atol=1e-9)
    assert_allclose(model.predict(X).mean(), y.mean(), atol=1e-10)


def test_scaling_y_and_the_threshold_scales_the_coefficient():
    X, y = make_tensor_regression(20, (6, 5), random_state=0)
    one = ElementaryRidge(0.1).fit(X, y).coef_
    assert_allclose(ElementaryRidge(1.0).fit(X, 10 * y).coef_, 10 * one, rtol=1e-10)


def test_a_grid_search_runs_on_the_grid_of_the_class():
    X, y = make_tensor_regression(120, (5, 4), random_state=0)
    search = GridSearchCV(ElementaryRidge(), ElementaryRidge.param_grid_, cv=3).fit(X, y)
    assert search.best_score_ > 0.99


def test_x_is_not_written_and_float32_stays():
    X, y = make_tensor_regression(40, (6, 5), dtype=np.float32, random_state=0)
    before = X.copy()
    model = ElementaryRidge(fit_intercept=True).fit(X, y)
    assert_array_equal(X, before)
    assert model.coef_.dtype == model.predict(X).dtype == np.float32


def test_a_gram_matrix_beyond_memory_is_refused(monkeypatch):
    X, y = make_tensor_regression(20, (6, 5), random_state=0)
    monkeypatch.setattr(ridge, "MAX_GRAM_SIDE", 19)
    expected = r"20 × 20, and its limit is 19\. Use fewer samples, or VectorizedLasso"
    with pytest.raises(ValueError, match=expected):
        ElementaryRidge().fit(X, y)
    with pytest.raises(ValueError, match=expected):
        elementary_ridge_path(X, y, thresholds=[0.1], ridges=[1.0])


@pytest.mark.parametrize(
    ("thresholds", "ridges", "message"),
    [
        ([-1.0], [1.0], r"thresholds has -1.0; expected finite numbers, at least 0"),
        ([0.1], [1.0, 0.0], r"ridges has 0.0; expected finite numbers, greater than 0"),
        ([np.nan], [1.0], "thresholds has nan"),
        ([], [1.0], r"thresholds has shape \(0,\); expected a list of at least one"),
        (0.1, [1.0], r"thresholds has shape \(\)"),
    ],
)
def test_bad_values_of_a_path_are_named(thresholds, ridges, message):
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    with pytest.raises(ValueError, match=message):
        elementary_ridge_path(X, y, thresholds=thresholds, ridges=ridges)


def test_a_ridge_lost_in_rounding_is_told():
    X, y = np.ones((6, 2, 2)), np.arange(6.0)
    with pytest.raises(ValueError, match="ridge=1e-200 is too small"):
        ElementaryRidge(ridge=1e-200).fit(X, y)
    with pytest.raises(ValueError, match=r"ridges has 1e-200, too small beside X"):
        elementary_ridge_path(X, y, thresholds=[0.1], ridges=[1.0, 1e-200])


def test_numbers_whose_squares_overflow_are_refused():
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    with pytest.raises(ValueError, match=r"whose squares overflow.*scale near 1"):
        ElementaryRidge().fit(1e200 * X, y)


def test_a_coefficient_beyond_its_type_is_refused():
    X, y = make_tensor_regression(40, (4, 3), dtype=np.float32, random_state=0)
    with pytest.raises(ValueError, match=r"ElementaryRidge overflowed.*scale near 1"):
        ElementaryRidge(ridge=1e-30).fit(1e-15 * X, 1e30 * y.astype(float))


def test_nan_is_named_with_its_place():
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    X[7, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN: first at sample 7, element \(2, 1\)"):
        ElementaryRidge().fit(X, y)
