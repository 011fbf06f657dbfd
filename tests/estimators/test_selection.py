"""Choosing threshold, ridge and number of terms."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.metrics import make_scorer, mean_absolute_error, r2_score, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import make_pipeline

from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
)
from pyfastr.datasets import make_tensor_regression
from pyfastr.estimators.choice_policy import TermsPolicy
from pyfastr.estimators.scoring import auc_scores, d2_scores, r2_scores
from pyfastr.metrics import coefficient_error, support_precision, support_recall
from pyfastr.sources import ArraySource

GRID = {"thresholds": (0.0, 0.05, 0.2), "ridges": (1e-3, 0.3), "n_init": 4, "random_state": 0}


def draw(n_samples=90, shape=(6, 5), **options):
    return make_tensor_regression(n_samples, shape, random_state=0, **options)


def test_the_choice_is_the_sparsest_as_good_as_the_best_and_is_fitted_to_all_data():
    X, y = draw(noise=2.0)
    model = FasTRRegressorCV(**GRID, scoring="neg_mean_squared_error").fit(X, y)
    scores = model.scores_path_[0]
    assert scores.shape == (2, 3, 5)
    r, t = np.unravel_index(scores.mean(axis=-1).argmax(), (2, 3))
    assert model.ridge_ == GRID["ridges"][r]
    short = scores[r, t] - scores[r]
    chance = 0.5 * short.std(axis=-1, ddof=1) / np.sqrt(5)
    as_good = np.flatnonzero(short.mean(axis=-1) <= chance)
    assert model.threshold_ == GRID["thresholds"][as_good.max()]
    assert_allclose(model.best_score_, scores[r, as_good.max()].mean(), rtol=1e-8)
    alone = FasTRRegressor(
        model.threshold_, model.ridge_, n_init=4, refit_support=True, random_state=0
    ).fit(X, y)
    assert_array_equal(model.coef_, alone.coef_)
    assert_array_equal(model.predict(X), alone.predict(X))
    assert model.score(X, y) == alone.score(X, y)
    assert model.intercept_ == alone.intercept_


def test_the_final_fit_begins_from_folds_that_agree():
    X, y, W = make_tensor_regression(100, (8, 7), coef=True, random_state=0)
    model = FasTRRegressorCV(random_state=0).fit(X, y)
    assert model.starts_.sure
    assert model.starts_.n_starts == 5
    # Whoever fits the best estimator again, or asks for starts, gets a search.
    again = model.best_estimator_.fit(X, y)
    assert again.starts_.n_starts == 8
    assert_allclose(again.coef_, model.coef_, atol=1e-3 * np.abs(W).max())
    assert FasTRRegressorCV(n_init=12, random_state=0).fit(X, y).starts_.n_starts == 12


@pytest.mark.parametrize(("shape", "n_terms"), [((6, 5), 1), ((6, 5), 2), ((12,), 1)])
def test_without_a_refit_the_choice_is_the_mean_of_the_folds_models(shape, n_terms):
    X, y = draw(shape=shape, noise=2.0)
    seen = []

    def score(estimator, X, y):
        seen.append(estimator)
        return estimator.score(X, y)

    grid = GRID | {"thresholds": (0.2,), "ridges": (0.3,)}
    model = FasTRRegressorCV(**grid, n_terms=n_terms, scoring=score, refit=False).fit(X, y)
    assert_allclose(model.coef_, np.mean([fold.coef_ for fold in seen], axis=0), rtol=1e-12)
    assert_allclose(model.intercept_, np.mean([fold.intercept_ for fold in seen]), rtol=1e-12)
    folds = [fold.predict(X) for fold in seen]
    assert_allclose(model.predict(X), np.mean(folds, axis=0), rtol=1e-12)
    assert len(model.scales_) == (5 * n_terms if len(shape) > 1 else 1)
    best = model.best_estimator_.get_params()
    assert (best["threshold"], best["ridge"], best["n_terms"]) == (0.2, 0.3, n_terms)
    assert not hasattr(model, "starts_")
    refitted = model.set_params(refit=True).fit(X, y)
    assert len(refitted.scales_) == n_terms
    assert not hasattr(refitted.set_params(refit=False).fit(X, y), "n_iter_")


def test_without_a_refit_points_that_differ_by_chance_are_averaged():
    X, y = draw(n_terms=2, noise=2.0)
    seen = []

    def score(estimator, X, y):
        seen.append((estimator.coef_, estimator.intercept_))
        return estimator.score(X, y)

    model = FasTRRegressorCV(**GRID, n_terms=(1, 2), scoring=score, refit=False).fit(X, y)
    coefs, intercepts = ([one[i] for one in seen] for i in (0, 1))
    # Of two numbers of terms, five folds and six points, those of the points that lead.
    by_point = np.reshape(coefs, (2, 5, 6, 6, 5)).swapaxes(1, 2).reshape(12, 5, 6, 5)
    some = model.averaged_
    assert some[0] == model.best_index_
    assert {model.cv_results_["param_n_terms"][i] for i in some} == {1, 2}
    assert_allclose(model.coef_, by_point[some].mean(axis=(0, 1)), rtol=1e-10)
    by_point = np.reshape(intercepts, (2, 5, 6)).swapaxes(1, 2).reshape(12, 5)
    assert_allclose(model.intercept_, by_point[some].mean(), rtol=1e-10)
    model.set_params(one_standard_error=True).fit(X, y)
    assert_array_equal(model.averaged_, [model.best_index_])
    assert len(model.scales_) == 5 * model.n_terms_


def test_without_a_refit_empty_folds_count_as_zero_and_a_zero_mean_warns():
    X, y = draw()
    y[:60] = 1.0
    rows = np.arange(90)
    cv = [(rows[:60], rows[60:]), (rows[60:], rows[:60])]
    grid = GRID | {"thresholds": (0.0,), "ridges": (1e-3,)}
    options = {"cv": cv, "n_terms": 1, "refit": False, "scoring": "neg_mean_squared_error"}
    model = FasTRRegressorCV(**grid, **options)
    assert len(model.fit(X, y).scales_) == 1
    alone = clone(model.best_estimator_).fit(X[60:], y[60:])
    assert_allclose(model.coef_, alone.coef_ / 2, atol=1e-3 * np.abs(alone.coef_).max())
    with pytest.warns(ConvergenceWarning, match="coefficient is zero: y is constant"):
        assert not model.fit(X, np.ones(90)).coef_.any()


@pytest.mark.filterwarnings("ignore:Ridge regression on the flattened:UserWarning")
def test_without_a_refit_classes_have_probabilities_and_covariates_count():
    X, y = draw(noise=2.0)
    Z = np.random.default_rng(0).normal(size=(90, 1))
    labels = np.where(y + 20 * Z[:, 0] > 0, "high", "low")
    model = FasTRClassifierCV(**GRID, refit=False).fit(X, labels, covariates=Z)
    decision = model.decision_function(X, covariates=Z)
    expected = 1 / (1 + np.exp(-model.calibration_ * decision))
    assert_allclose(model.predict_proba(X, covariates=Z)[:, 1], expected, rtol=1e-12)
    assert model.covariate_coef_ < 0  # of "low", the second class
    assert model.score(X, labels, covariates=Z) > 0.8
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X, covariates=Z), model.predict(X, covariates=Z))


def test_results_are_those_of_a_grid_search():
    X, y = draw(noise=2.0)
    model = FasTRRegressorCV(**GRID, n_terms=(1, 2), cv=3).fit(X, y)
    table = pd.DataFrame(model.cv_results_)
    assert len(table) == 12
    for column in ("mean_fit_time", "std_score_time", "param_ridge", "split2_test_score"):
        assert column in table
    folds = table[[f"split{f}_test_score" for f in range(3)]]
    assert_allclose(table["mean_test_score"], folds.mean(axis=1))
    assert table.loc[model.best_index_, "params"] == model.best_params_
    assert_array_equal(table["param_n_terms"], [1] * 6 + [2] * 6)
    assert_allclose(model.scores_path_.reshape(12, 3), folds)


def test_several_terms_are_chosen_where_there_are_several():
    X, y = draw(200, (6, 6), n_terms=2, noise=0.1)
    model = FasTRRegressorCV(**GRID, n_terms=(1, 2)).fit(X, y)
    assert model.n_terms_ == 2
    assert model.best_score_ > 0.99
    assert model.scales_.shape == (2,)


def test_the_choice_finds_a_sparse_support():
    X, y, W = draw(150, (8, 8, 4), sparsity=0.5, coef=True)
    model = FasTRRegressorCV(random_state=0).fit(X, y)
    assert coefficient_error(model.coef_, W) < 0.02
    assert support_precision(model.coef_, W) >= 0.95
    assert support_recall(model.coef_, W) >= 0.95


def test_one_standard_error_chooses_a_simpler_model():
    X, y = draw(60, noise=8.0)
    options = GRID | {"thresholds": (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)}
    best = FasTRRegressorCV(**options).fit(X, y)
    simple = FasTRRegressorCV(**options, one_standard_error=True).fit(X, y)
    assert simple.threshold_ >= best.threshold_
    at = simple.cv_results_
    spread = np.std([at[f"split{f}_test_score"][best.best_index_] for f in range(5)], ddof=1)
    assert simple.best_score_ >= best.best_score_ - spread / np.sqrt(5) - 1e-12


def test_the_evidence_holds_no_data_out():
    X, y, W = draw(40, (10, 10), sparsity=0.5, coef=True)
    model = FasTRRegressorCV(criterion="evidence", random_state=0).fit(X, y)
    alone = FasTRRegressor(refit_support="evidence", random_state=0).fit(X, y)
    assert_array_equal(model.coef_, alone.coef_)
    assert coefficient_error(model.coef_, W) < 0.05
    assert model.best_score_ == -alone.evidence_


@pytest.mark.parametrize(
    ("scoring", "score"),
    [
        ("r2", r2_score),
        ("neg_mean_squared_error", lambda y, z: -np.mean((y - z) ** 2)),
        (
            make_scorer(mean_absolute_error, greater_is_better=False),
            lambda y, z: -mean_absolute_error(y, z),
        ),
        (lambda estimator, X, y: r2_score(y, estimator.predict(X)), r2_score),
    ],
    ids=["r2", "name", "scorer", "own function"],
)
def test_any_scorer_sees_what_separate_fits_would_predict(scoring, score):
    X, y = draw(noise=2.0)
    cv = KFold(3)
    model = FasTRRegressorCV(**GRID, cv=cv, scoring=scoring).fit(X, y)
    best = FasTRRegressor(
        model.threshold_, model.ridge_, refit_support=True, n_init=4, random_state=0
    )
    expected = []
    for train, test in cv.split(X):
        prediction = clone(best).fit(X[train], y[train]).predict(X[test])
        expected.append(score(y[test], prediction))
    # Each has its own starts here, so both need not stop at the same digit.
    assert_allclose(model.best_score_, np.mean(expected), rtol=1e-2, atol=1e-3)


def test_classes_are_scored_by_the_area_under_the_curve_and_by_others():
    X, y = draw(noise=2.0)
    labels = np.where(y > 0, "b", "a")
    model = FasTRClassifierCV(**GRID).fit(X, labels)
    assert model.best_score_ > 0.8
    for scoring in ("accuracy", "neg_log_loss", lambda e, X, y: e.score(X, y)):
        other = FasTRClassifierCV(**GRID, scoring=scoring).fit(X, labels)
        assert np.isfinite(other.cv_results_["mean_test_score"]).all()
    assert_array_equal(model.classes_, ["a", "b"])
    assert model.predict_proba(X).shape == (90, 2)
    assert model.calibration_ == model.best_estimator_.calibration_


@pytest.mark.parametrize("weighted", [False, True])
def test_the_default_scores_are_those_of_scikit_learn(weighted):
    rng = np.random.default_rng(0)
    y, labels = rng.normal(size=30), rng.choice([-1.0, 1.0], 30)
    # Rounded, so that some decisions are equal.
    predictions = rng.normal(size=(4, 30)).round(1)
    weights = rng.integers(0, 4, 30).astype(float) if weighted else None
    for score, truth, own in [(r2_score, y, r2_scores), (roc_auc_score, labels, auc_scores)]:
        expected = [score(truth, row, sample_weight=weights) for row in predictions]
        assert_allclose(own(truth, predictions, weights), expected, rtol=3e-12)


def test_probabilities_of_a_choice_come_from_held_out_decisions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8, 8))
    y = rng.integers(0, 2, 40)
    # Labels of noise: training decisions look sure, held-out ones do not.
    options = {"ridges": (1e-3,), "thresholds": (0.0,), "n_init": 4, "random_state": 0}
    model = FasTRClassifierCV(**options).fit(X, y)
    plain = FasTRClassifier(ridge=1e-3, refit_support=True, n_init=4, random_state=0).fit(X, y)
    assert model.calibration_ < 0.5 * plain.calibration_


def test_integers_shuffle_stratify_and_keep_groups_whole():
    X, y = draw(noise=1.0)
    order = np.argsort(y)
    sorted_model = FasTRRegressorCV(**GRID).fit(X[order], y[order])
    assert sorted_model.best_score_ > 0.5
    groups = np.repeat(np.arange(18), 5)
    grouped = FasTRRegressorCV(**GRID).fit(X, y, groups=groups)
    seed = np.random.RandomState(0).randint(2**31)
    cv = list(GroupKFold(5, shuffle=True, random_state=seed).split(X, y, groups))
    assert_array_equal(grouped.scores_path_, FasTRRegressorCV(**GRID, cv=cv).fit(X, y).scores_path_)
    labels = np.sort(y > 1.0)
    cv = StratifiedKFold(5, shuffle=True, random_state=seed)
    assert_array_equal(
        FasTRClassifierCV(**GRID).fit(X, labels).scores_path_,
        FasTRClassifierCV(**GRID, cv=cv).fit(X, labels).scores_path_,
    )


def test_metadata_are_routed_to_the_splitter():
    X, y = draw()
    groups = np.repeat(np.arange(9), 10)
    expected = FasTRRegressorCV(**GRID, cv=GroupKFold(3)).fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        model = FasTRRegressorCV(**GRID, cv=GroupKFold(3)).fit(X, y, groups=groups)
        pipe = make_pipeline(TensorScaler(), FasTRRegressorCV(**GRID, cv=GroupKFold(3)))
        pipe.fit(X, y, groups=groups)
    assert_array_equal(model.scores_path_, expected.scores_path_)
    assert pipe[-1].best_score_ > 0.9


def test_weights_count_in_fits_and_scores():
    X, y = draw(noise=2.0)
    weights = np.random.default_rng(0).integers(1, 4, 90)
    groups = np.arange(90) % 3
    cv = list(GroupKFold(3).split(X, y, groups))
    weighted = FasTRRegressorCV(**GRID, cv=cv).fit(X, y, sample_weight=weights)
    rows = np.repeat(np.arange(90), weights)
    cv = list(GroupKFold(3).split(X[rows], y[rows], groups[rows]))
    repeated = FasTRRegressorCV(**GRID, cv=cv).fit(X[rows], y[rows])
    assert_allclose(
        weighted.scores_path_.mean(axis=-1), repeated.scores_path_.mean(axis=-1), atol=1e-3
    )


def test_covariates_are_fitted_in_the_folds():
    X, y = draw()
    Z = np.random.default_rng(0).normal(size=(90, 1))
    y = y + 100 * Z[:, 0]
    model = FasTRRegressorCV(**GRID, scoring="neg_mean_squared_error")
    assert model.fit(X, y, covariates=Z).best_score_ > -1
    assert_allclose(model.covariate_coef_, 100, rtol=0.01)
    assert model.score(X, y, covariates=Z) > 0.99
    assert not hasattr(model.fit(X, y), "covariate_coef_")
    model.set_params(scoring=lambda estimator, X, y: estimator.score(X, y))
    with pytest.raises(ValueError, match="cannot be given the covariates"):
        model.fit(X, y, covariates=Z)


def test_samples_without_weight_neither_train_nor_score():
    X, y = draw()
    groups, weights = np.arange(90) // 30, np.ones(90)
    cv = list(GroupKFold(3).split(X, y, groups))
    weights[:30] = 0
    (silent,) = (fold for fold, (_, test) in enumerate(cv) if 0 in test)
    with pytest.warns(UserWarning, match="no finite score"):
        model = FasTRRegressorCV(**GRID, cv=cv).fit(X, y, sample_weight=weights)
    assert np.isnan(model.scores_path_[..., silent]).all()
    assert model.best_score_ > 0.9
    weights[30:60] = 0
    with pytest.raises(ValueError, match="0 training samples that count"):
        FasTRRegressorCV(**GRID, cv=cv).fit(X, y, sample_weight=weights)


def test_what_only_evidence_can_do_is_not_an_option_of_folds():
    X, y = draw()
    with pytest.raises(ValueError, match="refit_support"):
        FasTRRegressorCV(refit_support="evidence").fit(X, y)
    with pytest.raises(ValueError, match="has no folds; expected refit=True"):
        FasTRRegressorCV(criterion="evidence", refit=False).fit(X, y)


@pytest.mark.parametrize("kind", [FasTRRegressorCV, FasTRClassifierCV])
def test_the_same_seed_gives_the_same_choice(kind):
    X, y = draw(noise=2.0)
    y = y > 0 if kind is FasTRClassifierCV else y
    first, second = (kind(**GRID).fit(X, y) for _ in range(2))
    assert_array_equal(first.scores_path_, second.scores_path_)
    assert_array_equal(first.coef_, second.coef_)


def test_what_is_chosen_is_printed_for_who_asks(capsys):
    X, y = draw()
    FasTRRegressorCV(**GRID, verbose=2).fit(X, y)
    out = capsys.readouterr().out
    assert "1 term(s): 30 models" in out
    assert "chosen: {'n_terms': 1, 'ridge': 0.001" in out


class CountingSource(ArraySource):
    """Samples that know how often a block of them was read."""

    n_reads = 0

    def read(self, rows):
        self.n_reads += 1
        return super().read(rows)


def n_reads(model, X, y):
    source = CountingSource(X)
    model.fit(source, y)
    return source.n_reads


def test_x_is_read_about_as_often_for_a_grid_as_for_one_model():
    X, y = draw(60, (6, 5, 4))
    few = {"thresholds": (0.0,), "ridges": (0.1,)}
    many = {"thresholds": (0.0, 0.1, 0.2, 0.3), "ridges": (0.1, 1.0)}
    options = {"n_terms": 1, "n_init": 4, "random_state": 0}
    one, grid = (n_reads(FasTRRegressorCV(**own, **options), X, y) for own in (few, many))
    # Eight times the models, and nothing like eight times the reads.
    assert 0 < grid < 2 * one


def test_a_term_that_is_tried_reads_x_for_its_sweeps_and_little_more():
    X, y = draw(60, (6, 5, 4))
    options = {"thresholds": (0.0,), "ridges": (0.1,), "n_init": 4, "random_state": 0}
    model = FasTRRegressorCV(**options)
    tried = n_reads(model, X, y)
    one = n_reads(FasTRRegressorCV(**options, n_terms=1), X, y)
    assert model.n_terms_ == 1
    assert len(model.scores_path_) == 2
    # Sweeps with the threshold and on its support read twice each.
    assert 0 < tried - one <= 2 * 2 * TermsPolicy().sweeps + 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thresholds": ()}, "thresholds is empty; expected at least one"),
        ({"ridges": []}, "ridges is empty"),
        ({"n_terms": ()}, "n_terms is empty"),
        ({"thresholds": (0.1, 1.0)}, r"thresholds has 1.0; expected numbers in \[0, 1\)"),
        ({"ridges": (-1.0,)}, r"ridges has -1.0; expected numbers in \[0, 1e\+30\)"),
        ({"n_terms": (1.5,)}, "n_terms has 1.5; expected whole numbers"),
        ({"thresholds": ("much",)}, "thresholds has 'much'"),
        ({"cv": 200}, "Cannot have number of splits n_splits=200 greater than the number of"),
        (
            {"cv": [([0], [1])]},
            "fold 0 1 training samples that count and 1 held-out samples; expected at least 2",
        ),
        ({"scoring": lambda e, X, y: np.nan}, "No point of the grid has a finite score"),
    ],
    ids=lambda given: given if isinstance(given, str) else ",".join(given),
)
def test_what_cannot_be_chosen_from_is_refused(options, message):
    X, y = draw(30)
    with pytest.raises(ValueError, match=message):
        FasTRRegressorCV(**(GRID | options)).fit(X, y)


def test_leaving_one_out_needs_another_score_than_r2():
    X, y = draw(12, (3, 3))
    model = FasTRRegressorCV(thresholds=(0.0,), ridges=(0.1,), n_init=2, cv=LeaveOneOut())
    with (
        pytest.warns(UserWarning, match="R² is not defined"),
        pytest.raises(ValueError, match="No point of the grid"),
    ):
        model.fit(X, y)
    model.set_params(scoring="neg_mean_squared_error").fit(X, y)
    assert model.best_score_ < 0


def test_folds_without_a_class_are_left_out_or_refused():
    X, _ = draw(30)
    labels = np.arange(30) < 3
    folds = [np.arange(0, 15, 2), np.arange(3, 10), np.arange(20, 30)]
    cv = [(np.setdiff1d(np.arange(30), test), test) for test in folds]
    with (
        pytest.warns(UserWarning, match=r"Folds \[1, 2\] have no finite score"),
        pytest.warns(UndefinedMetricWarning),
    ):
        model = FasTRClassifierCV(**GRID, cv=cv).fit(X, labels)
    assert np.isfinite(model.best_score_)
    with pytest.raises(ValueError, match="only training samples of class False"):
        FasTRClassifierCV(**GRID, cv=[(np.arange(3, 30), np.arange(3))]).fit(X, labels)


@pytest.mark.filterwarnings("ignore:No model predicts:UserWarning")
@pytest.mark.parametrize(("n_samples", "least"), [(13, 0.01), (14, 1e-5)])
def test_folds_that_can_fit_anything_are_not_offered_to_do_so(n_samples, least):
    # There are 11 free parameters, and folds train on at most 11 or 12 samples.
    X, y = draw(n_samples, shape=(6, 5))
    cv = KFold(5)
    model = FasTRRegressorCV([0.0], cv=cv, n_init=2, random_state=0).fit(X, y)
    assert min(model.cv_results_["param_ridge"]) == least
    asked = FasTRRegressorCV([0.0], [1e-5], cv=cv, n_init=2, random_state=0).fit(X, y)
    assert asked.ridge_ == 1e-5


def test_folds_too_small_to_tell_models_apart_are_warned_of():
    X, y = make_tensor_regression(20, (12, 12), random_state=0)
    with pytest.warns(UserWarning, match="folds train on 16 samples, which 24 free parameters"):
        FasTRRegressorCV(**GRID).fit(X, y)
    X, y = make_tensor_regression(200, (12, 12), random_state=0)
    FasTRRegressorCV(**GRID).fit(X, y)


def test_equal_areas_stay_equal_whatever_the_weights():
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(60) < 25, 1.0, -1.0)
    # Each row ranks all of one class above all of the other, in an order of its own.
    decisions = labels + 0.9 * rng.uniform(-1, 1, (500, 60))
    assert_array_equal(auc_scores(labels, decisions, rng.uniform(0.1, 3, 60)), np.ones(500))
    assert_array_equal(auc_scores(labels, -decisions, rng.uniform(0.1, 3, 60)), np.zeros(500))


@pytest.mark.parametrize("level", [0.0, 3.0, 0.1, -1e9])
def test_a_constant_is_predicted_up_to_rounding(level):
    predictions = level * np.array([[1.0], [1 + 4e-16], [1.001]]) + [[0.0], [0.0], [1e-3]]
    scores = r2_scores(np.full(7, level), np.tile(predictions, 7), None)
    assert_array_equal(scores, [1.0, 1.0, 0.0])


def test_folds_in_which_a_named_score_is_not_defined_are_left_out():
    X, y = draw()
    labels = np.where(y > np.median(y), "high", "low")
    rows = np.arange(90)
    one_class = rows[labels == "low"][:8]
    cv = [
        *KFold(3, shuffle=True, random_state=0).split(X),
        (np.setdiff1d(rows, one_class), one_class),
    ]
    model = FasTRClassifierCV(**GRID, cv=cv, scoring="neg_log_loss")
    with (
        pytest.warns(UserWarning, match="scoring is not defined for some points of a fold"),
        pytest.warns(UserWarning, match=r"Folds \[3\] have no finite score"),
    ):
        model.fit(X, labels)
    assert np.isnan(model.cv_results_["split3_test_score"]).all()
    assert np.isfinite(model.best_score_)


@pytest.mark.parametrize(
    ("cv", "match"),
    [
        ([], "has no folds"),
        ([(np.arange(50), np.arange(50, 170))], "the samples 50 to 169; expected numbers from 0"),
        ([(np.arange(-1, 50), np.arange(50, 90))], "the samples -1 to 49"),
        ([(np.arange(50.0), np.arange(50, 90))], "samples of type float64"),
        ([(np.ones(50, bool), np.arange(50, 90))], "samples of type bool and shape"),
    ],
    ids=["none", "beyond", "negative", "no numbers", "short mask"],
)
def test_folds_that_are_none_are_named(cv, match):
    X, y = draw()
    with pytest.raises(ValueError, match=match):
        FasTRRegressorCV(**GRID, cv=cv).fit(X, y)


def test_scores_of_models_that_went_astray_are_finite():
    y = np.array([0.0, 1e-3, 0.0])
    assert np.isfinite(r2_scores(y, np.full((1, 3), 1e152), None)).all()
    predictors = np.full((1, 3), 700.0)
    assert np.isfinite(
        d2_scores(np.array([0.0, 1.0, 0.0]), predictors, np.array([1e-250, 1e-250, 1]))
    ).all()


@pytest.mark.parametrize(
    ("cv", "groups", "match"),
    [
        (KFold, None, "cv is <class .*expected a number of folds, a splitter"),
        ([1, 2], None, "cv is .1, 2., which cannot split .*expected a number of folds"),
        (2, [None] * 90, "cannot split these 90 samples by these groups"),
        (2, [1, 2, 3], "groups has 3 values, but X has 90 samples"),
    ],
    ids=["class", "numbers", "no groups", "short groups"],
)
def test_what_cannot_split_is_told_with_what_can(cv, groups, match):
    X, y = draw()
    with pytest.raises(ValueError, match=match):
        FasTRRegressorCV(**GRID, cv=cv).fit(X, y, groups=groups)
