"""The inner solvers of GLTRM: conditions of optimality, and scikit-learn's answers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Lasso

from pyfastr.baselines.glm import FAMILIES, Penalty, fit_glm, fit_penalised, least_squares

NAMES = sorted(FAMILIES)


def simulated(name, n=80, p=6, seed=0):
    rng = np.random.default_rng(seed)
    design = rng.standard_normal((n, p))
    predictor = design @ rng.standard_normal(p) / 2 + 0.3
    y = {
        "normal": lambda: predictor + rng.standard_normal(n),
        "binomial": lambda: (rng.random(n) < 1 / (1 + np.exp(-predictor))).astype(float),
        "poisson": lambda: rng.poisson(np.exp(predictor)).astype(float),
    }[name]()
    return design, y


@pytest.mark.parametrize("name", NAMES)
def test_the_score_is_zero_at_the_maximum(name):
    design, y = simulated(name)
    found = fit_glm(design, y, FAMILIES[name], np.zeros(6))
    assert_allclose(design.T @ (y - FAMILIES[name].mean(design @ found)), 0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_derivative_of_the_deviance_is_twice_the_residual(name):
    design, y = simulated(name)
    family, step = FAMILIES[name], 1e-6
    at = 0.1 * np.arange(6.0)
    for j, unit in enumerate(np.eye(6)):
        values = [family.deviance(y, design @ (at + s * step * unit)) for s in (1, -1)]
        slope = -2 * design[:, j] @ (y - family.mean(design @ at))
        assert_allclose((values[0] - values[1]) / (2 * step), slope, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
def test_penalised_solutions_satisfy_their_conditions(name, l1_ratio):
    design, y = simulated(name)
    free = np.ones(len(y))
    penalty = Penalty(4.0, l1_ratio)
    found = fit_penalised(design, free, y, FAMILIES[name], penalty, np.zeros(7))
    residual = y - FAMILIES[name].mean(design @ found[:-1] + free * found[-1])
    assert abs(free @ residual) < 1e-4
    left = design.T @ residual - 4.0 * (1 - l1_ratio) * found[:-1]
    active = found[:-1] != 0
    assert_allclose(left[active], 4.0 * l1_ratio * np.sign(found[:-1][active]), atol=1e-4)
    assert (np.abs(left[~active]) <= 4.0 * l1_ratio + 1e-4).all()


def test_a_normal_response_gives_the_lasso():
    design, y = simulated("normal")
    penalty = Penalty(10.0, 1.0)
    found = fit_penalised(design, np.ones(80), y, FAMILIES["normal"], penalty, np.zeros(7))
    lasso = Lasso(alpha=10 / 80, tol=1e-12).fit(design, y)
    assert_allclose(found, [*lasso.coef_, lasso.intercept_], atol=1e-8)


def test_a_free_column_of_zeros_is_left_alone():
    design, y = simulated("normal")
    penalty = Penalty(10.0, 1.0)
    found = fit_penalised(design, np.zeros(80), y, FAMILIES["normal"], penalty, np.zeros(7))
    lasso = Lasso(alpha=10 / 80, tol=1e-12, fit_intercept=False).fit(design, y)
    assert_allclose(found, [*lasso.coef_, 0.0], atol=1e-8)


@pytest.mark.parametrize(("n", "p"), [(20, 5), (5, 20)])
def test_least_squares_are_those_of_minimum_norm(n, p):
    rng = np.random.default_rng(0)
    design, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    design[:, -1] = design[:, 0]
    design /= np.linalg.norm(design, axis=0)
    assert_allclose(least_squares(design, y), np.linalg.pinv(design) @ y, atol=1e-10)


def test_least_squares_keep_digits_where_columns_are_nearly_dependent():
    rng = np.random.default_rng(0)
    design, truth = rng.standard_normal((50, 4)), np.arange(4.0)
    design[:, 3] = design[:, 2] + 1e-6 * design[:, 3]
    assert_allclose(least_squares(design, design @ truth), truth, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["binomial", "poisson"])
def test_a_bad_start_is_recovered_from(name):
    design, y = simulated(name)
    expected = fit_glm(design, y, FAMILIES[name], np.zeros(6))
    assert_allclose(fit_glm(design, y, FAMILIES[name], np.full(6, 3.0)), expected, atol=1e-5)


def test_rates_do_not_overflow():
    for dtype in (np.float32, np.float64):
        assert np.isfinite(FAMILIES["poisson"].mean(np.array([1e4], dtype=dtype))).all()
