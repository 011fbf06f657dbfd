"""Axes to draw on; matplotlib is an extra, and loaded when something is drawn."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display.modes import Mode
from pyfastr.estimators.extras import require

Axes = NDArray[Any]

# Inches of one panel and around it, and how many stand in a row.
WIDTH, HEIGHT, PAD, IN_A_ROW = 4.0, 3.5, 0.1, 4


class Display:
    """What all displays share: axes to draw on, the user's or those of a new figure.

    Attributes
    ----------
    axes_ : ndarray of matplotlib axes
        What was drawn on; `ax_` is the first of them.
    figure_ : matplotlib.figure.Figure
    """

    axes_: Axes
    ax_: Any
    figure_: Any

    def _take_axes(self, name: str, given: Any, n_panels: int, **size: Any) -> Axes:
        """Keep the axes that will be drawn on; `name` is what the user calls the argument."""
        self.axes_ = axes_for(given, n_panels, name, **size)
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure
        return self.axes_


def axes_for(
    given: Any,
    n_panels: int,
    name: str = "axes",
    *,
    width: float = WIDTH,
    height: float = HEIGHT,
    in_a_row: int = IN_A_ROW,
    share_y: bool = False,
) -> Axes:
    """Return the user's axes as an array, or those of a new figure.

    Parameters
    ----------
    given : matplotlib axes, sequence of them, or None
        None is a new figure.
    n_panels : int
    name : str, default="axes"
        What the user calls the argument.
    width, height : float
        Inches of a panel of a new figure.
    in_a_row : int
        Panels of a new figure that stand side by side.
    share_y : bool, default=False
        Whether panels of a new figure have one vertical scale.

    Returns
    -------
    ndarray of n_panels matplotlib axes
    """
    if given is None:
        return _new_axes(n_panels, width, height, in_a_row, share_y)
    axes = np.asarray(given, dtype=object).reshape(-1)
    if len(axes) != n_panels:
        raise ValueError(
            f"{name} has {len(axes)} matplotlib axes; expected {n_panels}, or None for a new "
            "figure."
        )
    return axes


def name_panels(panels: Axes, modes: Sequence[Mode], y_label: str) -> None:
    """Name the modes below their panels, and what is drawn beside the first."""
    for panel, mode in zip(panels, modes, strict=True):
        mode.label_axis(panel.xaxis)
    panels[0].set_ylabel(y_label)


def _new_axes(n_panels: int, width: float, height: float, in_a_row: int, share_y: bool) -> Axes:
    plt = require("matplotlib.pyplot", "plot", "Drawing")
    n_columns = min(n_panels, in_a_row)
    n_rows = ceil(n_panels / n_columns)
    figure, grid = plt.subplots(
        n_rows,
        n_columns,
        squeeze=False,
        figsize=(width * n_columns, height * n_rows),
        layout="constrained",
        sharey=share_y,
    )
    # Images of one scale move their labels when they are fitted in.
    figure.get_layout_engine().set(w_pad=PAD, h_pad=PAD)
    for spare in grid.flat[n_panels:]:
        figure.delaxes(spare)
    return grid.reshape(-1)[:n_panels]
