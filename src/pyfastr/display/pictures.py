"""Figures of a model's report, each drawn for light and for dark pages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyfastr.display import style
from pyfastr.display.templating import safe
from pyfastr.estimators.extras import require

# Inches of a panel.
SIZE = (3.8, 3.1)


@dataclass(frozen=True)
class Picture:
    """A drawing for a page.

    Attributes
    ----------
    alt : str
        What it shows, for those who cannot see it.
    light, dark : sequence of str
        A drawing in SVG for each panel, for either ground.
    """

    alt: str
    light: Sequence[Any]
    dark: Sequence[Any]


def draw(
    name: str,
    alt: str,
    display: Callable[[list[Any]], Any],
    n_panels: int = 1,
    size: tuple[float, float] = SIZE,
) -> Picture:
    """Draw on both grounds, every panel as a drawing of its own, so that narrow pages stack them.

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
    figures = require("matplotlib.figure", "report", "Drawing the figures of a report")
    grounds = []
    for dark in (False, True):
        with style.context(dark=dark):
            # Figures that pyplot does not know are not shown a second time in notebooks.
            own = [figures.Figure(figsize=size, layout="constrained") for _ in range(n_panels)]
            panels = [figure.subplots() for figure in own]
            display(panels)
            _write_powers_plainly(panels)
            salts = [f"{name}-{'dark' if dark else 'light'}-{i}" for i in range(n_panels)]
            pairs = zip(own, salts, strict=True)
            grounds.append([safe(style.render_svg(figure, salt)) for figure, salt in pairs])
    return Picture(alt, *grounds)


def _write_powers_plainly(panels: list[Any]) -> None:
    """Label logarithmic axes with plain numbers: to set formulas takes longer than all else."""
    ticker = require("matplotlib.ticker", "report", "Drawing the figures of a report")
    for axis in (axis for panel in panels for axis in (panel.xaxis, panel.yaxis)):
        if axis.get_scale() == "log":
            axis.set_major_formatter(ticker.LogFormatter())
            axis.set_minor_formatter(ticker.LogFormatter(labelOnlyBase=False))
