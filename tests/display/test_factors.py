import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr import FasTRRegressor
from pyfastr.display import FactorsDisplay
from pyfastr.display.modes import Mode
from pyfastr.inference import BootstrapResult


def entries(panel, label):
    """Places and values of the entries of a term, zeros among them."""
    lines = panel.get_lines()
    at = [line.get_label() for line in lines].index(label)
    on, off = lines[at], lines[at + 1]
    places = np.concatenate([on.get_xdata(), off.get_xdata()])
    values = np.concatenate([on.get_ydata(), off.get_ydata()])
    order = np.argsort(places)
    return places[order], values[order]


@pytest.mark.parametrize("n_modes", [1, 2, 3, 4])
def test_every_mode_has_a_panel_with_its_entries(fitted, n_modes):
    model = fitted[n_modes]
    display = FactorsDisplay.from_estimator(model)
    assert len(display.axes_) == n_modes
    label = f"term 0, scale {model.scales_[0]:.3g}"
    for m, panel in enumerate(display.axes_):
        places, values = entries(panel, label)
        assert_array_equal(places, np.arange(len(values)))
        assert_array_equal(values, model.factors_[m][:, 0])
        assert panel.get_xlabel() == f"mode {m}"


def test_zeros_are_hollow_and_others_filled(fitted):
    panel = FactorsDisplay.from_estimator(fitted[2]).axes_[0]
    _, on, off = panel.get_lines()
    assert len(off.get_xdata())
    assert not np.any(off.get_ydata())
    assert np.all(on.get_ydata())
    assert off.get_markerfacecolor() == "none"
    assert on.get_markerfacecolor() != "none"


def test_terms_stand_side_by_side_and_differ_in_mark():
    rng = np.random.default_rng(0)
    factors = [rng.normal(size=(p, 3)) for p in (4, 5)]
    display = FactorsDisplay(factors).plot()
    panel = display.axes_[0]
    found = [entries(panel, f"term {r}") for r in range(3)]
    for r, (places, values) in enumerate(found):
        assert_array_equal(values, factors[0][:, r])
        assert_array_equal(np.rint(places), np.arange(4))
    assert len({tuple(places) for places, _ in found}) == 3
    marks = {line.get_marker() for line in panel.get_lines() if line.get_label().startswith("term")}
    assert len(marks) == 3
    assert display.axes_[-1].get_legend() is not None


def test_of_many_terms_the_first_are_drawn_and_the_legend_says_so():
    factors = [np.ones((3, 20)), np.ones((2, 20))]
    display = FactorsDisplay(factors, np.arange(20.0)).plot()
    legend = display.axes_[-1].get_legend()
    assert legend.get_title().get_text() == "4 of 20 terms"
    other = FactorsDisplay(factors).plot(terms=[7, 19]).axes_[-1].get_legend()
    assert [text.get_text() for text in other.get_texts()] == ["term 7", "term 19"]


def test_intervals_are_drawn_around_their_entries(fitted):
    factors = fitted[2].factors_
    lower, upper = [f - 0.1 for f in factors], [f + 0.2 for f in factors]
    result = BootstrapResult(factors, lower, upper, [], 0.95)
    display = FactorsDisplay.from_estimator(fitted[2], intervals=result)
    for panel, factor in zip(display.axes_, factors, strict=True):
        (bars,) = panel.collections
        segments = np.array(bars.get_segments())
        assert_array_equal(segments[:, 0, 0], np.arange(len(factor)))
        assert_allclose(segments[:, :, 1], factor + np.array([-0.1, 0.2]))
    with pytest.raises(
        ValueError, match=r"intervals has factors of shapes .*; expected \[\(5, 1\)"
    ):
        FactorsDisplay.from_estimator(fitted[3], intervals=result)


def test_entries_lie_at_their_coordinates():
    modes = [Mode("z", [10.0, 12.0, 14.0], "mm"), Mode("electrode", ["Fz", "Cz"])]
    display = FactorsDisplay([np.ones((3, 1)), np.ones((2, 1))], modes=modes).plot()
    assert_array_equal(entries(display.axes_[0], "term 0")[0], [10, 12, 14])
    assert [panel.get_xlabel() for panel in display.axes_] == ["z (mm)", "electrode"]


def test_the_users_axes_and_options_are_used(fitted):
    _, axes = plt.subplots(1, 2)
    before = plt.get_fignums()
    display = FactorsDisplay.from_estimator(fitted[2], axes=axes, color="red")
    assert plt.get_fignums() == before
    assert list(display.axes_) == list(axes)
    assert axes[0].get_lines()[1].get_color() == "red"
    with pytest.raises(ValueError, match="axes has 2 matplotlib axes; expected 3"):
        FactorsDisplay.from_estimator(fitted[3], axes=axes)


@pytest.mark.parametrize("bad", [[], [1], [-1]])
def test_bad_terms_are_refused(fitted, bad):
    with pytest.raises(ValueError, match=r"terms is .*; expected whole numbers from 0 to 0"):
        FactorsDisplay.from_estimator(fitted[2], terms=bad)


def test_a_model_that_is_not_fitted_is_refused():
    with pytest.raises(ValueError, match="not fitted"):
        FactorsDisplay.from_estimator(FasTRRegressor())
