"""The entries of each mode along thresholds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display import style
from pyfastr.display.axes import Display
from pyfastr.display.modes import Mode, modes_of_result, plain_modes

Array = NDArray[Any]

# Lines of a mode that are told apart by colour, style and name.
N_NAMED = 6


class PathDisplay(Display):
    """Entries of the factors against the threshold, one panel a mode.

    The entries that are largest at the smallest threshold are coloured and named, and the others
    stay in the background.

    Parameters
    ----------
    thresholds : ndarray of shape (n_thresholds,)
    factors : list of M ndarrays of shape (n_thresholds, p_m, n_terms)
    converged : ndarray of shape (n_thresholds,), optional
        Thresholds whose sweeps did not end are marked with crosses.
    modes : list of M Mode, optional
        Names and coordinates; numbers by default.

    Attributes
    ----------
    axes_ : ndarray of M matplotlib axes
        With a line for each entry and term, entry by entry.
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from pyfastr import fastr_path
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.display import PathDisplay
    >>> X, y = make_tensor_regression(100, (8, 6), sparsity=0.5, random_state=0)
    >>> path = fastr_path(X, y, thresholds=[0.0, 0.1, 0.3], random_state=0)
    >>> len(PathDisplay.from_result(path).axes_[0].get_lines())
    8
    """

    def __init__(
        self,
        thresholds: Array,
        factors: Sequence[Array],
        converged: Array | None = None,
        *,
        modes: Sequence[Mode] | None = None,
    ) -> None:
        self.thresholds = np.asarray(thresholds)
        self.factors = [np.asarray(factor) for factor in factors]
        found = np.ones(len(self.thresholds), bool) if converged is None else converged
        self.converged = np.asarray(found, bool)
        self.modes = plain_modes(len(self.factors)) if modes is None else list(modes)

    @classmethod
    def from_result(
        cls, result: Any, *, modes: Sequence[Mode] | None = None, axes: Any = None, **kwargs: Any
    ) -> "PathDisplay":
        """Draw what `fastr_path` returned.

        Parameters
        ----------
        result : FasTRPath
        modes : list of M Mode, optional
            Names and coordinates; those of the result by default.
        axes, **kwargs
            As in `plot`.

        Returns
        -------
        PathDisplay
        """
        found = (result.thresholds, result.factors, result.converged)
        display = cls(*found, modes=modes or modes_of_result(result))
        return display.plot(axes, **kwargs)

    def plot(self, axes: Any = None, **kwargs: Any) -> "PathDisplay":
        """Draw.

        Parameters
        ----------
        axes : sequence of M matplotlib axes, optional
            A new figure by default.
        **kwargs : dict
            For the lines, as `Axes.plot` takes them.

        Returns
        -------
        PathDisplay
        """
        panels = self._take_axes("axes", axes, len(self.factors))
        panels[0].set_ylabel("entry of the unit component")
        for panel, mode, factor in zip(panels, self.modes, self.factors, strict=True):
            self._draw_mode(panel, mode, factor, kwargs)
            panel.set_title(mode.label)
            panel.set_xlabel("threshold")
        return self

    def _draw_mode(self, panel: Any, mode: Mode, factor: Array, kwargs: dict[str, Any]) -> None:
        """Draw the lines of one mode."""
        order = np.argsort(self.thresholds, kind="stable")
        n_terms = factor.shape[2]
        lines = factor[order].reshape(len(order), -1)
        leading = np.argsort(-np.abs(lines[0]), kind="stable")[:N_NAMED].tolist()
        for index, values in enumerate(lines.T):
            looks: dict[str, Any] = {"color": style.faint(panel), "linewidth": 0.8, "zorder": 1.5}
            if index in leading:
                entry, term = divmod(index, n_terms)
                name = mode.value(entry) + (f", term {term}" if n_terms > 1 else "")
                looks = _named_line(panel, leading.index(index)) | {"label": name}
            panel.plot(self.thresholds[order], values, **{**looks, **kwargs})
        stuck = self.thresholds[~self.converged]
        if len(stuck):
            looks = {"marker": "x", "color": style.ink(panel), "label": "not converged"}
            panel.scatter(stuck, np.zeros(len(stuck)), **looks, zorder=3)
        # Room for the names, as lines are everywhere.
        low, high = panel.get_ylim()
        panel.set_ylim(low - 0.3 * (high - low), high)
        panel.legend(title="largest entries", fontsize="small", loc="lower center", ncols=3)


def _named_line(panel: Any, rank: int) -> dict[str, Any]:
    return {"color": style.hue(panel, rank), "linestyle": style.line(rank), "linewidth": 1.8}
