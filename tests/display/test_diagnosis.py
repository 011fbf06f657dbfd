import re

import numpy as np
import pytest
from sklearn.model_selection import KFold

from pyfastr import FasTRClassifier, FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV, load
from pyfastr.datasets import make_tensor_regression
from pyfastr.display import Diagnosis, diagnose

# What fits of few samples may warn of.
SMALL = "ignore:No model predicts|Ridge regression on the flattened:UserWarning"
FEW = {"thresholds": [0.0], "ridges": [0.1], "n_terms": 1, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_tensor_regression(80, (6, 5), sparsity=0.4, noise=0.1, random_state=0)


def about(model, words):
    """Return the one remark that holds these words."""
    (found,) = [own for own in model.diagnose() if words in own.what]
    return found


def test_a_good_fit_is_all_clear_and_says_what_was_measured(data):
    found = FasTRRegressorCV(random_state=0).fit(*data).diagnose()
    assert isinstance(found, Diagnosis)
    assert not found
    assert "All clear" in repr(found)
    assert found.measured["samples"] == "80, for 11 free parameters"
    assert found.measured["folds"] == "5, each scored on 16 held-out samples"
    assert {"starts", "sweeps", "leverage", "mode 0", "mode 1"} <= set(found.measured)


def test_remarks_come_with_what_to_do_and_print_themselves(data):
    X, y = data
    found = FasTRRegressor(ridge=0.1).fit(X[:8], y[:8]).diagnose()
    assert [own.level for own in found][:1] == ["caution"]
    assert found[0] in found[:2]
    text, page = repr(found), found._repr_html_()
    for own in found:
        assert own.heading in text
        assert own.heading in page
    assert max(map(len, text.splitlines())) <= 88


@pytest.mark.parametrize("kind", [FasTRRegressor, FasTRRegressorCV, FasTRClassifierCV])
def test_a_sample_that_bends_the_fit_is_named(data, kind):
    X, y = (a.copy() for a in data)
    X[17] *= 100
    target = y > 0 if kind is FasTRClassifierCV else y
    options = {} if kind is FasTRRegressor else {"thresholds": [0.0], "n_terms": 1}
    model = kind(random_state=0, **options).fit(X, target)
    item = about(model, "the fit bends")
    assert item.what.startswith("Sample 17 decides")
    assert "compare" in item.do


def test_a_sample_of_no_weight_bends_nothing(data):
    X, y = (a.copy() for a in data)
    X[17] *= 100
    weights = np.where(np.arange(80) == 17, 0.0, 1.0)
    model = FasTRRegressor(random_state=0).fit(X, y, weights)
    assert not [own for own in model.diagnose() if "bends" in own.what]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_collinear_slices_are_named_with_their_correlation(data, loss):
    X, y = (a.copy() for a in data)
    X[:, 4] = X[:, 1]
    model = FasTRClassifier(ridge=0.1, loss=loss, random_state=0).fit(X, y > 0)
    item = about(model, "collinear")
    assert item.level == "caution"
    assert "Slices 1 and 4 of mode 0" in item.what
    assert "correlation above 0.99999" in item.what


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_samples_of_no_weight_are_as_if_they_were_not_there(ridge):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30, 30))
    y = X[:, 0, 0] + rng.normal(size=60)
    few = rng.permutation(60)[:9]
    weights = np.isin(np.arange(60), few).astype(float)
    model = FasTRRegressor(ridge=ridge, n_init=2, max_iter=5000, random_state=0)
    weighted = model.fit(X, y, weights).diagnose()
    alone = model.fit(X[weights > 0], y[weights > 0]).diagnose()
    assert weighted.measured["samples"] == alone.measured["samples"]
    average = [own.measured["leverage"].partition(" on")[0] for own in (weighted, alone)]
    assert average[0] == average[1]
    assert [own.what for own in weighted] == [own.what for own in alone]


@pytest.mark.filterwarnings(SMALL)
def test_held_out_samples_of_no_weight_are_not_counted(data):
    X, y = (a[:40] for a in data)
    weights = np.arange(40) % 2.0
    model = FasTRRegressorCV([0.0], [0.1], cv=KFold(2), n_terms=1, random_state=0)
    found = model.fit(X, y, weights).diagnose()
    assert found.measured["folds"] == "2, each scored on 10 held-out samples"
    assert "Folds train on 10 samples" in about(model, "Folds train on").what
    # Those of a splitter may be bound by groups.
    assert about(model, "Folds train on").do.startswith("Use more folds or a coarser grid")


@pytest.mark.filterwarnings(SMALL)
def test_held_out_samples_of_no_weight_are_not_of_a_class(data):
    X, labels = data[0][:40], np.arange(40) % 2
    weights = np.where((labels == 0) | (np.arange(40) % 20 < 4), 1.0, 0.0)
    model = FasTRClassifierCV([0.0], [0.1], cv=KFold(2), n_terms=1, random_state=0)
    model.fit(X, labels, weights)
    assert "on 2 held-out samples of a class" in about(model, "A fold is scored").what


def test_where_it_is_not_known_which_samples_count_nothing_is_said_of_folds(data):
    X, y = (a[:40] for a in data)
    weights = np.arange(40) % 2.0
    model = FasTRRegressorCV([0.0], [0.1], cv=KFold(2), n_terms=1, random_state=0)
    model.fit(X, y, weights).design_ = None
    found = model.diagnose()
    assert "folds" not in found.measured
    assert not [own for own in found if "Folds train on" in own.what]


@pytest.mark.filterwarnings(SMALL)
@pytest.mark.parametrize(("n_samples", "folds"), [(12, None), (14, 7), (20, 10)])
def test_folds_that_train_on_too_few_are_told(data, n_samples, folds):
    X, y = (a[:n_samples] for a in data)
    item = about(FasTRRegressorCV(**FEW, cv=2).fit(X, y), "Folds train on")
    assert f"{n_samples // 2} samples, no more than the 11 free" in item.what
    advised = re.findall(r"`cv=(\d+)`", item.do)
    assert advised == ([] if folds is None else [str(folds)])
    for cv in map(int, advised):
        FasTRRegressorCV(**FEW, cv=cv).fit(X, y)
    assert "fewer terms" not in item.do


@pytest.mark.filterwarnings(SMALL)
def test_no_more_folds_are_advised_than_the_rarest_class_has_samples(data):
    X, labels = data[0][:20], np.arange(20) % 5 == 0
    item = about(FasTRClassifierCV(**FEW, cv=2).fit(X, labels), "Folds train on")
    assert "`cv=4`" in item.do
    assert 'criterion="evidence"' in item.do


@pytest.mark.filterwarnings(SMALL)
@pytest.mark.parametrize(
    ("kind", "options", "takes_it"),
    [
        (FasTRRegressorCV, {}, True),
        (FasTRRegressorCV, {"refit": True}, True),
        (FasTRRegressorCV, {"refit": False}, False),
        (FasTRRegressorCV, {"loss": "poisson"}, False),
        (FasTRClassifierCV, {}, True),
        (FasTRClassifierCV, {"loss": "logistic"}, False),
    ],
)
def test_evidence_is_advised_where_it_is_taken(data, kind, options, takes_it):
    X, y = data[0][:20], np.arange(20) % 3
    y = y > 1 if kind is FasTRClassifierCV else y
    model = kind(**FEW, **options, cv=2).fit(X, y)
    assert ("evidence" in about(model, "Folds train on").do) == takes_it
    model.set_params(criterion="evidence")
    if takes_it:
        model.fit(X, y)
    else:
        with pytest.raises(ValueError, match="evidence"):
            model.fit(X, y)


@pytest.mark.filterwarnings(SMALL)
def test_evidence_is_not_advised_for_more_terms_than_samples_bear(data):
    X, y = (a[:20] for a in data)
    model = FasTRRegressorCV(**FEW, cv=2).fit(X, y).set_params(n_terms=(1, 2))
    assert "evidence" not in about(model, "Folds train on").do
    with pytest.raises(ValueError, match="evidence"):
        model.set_params(criterion="evidence").fit(X, y)


def test_repeated_folds_of_classes_keep_them_in_balance(data):
    X = data[0][:40]
    model = FasTRClassifierCV(**FEW, cv=2).fit(X, np.arange(40) % 10 == 0)
    item = about(model, "A fold is scored")
    assert "RepeatedStratifiedKFold" in item.do
    assert "fewer folds" not in item.do


def test_scores_of_few_held_out_samples_are_noted(data):
    X, y = data
    model = FasTRRegressorCV([0.0], [0.1], n_terms=1, random_state=0).fit(X[:40], y[:40])
    assert "scored on 8 held-out samples" in about(model, "A fold is scored").what
    labels = np.arange(80) % 10 == 0
    model = FasTRClassifierCV([0.0], [1.0], n_terms=1, random_state=0).fit(X, labels)
    assert "scored on 1 held-out sample of a class" in about(model, "A fold is scored").what


@pytest.mark.filterwarnings("ignore:The coefficient is zero")
def test_the_mode_that_a_threshold_emptied_is_named(data):
    model = FasTRRegressor(0.1, random_state=0).fit(*data)
    model.factors_[1][:], model.scales_[:] = 0.0, 0.0
    assert "it emptied mode 1" in about(model, "The coefficient is zero").do


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_choice_never_advises_to_raise_the_ridge_that_it_chose(data):
    X, y = data
    with pytest.warns(match="did not converge") as caught:
        model = FasTRRegressorCV([0.0], [0.1], max_iter=1, tol=1e-9, random_state=0).fit(X, y)
    X = X.copy()
    X[:, 4] = X[:, 1]
    alike = FasTRRegressorCV([0.0], [0.1], random_state=0).fit(X, y).diagnose()
    assert [own for own in alike if "collinear" in own.what]
    assert not [own for own in alike if "ridge" in own.do.lower()]
    texts = [str(own.message) for own in caught] + [own.do for own in model.diagnose()]
    assert not [text for text in texts if "raise `ridge`" in text.lower()]


def test_it_is_the_same_of_a_saved_model(data, tmp_path):
    model = FasTRRegressorCV(random_state=0).fit(*data)
    model.save(tmp_path / "model.fastr")
    assert repr(diagnose(load(tmp_path / "model.fastr"))) == repr(diagnose(model))


def test_the_report_shows_what_remarks_are_based_on(data):
    model = FasTRRegressor(ridge=0.1, random_state=0).fit(*data)
    page = model.generate_report().html
    for name, value in model.diagnose().measured.items():
        assert name in page
        assert value in page
