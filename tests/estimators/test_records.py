"""What a fit keeps of its data: a fingerprint, and what folds predicted of held-out samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold

from pyfastr import FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV
from pyfastr.datasets import make_tensor_regression


@pytest.fixture
def data():
    return make_tensor_regression(60, (6, 5), noise=2.0, random_state=0)


def test_held_out_predictions_have_the_score_of_the_choice(data):
    X, y = data
    model = FasTRRegressorCV(refit=True, random_state=0).fit(X, y)
    held = model.held_out_
    assert_array_equal(np.sort(held.samples), np.arange(60))
    assert_array_equal(held.target, y[held.samples])
    scores = [
        r2_score(held.target[held.folds == fold], held.prediction[held.folds == fold])
        for fold in range(5)
    ]
    assert np.mean(scores) == pytest.approx(model.best_score_)


def test_held_out_classes_are_numbers_beside_decision_values(data):
    X, y = data
    labels = np.where(y > 0, "patient", "control")
    model = FasTRClassifierCV(refit=True, random_state=0).fit(X, labels)
    held = model.held_out_
    assert_array_equal(model.classes_[held.target] == "patient", y[held.samples] > 0)
    scores = [
        roc_auc_score(held.target[held.folds == fold], held.prediction[held.folds == fold])
        for fold in range(5)
    ]
    assert np.mean(scores) == pytest.approx(model.best_score_)


def test_samples_that_no_fold_holds_out_are_not_there(data):
    X, y = data
    split = next(iter(KFold(3).split(X)))
    held = FasTRRegressorCV(cv=[split], random_state=0).fit(X, y).held_out_
    assert_array_equal(held.samples, split[1])


def test_evidence_holds_nothing_out(data):
    X, y = data
    model = FasTRRegressorCV(random_state=0).fit(X, y)
    model.set_params(criterion="evidence").fit(X, y)
    assert not hasattr(model, "held_out_")


def test_the_final_fit_knows_the_input_of_the_choice(data):
    X, y = data
    model = FasTRRegressorCV(random_state=0).fit(X, y)
    best = model.best_estimator_
    assert (best.tensor_shape_in_, best.n_features_in_, best.n_samples_in_) == ((6, 5), 6, 60)
    assert best.fingerprint_ == model.fingerprint_
    assert_allclose(best.predict(X), model.predict(X))


def changed(array, at):
    copy = array.copy()
    copy[at] += 1e-9
    return copy


def test_a_fingerprint_is_that_of_the_data_whatever_the_model(data):
    X, y = data
    first = FasTRRegressor(n_init=2).fit(X, y).fingerprint_
    assert first == FasTRRegressor(0.1, n_init=2).fit(np.asfortranarray(X), y).fingerprint_
    others = [
        (changed(X, (0, 0, 0)), y, {}),
        (changed(X, (-1, -1, -1)), y, {}),
        (X, changed(y, 30), {}),
        (X, y, {"sample_weight": np.r_[2.0, np.ones(59)]}),
        (X, y, {"covariates": np.arange(60.0)}),
        (X[:59], y[:59], {}),
    ]
    found = {FasTRRegressor(n_init=2).fit(X, y, **more).fingerprint_ for X, y, more in others}
    assert len(found | {first}) == 7
