"""Observed responses against predicted ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from pyfastr.display import style, traits
from pyfastr.display.axes import Display
from pyfastr.display.observed import finite_score, observe

Array = NDArray[Any]

# Numbers whose largest is between these are drawn as they are: others leave the range of floats
# when areas are worked out.
DRAWN = (1e-100, 1e100)
# Scores that are no smaller than this are written without powers of ten.
PLAIN = -1000.0


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
        pair = (self.target, self.prediction)
        self.r2_ = finite_score("squared", *pair) if enough else np.nan
        scaled = np.array([own / traits.unit_of(own) for own in pair])
        varies = enough and bool((np.ptp(scaled, axis=1) > 0).all())
        self.correlation_ = float(np.corrcoef(scaled)[0, 1]) if varies else np.nan

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
        both = np.array([self.target, self.prediction]) / self._unit()
        ends = [np.min(both), np.max(both)]
        looks = {"color": style.ink(panel), "linestyle": "--", "linewidth": 1, "label": "equal"}
        panel.plot(ends, ends, **looks, zorder=1)
        label = self._label()
        if by_fold and self.folds is not None:
            for place, fold in enumerate(np.unique(self.folds)):
                self._scatter(panel, self.folds == fold, place, f"fold {fold}", kwargs)
            panel.scatter([], [], alpha=0, label=label)
        else:
            self._scatter(panel, np.ones(len(self.target), bool), 0, label, kwargs)
        panel.set_aspect("equal", adjustable="datalim")
        held_out = ", held out" if self.folds is not None else ""
        units = f", in units of {traits.number(self._unit())}" if self._unit() != 1 else ""
        panel.set_xlabel(f"predicted{held_out}{units}")
        panel.set_ylabel(f"observed{units}")
        panel.legend(fontsize="small")
        return self

    def _unit(self) -> float:
        """Return the power of ten in units of which numbers are drawn."""
        size = max(np.abs(own).max(initial=0.0) for own in (self.target, self.prediction))
        if size == 0 or DRAWN[0] < size < DRAWN[1]:
            return 1.0
        return float(10.0 ** max(np.floor(np.log10(size)), -300.0))

    def _label(self) -> str:
        """Write the scores that are defined."""
        named = {"R²": self.r2_, "correlation": self.correlation_}
        return "\n".join(
            f"{name} = {f'{value:.3f}' if value > PLAIN else traits.number(value)}"
            for name, value in named.items()
            if np.isfinite(value)
        )

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
        unit = self._unit()
        panel.scatter(self.prediction[own] / unit, self.target[own] / unit, **{**looks, **kwargs})
