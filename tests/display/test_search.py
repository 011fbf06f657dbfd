"""Agreement of the starts, and convergence."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr import FasTRRegressor
from pyfastr.display import ConvergenceDisplay, StartsDisplay


def starts(losses, **changes):
    known = {"n_starts": 32, "n_polished": 5, "n_hits": 2, "gap": 1.5, "sure": False}
    return StartsDisplay(losses, **{**known, **changes})


def drawn(panel):
    return {
        line.get_label(): line.get_ydata()
        for line in panel.get_lines()
        if not line.get_label().startswith("_")
    }


def test_solutions_that_reached_the_best_are_told_from_others():
    panel = starts([1.0, 1.000001, 1.5, 4.0, 80.0]).plot().ax_
    lines = drawn(panel)
    assert_array_equal(lines["reached the best"], [1.0, 1.000001])
    assert_array_equal(lines["ended elsewhere"], [1.5, 4.0, 80.0])
    assert panel.get_yscale() == "log"


def test_a_closer_fit_at_a_larger_penalty_in_an_old_file_did_not_reach_the_best():
    lines = drawn(starts([0.7, 1.0, 1.0, 4.0, 80.0]).plot().ax_)
    assert_array_equal(lines["reached the best"], [1.0, 1.0])


def test_where_all_agree_rounding_errors_are_not_magnified():
    panel = starts(1 + 1e-12 * np.arange(5), n_hits=5, gap=np.inf, sure=True).plot().ax_
    low, high = panel.get_ylim()
    assert low <= 0.8
    assert high >= 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sure": True}, "sure that more starts would find no better one"),
        ({"confidence": 0.876}, "With a probability of 88% more would find no better one"),
        ({}, "leaves 1.5 times as much, penalty included. More starts may find a better one"),
        ({"n_hits": 1}, "a better one may exist. Raise n_init"),
        ({"n_polished": 1, "n_hits": 1, "sure": True}, "nothing to search"),
        ({"n_polished": 1, "n_hits": 1}, "one start, and nothing to compare"),
    ],
)
def test_it_says_what_the_starts_mean(changes, words):
    display = starts([1.0, 1.5], **changes).plot()
    assert words in display.meaning
    assert display.ax_.get_title(loc="left").replace("\n", " ") == display.meaning


def test_models_without_residuals_of_starts_still_have_words():
    display = starts([]).plot()
    (text,) = display.ax_.texts
    assert text.get_text().replace("\n", " ") == display.meaning


@pytest.mark.parametrize("n_modes", [1, 2, 3])
def test_fitted_models_show_their_search(fitted, n_modes):
    found = fitted[n_modes].starts_
    display = StartsDisplay.from_estimator(fitted[n_modes])
    assert_array_equal(display.losses, found.losses)
    assert (display.n_hits, display.sure) == (found.n_hits, found.sure)
    assert display.confidence == found.confidence
    if len(found.losses):
        values = np.concatenate(list(drawn(display.ax_).values()))
        assert_array_equal(np.sort(values), np.sort(found.losses))


def test_sweeps_are_drawn_from_the_first(fitted):
    model = fitted[3]
    display = ConvergenceDisplay.from_estimator(model)
    for panel, name in zip(display.axes_, ("loss", "change"), strict=True):
        line = panel.get_lines()[0]
        assert_array_equal(line.get_xdata(), np.arange(1, model.n_iter_ + 1))
        assert_allclose(line.get_ydata(), model.history_[name])
    assert display.axes_[1].get_yscale() == "log"
    assert_array_equal(display.axes_[1].get_lines()[1].get_ydata(), [model.tol] * 2)


def test_one_sweep_without_change_is_drawn_too():
    display = ConvergenceDisplay([0.5], [0.0]).plot()
    assert display.axes_[1].get_yscale() == "linear"


@pytest.mark.parametrize(
    ("display", "name"), [(StartsDisplay, "starts_"), (ConvergenceDisplay, "history_")]
)
def test_the_mean_of_folds_has_none_and_says_why(averaged, display, name):
    with pytest.raises(AttributeError, match=rf"has no {name}, .* \(refitted_=False\)"):
        display.from_estimator(averaged)
    with pytest.raises(ValueError, match="not fitted"):
        display.from_estimator(FasTRRegressor())


def test_the_users_axes_are_used(fitted):
    _, axes = plt.subplots(1, 3)
    before = plt.get_fignums()
    assert StartsDisplay.from_estimator(fitted[2], ax=axes[0]).ax_ is axes[0]
    display = ConvergenceDisplay.from_estimator(fitted[2], axes=axes[1:])
    assert list(display.axes_) == list(axes[1:])
    assert plt.get_fignums() == before
