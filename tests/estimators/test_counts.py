"""Counts: the Poisson loss against scikit-learn and GLTRM, its invariances, and what it refuses."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score, mean_poisson_deviance
from sklearn.model_selection import KFold, cross_val_score
from sklearn.utils import get_tags

from pyfastr import FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV
from pyfastr.baselines import GLTRM
from pyfastr.datasets import make_tensor_regression
from pyfastr.metrics import coefficient_error

TIGHT = {"loss": "poisson", "tol": 1e-7, "random_state": 0, "n_init": 8}
GRID = {"thresholds": (0.0, 0.1, 0.3), "ridges": (0.01, 0.3), "n_init": 4, "random_state": 0}


def draw(shape, n_samples=200, *, level=1.0, n_terms=1, seed=0):
    """Samples, counts whose log-means vary by about one, and the coefficient."""
    X, _, W = make_tensor_regression(
        n_samples, shape, sparsity=0.5, n_terms=n_terms, coef=True, random_state=seed
    )
    W = W / np.linalg.norm(W)
    means = np.exp(level + np.tensordot(X, W, len(shape)))
    return X, np.random.default_rng(seed).poisson(means).astype(float), W


def alpha_of(model, X, y, weights=None):
    """The penalty of scikit-learn that equals the relative ridge of a fit to vectors."""
    g = model.predict(X) * (1 if weights is None else weights)
    centred = X - (np.average(X, axis=0, weights=g) if model.fit_intercept else 0)
    total = len(y) if weights is None else weights.sum()
    mean, count = np.sum(g) / total, np.average(y, weights=weights)
    return model.ridge * count / mean * np.sum(g[:, None] * centred**2) / X.shape[1] / total


@pytest.mark.parametrize("ridge", [1e-8, 0.1, 2.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_vectors_are_the_poisson_regression_of_scikit_learn(ridge, fit_intercept, weighted):
    X, y, _ = draw((8,), 120, level=0.5)
    weights = np.random.default_rng(1).integers(0, 4, 120).astype(float) if weighted else None
    model = FasTRRegressor(ridge=ridge, fit_intercept=fit_intercept, **TIGHT)
    model.fit(X, y, weights)
    same = PoissonRegressor(
        alpha=alpha_of(model, X, y, weights), fit_intercept=fit_intercept, tol=1e-12, max_iter=10000
    ).fit(X, y, weights)
    assert_allclose(model.coef_, same.coef_, atol=1e-5)
    assert_allclose(model.intercept_, same.intercept_, atol=1e-5)
    assert_allclose(model.predict(X), same.predict(X), rtol=1e-4)
    assert_allclose(model.score(X, y, weights), same.score(X, y, weights), atol=1e-5)


def test_vectors_have_one_solution_and_are_sure_of_it_once_sweeps_converge():
    X, y, _ = draw((8,), 120, level=0.5)
    model = FasTRRegressor(loss="poisson", random_state=0).fit(X, y)
    assert (model.starts_.sure, model.starts_.confidence) == (True, 1.0)
    with pytest.warns(ConvergenceWarning):
        cut = FasTRRegressor(loss="poisson", max_iter=1, tol=1e-12, random_state=0).fit(X, y)
    assert not cut.starts_.sure


def test_more_features_than_samples_are_the_same_regression():
    X, y, _ = draw((30,), 20)
    model = FasTRRegressor(ridge=0.5, **TIGHT).fit(X, y)
    same = PoissonRegressor(alpha=alpha_of(model, X, y), tol=1e-12, max_iter=10000).fit(X, y)
    assert_allclose(model.coef_, same.coef_, atol=1e-5)


def test_covariates_are_columns_without_a_penalty():
    X, y, _ = draw((8,), 150)
    Z = np.random.default_rng(2).normal(size=(150, 2))
    y = np.random.default_rng(3).poisson(np.exp(0.5 + Z @ [0.5, -0.3] + X[:, 0] / 3)).astype(float)
    model = FasTRRegressor(ridge=1e-9, **TIGHT).fit(X, y, covariates=Z)
    same = PoissonRegressor(alpha=0, tol=1e-12, max_iter=10000).fit(np.hstack([X, Z]), y)
    assert_allclose(np.r_[model.coef_, model.covariate_coef_], same.coef_, atol=1e-5)
    assert_allclose(model.intercept_, same.intercept_, atol=1e-5)
    assert_allclose(model.predict(X, Z), same.predict(np.hstack([X, Z])), rtol=1e-4)


@pytest.mark.parametrize("shape", [(7, 6), (6, 5, 4)], ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_score_equations_hold_in_every_mode(shape, fit_intercept):
    X, y, _ = draw(shape)
    Z = np.random.default_rng(1).normal(size=(len(y), 2))
    model = FasTRRegressor(ridge=1e-9, fit_intercept=fit_intercept, **TIGHT).fit(X, y, covariates=Z)
    left = y - model.predict(X, Z)
    assert_allclose(Z.T @ left, 0, atol=1e-3)
    if fit_intercept:
        assert_allclose(left.sum(), 0, atol=1e-4)
    letters = "abc"[: len(shape)]
    for mode in range(len(shape)):
        others = [m for m in range(len(shape)) if m != mode]
        spec = ",".join(["n", "n" + letters, *(letters[m] for m in others)]) + "->" + letters[mode]
        slope = np.einsum(spec, left, X, *(model.factors_[m][:, 0] for m in others))
        assert_allclose(slope, 0, atol=1e-3)


@pytest.mark.parametrize("shape", [(7, 6), (5, 4, 3)], ids=str)
@pytest.mark.parametrize("level", [0.0, 2.0])
@pytest.mark.parametrize("adjusted", [False, True])
def test_the_deviance_is_no_higher_than_that_of_gltrm(shape, level, adjusted):
    X, y, _ = draw(shape, 150, level=level, seed=1)
    Z = np.random.default_rng(1).normal(size=(150, 2)) if adjusted else None
    theirs = GLTRM(family="poisson", tol=1e-12, max_iter=2000, random_state=0)
    theirs.fit(X, y, covariates=Z)
    ours = FasTRRegressor(ridge=1e-9, **TIGHT).fit(X, y, covariates=Z)
    deviance = len(y) * mean_poisson_deviance(y, ours.predict(X, Z))
    assert deviance <= theirs.deviance_ * (1 + 1e-6)
    assert_allclose(ours.history_["loss"][-1] * len(y), deviance, rtol=1e-5)


@pytest.mark.parametrize(("shape", "n_samples"), [((8, 7), 150), ((6, 5, 4), 150)], ids=str)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_coefficients_are_found(shape, n_samples, seed):
    X, y, W = draw(shape, n_samples, level=2.0, seed=seed)
    model = FasTRRegressor(0.05, 0.01, loss="poisson", refit_support=True, random_state=0).fit(X, y)
    assert model.converged_
    assert coefficient_error(model.coef_, W) < 0.15
    assert_allclose(model.intercept_, 2, atol=0.1)
    # The squared loss knows the direction, but not as well.
    squared = FasTRRegressor(0.05, 0.01, refit_support=True, random_state=0).fit(X, y)
    size = np.linalg.norm(squared.coef_)
    assert coefficient_error(squared.coef_ / size, W) > coefficient_error(model.coef_, W)


def test_two_terms_are_found():
    X, y, W = draw((7, 6, 5), 400, level=2.0, n_terms=2, seed=3)
    model = FasTRRegressor(ridge=1e-3, n_terms=2, loss="poisson", random_state=0).fit(X, y)
    assert coefficient_error(model.coef_, W) < 0.15


@pytest.mark.parametrize("sweep", ["cyclic", "simultaneous"])
def test_a_threshold_makes_zeros_and_a_refit_keeps_them(sweep):
    X, y, _ = draw((8, 7), 300)
    plain = FasTRRegressor(0.2, 0.01, sweep=sweep, **TIGHT).fit(X, y)
    again = clone(plain).set_params(refit_support=True).fit(X, y)
    assert (plain.coef_ == 0).any()
    assert_array_equal(plain.coef_ == 0, again.coef_ == 0)
    assert again.score(X, y) > plain.score(X, y)


@pytest.mark.parametrize("factor", [1e-6, 7.0, 1e9])
def test_units_of_counts_are_in_the_intercept_alone(factor):
    X, y, _ = draw((6, 5))
    model, other = (FasTRRegressor(0.1, 0.05, **TIGHT).fit(X, c * y) for c in (1, factor))
    assert_allclose(other.coef_, model.coef_, atol=1e-6)
    assert_allclose(other.intercept_, model.intercept_ + np.log(factor), atol=1e-6)
    assert_allclose(other.score(X, factor * y), model.score(X, y), atol=1e-6)


def test_scales_and_offsets_of_x_leave_predictions_as_they_are():
    X, y, _ = draw((6, 5))
    model = FasTRRegressor(0.1, 0.05, **TIGHT).fit(X, y)
    moved = 1e-9 * (X + np.arange(30.0).reshape(6, 5))
    other = FasTRRegressor(0.1, 0.05, **TIGHT).fit(moved, y)
    assert_allclose(other.coef_, 1e9 * model.coef_, rtol=1e-4, atol=1e3)
    assert_allclose(other.predict(moved), model.predict(X), rtol=1e-4)


def test_weights_are_repeated_samples():
    X, y, _ = draw((6, 5), 90)
    counts = np.random.default_rng(0).integers(0, 3, 90)
    Z = np.random.default_rng(1).normal(size=(90, 1))
    start = [np.ones(6), np.arange(1.0, 6.0)]
    options = TIGHT | {"init": start}
    weighted = FasTRRegressor(0.1, 0.05, **options).fit(X, y, counts, Z)
    repeated = FasTRRegressor(0.1, 0.05, **options).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts), covariates=np.repeat(Z, counts, axis=0)
    )
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
    assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_only_the_direction_of_a_start_matters(fit_intercept, size):
    X, y, _ = draw((6, 5))
    start = [size * np.ones(6), np.ones(5)]
    options = {**TIGHT, "fit_intercept": fit_intercept}
    model = FasTRRegressor(0.0, 0.05, **options).fit(X, y)
    other = FasTRRegressor(0.0, 0.05, **{**options, "init": start}).fit(X, y)
    assert other.score(X, y) >= model.score(X, y) - 1e-4


def test_float32_stays_float32():
    X, y, _ = draw((6, 5))
    model = FasTRRegressor(0.1, 0.05, **TIGHT).fit(X, y)
    single = FasTRRegressor(0.1, 0.05, **TIGHT).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == single.predict(X.astype(np.float32)).dtype == np.float32
    assert_allclose(single.coef_, model.coef_, atol=1e-3)


def test_the_score_is_d2():
    X, y, _ = draw((6, 5), 200)
    model = FasTRRegressor(0.1, 0.05, **TIGHT).fit(X[:150], y[:150])
    weights = np.arange(50.0)
    for g in (None, weights):
        expected = d2_tweedie_score(y[150:], model.predict(X[150:]), sample_weight=g, power=1)
        assert_allclose(model.score(X[150:], y[150:], g), expected)
    assert model.score(X[150:], np.full(50, 2)) == model.score(X[150:], np.zeros(50)) == 0.0
    assert model.score(X[150:], np.arange(50) == 0, np.arange(50)) == 0.0


def test_predictions_are_positive_and_finite_however_far_from_the_samples():
    X, y, _ = draw((6, 5))
    model = FasTRRegressor(0.1, 0.05, **TIGHT).fit(X, y)
    for far in (X * 1e6, X.astype(np.float32) * 1e6):
        prediction = model.predict(far)
        assert np.isfinite(prediction).all()
        assert (prediction > 0).all()


@pytest.mark.parametrize(
    "y",
    [
        np.r_[np.zeros(59), 1.0],
        np.r_[np.zeros(59), 1e12],
        np.repeat([0.0, 1.0], 30),
        np.geomspace(1e-200, 1e-190, 60),
        np.geomspace(1e-10, 1e10, 60),
    ],
    ids=["one", "one that is huge", "two", "tiny", "of all sizes"],
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_extreme_counts_end_in_numbers(y, fit_intercept):
    X = np.random.default_rng(0).normal(size=(60, 5, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = FasTRRegressor(0.1, 0.01, loss="poisson", fit_intercept=fit_intercept, n_init=4)
        model.fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite([model.intercept_, model.score(X, y), *model.history_["loss"]]).all()
    assert (model.predict(X) > 0).all()


def test_a_group_without_counts_has_a_finite_covariate():
    X, y, _ = draw((6, 5), 100)
    group = (np.arange(100) % 4 == 0).astype(float)
    y[group == 1] = 0
    model = FasTRRegressor(0.1, 0.05, **TIGHT).fit(X, y, covariates=group)
    assert -50 < model.covariate_coef_[0] < -5
    assert_allclose(model.predict(X, group)[group == 1], 0, atol=0.01)


def test_constant_counts_are_an_intercept():
    X = np.random.default_rng(0).normal(size=(30, 4, 3))
    with pytest.warns(ConvergenceWarning, match="The coefficient is zero: y is constant"):
        model = FasTRRegressor(loss="poisson").fit(X, np.full(30, 3.0))
    assert_allclose(model.predict(X), 3)


def test_the_twin_chooses_and_predicts_held_out_counts():
    X, y, W = draw((7, 6), 160)
    model = FasTRRegressorCV(loss="poisson", **GRID).fit(X[:120], y[:120])
    assert model.score(X[120:], y[120:]) > 0.4
    assert coefficient_error(model.coef_, W) < 0.3
    assert model.best_estimator_.loss == "poisson"
    held = model.held_out_
    assert (held.prediction > 0).all()
    for fold in range(5):
        own = held.folds == fold
        scored = model.cv_results_[f"split{fold}_test_score"][model.best_index_]
        assert_allclose(d2_tweedie_score(held.target[own], held.prediction[own], power=1), scored)
    assert_allclose(model.predict(X), model.best_estimator_.predict(X))


def test_the_twin_chooses_the_number_of_terms():
    X, y, _ = draw((6, 5), 200, level=2.0, n_terms=2, seed=3)
    model = FasTRRegressorCV(n_terms=(1, 2), loss="poisson", **GRID).fit(X, y)
    assert model.n_terms_ == 2
    assert model.scores_path_.shape == (2, 2, 3, 5)


def test_weighted_folds_are_scored_by_weighted_d2():
    X, y, _ = draw((6, 5), 100)
    weights = np.random.default_rng(0).integers(0, 3, 100).astype(float)
    model = FasTRRegressorCV(loss="poisson", **GRID).fit(X, y, weights)
    held, own = model.held_out_, model.held_out_.folds == 0
    g = weights[held.samples[own]]
    expected = d2_tweedie_score(held.target[own], held.prediction[own], sample_weight=g, power=1)
    assert_allclose(model.cv_results_["split0_test_score"][model.best_index_], expected)


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_poisson_deviance"])
def test_other_scores_are_of_mean_counts(scoring):
    X, y, _ = draw((6, 5), 100)
    cv = KFold(4, shuffle=True, random_state=0)
    grid = GRID | {"thresholds": (0.1,), "ridges": (0.05,)}
    model = FasTRRegressorCV(loss="poisson", scoring=scoring, cv=cv, **grid).fit(X, y)
    alone = FasTRRegressor(0.1, 0.05, refit_support=True, **TIGHT)
    expected = cross_val_score(alone, X, y, scoring=scoring, cv=cv).mean()
    assert_allclose(model.best_score_, expected, rtol=0.02)


def test_a_mean_of_folds_predicts_by_its_mean_coefficient():
    X, y, _ = draw((6, 5), 100)
    model = FasTRRegressorCV(loss="poisson", refit=False, **GRID).fit(X, y)
    predictor = np.tensordot(X, model.coef_, 2) + model.intercept_
    assert_allclose(model.predict(X), np.exp(predictor))
    assert np.isfinite(model.held_out_.prediction).all()
    assert model.score(X, y) > 0.3


def test_copies_of_a_fit_predict_the_same():
    X, y, _ = draw((6, 5), 100)
    for model in (FasTRRegressor(0.1, 0.05, **TIGHT), FasTRRegressorCV(loss="poisson", **GRID)):
        fitted = clone(model).fit(X, y)
        again = pickle.loads(pickle.dumps(fitted))
        assert again.loss == clone(model).loss == "poisson"
        assert_array_equal(again.predict(X), fitted.predict(X))
        assert get_tags(model).target_tags.positive_only
        assert not get_tags(clone(model).set_params(loss="squared")).target_tags.positive_only


def test_what_are_no_counts_is_told():
    X, y, _ = draw((5, 4), 40)
    negative, zeros = y.copy(), np.zeros(40)
    negative[7] = -2.5
    first = np.arange(40) == np.argmax(y)
    for model in (FasTRRegressor(loss="poisson"), FasTRRegressorCV(loss="poisson")):
        with pytest.raises(ValueError, match=r"y holds -2\.5 at sample 7; expected counts of 0 or"):
            model.fit(X, negative)
        with pytest.raises(ValueError, match=r"y holds 0 for all samples that count; expected at"):
            model.fit(X, zeros)
        with pytest.raises(ValueError, match=r"y holds 0 for all samples that count"):
            model.fit(X, first.astype(float), 1.0 - first)
        with pytest.raises(ValueError, match=r"'loss' parameter of FasTRRegressor(CV)? must be"):
            clone(model).set_params(loss="logistic").fit(X, y)
    with pytest.raises(ValueError, match=r"cv leaves fold \d only training samples whose count"):
        FasTRRegressorCV(loss="poisson", random_state=0).fit(X, first.astype(float))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (FasTRRegressor(loss="poisson", refit_support="evidence"), "refit_support"),
        (FasTRRegressorCV(loss="poisson", criterion="evidence"), "criterion"),
        (FasTRClassifierCV(loss="logistic", criterion="evidence"), "criterion"),
    ],
)
def test_other_losses_have_no_evidence(model, name):
    X, y, _ = draw((5, 4), 40)
    with pytest.raises(ValueError, match=f"{name} is 'evidence' and loss is .* squared loss"):
        model.fit(X, (y > 1).astype(float))
