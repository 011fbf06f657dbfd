"""The vectorised lasso and elastic net against scikit-learn's and the optimality conditions."""

import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, ElasticNetCV, Lasso, LassoCV
from sklearn.model_selection import KFold

from pyfastr.baselines import VectorizedElasticNet, VectorizedLasso, l1_path
from pyfastr.datasets import make_tensor_regression


@pytest.fixture(params=["sklearn", "celer"])
def solver(request):
    if request.param == "celer":
        pytest.importorskip("celer")
    return request.param


def largest_alpha(X, y):
    return np.abs(np.tensordot(y - y.mean(), X - X.mean(axis=0), 1)).max() / len(y)


@pytest.mark.parametrize(("shape", "n_samples"), [((7,), 30), ((8, 7), 20), ((4, 3, 5), 80)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("ratio", [1.0, 0.6])
def test_it_equals_scikit_learn(solver, shape, n_samples, fit_intercept, ratio):
    X, y = make_tensor_regression(n_samples, shape, random_state=0)
    X, y = X + 0.5, y + 2.0
    alpha = 0.1 * largest_alpha(X, y)
    common = {"fit_intercept": fit_intercept, "tol": 1e-12, "max_iter": 100_000}
    if ratio == 1:
        model, reference = VectorizedLasso(alpha, solver=solver, **common), Lasso(alpha, **common)
    else:
        model = VectorizedElasticNet(alpha, ratio, solver=solver, **common)
        reference = ElasticNet(alpha, l1_ratio=ratio, **common)
    model.fit(X, y)
    reference.fit(X.reshape(n_samples, -1), y)
    assert_allclose(model.coef_, reference.coef_.reshape(shape), atol=1e-5)
    assert_allclose(model.intercept_, reference.intercept_, atol=1e-5)
    assert (model.alpha_, model.l1_ratio_) == (alpha, ratio)
    assert model.n_iter_ >= 1


@pytest.mark.parametrize("ratio", [1.0, 0.3])
@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
def test_the_optimality_conditions_hold(convex, solver, share, ratio):
    X, y = make_tensor_regression(20, (6, 5), random_state=0)
    alpha = share * largest_alpha(X, y) / ratio
    model = VectorizedElasticNet(alpha, ratio, solver=solver, tol=1e-12, max_iter=100_000)
    residual = y - model.fit(X, y).predict(X)
    smooth = np.tensordot(residual, X, 1) / 20 - alpha * (1 - ratio) * model.coef_
    parts = [convex.l1_subdifferential(model.coef_, alpha * ratio)]
    assert convex.distance_to_sum(smooth, parts, 1e-6) < 1e-6
    assert_allclose(residual.mean(), 0, atol=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("shape", "n_samples"), [((5, 4), 60), ((8, 7), 20)])
def test_cross_validation_equals_that_of_scikit_learn(solver, shape, n_samples, fit_intercept):
    X, y = make_tensor_regression(n_samples, shape, random_state=0)
    X, y = X + 0.5, y + 2.0
    common = {"fit_intercept": fit_intercept, "tol": 1e-11, "max_iter": 100_000, "cv": 4}
    model = VectorizedLasso(solver=solver, n_alphas=20, **common).fit(X, y)
    reference = LassoCV(alphas=model.alphas_[0], **common).fit(X.reshape(n_samples, -1), y)
    assert_allclose(model.mse_path_[0], reference.mse_path_, rtol=1e-3)
    assert_allclose(model.alpha_, reference.alpha_)
    assert_allclose(model.coef_.ravel(), reference.coef_, atol=1e-4)
    centred = X.reshape(n_samples, -1) - fit_intercept * X.reshape(n_samples, -1).mean(axis=0)
    top = np.abs((y - fit_intercept * y.mean()) @ centred).max() / n_samples
    assert_allclose(model.alphas_[0], np.geomspace(top, top / 1000, 20))


def test_cross_validation_of_ratios_equals_that_of_scikit_learn(solver):
    X, y = make_tensor_regression(40, (6, 5), random_state=0)
    ratios = [0.2, 0.9, 1.0]
    common = {"l1_ratio": ratios, "tol": 1e-11, "max_iter": 100_000, "cv": KFold(3)}
    model = VectorizedElasticNet(solver=solver, n_alphas=15, **common).fit(X, y)
    reference = ElasticNetCV(alphas=model.alphas_[1], **common).fit(X.reshape(40, -1), y)
    assert_allclose(model.mse_path_[1], reference.mse_path_[1], rtol=1e-3)
    assert model.mse_path_.shape == (3, 15, 3)
    best = np.argwhere(model.mse_path_.mean(axis=2) == model.mse_path_.mean(axis=2).min())[0]
    assert model.alpha_ == model.alphas_[tuple(best)]
    assert model.l1_ratio_ == ratios[best[0]]


def test_scaling_y_and_the_penalty_scales_the_coefficient(solver):
    X, y = make_tensor_regression(20, (6, 5), random_state=0)
    alpha = 0.1 * largest_alpha(X, y)
    one = VectorizedLasso(alpha, solver=solver, tol=1e-12).fit(X, y).coef_
    ten = VectorizedLasso(10 * alpha, solver=solver, tol=1e-12).fit(X, 10 * y).coef_
    assert_allclose(ten, 10 * one, atol=1e-4)


@pytest.mark.parametrize("alpha", ["cv", 0.5])
def test_a_constant_response_gives_zero(solver, alpha):
    X, _ = make_tensor_regression(20, (6, 5), random_state=0)
    model = VectorizedLasso(alpha, solver=solver).fit(X, np.full(20, 3.0))
    assert_array_equal(model.coef_, np.zeros((6, 5)))
    assert_allclose(model.intercept_, 3.0)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("alpha", ["cv", 0.5])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_x_and_y_are_not_written(solver, order, alpha, fit_intercept):
    X, y = make_tensor_regression(20, (6, 5), random_state=0)
    X, y = np.array(X + 1.0, order=order), y + 1.0
    X.flags.writeable = y.flags.writeable = False
    before, y_before = X.copy(), y.copy()
    # Folds as slices, which are views of the samples.
    folds = [(slice(0, 10), slice(10, 20)), (slice(10, 20), slice(0, 10))]
    options = {"cv": folds, "solver": solver, "fit_intercept": fit_intercept}
    # More sweeps than the default: versions of scikit-learn without screening need them.
    VectorizedLasso(alpha, max_iter=10_000, **options).fit(X, y)
    assert_array_equal(X, before)
    assert_array_equal(y, y_before)


def test_float32_stays_float32(solver):
    X, y = make_tensor_regression(40, (6, 5), dtype=np.float32, random_state=0)
    model = VectorizedLasso(0.1, solver=solver).fit(X, y)
    assert model.coef_.dtype == model.predict(X).dtype == np.float32


def test_the_faster_solver_is_chosen(monkeypatch):
    monkeypatch.setattr(l1_path, "has_celer", lambda: True)
    assert l1_path.faster_solver(20, 400, 0.05, 1.0) == "celer"
    assert l1_path.faster_solver(20, 100, 0.05, 1.0) == "sklearn"
    assert l1_path.faster_solver(300, 400, 0.05, 1.0) == "sklearn"
    assert l1_path.faster_solver(20, 400, 0.9, 1.0) == "sklearn"
    assert l1_path.faster_solver(20, 400, 0.05, 0.3) == "sklearn"
    monkeypatch.setattr(l1_path, "has_celer", lambda: False)
    assert l1_path.faster_solver(20, 400, 0.05, 1.0) == "sklearn"


@pytest.mark.parametrize("share", [0.05, 0.9])
def test_the_choice_of_the_solver_does_not_matter(solver, share):
    X, y = make_tensor_regression(20, (20, 12), random_state=0)
    alpha = share * largest_alpha(X, y)
    params = {"tol": 1e-12, "max_iter": 100_000}
    expected = VectorizedLasso(alpha, solver=solver, **params).fit(X, y).coef_
    assert_allclose(VectorizedLasso(alpha, **params).fit(X, y).coef_, expected, atol=1e-4)


def test_a_solver_that_is_not_installed_is_named(monkeypatch):
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    monkeypatch.setitem(sys.modules, "celer", None)
    with pytest.raises(ImportError, match=r"pip install pyfastr\[baselines\]"):
        VectorizedLasso(0.1, solver="celer").fit(X, y)


@pytest.mark.parametrize("alpha", ["cv", 1e-4])
def test_one_warning_tells_of_all_fits_that_did_not_converge(solver, alpha):
    X, y = make_tensor_regression(30, (6, 5), random_state=0)
    model = VectorizedLasso(alpha, solver=solver, max_iter=1, tol=1e-14)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert [w.category for w in caught] == [ConvergenceWarning] * (2 if alpha == "cv" else 1)
    assert "raise `max_iter` or `tol`" in str(caught[0].message)
    assert all(w.filename == __file__ for w in caught)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": 0.0}, "'alpha' parameter of VectorizedElasticNet"),
        ({"alpha": "best"}, "'alpha' parameter of VectorizedElasticNet"),
        ({"solver": "lars"}, "'solver' parameter of VectorizedElasticNet"),
        ({"l1_ratio": 0.0}, "'l1_ratio' parameter of VectorizedElasticNet"),
        ({"l1_ratio": [0.5, 0.0]}, r"l1_ratio has 0\.0; expected finite numbers, greater than 0"),
        ({"l1_ratio": [0.5, 2.0]}, r"l1_ratio has 2\.0; expected at most 1"),
        ({"alpha": 1.0, "l1_ratio": [0.5, 0.9]}, 'expected one. Give one, or alpha="cv"'),
        ({"cv": 50}, "n_splits=50 greater than the number of samples"),
    ],
)
def test_bad_parameters_are_named(params, message):
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    with pytest.raises(ValueError, match=message):
        VectorizedElasticNet(**params).fit(X, y)


def test_nan_is_named_with_its_place():
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    X[7, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN: first at sample 7, element \(2, 1\)"):
        VectorizedLasso().fit(X, y)
