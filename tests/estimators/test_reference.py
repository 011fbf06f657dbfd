"""Flattened ridge regression beside a choice: the same as scikit-learn's, and told of if better."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression, PoissonRegressor, Ridge
from sklearn.metrics import make_scorer, r2_score, roc_auc_score
from sklearn.model_selection import KFold

from pyfastr import FasTRClassifierCV, FasTRRegressorCV
from pyfastr.config import MemoryBudget
from pyfastr.datasets import make_tensor_regression
from pyfastr.engines import engine_of
from pyfastr.estimators.choice_policy import ReferencePolicy
from pyfastr.estimators.comparison import Predictions, compare
from pyfastr.estimators.data import Data
from pyfastr.estimators.folds import training_weights
from pyfastr.estimators.reference import fit_reference, why_not
from pyfastr.estimators.scoring import Scoring
from pyfastr.solver.flat_ridge import FlatTask, by_features, by_samples, ridge_predictors
from pyfastr.solver.losses import POISSON, SQUARED
from pyfastr.sources import ArraySource, as_source

N = 60
SPLITS = list(KFold(3, shuffle=True, random_state=0).split(np.zeros(N)))
QUICK = {"thresholds": (0.0,), "ridges": (0.01,), "n_init": 2, "cv": 3, "random_state": 0}
# Fewer entries than training samples, and more.
SHAPES = [(4, 5), (6, 5, 4)]


def draw(shape, n=N, offset=3.0):
    """Samples with a mean, a response of all of their entries, weights and covariates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, *shape)) + offset
    signal = X.reshape(n, -1) @ rng.normal(size=np.prod(shape)) / np.sqrt(np.prod(shape))
    y = signal + 0.3 * rng.normal(size=n)
    return X, y, rng.integers(0, 4, n).astype(float), rng.normal(size=(n, 2))


def checked(X, y, weights=None, Z=None, *, fit_intercept=True, loss=SQUARED):
    return Data.check(SimpleNamespace(), X, y, weights, Z, fit_intercept=fit_intercept, loss=loss)


def fits_of(data):
    folds = data.tasks(weights=training_weights(SPLITS, N))
    return fit_reference(folds, folds.problem.engine, ReferencePolicy())


def scoring_of(data, classes=None):
    return Scoring(None, None, data.y, data, classes, "squared", None)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_fold_and_penalty_equals_scikit_learns_ridge(shape, weighted, fit_intercept):
    X, y, weights, _ = draw(shape)
    weights = weights if weighted else None
    fits = fits_of(checked(X, y, weights, fit_intercept=fit_intercept))
    flat, n_alphas = X.reshape(N, -1), len(fits.alphas)
    for fold, (train, _) in enumerate(SPLITS):
        g = None if weights is None else weights[train]
        for a in range(0, n_alphas, 4):
            alpha = fits.penalties[fold, a]
            ridge = Ridge(alpha, fit_intercept=fit_intercept, solver="svd")
            expected = ridge.fit(flat[train], y[train], g).predict(flat)
            found = fits.predictors[fold * n_alphas + a]
            assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_covariates_are_not_penalised(shape):
    X, y, weights, Z = draw(shape)
    y = y + 50 * Z[:, 0]
    fits = fits_of(checked(X, y, weights, Z))
    n_alphas = len(fits.alphas)
    for fold, (train, _) in enumerate(SPLITS):
        # With all the penalty there is, covariates and intercept are left alone.
        alone = LinearRegression().fit(Z[train], y[train], weights[train])
        largest = fits.predictors[(fold + 1) * n_alphas - 1]
        assert np.abs(largest - alone.predict(Z)).max() < 1e-2 * np.abs(y).max()
        # A covariate of hardly any size is free, whatever the penalty of its column would be.
        joint = np.hstack([X.reshape(N, -1), 1e6 * Z])
        ridge = Ridge(fits.penalties[fold, 18], solver="svd")
        ridge.fit(joint[train], y[train], weights[train])
        found = fits.predictors[fold * n_alphas + 18]
        assert_allclose(found, ridge.predict(joint), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_features_and_samples_lead_to_the_same(shape):
    X, y, weights, _ = draw(shape)
    X = X.reshape(N, -1)
    column = np.ones((N, 1)) / np.sqrt(weights.sum())
    task, alphas = FlatTask(y, weights, column), np.array([1e-6, 1.0, 100.0])
    primal = ridge_predictors(by_features(X, [task])[0], task, alphas)
    dual = ridge_predictors(by_samples(X @ X.T, [task])[0], task, alphas)
    for own, other in zip(primal, dual, strict=True):
        assert_allclose(own, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_counts_are_fitted_as_by_scikit_learns_poisson_regression(shape, weighted):
    X, y, weights, _ = draw(shape, offset=0.0)
    counts = np.random.default_rng(1).poisson(np.exp(0.5 + 0.7 * y)).astype(float)
    weights = weights if weighted else None
    fits = fits_of(checked(X, counts, weights, loss=POISSON))
    flat, n_alphas = X.reshape(N, -1), len(fits.alphas)
    for fold, (train, _) in enumerate(SPLITS):
        g = None if weights is None else weights[train]
        for a in range(6, n_alphas, 4):
            alpha = fits.penalties[fold, a]
            other = PoissonRegressor(alpha=alpha, solver="newton-cholesky", tol=1e-10)
            other.fit(flat[train], counts[train], g)
            expected = np.log(other.predict(flat))
            assert_allclose(fits.predictors[fold * n_alphas + a], expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Ridge regression on the flattened:UserWarning")
@pytest.mark.parametrize("kind", ["numbers", "classes"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_scores_beside_a_choice_are_those_of_ridge_in_its_folds(shape, kind):
    X, y, _, _ = draw(shape)
    labels = np.where(y > np.median(y), 1.0, -1.0)
    twin, target, score = {
        "numbers": (FasTRRegressorCV, y, r2_score),
        "classes": (FasTRClassifierCV, labels, roc_auc_score),
    }[kind]
    model = twin(**QUICK | {"cv": SPLITS}).fit(X, target)
    flat, reference, expected = X.reshape(N, -1), model.reference_, []
    penalties = fits_of(checked(X, target)).penalties[:, reference.best_index]
    for (train, test), alpha in zip(SPLITS, penalties, strict=True):
        predicted = Ridge(alpha).fit(flat[train], target[train]).predict(flat[test])
        expected.append(score(target[test], predicted))
    assert_allclose(reference.scores, expected, rtol=1e-8)
    assert_allclose(model.reference_score_, np.mean(expected), rtol=1e-8)
    best = reference.best_index
    assert reference.results["rank_test_score"][best] == 1
    assert_allclose(reference.results["split1_test_score"][best], expected[1], rtol=1e-8)
    assert_array_equal(reference.held_out.samples, model.held_out_.samples)


@pytest.mark.parametrize("kind", ["numbers", "classes", "counts"])
def test_a_choice_that_ridge_beats_is_told_so(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6, 6))
    signal = X.reshape(200, -1) @ rng.normal(size=36) / 6
    # Of full rank, which enough terms would fit.
    one = QUICK | {"n_terms": (1,)}
    twin, y, name = {
        "numbers": (FasTRRegressorCV(**one), signal, "R² 1 against"),
        "classes": (FasTRClassifierCV(**one), signal > 0, "area under the ROC curve 0.9"),
        "counts": (FasTRRegressorCV(**one, loss="poisson"), rng.poisson(np.exp(2 + signal)), "D²"),
    }[kind]
    with pytest.warns(UserWarning, match=f"flattened samples predicts .* better .{name}"):
        twin.fit(X, y)
    assert twin.reference_is_better_
    assert twin.reference_score_ > twin.best_score_ + 0.01


@pytest.mark.parametrize("noise", ["little", "nothing else"])
def test_a_choice_that_ridge_does_not_beat_is_left_in_peace(noise):
    X, y = make_tensor_regression(150, (8, 8), random_state=0)
    if noise == "nothing else":
        y = np.random.default_rng(0).permutation(y)
    model = FasTRRegressorCV(**QUICK).fit(X, y)
    assert not model.reference_is_better_
    assert np.isfinite(model.reference_score_)


def test_what_fails_in_a_fold_that_had_no_say_is_no_alarm_if_the_choice_does_not():
    """Four folds prefer a threshold at which the fit to the fifth misses half of a term."""
    rng = np.random.default_rng(0)
    W = np.zeros((10, 10))
    W[1:4, 1:4], W[6:9, 5:9] = 1, -1
    X = rng.standard_normal((200, 10, 10))
    y = np.tensordot(X, W, axes=2) + rng.standard_normal(200)
    model = FasTRRegressorCV(random_state=0).fit(X, y)
    reference = model.reference_
    assert reference.unseen_score > reference.unseen_score_of_choice
    assert reference.score < model.best_score_
    assert not model.reference_is_better_


def test_evidence_has_no_reference():
    X, y = make_tensor_regression(100, (6, 6), random_state=0)
    model = FasTRRegressorCV(**QUICK).fit(X, y).set_params(criterion="evidence").fit(X, y)
    assert not hasattr(model, "reference_")
    assert not hasattr(model, "reference_score_")


@pytest.mark.filterwarnings("ignore:Ridge regression on the flattened:UserWarning")
def test_what_costs_too_much_is_left_out_and_the_reason_told():
    X, y, _, _ = draw(SHAPES[1])
    data = checked(X, y)
    engine = engine_of(data.source)
    policy = ReferencePolicy()
    assert why_not(engine, scoring_of(data), policy) == ""
    few = ReferencePolicy(most_samples=59)
    assert "60 samples are more than 59" in why_not(engine, scoring_of(data), few)
    own = Scoring(lambda e, X, y: 0.0, None, y, data, None, "squared", None)
    assert "a function of fitted" in why_not(engine, own, policy)
    engine.budget = MemoryBudget(300_000)
    assert "memory budget" in why_not(engine, scoring_of(data), policy)
    model = FasTRRegressorCV(**QUICK, scoring=lambda e, X, y: e.score(X, y)).fit(X, y)
    assert model.reference_ is None
    assert np.isnan(model.reference_score_)
    assert not model.reference_is_better_
    assert "a function of fitted" in model.reference_missing_
    assert FasTRRegressorCV(**QUICK).fit(X, y).reference_missing_ == ""


def test_a_score_that_does_not_take_its_predictions_leaves_the_choice_alone():
    X, y, _, _ = draw(SHAPES[0])
    counts = np.random.default_rng(0).poisson(np.exp(y - y.mean() - 1))
    scoring = "neg_mean_poisson_deviance"  # of positive means
    model = FasTRRegressorCV(**QUICK, loss="poisson", scoring=scoring).fit(X, counts)
    assert np.isfinite(model.reference_score_)
    own = make_scorer(not_constant)
    model = FasTRRegressorCV(**QUICK, scoring=own).fit(X, y - y.mean() + 1e3)
    assert model.reference_ is None
    assert model.best_score_ == 1


def not_constant(y, prediction):
    """A score that refuses what is the same for all samples, as a constant predicts."""
    if np.ptp(prediction) < 1e-3:
        raise ValueError("y_pred must not be constant")
    return 1.0


def test_the_error_of_a_difference_of_areas_is_that_of_delong():
    rng = np.random.default_rng(0)
    labels = np.repeat([1.0, -1.0], 30)
    data = checked(np.zeros((N, 2, 2)), labels)
    pair = rng.normal(size=(2, N)) + np.array([[1.0], [0.5]]) * labels
    splits = [(np.arange(N), np.arange(N))]
    ours, theirs = (Predictions(row[None], data) for row in pair)
    found = compare(ours, theirs, scoring_of(data, np.array([0, 1])), splits)
    positive, negative = labels > 0, labels < 0
    wins = (pair[:, positive, None] > pair[:, None, negative]).astype(float)
    difference = wins[1] - wins[0]
    variance = sum(difference.mean(axis=axis).var(ddof=1) / 30 for axis in (0, 1))
    assert_allclose(found.lead, difference.mean(), atol=1e-12)
    assert_allclose(found.error, np.sqrt(variance), rtol=1e-10)


@pytest.mark.parametrize("n_positive", [1, 2])
def test_one_sample_of_a_class_tells_no_error_of_an_area(n_positive):
    labels = np.where(np.arange(N) < n_positive, 1.0, -1.0)
    data = checked(np.zeros((N, 2, 2)), labels)
    rows = np.random.default_rng(0).normal(size=(2, 1, N))
    ours, theirs = (Predictions(row, data) for row in rows)
    found = compare(
        ours, theirs, scoring_of(data, np.array([0, 1])), [(np.arange(N), np.arange(N))]
    )
    assert np.isinf(found.error) == (n_positive == 1)


def full_rank(n=150):
    """Samples and a response that no outer product explains."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6, 6))
    return X, X.reshape(n, -1) @ rng.normal(size=36)


@pytest.mark.filterwarnings("ignore:Ridge regression on the flattened:UserWarning")
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_lead_is_clear_in_any_units_of_y(unit):
    X, y = full_rank()
    options = QUICK | {"n_terms": (1,), "scoring": "neg_mean_squared_error"}
    assert FasTRRegressorCV(**options).fit(X, unit * y).reference_is_better_


def test_advice_beside_covariates_names_them():
    X, y = full_rank()
    Z = np.random.default_rng(1).normal(size=(len(X), 1))
    with pytest.warns(UserWarning, match="and take the covariates out of X and y"):
        FasTRRegressorCV(**QUICK, n_terms=(1,)).fit(X, y + 30 * Z[:, 0], covariates=Z)


@pytest.mark.parametrize("shape", SHAPES)
def test_data_in_memory_are_read_once_and_not_written_to(shape):
    X, y, _, _ = draw(shape)
    before = X.copy()
    folds = checked(X, y).tasks(weights=training_weights(SPLITS, N))
    fit_reference(folds, folds.problem.engine, ReferencePolicy())
    assert folds.problem.engine.passes == 1
    assert_array_equal(X, before)


def test_files_are_read_once_for_each_part_that_fits_the_budget(store):
    X, _, _, _ = draw((6, 5, 4))
    engine = engine_of(as_source(store(X, "hdf5")))
    engine.budget = MemoryBudget(4 * 2 * 8 * N * 50)
    centred = (X - X.mean(axis=0)).reshape(N, -1)
    found = engine.sample_products(np.full(N, 1 / N))
    assert_allclose(found, centred @ centred.T, rtol=1e-10, atol=1e-10)
    assert engine.passes == engine.n_product_passes == 3
    again = engine_of(ArraySource(X))
    assert_allclose(again.sample_products(np.zeros(N)), (Y := X.reshape(N, -1)) @ Y.T, rtol=1e-12)
    assert again.passes == 1


@pytest.mark.parametrize("size", [1e155, 1e-165])
def test_a_penalty_beyond_floats_is_no_reference(size):
    X, y, _, _ = draw(SHAPES[1])
    model = FasTRRegressorCV(**QUICK).fit(X * size, y)
    assert model.reference_ is None
    assert "its penalty leaves the range of floats" in model.reference_missing_


@pytest.mark.filterwarnings("ignore:Ridge regression on the flattened:UserWarning")
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_penalty_is_in_units_of_the_weights(size):
    X, y, w, _ = draw(SHAPES[0])
    weights = np.ones(len(y)) if w is None else w
    plain, scaled = (
        FasTRRegressorCV(**QUICK).fit(X, y, sample_weight=c * weights).reference_
        for c in (1.0, size)
    )
    assert scaled.alpha == pytest.approx(size * plain.alpha)


def test_a_constant_is_no_reason_for_an_alarm():
    rng = np.random.default_rng(8)
    X, y = np.repeat(rng.standard_normal((1, 3, 2)), 12, 0), np.full(12, rng.standard_normal())
    options = {"thresholds": [0.0], "ridges": [1e-5], "n_init": 1, "n_terms": 1, "cv": 3}
    model = FasTRRegressorCV(**options, scoring="neg_mean_absolute_error", random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The coefficient is zero")
        model.fit(X, y)
    assert not model.reference_is_better_
