"""Permutation tests: the same scores as a loop of fits, and p-values one can trust."""

import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chisquare, kstest
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedKFold,
    permutation_test_score,
)

from pyfastr import FasTRClassifier, FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV
from pyfastr.datasets import make_tensor_regression
from pyfastr.inference import PermutationResult, permutation_test
from pyfastr.inference._statistic import PermutationStatistic
from pyfastr.inference._tasks import BATCH

mpl.use("Agg")

N_SAMPLES = 45
# More than one batch of tasks.
N_PERMUTATIONS = 30


def draw(shape, seed=0):
    """Samples, a response, labels, and the one start that makes fits comparable."""
    rng = np.random.default_rng(seed)
    X, y = make_tensor_regression(N_SAMPLES, shape, noise=2.0, random_state=seed)
    labels = np.where(y + rng.normal(size=N_SAMPLES) > 0, "yes", "no")
    return X, y + 1, labels, [rng.normal(size=p) for p in shape]


def orders(n_permutations, random_state, groups=None):
    """What scikit-learn's permutation test draws."""
    rng = np.random.RandomState(random_state)
    found = [np.arange(N_SAMPLES)]
    for _ in range(n_permutations):
        order = np.arange(N_SAMPLES)
        for group in [None] if groups is None else np.unique(groups):
            own = np.ones(N_SAMPLES, bool) if group is None else groups == group
            order[own] = rng.permutation(order[own])
        found.append(order)
    return found


def looped_score(model, X, y, splits, weights, Z):
    """Mean cross-validated score by single fits."""
    scores = []
    for train, test in splits:
        g, held = (None, None) if weights is None else (weights[train], weights[test])
        model.fit(X[train], y[train], g, None if Z is None else Z[train])
        classify = isinstance(model, FasTRClassifier)
        predict = model.decision_function if classify else model.predict
        prediction = predict(X[test], None if Z is None else Z[test])
        score = roc_auc_score if classify else r2_score
        scores.append(score(y[test], prediction, sample_weight=held))
    return np.mean(scores)


@pytest.mark.parametrize("shape", [(8,), (4, 3), (3, 2, 3)], ids=str)
@pytest.mark.parametrize("adjusted", [False, True], ids=["alone", "weights and covariates"])
@pytest.mark.parametrize(
    "options", [{}, {"loss": "squared"}, {"loss": "logistic"}], ids=["regression", *["classes"] * 2]
)
def test_scores_are_those_of_a_loop_of_fits(shape, adjusted, options):
    X, y, labels, start = draw(shape)
    rng = np.random.default_rng(1)
    weights, Z = None, None
    if adjusted:
        weights, Z = rng.integers(1, 4, N_SAMPLES).astype(float), rng.normal(size=(N_SAMPLES, 2))
    kind, cv = FasTRRegressor, KFold(3)
    if options:
        kind, cv, y = FasTRClassifier, StratifiedKFold(3), labels
    model = kind(0.05, 0.5, init=start, max_iter=6, **options)
    found = permutation_test(
        model, X, y, n_permutations=3, cv=cv, sample_weight=weights, covariates=Z, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = [
            looped_score(model, X, y[order], cv.split(X, y[order]), weights, Z)
            for order in orders(3, 0)
        ]
    assert_allclose([found.score, *found.permutation_scores], expected, atol=1e-8)


@pytest.mark.parametrize("grouped", [False, True], ids=["free", "within groups"])
def test_it_is_the_test_of_scikit_learn(grouped):
    X, y, _, start = draw((4, 3))
    groups = np.arange(N_SAMPLES) % 5 if grouped else None
    cv = GroupKFold(3) if grouped else KFold(3)
    model = FasTRRegressor(ridge=0.5, init=start, tol=0.01)
    options = {"groups": groups, "cv": cv, "n_permutations": N_PERMUTATIONS, "random_state": 3}
    found = permutation_test(model, X, y, **options)
    score, permutation_scores, p_value = permutation_test_score(model, X, y, **options)
    assert_allclose(found.score, score, atol=1e-8)
    assert_allclose(found.permutation_scores, permutation_scores, atol=1e-8)
    assert found.p_value == p_value


@pytest.mark.parametrize("kind", [FasTRRegressorCV, FasTRClassifierCV])
def test_an_estimator_that_chooses_is_judged_by_its_best_score(kind):
    # Vectors are fitted in closed form, so that no start makes a difference.
    X, y, labels, _ = draw((8,))
    y = labels if kind is FasTRClassifierCV else y
    cv = StratifiedKFold(3) if kind is FasTRClassifierCV else KFold(3)
    model = kind(thresholds=[0.0, 0.1, 0.4], ridges=[0.1, 1.0], cv=cv)
    found = permutation_test(model, X, y, n_permutations=4, cv=None, random_state=0)
    fits = [model.fit(X, y[order]).cv_results_ for order in orders(4, 0)]
    expected = [results["mean_test_score"].max() for results in fits]
    assert_allclose([found.score, *found.permutation_scores], expected, atol=1e-8)


def test_the_best_number_of_terms_counts_too():
    X, y, _, _ = draw((4, 3))
    options = {"thresholds": [0.0], "ridges": [0.3], "n_init": 2}
    scores = {
        terms: permutation_test(
            FasTRRegressorCV(n_terms=terms, **options), X, y, n_permutations=2, random_state=0
        ).score
        for terms in (1, 2, (1, 2))
    }
    assert scores[1, 2] == pytest.approx(max(scores[1], scores[2]), abs=1e-3)


def test_class_weights_move_with_the_labels():
    X, _, labels, start = draw((4, 3))
    class_weight = {"yes": 5.0, "no": 1.0}
    model = FasTRClassifier(init=start, class_weight=class_weight, max_iter=5)
    cv = StratifiedKFold(3)
    found = permutation_test(model, X, labels, n_permutations=2, cv=cv, random_state=0)
    plain = FasTRClassifier(init=start, max_iter=5)
    expected = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for order in orders(2, 0):
            y = labels[order]
            weights = np.where(y == "yes", 5.0, 1.0)
            expected.append(looped_score(plain, X, y, cv.split(X, y), weights, None))
    assert_allclose([found.score, *found.permutation_scores], expected, atol=1e-8)


def test_scorers_by_name_and_by_hand_agree():
    X, y, labels, start = draw((4, 3))
    options = {"n_permutations": 2, "random_state": 0}
    model = FasTRRegressor(ridge=0.5, init=start)
    named = permutation_test(model, X, y, scoring="neg_mean_squared_error", **options)

    def by_hand(estimator, X, y):
        return -np.mean((estimator.predict(X) - y) ** 2)

    own = permutation_test(model, X, y, scoring=by_hand, **options)
    assert_allclose(named.permutation_scores, own.permutation_scores)
    assert named.score == pytest.approx(own.score)
    classifier = FasTRClassifier(init=start)
    accuracy = permutation_test(classifier, X, labels, scoring="accuracy", **options).score
    assert 0 <= accuracy <= 1


def test_a_scorer_by_hand_is_given_the_frame_that_the_user_gave():
    X, y, _, _ = draw((8,))
    frame = pd.DataFrame(X).rename(columns=str)
    columns = []

    def by_hand(estimator, X, y):
        columns.append(list(X.columns))
        return estimator.score(X, y)

    model = FasTRRegressor(ridge=0.5)
    options = {"n_permutations": 2, "random_state": 0}
    found = permutation_test(model, frame, pd.Series(y), scoring=by_hand, **options)
    assert_allclose(found.score, permutation_test(model, X, y, **options).score)
    assert columns[0] == list(frame.columns)


def test_an_iterable_of_folds_serves_all_permutations():
    X, y, _, start = draw((4, 3))
    model = FasTRRegressor(ridge=0.5, init=start)
    options = {"n_permutations": 3, "random_state": 0}
    once = permutation_test(model, X, y, cv=KFold(4).split(X), **options)
    assert_array_equal(
        once.permutation_scores,
        permutation_test(model, X, y, cv=KFold(4), **options).permutation_scores,
    )


def test_a_seed_decides_all():
    X, y, _, _ = draw((4, 3))
    model = FasTRRegressor(ridge=0.5, n_init=2)
    first, again, other = (
        permutation_test(model, X, y, n_permutations=5, random_state=seed) for seed in (0, 0, 1)
    )
    assert first.score == again.score
    assert_array_equal(first.permutation_scores, again.permutation_scores)
    assert not np.allclose(first.permutation_scores, other.permutation_scores)


def test_the_estimator_is_left_as_it_is():
    X, _, labels, _ = draw((4, 3))
    model = FasTRClassifier(class_weight="balanced", n_init=2)
    before = dict(vars(model))
    permutation_test(model, X, labels, n_permutations=1, random_state=0)
    assert vars(model) == before


def test_the_p_value():
    permuted = np.array([0.1, 0.2, 0.3, 0.4])
    assert PermutationResult(0.5, permuted).p_value == 1 / 5
    assert PermutationResult(0.3, permuted).p_value == 3 / 5
    assert PermutationResult(0.0, permuted).p_value == 1


def test_a_strong_signal_is_found():
    X, y = make_tensor_regression(60, (4, 4), random_state=0)
    model = FasTRRegressorCV([0.0, 0.1], [1e-3, 0.1], n_init=4)
    found = permutation_test(model, X, y, n_permutations=19, cv=3, random_state=0)
    assert found.score > 0.9
    assert found.p_value == 1 / 20


@pytest.mark.parametrize("n_samples", [80, 30], ids=["plenty", "few"])
@pytest.mark.parametrize("noise", [0.01, 0.5])
def test_one_round_of_starts_scores_as_well_as_the_search_of_a_fit(n_samples, noise):
    rng = np.random.default_rng(0)
    w, v = rng.normal(size=6), rng.normal(size=5)
    X = rng.normal(size=(n_samples, 6, 5))
    y = np.einsum("nij,i,j->n", X, w, v)
    y = y / y.std() + noise * rng.normal(size=n_samples)
    grid = {"thresholds": [0.0, 0.1, 0.3], "ridges": [1e-3, 0.1, 1.0], "n_terms": 1}
    model = FasTRRegressorCV(**grid, cv=KFold(4), random_state=0)
    found = permutation_test(model, X, y, n_permutations=2, cv=None, random_state=0)
    best = model.fit(X, y).cv_results_["mean_test_score"].max()
    assert found.score == pytest.approx(best, abs=0.02)


@pytest.mark.parametrize("model", [FasTRRegressor(), FasTRRegressorCV()])
def test_the_solver_is_asked_for_a_brief_search(model):
    X, y, *_ = draw((6, 5))
    test = PermutationStatistic.check(model, X, y, KFold(3), *[None] * 4)
    assert test._settings(list(KFold(3).split(X)), 0.1, 1).brief


def test_p_values_of_null_data_are_uniform():
    rng = np.random.default_rng(0)
    model = FasTRRegressor(ridge=0.1, init=[np.ones(2), np.ones(2)], tol=0.1)
    p_values = np.empty(200)
    for seed in range(len(p_values)):
        X, y = rng.normal(size=(20, 2, 2)), rng.normal(size=20)
        test = permutation_test(model, X, y, n_permutations=9, cv=2, random_state=seed)
        p_values[seed] = test.p_value
    # Scores do not tie, so the ten ranks of the first are equally likely: no approximation.
    assert chisquare(np.bincount(np.rint(10 * p_values).astype(int))[1:]).pvalue > 0.05
    # Spread over the steps between ranks they have a continuous law, as this test supposes.
    assert kstest(p_values - rng.uniform(0, 0.1, len(p_values)), "uniform").pvalue > 0.05


def test_p_values_of_null_data_are_not_too_small_after_a_brief_search():
    # Several batches: starts are drawn for a whole one, and the observed response is in any.
    n_permutations, n_folds = 9, 8
    assert (1 + n_permutations) * n_folds > BATCH
    rng = np.random.default_rng(0)
    p_values = np.empty(30)
    for seed in range(len(p_values)):
        X, y = rng.normal(size=(32, 3, 3)), rng.normal(size=32)
        model = FasTRRegressor(ridge=0.01, tol=0.1)
        options = {"n_permutations": n_permutations, "cv": n_folds, "random_state": seed}
        test = permutation_test(model, X, y, **options)
        p_values[seed] = test.p_value
    spread = p_values - rng.uniform(0, 0.1, len(p_values))
    assert kstest(spread, "uniform", alternative="greater").pvalue > 0.05


def test_the_plot_shows_all_scores():
    result = PermutationResult(0.5, np.array([0.1, 0.2, 0.3, 0.4, 0.2]))
    ax = result.plot()
    assert sum(bar.get_height() for bar in ax.patches) == 5
    assert_array_equal(ax.get_lines()[0].get_xdata(), [0.5, 0.5])
    assert result.plot(ax) is ax
    mpl.pyplot.close("all")


@pytest.mark.parametrize("bad", [Ridge(), FasTRRegressor, None])
def test_other_estimators_are_refused(bad):
    X, y, _, _ = draw((4, 3))
    with pytest.raises(TypeError, match=r"estimator is .*; expected a FasTRRegressor"):
        permutation_test(bad, X, y)


@pytest.mark.parametrize("bad", [0, -3, 2.0, True])
def test_bad_numbers_of_permutations_are_refused(bad):
    X, y, _, _ = draw((4, 3))
    with pytest.raises(ValueError, match=r"n_permutations is .*; expected a whole number"):
        permutation_test(FasTRRegressor(), X, y, n_permutations=bad)


@pytest.mark.parametrize(
    "model",
    [FasTRRegressor(refit_support="evidence"), FasTRRegressorCV(criterion="evidence")],
    ids=["refit", "criterion"],
)
def test_the_evidence_is_refused(model):
    X, y, _, _ = draw((4, 3))
    with pytest.raises(ValueError, match="estimator chooses its support by evidence"):
        permutation_test(model, X, y)


def test_bad_parameters_and_folds_are_refused():
    X, y, _, _ = draw((4, 3))
    with pytest.raises(ValueError, match="'ridge' parameter"):
        permutation_test(FasTRRegressor(ridge=-1), X, y)
    with pytest.raises(ValueError, match="n_splits=50"):
        permutation_test(FasTRRegressor(), X, y, cv=50)
    with pytest.raises(ValueError, match="only groups within which y is constant"):
        permutation_test(FasTRRegressor(), X, y, groups=np.arange(N_SAMPLES))


def test_scores_that_are_no_numbers_are_refused():
    X, _, labels, _ = draw((4, 3))
    labels = np.sort(labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        with pytest.raises(ValueError, match=r"mean scores, of the response .*, are not finite"):
            permutation_test(
                FasTRClassifier(n_init=1), X, labels, cv=KFold(5), n_permutations=1, random_state=0
            )
