"""Observed responses against predicted ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import r2_score

from pyfastr.display import style
from pyfastr.display.axes import Display
from pyfastr.display.observed import observe

Array = NDArray[Any]


class PredictionDisplay(Display):
    """Observed against predicted responses, with the line on which they are equal.

    Parameters
    ----------
    target, prediction : ndarray of shape (n,)
    folds : ndarray of int of shape (n,), optional
        The fold that held out each sample.

    Attributes
    ----------
    r2_ : float
        R² of all predictions together.
    correlation_ : float
        NaN where either does not vary.
    ax_ : matplotlib axes
    figure_ : matplotlib.figure.Figure

    See Also
    --------
    RocDisplay : For classifiers.

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.display import PredictionDisplay
    >>> X, y = make_tensor_regression(100, (5, 4), noise=0.1, random_state=0)
    >>> model = FasTRRegressor(random_state=0).fit(X[:80], y[:80])
    >>> bool(PredictionDisplay.from_estimator(model, X[80:], y[80:]).r2_ > 0.9)
    True
    """

    def __init__(self, target: Array, prediction: Array, folds: Array | None = None) -> None:
        self.target = np.asarray(target, float)
        self.prediction = np.asarray(prediction, float)
        self.folds = None if folds is None else np.asarray(folds)
        enough = len(self.target) > 1
        self.r2_ = float(r2_score(self.target, self.prediction)) if enough else np.nan
        varies = enough and np.ptp(self.target) > 0 and np.ptp(self.prediction) > 0
        pair = (self.target, self.prediction)
        self.correlation_ = float(np.corrcoef(*pair)[0, 1]) if varies else np.nan

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        covariates: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "PredictionDisplay":
        """Draw what a fitted model predicts.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted regressor.
        X : array-like of shape (n_samples, p1, ..., pM), optional
            Without X and y, the held-out samples of a choice by folds. Samples that the model was
            fitted to look better predicted than new ones.
        y : array-like of shape (n_samples,), optional
        covariates : array-like of shape (n_samples, n_covariates), optional
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        PredictionDisplay
        """
        if is_classifier(estimator):
            raise TypeError(
                f"estimator is a {type(estimator).__name__}; expected a regressor. Use RocDisplay "
                "for classifiers."
            )
        seen = observe(estimator, X, y, covariates, "predict")
        return cls(seen.target, seen.prediction, seen.folds).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, by_fold: bool = False, **kwargs: Any) -> "PredictionDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            A new figure by default.
        by_fold : bool, default=False
            Whether folds differ in colour and mark, where there are folds.
        **kwargs : dict
            For the points, as `Axes.scatter` takes them.

        Returns
        -------
        PredictionDisplay
        """
        panel = self._take_axes("ax", ax, 1, width=4.2, height=4.2)[0]
        ends = [np.min([self.target, self.prediction]), np.max([self.target, self.prediction])]
        looks = {"color": style.ink(panel), "linestyle": "--", "linewidth": 1, "label": "equal"}
        panel.plot(ends, ends, **looks, zorder=1)
        label = f"R² = {self.r2_:.3f}\ncorrelation = {self.correlation_:.3f}"
        if by_fold and self.folds is not None:
            for place, fold in enumerate(np.unique(self.folds)):
                self._scatter(panel, self.folds == fold, place, f"fold {fold}", kwargs)
            panel.scatter([], [], alpha=0, label=label)
        else:
            self._scatter(panel, np.ones(len(self.target), bool), 0, label, kwargs)
        panel.set_aspect("equal", adjustable="datalim")
        held_out = self.folds is not None
        panel.set_xlabel("predicted, held out" if held_out else "predicted")
        panel.set_ylabel("observed")
        panel.legend(fontsize="small")
        return self

    def _scatter(
        self, panel: Any, own: Array, place: int, label: str, kwargs: dict[str, Any]
    ) -> None:
        """Draw some of the points."""
        looks = {
            "color": style.hue(panel, place),
            "marker": style.marker(place),
            "s": 18,
            "alpha": 0.7,
            "linewidths": 0,
            "label": label,
        }
        panel.scatter(self.prediction[own], self.target[own], **{**looks, **kwargs})
