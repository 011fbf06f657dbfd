"""Remurs against the outputs of its authors' code and the optimality conditions."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import loadmat
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV

from pyfastr.baselines import Remurs, remurs_path, ridge, spectral
from pyfastr.datasets import make_tensor_regression

DATA = Path(__file__).parents[1] / "data"
SHAPES = ["6x5x4", "8x7"]
# The last row of a fixture: the authors' code ends at its first iterate, which is zero.
ZERO_ROW = 5


def load(name):
    fixture = loadmat(DATA / f"{name}.mat")
    return np.moveaxis(fixture["X"], -1, 0), fixture["y"].ravel(), fixture


def fit_silently(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def objective(W, X, y, alpha, beta):
    residual = y - X.reshape(len(X), -1) @ W.ravel()
    unfoldings = [np.moveaxis(W, m, 0).reshape(W.shape[m], -1) for m in range(W.ndim)]
    nuclear = np.mean([np.linalg.norm(matrix, "nuc") for matrix in unfoldings])
    return 0.5 * residual @ residual + alpha * nuclear + beta * np.abs(W).sum()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("kind", "n_singular"), [("fullsvd", None), ("top6", 6)])
@pytest.mark.parametrize("row", range(5))
def test_it_equals_the_authors_code(shape, kind, n_singular, row):
    X, y, fixture = load(f"remurs_{kind}_{shape}")
    alpha, beta, tol, max_iter = fixture["params"][row]
    model = Remurs(alpha, beta, n_singular=n_singular, max_iter=int(max_iter), tol=tol)
    fit_silently(model, X, y)
    assert_allclose(model.coef_, fixture["W_hat"][0, row], rtol=0, atol=1e-8)
    assert model.n_iter_ == fixture["n_iter"][0, row]
    assert model.converged_ == (model.n_iter_ < max_iter)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_goes_on_where_the_authors_code_divides_zero_by_zero(shape):
    X, y, fixture = load(f"remurs_fullsvd_{shape}")
    alpha, beta, tol, max_iter = fixture["params"][ZERO_ROW]
    first = fit_silently(Remurs(alpha, beta, max_iter=1), X, y)
    assert_array_equal(first.coef_, fixture["W_hat"][0, ZERO_ROW])
    assert fixture["n_iter"][0, ZERO_ROW] == 1
    model = Remurs(alpha, beta, max_iter=int(max_iter), tol=tol).fit(X, y)
    assert model.converged_
    better, worse = (objective(m.coef_, X, y, alpha, beta) for m in (model, first))
    assert better < 0.99 * worse


@pytest.mark.parametrize("shape", [(7,), (6, 5), (4, 3, 3), (2, 2, 3, 2)])
@pytest.mark.parametrize("n_samples", [12, 60])
@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.02), (0.4, 0.1), (0.0, 0.1), (0.2, 0.0)])
def test_the_optimality_conditions_hold(convex, shape, n_samples, alpha, beta):
    X, y = make_tensor_regression(n_samples, shape, random_state=0)
    # In these units the step of 1 makes for few iterations.
    X, y = X / np.sqrt(n_samples), 3 * y / np.linalg.norm(y)
    model = Remurs(alpha, beta, tol=1e-9, max_iter=10_000).fit(X, y)
    W = model.coef_
    gradient = np.tensordot(y - model.predict(X), X, 1)

    def unfolded(mode):
        front = np.moveaxis(W, mode, 0)
        project = convex.nuclear_subdifferential(front.reshape(len(front), -1), alpha / W.ndim)
        return lambda G: np.moveaxis(
            project(np.moveaxis(G, mode, 0).reshape(len(front), -1)).reshape(front.shape), 0, mode
        )

    parts = [convex.l1_subdifferential(W, beta), *(unfolded(m) for m in range(W.ndim))]
    assert convex.distance_to_sum(gradient, parts, 5e-5) < 5e-5


def test_a_coefficient_that_stands_still_by_coincidence_is_no_end():
    # The blocks pull the second iterate with equal force into opposite directions.
    X, y = make_tensor_regression(80, (7,), random_state=0)
    model = Remurs(5.0, 0.0).fit(X, y)
    assert model.n_iter_ > 2
    gradient = (y - model.predict(X)) @ X
    assert_allclose(gradient, 5.0 * model.coef_ / np.linalg.norm(model.coef_), rtol=0.05)


def test_a_generic_optimiser_finds_nothing_better():
    X, y = make_tensor_regression(12, (3, 2, 2), random_state=0)
    model = Remurs(2.0, 1.0, tol=1e-10, max_iter=100_000).fit(X, y)
    best = objective(model.coef_, X, y, 2.0, 1.0)
    starts = [model.coef_.ravel(), np.zeros(12), *np.random.default_rng(0).normal(size=(3, 12))]
    for start in starts:
        found = minimize(
            lambda w: objective(w.reshape(3, 2, 2), X, y, 2.0, 1.0),
            start,
            method="Powell",
            options={"maxiter": 200, "ftol": 1e-12},
        )
        assert found.fun >= best - 1e-7 * best


def test_without_the_nuclear_norm_it_is_the_lasso():
    X, y = make_tensor_regression(40, (6, 5), random_state=0)
    model = Remurs(0.0, 2.0, tol=1e-11, max_iter=100_000).fit(X, y)
    lasso = Lasso(2.0 / 40, fit_intercept=False, tol=1e-12, max_iter=100_000)
    expected = lasso.fit(X.reshape(40, -1), y).coef_.reshape(6, 5)
    assert_allclose(model.coef_, expected, atol=1e-6)


@pytest.mark.parametrize(("shape", "n_samples"), [((8, 7), 15), ((8, 7), 80), ((5, 4, 3), 20)])
def test_the_path_equals_single_fits(shape, n_samples):
    X, y = make_tensor_regression(n_samples, shape, random_state=0)
    alphas, betas = [0.5, 5.0, 1e6], [0.1, 1.0, 10.0]
    path = remurs_path(X, y, alphas=alphas, betas=betas)
    for i, alpha in enumerate(alphas):
        for j, beta in enumerate(betas):
            model = Remurs(alpha, beta).fit(X, y)
            assert_allclose(path.coefs[i, j], model.coef_, rtol=0, atol=1e-9)
            assert path.n_iters[i, j] == model.n_iter_
            assert path.converged[i, j]


def test_a_path_in_small_batches_is_the_same(monkeypatch):
    X, y = make_tensor_regression(15, (5, 4), random_state=0)
    grid = {"alphas": [0.5, 5.0], "betas": [0.1, 1.0, 10.0]}
    whole = remurs_path(X, y, **grid)
    monkeypatch.setattr(spectral, "_BATCH_BYTES", 1)
    one_by_one = remurs_path(X, y, **grid)
    assert_allclose(one_by_one.coefs, whole.coefs, atol=1e-10)
    assert_array_equal(one_by_one.n_iters, whole.n_iters)


@pytest.mark.parametrize("shape", [(7,), (6, 5), (4, 3, 5)])
def test_large_penalties_give_zero_without_iterations(shape):
    X, y = make_tensor_regression(20, shape, random_state=0)
    bound = np.abs(np.tensordot(y, X, 1)).max()
    for alpha, beta in [(0.0, bound), (1e6, 0.0)]:
        model = Remurs(alpha, beta).fit(X, y)
        assert_array_equal(model.coef_, np.zeros(shape))
        assert (model.n_iter_, model.converged_) == (0, True)


@pytest.mark.parametrize("shape", [(6, 5), (4, 3, 5)])
def test_zero_without_iterations_is_where_they_would_lead(monkeypatch, shape):
    X, y = make_tensor_regression(60, shape, random_state=0)
    X, y = X / np.sqrt(60), 3 * y / np.linalg.norm(y)
    grid = {"alphas": [0.1, 0.5, 1.0, 2.0, 4.0], "betas": [0.1, 0.5], "max_iter": 5000, "tol": 1e-5}
    path = remurs_path(X, y, **grid)
    monkeypatch.setattr(spectral.SpectralProblem, "_zero_from", lambda self, beta: np.inf)
    iterated = remurs_path(X, y, **grid)
    assert set(path.n_iters.ravel() > 0) == {True, False}
    assert not np.any(path.coefs[path.n_iters == 0])
    assert_allclose(iterated.coefs, path.coefs, atol=1e-3)


def test_a_response_of_zeros_gives_zero():
    X, _ = make_tensor_regression(20, (6, 5), random_state=0)
    model = Remurs().fit(X, np.zeros(20))
    assert_array_equal(model.coef_, np.zeros((6, 5)))


def test_scaling_y_and_the_penalties_scales_the_coefficient():
    X, y = make_tensor_regression(20, (6, 5), random_state=0)
    one = Remurs(2.0, 0.5).fit(X, y).coef_
    assert_allclose(Remurs(20.0, 5.0).fit(X, 10 * y).coef_, 10 * one, rtol=1e-9, atol=1e-9)


def test_permuted_modes_permute_the_coefficient():
    X, y = make_tensor_regression(40, (6, 5, 4), random_state=0)
    one = Remurs(2.0, 0.5).fit(X, y).coef_
    turned = Remurs(2.0, 0.5).fit(X.transpose(0, 3, 1, 2), y).coef_
    assert_allclose(turned, one.transpose(2, 0, 1), atol=1e-10)


def test_the_intercept_takes_up_shifts():
    X, y = make_tensor_regression(60, (6, 5), random_state=0)
    model = Remurs(fit_intercept=True).fit(X, y)
    shifted = Remurs(fit_intercept=True).fit(X + 3.0, y - 7.0)
    assert_allclose(shifted.coef_, model.coef_, atol=1e-9)
    assert_allclose(shifted.predict(X + 3.0), model.predict(X) - 7.0, atol=1e-8)


def test_x_is_not_written_and_float32_stays():
    X, y = make_tensor_regression(40, (6, 5), dtype=np.float32, random_state=0)
    before = X.copy()
    model = Remurs(fit_intercept=True).fit(X, y)
    assert_array_equal(X, before)
    assert model.coef_.dtype == model.predict(X).dtype == np.float32


def test_a_grid_search_runs_on_a_part_of_the_authors_grid():
    X, y = make_tensor_regression(60, (5, 4), random_state=0)
    assert Remurs.param_grid_["alpha"][0] == 1e-3
    assert (Remurs.param_grid_["alpha"][-1], Remurs.param_grid_["beta"][-1]) == (5e2, 1e3)
    grid = {name: values[4:8] for name, values in Remurs.param_grid_.items()}
    assert GridSearchCV(Remurs(), grid, cv=3).fit(X, y).best_score_ > 0.99


def test_running_out_of_iterations_is_told():
    X, y = make_tensor_regression(30, (6, 5), random_state=0)
    with pytest.warns(ConvergenceWarning, match="after 3 iterations with alpha=1.0") as caught:
        model = Remurs(max_iter=3).fit(X, y)
    assert caught[0].filename == __file__
    assert (model.n_iter_, model.converged_) == (3, False)
    with pytest.warns(ConvergenceWarning, match="at 2 of 3 points of the grid") as caught:
        remurs_path(X, y, alphas=[0.1, 1.0, 1e6], betas=[0.1], max_iter=3)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": -1.0}, "'alpha' parameter of Remurs"),
        ({"beta": np.nan}, "'beta' parameter of Remurs"),
        ({"n_singular": 0}, "'n_singular' parameter of Remurs"),
        ({"max_iter": 0}, "'max_iter' parameter of Remurs"),
    ],
)
def test_bad_parameters_are_named(params, message):
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    with pytest.raises(ValueError, match=message):
        Remurs(**params).fit(X, y)


def test_bad_values_of_a_path_are_named():
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    with pytest.raises(ValueError, match=r"betas has -2\.0; expected finite numbers, at least 0"):
        remurs_path(X, y, alphas=[1.0], betas=[1.0, -2.0])
    with pytest.raises(ValueError, match="'tol' parameter of Remurs"):
        remurs_path(X, y, alphas=[1.0], betas=[1.0], tol=-1.0)


def test_a_gram_matrix_beyond_memory_is_refused(monkeypatch):
    X, y = make_tensor_regression(20, (6, 5), random_state=0)
    monkeypatch.setattr(ridge, "MAX_GRAM_SIDE", 19)
    with pytest.raises(ValueError, match=r"Remurs factors a matrix of 20 × 20.*FasTRRegressor"):
        Remurs().fit(X, y)


def test_nan_is_named_with_its_place():
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    X[7, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN: first at sample 7, element \(2, 1\)"):
        Remurs().fit(X, y)
