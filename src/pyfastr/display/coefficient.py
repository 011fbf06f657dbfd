"""The coefficient as images of its slices."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display import style
from pyfastr.display.axes import Axes, Display
from pyfastr.display.fitted import attribute_of
from pyfastr.display.modes import Mode, modes_of, plain_modes
from pyfastr.display.slices import Slice, checked_at, montage, slices_of_pairs

Array = NDArray[Any]

# Entries are squares unless one side would be so many times the other.
LONGEST = 4.0


class CoefficientDisplay(Display):
    """The coefficient: an image, or slices through its largest entry.

    Blue is below 0 and orange above; zeros are not painted, so that they show the ground of the
    axes. A coefficient of vectors is drawn as stems. Modes with coordinates of one unit, such as
    millimetres, are drawn as on a map, the first to the right and the second upwards; others as a
    matrix is written, the first downwards.

    Parameters
    ----------
    coef : ndarray of shape (p1, ..., pM)
    modes : list of M Mode, optional
        Names and coordinates; numbers by default.

    Attributes
    ----------
    axes_ : ndarray of matplotlib axes
        One for each slice.
    images_ : list of matplotlib images
        One for each slice; no images of vectors.
    slices_ : list of Slice
        The modes of each panel, and the entries at which the others are held.
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.display import CoefficientDisplay
    >>> X, y = make_tensor_regression(100, (8, 6, 4), sparsity=0.5, random_state=0)
    >>> model = FasTRRegressor(threshold=0.1, random_state=0).fit(X, y)
    >>> display = CoefficientDisplay.from_estimator(model)
    >>> [own.pair for own in display.slices_]
    [(0, 1), (0, 2), (1, 2)]
    """

    def __init__(self, coef: Array, *, modes: Sequence[Mode] | None = None) -> None:
        self.coef = np.asarray(coef)
        self.modes = plain_modes(self.coef.ndim) if modes is None else list(modes)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, axes: Any = None, **kwargs: Any
    ) -> "CoefficientDisplay":
        """Draw the coefficient of a fitted model.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted. Of a pipeline with a scaler, the coefficient of scaled X.
        axes, **kwargs
            As in `plot`.

        Returns
        -------
        CoefficientDisplay
        """
        coef = attribute_of(estimator, "coef_")
        return cls(coef, modes=modes_of(estimator)).plot(axes, **kwargs)

    def plot(
        self,
        axes: Any = None,
        *,
        at: Sequence[int] | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        mode: int | None = None,
        n_slices: int = 12,
        colorbar: bool = True,
        hatch: bool = False,
        **kwargs: Any,
    ) -> "CoefficientDisplay":
        """Draw.

        Parameters
        ----------
        axes : matplotlib axes or sequence of them, optional
            One for each slice; a new figure by default.
        at : sequence of M int, optional
            Entry of each mode at which it is cut; the largest of the coefficient by default.
        pairs : sequence of pairs of int, optional
            Modes to draw, a pair a panel; all pairs by default.
        mode : int, optional
            Draws a montage along this mode instead: slices that are not all zero.
        n_slices : int, default=12
            The most slices of a montage, spread evenly if there are more.
        colorbar : bool, default=True
        hatch : bool, default=False
            Whether what is below 0 is hatched, for print without colours.
        **kwargs : dict
            For the images, as `Axes.imshow` takes them, or for the marks of a vector.

        Returns
        -------
        CoefficientDisplay
        """
        if self.coef.ndim == 1:
            return self._draw_vector(axes, kwargs)
        place = checked_at(at, self.coef)
        if mode is None:
            self.slices_ = slices_of_pairs(self.coef, place, pairs)
        else:
            self.slices_ = montage(self.coef, place, mode, pairs, n_slices)
        panels = self._take_axes("axes", axes, len(self.slices_), **self._size())
        self._draw_images(panels, kwargs)
        if hatch:
            self._hatch_negative(panels)
        for panel, own in zip(panels, self.slices_, strict=True):
            self._finish_panel(panel, own, crossed=mode is None)
            if mode is not None and axes is None:
                panel.label_outer()
        if colorbar:
            self.figure_.colorbar(self.images_[0], ax=list(panels), label="coefficient")
        return self

    def _draw_images(self, panels: Axes, kwargs: dict[str, Any]) -> None:
        """Draw all slices in the colours of one scale."""
        # Of all zeros any scale is right.
        largest = float(np.abs(self.coef).max()) or 1.0
        self.images_ = []
        for panel, own in zip(panels, self.slices_, strict=True):
            looks = {"cmap": style.diverging(panel), "vmin": -largest, "vmax": largest}
            looks |= self._geometry(own)
            shown = np.ma.masked_equal(self._rows(own), 0)
            self.images_.append(panel.imshow(shown, **{**looks, **kwargs}))

    def _hatch_negative(self, panels: Axes) -> None:
        """Hatch the entries below 0."""
        for panel, own in zip(panels, self.slices_, strict=True):
            values = self._rows(own)
            edges = [
                np.linspace(*self._extent(m), self.coef.shape[m] + 1) for m in self._axes_of(own)
            ]
            looks = {"hatch": "////", "facecolor": "none", "linewidth": 0}
            below = np.ma.masked_where(values >= 0, values)
            panel.pcolor(*edges, below, edgecolor=style.faint(panel, 0.7), **looks)

    def _rows(self, own: Slice) -> Array:
        """Return a slice with the mode that is drawn to the right last."""
        values = own.of(self.coef)
        return values.T if self._is_map(own) else values

    def _geometry(self, own: Slice) -> dict[str, Any]:
        """Return where an image lies on its axes."""
        across, up = self._axes_of(own)
        sides = [self._extent(across), self._extent(up)]
        lengths = [abs(high - low) for low, high in sides]
        equal = self.modes[across].unit == self.modes[up].unit
        aspect = "equal" if equal and max(lengths) <= LONGEST * min(lengths) else "auto"
        if self._is_map(own):
            return {"extent": (*sides[0], *sides[1]), "origin": "lower", "aspect": aspect}
        return {"extent": (*sides[0], *sides[1][::-1]), "origin": "upper", "aspect": aspect}

    def _extent(self, mode: int) -> tuple[float, float]:
        """Return where the entries of a mode begin and end."""
        places = self.modes[mode].positions(self.coef.shape[mode])
        half = (places[1] - places[0]) / 2 if len(places) > 1 else 0.5
        return float(places[0] - half), float(places[-1] + half)

    def _is_map(self, own: Slice) -> bool:
        """Whether both modes have coordinates of one unit."""
        first, second = (self.modes[mode] for mode in own.pair)
        return first.is_even and second.is_even and first.unit == second.unit != ""

    def _axes_of(self, own: Slice) -> tuple[int, int]:
        """Return the modes that are drawn to the right and upwards."""
        first, second = own.pair
        return (first, second) if self._is_map(own) else (second, first)

    def _finish_panel(self, panel: Any, own: Slice, *, crossed: bool) -> None:
        """Name the axes of a slice, where it is cut, and where the others cut it."""
        across, up = self._axes_of(own)
        for mode, axis, limits in ((across, panel.xaxis, "xlim"), (up, panel.yaxis, "ylim")):
            self.modes[mode].label_axis(axis)
            low, high = sorted(self._extent(mode))
            downwards = limits == "ylim" and not self._is_map(own)
            panel.set(**{limits: (high, low) if downwards else (low, high)})
        held = [m for m in range(self.coef.ndim) if m not in own.pair]
        if not held:
            return
        size = "medium" if len(self.slices_) <= 3 else "small"
        panel.set_title(", ".join(self._cut(m, own.at[m]) for m in held), fontsize=size)
        if crossed:
            looks = {"color": style.faint(panel), "linewidth": 0.8}
            panel.axvline(self._position(across, own), **looks)
            panel.axhline(self._position(up, own), **looks)

    def _position(self, mode: int, own: Slice) -> float:
        """Return where the cut of a mode is drawn."""
        return float(self.modes[mode].positions(self.coef.shape[mode])[own.at[mode]])

    def _cut(self, mode: int, index: int) -> str:
        return f"{self.modes[mode].name} = {self.modes[mode].value(index)}"

    def _size(self) -> dict[str, Any]:
        """Return the size of panels: smaller if there are many."""
        n_panels = len(self.slices_)
        if n_panels > 3:
            return {"width": 3.0, "height": 2.6, "in_a_row": 3 if n_panels == 6 else 4}
        shapes = [self._geometry(own) for own in self.slices_]
        sides = [np.abs(np.diff(np.reshape(shape["extent"], (2, 2)))) for shape in shapes]
        tallest = max(float(up / across) for (across,), (up,) in sides)
        equal = all(shape["aspect"] == "equal" for shape in shapes)
        return {"width": 4.2, "height": np.clip(3.2 * tallest, 2.0, 4.4) + 0.4 if equal else 3.6}

    def _draw_vector(self, axes: Any, kwargs: dict[str, Any]) -> "CoefficientDisplay":
        """Draw the coefficient of vectors as stems; zeros are hollow."""
        panel = self._take_axes("axes", axes, 1, width=6.0)[0]
        self.slices_, self.images_ = [], []
        places, on = self.modes[0].positions(len(self.coef)), self.coef != 0
        colour = style.hue(panel, 0)
        looks: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4, "color": colour}
        panel.axhline(0, color=style.faint(panel), linewidth=0.8, zorder=0)
        panel.vlines(places[on], 0, self.coef[on], color=colour, linewidth=1)
        panel.plot(places[on], self.coef[on], **{**looks, **kwargs})
        hollow = {"markerfacecolor": "none", "alpha": 0.5}
        panel.plot(places[~on], self.coef[~on], **looks, **hollow)
        self.modes[0].label_axis(panel.xaxis)
        panel.set_ylabel("coefficient")
        return self
