import subprocess
import sys
from itertools import combinations
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib import colors
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from pyfastr.display import style

# What people without the red or the green cones see (Machado and others, 2009).
BLINDNESS = {
    "red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


def contrast(first, second):
    low, high = sorted([style.luminance(first), style.luminance(second)])
    return (high + 0.05) / (low + 0.05)


def seen_as(colour, blindness):
    light = np.array(colors.to_rgb(colour)) ** 2.2
    return np.clip(np.array(BLINDNESS[blindness]) @ light, 0, 1) ** (1 / 2.2)


def panels():
    light = Figure().subplots()
    with plt.style.context("dark_background"):
        return {"light": light, "dark": Figure().subplots()}


def test_the_ground_is_told_by_what_is_written_on_it():
    assert {name: style.is_dark(panel) for name, panel in panels().items()} == {
        "light": False,
        "dark": True,
    }


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_the_first_hues_stand_out_from_the_ground_and_from_each_other(ground):
    panel = panels()[ground]
    hues = [style.hue(panel, i) for i in range(4)]
    assert min(contrast(hue, panel.get_facecolor()) for hue in hues) > 2.8
    for blindness in BLINDNESS:
        seen = [seen_as(hue, blindness) for hue in hues]
        assert min(np.abs(a - b).max() for a, b in combinations(seen, 2)) > 0.15


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_larger_values_stand_out_more_and_signs_stay_apart(ground):
    panel = panels()[ground]
    colour_map, back = style.diverging(panel), panel.get_facecolor()
    for sign in (-1, 1):
        steps = [contrast(colour_map(0.5 + sign * size), back) for size in np.linspace(0.01, 0.5)]
        assert (np.diff(steps) >= 0).all()
        # Next to 0 is not 0.
        assert steps[0] > 1.2
    for size in (0.1, 0.25, 0.45):
        for blindness in BLINDNESS:
            below, above = (seen_as(colour_map(0.5 + s * size), blindness) for s in (-1, 1))
            assert np.abs(below - above).max() > 0.2


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_colours_of_ordered_values_grow_lighter(ground):
    panel = panels()[ground]
    lightness = [style.luminance(colour) for colour in style.ordered(panel, 6)]
    assert (np.diff(lightness) > 0).all()
    assert min(contrast(c, panel.get_facecolor()) for c in style.ordered(panel, 6)) > 1.8


def test_what_prints_without_colour_differs_too():
    assert len({style.marker(i) for i in range(8)}) == 8
    assert len({str(style.line(i)) for i in range(5)}) == 5


@pytest.mark.parametrize("dark", [False, True])
def test_the_context_of_reports(dark):
    with style.context(dark=dark):
        figure = Figure()
        panel = figure.subplots()
    assert figure.get_facecolor()[3] == panel.get_facecolor()[3] == 0
    assert style.is_dark(panel) is dark
    assert contrast(style.ink(panel), "black" if dark else "white") > 12
    assert plt.rcParams["text.color"] == "black"


def picture():
    figure = Figure()
    panel = figure.subplots()
    panel.plot([1, 2, 3], marker="o", label="a line")
    panel.scatter([0, 1], [1, 2])
    panel.legend()
    return figure


def test_svg_is_the_same_each_time_and_its_text_stays_text():
    svg = style.render_svg(picture())
    assert svg == style.render_svg(picture())
    root = ET.fromstring(svg)
    assert "a line" in [text for text in root.itertext() if text.strip()]
    assert "<date" not in svg.lower()


def test_two_drawings_of_a_page_share_no_ids():
    first, second = (
        {e.get("id") for e in ET.fromstring(svg).iter() if e.get("id")}
        for svg in (style.render_svg(picture(), salt) for salt in ("a", "b"))
    )
    assert first
    assert not first & second


def run(script):
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


def test_importing_displays_loads_no_matplotlib():
    run("""
import sys
import pyfastr.display as display
for name in display.__all__:
    if name.endswith("Display"):
        assert getattr(display, name).__doc__
assert "CoefficientDisplay" in dir(display)
assert "matplotlib" not in sys.modules
""")


def test_without_matplotlib_the_error_names_the_extra():
    run("""
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
from pyfastr.display import StabilityDisplay
try:
    StabilityDisplay([[0.5]]).plot()
except ImportError as error:
    assert "needs matplotlib" in str(error)
    assert "pip install 'pyfastr[plot]'" in str(error)
else:
    raise AssertionError
""")


def test_unknown_names_are_refused():
    from pyfastr import display

    with pytest.raises(AttributeError, match="has no attribute 'PieDisplay'"):
        _ = display.PieDisplay
