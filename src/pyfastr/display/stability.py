"""How often entries are selected, and how much the slices of each mode matter."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display import style
from pyfastr.display.axes import Display, name_panels
from pyfastr.display.modes import Mode, modes_of_result, plain_modes

Array = NDArray[Any]

# Of the distance between entries.
_WIDTH = 0.8


class StabilityDisplay(Display):
    """Selection frequencies of the entries of each mode, one panel a mode.

    Entries that are selected as often as the cutoff asks for are filled, others hollow.

    Parameters
    ----------
    frequencies : list of M ndarrays of shape (p_m,)
        Shares of the subsamples.
    cutoff : float or None, default=0.6
        None draws no line and fills all bars.
    modes : list of M Mode, optional
        Names and coordinates; numbers by default.

    Attributes
    ----------
    axes_ : ndarray of M matplotlib axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from pyfastr.display import StabilityDisplay
    >>> display = StabilityDisplay([[0.9, 0.1, 1.0], [0.2, 0.8]]).plot()
    >>> len(display.axes_)
    2
    """

    def __init__(
        self,
        frequencies: Sequence[Array],
        *,
        cutoff: float | None = 0.6,
        modes: Sequence[Mode] | None = None,
    ) -> None:
        self.frequencies = [np.asarray(frequency) for frequency in frequencies]
        self.cutoff = cutoff
        self.modes = plain_modes(len(self.frequencies)) if modes is None else list(modes)

    @classmethod
    def from_result(
        cls,
        result: Any,
        *,
        cutoff: float | None = 0.6,
        modes: Sequence[Mode] | None = None,
        axes: Any = None,
        **kwargs: Any,
    ) -> "StabilityDisplay":
        """Draw what a stability selection found.

        Parameters
        ----------
        result : StabilityResult
        cutoff : float or None, default=0.6
        modes : list of M Mode, optional
            Names and coordinates; those of the result by default.
        axes, **kwargs
            As in `plot`.

        Returns
        -------
        StabilityDisplay
        """
        display = cls(result.frequencies, cutoff=cutoff, modes=modes or modes_of_result(result))
        return display.plot(axes, **kwargs)

    def plot(self, axes: Any = None, **kwargs: Any) -> "StabilityDisplay":
        """Draw.

        Parameters
        ----------
        axes : sequence of M matplotlib axes, optional
            A new figure by default.
        **kwargs : dict
            For the bars, as `Axes.bar` takes them.

        Returns
        -------
        StabilityDisplay
        """
        panels = self._take_axes("axes", axes, len(self.frequencies))
        for panel, mode, frequency in zip(panels, self.modes, self.frequencies, strict=True):
            chosen = frequency >= (0 if self.cutoff is None else self.cutoff)
            draw_bars(panel, mode, frequency, chosen, kwargs)
            panel.set_ylim(0, 1.03)
            if self.cutoff is not None:
                panel.axhline(self.cutoff, color=style.ink(panel), linestyle="--", linewidth=1)
        name_panels(panels, self.modes, "selection frequency")
        return self


class ImportanceDisplay(Display):
    """What the score loses when the slices of a mode are permuted, one panel a mode.

    Slices whose mean loss exceeds its standard deviation are filled, others hollow.

    Parameters
    ----------
    importances_mean, importances_std : list of M ndarrays of shape (p_m,)
        Over repeats.
    modes : list of M Mode, optional
        Names and coordinates; numbers by default.

    Attributes
    ----------
    axes_ : ndarray of M matplotlib axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from pyfastr.display import ImportanceDisplay
    >>> display = ImportanceDisplay([[0.3, 0.0]], [[0.05, 0.01]]).plot()
    >>> display.axes_[0].get_ylabel()
    'loss of score'
    """

    def __init__(
        self,
        importances_mean: Sequence[Array],
        importances_std: Sequence[Array],
        *,
        modes: Sequence[Mode] | None = None,
    ) -> None:
        self.importances_mean = [np.asarray(mean) for mean in importances_mean]
        self.importances_std = [np.asarray(std) for std in importances_std]
        self.modes = plain_modes(len(self.importances_mean)) if modes is None else list(modes)

    @classmethod
    def from_result(
        cls, result: Any, *, modes: Sequence[Mode] | None = None, axes: Any = None, **kwargs: Any
    ) -> "ImportanceDisplay":
        """Draw the importance of slices.

        Parameters
        ----------
        result : SliceImportance
        modes : list of M Mode, optional
            Names and coordinates; those of the result by default.
        axes, **kwargs
            As in `plot`.

        Returns
        -------
        ImportanceDisplay
        """
        found = (result.importances_mean, result.importances_std)
        display = cls(*found, modes=modes or modes_of_result(result))
        return display.plot(axes, **kwargs)

    def plot(self, axes: Any = None, **kwargs: Any) -> "ImportanceDisplay":
        """Draw.

        Parameters
        ----------
        axes : sequence of M matplotlib axes, optional
            A new figure by default.
        **kwargs : dict
            For the bars, as `Axes.bar` takes them.

        Returns
        -------
        ImportanceDisplay
        """
        panels = self._take_axes("axes", axes, len(self.importances_mean), share_y=True)
        parts = zip(panels, self.modes, self.importances_mean, self.importances_std, strict=True)
        for panel, mode, mean, std in parts:
            errors = {"yerr": std, "ecolor": style.ink(panel), "error_kw": {"elinewidth": 1}}
            draw_bars(panel, mode, mean, mean > std, {**errors, **kwargs})
            panel.axhline(0, color=style.faint(panel), linewidth=0.8, zorder=0)
        name_panels(panels, self.modes, "loss of score")
        return self


def draw_bars(
    panel: Any, mode: Mode, heights: Array, filled: Array, kwargs: dict[str, Any]
) -> None:
    """Draw a bar for each entry of a mode, filled or hollow."""
    colour = style.hue(panel, 0)
    looks = {
        "width": _WIDTH * mode.step(len(heights)),
        "color": [colour if full else "none" for full in filled],
        "edgecolor": colour,
    }
    panel.bar(mode.positions(len(heights)), heights, **{**looks, **kwargs})
