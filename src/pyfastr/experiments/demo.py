"""A three-dimensional problem of the paper, fitted and compared: what `pyfastr demo` shows."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from pyfastr.baselines import PublishedFasTR
from pyfastr.datasets import make_tensor_regression
from pyfastr.display.document import Figure, Section, Strong, Table
from pyfastr.display.report import Report, model_report
from pyfastr.estimators import FasTRRegressorCV
from pyfastr.experiments.demo_figure import draw_comparison
from pyfastr.experiments.figures import render
from pyfastr.metrics import coefficient_error, support_precision, support_recall

Array = NDArray[Any]
Pair = tuple[Array, Array]

SHAPE, N_TRAIN, N_TEST = (20, 20, 20), 100, 400
HEADER = ("method", "seconds", "CE", "held-out R²", "precision", "recall", "starts that agreed")
TITLE = "pyfastr on a problem of the paper"
TASK = (
    f"{N_TRAIN} samples of shape {'×'.join(map(str, SHAPE))}, so {int(np.prod(SHAPE))} unknown "
    "entries. The true coefficient is an outer product of three vectors with a fifth of their "
    f"entries zero. R² is on {N_TEST} further samples."
)
_MEASURES = (
    "CE is the error of the coefficient relative to its size: 0 is the truth, 1 is no better than "
    "a coefficient of zeros. Precision is the share of the selected entries that are truly "
    "non-zero, recall the share of the truly non-zero entries that are selected."
)
_STARTS = (
    "The last column counts the starts that were carried to the end and reached the solution; "
    "“sure” means that more starts would hardly find a better one."
)
_ALT = (
    "The true coefficient, seen along mode 2, beside those found by FasTRRegressorCV, the "
    "published algorithm and the lasso; below, the factors of the truth and of FasTRRegressorCV."
)


@dataclass(frozen=True)
class Fitted:
    """A fitted method.

    Attributes
    ----------
    name : str
    model : estimator
    coef : ndarray of shape (p1, ..., pM)
    seconds : float
    measures : dict of float
        By the names of `HEADER`.
    """

    name: str
    model: Any
    coef: Array
    seconds: float
    measures: dict[str, float] = field(default_factory=dict)

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        digits = {"CE": 4, "held-out R²": 4}
        values = [f"{value:.{digits.get(k, 3)}f}" for k, value in self.measures.items()]
        return [self.name, f"{self.seconds:.2f}", *values, _agreement(self.model)]


@dataclass(frozen=True)
class Demo:
    """What the demo came to.

    Attributes
    ----------
    fits : list of Fitted
        Ours first.
    truth : ndarray of shape (p1, ..., pM)
    test : tuple of ndarrays
        Samples that no fit has seen, and their responses.
    """

    fits: list[Fitted]
    truth: Array
    test: Pair

    @property
    def choice(self) -> str:
        """Which parameters were chosen, from how many."""
        model = self.fits[0].model
        n_folds, n_points = model.scores_path_.shape[-1], len(model.cv_results_["params"])
        return (
            f"{self.fits[0].name} chose threshold {model.threshold_:g} and ridge {model.ridge_:g} "
            f"from {n_points} pairs by {n_folds} folds, whose mean held-out R² is "
            f"{model.best_score_:.4f}."
        )

    def figure(self) -> Figure:
        """Draw the coefficients and factors.

        Returns
        -------
        Figure
        """
        found = [(fit.name, f"CE {fit.measures['CE']:.4f}", fit.coef) for fit in self.fits]
        drawing = draw_comparison(found, self.truth)
        return render(drawing, "coefficient", "What they found", _ALT, ())

    def report(self, figure: Figure) -> Report:
        """Describe our model, and compare it with the others.

        Parameters
        ----------
        figure : Figure

        Returns
        -------
        Report
        """
        ours, *others = [fit.cells for fit in self.fits]
        rows: Sequence[Sequence[str]] = [[Strong(cell) for cell in ours], *others]
        table = Table("How they did", HEADER, rows, notes=[_MEASURES, _STARTS])
        section = Section("others", "Beside other methods", [TASK, self.choice], [table, figure])
        X, y = self.test
        return model_report(self.fits[0].model, X=X, y=y, title=TITLE, extra_sections=[section])


def run_demo(tell: Callable[[str], None], verbose: int = 0) -> Demo:
    """Draw the data and fit every method.

    Parameters
    ----------
    tell : callable
        Is given the name of each method before its fit.
    verbose : int, default=0
        Of our estimator.

    Returns
    -------
    Demo
    """
    X, y, W = make_tensor_regression(N_TRAIN + N_TEST, SHAPE, coef=True, random_state=0)
    train, test = (X[:N_TRAIN], y[:N_TRAIN]), (X[N_TRAIN:], y[N_TRAIN:])
    fits = []
    for name, model in _methods(verbose).items():
        tell(name)
        fits.append(_evaluate(name, model, train, test, W))
    fits[0].model.set_params(verbose=0)
    return Demo(fits, W, test)


def _methods(verbose: int) -> dict[str, Any]:
    """Return what is compared. The lasso sees every sample as one long vector."""
    flatten = FunctionTransformer(lambda X: X.reshape(len(X), -1))
    return {
        "FasTRRegressorCV": FasTRRegressorCV(random_state=0, verbose=verbose),
        "PublishedFasTR": PublishedFasTR(random_state=0),
        "LassoCV": make_pipeline(flatten, LassoCV(cv=5)),
    }


def _evaluate(name: str, model: Any, train: Pair, test: Pair, W: Array) -> Fitted:
    """Fit one method and measure it against the truth and on the held-out samples."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        # That a method which is compared did not converge shows in its error.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*train)
    seconds = time.perf_counter() - begin
    coef = model[-1].coef_.reshape(SHAPE) if hasattr(model, "steps") else model.coef_
    values = (
        coefficient_error(coef, W),
        model.score(*test),
        support_precision(coef, W),
        support_recall(coef, W),
    )
    measures = {key: float(value) for key, value in zip(HEADER[2:6], values, strict=True)}
    return Fitted(name, model, coef, seconds, measures)


def _agreement(model: Any) -> str:
    """Say how many starts ended in the solution, where there were several."""
    starts = getattr(model, "starts_", None)
    if starts is None:
        return "–"
    return f"{starts.n_hits} of {starts.n_polished}{', sure' if starts.sure else ''}"
