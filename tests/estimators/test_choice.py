"""What the defaults choose: how many terms, and whether to refit or to take the mean of folds."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GroupKFold, ShuffleSplit

from pyfastr import FasTRClassifierCV, FasTRRegressorCV, load
from pyfastr.datasets import make_tensor_regression
from pyfastr.estimators.candidates import Gain
from pyfastr.estimators.choice_text import choice_sentence
from pyfastr.solver.progress import watched_by

GRID = {"thresholds": (0.0, 0.05, 0.2, 0.4), "ridges": (1e-3, 0.3), "random_state": 0}
N_POINTS = 8


def draw(n_terms=1, n_samples=120, shape=(7, 6), noise=0.5, seed=0):
    return make_tensor_regression(
        n_samples, shape, n_terms=n_terms, noise=noise, coef=True, random_state=seed
    )


@pytest.fixture(scope="module")
def two():
    """A choice on two terms, and what it was made on."""
    X, y, W = draw(2, 200)
    return FasTRRegressorCV(**GRID).fit(X, y), X, y, W


@pytest.mark.parametrize("shape", [(7, 6), (5, 4, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_one_term_is_chosen_where_there_is_one_and_the_fit_is_that_of_one(shape, seed):
    X, y, _ = draw(1, 150, shape, seed=seed)
    model = FasTRRegressorCV(**GRID).fit(X, y)
    alone = FasTRRegressorCV(**GRID, n_terms=(1,)).fit(X, y)
    assert model.n_terms_ == 1
    assert_array_equal(model.coef_, alone.coef_)
    assert_array_equal(model.held_out_.prediction, alone.held_out_.prediction)
    assert (model.threshold_, model.ridge_) == (alone.threshold_, alone.ridge_)
    assert_array_equal(model.scores_path_[0], alone.scores_path_[0])


def test_two_terms_are_chosen_where_there_are_two(two):
    model, _, _, W = two
    assert model.n_terms_ == len(model.scales_) == 2
    assert model.refitted_
    assert np.linalg.norm(model.coef_ - W) < 0.1 * np.linalg.norm(W)
    assert model.choice_.startswith("2 terms: the second lowers the held-out loss by ")
    assert ", a third " in model.choice_
    assert "fitted to all samples, as the folds' coefficients agree (median cosine" in model.choice_


def test_terms_are_tried_until_one_does_not_pay_and_all_scores_are_kept(two):
    model, *_ = two
    tried = np.asarray(model.cv_results_["param_n_terms"])
    assert_array_equal(np.unique(tried), [1, 2, 3])
    counts = np.bincount(tried)[1:]
    assert counts[0] == N_POINTS
    # Of each ridge the best threshold and its neighbours go on, if they are not far behind.
    assert 1 <= counts[2] <= counts[1] <= 2 * 3
    # Every point has grown from itself with a term less.
    finite = np.isfinite(model.scores_path_).all(axis=-1)
    assert not (finite[1:] & ~finite[:-1]).any()
    best = np.unravel_index(np.argmax(model.scores_path_[0].mean(axis=-1)), finite.shape[1:])
    assert finite[(1, *best)]
    assert_array_equal(np.isfinite(model.scores_path_).sum(axis=(1, 2, 3)), 5 * counts)
    assert model.scores_path_.shape == (3, 2, 4, 5)
    params = model.cv_results_["params"][model.best_index_]
    assert params == model.best_params_
    assert params["n_terms"] == 2


def test_scores_of_grown_models_are_those_of_the_models(two):
    model, X, y, _ = two
    seen = {}

    def score(estimator, X, y):
        own = estimator.score(X, y)
        seen.setdefault(len(estimator.scales_), []).append(own)
        return own

    again = FasTRRegressorCV(**GRID, scoring=score).fit(X, y)
    # Scores of folds leave other points behind than the losses of all samples do.
    both = np.isfinite(again.scores_path_[1]) & np.isfinite(model.scores_path_[1])
    assert both.any()
    assert_allclose(again.scores_path_[1][both], model.scores_path_[1][both], rtol=1e-9)
    own = np.sort(again.scores_path_[1][np.isfinite(again.scores_path_[1])])
    assert_allclose(np.sort(seen[2]), own)


def test_held_out_samples_have_no_part_in_terms_that_are_added():
    X, y, _ = draw(2, 200)
    rows = np.arange(200)
    cv = [(rows[40:], rows[:40]), (rows[:160], rows[160:])]
    found = []
    for response in (y, np.concatenate([y[:40][::-1], y[40:]])):
        seen = {}

        def score(estimator, X, y, seen=seen):
            if len(estimator.scales_) > 1:
                seen.setdefault(estimator.n_terms, []).append(estimator.coef_)
            return float(len(estimator.scales_))

        FasTRRegressorCV((0.05,), (0.3,), cv=cv, scoring=score, random_state=0).fit(X, response)
        found.append(seen)
    # The response of samples that the first fold holds out is another one for the second only.
    first, second = found
    for own, other in zip(first.values(), second.values(), strict=True):
        assert_array_equal(own[0], other[0])
        assert not np.array_equal(own[1], other[1])


def test_other_scores_are_compared_fold_by_fold():
    X, y, _ = draw(2, 200)
    scoring = make_scorer(mean_absolute_error, greater_is_better=False)
    model = FasTRRegressorCV(**GRID, scoring=scoring).fit(X, y)
    assert model.n_terms_ == 2
    best = np.nanmax(model.scores_path_.mean(axis=-1), axis=(1, 2))
    told = f"the second raises the held-out score by {best[1] - best[0]:.3g}, a third "
    assert model.choice_.startswith(f"2 terms: {told}")


def test_the_simplest_model_within_a_standard_error_may_have_fewer_terms():
    X, y, _ = draw(2, 100, noise=6.0)
    grown = FasTRRegressorCV(**GRID).fit(X, y)
    simple = FasTRRegressorCV(**GRID, one_standard_error=True).fit(X, y)
    assert_array_equal(simple.scores_path_, grown.scores_path_)
    tried = simple.cv_results_
    means, best = tried["mean_test_score"], tried["mean_test_score"].argmax()
    folds = np.array([tried[f"split{f}_test_score"][best] for f in range(5)])
    as_good = means >= means[best] - folds.std(ddof=1) / np.sqrt(5)
    assert simple.n_terms_ == np.asarray(tried["param_n_terms"])[as_good].min()


def test_groups_stay_whole_and_weights_count():
    X, y, _ = draw(2, 120)
    groups = np.arange(120) % 6
    cv = list(GroupKFold(3).split(X, y, groups))
    weights = np.random.default_rng(0).integers(1, 3, 120)
    weighted = FasTRRegressorCV(**GRID, cv=cv).fit(X, y, sample_weight=weights)
    rows = np.repeat(np.arange(120), weights)
    cv = list(GroupKFold(3).split(X[rows], y[rows], groups[rows]))
    repeated = FasTRRegressorCV(**GRID, cv=cv).fit(X[rows], y[rows])
    assert weighted.n_terms_ == repeated.n_terms_ == 2
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-2 * np.abs(repeated.coef_).max())


def test_vectors_have_one_term_and_modes_of_one_slice_change_nothing():
    X, y, _ = draw(1, 100, (9,))
    vector = FasTRRegressorCV(**GRID).fit(X, y)
    assert vector.n_terms_ == 1
    assert vector.choice_.startswith("1 term; fitted to all samples")
    X, y, _ = draw(2, 150)
    plain = FasTRRegressorCV(**GRID).fit(X, y)
    thick = FasTRRegressorCV(**GRID).fit(X[:, :, None], y)
    assert thick.n_terms_ == plain.n_terms_ == 2
    assert_allclose(thick.coef_[:, 0], plain.coef_, atol=1e-2 * np.abs(plain.coef_).max())
    column = FasTRRegressorCV(**GRID).fit(X[:, :, :1], y)
    assert column.n_terms_ == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n_samples", [10, 13])
def test_very_few_samples_are_chosen_from_too(n_samples):
    X, y, _ = draw(1, n_samples, (3, 2))
    model = FasTRRegressorCV(**GRID).fit(X, y)
    assert 1 <= model.n_terms_ <= 2
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.agreement_)


@pytest.mark.filterwarnings("ignore:The coefficient is zero")
def test_nothing_is_added_to_a_constant_response():
    X, _, _ = draw()
    model = FasTRRegressorCV(**GRID).fit(X, np.full(120, 2.0))
    assert model.n_terms_ == 1
    assert not model.coef_.any()
    assert_allclose(model.predict(X), 2.0, rtol=1e-12)


def test_counts_and_classes_take_more_terms_where_these_pay():
    X, y, _ = draw(2, 400, (5, 5), noise=0.1, seed=3)
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.exp(1.5 * y / y.std()))
    model = FasTRRegressorCV(**GRID, loss="poisson").fit(X, counts)
    assert model.n_terms_ == 2
    labels = np.where(y + 0.1 * rng.normal(size=400) > 0, "yes", "no")
    for loss in ("squared", "logistic"):
        model = FasTRClassifierCV(**GRID, loss=loss).fit(X, labels)
        assert model.n_terms_ == 2
        assert model.best_score_ > 0.95
        assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_the_evidence_takes_terms_while_it_rises():
    X, y, W = draw(2, 150, noise=0.1)
    model = FasTRRegressorCV(criterion="evidence", random_state=0).fit(X, y)
    assert model.n_terms_ == 2
    assert model.refitted_
    assert not hasattr(model, "agreement_")
    assert model.choice_ == "2 terms, by evidence; fitted to all samples."
    assert np.linalg.norm(model.coef_ - W) < 0.05 * np.linalg.norm(W)
    asked = FasTRRegressorCV(criterion="evidence", n_terms=(1, 2, 3), random_state=0).fit(X, y)
    assert_array_equal(asked.coef_, model.coef_)
    assert_array_equal(asked.scores_path_, model.scores_path_)


@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_takes_no_term_that_is_noise(seed):
    X, y, _ = draw(1, 90, (6, 5), noise=0.1, seed=seed)
    model = FasTRRegressorCV(criterion="evidence", random_state=0).fit(X, y)
    assert model.n_terms_ == 1
    assert np.asarray(model.cv_results_["param_n_terms"]).tolist() == [1, 2]


def median_cosine(coefs):
    rows = np.reshape(coefs, (len(coefs), -1))
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.median((rows @ rows.T)[np.triu_indices(len(rows), 1)])


@pytest.mark.parametrize("noise", [0.5, 8.0])
def test_folds_that_agree_are_refitted_and_others_averaged(noise):
    X, y, _ = draw(noise=noise)
    seen = []

    def score(estimator, X, y):
        seen.append(estimator.coef_)
        return estimator.score(X, y)

    grid = {"thresholds": (0.1,), "ridges": (0.3,), "n_terms": 1, "random_state": 0}
    model = FasTRRegressorCV(**grid, scoring=score).fit(X, y)
    assert_allclose(model.agreement_, median_cosine(seen), rtol=1e-10)
    assert model.refitted_ == (model.agreement_ >= 0.95) == (noise < 1)
    asked = FasTRRegressorCV(**grid, scoring=score, refit=model.refitted_).fit(X, y)
    assert_array_equal(asked.coef_, model.coef_)
    assert asked.agreement_ == model.agreement_
    assert hasattr(model, "starts_") == model.refitted_
    told = "fitted to all samples" if model.refitted_ else "the mean of the folds' models"
    assert told in model.choice_
    assert "as " in model.choice_
    assert "as " not in asked.choice_


def test_folds_that_all_find_nothing_agree():
    X, y, _ = draw()
    constant = np.full(120, 2.0)
    with pytest.warns(UserWarning, match="The coefficient of output 1 is zero"):
        model = FasTRRegressorCV(**GRID).fit(X, np.stack([y, constant], axis=1))
    alone = FasTRRegressorCV(**GRID).fit(X, y)
    assert model.refitted_
    assert_allclose(model.agreement_, (20 * alone.agreement_ + 20) / 40, atol=0.01)


def test_one_fold_has_nothing_to_agree_with():
    X, y, _ = draw()
    rows = np.arange(120)
    model = FasTRRegressorCV(**GRID, cv=[(rows[30:], rows[:30])]).fit(X, y)
    assert np.isnan(model.agreement_)
    assert model.refitted_
    assert model.choice_.endswith("; fitted to all samples.")


def test_folds_may_be_masks():
    X, y, _ = draw()
    held = np.arange(120) % 3
    masks = [(held != fold, held == fold) for fold in range(3)]
    numbers = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in masks]
    found, expected = (FasTRRegressorCV(**GRID, cv=cv).fit(X, y) for cv in (masks, numbers))
    assert_array_equal(found.coef_, expected.coef_)
    assert_array_equal(found.held_out_.samples, expected.held_out_.samples)


@pytest.mark.filterwarnings("ignore:Ridge regression on the flattened:UserWarning")
def test_a_single_fold_that_goes_astray_does_not_keep_the_choice_from_all_data():
    X, y, W = draw(noise=0.1)
    rows = np.arange(120)
    cv = [(np.setdiff1d(rows, part), part) for part in np.array_split(rows, 5)]
    cv[0] = (rows[24:34], cv[0][1])  # fewer samples than free parameters
    model = FasTRRegressorCV(**GRID, cv=cv).fit(X, y)
    assert model.agreement_ > 0.99
    assert model.refitted_
    assert np.linalg.norm(model.coef_ - W) < 0.05 * np.linalg.norm(W)
    cv[1:3] = [(rows[34 + 10 * i : 44 + 10 * i], cv[i][1]) for i in (1, 2)]
    model = FasTRRegressorCV(**GRID, cv=cv).fit(X, y)
    assert model.agreement_ < 0.8
    assert not model.refitted_


@pytest.fixture(scope="module")
def mean():
    """A mean of folds that nobody asked for, and what it was made on."""
    X, y, _ = draw(noise=6.0)
    model = FasTRRegressorCV(**GRID).fit(X, y)
    assert not model.refitted_
    return model, X, y


def test_a_mean_has_factors_and_a_coefficient(mean, tmp_path):
    model, X, _ = mean
    terms = np.einsum("r,ir,jr->ij", model.scales_, *model.factors_)
    assert_allclose(model.coef_, terms, atol=1e-12 * np.abs(terms).max())
    assert_allclose(model.predict(X), np.tensordot(X, terms, 2) + model.intercept_)
    for factor in model.factors_:
        assert_allclose(np.linalg.norm(factor, axis=0), 1)
    assert (np.diff(model.scales_) <= 0).all()
    for again in (load(model.save(tmp_path / "mean.fastr")), pickle.loads(pickle.dumps(model))):
        assert_array_equal(again.predict(X), model.predict(X))
        for name in ("refitted_", "agreement_", "choice_"):
            assert getattr(again, name) == getattr(model, name)


def test_a_second_fit_forgets_the_first(mean):
    _, X, y = mean
    model = FasTRRegressorCV(**GRID).fit(X, y)
    few, response, _ = draw(2, 200)
    model.fit(few, response)
    assert model.refitted_
    assert hasattr(model, "starts_")
    assert_array_equal(model.coef_, FasTRRegressorCV(**GRID).fit(few, response).coef_)
    model.set_params(criterion="evidence").fit(few, response)
    assert not hasattr(model, "agreement_")
    assert "by evidence" in model.choice_


GAINED = partial(Gain, is_clear=True, is_worth_it=True, is_of_loss=True)
NOT_GAINED = partial(Gain, is_clear=False, is_worth_it=False, is_of_loss=True)


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        ([], "1 term; "),
        ([NOT_GAINED(2, -0.1)], "1 term: a second does not lower the held-out loss; "),
        (
            [NOT_GAINED(2, 0.0123)],
            "1 term: a second lowers the held-out loss by 1.23%, which may be chance; ",
        ),
        (
            [NOT_GAINED(2, 0.0123, is_clear=True)],
            "1 term: a second lowers the held-out loss by 1.23%, too little to count; ",
        ),
        (
            [GAINED(2, 0.5), NOT_GAINED(3, -0.2)],
            "2 terms: the second lowers the held-out loss by 50.00%, a third does not; ",
        ),
        (
            [NOT_GAINED(2, -1.0, is_of_loss=False)],
            "1 term: a second does not raise the held-out score; ",
        ),
    ],
)
def test_the_choice_is_told_in_a_line(gains, said):
    n_terms = 1 + sum(own.is_worth_it for own in gains)
    options = {"n_points": 1, "is_asked": False, "simplest": False}
    sentence = choice_sentence(n_terms, gains, 0.9, refitted=True, **options)
    reason = "as the folds' coefficients agree"
    assert sentence == f"{said}fitted to all samples, {reason} (median cosine 0.90)."
    options = {"n_points": 7, "is_asked": True, "simplest": False}
    sentence = choice_sentence(n_terms, gains, 0.4, refitted=False, **options)
    assert sentence == (
        f"{said}the mean of the folds' models at 7 points that scores cannot tell apart "
        "(median cosine 0.40)."
    )


def test_the_simplest_choice_is_told_as_such():
    X, y, _ = draw(2, 200)
    model = FasTRRegressorCV(**GRID, one_standard_error=True).fit(X, y)
    assert "the second" not in model.choice_
    assert ", the simplest choice within a standard error of the best; " in model.choice_


def test_what_one_fold_alone_gains_adds_no_term():
    X, y = make_tensor_regression(90, (6, 5), noise=1.0, random_state=0)
    options = GRID | {"cv": ShuffleSplit(1, random_state=0), "scoring": "neg_mean_absolute_error"}
    assert FasTRRegressorCV(**options).fit(X, y).n_terms_ == 1


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (FasTRRegressorCV, {}),
        (FasTRRegressorCV, {"loss": "poisson"}),
        (FasTRClassifierCV, {}),
        (FasTRClassifierCV, {"loss": "logistic"}),
    ],
)
def test_a_mean_needs_neither_intercept_nor_covariates(kind, options):
    X, y, _ = draw(n_samples=60, noise=3.0)
    target = {"poisson": np.round(np.abs(y)), "squared": y}.get(options.get("loss", "squared"), y)
    target = y > 0 if kind is FasTRClassifierCV else target
    model = kind(**GRID, n_terms=1, refit=False, fit_intercept=False, **options).fit(X, target)
    predict = model.decision_function if kind is FasTRClassifierCV else model.predict
    linear = np.tensordot(X, model.coef_, 2)
    assert_allclose(predict(X), np.exp(linear) if "poisson" in options.values() else linear)
    assert np.all(np.asarray(model.intercept_) == 0)


def test_numbers_of_terms_may_be_an_array():
    X, y, _ = draw(n_samples=60)
    listed, array = (
        FasTRRegressorCV(**GRID, n_terms=terms).fit(X, y) for terms in ([1, 2], np.array([1, 2]))
    )
    assert_array_equal(listed.coef_, array.coef_)


def test_a_line_has_the_article_of_its_term_and_no_cosine_rounded_up_to_enough():
    gains = [Gain(n, 0.1, is_clear=True, is_worth_it=n < 8, is_of_loss=True) for n in range(2, 9)]
    said = choice_sentence(
        7, gains, 0.9499, refitted=False, n_points=1, is_asked=False, simplest=False
    )
    assert "the seventh by 10.00%, an 8th by 10.00%, too little to count" in said
    assert said.endswith("as their coefficients differ (median cosine 0.94).")


def test_progress_ends_where_all_numbers_of_terms_were_tried(two):
    _, X, y, _ = two
    events = []
    with watched_by(events.append):
        FasTRRegressorCV(**GRID, n_terms=(1, 3)).fit(X[:60], y[:60])
    own = [event for event in events if event.stage == "numbers of terms"]
    assert [(event.done, event.total) for event in own] == [(1, 2), (2, 2)]
