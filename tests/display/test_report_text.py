"""What a report says, without its drawings."""

import base64
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline

import pyfastr
from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
)
from pyfastr.datasets import make_tensor_regression
from pyfastr.display.code_text import code_for
from pyfastr.display.methods_text import citation, methods_text
from pyfastr.display.performance import performance_card, performance_text
from pyfastr.display.report_sections import predictions_of
from pyfastr.display.traits import number
from pyfastr.display.viewer import make_viewer

GRID = {"thresholds": (0.0, 0.1, 0.3), "ridges": (0.01, 1.0), "cv": 3, "random_state": 0}
ROOT = Path(__file__).parents[2]


@cache
def data():
    return make_tensor_regression(90, (6, 5, 4), sparsity=0.4, noise=0.3, random_state=0)


@cache
def labels():
    return np.where(data()[1] > 0, "yes", "no")


@cache
def plain():
    X, y = data()
    return FasTRRegressor(0.05, 0.01, random_state=0).fit(X[:60], y[:60])


@cache
def chosen():
    X, y = data()
    return FasTRRegressorCV(**GRID, refit=True).fit(X[:60], y[:60])


@cache
def classified():
    return FasTRClassifier(random_state=0).fit(data()[0][:60], labels()[:60])


def test_counts_are_scored_and_described_as_such():
    X, y = data()
    counts = np.random.default_rng(0).poisson(np.exp(y / np.abs(y).max()))
    model = FasTRRegressorCV(**GRID, loss="poisson").fit(X[:60], counts[:60])
    page = model.generate_report(X[60:], counts[60:]).html
    assert "D² of the 30 samples given" in page
    assert "the logarithm of the predicted count" in page
    paragraphs = " ".join(methods_text(model, model))
    assert "log E[y] = ⟨W, X⟩ + b" in paragraphs
    assert "least mean deviance of all held-out samples" in paragraphs
    assert "R²" not in paragraphs


def viewed(model, background=None):
    return json.loads(make_viewer(model, model, background).data)


def test_training_samples_are_recognised_and_not_called_held_out():
    X, y = data()
    given = predictions_of(plain(), plain(), X[:60], y[:60], None)
    text = " ".join(performance_text(plain(), plain(), given))
    assert "These are the samples that the model was fitted to" in text
    assert "Nothing is known" in text
    assert performance_card(plain(), given).value == "unknown"
    other = predictions_of(plain(), plain(), X[30:], y[30:], None)
    assert "only if none of them took part" in " ".join(performance_text(plain(), plain(), other))


def test_training_samples_of_a_classifier_are_recognised_too():
    given = predictions_of(classified(), classified(), data()[0][:60], labels()[:60], None)
    assert given.seen


def test_classes_that_are_given_are_scored_by_curve_and_accuracy():
    X, own = data()[0][60:], labels()[60:]
    text = performance_text(
        classified(), classified(), predictions_of(classified(), classified(), X, own, None)
    )
    assert "Area under the ROC curve of the 30 samples" in text[0]
    assert f"Accuracy: {number(classified().score(X, own))}." in text[0]


def test_samples_of_one_class_have_no_curve():
    X, own = data()[0][60:], labels()[60:]
    given = predictions_of(classified(), classified(), X[own == "yes"], own[own == "yes"], None)
    assert performance_card(classified(), given).name == "Accuracy of samples given"


def test_unknown_classes_are_refused():
    X = data()[0]
    with pytest.raises(ValueError, match=r"y has the classes \['third'\]; expected those of the"):
        predictions_of(classified(), classified(), X[:2], ["third", "no"], None)


def test_a_pipeline_predicts_through_its_scaler_with_covariates():
    X, y = data()
    Z = np.linspace(-1, 1, 90)[:, None]
    model = make_pipeline(TensorScaler(), FasTRRegressor(ridge=0.01, random_state=0))
    model.fit(X[:60], (y + 3 * Z[:, 0])[:60], fastrregressor__covariates=Z[:60])
    given = predictions_of(model, model[-1], X[60:], y[60:], Z[60:])
    expected = model[-1].predict(model[0].transform(X[60:]), Z[60:])
    assert np.array_equal(given.prediction, expected)
    assert "model.fit(X, y, fastrregressor__covariates=covariates)" in code_for(model, model[-1])
    text = " ".join(methods_text(model, model[-1]))
    assert "X was transformed by TensorScaler first" in text
    assert "1 covariate entered" in text


def test_a_scaler_before_the_folds_is_said_to_have_seen_all_samples():
    model = make_pipeline(TensorScaler(), FasTRRegressorCV(**GRID)).fit(*data())
    text = " ".join(performance_text(model, model[-1], None))
    assert "TensorScaler came before the folds and saw the held-out samples" in text
    assert "came before" not in " ".join(performance_text(chosen(), chosen(), None))


def test_samples_and_responses_of_different_number_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[30, 20\]"):
        predictions_of(plain(), plain(), X[60:], y[70:], None)


def test_scores_of_ones_own_are_named_and_what_is_fixed_is_not_said_to_be_chosen():
    def own_score(estimator, X, y):
        return -float(np.abs(estimator.predict(X) - y).mean())

    options = {**GRID, "ridges": [0.1], "refit": True}
    model = FasTRRegressorCV(**options, scoring=own_score).fit(*data())
    text = " ".join(methods_text(model, model))
    assert "The threshold λ (3 values from 0 to 0.3) was chosen by 3-fold" in text
    assert "for the best mean own score, taking the highest threshold that fell short of it" in text
    assert "half a standard error of the difference, fold by fold" in text
    nameless = FasTRRegressorCV(**options, scoring=lambda estimator, X, y: 0.5).fit(*data())
    assert "Held-out score of its own" in performance_card(nameless, None).name


def test_a_choice_by_evidence_has_no_score():
    X, y = data()
    model = FasTRRegressorCV(criterion="evidence", random_state=0).fit(X, y)
    assert performance_card(model, None).value == "unknown"
    (text,) = performance_text(model, model, None)
    assert 'criterion="cv"' in text
    assert "(N − dof) log(RSS / (N − dof))" in " ".join(methods_text(model, model))


def test_the_methods_have_the_numbers_of_the_fit():
    model, text = chosen(), " ".join(methods_text(chosen(), chosen()))
    scores = [model.cv_results_[f"split{k}_test_score"][model.best_index_] for k in range(3)]
    spread = f"{np.std(scores, ddof=1):.2g}"
    n_nonzero = np.count_nonzero(model.coef_)
    for fact in (
        "n = 60 samples are arrays of 6 × 5 × 4",
        f"pyfastr {pyfastr.__version__}",
        "The threshold λ (3 values from 0 to 0.3) and the ridge ε (2 values from 0.01 to 1)",
        "chosen by 3-fold cross-validation for the least mean squared error of all",
        "the highest threshold that fell short of it by no more than one standard error",
        f"λ = {model.threshold_:g}, ε = {model.ridge_:g}",
        f"held-out R² of {model.best_score_:.3g} (SD {spread} across folds)",
        f"{n_nonzero} of 120 entries other than zero",
        f"{np.count_nonzero(model.factors_[0])} of 6 in mode 0",
    ):
        assert fact in text


def test_the_methods_name_a_splitter_and_the_loss_of_classes():
    model = FasTRClassifierCV(
        **{**GRID, "cv": KFold(4)}, n_terms=(1, 2), loss="logistic", scoring="accuracy"
    ).fit(data()[0], labels())
    text = " ".join(methods_text(model, model))
    assert "cross-validation with 4 folds (KFold) for the best mean accuracy" in text
    assert "the number of terms (from 1, 2)" in text
    assert "as the sign of f(X) = ⟨W, X⟩ + b" in text
    assert "The loss is logistic" in text
    assert "cv=KFold(n_splits=4" in code_for(model, model)


def test_a_mean_of_folds_is_described_as_one_and_has_no_score_of_its_own():
    model = FasTRRegressorCV(**GRID, refit=False).fit(*data())
    text = " ".join(methods_text(model, model))
    assert "sparse unit-rank tensor regression" in text
    assert "is the mean over folds of models that are each an outer product of 3 sparse" in text
    assert "or the limit of sweeps in folds was reached" in text
    assert "has none of its own" in " ".join(performance_text(model, model, None))


def test_a_mean_that_was_not_asked_for_is_explained():
    X, y = data()
    y = y + 3 * y.std() * np.random.default_rng(0).normal(size=len(y))
    model = FasTRRegressorCV(**GRID).fit(X, y)
    assert not model.refitted_
    text = " ".join(methods_text(model, model))
    assert f"whose coefficients differ (median cosine {model.agreement_:.2g})" in text
    assert "Terms were added one at a time at the best of these points" in text
    assert "the number of terms (from" not in text


def test_vectors_and_dense_coefficients_are_called_so():
    X, y = data()
    vector = FasTRRegressor(0.3, 0.1).fit(X[:, :, 0, 0], y)
    text = " ".join(methods_text(vector, vector))
    assert "samples are vectors of length 6" in text
    assert "W is a sparse vector" in text
    dense = FasTRRegressor(ridge=0.1, random_state=0).fit(X, y)
    assert "W is an outer product of 3 vectors" in " ".join(methods_text(dense, dense))


@pytest.mark.filterwarnings("ignore:The sweeps did not converge")
def test_sweeps_that_were_cut_short_are_said_to_be():
    model = FasTRRegressor(max_iter=1, tol=1e-9, random_state=0).fit(*data())
    assert "for 1 sweep over all of them, short of convergence" in " ".join(
        methods_text(model, model)
    )


@pytest.mark.filterwarnings("ignore:The coefficient is zero")
def test_a_constant_response_has_no_score():
    X, y = data()
    model = FasTRRegressorCV(**GRID).fit(X, np.full(len(y), 3.7))
    assert performance_card(model, None).value == "undefined"
    assert performance_text(model, model, None)[0].startswith("The response is constant")
    assert "held-out R²" not in " ".join(methods_text(model, model))


def test_one_split_is_no_mean_and_holds_some_samples_out():
    X, y = data()
    split = ShuffleSplit(1, test_size=0.3, random_state=0)
    model = FasTRRegressorCV(**{**GRID, "cv": split}).fit(X, y)
    text = " ".join(performance_text(model, model, None))
    assert text.startswith(f"R² of one fold: {number(model.best_score_)}. Held-out samples were")
    assert "with 1 fold (ShuffleSplit)" in " ".join(methods_text(model, model))


def test_with_covariates_the_score_of_chance_is_unknown():
    X, y = data()
    Z = np.linspace(-1, 1, 90)[:, None]
    model = FasTRRegressorCV(**GRID).fit(X, y + 3 * Z[:, 0], covariates=Z)
    assert "knows nothing of X" in " ".join(performance_text(chosen(), chosen(), None))
    assert "knows nothing of X" not in " ".join(performance_text(model, model, None))


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("is_constant", [False, True])
def test_responses_of_any_size_are_scored_by_numbers(size, is_constant):
    X, y = data()
    y = np.ones(90) if is_constant else y / np.abs(y).max()
    given = predictions_of(plain(), plain(), X, size * y, None)
    text = " ".join(performance_text(plain(), plain(), given))
    assert "Root mean squared error: " in text
    assert not {"inf.", "−inf.", "nan."} & set(text.split())
    if size > 1:
        assert f"error: {number(size * np.sqrt(np.mean(y**2)))}." in text
    picture = plain().generate_report(X, size * y).html
    assert "Observed against predicted" in picture


def test_responses_that_no_fit_takes_are_refused_in_its_words():
    X, y = data()
    with pytest.raises(ValueError, match=r"y is of size 1e\+308; expected .* 1e\+300\. Rescale y"):
        plain().generate_report(X, np.full(90, 1e308))
    counts = FasTRRegressor(loss="poisson", random_state=0).fit(X, np.rint(np.exp(y / y.std())))
    with pytest.raises(ValueError, match=r"y holds -1 at sample 0; expected counts of 0 or more"):
        counts.generate_report(X, np.full(90, -1))
    with pytest.raises(ValueError, match=r"y holds 1e\+240 at sample 0; expected counts up to"):
        counts.generate_report(X, np.full(90, 1e240))
    given = predictions_of(counts, counts, X, np.zeros(90), None)
    assert "D² of the 90 samples" in performance_text(counts, counts, given)[0]


def test_a_single_sample_has_an_error_and_no_r2():
    X, y = data()
    given = predictions_of(plain(), plain(), X[60:61], y[60:61], None)
    error = number(abs(y[60] - plain().predict(X[60:61])[0]))
    card = performance_card(plain(), given)
    assert (card.value, card.note) == (error, "1 sample")
    (text,) = performance_text(plain(), plain(), given)
    assert f"Root mean squared error of the 1 sample given to this report: {error}." in text


@pytest.mark.parametrize("make", [plain, chosen, classified])
def test_the_code_makes_the_same_estimator(make):
    model = make()
    lines = code_for(model, model).splitlines()
    scope = {}
    exec("\n".join(line for line in lines if ".fit(" not in line), scope)
    assert type(scope["model"]) is type(model)
    assert scope["model"].get_params() == model.get_params()


def test_the_code_of_a_pipeline_makes_the_same_pipeline():
    steps = [("the 'first' one", TensorScaler()), ("model", FasTRRegressor(0.05, random_state=0))]
    model = Pipeline(steps).fit(*data())
    code = code_for(model, model[-1], fingerprint=model[-1].fingerprint_)
    scope = dict(zip("Xy", data(), strict=True))
    exec(code, scope)
    assert repr(scope["model"]) == repr(model)
    assert np.array_equal(scope["model"][-1].coef_, model[-1].coef_)


def test_what_cannot_be_written_in_a_line_is_named():
    starts = [np.ones(p) for p in (6, 5, 4)]
    model = FasTRRegressor(init=starts, ridge=np.float64(0.5)).fit(*data())
    code = code_for(model, model)
    assert "# init: what you passed, a list" in code
    assert "model = FasTRRegressor(ridge=0.5, init=init)" in code


def test_the_citation_is_that_of_the_repository():
    cff = " ".join((ROOT / "CITATION.cff").read_text(encoding="utf-8").split())
    for title in (
        "Fast and Scalable Estimator for Sparse and Unit-Rank Higher-Order Regression Models",
        "pyfastr: sparse unit-rank tensor regression in Python",
        "The pyfastr developers",
        "24th European Conference on Artificial Intelligence",
    ):
        assert title in cff
        assert title in " ".join(citation().bibtex.split())
    assert pyfastr.__version__ in citation().bibtex


def test_limits_are_the_largest_entries_of_all_terms_and_of_each():
    model = FasTRRegressor(n_terms=2, ridge=0.1, random_state=0).fit(*data())
    limits = viewed(model)["limits"]
    assert limits[0] == np.abs(model.coef_).max()
    for r, limit in enumerate(limits[1:]):
        term = np.einsum("i,j,k->ijk", *(f[:, r] for f in model.factors_)) * model.scales_[r]
        assert limit == pytest.approx(np.abs(term).max(), rel=1e-12)


def test_coordinates_reach_the_viewer_as_numbers_with_their_unit():
    model = FasTRRegressor(0.05, 0.01, random_state=0).fit(*data())
    model.mode_names_in_ = ("x (mm)", "time (s)", "day")
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03", "NaT"], "datetime64[D]")
    model.mode_coords_in_ = [np.arange(6) * -2.0, np.array([0.0, 1, 2, 3, np.nan]), days]
    x, time, day = viewed(model)["modes"]
    assert x == {"name": "x", "unit": "mm", "coords": [0, -2, -4, -6, -8, -10]}
    assert time["coords"][4] == "nan"
    assert day["coords"][0] == "2020-01-01"


def test_axes_of_space_are_shown_in_their_order_and_others_in_that_of_the_array():
    model = FasTRRegressor(0.05, 0.01, random_state=0).fit(*data())
    assert viewed(model)["shown"] == [0, 1, 2]
    assert not viewed(model)["anatomical"]
    model.mode_names_in_ = ("z (mm)", "x (mm)", "y (mm)")
    assert viewed(model)["shown"] == [1, 2, 0]
    assert viewed(model)["anatomical"]


def test_a_background_becomes_grey_levels():
    image = np.linspace(0, 100, 120).reshape(6, 5, 4)
    grey = np.frombuffer(base64.b64decode(viewed(plain(), image)["background"]), np.uint8)
    assert grey.shape == (120,)
    assert grey[0] == 0
    assert grey[-1] == 255
    assert (np.diff(grey.astype(int)) >= 0).all()


def test_a_background_without_contrast_is_no_error():
    found = viewed(plain(), np.full((6, 5, 4), np.nan))
    assert set(base64.b64decode(found["background"])) == {0}


def test_a_background_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"background has shape \(6, 5\); expected \(6, 5, 4\)"):
        viewed(plain(), np.zeros((6, 5)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.5, "−0.5"),
        (1e-5, "10⁻⁵"),
        (-2.5e-12, "−2.5 × 10⁻¹²"),
        (3e20, "3 × 10²⁰"),
        (1234.5, "1.23 × 10³"),
    ],
)
def test_numbers_are_written_as_people_do(value, text):
    assert number(value) == text
