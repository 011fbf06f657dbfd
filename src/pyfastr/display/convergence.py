"""How the sweeps of a fit went."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display import style
from pyfastr.display.axes import Display
from pyfastr.display.fitted import attribute_of, fitted_part

Array = NDArray[Any]


class ConvergenceDisplay(Display):
    """Loss and change of the coefficient by sweep, in two panels.

    Parameters
    ----------
    loss, change : ndarray of shape (n_iter,)
        As in `history_` of a model.
    tol : float, optional
        Where sweeps end; drawn as a line.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.display import ConvergenceDisplay
    >>> X, y = make_tensor_regression(100, (8, 6), noise=1.0, random_state=0)
    >>> display = ConvergenceDisplay.from_estimator(FasTRRegressor(random_state=0).fit(X, y))
    >>> [panel.get_ylabel() for panel in display.axes_]
    ['loss', 'relative change of the coefficient']
    """

    def __init__(self, loss: Array, change: Array, tol: float | None = None) -> None:
        self.loss = np.asarray(loss)
        self.change = np.asarray(change)
        self.tol = tol

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, axes: Any = None, **kwargs: Any
    ) -> "ConvergenceDisplay":
        """Draw the history of a fitted model.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted; the mean of the folds' models (``refitted_=False``) has no history.
        axes, **kwargs
            As in `plot`.

        Returns
        -------
        ConvergenceDisplay
        """
        history = attribute_of(estimator, "history_")
        tol = getattr(fitted_part(estimator), "tol", None)
        return cls(history["loss"], history["change"], tol).plot(axes, **kwargs)

    def plot(self, axes: Any = None, **kwargs: Any) -> "ConvergenceDisplay":
        """Draw.

        Parameters
        ----------
        axes : sequence of two matplotlib axes, optional
            A new figure by default.
        **kwargs : dict
            For the lines, as `Axes.plot` takes them.

        Returns
        -------
        ConvergenceDisplay
        """
        panels = self._take_axes("axes", axes, 2)
        names = ("loss", "relative change of the coefficient")
        for panel, values, name in zip(panels, (self.loss, self.change), names, strict=True):
            looks = {"color": style.hue(panel, 0), "marker": style.marker(0), "markersize": 4}
            panel.plot(np.arange(1, len(values) + 1), values, **{**looks, **kwargs})
            style.whole_numbers(panel.xaxis)
            panel.set_xlabel("sweep")
            panel.set_ylabel(name)
        if (self.change > 0).any():
            panels[1].set_yscale("log")
        if self.tol:
            looks = {"color": style.ink(panels[1]), "linestyle": "--", "linewidth": 1}
            panels[1].axhline(self.tol, label=f"tol = {self.tol:g}", **looks)
            panels[1].legend()
        return self
