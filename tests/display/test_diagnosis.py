import numpy as np
import pytest

from pyfastr import FasTRClassifier, FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV, load
from pyfastr.datasets import make_tensor_regression
from pyfastr.display import Diagnosis, diagnose


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


def test_folds_that_train_on_too_few_are_told(data):
    X, y = data
    model = FasTRRegressorCV([0.0], [0.1], cv=2, n_terms=1, random_state=0).fit(X[:20], y[:20])
    assert "10 samples, no more than the 11 free" in about(model, "Folds train on").what
    assert "`cv=10`" in about(model, "Folds train on").do


def test_scores_of_few_held_out_samples_are_noted(data):
    X, y = data
    model = FasTRRegressorCV([0.0], [0.1], n_terms=1, random_state=0).fit(X[:40], y[:40])
    assert "scored on 8 held-out samples" in about(model, "A fold is scored").what
    labels = np.arange(80) % 10 == 0
    model = FasTRClassifierCV([0.0], [1.0], n_terms=1, random_state=0).fit(X, labels)
    assert "scored on 1 held-out sample of a class" in about(model, "A fold is scored").what


@pytest.mark.filterwarnings("ignore:The coefficient is zero")
def test_the_mode_that_a_threshold_emptied_is_named(data):
    model = FasTRRegressor(random_state=0).fit(*data)
    model.factors_[1][:], model.scales_[:] = 0.0, 0.0
    assert "it emptied mode 1" in about(model, "The coefficient is zero").do


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_choice_never_advises_to_raise_the_ridge_that_it_chose(data):
    X, y = data
    with pytest.warns(match="did not converge") as caught:
        model = FasTRRegressorCV([0.0], [0.1], max_iter=1, tol=1e-9, random_state=0).fit(X, y)
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
