"""Answers of this package beside those of others, and beside grids that leave nothing out."""

import warnings
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import least_squares, minimize
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from pyfastr import FasTRClassifier, FasTRRegressor
from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.polish import Step, polish
from pyfastr.solver.problem import make_problem
from pyfastr.solver.sweep import update_mode
from pyfastr.sources import as_source


def vectors(n_samples, p, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, p)) + rng.normal(size=p)
    return X, X @ rng.normal(size=p) + rng.normal(size=n_samples), rng.exponential(size=n_samples)


@pytest.mark.parametrize(("n_samples", "p"), [(40, 5), (6, 20), (30, 1), (12, 12)])
@pytest.mark.parametrize("ridge", [1e-3, 0.3, 20.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_vectors_have_the_ridge_regression_of_scikit_learn(
    n_samples, p, ridge, fit_intercept, weighted
):
    X, y, g = vectors(n_samples, p, 0)
    g = g / g.mean() if weighted else np.ones(n_samples)
    own = X - np.average(X, axis=0, weights=g) * fit_intercept
    alpha = ridge * np.sum(g[:, None] * own**2) / p
    theirs = Ridge(alpha, fit_intercept=fit_intercept).fit(X, y, g)
    ours = FasTRRegressor(ridge=ridge, fit_intercept=fit_intercept).fit(
        X, y, g if weighted else None
    )
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-10)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-8)


@pytest.mark.parametrize("p", [1, 4])
@pytest.mark.parametrize("ridge", [0.05, 1.0])
def test_vectors_have_the_logistic_regression_of_scikit_learn(p, ridge):
    X, y, _ = vectors(80, p, 1)
    labels = y > np.median(y)
    # Where nothing is known the curvature is a quarter.
    strength = ridge * np.sum((X - X.mean(axis=0)) ** 2) / p / 4
    theirs = LogisticRegression(C=1 / strength, tol=1e-12, max_iter=5000).fit(X, labels)
    ours = FasTRClassifier(ridge=ridge, loss="logistic", tol=1e-12).fit(X, labels)
    expected = objective_of_labels(theirs.coef_[0], theirs.intercept_[0], X, labels, strength)
    found = objective_of_labels(ours.coef_, ours.intercept_, X, labels, strength)
    assert found <= expected * (1 + 2e-3)


def objective_of_labels(coef, intercept, X, labels, strength):
    margins = np.where(labels, 1, -1) * (X @ coef + intercept)
    return np.logaddexp(0, -margins).sum() + strength * coef @ coef / 2


@pytest.mark.parametrize("p", [1, 4])
@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_vectors_have_the_poisson_regression_of_scikit_learn(p, ridge):
    X, _, _ = vectors(100, p, 2)
    rng = np.random.default_rng(3)
    y = rng.poisson(np.exp(0.3 * X.sum(axis=1) / np.sqrt(p))).astype(float)
    ours = FasTRRegressor(ridge=ridge, loss="poisson", tol=1e-12).fit(X, y)
    # As the docstring has it, the ridge is relative to X centred in the fitted means as weights.
    mean = ours.predict(X)
    centred = X - np.average(X, axis=0, weights=mean)
    epsilon = ridge * np.sum(mean[:, None] * centred**2) / p
    theirs = PoissonRegressor(alpha=epsilon / len(y), tol=1e-12, max_iter=5000).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-6)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-4)


def tensors(n_samples, shape, n_terms, noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, *shape))
    W = sum(outer([rng.normal(size=p) for p in shape]) for _ in range(n_terms))
    signal = X.reshape(n_samples, -1) @ W.ravel()
    return X, signal + noise * signal.std() * rng.normal(size=n_samples)


def outer(components):
    W = np.ones(())
    for w in components:
        W = np.multiply.outer(W, w)
    return W


@pytest.mark.parametrize("shape", [(6, 5), (4, 3, 3)])
@pytest.mark.parametrize("n_terms", [1, 2])
@pytest.mark.parametrize("seed", [0])
def test_residuals_are_no_larger_than_those_of_tensorly_from_the_same_start(shape, n_terms, seed):
    tensorly = pytest.importorskip("tensorly")
    cp_regression = pytest.importorskip("tensorly.regression")
    X, y = tensors(60, shape, n_terms, 0.3, seed)
    X, y = X - X.mean(axis=0), y - y.mean()
    theirs = cp_regression.CPRegressor(n_terms, reg_W=1e-6, n_iter_max=50, random_state=seed)
    theirs.fit(tensorly.tensor(X), tensorly.tensor(y))
    left = np.sum((y - X.reshape(60, -1) @ np.asarray(theirs.weight_tensor_).ravel()) ** 2)
    # It draws its start by one normal array a mode, and so does this.
    rng = np.random.RandomState(seed)
    init = [rng.randn(p, n_terms) for p in shape]
    options = {"n_terms": n_terms, "ridge": 1e-10, "fit_intercept": False, "tol": 1e-7}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ours = FasTRRegressor(init=init, max_iter=1000, **options).fit(X, y)
        best = FasTRRegressor(random_state=seed, max_iter=300, **options).fit(X, y)
    assert np.sum((y - best.predict(X)) ** 2) <= left * (1 + 1e-6)
    if n_terms == 1:
        assert np.sum((y - ours.predict(X)) ** 2) <= left * (1 + 1e-6)


def least_residual(X, y, angles):
    """Of all coefficients whose modes but the last are on a grid of directions, solved for it."""
    directions = np.array([outer(chosen).ravel() for chosen in product(*angles)])
    P = np.einsum("gd,ndp->gnp", directions, X.reshape(len(X), -1, X.shape[-1]))
    gram, moment = P.transpose(0, 2, 1) @ P, P.transpose(0, 2, 1) @ y
    solved = np.linalg.solve(gram, moment[..., None])[..., 0]
    return y @ y - np.sum(moment * solved, axis=1).max()


def circle(n):
    """Directions of two entries: half a circle, as the sign is the other mode's."""
    t = np.linspace(0, np.pi, n, endpoint=False)
    return list(np.stack([np.cos(t), np.sin(t)], axis=1))


def sphere(n):
    """Directions of three entries, on one half of the sphere."""
    return [
        np.array([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)])
        for u in np.linspace(0, np.pi, n, endpoint=False)
        for v in np.linspace(0, np.pi, n, endpoint=False)
    ]


@pytest.mark.parametrize("noise", [0.1, 3.0])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("shape", "angles"),
    [((2, 2), [circle(2000)]), ((3, 2, 2), [sphere(24), circle(40)])],
    ids=["2x2", "3x2x2"],
)
def test_no_point_of_a_grid_over_all_directions_is_better(shape, angles, noise, seed):
    X, y = tensors(12, shape, 1, noise, seed)
    model = FasTRRegressor(ridge=0.0, fit_intercept=False, tol=1e-8, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        left = np.sum((y - model.fit(X, y).predict(X)) ** 2)
    assert left <= least_residual(X, y, angles) * (1 + 1e-6)


def problem_of(X, y):
    return make_problem(as_source(X), y, x_scale=float(np.abs(X).max()), fit_intercept=True)


@pytest.mark.parametrize("n_terms", [1, 2])
@pytest.mark.parametrize("ridge", [1e-6, 0.5])
def test_an_update_is_the_minimum_that_scipy_finds(naive, n_terms, ridge):
    X, y = tensors(40, (4, 3, 2), 1, 0.2, 0)
    problem = problem_of(X, y)
    models = Models.random(1, n_terms, (4, 3, 2), np.random.default_rng(1))
    own_X, own_y = naive.partial_out(X, problem.samples.response[0], np.ones((40, 1)))
    for mode in range(3):
        P = naive.project(own_X, models.components, mode)[0]
        P = P.transpose(1, 0, 2).reshape(40, -1)
        epsilon = ridge * np.sum(P**2) / P.shape[1]
        found = minimize(
            lambda u, P=P, e=epsilon: np.sum((own_y - P @ u) ** 2) + e * u @ u,
            np.zeros(P.shape[1]),
            jac=lambda u, P=P, e=epsilon: 2 * (P.T @ (P @ u - own_y) + e * u),
            method="BFGS",
            options={"gtol": 1e-9},
        )
        ours = update_mode(problem, models, mode, Penalty(ridge))[0].ravel()
        assert_allclose(ours, found.x, atol=1e-5 * np.abs(found.x).max())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_terms", [1, 2])
def test_polished_models_are_minima_to_scipy(seed, n_terms):
    shape = (4, 3, 2)
    X, y = tensors(60, shape, n_terms, 0.2, seed)
    problem = problem_of(X, y)
    centred, response = X - X.mean(axis=0), problem.samples.response[0]
    start = Models.random(1, n_terms, shape, np.random.default_rng(seed))
    steps = [Step(0.0)] * 200
    ours = polish(problem, start, steps, SearchPolicy())

    def residuals(theta):
        parts = np.split(theta, np.cumsum([n_terms * p for p in shape])[:-1])
        components = [part.reshape(n_terms, -1) for part in parts]
        W = sum(outer([c[r] for c in components]) for r in range(n_terms))
        return response - centred.reshape(60, -1) @ W.ravel()

    # Begun where ours ended, theirs finds nothing better.
    theirs = least_squares(residuals, ours.models.flat()[0], xtol=1e-14, ftol=1e-14, gtol=1e-14)
    assert ours.rss[0] <= 2 * theirs.cost * (1 + 1e-6)
