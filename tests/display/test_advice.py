from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from pyfastr import FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV, TensorScaler
from pyfastr.datasets import make_tensor_regression
from pyfastr.display.advice import advice
from pyfastr.solver.rounds import Starts


@pytest.fixture(scope="module")
def data():
    return make_tensor_regression(80, (6, 5), sparsity=0.4, noise=0.1, random_state=0)


def with_words(model, words):
    """Return the one remark that holds these words."""
    (found,) = [item for item in advice(model) if words in item.what]
    return found


def has(model, words):
    return any(words in item.what for item in advice(model))


def test_a_good_fit_needs_no_advice(data):
    assert advice(FasTRRegressorCV(random_state=0).fit(*data)) == []
    assert advice(FasTRRegressor(ridge=0.001, random_state=0).fit(*data)) == []


@pytest.mark.filterwarnings("ignore:The sweeps did not converge")
def test_sweeps_that_were_cut_short_ask_for_more(data):
    settings = {"max_iter": 1, "tol": 1e-9, "random_state": 0}
    item = with_words(FasTRRegressor(**settings).fit(*data), "did not converge")
    assert item.level == "caution"
    assert "`ridge`" in item.do
    choice = FasTRRegressorCV([0.0], [0.1], **settings).fit(*data)
    item = with_words(choice, "did not converge")
    assert "`max_iter`" in item.do
    assert "ridge" not in item.do


@pytest.mark.filterwarnings("ignore:The coefficient is zero")
def test_a_zero_coefficient_is_a_problem_whatever_else(data):
    X, _ = data
    model = FasTRRegressor(random_state=0).fit(X, np.ones(80))
    first = advice(model)[0]
    assert first.level == "problem"
    assert first.what.startswith("The coefficient is zero")
    assert first.do == "Check y: it is constant."


@pytest.mark.filterwarnings("ignore:The coefficient is zero")
@pytest.mark.parametrize("kind", [FasTRRegressor, FasTRRegressorCV])
@pytest.mark.parametrize("threshold", [0.0, 0.3])
def test_covariates_that_explain_y_are_the_cause_of_a_zero(data, kind, threshold):
    X, _ = data
    Z = np.random.default_rng(0).normal(size=(80, 2))
    thresholds = threshold if kind is FasTRRegressor else [threshold]
    model = kind(thresholds, n_init=2, random_state=0).fit(X, Z @ [1.0, 2.0], covariates=Z)
    do = with_words(model, "The coefficient is zero").do
    assert "intercept and covariates explain all of y" in do
    assert "threshold" not in do


@pytest.mark.filterwarnings("ignore:The coefficient is zero")
@pytest.mark.parametrize("threshold", [0.0, 0.3])
def test_only_a_threshold_can_have_emptied_a_mode(data, threshold):
    X, y = data
    model = FasTRRegressor(threshold, n_init=2, random_state=0).fit(np.ones_like(X), y)
    do = with_words(model, "The coefficient is zero").do
    assert "X and y vary" in do
    assert ("lower `threshold`" in do) == (threshold > 0)


@pytest.mark.filterwarnings("ignore:No model predicts")
def test_scores_of_chance_forbid_interpretation():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 6, 5)), rng.normal(size=60)
    item = with_words(FasTRRegressorCV(random_state=0).fit(X, y), "no better than by chance")
    assert item.level == "problem"
    assert "Do not interpret" in item.do
    labels = rng.integers(0, 2, 60)
    model = FasTRClassifierCV(cv=3, random_state=0).fit(X, labels)
    assert has(model, "where 0.5 is chance") == bool(model.best_score_ < 0.55)


@pytest.mark.filterwarnings("ignore:No model predicts")
def test_the_best_of_many_classifiers_of_noise_is_not_all_clear():
    n_warned, n_fits = 0, 6
    for seed in range(n_fits):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 4, 3)), np.arange(60) % 2
        model = FasTRClassifierCV(n_init=2, random_state=0).fit(X, y)
        n_warned += has(model, "no better than by chance") or has(model, "may yet be luck")
    assert n_warned >= n_fits - 1


def test_a_good_classifier_is_not_called_lucky(data):
    X, y = data
    model = FasTRClassifierCV(n_init=2, random_state=0).fit(X, y > 0)
    assert model.best_score_ > 0.9
    assert not has(model, "luck")


def test_few_samples_are_told(data):
    X, y = data
    model = FasTRRegressor(ridge=0.1, random_state=0).fit(X[:11], y[:11])
    item = with_words(model, "11 samples are no more than the 11 free parameters")
    assert "FasTRRegressorCV" in item.do
    assert not has(FasTRRegressor(ridge=0.1, random_state=0).fit(X[:12], y[:12]), "free parameters")


@pytest.mark.filterwarnings("ignore:Ridge regression on the flattened:UserWarning")
@pytest.mark.parametrize(
    ("thresholds", "ridges", "words", "do"),
    [
        ([0.0], [1e-5, 10.0], None, None),
        ([0.0], [1.0, 10.0], "smallest ridge of the grid, 1", "Add 0.1 to `ridges`"),
        ([0.3, 0.9], [0.01], "smallest threshold of the grid, 0.3", "Add 0 to `thresholds`"),
        ([0.0, 0.001], [0.01], "largest threshold of the grid, 0.001", "to `thresholds`"),
    ],
)
def test_a_choice_at_the_end_of_a_grid_asks_for_more_of_it(data, thresholds, ridges, words, do):
    model = FasTRRegressorCV(thresholds, ridges, random_state=0).fit(*data)
    if words is None:
        assert not has(model, "of the grid")
    else:
        item = with_words(model, words)
        assert do in item.do


def test_the_end_of_the_automatic_thresholds_is_no_edge(data):
    X, _ = data
    model = FasTRClassifierCV(cv=3, random_state=0).fit(X, X[:, 0, 0] > 0)
    assert model.threshold_ == 0.55
    assert not has(model, "of the grid")


def test_the_largest_ridge_asks_for_a_larger_one(data):
    X, y = data
    noisy = y + 6 * y.std() * np.random.default_rng(0).normal(size=80)
    model = FasTRRegressorCV([0.0], [0.001, 0.01], random_state=0).fit(X, noisy)
    assert "Add 0.1 to `ridges`" in with_words(model, "largest ridge").do


@pytest.mark.filterwarnings("ignore:No model predicts|Ridge regression on the flattened")
def test_a_ridge_that_leaves_nothing_is_not_to_be_raised(data):
    X, _ = data
    y = np.random.default_rng(1).normal(size=80)
    model = FasTRRegressorCV([0.0], [1e9, 1e12], n_terms=1, n_init=2, random_state=0).fit(X, y)
    model.ridge_ = 1e12
    assert not has(model, "largest ridge")


def test_scores_too_large_to_square_are_told(data):
    model = FasTRRegressorCV([0.0], [0.1, 1.0], n_terms=1, random_state=0).fit(*data)
    for fold in range(5):
        model.cv_results_[f"split{fold}_test_score"] = np.full(2, -1e220 * (fold + 1))
    model.scores_path_ *= 1e220
    assert "mean R² −3 × 10²²⁰" in with_words(model, "no better than by chance").what
    assert "SD 1.6 × 10²²⁰" in model.generate_report().html


def fit_with(data, **starts):
    """Return a good fit whose search is said to have gone otherwise."""
    model = FasTRRegressor(ridge=0.001, random_state=0).fit(*data)
    facts = {"n_starts": 64, "n_polished": 16, "n_hits": 1, "gap": 1.02, "sure": False}
    model.starts_ = Starts(**{**facts, **starts}, n_rounds=1)
    return model


def test_starts_that_disagree_ask_for_more_of_them(data):
    item = with_words(fit_with(data), "Only 1 of 16 starts")
    assert item.level == "caution"
    assert "leaves 1.02 times as much, penalty included" in item.what
    assert "`n_init=256`" in item.do
    assert "at a larger penalty" in with_words(fit_with(data, gap=0.9), "Only 1 of 16").what


def test_starts_that_mostly_agree_are_noted_only(data):
    item = with_words(fit_with(data, n_hits=12, confidence=0.943), "12 of 16 starts")
    assert item.level == "note"
    assert item.do == ""
    assert "that it is the best is only 94% likely" in item.what
    old = with_words(fit_with(data, n_hits=12), "12 of 16 starts")
    assert "others fit nearly as well" in old.what


def test_a_single_start_is_noted(data):
    model = FasTRRegressor(ridge=0.1, n_init=1, random_state=0).fit(*data)
    model.starts_ = SimpleNamespace(**{**vars(model.starts_), "sure": False, "n_polished": 1})
    assert 'n_init="auto"' in with_words(model, "Only one start").do
    model.n_init = "auto"
    assert "`n_init=64`" in with_words(model, "Only one start").do


@pytest.mark.parametrize("n_init", [1, "auto"])
def test_a_start_that_was_given_is_why_it_was_the_only_one(data, n_init):
    init = [np.ones(6), np.ones(5)]
    model = FasTRRegressor(ridge=0.1, init=init, n_init=n_init, random_state=0).fit(*data)
    do = with_words(model, "Only one start").do
    assert do.startswith('Leave `init` at "mixed"')
    assert ("`n_init`" in do) == (n_init == 1)


def test_a_mean_of_folds_explains_its_terms(data):
    model = FasTRRegressorCV(refit=False, cv=3, random_state=0).fit(*data)
    item = with_words(model, "mean of the folds' models")
    assert f"a sum of {len(model.scales_)} terms" in item.what
    assert "`refit=True`" in item.do
    assert "(refit=False)" in item.what
    model.refit = "auto"
    item = with_words(model, "mean of the folds' models, as their coefficients differ")
    assert f"median cosine {model.agreement_:.2g}" in item.what


def test_terms_that_vanished_are_counted(data):
    model = FasTRRegressor(ridge=0.1, n_terms=2, random_state=0).fit(*data)
    model.scales_ = np.array([model.scales_[0], 0.0])
    item = with_words(model, "1 of 2 terms vanished")
    assert "Ask for 1 in `n_terms`" in item.do


def test_a_fit_without_a_seed_is_noted_in_pipelines_too(data):
    model = make_pipeline(TensorScaler(), FasTRRegressor(ridge=0.01)).fit(*data)
    assert with_words(model, "random_state is None").level == "note"


def test_the_gravest_comes_first(data):
    X, y = data
    model = FasTRRegressor(ridge=0.1).fit(X[:8], y[:8])
    levels = [item.level for item in advice(model)]
    assert levels == sorted(levels, key=("problem", "caution", "note").index)
    assert {"caution", "note"} <= set(levels)
