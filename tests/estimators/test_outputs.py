"""Several outputs and more than two classes: tasks of one batch, each as if it were alone."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline

import pyfastr
from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
)
from pyfastr.inference import permutation_test, slice_importance
from pyfastr.sources.memory import ArraySource

SHAPE = (6, 5)
SETTLED = {"random_state": 0, "tol": 1e-9, "max_iter": 2000}
QUICK = {"random_state": 0, "thresholds": (0.0, 0.1), "ridges": (0.01, 1.0), "n_init": 4}


def draw(n_outputs=3, n_samples=120, noise=0.1, seed=0):
    """Samples and outputs that are linear in them, by a coefficient of unit rank each."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, *SHAPE))
    coefs = [np.outer(*(rng.standard_normal(p) for p in SHAPE)) for _ in range(n_outputs)]
    Y = np.stack([np.tensordot(X, W, 2) for W in coefs], axis=1)
    return X, Y + noise * rng.standard_normal(Y.shape)


def draw_classes(n_classes=4, **options):
    """Samples of the class whose output is the largest."""
    X, Y = draw(n_classes, **options)
    return X, np.array(["d", "a", "c", "b", "e"])[Y.argmax(axis=1)]


def count_reads(monkeypatch, fit):
    """Return how often a fit reads blocks of X."""
    reads, read = [], ArraySource.read
    with monkeypatch.context() as patched:
        patched.setattr(
            ArraySource, "read", lambda self, rows: (reads.append(rows), read(self, rows))[1]
        )
        fit()
    return len(reads)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"threshold": 0.2, "ridge": 0.1},
        {"threshold": 0.2, "refit_support": True},
        {"n_terms": 2, "ridge": 0.1},
        {"n_init": 8, "fit_intercept": False},
        {"sweep": "simultaneous"},
    ],
    ids=str,
)
def test_outputs_are_what_each_would_be_alone(options):
    X, Y = draw()
    rng = np.random.default_rng(1)
    others = {"sample_weight": rng.uniform(0.5, 2, len(X)), "covariates": rng.normal(size=(120, 2))}
    model = FasTRRegressor(**SETTLED, **options).fit(X, Y, **others)
    for t, alone in enumerate(clone(model).fit(X, y, **others) for y in Y.T):
        np.testing.assert_allclose(model.coef_[t], alone.coef_, atol=1e-7)
        np.testing.assert_allclose(model.intercept_[t], alone.intercept_, atol=1e-7)
        np.testing.assert_allclose(model.covariate_coef_[t], alone.covariate_coef_, atol=1e-7)
        assert model.starts_[t] == alone.starts_
        assert model.converged_[t] == alone.converged_


def test_counts_are_what_each_would_be_alone():
    X, Y = draw()
    counts = np.random.default_rng(0).poisson(np.exp(0.2 * Y))
    model = FasTRRegressor(ridge=0.1, loss="poisson", **SETTLED).fit(X, counts)
    many = MultiOutputRegressor(clone(model)).fit(X, counts)
    np.testing.assert_allclose(model.predict(X), many.predict(X), rtol=1e-5)
    scores = [own.score(X, y) for own, y in zip(many.estimators_, counts.T, strict=True)]
    assert model.score(X, counts) == pytest.approx(np.mean(scores), abs=1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_classes_are_what_each_would_be_against_the_rest(loss):
    X, y = draw_classes()
    model = FasTRClassifier(loss=loss, class_weight={"a": 2.0, "b": 1, "c": 1, "d": 1}, **SETTLED)
    model.fit(X, y)
    weights = np.where(y == "a", 2.0, 1.0)
    alone = FasTRClassifier(loss=loss, **SETTLED)
    for t, name in enumerate("abcd"):
        alone.fit(X, y == name, sample_weight=weights)
        np.testing.assert_allclose(model.coef_[t], alone.coef_, atol=1e-6)
        decision = model.decision_function(X)[:, t]
        np.testing.assert_allclose(decision, alone.decision_function(X), atol=1e-5)


def test_shapes_of_attributes():
    X, Y = draw()
    model = FasTRRegressor(n_terms=2, ridge=0.1, random_state=0).fit(X, Y, covariates=Y[:, :1] ** 2)
    assert model.coef_.shape == (3, *SHAPE)
    assert [factor.shape for factor in model.factors_] == [(3, 6, 2), (3, 5, 2)]
    assert model.scales_.shape == (3, 2)
    assert model.intercept_.shape == model.n_iter_.shape == model.converged_.shape == (3,)
    assert model.covariate_coef_.shape == (3, 1)
    assert [own.n_starts > 0 for own in model.starts_] == [True] * 3
    assert model.history_["loss"].shape == (3, model.n_iter_.max())
    built = np.einsum("tr,tir,tjr->tij", model.scales_, *model.factors_)
    np.testing.assert_allclose(model.coef_, built, atol=1e-12)


def test_a_column_is_an_output_as_it_is_to_linear_regression():
    X, Y = draw(1)
    column, vector = (FasTRRegressor(random_state=0).fit(X, y) for y in (Y, Y[:, 0]))
    flat = LinearRegression().fit(X.reshape(len(X), -1), Y)
    assert column.predict(X).shape == flat.predict(X.reshape(len(X), -1)).shape == (120, 1)
    assert column.intercept_.shape == flat.intercept_.shape == (1,)
    np.testing.assert_array_equal(column.coef_[0], vector.coef_)


@pytest.mark.parametrize("twin", [FasTRRegressor(**SETTLED), FasTRRegressorCV(**QUICK)], ids=str)
def test_the_order_of_outputs_does_not_matter(twin):
    X, Y = draw(4)
    order = [2, 0, 3, 1]
    model, permuted = (clone(twin).fit(X, y) for y in (Y, Y[:, order]))
    np.testing.assert_allclose(permuted.coef_, model.coef_[order], atol=1e-8)
    np.testing.assert_allclose(permuted.intercept_, model.intercept_[order], atol=1e-8)


def test_the_names_of_classes_do_not_matter():
    X, y = draw_classes()
    renamed = np.select([y == own for own in "abcd"], [7, 3, 9, 1])
    model, other = (FasTRClassifierCV(**QUICK).fit(X, own) for own in (y, renamed))
    assert other.classes_.tolist() == [1, 3, 7, 9]
    order = [3, 1, 0, 2]
    np.testing.assert_allclose(other.coef_, model.coef_[order], atol=1e-8)
    names = dict(zip("abcd", (7, 3, 9, 1), strict=True))
    assert other.predict(X).tolist() == [names[own] for own in model.predict(X)]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("twin", [FasTRClassifier(random_state=0), FasTRClassifierCV(**QUICK)])
def test_probabilities_are_each_against_the_rest_and_sum_to_one(twin, loss):
    X, y = draw_classes()
    model = clone(twin).set_params(loss=loss).fit(X, y)
    decision, shares = model.decision_function(X), model.predict_proba(X)
    assert decision.shape == shares.shape == (120, 4)
    raw = expit(model.calibration_ * decision)
    np.testing.assert_allclose(shares, raw / raw.sum(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-12)
    for numbers in (decision, shares):
        assert (model.classes_[numbers.argmax(axis=1)] == model.predict(X)).all()
    assert model.score(X, y) == np.mean(model.predict(X) == y) > 0.7


def test_there_are_probabilities_where_no_class_has_any():
    X, y = draw_classes()
    model = FasTRClassifier(random_state=0, loss="logistic").fit(X, y)
    model.intercept_ = model.intercept_ - 1e6
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (model.classes_[shares.argmax(axis=1)] == model.predict(X)).all()


def test_outputs_share_the_passes_over_samples(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((200, 12, 11, 10)), rng.standard_normal((200, 8))
    model = FasTRRegressor(random_state=0, n_init=8, ridge=1.0, max_iter=5, tol=1.0)
    one, eight = (count_reads(monkeypatch, lambda y=y: model.fit(X, y)) for y in (Y[:, 0], Y))
    assert one > 20
    assert eight <= 1.5 * one


def test_a_choice_is_one_for_all_outputs_by_their_mean_score():
    X, Y = draw(noise=1.0)
    model = FasTRRegressorCV(**QUICK, n_terms=(1, 2)).fit(X, Y)
    found = model.held_out_
    assert found.target.shape == found.prediction.shape == (120, 3)
    np.testing.assert_array_equal(found.target, Y[found.samples])
    for fold in range(5):
        own = found.folds == fold
        expected = pyfastr.estimators.regressor.score_numbers(
            "squared", found.target[own], found.prediction[own]
        )
        score = model.cv_results_[f"split{fold}_test_score"][model.best_index_]
        assert score == pytest.approx(expected)
    assert np.isfinite(model.reference_score_)
    assert model.reference_.held_out.prediction.shape == (120, 3)


def test_each_output_of_a_choice_has_its_own_scores(tmp_path):
    X, Y = draw(noise=1.0)
    Y[:, 1] = np.random.default_rng(1).permutation(Y[:, 1])
    model = FasTRRegressorCV(**QUICK, n_terms=(1, 2)).fit(X, Y)
    of_all = [model.cv_results_[f"split{fold}_test_score"] for fold in range(5)]
    np.testing.assert_allclose(model.output_scores_.mean(axis=0), of_all, rtol=1e-12)
    loaded = pyfastr.load(model.save(tmp_path / "model.fastr"))
    for t, one in enumerate(loaded.outputs_):
        held = model.held_out_
        expected = [
            r2_score(held.target[k, t], held.prediction[k, t])
            for k in map(held.folds.__eq__, range(5))
        ]
        table = one.cv_results_
        own = [table[f"split{fold}_test_score"][model.best_index_] for fold in range(5)]
        np.testing.assert_allclose(own, expected, rtol=1e-9)
        assert one.best_score_ == pytest.approx(np.mean(expected))
        assert np.nanmax(one.scores_path_.mean(axis=-1)) == table["mean_test_score"].max()
        blind = "predicted no better than by chance" in " ".join(a.what for a in one.diagnose())
        assert blind == (t == 1)
    one_scorer = FasTRRegressorCV(**QUICK, scoring="neg_mean_absolute_error").fit(X, Y)
    assert not hasattr(one_scorer, "output_scores_")
    assert one_scorer.outputs_[0].best_score_ == one_scorer.best_score_
    assert not hasattr(model.fit(X, Y[:, 0]), "output_scores_")


def test_the_default_score_of_classes_is_the_mean_area_against_the_rest():
    X, y = draw_classes(noise=2.0)
    model = FasTRClassifierCV(**QUICK, refit=True).fit(X, y)
    found = model.held_out_
    assert found.target.tolist() == [model.classes_.tolist().index(y[i]) for i in found.samples]
    for fold in range(5):
        own = found.folds == fold
        areas = [
            roc_auc_score(found.target[own] == t, found.prediction[own][:, t]) for t in range(4)
        ]
        score = model.cv_results_[f"split{fold}_test_score"][model.best_index_]
        assert score == pytest.approx(np.mean(areas))


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "roc_auc_ovr", "f1_macro"])
def test_scores_of_scikit_learn_choose_among_classes(scoring):
    X, y = draw_classes(noise=1.0)
    model = FasTRClassifierCV(**QUICK, n_terms=1, scoring=scoring).fit(X, y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    assert np.isfinite(model.reference_score_)


@pytest.mark.parametrize(
    "scoring",
    ["neg_mean_squared_error", lambda model, X, y: model.score(X, y)],
    ids=["name", "function"],
)
def test_scores_of_scikit_learn_choose_among_outputs(scoring):
    X, Y = draw(noise=1.0)
    model = FasTRRegressorCV(**QUICK, n_terms=1, scoring=scoring).fit(X, Y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


def test_the_mean_of_folds_is_a_mean_for_every_output():
    X, Y = draw(noise=1.0)
    model = FasTRRegressorCV(**QUICK, n_terms=1, refit=False, one_standard_error=True).fit(X, Y)
    for t, y in enumerate(Y.T):
        alone = clone(model).set_params(thresholds=(model.threshold_,), ridges=(model.ridge_,))
        alone.fit(X, y)
        np.testing.assert_allclose(model.coef_[t], alone.coef_, atol=1e-3)


@pytest.mark.parametrize(
    "options", [{"refit": False}, {"refit": True}, {"criterion": "evidence"}, {"scoring": None}]
)
def test_vectors_with_several_outputs(options):
    X, Y = draw()
    flat = X.reshape(len(X), -1)
    model = FasTRRegressorCV(**{**QUICK, "n_terms": 1}, **options).fit(flat, Y)
    assert model.coef_.shape == (3, 30)
    assert model.score(flat, Y) > 0.98


def test_outputs_of_a_model_are_models_of_one():
    X, Y = draw()
    model = FasTRRegressorCV(**QUICK).fit(X, Y)
    for t, one in enumerate(model.outputs_):
        assert type(one) is FasTRRegressorCV
        np.testing.assert_array_equal(one.coef_, model.coef_[t])
        np.testing.assert_allclose(one.predict(X), model.predict(X)[:, t], rtol=1e-12)
        assert one.starts_ == model.starts_[t]
        assert len(one.history_["loss"]) == one.n_iter_ == model.n_iter_[t]
        assert one.diagnose().measured["samples"].startswith("120")
    alone = FasTRRegressor(random_state=0).fit(X, Y[:, 0])
    assert alone.outputs_ == [alone]


def test_a_second_fit_forgets_the_evidence_of_the_first():
    X, Y = draw()
    model = FasTRRegressor(refit_support="evidence", random_state=0).fit(X, Y[:, 0])
    model.set_params(refit_support=False).fit(X, Y)
    assert not hasattr(model, "evidence_")
    assert len(model.outputs_) == 3


def test_classes_of_a_model_are_models_of_two():
    X, y = draw_classes()
    for one, name in zip(FasTRClassifier(random_state=0).fit(X, y).outputs_, "abcd", strict=True):
        assert one.classes_.tolist() == [False, True]
        assert one.score(X, y == name) > 0.8
        assert one.predict_proba(X).shape == (120, 2)


@pytest.mark.parametrize(
    "model",
    [
        FasTRRegressor(random_state=0, ridge=0.1),
        FasTRRegressor(random_state=0, refit_support="evidence"),
        FasTRRegressorCV(**QUICK),
        FasTRRegressorCV(**QUICK, refit=False),
    ],
    ids=str,
)
def test_files_keep_all_outputs(model, tmp_path):
    X, Y = draw()
    Z = np.random.default_rng(0).normal(size=(len(X), 2))
    model = clone(model).fit(X, Y, covariates=Z)
    loaded = pyfastr.load(model.save(tmp_path / "model.pyfastr"))
    np.testing.assert_array_equal(loaded.predict(X, Z), model.predict(X, Z))
    second = loaded.outputs_[1].predict(X, Z)
    np.testing.assert_allclose(second, model.predict(X, Z)[:, 1], rtol=1e-12)


@pytest.mark.parametrize("model", [FasTRClassifier(random_state=0), FasTRClassifierCV(**QUICK)])
def test_files_keep_all_classes(model, tmp_path):
    X, y = draw_classes()
    model = clone(model).fit(X, y)
    loaded = pyfastr.load(model.save(tmp_path / "model.pyfastr"))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_report_has_a_page_for_each_class():
    X, y = draw_classes()
    model = FasTRClassifier(random_state=0).fit(X[:100], y[:100])
    new, old = (
        model.generate_report(X[rows], y[rows]).html for rows in (slice(100, None), slice(100))
    )
    for page in (new, old):
        assert page.count("<iframe") == 4
        assert all(f"<summary>Class {name}</summary>" in page for name in "abcd")
    assert "had a part in the fit" not in new.replace("no part", "")


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, X, Y: model.diagnose(),
        lambda model, X, Y: model.to_tensorly(),
        slice_importance,
        lambda model, X, Y: pyfastr.display.FactorsDisplay.from_estimator(model),
    ],
)
def test_what_is_of_one_output_says_how_to_take_one(ask):
    X, Y = draw()
    model = FasTRRegressor(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"of one output, but FasTRRegressor has 3.*outputs_\[i\]"):
        ask(model, X, Y)


def test_inference_asks_for_one_output():
    X, Y = draw()
    with pytest.raises(ValueError, match="y has 3 outputs; expected 1"):
        permutation_test(FasTRRegressor(), X, Y)
    with pytest.raises(ValueError, match=r"y has 3 classes; expected 2\. Give one class"):
        permutation_test(FasTRClassifier(), X, Y.argmax(axis=1))


def test_labels_of_xarray_have_a_dimension_of_outputs():
    pytest.importorskip("xarray")
    X, y = draw_classes()
    coef = FasTRClassifier(random_state=0).fit(X, y).to_xarray()
    assert coef.dims == ("class", "mode_0", "mode_1")
    assert coef.coords["class"].values.tolist() == list("abcd")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.full((120, 2), np.nan)}, "Input y contains NaN: first at sample 0, 240 such"),
        ({"y": np.ones((120, 2, 2))}, "y should be a 1d array"),
        ({"y": np.ones((120, 0))}, "y should be a 1d array"),
        ({"y": np.ones((119, 2))}, "y has 119 values, but X has 120 samples"),
        ({"loss": "poisson", "y": np.eye(120)[:, :2] - [0, 1]}, "Output 1: y holds -1"),
    ],
)
def test_outputs_that_cannot_be_fitted_are_refused(change, message):
    X, y = draw(2)
    y = change.pop("y", y)
    with pytest.raises(ValueError, match=message):
        FasTRRegressor(**change).fit(X, y)


def test_folds_need_every_class():
    X, y = draw_classes()
    rare = np.where(np.arange(120) < 1, "e", y)
    splits = [(np.arange(60, 120), np.arange(60)), (np.arange(60), np.arange(60, 120))]
    with pytest.raises(
        ValueError, match="fold 0 only training samples of class 'a', 'b', 'c', 'd'"
    ):
        FasTRClassifierCV(cv=splits).fit(X, rare)


def test_weights_must_leave_every_class():
    X, y = draw_classes()
    with pytest.raises(ValueError, match="leave no sample of class 'c'"):
        FasTRClassifier().fit(X, y, sample_weight=(y != "c").astype(float))


def test_an_output_that_does_not_vary_is_zero_and_said_so():
    X, Y = draw()
    Y[:, 1] = 4.0
    with pytest.warns(UserWarning, match="The coefficient of output 1 is zero: y is constant"):
        model = FasTRRegressor(random_state=0).fit(X, Y)
    assert not model.coef_[1].any()
    np.testing.assert_allclose(model.predict(X)[:, 1], 4.0)
    assert model.coef_[[0, 2]].any(axis=(1, 2)).all()


def test_pipelines_and_searches_take_several_outputs():
    X, Y = draw()
    pipe = make_pipeline(TensorScaler(), FasTRRegressor(random_state=0))
    search = GridSearchCV(pipe, {"fastrregressor__ridge": [0.01, 1.0]}, cv=3).fit(X, Y)
    assert search.predict(X).shape == (120, 3)
    assert search.best_params_ == {"fastrregressor__ridge": 0.01}


def test_types_are_those_of_samples():
    X, Y = draw()
    model = FasTRRegressor(random_state=0).fit(X.astype(np.float32), Y)
    assert model.coef_.dtype == model.predict(X.astype(np.float32)).dtype == np.float32


def test_groups_stay_together():
    X, y = draw_classes()
    groups = np.arange(120) // 2
    model = FasTRClassifierCV(**QUICK).fit(X, y, groups=groups)
    fold_of = dict(zip(model.held_out_.samples, model.held_out_.folds, strict=True))
    assert all(fold_of[2 * g] == fold_of[2 * g + 1] for g in range(60))


def test_an_interrupted_fit_goes_on_to_the_same_result(tmp_path):
    X, Y = draw()
    whole = FasTRRegressorCV(**QUICK).fit(X, Y)
    kept = FasTRRegressorCV(**QUICK, checkpoint=tmp_path / "fit.checkpoint").fit(X, Y)
    np.testing.assert_array_equal(kept.coef_, whole.coef_)
