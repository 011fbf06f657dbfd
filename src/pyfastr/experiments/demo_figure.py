"""The picture of the demo: coefficients side by side, and factors entry by entry."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display.style import diverging
from pyfastr.estimators.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Array = NDArray[Any]

# Two tones that stay apart for colour-blind readers and in grey print.
_TRUE_COLOUR, _FOUND_COLOUR = "#767676", "#0b5a9d"
_TICKS = (0, 5, 10, 15)


def draw_comparison(found: Sequence[tuple[str, str, Array]], W: Array) -> "Figure":
    """Show every coefficient seen along its last mode above the factors, true and found.

    Parameters
    ----------
    found : sequence of (str, str, ndarray of the shape of W)
        Names, captions and coefficients of methods; the factors are those of the first.
    W : ndarray of shape (p1, p2, p3)
        The truth.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.experiments.demo_figure import draw_comparison
    >>> _, _, W = make_tensor_regression(5, (20, 20, 20), coef=True, random_state=0)
    >>> figure = draw_comparison([("FasTR", "CE 0", W)], W)
    >>> len(figure.subfigs)
    2
    """
    figures = require("matplotlib.figure", "plot", "Drawing")
    figure: Figure = figures.Figure(figsize=(11, 6.8), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=(1.0, 0.9), hspace=0.06)
    _draw_coefficients(halves[0], found, W)
    _draw_factors(halves[1], *found[0][::2], W)
    return figure


def _draw_coefficients(
    figure: "SubFigure", found: Sequence[tuple[str, str, Array]], W: Array
) -> None:
    """Show, for each pair of indices in modes 0 and 1, the largest entry along mode 2."""
    limit = float(np.abs(W).max())
    panels = [("Truth", "", W), *found]
    axes = figure.subplots(1, len(panels), sharey=True)
    for axis, (name, caption, coef) in zip(axes, panels, strict=True):
        seen = _largest_along_last(coef)
        # Zeros are left unpainted, as in all pictures of coefficients.
        image = axis.imshow(
            np.where(seen == 0, np.nan, seen), cmap=diverging(axis), vmin=-limit, vmax=limit
        )
        axis.set_title(f"{name}\n{caption}", fontsize=11)
        axis.set_xlabel("mode 1")
        axis.set_xticks(_TICKS)
        axis.spines[:].set_color("#bbbbbb")
        axis.tick_params(left=axis is axes[0])
    axes[0].set_ylabel("mode 0")
    axes[0].set_yticks(_TICKS)
    figure.colorbar(image, ax=axes, label="coefficient", shrink=0.8, pad=0.01)
    title = "Coefficient: the entry of largest magnitude along mode 2"
    figure.suptitle(title, fontsize=13, x=0.01, ha="left")


def _largest_along_last(coef: Array) -> Array:
    """Keep the entry of largest magnitude along the last mode, with its sign."""
    at = np.abs(coef).argmax(axis=-1)
    return np.take_along_axis(coef, at[..., None], axis=-1)[..., 0]


def _draw_factors(figure: "SubFigure", name: str, coef: Array, W: Array) -> None:
    """Compare the factors of the truth and of a fit, entry by entry."""
    axes = figure.subplots(1, W.ndim, sharey=True)
    pairs = zip(_directions(W), _directions(coef), strict=True)
    for mode, (axis, (true, ours)) in enumerate(zip(axes, pairs, strict=True)):
        # A factor's sign is free: only that of the product is fixed.
        _draw_factor(axis, true, ours * np.sign(true @ ours))
        axis.set_xlabel(f"index in mode {mode}")
        axis.tick_params(left=axis is axes[0])
    axes[0].set_ylabel("factor, of unit length")
    axes[-1].legend(frameon=False, loc="best", fontsize=10)
    title = f"Factors of the truth and of {name}: a dot in its ring is a hit"
    figure.suptitle(title, fontsize=13, x=0.01, ha="left")


def _directions(W: Array) -> list[Array]:
    """Leading vector of each mode, of unit length; for a unit-rank W its factors."""
    found = []
    for mode in range(W.ndim):
        unfolded = np.moveaxis(W, mode, 0).reshape(W.shape[mode], -1)
        vector = np.linalg.svd(unfolded, full_matrices=False)[0][:, 0]
        found.append(vector * np.sign(vector[np.abs(vector).argmax()]))
    return found


def _draw_factor(axis: "Axes", true: Array, found: Array) -> None:
    """Draw true entries as rings on stems, found ones as dots."""
    index = np.arange(len(true))
    axis.axhline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
    axis.vlines(index, 0, true, color=_TRUE_COLOUR, linewidth=1.2)
    ring: dict[str, Any] = {"facecolors": "white", "edgecolors": _TRUE_COLOUR, "linewidths": 1.4}
    axis.scatter(index, true, s=62, label="true", zorder=2, **ring)
    axis.scatter(index, found, s=14, color=_FOUND_COLOUR, label="found", zorder=3)
    axis.set_xticks(_TICKS)
    axis.spines[["top", "right"]].set_visible(False)
