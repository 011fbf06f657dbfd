"""One place for how pictures look: colours, marks, and the setting of figures in reports."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pyfastr.estimators.extras import require

# Hues that stay apart for colour-blind readers, those of Okabe and Ito on light ground and brighter
# ones on dark; the first four are strong enough for thin lines.
ON_LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#6a3d9a", "#8c510a")
ON_DARK = ("#56b4e9", "#ff8c42", "#2fc79c", "#c44fb3", "#d6fff4", "#f0e442", "#4f74d9", "#7d8ea3")
# Ten colours for white paper, where marks tell apart what hues do not.
TEN = (
    *("#000000", "#e69f00", "#56b4e9", "#009e73", "#0072b2"),
    *("#d55e00", "#cc79a7", "#767676", "#6a3d9a", "#8c510a"),
)
MARKERS = "osD^vP*Xhd"
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))

# From the lowest value to just below 0, and from just above 0 to the highest. What is drawn of a
# value differs the more from the ground the larger it is.
_DIVERGING_ON_LIGHT = (("#08306b", "#3584bd", "#bfd8ec"), ("#fdcb9b", "#e0590f", "#7f2704"))
_DIVERGING_ON_DARK = (("#c4e8ff", "#2f8fc9", "#16405f"), ("#5a2a0a", "#dd6a1c", "#ffdfb8"))

_INK_ON_LIGHT, _INK_ON_DARK = "#1f2328", "#e6e6e6"


def is_dark(panel: Any) -> bool:
    """Tell whether axes lie on dark ground: whether what is written on them is light.

    Parameters
    ----------
    panel : matplotlib axes

    Returns
    -------
    bool
    """
    return luminance(ink(panel)) > 0.5


def luminance(colour: Any) -> float:
    """Return the relative luminance of a colour, from 0 (black) to 1 (white), as WCAG defines it.

    Parameters
    ----------
    colour : colour of matplotlib

    Returns
    -------
    float

    Examples
    --------
    >>> from pyfastr.display.style import luminance
    >>> round(luminance("white"), 3), round(luminance("#d55e00"), 3)
    (1.0, 0.222)
    """
    rgb = np.array(_colours().to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def ink(panel: Any) -> Any:
    """Return the colour of what is written beside axes."""
    return panel.xaxis.label.get_color()


def faint(panel: Any, share: float = 0.35) -> Any:
    """Return the colour of what is to stay behind: the ink, so transparent."""
    return _colours().to_rgba(ink(panel), share)


def hue(panel: Any, index: int) -> str:
    """Return one of the hues that stand out on the axes' ground."""
    hues = ON_DARK if is_dark(panel) else ON_LIGHT
    return hues[index % len(hues)]


def marker(index: int) -> str:
    """Return one of the marks that print tells apart."""
    return MARKERS[index % len(MARKERS)]


def line(index: int) -> Any:
    """Return one of the styles of lines that print tells apart."""
    return LINES[index % len(LINES)]


def ordered(panel: Any, n_colours: int) -> list[Any]:
    """Return colours for values in order; neighbours are alike, and lightness grows."""
    low, high = (0.3, 1.0) if is_dark(panel) else (0.0, 0.75)
    maps = require("matplotlib", "plot", "Drawing").colormaps
    return [maps["viridis"](place) for place in np.linspace(low, high, n_colours)]


def whole_numbers(axis: Any) -> None:
    """Write whole numbers beside an axis along which things are counted."""
    ticker = require("matplotlib.ticker", "plot", "Drawing")
    axis.set_major_locator(ticker.MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))


def diverging(panel: Any) -> Any:
    """Return a colour map of values around 0, blue below and orange above.

    Values next to 0 keep a tint, so that they differ from zeros, which are left unpainted.
    """
    below, above = _DIVERGING_ON_DARK if is_dark(panel) else _DIVERGING_ON_LIGHT
    places = np.concatenate([np.linspace(0, 0.5, len(below)), np.linspace(0.5, 1, len(above))])
    stops = list(zip(places.tolist(), (*below, *above), strict=True))
    return _colours().LinearSegmentedColormap.from_list("fastr", stops, N=256)


@contextmanager
def context(dark: bool = False) -> Iterator[None]:
    """Set figures as reports need them: transparent, with selectable text, light or dark ink.

    Parameters
    ----------
    dark : bool, default=False
        Whether the ground that the figure will lie on is dark.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pyfastr.display import style
    >>> with style.context(dark=True):
    ...     panel = Figure().subplots()
    >>> style.is_dark(panel)
    True
    """
    colour = _INK_ON_DARK if dark else _INK_ON_LIGHT
    names = (
        *("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor"),
        *("xtick.color", "ytick.color", "legend.labelcolor", "lines.color"),
    )
    grounds = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
    settings: dict[str, Any] = {
        **dict.fromkeys(names, colour),
        **dict.fromkeys(grounds, "none"),
        "font.family": "sans-serif",
        "font.size": 10.0,
        "axes.titlesize": "medium",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "svg.fonttype": "none",
    }
    with require("matplotlib", "plot", "Drawing").rc_context(settings):
        yield


def render_svg(figure: Any, salt: str = "pyfastr") -> str:
    """Write a figure as an SVG element to put in a page; the same figure gives the same text.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    salt : str, default="pyfastr"
        Changes the ids of marks and clippings, which are to differ between figures of a page.

    Returns
    -------
    str
        From ``<svg`` to ``</svg>``.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pyfastr.display.style import render_svg
    >>> figure = Figure()
    >>> _ = figure.subplots().plot([1, 2])
    >>> render_svg(figure)[:4], render_svg(figure) == render_svg(figure)
    ('<svg', True)
    """
    text = io.StringIO()
    settings = {"svg.hashsalt": salt, "svg.fonttype": "none"}
    with require("matplotlib", "plot", "Drawing").rc_context(settings):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    # Ids of groups serve nobody, and would be the same in all figures of a page.
    return re.sub(r'<g id="[\w.]+_\d+"', "<g", svg[svg.index("<svg") :]).strip()


def _colours() -> Any:
    return require("matplotlib.colors", "plot", "Drawing")
