"""Stability, importance, permutations and paths."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr import FasTRRegressor, fastr_path
from pyfastr.display import (
    ImportanceDisplay,
    PathDisplay,
    PermutationDisplay,
    StabilityDisplay,
)
from pyfastr.display.modes import Mode
from pyfastr.inference import (
    PermutationResult,
    StabilityResult,
    bootstrap_factors,
    slice_importance,
    stability_selection,
)

FREQUENCIES = [np.array([0.0, 0.6, 0.9]), np.array([0.3, 1.0])]


def heights(panel):
    return [bar.get_height() for bar in panel.patches]


def is_filled(panel):
    return [bar.get_facecolor()[3] > 0 for bar in panel.patches]


def test_bars_are_frequencies_filled_from_the_cutoff_on():
    result = StabilityResult(FREQUENCIES, 10, 0.5)
    for cutoff in (0.6, 0.7):
        display = StabilityDisplay.from_result(result, cutoff=cutoff)
        selected = result.selected(cutoff)
        for m, panel in enumerate(display.axes_):
            assert_array_equal(heights(panel), FREQUENCIES[m])
            assert_array_equal(is_filled(panel), selected[m])
            assert_array_equal(panel.get_lines()[0].get_ydata(), [cutoff] * 2)
    assert not StabilityDisplay(FREQUENCIES, cutoff=None).plot().axes_[0].get_lines()


def test_bars_stand_at_coordinates():
    modes = [Mode("z", [4.0, 2.0, 0.0], "mm"), Mode("band", ["alpha", "beta"])]
    panels = StabilityDisplay(FREQUENCIES, modes=modes).plot().axes_
    centres = [bar.get_x() + bar.get_width() / 2 for bar in panels[0].patches]
    assert_allclose(centres, [4, 2, 0])
    assert panels[0].patches[0].get_width() == pytest.approx(1.6)
    assert panels[1].xaxis.get_major_formatter()(1) == "beta"


def test_importances_have_their_spread():
    rng = np.random.default_rng(0)
    repeats = [rng.normal(0.1, 0.1, size=(p, 8)) for p in (4, 3)]
    result = SimpleNamespace(
        importances=repeats,
        importances_mean=[own.mean(axis=1) for own in repeats],
        importances_std=[own.std(axis=1) for own in repeats],
    )
    display = ImportanceDisplay.from_result(result)
    for panel, own in zip(display.axes_, repeats, strict=True):
        mean, std = own.mean(axis=1), own.std(axis=1)
        assert_allclose(heights(panel), mean)
        assert_array_equal(is_filled(panel), mean > std)
        ends = np.array([s[:, 1] for s in panel.collections[0].get_segments()])
        assert_allclose(ends, np.stack([mean - std, mean + std], axis=1))


def test_permuted_scores_and_the_score():
    result = PermutationResult(0.5, np.array([0.1, 0.2, 0.3, 0.6]))
    display = PermutationDisplay.from_result(result, bins=[0, 0.25, 1])
    assert heights(display.ax_) == [2, 2]
    assert_array_equal(display.ax_.get_lines()[0].get_xdata(), [0.5, 0.5])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["permuted", "observed, p = 0.4"]


@pytest.fixture(scope="module")
def path(draw):
    X, y = draw((9, 4), noise=1.0)
    return fastr_path(X, y, thresholds=[0.3, 0.0, 0.1], n_init=2, random_state=0)


def test_every_entry_has_a_line_and_the_largest_a_name(path):
    display = PathDisplay.from_result(path)
    for panel, factor in zip(display.axes_, path.factors, strict=True):
        lines = panel.get_lines()
        for line, entry in zip(lines, factor[[1, 2, 0], :, 0].T, strict=True):
            assert_array_equal(line.get_ydata(), entry)
        named = [i for i, line in enumerate(lines) if not line.get_label().startswith("_")]
        largest = np.argsort(-np.abs(factor[1, :, 0]))[:6]
        assert named == sorted(largest)
        assert [lines[i].get_label() for i in named] == [str(i) for i in named]
    # Counted entries must not turn thresholds into whole numbers.
    display.figure_.canvas.draw()
    assert len(display.axes_[0].get_xticklabels()) > 2


def test_thresholds_that_did_not_converge_are_crossed():
    factors = [np.ones((3, 2, 1))]
    panel = PathDisplay([0.0, 0.2, 0.1], factors, [True, False, True]).plot().ax_
    (crosses,) = panel.collections
    assert_array_equal(crosses.get_offsets()[:, 0], [0.2])


def test_results_know_what_x_calls_its_modes(draw):
    xarray = pytest.importorskip("xarray")
    X, y = draw((4, 3), noise=1.0)
    coords = {"time": [0.0, 0.1, 0.2, 0.3], "channel": ["Fz", "Cz", "Oz"]}
    X = xarray.DataArray(X, dims=("trial", "time", "channel"), coords=coords)
    model = FasTRRegressor(0.1, n_init=2, random_state=0)
    seed = {"random_state": 0}
    results = [
        bootstrap_factors(model, X, y, n_bootstrap=2, **seed),
        stability_selection(model, X, y, n_subsamples=2, **seed),
        slice_importance(model.fit(X, y), X, y, n_repeats=2, **seed),
        fastr_path(X, y, thresholds=[0.0, 0.1], n_init=2, **seed),
    ]
    for result in results:
        panels = result.plot()
        names = [panel.get_xlabel() for panel in panels]
        if names[0] == "threshold":
            names = [panel.get_title() for panel in panels]
        assert names == ["time", "channel"]
    assert results[0].plot()[1].xaxis.get_major_formatter()(2) == "Oz"


@pytest.mark.parametrize("n_axes", [1, 3])
def test_the_users_axes_are_used(path, n_axes):
    _, axes = plt.subplots(1, n_axes, squeeze=False)
    before = plt.get_fignums()
    panel = axes[0, 0]
    permuted = PermutationResult(0.5, np.array([0.1, 0.2]))
    assert PermutationDisplay.from_result(permuted, ax=panel).ax_ is panel
    with pytest.raises(ValueError, match=f"axes has {n_axes} matplotlib axes; expected 2"):
        PathDisplay.from_result(path, axes=axes)
    with pytest.raises(ValueError, match=f"axes has {n_axes} matplotlib axes; expected 2"):
        StabilityDisplay(FREQUENCIES).plot(axes)
    assert plt.get_fignums() == before
