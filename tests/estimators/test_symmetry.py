"""Samples that are symmetric in two modes: recognised, asked for, and fitted by tied factors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline

import pyfastr
from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
    fastr_path,
)
from pyfastr.display.traits import n_free
from pyfastr.inference import bootstrap_factors

GRID = {"thresholds": [0.0, 0.1], "ridges": [0.01, 1.0], "cv": 3, "random_state": 0}


@pytest.fixture(name="data")
def symmetric_data():
    """Samples of 6×6, responses of one term of negative sign, and the coefficient."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal(6)
    X = rng.standard_normal((90, 6, 6)) + rng.normal(size=(6, 6))
    X, W = X + X.swapaxes(1, 2), -np.outer(w, w)
    return X, 2 + np.tensordot(X, W, axes=2) + rng.standard_normal(90), W


def assert_tied(model, first=0, second=1):
    assert model.symmetric_modes_ == (first, second)
    one, other = (model.factors_[m] for m in (first, second))
    signs = np.sign(np.sum(one * other, axis=0))
    assert_array_equal(one, signs * other)
    last_digit = 4 * np.finfo(model.coef_.dtype).eps * np.abs(model.coef_).max()
    assert_allclose(model.coef_, model.coef_.swapaxes(first, second), rtol=0, atol=last_digit)


@pytest.mark.parametrize("symmetry", ["auto", (0, 1), [1, 0], (-1, -2)])
def test_symmetric_samples_get_tied_factors(data, symmetry):
    X, y, W = data
    model = FasTRRegressor(symmetry=symmetry, random_state=0).fit(X, y)
    assert_tied(model)
    assert_array_equal(model.factors_[0], -model.factors_[1])
    assert_allclose(model.coef_, W, atol=0.2)
    assert n_free(model) == 6 + 1
    assert model.starts_.sure


def test_nothing_is_tied_unless_samples_are_symmetric_and_it_is_wanted(data):
    X, y, _ = data
    free = FasTRRegressor(symmetry=None, random_state=0).fit(X, y)
    assert free.symmetric_modes_ is None
    assert n_free(free) == 11 + 1
    X = X.copy()
    X[-1, 2, 4] += 1
    broken = FasTRRegressor(random_state=0).fit(X, y)
    assert broken.symmetric_modes_ is None
    same = FasTRRegressor(symmetry=None, random_state=0).fit(X, y)
    assert_array_equal(broken.coef_, same.coef_)


def test_samples_that_differ_are_named_with_a_way_out(data):
    X, y, _ = data
    X = X.copy()
    X[70, 2, 4] += 1
    model = FasTRRegressor(symmetry=(0, 1))
    with pytest.raises(ValueError, match=r"sample 70, where element \(2, 4\) is .* \(4, 2\) is"):
        model.fit(X, y)
    with pytest.raises(ValueError, match=r"Pass \(X \+ np.swapaxes\(X, 1, 2\)\) / 2 .*None"):
        model.fit(X, y)
    assert_tied(model.fit((X + np.swapaxes(X, 1, 2)) / 2, y))


@pytest.mark.parametrize(
    ("symmetry", "words"),
    [
        ((0, 2), "two different modes of samples of shape"),
        ((0,), "two different modes"),
        ((1, 1), "two different modes"),
        ((0.0, 1.0), "two different modes"),
    ],
)
def test_pairs_that_are_none_are_refused(data, symmetry, words):
    X, y, _ = data
    with pytest.raises(ValueError, match=rf"symmetry is .*{words}"):
        FasTRRegressor(symmetry=symmetry).fit(X, y)


def test_modes_of_different_size_are_refused(data):
    X, y, _ = data
    with pytest.raises(ValueError, match=r"modes 0 and 1 .* have 6 and 5 entries"):
        FasTRRegressor(symmetry=(0, 1)).fit(X[:, :, :5], y)


def test_a_third_mode_stays_free():
    rng = np.random.default_rng(0)
    w, c = rng.standard_normal(5), rng.standard_normal(3)
    X = rng.standard_normal((80, 5, 3, 5))
    X = X + X.swapaxes(1, 3)
    y = np.einsum("nijk,i,j,k->n", X, w, c, w)
    model = FasTRRegressor(ridge=1e-9, random_state=0).fit(X, y)
    assert_tied(model, 0, 2)
    assert_allclose(model.coef_, np.einsum("i,j,k->ijk", w, c, w), atol=1e-4)
    assert n_free(model) == 5 + 3 - 1 + 1


def test_the_order_of_nodes_does_not_matter(data):
    X, y, _ = data
    order, start = np.random.default_rng(1).permutation(6), np.random.default_rng(2).normal(size=6)
    options = {"ridge": 0.1, "threshold": 0.1, "tol": 1e-9}
    one = FasTRRegressor(init=[start, start], **options).fit(X, y)
    other = FasTRRegressor(init=[start[order]] * 2, **options)
    other.fit(X[:, order][:, :, order], y)
    assert_allclose(other.coef_, one.coef_[order][:, order], atol=1e-7)


def test_a_start_that_is_not_tied_begins_at_the_nearest_that_is(data):
    X, y, _ = data
    u, v = np.random.default_rng(3).normal(size=(2, 6))
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
    middle = u + np.sign(u @ v) * v
    options = {"ridge": 0.1, "max_iter": 200}
    one = FasTRRegressor(init=[u, v], **options).fit(X, y)
    other = FasTRRegressor(init=[middle, np.sign(u @ v) * middle], **options).fit(X, y)
    assert_allclose(one.coef_, other.coef_, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_covariates_weights_and_float32(data, weighted):
    X, y, W = data
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((90, 2))
    weights = rng.integers(0, 3, 90) if weighted else None
    model = FasTRRegressor(n_terms=2, random_state=0)
    model.fit(X.astype(np.float32), y + Z @ [3.0, -2.0], weights, covariates=Z)
    assert_tied(model)
    assert model.factors_[0].dtype == np.float32
    assert_allclose(model.coef_, W, atol=0.5)
    assert_allclose(model.covariate_coef_, [3, -2], atol=0.6)


@pytest.mark.parametrize("refit", [True, False])
def test_the_cv_twin_ties_in_folds_and_in_the_end(data, refit):
    X, y, W = data
    model = FasTRRegressorCV(n_terms=(1, 2), refit=refit, **GRID).fit(X, y)
    assert_tied(model)
    assert_tied(model.best_estimator_)
    assert_allclose(model.coef_, W, atol=0.3)
    assert FasTRRegressorCV(n_terms=1, symmetry=None, **GRID).fit(X, y).symmetric_modes_ is None


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_classes(data, loss):
    X, y, _ = data
    labels = y > np.median(y)
    model = FasTRClassifier(loss=loss, random_state=0).fit(X, labels)
    assert_tied(model)
    assert model.score(X, labels) > 0.85
    chosen = FasTRClassifierCV(n_terms="auto", loss=loss, **GRID).fit(X, labels)
    assert_tied(chosen)


def test_counts(data):
    X, y, _ = data
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.exp((y - y.mean()) / y.std()))
    assert_tied(FasTRRegressor(loss="poisson", ridge=0.1, random_state=0).fit(X, counts))


def test_models_are_saved_and_loaded(data, tmp_path):
    X, y, _ = data
    for model in (FasTRRegressor(symmetry=(0, 1), random_state=0), FasTRRegressorCV(**GRID)):
        loaded = pyfastr.load(model.fit(X, y).save(tmp_path / "model.fastr"))
        assert_tied(loaded)
        assert loaded.symmetry == model.symmetry
        assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_path_is_tied_all_along(data):
    X, y, _ = data
    path = fastr_path(X, y, thresholds=[0.0, 0.2, 0.5], ridge=0.01, random_state=0)
    assert_array_equal(path.factors[0], -path.factors[1])
    free = fastr_path(X, y, thresholds=[0.0], ridge=0.01, symmetry=None, random_state=0)
    assert not np.array_equal(np.abs(free.factors[0]), np.abs(free.factors[1]))


def test_scaling_decides_anew_whether_samples_are_symmetric(data):
    X, y, _ = data
    model = FasTRRegressor(ridge=0.1, random_state=0)
    options = {"n_bootstrap": 2, "random_state": 0}
    by_element = make_pipeline(TensorScaler(), model)
    first, second = bootstrap_factors(by_element, X, y, **options).samples
    assert_array_equal(np.abs(first), np.abs(second))
    by_row = make_pipeline(TensorScaler(per=0), model)
    assert by_row.fit(X, y)[-1].symmetric_modes_ is None
    first, second = bootstrap_factors(by_row, X, y, **options).samples
    assert not np.array_equal(np.abs(first), np.abs(second))


def test_a_term_of_the_other_sign_is_found_where_the_steepest_one_leads_nowhere():
    rng = np.random.default_rng(5)
    X, W = rng.normal(size=(300, 5, 5)), rng.normal(size=(5, 5))
    X, W = X + X.swapaxes(1, 2), W + W.T
    y = np.tensordot(X, W, 2)
    y += 0.02 * y.std() * rng.normal(size=300)
    model = FasTRRegressorCV(random_state=0).fit(X, y)
    assert model.n_terms_ == 5
    assert model.best_score_ > 0.99
