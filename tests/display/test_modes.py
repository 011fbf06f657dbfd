from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from pyfastr import FasTRRegressor, SliceSelector, TensorScaler
from pyfastr.display import model_report
from pyfastr.display.modes import Mode, modes_of


def test_plain_arrays_have_numbered_modes(draw, fitted):
    for n_modes, model in fitted.items():
        assert [mode.label for mode in modes_of(model)] == [f"mode {m}" for m in range(n_modes)]
    X, y = draw((4, 3))
    pipeline = make_pipeline(TensorScaler(), FasTRRegressor(n_init=2)).fit(X, y)
    assert len(modes_of(pipeline)) == 2
    with pytest.raises(NotFittedError):
        modes_of(FasTRRegressor())


def test_slices_that_are_kept_keep_their_coordinates_or_numbers(draw):
    xarray = pytest.importorskip("xarray")
    X, y = draw((6, 5))
    names = np.array(["Fz", "Cz", "Pz", "Oz", "C3", "C4"])
    labelled = xarray.DataArray(X, dims=("trial", "channel", "time"), coords={"channel": names})
    selector = SliceSelector(FasTRRegressor(0.3, n_init=2, random_state=0))
    pipeline = make_pipeline(selector, FasTRRegressor(n_init=2)).fit(labelled, y)
    kept, numbers = pipeline[0].get_support(indices=True)
    channel, time = modes_of(pipeline)
    assert 0 < len(kept) < 6
    assert_array_equal(channel.ticks, names[kept])
    assert_array_equal(time.ticks, numbers)
    assert "Coefficient" in model_report(pipeline).html


def test_names_of_xarray_are_kept(draw):
    xarray = pytest.importorskip("xarray")
    X, y = draw((4, 3))
    times = [0.0, 0.5, 1.0]
    labelled = xarray.DataArray(X, dims=("trial", "channel", "time"), coords={"time": times})
    channel, time = modes_of(FasTRRegressor(n_init=2).fit(labelled, y))
    assert (channel.name, channel.ticks) == ("channel", None)
    assert time.name == "time"
    assert_array_equal(time.positions(3), times)


def test_units_are_taken_out_of_names():
    model = SimpleNamespace(
        mode_names_in_=("x (mm)", "f(x)"), mode_coords_in_=[np.array([1.0, 3.0]), None]
    )
    x, other = modes_of(model)
    assert (x.name, x.unit, x.label, x.value(1)) == ("x", "mm", "x (mm)", "3 mm")
    # A function of something is no unit of it.
    assert other.label in ("f(x)", "f (x)")


def test_the_first_step_with_names_names_the_modes_of_a_pipeline():
    images = SimpleNamespace(mode_names_=("x (mm)",), mode_coords_=[np.array([1.0, 3.0])])
    pipeline = SimpleNamespace(steps=[("images", images), ("model", SimpleNamespace())])
    assert modes_of(pipeline)[0].label == "x (mm)"


@pytest.mark.parametrize(
    ("ticks", "even"),
    [
        ([1.0, 2.0, 3.0], True),
        ([90, 87, 84], True),
        ([1.0, 2.0, 4.0], False),
        ([1.0, 1.0, 1.0], False),
        ([1.0], False),
        (["a", "b", "c"], False),
        (np.array(["2026-01-01", "2026-01-02"], "datetime64[D]"), False),
        ([1.0, np.nan, 3.0], False),
        (None, False),
    ],
)
def test_only_even_coordinates_are_an_axis(ticks, even):
    mode = Mode("m", ticks)
    assert mode.is_even is even
    size = 3 if ticks is None else len(ticks)
    assert_array_equal(mode.positions(size), ticks if even else np.arange(size))


def test_labels_are_written_beside_their_entries():
    panel = Figure().subplots()
    panel.set_xlim(-0.5, 3.5)
    Mode("channel", ["Fz", "Cz", "Pz", "Oz"]).label_axis(panel.xaxis)
    text = panel.xaxis.get_major_formatter()
    assert [text(place) for place in (0, 3, 4, -1, 0.5)] == ["Fz", "Oz", "", "", ""]
    assert panel.get_xlabel() == "channel"


def test_coordinates_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"ticks of mode 'z' has 2 coordinates; expected .* the 3"):
        Mode("z", [1.0, 2.0]).positions(3)
