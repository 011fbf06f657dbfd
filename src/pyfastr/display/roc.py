"""The ROC curve of a classifier."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import roc_auc_score, roc_curve

from pyfastr.display import style
from pyfastr.display.axes import Display
from pyfastr.display.fitted import attribute_of
from pyfastr.display.observed import observe

Array = NDArray[Any]


class RocDisplay(Display):
    """True against false positives for all cut-offs of the decision.

    Parameters
    ----------
    target : ndarray of shape (n,)
        True or 1 for the positive class.
    decision : ndarray of shape (n,)
    folds : ndarray of int of shape (n,), optional
        The fold that held out each sample; each has a thin curve of its own.
    positive : str, optional
        Name of the positive class.

    Attributes
    ----------
    fpr_, tpr_ : ndarray
        The curve of all samples together.
    roc_auc_ : float
        Area under it.
    ax_ : matplotlib axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from pyfastr import FasTRClassifier
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.display import RocDisplay
    >>> X, y = make_tensor_regression(120, (5, 4), random_state=0)
    >>> model = FasTRClassifier(random_state=0).fit(X[:80], y[:80] > 0)
    >>> bool(RocDisplay.from_estimator(model, X[80:], y[80:] > 0).roc_auc_ > 0.9)
    True
    """

    def __init__(
        self,
        target: Array,
        decision: Array,
        folds: Array | None = None,
        *,
        positive: str | None = None,
    ) -> None:
        self.target = np.asarray(target).astype(bool)
        self.decision = np.asarray(decision, float)
        self.folds = None if folds is None else np.asarray(folds)
        self.positive = positive
        if self.target.all() or not self.target.any():
            raise ValueError(
                "target has samples of one class only, which have no ROC curve; expected samples "
                "of both classes."
            )
        self.fpr_, self.tpr_, _ = roc_curve(self.target, self.decision)
        self.roc_auc_ = float(roc_auc_score(self.target, self.decision))

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
    ) -> "RocDisplay":
        """Draw how well a fitted classifier tells classes apart.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted classifier.
        X : array-like of shape (n_samples, p1, ..., pM), optional
            Without X and y, the held-out samples of a choice by folds.
        y : array-like of shape (n_samples,), optional
            Labels as in the fit.
        covariates : array-like of shape (n_samples, n_covariates), optional
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        RocDisplay
        """
        if not is_classifier(estimator):
            raise TypeError(
                f"estimator is a {type(estimator).__name__}; expected a classifier. Use "
                "PredictionDisplay for regressors."
            )
        positive = attribute_of(estimator, "classes_")[1]
        seen = observe(estimator, X, y, covariates, "decision_function")
        # Held-out targets are the places of labels in `classes_`.
        target = seen.target == (positive if X is not None else 1)
        display = cls(target, seen.prediction, seen.folds, positive=str(positive))
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "RocDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            A new figure by default.
        **kwargs : dict
            For the curve of all samples, as `Axes.plot` takes them.

        Returns
        -------
        RocDisplay
        """
        panel = self._take_axes("ax", ax, 1, width=4.2, height=4.2)[0]
        chance = {"color": style.ink(panel), "linestyle": "--", "linewidth": 1, "label": "chance"}
        panel.plot([0, 1], [0, 1], **chance, zorder=1)
        for number, (fpr, tpr) in enumerate(self.fold_curves()):
            looks = {"color": style.faint(panel), "linewidth": 0.8, "zorder": 1.5}
            panel.plot(fpr, tpr, **looks, label="single folds" if number == 0 else None)
        looks = {"color": style.hue(panel, 0), "linewidth": 2}
        looks["label"] = f"area = {self.roc_auc_:.3f}"
        panel.plot(self.fpr_, self.tpr_, **{**looks, **kwargs})
        self._finish(panel)
        return self

    def fold_curves(self) -> list[tuple[Array, Array]]:
        """Return false and true positives of each fold that holds out both classes."""
        if self.folds is None:
            return []
        parts = [self.folds == fold for fold in np.unique(self.folds)]
        both = [own for own in parts if len(np.unique(self.target[own])) == 2]
        return [roc_curve(self.target[own], self.decision[own])[:2] for own in both]

    def _finish(self, panel: Any) -> None:
        """Name the axes."""
        of = "" if self.positive is None else f" ({self.positive})"
        held_out = "" if self.folds is None else ", held out"
        panel.set_xlabel(f"false positive rate{held_out}")
        panel.set_ylabel(f"true positive rate{of}")
        panel.set_aspect("equal")
        panel.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        panel.legend(loc="lower right", fontsize="small")
