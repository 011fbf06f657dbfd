import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr import FasTRRegressorCV
from pyfastr.datasets import make_tensor_regression
from pyfastr.display import SelectionDisplay


def test_lines_are_the_mean_scores(chosen):
    display = SelectionDisplay.from_estimator(chosen)
    means = chosen.cv_results_["mean_test_score"].reshape(2, 2, 3)
    assert [panel.get_title() for panel in display.axes_] == ["1 term", "2 terms"]
    for panel, own in zip(display.axes_, means, strict=True):
        for line, scores in zip(panel.get_lines(), own, strict=True):
            assert_array_equal(line.get_xdata(), [0, 0.1, 0.3])
            assert_allclose(line.get_ydata(), scores)
        styles = [(line.get_linestyle(), line.get_marker()) for line in panel.get_lines()]
        assert len(set(styles)) == 2
    assert display.axes_[0].get_ylabel() == "mean held-out R²"


def test_the_band_is_one_standard_error(chosen):
    display = SelectionDisplay.from_estimator(chosen)
    row = list(display.ridges).index(chosen.ridge_)
    scores = chosen.scores_path_[0, row]
    error = scores.std(axis=1, ddof=1) / np.sqrt(5)
    (band,) = (c for c in display.axes_[0].collections if not c.get_offsets().any())
    y = np.unique(band.get_paths()[0].vertices[:, 1])
    assert_allclose(y, np.unique([scores.mean(axis=1) - error, scores.mean(axis=1) + error]))


def test_the_chosen_point_is_marked(chosen):
    display = SelectionDisplay.from_estimator(chosen)
    panel = display.axes_[list(chosen.cv_results_["param_n_terms"][[0, 6]]).index(chosen.n_terms_)]
    mean = chosen.cv_results_["mean_test_score"][chosen.best_index_]
    marks = [c for c in panel.collections if c.get_label() == "chosen"]
    assert_allclose(marks[0].get_offsets(), [[chosen.threshold_, mean]])
    labels = [text.get_text() for text in panel.get_legend().get_texts()]
    assert labels == ["0.1", "1", "chosen"]


def test_points_that_are_averaged_are_marked(averaged):
    assert len(averaged.averaged_) > 1
    display = SelectionDisplay.from_estimator(averaged)
    means = averaged.cv_results_["mean_test_score"]
    thresholds = averaged.cv_results_["param_threshold"]
    expected = {(thresholds[i], means[i]) for i in averaged.averaged_}
    found = {
        tuple(c.get_offsets().data[0])
        for c in display.axes_[0].collections
        if c.get_linewidths()[0] == 1
    }
    assert found == expected
    labels = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
    assert labels[-2:] == ["averaged", "chosen"]


def test_terms_that_were_added_at_some_points_have_panels_of_these():
    X, y = make_tensor_regression(150, (6, 5), n_terms=2, noise=0.5, random_state=0)
    model = FasTRRegressorCV([0.0, 0.1, 0.3], [0.1, 1.0], n_init=2, random_state=0).fit(X, y)
    assert model.n_terms_ == 2
    display = SelectionDisplay.from_estimator(model)
    assert [panel.get_title() for panel in display.axes_] == ["1 term", "2 terms", "3 terms"]
    tried = model.cv_results_
    for panel, n_terms in zip(display.axes_, (1, 2, 3), strict=True):
        drawn = np.concatenate([line.get_ydata() for line in panel.get_lines()])
        own = tried["mean_test_score"][np.asarray(tried["param_n_terms"]) == n_terms]
        assert_allclose(np.sort(drawn[np.isfinite(drawn)]), np.sort(own))
    (mark,) = (c for c in display.axes_[1].collections if c.get_label() == "chosen")
    assert_allclose(mark.get_offsets(), [[model.threshold_, model.best_score_]])


def test_a_choice_by_evidence_is_drawn_by_the_number_of_terms(draw):
    X, y = draw((5, 4), noise=0.05)
    options = {"criterion": "evidence", "n_terms": (1, 2), "n_init": 2, "random_state": 0}
    model = FasTRRegressorCV(**options).fit(X, y)
    display = SelectionDisplay.from_estimator(model)
    (panel,) = display.axes_
    (line,) = panel.get_lines()
    assert_array_equal(line.get_xdata(), [1, 2])
    assert_allclose(line.get_ydata(), model.scores_path_.ravel())
    (mark,) = panel.collections
    assert_allclose(mark.get_offsets(), [[model.n_terms_, model.best_score_]])
    assert panel.get_ylabel() == "−(N − dof) log(RSS / (N − dof))"


def test_one_threshold_is_drawn_along_ridges(draw):
    X, y = draw((5, 4))
    model = FasTRRegressorCV([0.1], [0.01, 1.0], 1, n_init=2, random_state=0).fit(X, y)
    (panel,) = SelectionDisplay.from_estimator(model).axes_
    assert (panel.get_xlabel(), panel.get_xscale()) == ("ridge", "log")
    assert_allclose(panel.get_lines()[0].get_ydata(), model.cv_results_["mean_test_score"])
    assert panel.collections[-1].get_offsets()[0, 0] == model.ridge_


def test_classifiers_name_their_score(classifier):
    panel = SelectionDisplay.from_estimator(classifier).axes_[0]
    assert panel.get_ylabel() == "mean held-out area under the ROC curve"


def test_hopeless_points_do_not_flatten_the_others():
    scores = np.full((1, 1, 10, 2), 0.8)
    scores[0, 0, :, :] -= np.linspace(0, 0.1, 10)[:, None]
    scores[0, 0, 9] = -1e6
    display = SelectionDisplay(
        scores, n_terms=[1], ridges=[1.0], thresholds=np.arange(10) / 10, chosen=(0, 0, 0)
    ).plot()
    low, high = display.axes_[0].get_ylim()
    assert 0 < low < 0.72
    assert 0.8 < high < 1


def test_scores_too_large_to_square_have_an_error():
    scores = np.array([-1e220, -2e220, -3e220]).reshape(1, 1, 1, 3)
    grid = {"n_terms": [1], "ridges": [0.1], "thresholds": [0.0], "chosen": (0, 0, 0)}
    display = SelectionDisplay(scores, **grid).plot()
    assert display.error_.item() == pytest.approx(1e220 / np.sqrt(3))
    assert np.isnan(SelectionDisplay(np.full_like(scores, np.nan), **grid).mean_).all()


def test_folds_without_scores_are_left_out():
    scores = np.array([0.5, 0.7, np.nan, 0.2, 0.4, np.nan]).reshape(1, 1, 2, 3)
    display = SelectionDisplay(
        scores, n_terms=[1], ridges=[1.0], thresholds=[0, 0.1], chosen=(0, 0, 0)
    ).plot()
    assert_allclose(display.mean_, [[[0.6, 0.3]]])
    assert_allclose(display.axes_[0].get_lines()[0].get_ydata(), [0.6, 0.3])


def test_the_users_axes_are_used(chosen):
    _, axes = plt.subplots(2, 1)
    before = plt.get_fignums()
    display = SelectionDisplay.from_estimator(chosen, axes=axes)
    assert plt.get_fignums() == before
    assert list(display.axes_) == list(axes)


def test_a_model_that_did_not_choose_is_refused(fitted):
    with pytest.raises(AttributeError, match=r"no scores_path_, .*; use FasTRRegressorCV or"):
        SelectionDisplay.from_estimator(fitted[2])
