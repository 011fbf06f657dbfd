"""Two classes: labels in, labels and probabilities out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from pyfastr import FasTRClassifier, FasTRRegressor
from pyfastr.datasets import make_tensor_regression

FAST = {"n_init": 4, "random_state": 0}


def draw(n_samples=120, shape=(6, 5), seed=0, sharpness=1.0):
    """Samples and labels 0 and 1 that follow a logistic model."""
    X, _, W = make_tensor_regression(n_samples, shape, coef=True, random_state=seed)
    W = sharpness * W / np.linalg.norm(W)
    rng = np.random.default_rng(seed)
    odds = X.reshape(n_samples, -1) @ W.ravel() + 0.5
    return X, (rng.random(n_samples) < 1 / (1 + np.exp(-odds))).astype(int), W


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], ["no", "yes"], [False, True], [3.0, 7.0]])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_labels_of_any_kind_come_back(loss, labels):
    X, y, _ = draw()
    expected = FasTRClassifier(loss=loss, **FAST).fit(X, y)
    model = FasTRClassifier(loss=loss, **FAST).fit(X, np.array(labels)[y])
    assert_array_equal(model.classes_, labels)
    assert_array_equal(model.predict(X), np.array(labels)[expected.predict(X)])
    assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_the_squared_loss_is_a_regression_on_minus_one_and_one():
    X, y, _ = draw()
    model = FasTRClassifier(threshold=0.1, ridge=0.3, **FAST).fit(X, y)
    regressor = FasTRRegressor(threshold=0.1, ridge=0.3, **FAST).fit(X, 2.0 * y - 1)
    assert_array_equal(model.decision_function(X), regressor.predict(X))
    assert_array_equal(model.coef_, regressor.coef_)


def penalised(theta, P, y, amount):
    """Logistic loss and ridge of one mode, with the intercept left free."""
    decision = P @ theta[:-1] + theta[-1]
    return np.logaddexp(0, -(2 * y - 1) * decision).sum() + amount * theta[:-1] @ theta[:-1] / 2


@pytest.mark.parametrize("shape", [(6, 5), (4, 3, 3)], ids=str)
def test_the_logistic_loss_is_lowest_in_the_last_mode(shape):
    X, y, _ = draw(shape=shape)
    ridge = 0.05
    model = FasTRClassifier(loss="logistic", ridge=ridge, tol=1e-7, **FAST).fit(X, y)
    P = X
    for factor in model.factors_[:-1]:
        P = np.tensordot(P, factor[:, 0], axes=(1, 0))
    decision = model.decision_function(X)
    p = 1 / (1 + np.exp(-decision))
    # The ridge as documented: relative to the features at the curvature 1/4 of even odds.
    g = p * (1 - p)
    centred = P - np.average(P, axis=0, weights=g)
    amount = ridge * np.sum(g[:, None] * centred**2) / P.shape[1] * 0.25 / g.mean()
    found = np.append(model.factors_[-1][:, 0] * model.scales_[0], model.intercept_)
    best = minimize(penalised, found, args=(P, y, amount), tol=1e-12)
    assert_allclose(found, best.x, atol=1e-4 * np.abs(best.x).max())
    assert (np.diff(model.history_["loss"])[1:] <= 1e-6).all()


def test_vectors_are_a_logistic_regression():
    X, y, _ = draw(shape=(6,), sharpness=2.0)
    model = FasTRClassifier(loss="logistic", ridge=1e-7, tol=1e-7).fit(X, y)
    expected = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    assert_allclose(model.coef_, expected.coef_[0], rtol=1e-3)
    assert_allclose(model.intercept_, expected.intercept_[0], rtol=1e-3)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_separable_classes_give_a_finite_model(loss):
    X, _, W = draw()
    y = X.reshape(len(X), -1) @ W.ravel() > 0
    model = FasTRClassifier(loss=loss, ridge=1e-3, **FAST).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.score(X, y) > 0.9
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_probabilities_are_calibrated_on_new_samples(loss):
    X, y, _ = draw(4000, sharpness=2.0)
    model = FasTRClassifier(loss=loss, ridge=0.01, **FAST).fit(X[:2000], y[:2000])
    p = model.predict_proba(X[2000:])[:, 1]
    for low, high in [(0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1)]:
        some = (p >= low) & (p < high)
        assert abs(p[some].mean() - y[2000:][some].mean()) < 0.08


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_class_weights_are_sample_weights(loss):
    X, y, _ = draw()
    weights = np.where(y == 1, 3.0, 1.0)
    own = FasTRClassifier(loss=loss, class_weight={0: 1, 1: 3}, **FAST).fit(X, y)
    given = FasTRClassifier(loss=loss, **FAST).fit(X, y, sample_weight=weights)
    assert_array_equal(own.coef_, given.coef_)
    balanced = FasTRClassifier(loss=loss, class_weight="balanced", **FAST).fit(X, y)
    assert np.isfinite(balanced.coef_).all()


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_covariates_move_the_decision(loss):
    X, y, _ = draw(400)
    Z = np.random.default_rng(1).normal(size=(400, 1))
    y = (y + (Z[:, 0] > 0)) > 0
    model = FasTRClassifier(loss=loss, **FAST).fit(X, y, covariates=Z)
    assert model.covariate_coef_[0] > 0
    moved = model.decision_function(X, Z + 1) - model.decision_function(X, Z)
    assert_allclose(moved, model.covariate_coef_[0])
    assert_array_equal(model.predict(X, Z) == 1, model.decision_function(X, Z) > 0)
    assert_allclose(model.predict_proba(X, Z).sum(axis=1), 1)
    assert model.score(X, y, covariates=Z) == np.mean(model.predict(X, Z) == y)


def test_more_classes_by_one_versus_rest():
    X, _, W = draw(300, sharpness=4.0)
    score = X.reshape(len(X), -1) @ W.ravel()
    y = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))
    # One versus rest checks nothing but the number of dimensions of y.
    model = OneVsRestClassifier(FasTRClassifier(**FAST)).fit(X[:200], y[:200])
    assert model.predict_proba(X[200:]).shape == (100, 3)
    assert model.score(X[200:], y[200:]) > 0.6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(120)}, "only one class"),
        ({"loss": "logistic", "refit_support": "evidence"}, "the evidence is that of the squared"),
        ({"class_weight": {0: 0, 1: 1}}, "leave no sample of class 0"),
        ({"y": np.linspace(0, 1, 120)}, "Unknown label type"),
        ({"y": None}, "requires y"),
    ],
    ids=str,
)
def test_what_cannot_be_classified_is_refused(change, message):
    X, y, _ = draw()
    y = change.pop("y", y)
    with pytest.raises(ValueError, match=message):
        FasTRClassifier(**change).fit(X, y)


EXPECTED = "expected a class for each sample, as text, whole numbers or booleans"


@pytest.mark.parametrize(
    ("y", "match"),
    [
        ([[1], [1, 2]] * 5, "y is no list of classes .*inhomogeneous"),
        (np.zeros((10, 2, 2)), "y is no list of classes .*dim 3"),
        (3, r"y is no list of classes .*shape \(\)"),
        ([0.0, 1.0, 0.0, np.nan, *[1.0] * 6], "Input y contains NaN: first at sample 3, 1 such"),
        ([0.0, np.inf, 0.0, 1.0, *[1.0] * 6], "Input y contains infinity: first at sample 1"),
        (np.arange(10) / 7, "Unknown label type: continuous: y has values such as 0.0; "),
    ],
    ids=["ragged", "3-D", "number", "NaN", "infinity", "numbers"],
)
def test_classes_that_are_none_are_told_with_what_is_expected(y, match):
    X = np.random.default_rng(0).normal(size=(10, 4, 3))
    with pytest.raises(ValueError, match=f"{match}.*{EXPECTED}"):
        FasTRClassifier().fit(X, y)


@pytest.mark.parametrize("given", [{5: 1.0}, {0: -1, 1: 1}, {0: np.nan, 1: 1}])
def test_weights_of_classes_are_checked_by_their_own_name(given):
    X = np.random.default_rng(0).normal(size=(10, 4, 3))
    with pytest.raises(ValueError, match=r"class_weight is .*weights of 0 or more for classes amo"):
        FasTRClassifier(class_weight=given).fit(X, [0, 1] * 5)


def test_weights_of_classes_may_name_some_that_samples_do_not_have():
    X = np.random.default_rng(0).normal(size=(10, 4, 3))
    plain, named = (
        FasTRClassifier(class_weight=weights, random_state=0).fit(X, [0, 1] * 5)
        for weights in ({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0, 2: 3.0})
    )
    assert_array_equal(plain.coef_, named.coef_)
