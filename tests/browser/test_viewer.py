"""What the viewer shows is the coefficient, wherever one goes and however one gets there."""

import numpy as np
import pytest

ALL = (2, 3, 4, "many")


def close(value, expected):
    return value == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("name", ALL)
def test_numbers_shown_are_those_of_the_coefficient(show, name):
    view = show(name)
    coef = view.model.coef_
    assert abs(view.value) == np.abs(coef).max()
    rng = np.random.default_rng(0)
    for index in rng.integers(coef.shape, size=(3, coef.ndim)).tolist():
        view.move_to(index)
        assert view.index == index
        assert close(view.value, coef[tuple(index)])
        text = view.locator("output.entry").inner_text()
        assert str(index) in text
        assert close(float(text.split("=")[1].replace("\u2212", "-")), coef[tuple(index)])


@pytest.mark.parametrize("name", ALL)
def test_sliders_move_one_mode_each(show, name):
    view = show(name)
    coef = view.model.coef_
    view.move_to([0] * coef.ndim)
    for mode in range(coef.ndim):
        slider = view.locator(f"input[type=range][data-mode='{mode}']")
        slider.press("ArrowRight")
        slider.press("ArrowRight")
        expected = [2] * (mode + 1) + [0] * (coef.ndim - mode - 1)
        assert view.index == expected
        assert close(view.value, coef[tuple(expected)])
        slider.press("End")
        assert view.index[mode] == coef.shape[mode] - 1
        slider.evaluate("(s) => { s.value = 2; s.dispatchEvent(new Event('input')); }")


def test_numbers_out_of_range_stop_at_the_edge(show):
    view = show(3)
    view.move_to([99, -5, 2])
    assert view.index == [5, 0, 2]
    box = view.locator("input[type=number][data-mode='0']")
    box.fill("")
    box.dispatch_event("change")
    assert view.index == [0, 0, 2]
    assert box.input_value() == "0"


@pytest.mark.parametrize(
    ("panel", "right", "up", "through"), [(0, 0, 2, 1), (1, 1, 2, 0), (2, 0, 1, 2)]
)
def test_keys_walk_through_three_slices(show, panel, right, up, through):
    view = show(3)
    canvas = view.locator(".slice canvas").nth(panel)
    index = [2, 2, 2]
    view.move_to(index)
    steps = [("ArrowRight", right, 1), ("ArrowUp", up, 1), ("PageUp", through, 1)]
    steps += [("ArrowLeft", right, -1), ("ArrowDown", up, -1), ("PageDown", through, -1)]
    steps += [("ArrowLeft", right, -1), ("ArrowDown", up, -1), ("PageDown", through, -1)]
    for key, mode, step in steps:
        canvas.press(key)
        index[mode] += step
        assert view.index == index
        assert close(view.value, view.model.coef_[tuple(index)])
    canvas.press("Shift+ArrowRight")
    assert view.index[right] == view.model.coef_.shape[right] - 1


def test_keys_in_a_matrix_go_down_its_rows(show):
    view = show(2)
    canvas = view.locator(".slice canvas")
    view.move_to([2, 2])
    canvas.press("ArrowDown")
    canvas.press("ArrowRight")
    canvas.press("PageUp")
    assert view.index == [3, 3]


def click(view, panel, across, down):
    """Click at shares of a slice's width and height."""
    canvas = view.locator(".slice canvas").nth(panel)
    canvas.scroll_into_view_if_needed()
    # Captions, which are drawn too, may move it.
    view.wait_until_drawn()
    box = canvas.bounding_box()
    view.mouse.click(box["x"] + across * box["width"], box["y"] + down * box["height"])


def test_a_click_goes_where_it_points_with_x_to_the_right_and_z_up(show):
    view = show(3)
    view.move_to([0, 3, 0])
    click(view, 0, 4.5 / 6, 0.5 / 4)
    assert view.index == [4, 3, 3]
    click(view, 1, 1.5 / 5, 3.5 / 4)
    assert view.index == [4, 1, 0]
    click(view, 2, 0.5 / 6, 4.5 / 5)
    assert view.index == [0, 0, 0]


def test_an_axis_that_runs_backwards_is_turned_so_that_millimetres_grow_to_the_right(show):
    view = show("named")
    view.move_to([5, 2, 2])
    click(view, 0, 0.5 / 6, 0.5 / 4)
    assert view.index == [5, 2, 3]
    view.locator(".slice canvas").first.press("ArrowRight")
    assert view.index == [4, 2, 3]
    view.wait_until_drawn()
    assert view.locator(".coordinate").all_inner_texts() == ["2 mm", "4 mm", "6 mm"]
    sides = view.locator(".slice").nth(0).locator(".side").all_inner_texts()
    assert sides == ["L", "R", "S", "I"]
    assert view.locator("figcaption strong").all_inner_texts() == [
        "y = 4 mm",
        "x = 2 mm",
        "z = 6 mm",
    ]


def test_labels_stay_in_the_order_of_the_array(show):
    view = show("labelled")
    view.move_to([0, 0])
    assert view.locator(".coordinate").all_inner_texts() == ["Pz", "theta"]
    assert np.array_equal(view.pixels()[..., 3] > 0, view.model.coef_ != 0)
    view.locator(".slice canvas").press("ArrowRight")
    assert view.index == [0, 1]


def test_dragging_follows_the_pointer(show):
    view = show(2)
    view.locator(".slice canvas").scroll_into_view_if_needed()
    box = view.locator(".slice canvas").bounding_box()
    view.mouse.move(box["x"] + 2, box["y"] + 2)
    view.mouse.down()
    view.mouse.move(box["x"] + box["width"] * 0.99, box["y"] + box["height"] * 0.99, steps=4)
    view.mouse.up()
    assert view.index == [6, 8]


def slice_of(coef, panel, index):
    """Return a slice as it is seen: to the right the first mode, the second upwards."""
    through = (1, 0, 2)[panel]
    return np.take(coef, index[through], axis=through).T[::-1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_the_sign_of_the_coefficient_and_zeros_are_clear(show, scheme):
    view = show(3, scheme=scheme)
    for index in ([0, 2, 3], [4, 4, 0]):
        view.move_to(index)
        for panel in range(3):
            values, pixels = slice_of(view.model.coef_, panel, index), view.pixels(panel)
            red, blue = pixels[..., 0], pixels[..., 2]
            assert (red > blue)[values > 0].all()
            assert (red < blue)[values < 0].all()
            assert np.array_equal(pixels[..., 3] == 255, values != 0)


def test_a_matrix_is_drawn_as_it_is_printed(show):
    view = show(2)
    values, pixels = view.model.coef_, view.pixels()
    assert pixels.shape[:2] == values.shape
    assert np.array_equal(pixels[..., 0] > pixels[..., 2], values > 0)


def test_larger_entries_are_darker_on_a_light_page_and_lighter_on_a_dark_one(show):
    for scheme, way in (("light", -1), ("dark", 1)):
        view = show(2, scheme=scheme)
        values, light = view.model.coef_, view.pixels()[..., :3].sum(axis=-1)
        for own in (values > 0, values < 0):
            order = np.argsort(np.abs(values[own]))
            assert (way * np.diff(light[own][order]) >= 0).all()


@pytest.mark.parametrize("share", [10, 50, 100])
def test_the_threshold_hides_what_is_below_a_share_of_the_largest(show, share):
    view = show(2)
    slider = view.locator("input.threshold")
    slider.evaluate(f"(s) => {{ s.value = {share}; s.dispatchEvent(new Event('input')); }}")
    sizes = np.abs(view.model.coef_)
    expected = (sizes >= share / 100 * sizes.max()) & (sizes > 0)
    assert np.array_equal(view.pixels()[..., 3] > 0, expected)
    assert view.locator("output.share").inner_text() == f"{share} %"


def test_one_term_can_be_shown_alone(show):
    view = show(4)
    model = view.model
    view.locator("select.term").select_option("1")
    term = model.scales_[1] * np.einsum("i,j,k,l->ijkl", *(f[:, 1] for f in model.factors_))
    for index in ([0, 0, 0, 0], [2, 3, 4, 5]):
        view.move_to(index)
        assert close(view.value, term[tuple(index)])
        assert "term 1[" in view.locator("output.entry").inner_text()
    view.locator("button.largest").click()
    assert close(abs(view.value), np.abs(term).max())
    view.locator("select.term").select_option("")
    view.locator("button.largest").click()
    assert abs(view.value) == np.abs(model.coef_).max()


def test_of_four_modes_any_three_can_be_shown(show):
    view = show(4)

    def sizes():
        return view.evaluate(
            "[...document.querySelectorAll('.slice canvas')].map((c) => [c.width, c.height])"
        )

    assert sizes() == [[3, 5], [4, 5], [3, 4]]
    view.locator("select.shown").nth(0).select_option("3")
    assert sizes() == [[6, 5], [4, 5], [6, 4]]
    view.locator("select.shown").nth(1).select_option("2")
    shown = [view.locator("select.shown").nth(k).input_value() for k in range(3)]
    assert shown == ["3", "2", "1"]
    index = [2, 0, 2, 3]
    view.move_to(index)
    pixels = view.pixels(0)
    values = view.model.coef_[2, :, 2, :][::-1]
    assert np.array_equal(pixels[..., 0] > pixels[..., 2], values > 0)
    view.locator(".slice canvas").first.press("PageUp")
    assert view.index == [2, 0, 3, 3]


def test_anatomy_lies_behind_the_coefficient_and_can_be_taken_away(show):
    view = show("named")
    view.move_to([0, 0, 3])
    values = np.take(view.model.coef_, 0, axis=1).T[::-1, ::-1]
    pixels = view.pixels(0)
    grey = (pixels[..., 0] == pixels[..., 1]) & (pixels[..., 1] == pixels[..., 2])
    assert np.array_equal(grey, values == 0)
    assert (pixels[..., 3] == 255).all()
    view.locator("input.anatomy").uncheck()
    assert np.array_equal(view.pixels(0)[..., 3] > 0, values != 0)


def test_outside_the_mask_the_coefficient_is_shown_as_zero(show, mask):
    shown = show("masked")
    seen = np.where(mask, shown.model.coef_, 0)
    assert tuple(shown.index) == np.unravel_index(np.abs(seen).argmax(), seen.shape)
    for index in [(0, 0, 0), (3, 2, 1), (5, 4, 3), (2, 0, 3)]:
        shown.move_to(index)
        assert shown.value == pytest.approx(seen[index], rel=1e-12)
    shown.move_to((3, 2, 1))
    painted = shown.pixels(2)[..., 3] > 0
    assert painted.sum() == np.count_nonzero(seen[:, :, 1])


def test_slices_of_images_are_true_to_scale(show):
    view = show("named")
    boxes = [view.locator(".frame").nth(k).bounding_box() for k in range(3)]
    extents = [(12, 16), (10, 16), (12, 10)]
    scales = [
        (box["width"] / wide, box["height"] / high)
        for box, (wide, high) in zip(boxes, extents, strict=True)
    ]
    assert np.allclose(scales, scales[0][0], rtol=0.03)


def test_a_million_entries_can_be_walked_through(show):
    view = show("large")
    canvas = view.locator(".slice canvas").first
    begun = view.index
    for _ in range(5):
        canvas.press("ArrowRight")
    assert view.index != begun
    assert close(view.value, view.model.coef_[tuple(view.index)])
