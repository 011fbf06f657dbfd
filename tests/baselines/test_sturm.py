"""Sturm against outputs of the published algorithm and the optimality conditions."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import loadmat
from sklearn.exceptions import ConvergenceWarning

from pyfastr.baselines import Remurs, Sturm, ridge, spectral, sturm_path
from pyfastr.datasets import make_tensor_regression

DATA = Path(__file__).parents[1] / "data"
SHAPES = ["6x5x4", "8x7"]
# The last row of a fixture: the reference ends at its first iterate, which is zero.
ZERO_ROW = 5


def load(name):
    fixture = loadmat(DATA / f"{name}.mat")
    return np.moveaxis(fixture["X"], -1, 0), fixture["y"].ravel(), fixture


def fit_silently(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def objective(W, X, y, alpha, beta):
    """The objective with the transform along the last of three modes."""
    residual = y - X.reshape(len(X), -1) @ W.ravel()
    slices = np.moveaxis(np.fft.fft(W, axis=-1), -1, 0) if W.ndim == 3 else W[np.newaxis]
    tubal = np.mean([np.linalg.norm(matrix, "nuc") for matrix in slices])
    return 0.5 * residual @ residual + alpha * tubal + beta * np.abs(W).sum()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("row", range(5))
def test_it_equals_the_reference(shape, row):
    X, y, fixture = load(f"sturm_{shape}")
    alpha, beta, tol, max_iter = fixture["params"][row]
    model = fit_silently(Sturm(alpha, beta, max_iter=int(max_iter), tol=tol), X, y)
    assert_allclose(model.coef_, fixture["W_hat"][0, row], rtol=0, atol=1e-8)
    assert model.n_iter_ == fixture["n_iter"][0, row]


@pytest.mark.parametrize("shape", SHAPES)
def test_it_goes_on_where_the_reference_divides_zero_by_zero(shape):
    X, y, fixture = load(f"sturm_{shape}")
    alpha, beta, tol, max_iter = fixture["params"][ZERO_ROW]
    first = fit_silently(Sturm(alpha, beta, max_iter=1), X, y)
    assert_array_equal(first.coef_, fixture["W_hat"][0, ZERO_ROW])
    model = Sturm(alpha, beta, max_iter=int(max_iter), tol=tol).fit(X, y)
    better, worse = (objective(m.coef_, X, y, alpha, beta) for m in (model, first))
    assert better < 0.99 * worse


@pytest.mark.parametrize("shape", [(7,), (6, 5), (4, 3, 3), (3, 4, 2)])
@pytest.mark.parametrize("n_samples", [12, 60])
@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.02), (0.4, 0.1), (0.0, 0.1), (0.2, 0.0)])
def test_the_optimality_conditions_hold(convex, shape, n_samples, alpha, beta):
    X, y = make_tensor_regression(n_samples, shape, random_state=1)
    # In these units the step of 1 makes for few iterations.
    X, y = X / np.sqrt(n_samples), 3 * y / np.linalg.norm(y)
    model = Sturm(alpha, beta, tol=1e-9, max_iter=20_000).fit(X, y)
    # A vector is a matrix of one column, a matrix a tensor of one slice.
    W = model.coef_.reshape(*shape, *[1] * (3 - len(shape)))
    gradient = np.tensordot(y - model.predict(X), X, 1).reshape(W.shape)
    slices = np.moveaxis(np.fft.fft(W, axis=-1), -1, 0)
    projections = [convex.nuclear_subdifferential(matrix, alpha) for matrix in slices]

    def tubal(G):
        transformed = np.fft.fft(G, axis=-1)
        parts = [project(transformed[..., k]) for k, project in enumerate(projections)]
        return np.fft.ifft(np.stack(parts, axis=-1), axis=-1).real

    parts = [convex.l1_subdifferential(W, beta), tubal]
    assert convex.distance_to_sum(gradient, parts, 5e-5) < 5e-5


def test_on_matrices_it_has_the_solution_of_remurs():
    X, y = make_tensor_regression(30, (6, 5), random_state=0)
    X, y = X / np.sqrt(30), 3 * y / np.linalg.norm(y)
    params = {"alpha": 0.2, "beta": 0.05, "tol": 1e-9, "max_iter": 20_000}
    sturm, remurs = Sturm(**params).fit(X, y), Remurs(**params).fit(X, y)
    assert_allclose(sturm.coef_, remurs.coef_, atol=1e-6)


def test_a_mode_of_size_one_is_not_there():
    X, y = make_tensor_regression(30, (6, 5), random_state=0)
    expected = Sturm(2.0, 0.5).fit(X, y).coef_
    assert_allclose(Sturm(2.0, 0.5).fit(X[..., np.newaxis], y).coef_[..., 0], expected, atol=1e-10)
    in_front = Sturm(2.0, 0.5, mode=0).fit(X[:, np.newaxis], y).coef_[0]
    assert_allclose(in_front, expected, atol=1e-10)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_the_transformed_mode_is_the_one_asked_for(mode):
    X, y = make_tensor_regression(60, (6, 5, 4), random_state=0)
    last = np.moveaxis(X, mode + 1, -1)
    expected = np.moveaxis(Sturm(5.0, 1.0).fit(last, y).coef_, -1, mode)
    assert_allclose(Sturm(5.0, 1.0, mode=mode).fit(X, y).coef_, expected, atol=1e-10)
    assert_array_equal(
        Sturm(5.0, 1.0, mode=mode - 3).fit(X, y).coef_, Sturm(5.0, 1.0, mode=mode).fit(X, y).coef_
    )


def test_modes_matter():
    X, y = make_tensor_regression(60, (6, 5, 4), random_state=0)
    first, last = (Sturm(20.0, 1.0, mode=mode).fit(X, y).coef_ for mode in (0, 2))
    assert not np.allclose(first, last, atol=1e-2)


@pytest.mark.parametrize(("shape", "mode"), [((8, 7), 2), ((5, 4, 3), 2), ((5, 4, 3), 0)])
def test_the_path_equals_single_fits(shape, mode):
    X, y = make_tensor_regression(20, shape, random_state=0)
    alphas, betas = [0.5, 5.0, 1e6], [0.1, 1.0, 10.0]
    path = sturm_path(X, y, alphas=alphas, betas=betas, mode=mode)
    for i, alpha in enumerate(alphas):
        for j, beta in enumerate(betas):
            model = Sturm(alpha, beta, mode=mode).fit(X, y)
            assert_allclose(path.coefs[i, j], model.coef_, rtol=0, atol=1e-9)
            assert path.n_iters[i, j] == model.n_iter_


@pytest.mark.parametrize("shape", [(6, 5), (4, 3, 5)])
def test_zero_without_iterations_is_where_they_would_lead(monkeypatch, shape):
    X, y = make_tensor_regression(60, shape, random_state=0)
    X, y = X / np.sqrt(60), 3 * y / np.linalg.norm(y)
    grid = {"alphas": [0.1, 0.5, 1.0, 2.0, 4.0], "betas": [0.1, 0.5], "max_iter": 5000, "tol": 1e-5}
    path = sturm_path(X, y, **grid)
    monkeypatch.setattr(spectral.SpectralProblem, "_zero_from", lambda self, beta: np.inf)
    iterated = sturm_path(X, y, **grid)
    assert set(path.n_iters.ravel() > 0) == {True, False}
    assert not np.any(path.coefs[path.n_iters == 0])
    assert_allclose(iterated.coefs, path.coefs, atol=1e-3)


def test_scaling_y_and_the_penalties_scales_the_coefficient():
    X, y = make_tensor_regression(20, (4, 3, 5), random_state=0)
    one = Sturm(2.0, 0.5).fit(X, y).coef_
    assert_allclose(Sturm(20.0, 5.0).fit(X, 10 * y).coef_, 10 * one, rtol=1e-9, atol=1e-9)


def test_the_intercept_takes_up_shifts():
    X, y = make_tensor_regression(60, (4, 3, 2), random_state=0)
    model = Sturm(fit_intercept=True).fit(X, y)
    shifted = Sturm(fit_intercept=True).fit(X + 3.0, y - 7.0)
    assert_allclose(shifted.coef_, model.coef_, atol=1e-9)
    assert_allclose(shifted.predict(X + 3.0), model.predict(X) - 7.0, atol=1e-8)


def test_running_out_of_iterations_is_told():
    X, y = make_tensor_regression(30, (6, 5), random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"Sturm stopped after 3 iterations.*Raise"):
        model = Sturm(max_iter=3).fit(X, y)
    assert (model.n_iter_, model.converged_) == (3, False)


def test_four_modes_are_refused():
    X, y = make_tensor_regression(20, (3, 2, 2, 2), random_state=0)
    with pytest.raises(
        ValueError, match=r"\(3, 2, 2, 2\); Sturm is defined for at most 3 modes.*R"
    ):
        Sturm().fit(X, y)


@pytest.mark.parametrize("mode", [3, -4, 0.5])
def test_bad_modes_are_named(mode):
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    with pytest.raises(ValueError, match="'mode' parameter of Sturm"):
        Sturm(mode=mode).fit(X, y)
    with pytest.raises(ValueError, match="'mode' parameter of Sturm"):
        sturm_path(X, y, alphas=[1.0], betas=[1.0], mode=mode)


def test_a_gram_matrix_beyond_memory_is_refused(monkeypatch):
    X, y = make_tensor_regression(20, (6, 5), random_state=0)
    monkeypatch.setattr(ridge, "MAX_GRAM_SIDE", 19)
    with pytest.raises(ValueError, match=r"Sturm factors a matrix of 20 × 20.*FasTRRegressor"):
        Sturm().fit(X, y)
