"""PublishedFasTR against the formula of the paper."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from pyfastr.baselines import PublishedFasTR
from pyfastr.datasets import make_tensor_regression
from pyfastr.metrics import coefficient_error

SHAPES = [(7,), (6, 5), (4, 3, 5), (3, 2, 4, 2)]


def fit_silently(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def literal_sweeps(X, y, threshold, ridge, seed, n_sweeps):
    """Algorithm 1 as an equation: P by einsum, the inverse as written, S entry by entry."""
    rng = np.random.RandomState(seed)
    w = [rng.standard_normal(p) for p in X.shape[1:]]
    letters = "abcd"[: X.ndim - 1]
    for _ in range(n_sweeps):
        for m, kept in enumerate(letters):
            others = [k for k in range(len(w)) if k != m]
            spec = ",".join(["n" + letters, *(letters[k] for k in others)]) + "->n" + kept
            P = np.einsum(spec, X, *(w[k] for k in others))
            u = np.linalg.inv(P.T @ P + ridge * np.eye(len(w[m]))) @ P.T @ y
            w[m] = np.sign(u) * np.maximum(np.abs(u) - threshold, 0)
    return w


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_samples", [3, 40])
@pytest.mark.parametrize("threshold", [0.0, 0.01])
def test_the_iterates_are_those_of_the_formula(shape, n_samples, threshold):
    X, y = make_tensor_regression(n_samples, shape, random_state=0)
    model = PublishedFasTR(threshold, 0.5, max_iter=5, tol=0.0, random_state=3)
    fit_silently(model, X, y)
    expected = literal_sweeps(X, y, threshold, 0.5, 3, model.n_iter_)
    assert len(model.factors_) == len(shape)
    for factor, w in zip(model.factors_, expected, strict=True):
        assert factor.shape == (len(w), 1)
        assert_allclose(factor[:, 0], w, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_coefficient_is_the_outer_product_of_the_factors(shape):
    X, y = make_tensor_regression(60, shape, random_state=0)
    model = fit_silently(PublishedFasTR(random_state=0), X, y)
    letters = "abcd"[: len(shape)]
    outer = np.einsum(",".join(letters) + "->" + letters, *(f[:, 0] for f in model.factors_))
    assert_allclose(model.coef_, outer, rtol=1e-13)
    assert model.tensor_shape_in_ == shape
    assert model.intercept_ == 0.0
    assert_allclose(model.predict(X), (X * outer).reshape(60, -1).sum(axis=1), atol=1e-10)


def test_it_stops_at_the_first_sweep_that_changes_no_more_than_tol():
    X, y = make_tensor_regression(80, (6, 5), random_state=0)
    model = PublishedFasTR(random_state=0).fit(X, y)
    W = [
        np.multiply.outer(*literal_sweeps(X, y, model.threshold, model.ridge, 0, t))
        for t in range(model.n_iter_ + 1)
    ]
    changes = [coefficient_error(new, old) for old, new in pairwise(W)]
    assert model.converged_
    assert changes[-1] <= 1e-3
    assert min(changes[:-1]) > 1e-3


@pytest.mark.parametrize(("shape", "n_samples"), [((30, 30), 400), ((5, 5, 5), 100)])
def test_easy_problems_of_the_paper_are_solved_with_the_defaults(shape, n_samples):
    X, y, W = make_tensor_regression(n_samples, shape, coef=True, random_state=0)
    model = PublishedFasTR(random_state=0).fit(X, y)
    assert model.converged_
    assert coefficient_error(model.coef_, W) < 0.05


def test_a_fixed_threshold_drifts_until_the_coefficient_is_zero():
    X, y = make_tensor_regression(400, (20, 20), random_state=0)
    model = PublishedFasTR(threshold=0.2, ridge=1.0, tol=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="become zero: lower `threshold`") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert 1 < model.n_iter_ < model.max_iter
    assert not model.converged_
    assert_array_equal(model.coef_, np.zeros((20, 20)))
    assert_array_equal(model.predict(X), np.zeros(400))


def test_running_out_of_sweeps_is_told():
    X, y = make_tensor_regression(50, (8, 8), random_state=0)
    model = PublishedFasTR(max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="after 2 sweeps.*raise `max_iter` or `tol`"):
        model.fit(X, y)
    assert model.n_iter_ == 2
    assert not model.converged_


def test_the_start_follows_the_random_state():
    X, y = make_tensor_regression(30, (5, 4, 3), random_state=0)
    one, again, other = (
        fit_silently(PublishedFasTR(max_iter=1, random_state=s), X, y).coef_ for s in (0, 0, 1)
    )
    assert_array_equal(one, again)
    assert not np.allclose(one, other)


@pytest.mark.parametrize("convert", [np.asfortranarray, lambda X: X.astype(">f8")])
def test_the_layout_of_the_data_does_not_matter(convert):
    X, y = make_tensor_regression(60, (5, 4, 3), random_state=0)
    expected = PublishedFasTR(random_state=0).fit(X, y)
    given = PublishedFasTR(random_state=0).fit(convert(X), y)
    assert_allclose(given.coef_, expected.coef_, rtol=1e-10, atol=1e-12)
    assert_allclose(given.predict(convert(X)), expected.predict(X), rtol=1e-10, atol=1e-12)


def test_float32_stays_float32():
    X, y, W = make_tensor_regression(100, (6, 5), coef=True, dtype=np.float32, random_state=0)
    model = PublishedFasTR(random_state=0).fit(X, y)
    assert model.coef_.dtype == model.predict(X).dtype == np.float32
    assert coefficient_error(model.coef_, W) < 0.02


def test_the_grid_serves_a_search():
    X, y = make_tensor_regression(60, (4, 3), random_state=0)
    search = GridSearchCV(PublishedFasTR(random_state=0), PublishedFasTR.param_grid_, cv=5)
    fit_silently(search, X, y)
    assert search.best_score_ > 0.9


def test_nan_is_named_with_its_place():
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    X[7, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN: first at sample 7, element \(2, 1\)"):
        PublishedFasTR().fit(X, y)


def test_a_ridge_lost_in_rounding_is_told():
    X = np.ones((6, 2, 2))
    with pytest.raises(ValueError, match="ridge=1e-200 is too small"):
        PublishedFasTR(ridge=1e-200, random_state=0).fit(X, np.arange(6.0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_overflow_is_told():
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    with pytest.raises(ValueError, match="overflowed in sweep 1: bring X and y to a scale near 1"):
        PublishedFasTR(random_state=0).fit(1e200 * X, y)
