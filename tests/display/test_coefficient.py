import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from pyfastr import FasTRRegressor, TensorScaler
from pyfastr.display import CoefficientDisplay
from pyfastr.display.modes import Mode


def shown(image):
    return np.ma.filled(image.get_array(), 0)


def test_a_matrix_is_drawn_as_it_is_written(fitted):
    display = CoefficientDisplay.from_estimator(fitted[2])
    (image,) = display.images_
    assert_array_equal(shown(image), fitted[2].coef_)
    assert_array_equal(image.get_array().mask, fitted[2].coef_ == 0)
    panel = display.axes_[0]
    assert (panel.get_ylabel(), panel.get_xlabel()) == ("mode 0", "mode 1")
    # The first entry of the first mode is at the top.
    assert panel.get_ylim() == (5.5, -0.5)
    assert display.figure_ is panel.figure
    assert display.axes_[0] is display.ax_


def test_zero_is_in_the_middle_of_the_colours(fitted):
    for n_modes in (2, 3):
        for image in CoefficientDisplay.from_estimator(fitted[n_modes]).images_:
            low, high = image.get_clim()
            assert -low == high == np.abs(fitted[n_modes].coef_).max()


def test_zeros_show_the_ground_of_the_axes(fitted):
    (image,) = CoefficientDisplay.from_estimator(fitted[2]).images_
    colours = image.to_rgba(image.get_array())
    assert_array_equal(colours[..., 3] == 0, fitted[2].coef_ == 0)


@pytest.mark.parametrize(("n_modes", "n_panels"), [(2, 1), (3, 3), (4, 6)])
def test_all_pairs_of_modes_are_cut_at_the_largest_entry(fitted, n_modes, n_panels):
    coef = fitted[n_modes].coef_
    display = CoefficientDisplay.from_estimator(fitted[n_modes])
    assert len(display.axes_) == len(display.images_) == n_panels
    largest = np.unravel_index(np.abs(coef).argmax(), coef.shape)
    for own, image in zip(display.slices_, display.images_, strict=True):
        index = [slice(None) if m in own.pair else i for m, i in enumerate(largest)]
        assert_array_equal(shown(image), coef[tuple(index)])


def test_slices_may_be_taken_elsewhere(fitted):
    coef = fitted[4].coef_
    display = CoefficientDisplay.from_estimator(fitted[4], at=(1, 2, 0, 3), pairs=[(3, 0)])
    (image,) = display.images_
    assert_array_equal(shown(image), coef[:, 2, 0, :])
    assert display.axes_[0].get_title() == "mode 1 = 2, mode 2 = 0"
    lines = display.axes_[0].get_lines()
    assert (lines[0].get_xdata()[0], lines[1].get_ydata()[0]) == (3, 1)


def test_a_montage_has_the_slices_that_are_not_zero(fitted):
    coef = fitted[3].coef_
    display = CoefficientDisplay.from_estimator(fitted[3], mode=1)
    alive = np.flatnonzero(coef.any(axis=(0, 2)))
    assert 0 < len(alive) < coef.shape[1]
    assert len(display.images_) == len(alive)
    for image, index in zip(display.images_, alive, strict=True):
        assert_array_equal(shown(image), coef[:, index, :])
    few = CoefficientDisplay.from_estimator(fitted[3], mode=1, n_slices=2)
    assert [own.at[1] for own in few.slices_] == [alive[0], alive[-1]]


def test_a_montage_of_four_modes(fitted):
    display = CoefficientDisplay.from_estimator(fitted[4], mode=0, pairs=[(1, 3)], at=(0, 0, 1, 0))
    for own, image in zip(display.slices_, display.images_, strict=True):
        assert_array_equal(shown(image), fitted[4].coef_[own.at[0], :, 1, :])


def test_vectors_are_stems(fitted):
    display = CoefficientDisplay.from_estimator(fitted[1])
    _, on, off = display.ax_.get_lines()
    drawn = np.zeros(9)
    drawn[on.get_xdata().astype(int)] = on.get_ydata()
    assert_array_equal(drawn, fitted[1].coef_)
    assert_array_equal(off.get_xdata(), np.flatnonzero(fitted[1].coef_ == 0))
    assert off.get_markerfacecolor() == "none"
    assert display.images_ == []


def millimetres(shape):
    # The first axis runs from right to left, as in many images.
    starts, steps = (10.0, -20.0, 0.0), (-2.0, 3.0, 4.0)
    parts = zip("xyz", shape, starts, steps, strict=True)
    return [Mode(n, first + step * np.arange(p), "mm") for n, p, first, step in parts]


def test_images_are_drawn_as_maps(fitted):
    coef = fitted[3].coef_
    display = CoefficientDisplay(coef, modes=millimetres(coef.shape)).plot(at=(1, 2, 3))
    panel, image = display.axes_[0], display.images_[0]
    assert panel.get_title() == "z = 12 mm"
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("x (mm)", "y (mm)")
    assert_array_equal(shown(image), coef[:, :, 3].T)
    # Each voxel is around its own millimetres, left to right and upwards.
    assert_allclose(image.get_extent(), (11, 1, -21.5, -3.5))
    assert (panel.get_xlim(), panel.get_ylim()) == ((1, 11), (-21.5, -3.5))
    assert panel.get_aspect() == 1
    cursor = [line.get_xdata()[0] for line in panel.get_lines()[:1]]
    assert cursor == [8.0]


def test_the_colour_at_a_millimetre_is_that_of_its_voxel(fitted):
    coef = np.zeros((5, 6, 4))
    coef[4, 0, 2] = -3.0
    display = CoefficientDisplay(coef, modes=millimetres(coef.shape)).plot(colorbar=False)
    display.figure_.canvas.draw()
    panel, image = display.axes_[0], display.images_[0]
    # Voxel 4 along x is at 2 mm, voxel 0 along y at -20 mm.
    row, column = np.argwhere(~np.ma.getmaskarray(image.get_array()))[0]
    left, right, bottom, top = image.get_extent()
    assert_allclose(left + (column + 0.5) * (right - left) / 5, 2.0)
    assert_allclose(bottom + (row + 0.5) * (top - bottom) / 6, -20.0)
    assert panel.get_title() == "z = 8 mm"


def test_labels_and_times_stay_a_matrix(fitted):
    modes = [Mode("channel", list("abcdef")), Mode("time", np.arange(5) * 0.1, "s")]
    display = CoefficientDisplay(fitted[2].coef_, modes=modes).plot()
    assert_array_equal(shown(display.images_[0]), fitted[2].coef_)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("time (s)", "channel")
    assert_allclose(display.ax_.get_xlim(), (-0.05, 0.45))


@pytest.mark.filterwarnings("ignore:Getting the array from a PolyQuadMesh")
def test_hatching_covers_what_is_negative(fitted):
    for modes in (None, millimetres(fitted[3].coef_.shape)):
        display = CoefficientDisplay(fitted[3].coef_, modes=modes).plot(hatch=True)
        for panel, image in zip(display.axes_, display.images_, strict=True):
            hatched, values = panel.collections[0].get_array(), shown(image)
            assert_array_equal(np.ma.compressed(hatched), values[values < 0])
            assert panel.collections[0].get_hatch() == "////"


def test_a_zero_coefficient_is_drawn_too():
    display = CoefficientDisplay(np.zeros((3, 4))).plot()
    assert display.images_[0].get_array().mask.all()
    assert len(CoefficientDisplay(np.zeros((2, 3, 4))).plot(mode=0).images_) == 1


def test_the_users_axes_and_options_are_used(fitted):
    figure, axes = plt.subplots(1, 3)
    before = plt.get_fignums()
    options = {"colorbar": False, "cmap": "gray"}
    display = CoefficientDisplay.from_estimator(fitted[3], axes=axes, **options)
    assert plt.get_fignums() == before
    assert list(display.axes_) == list(axes)
    assert display.figure_ is figure
    assert len(figure.axes) == 3
    assert display.images_[0].get_cmap().name == "gray"
    with pytest.raises(ValueError, match="axes has 3 matplotlib axes; expected 1"):
        CoefficientDisplay.from_estimator(fitted[2], axes=axes)


def test_pipelines_show_the_coefficient_of_their_last_step(draw):
    X, y = draw((4, 3))
    pipeline = make_pipeline(TensorScaler(), FasTRRegressor(n_init=2, random_state=0)).fit(X, y)
    display = CoefficientDisplay.from_estimator(pipeline)
    assert_array_equal(display.coef, pipeline[-1].coef_)


def test_what_cannot_be_drawn_is_told(fitted):
    with pytest.raises(NotFittedError):
        CoefficientDisplay.from_estimator(FasTRRegressor())
    with pytest.raises(TypeError, match="estimator is the class FasTRRegressor; expected a fitted"):
        CoefficientDisplay.from_estimator(FasTRRegressor)
    with pytest.raises(AttributeError, match="This TensorScaler has no coef_"):
        CoefficientDisplay.from_estimator(TensorScaler().fit(np.ones((3, 2, 2))))
    with pytest.raises(ValueError, match="has 7 modes and so 21 pairs"):
        CoefficientDisplay(np.ones((2,) * 7)).plot()
    assert len(CoefficientDisplay(np.ones((2,) * 7)).plot(pairs=[(0, 6)]).images_) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": (0, 0)}, r"at is \(0, 0\); expected 3 whole numbers"),
        ({"at": (0, 0, 9)}, r"at is \(0, 0, 9\); expected"),
        ({"at": (0, 0.5, 1)}, "at is .*; expected"),
        ({"pairs": []}, r"pairs is \[\]; expected"),
        ({"pairs": [(1, 1)]}, r"pairs is \[\(1, 1\)\]; expected"),
        ({"pairs": [(0, 3)]}, "numbers from 0 to 2"),
        ({"mode": 3}, "mode is 3; expected a mode from 0 to 2"),
        ({"mode": 0, "pairs": [(0, 1)]}, r"with mode=0; expected one pair of other modes"),
    ],
)
def test_bad_cuts_are_refused(fitted, options, message):
    with pytest.raises(ValueError, match=message):
        CoefficientDisplay.from_estimator(fitted[3], **options)
    with pytest.raises(ValueError, match="has 4 modes; expected also pairs"):
        CoefficientDisplay.from_estimator(fitted[4], mode=0)
