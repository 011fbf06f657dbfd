"""How far the starts of a search agree."""

from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display import style
from pyfastr.display.axes import Display
from pyfastr.display.fitted import attribute_of

Array = NDArray[Any]


class StartsDisplay(Display):
    """What the solutions that starts ended in leave, penalty included, in ascending order.

    Parameters
    ----------
    losses : ndarray of shape (n_polished,)
        Over that of the best; may be empty, and then only words are shown.
    n_starts, n_polished, n_hits : int
        As in `starts_` of a model.
    gap : float
    sure : bool
    confidence : float, optional

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.display import StartsDisplay
    >>> X, y = make_tensor_regression(100, (8, 6), noise=1.0, random_state=0)
    >>> display = StartsDisplay.from_estimator(FasTRRegressor(random_state=0).fit(X, y))
    >>> display.sure
    True
    """

    def __init__(
        self,
        losses: Array,
        *,
        n_starts: int,
        n_polished: int,
        n_hits: int,
        gap: float,
        sure: bool,
        confidence: float | None = None,
    ) -> None:
        self.losses = np.asarray(losses, float)
        self.n_starts = n_starts
        self.n_polished = n_polished
        self.n_hits = n_hits
        self.gap = gap
        self.sure = sure
        self.confidence = confidence

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> "StartsDisplay":
        """Draw the search of a fitted model.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted; the mean of the folds' models (``refitted_=False``) has no search of its own.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        StartsDisplay
        """
        starts = attribute_of(estimator, "starts_")
        names = ("n_starts", "n_polished", "n_hits", "gap", "sure")
        counts = {name: getattr(starts, name) for name in names}
        losses, chance = getattr(starts, "losses", np.empty(0)), starts.confidence
        return cls(losses, **counts, confidence=chance).plot(ax, **kwargs)

    @property
    def meaning(self) -> str:
        """What the starts say, in words."""
        if self.n_polished <= 1:
            return (
                "There was nothing to search: the solution is the only one."
                if self.sure
                else "There was one start, and nothing to compare it with."
            )
        found = f"{self.n_hits} of {self.n_polished} polished solutions reached the best."
        if np.isfinite(self.gap):
            found += f" The next best leaves {self.gap:.3g} times as much, penalty included."
        if self.sure:
            return f"{found} It is sure that more starts would find no better one."
        if self.n_hits == 1:
            return f"{found} Nothing confirms it: a better one may exist. Raise n_init."
        if self.confidence is None:
            return f"{found} More starts may find a better one."
        return f"{found} With a probability of {self.confidence:.0%} more would find no better one."

    def plot(self, ax: Any = None, **kwargs: Any) -> "StartsDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            A new figure by default.
        **kwargs : dict
            For the marks of solutions that reached the best, as `Axes.plot` takes them.

        Returns
        -------
        StartsDisplay
        """
        panel = self._take_axes("ax", ax, 1, width=5.0)[0]
        if not len(self.losses):
            middle = {"horizontalalignment": "center", "verticalalignment": "center"}
            panel.text(0.5, 0.5, fill(self.meaning, 50), transform=panel.transAxes, **middle)
            panel.set_axis_off()
            return self
        panel.set_title(fill(self.meaning, 58), fontsize="small", loc="left")
        # In files of earlier versions a closer fit at a larger penalty comes before the best.
        nearest = np.argsort(np.abs(np.log(self.losses)), kind="stable")
        hits = np.isin(np.arange(len(self.losses)), nearest[: self.n_hits])
        places = np.arange(1, len(self.losses) + 1)
        looks: dict[str, Any] = {"linestyle": "", "marker": "o", "color": style.hue(panel, 0)}
        best = {**looks, "label": "reached the best", **kwargs}
        panel.plot(places[hits], self.losses[hits], **best)
        others = {**looks, "marker": "s", "color": style.hue(panel, 1), "markerfacecolor": "none"}
        if not hits.all():
            panel.plot(places[~hits], self.losses[~hits], **others, label="ended elsewhere")
        self._finish(panel)
        return self

    def _finish(self, panel: Any) -> None:
        """Name the axes, and draw the line at the best."""
        panel.axhline(1, color=style.faint(panel), linewidth=0.8, zorder=0)
        panel.set_yscale("log")
        # Where all agree, a scale of their rounding errors would say that they do not.
        low, high = panel.get_ylim()
        panel.set_ylim(min(low, 0.8), max(high, 2.0))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_formatter("")
        style.whole_numbers(panel.xaxis)
        panel.set_xlabel("polished solution, the best first")
        panel.set_ylabel("squared residuals and penalty over the best")
        panel.legend()
