"""The scores of a choice, and the point taken."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyfastr.display import style, traits
from pyfastr.display.axes import Axes, Display
from pyfastr.display.fitted import attribute_of, fitted_part
from pyfastr.estimators.ranking import mean_and_error

Array = NDArray[Any]

# Scores below the lower quartile by more than this many times its distance from the best are cut
# off: a few hopeless points would flatten all others.
FENCE = 1.5


class Direction(NamedTuple):
    """What is drawn to the right: its name, its values and the scale."""

    name: str
    values: Array
    scale: str


class SelectionDisplay(Display):
    """Mean held-out scores of all points of the grid, one panel for each number of terms.

    Scores are drawn against the threshold with a line for each ridge; against the ridge if there
    is one threshold, and against the number of terms if that is all that was chosen. Around the
    line of the chosen ridge lies one standard error.

    Parameters
    ----------
    scores : ndarray of shape (n_n_terms, n_ridges, n_thresholds, n_folds)
    n_terms, ridges, thresholds : sequence
        The grid.
    chosen : tuple of three int
        Where the choice is in `scores`.
    averaged : list of tuples of three int, optional
        Where the points are whose mean the model is; only of more than one.
    score_name : str, default="score"

    Attributes
    ----------
    mean_, error_ : ndarray of shape (n_n_terms, n_ridges, n_thresholds)
        Mean and standard error over folds that have scores.
    axes_ : ndarray of matplotlib axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from pyfastr import FasTRRegressorCV
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.display import SelectionDisplay
    >>> X, y = make_tensor_regression(60, (5, 4), noise=1.0, random_state=0)
    >>> model = FasTRRegressorCV([0, 0.1, 0.3], [0.1, 1], random_state=0).fit(X, y)
    >>> display = SelectionDisplay.from_estimator(model)
    >>> display.mean_.shape, display.axes_[0].get_xlabel()
    ((2, 2, 3), 'threshold')
    """

    def __init__(
        self,
        scores: Array,
        *,
        n_terms: Sequence[int] | Array,
        ridges: Sequence[float] | Array,
        thresholds: Sequence[float] | Array,
        chosen: tuple[int, int, int],
        averaged: Sequence[tuple[int, int, int]] = (),
        score_name: str = "score",
    ) -> None:
        self.scores = np.asarray(scores, float)
        self.n_terms = np.asarray(n_terms)
        self.ridges = np.asarray(ridges, float)
        self.thresholds = np.asarray(thresholds, float)
        self.chosen = chosen
        self.averaged = list(averaged)
        self.score_name = score_name
        is_scored = np.isfinite(self.scores).any(axis=(0, 1, 2))
        scored = self.scores[..., is_scored] if is_scored.any() else self.scores
        self.mean_, self.error_ = mean_and_error(np.moveaxis(scored, -1, 0))

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, axes: Any = None, **kwargs: Any
    ) -> "SelectionDisplay":
        """Draw how a fitted model was chosen.

        Parameters
        ----------
        estimator : FasTRRegressorCV or FasTRClassifierCV, or a Pipeline that ends in one
            Fitted.
        axes, **kwargs
            As in `plot`.

        Returns
        -------
        SelectionDisplay
        """
        scores = attribute_of(estimator, "scores_path_")
        model = fitted_part(estimator)
        names = ("n_terms", "ridge", "threshold")
        tried = [np.asarray(model.cv_results_[f"param_{name}"]).tolist() for name in names]
        grid = [list(dict.fromkeys(values)) for values in tried]
        averaged = [_point(index, tried, grid) for index in model.averaged_]
        display = cls(
            scores,
            n_terms=grid[0],
            ridges=grid[1],
            thresholds=grid[2],
            chosen=_point(model.best_index_, tried, grid),
            averaged=averaged if len(averaged) > 1 else (),
            score_name=_merit(model),
        )
        return display.plot(axes, **kwargs)

    def plot(self, axes: Any = None, **kwargs: Any) -> "SelectionDisplay":
        """Draw.

        Parameters
        ----------
        axes : matplotlib axes or sequence of them, optional
            One for each number of terms, or one if only that was chosen; a new figure by default.
        **kwargs : dict
            For the lines, as `Axes.plot` takes them.

        Returns
        -------
        SelectionDisplay
        """
        along = self._direction()
        n_panels = 1 if along.name == "number of terms" else len(self.n_terms)
        panels = self._take_axes("axes", axes, n_panels, width=5.0, share_y=True)
        for index, panel in enumerate(panels):
            lines, errors = self._lines(index)
            self._draw_lines(panel, along, lines, errors, kwargs)
            if n_panels > 1:
                n_terms = int(self.n_terms[index])
                panel.set_title(f"{n_terms} term{'s' if n_terms > 1 else ''}")
        self._mark(panels, along)
        self._finish(panels, along)
        return self

    def _direction(self) -> Direction:
        """Return what is drawn to the right: the first that has something to choose from."""
        if len(self.thresholds) > 1:
            return Direction("threshold", self.thresholds, "linear")
        if len(self.ridges) > 1:
            return Direction("ridge", self.ridges, "log" if (self.ridges > 0).all() else "symlog")
        return Direction("number of terms", self.n_terms, "linear")

    def _lines(self, index: int) -> tuple[Array, Array]:
        """Return means and errors of a panel, a row for each line."""
        if len(self.thresholds) > 1:
            return self.mean_[index], self.error_[index]
        if len(self.ridges) > 1:
            return self.mean_[index].T, self.error_[index].T
        return self.mean_[:, 0].T, self.error_[:, 0].T

    def _draw_lines(
        self, panel: Any, along: Direction, lines: Array, errors: Array, kwargs: dict[str, Any]
    ) -> None:
        """Draw the lines of a panel, and the errors of that with the chosen ridge."""
        colours = style.ordered(panel, len(lines)) if len(lines) > 1 else [style.hue(panel, 0)]
        order = np.argsort(along.values, kind="stable")
        own = self.chosen[1] if len(lines) > 1 else 0
        for row, (means, error) in enumerate(zip(lines, errors, strict=True)):
            looks = {
                "color": colours[row],
                "marker": style.marker(row),
                "linestyle": style.line(row),
                "linewidth": 2.0 if row == own else 1.2,
                "markersize": 4,
                "label": f"{self.ridges[row]:g}",
            }
            panel.plot(along.values[order], means[order], **{**looks, **kwargs})
            if row == own and self.scores.shape[-1] > 1:
                low, high = (means - error)[order], (means + error)[order]
                shade = {"color": colours[row], "alpha": 0.2, "linewidth": 0}
                panel.fill_between(along.values[order], low, high, **shade)

    def _mark(self, panels: Axes, along: Direction) -> None:
        """Mark the chosen point, and those that are averaged with it."""
        chosen: dict[str, Any] = {"s": 180, "linewidths": 2, "zorder": 4, "label": "chosen"}
        averaged: dict[str, Any] = {"s": 60, "linewidths": 1, "zorder": 3}
        marks = [(point, averaged) for point in self.averaged]
        for point, looks in [*marks, (self.chosen, chosen)]:
            panel = panels[point[0] if len(panels) > 1 else 0]
            # The best is one of those that are averaged.
            name = {"label": "averaged"} if looks is averaged and point == self.chosen else {}
            ring = {"facecolors": "none", "edgecolors": style.ink(panel)}
            panel.scatter(*self._place(along, point), **ring, **looks, **name)

    def _place(self, along: Direction, point: tuple[int, int, int]) -> tuple[float, float]:
        """Return where a point of the grid is drawn."""
        number = {"number of terms": 0, "ridge": 1, "threshold": 2}[along.name]
        return float(along.values[point[number]]), float(self.mean_[point])

    def _finish(self, panels: Axes, along: Direction) -> None:
        """Name axes and lines, and cut off what is hopeless."""
        for panel in panels:
            panel.set_xlabel(along.name)
            panel.set_xscale(along.scale)
            panel.set_ylim(*self._limits())
            if along.name == "number of terms":
                panel.set_xticks(self.n_terms)
        panels[0].set_ylabel(self._y_label())
        panel = panels[self.chosen[0] if len(panels) > 1 else 0]
        handles, labels = panel.get_legend_handles_labels()
        several = along.name == "threshold" and len(self.ridges) > 1
        if not several:
            handles, labels = handles[1:], labels[1:]
        panel.legend(handles, labels, title="ridge" if several else None, fontsize="small")

    def _y_label(self) -> str:
        return f"mean held-out {self.score_name}" if self.scores.shape[-1] > 1 else self.score_name

    def _limits(self) -> tuple[float, float]:
        """Return the scores between which the picture lies."""
        means = self.mean_[np.isfinite(self.mean_)]
        best = float(np.nanmax(self.mean_ + self.error_)) if len(means) else 1.0
        quartile = float(np.quantile(means, 0.25)) if len(means) else 0.0
        low = max(float(means.min()), quartile - FENCE * (best - quartile)) if len(means) else 0.0
        margin = 0.05 * (best - low) or 0.05 * max(abs(best), 1e-9)
        return low - margin, best + margin


def _point(index: Any, tried: list[list[Any]], grid: list[list[Any]]) -> tuple[int, int, int]:
    """Return where an index of `cv_results_` is in the grid, of which not all may be tried."""
    where = (own.index(values[int(index)]) for values, own in zip(tried, grid, strict=True))
    terms, ridge, threshold = where
    return terms, ridge, threshold


def _merit(model: Any) -> str:
    """Name what was maximised."""
    return (
        traits.score_name(model) if traits.has_folds(model) else "−(N − dof) log(RSS / (N − dof))"
    )
