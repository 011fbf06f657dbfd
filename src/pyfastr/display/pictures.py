"""Figures of a model's report: drawn once, in colours that follow the page from light to dark."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pyfastr.display import style
from pyfastr.display.templating import safe
from pyfastr.estimators.extras import require

# Inches of a panel.
SIZE = (3.8, 3.1)
# Lines with colours in order, such as one for each ridge, are at most so many.
MOST_ORDERED = 24


@dataclass(frozen=True)
class Picture:
    """A drawing for a page.

    Attributes
    ----------
    alt : str
        What it shows, for those who cannot see it.
    panels : sequence of str
        SVG of each panel.
    """

    alt: str
    panels: Sequence[Any]


def draw(
    name: str,
    alt: str,
    display: Callable[[list[Any]], Any],
    n_panels: int = 1,
    size: tuple[float, float] = SIZE,
) -> Picture:
    """Draw every panel as a drawing of its own, so that narrow pages stack them.

    Parameters
    ----------
    name : str
        Keeps the names inside the drawing apart from those of others on the page.
    alt : str
    display : callable
        Draws on a list of axes.
    n_panels : int, default=1
    size : (float, float)
        Inches of a panel.

    Returns
    -------
    Picture
    """
    with style.context():
        panels = [_new_panel(size) for _ in range(n_panels)]
        display(panels)
        _write_powers_plainly(panels)
        svgs = [style.render_svg(panel.figure, f"{name}-{i}") for i, panel in enumerate(panels)]
    return Picture(alt, [safe(_for_both_grounds(svg)) for svg in svgs])


def _new_panel(size: tuple[float, float] = SIZE) -> Any:
    """Return axes on a figure that pyplot does not know: notebooks would show it once more."""
    figures = require("matplotlib.figure", "report", "Drawing the figures of a report")
    return figures.Figure(figsize=size, layout="constrained").subplots()


def _for_both_grounds(svg: str) -> str:
    """Let every colour for light ground be the matching one where the page is dark."""
    on_dark = _dark_colours()

    def pair(found: re.Match[str]) -> str:
        kind, light = found.groups()
        return f"{kind}: light-dark({light}, {on_dark.get(light, light)})"

    return re.sub(r"\b(fill|stroke): (#[0-9a-f]{6})", pair, svg)


@cache
def _dark_colours() -> dict[str, str]:
    """Return the colours for dark ground by those for light ground."""
    light, dark = (_colours_on(ground) for ground in (False, True))
    return dict(zip(light, dark, strict=True))


def _colours_on(dark: bool) -> list[str]:
    """Return all colours of a ground in a fixed order: ink, hues, and those of ordered lines."""
    to_hex = require("matplotlib.colors", "report", "Drawing the figures of a report").to_hex
    with style.context(dark=dark):
        panel = _new_panel()
    hues = [style.hue(panel, i) for i in range(len(style.ON_LIGHT))]
    ordered = [c for n in range(2, MOST_ORDERED + 1) for c in style.ordered(panel, n)]
    return [to_hex(colour) for colour in (style.ink(panel), *hues, *ordered)]


def _write_powers_plainly(panels: list[Any]) -> None:
    """Label logarithmic axes with plain numbers: to set formulas takes longer than all else."""
    ticker = require("matplotlib.ticker", "report", "Drawing the figures of a report")
    for axis in (axis for panel in panels for axis in (panel.xaxis, panel.yaxis)):
        if axis.get_scale() == "log":
            axis.set_major_formatter(ticker.LogFormatter())
            axis.set_minor_formatter(ticker.LogFormatter(labelOnlyBase=False))
