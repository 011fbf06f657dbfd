"""What regressor and classifier share: from checked data to fitted attributes."""

import os
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.checkpoint import INTERVAL, check_checkpoint
from pyfastr.estimators.coefficient import LazyCoefficient
from pyfastr.estimators.data import Data
from pyfastr.estimators.labels import check_covariate_names
from pyfastr.estimators.namespaces import DispatchMixin
from pyfastr.estimators.outlets import OutletMixin
from pyfastr.estimators.sklearn_private import Interval, StrOptions
from pyfastr.estimators.validation import (
    LinearTensorMixin,
    as_generator,
    check_covariates,
    check_init,
)
from pyfastr.estimators.warning import warn
from pyfastr.estimators.watching import CallbackSupportMixin
from pyfastr.solver.models import Models, settle_signs
from pyfastr.solver.problem import Problem
from pyfastr.solver.solve import Fit, Settings, solve
from pyfastr.sources.namespaces import to_host

Array = NDArray[Any]

CONSTRAINTS: dict[str, list[Any]] = {
    "threshold": [Interval(Real, 0, 1, closed="left"), StrOptions({"theory"})],
    "ridge": [Interval(Real, 0, None, closed="left")],
    "n_terms": [Interval(Integral, 1, None, closed="left")],
    "init": [StrOptions({"mixed", "spectral", "random"}), list, tuple],
    "n_init": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "sweep": [StrOptions({"cyclic", "simultaneous"})],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "fit_intercept": ["boolean"],
    "refit_support": ["boolean", StrOptions({"evidence"})],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "checkpoint": [str, os.PathLike, None],
}
# The constant that the theorem leaves open, with k_m = p_m and d_m = 1, and the largest result.
THEORY_CONSTANT, LARGEST_THRESHOLD = 0.1, 0.9


def theory_threshold(n_samples: int, shape: tuple[int, ...]) -> float:
    r"""Threshold of the order that the paper's theorem asks for.

    .. math:: \lambda = 0.1\,\max_m \Bigl(\frac{\sqrt{k_m}\,\log p_m}{N d_m}\Bigr)^{1/3}

    The theorem leaves the constant open, and nobody knows the number :math:`k_m` of non-zero
    entries or the smallest singular value :math:`d_m` of the projections beforehand: here
    :math:`k_m = p_m` and :math:`d_m = 1`, as for independent elements of unit variance.

    Parameters
    ----------
    n_samples : int
    shape : tuple of int
        Shape of a sample.

    Returns
    -------
    float
    """
    p = np.asarray(shape, float)
    order = np.max(np.sqrt(p) * np.log(np.maximum(p, 2)) / n_samples) ** (1 / 3)
    return float(min(THEORY_CONSTANT * order, LARGEST_THRESHOLD))


class FasTRBase(CallbackSupportMixin, OutletMixin, DispatchMixin, LinearTensorMixin, BaseEstimator):
    """Parameters, the fit of checked data, and the attributes that it leaves."""

    threshold: float | Literal["theory"]
    ridge: float
    n_terms: int
    init: Literal["mixed", "spectral", "random"] | Sequence[Array]
    n_init: int | Literal["auto"]
    sweep: Literal["cyclic", "simultaneous"]
    max_iter: int
    tol: float
    fit_intercept: bool
    refit_support: bool | Literal["evidence"]
    random_state: Any
    verbose: int
    checkpoint: str | os.PathLike[str] | None
    _checkpoint_interval: ClassVar[float] = INTERVAL

    def _fit_data(self, data: Data, known: Models | None = None) -> Fit:
        """Solve, beginning from solutions of folds if there are any, and set the attributes."""
        problem = data.problem
        settings = self._settings(data.source.shape, known)
        solution = solve(problem, settings, as_generator(self.random_state))
        self._set_factors(data, solution.models)
        self._set_nuisance(data, data.nuisance_coefficients(solution.models, solution.fitted)[0])
        self._set_history(problem, solution)
        self._warn(problem, solution)
        return solution

    def _with_covariates(self, X: Any, covariates: Any) -> Array:
        """``<coef_, X_i>``, intercept and covariates."""
        check_is_fitted(self)
        prediction = self._linear_prediction(X)
        own: Array | None = to_host(getattr(self, "covariate_coef_", None))
        expected = 0 if own is None else len(own)
        check_covariate_names(self, covariates)
        Z = check_covariates(covariates, len(prediction), expected=expected)
        return prediction if Z is None else prediction + (Z @ own).astype(prediction.dtype)

    @property
    def coef_(self) -> Array:  # type: ignore[override]
        return self._coefficient()

    def _settings(self, x_shape: tuple[int, ...], known: Models | None = None) -> Settings:
        """Translate the parameters for the solver."""
        threshold = self.threshold
        if isinstance(threshold, str):
            threshold = theory_threshold(x_shape[0], x_shape[1:])
        settings = solver_settings(self, x_shape, threshold, self.ridge, self.n_terms)
        return replace(settings, known=known) if self.n_init == "auto" else settings

    def _set_factors(self, data: Data, models: Models) -> None:
        """Read factors and scales off one model, in the user's units and type."""
        dtype, problem = data.source.dtype, data.problem
        y_scale = float(problem.y_scale[models.task[0]])
        scales = models.scales[0] * (y_scale / problem.x_scale)
        order = np.argsort(-scales, kind="stable")
        with np.errstate(over="ignore"):
            typed = scales[order].astype(dtype)
        if not np.isfinite(typed).all():
            raise ValueError(
                f"The coefficient is of size {scales.max():.3g}, which {dtype} cannot hold: X "
                f"is of size {problem.x_scale:.3g} and y of size {y_scale:.3g}. "
                "Rescale one."
            )
        self.factors_ = [
            np.ascontiguousarray(c[0][order].T.astype(dtype, copy=False))
            for c in settle_signs(models.components)
        ]
        self.scales_ = typed
        self._coefficient = LazyCoefficient(self.factors_, self.scales_)

    def _set_nuisance(self, data: Data, found: Array) -> None:
        """Take over intercept and covariates."""
        self.intercept_ = float(found[0]) if self.fit_intercept else 0.0
        if data.covariates is not None:
            self.covariate_coef_ = found[int(self.fit_intercept) :]
        elif hasattr(self, "covariate_coef_"):
            del self.covariate_coef_

    def _set_history(self, problem: Problem, solution: Fit) -> None:
        """Keep what a person needs to judge convergence."""
        history = solution.history
        loss = np.array([row[0] for row in history.loss])
        self.history_ = {
            "loss": problem.loss.in_units_of_y(loss, float(problem.y_scale[0])),
            "change": np.array([row[0] for row in history.change]),
        }
        self.n_iter_ = len(history.loss)
        self.converged_ = bool(solution.converged[0])
        self.starts_ = solution.starts
        if self.refit_support == "evidence":
            self.evidence_ = solution.evidence

    def _warn(self, problem: Problem, solution: Fit) -> None:
        """Say what a person should not miss."""
        if not solution.models.scales.any():
            warn_of_zero(problem)
        elif not self.converged_:
            warn(
                f"The sweeps did not converge: W still changed by {self.history_['change'][-1]:.2g}"
                f" of its size in sweep {self.n_iter_}. Raise `max_iter` or `tol`, or raise "
                "`ridge`.",
                ConvergenceWarning,
            )


def solver_settings(
    params: Any, x_shape: tuple[int, ...], threshold: float, ridge: float, n_terms: int
) -> Settings:
    """Translate parameters that estimators and their CV twins share, at one point of a grid."""
    shape = tuple(x_shape[1:])
    if len(shape) == 1 and n_terms > 1:
        raise ValueError(
            f"n_terms is {n_terms}, but the samples are vectors of shape {shape}, whose "
            "coefficient is one vector; expected n_terms=1 for 2-D X."
        )
    init: Any = params.init
    if not isinstance(init, str):
        init = check_init(init, shape, n_terms)
    return Settings(
        threshold=float(threshold),
        ridge=float(ridge),
        n_terms=int(n_terms),
        init=init,
        n_init=params.n_init,
        order=params.sweep,
        max_iter=int(params.max_iter),
        tol=float(params.tol),
        refit_support=params.refit_support,
    )


def check_together(estimator: Any) -> None:
    """Refuse parameters that do not go together, such as the evidence of a loss that has none."""
    check_checkpoint(estimator)
    for name, other in (("refit_support", "True or False"), ("criterion", "'cv'")):
        if getattr(estimator, name, None) == "evidence" and estimator.loss != "squared":
            raise ValueError(
                f"{name} is 'evidence' and loss is {estimator.loss!r}, but the evidence is that of "
                f"the squared loss; expected {name}={other}, or loss='squared'."
            )


def warn_of_zero(problem: Problem) -> None:
    """Say why a coefficient is zero."""
    reason = (
        "X does not vary, or the threshold emptied a mode. Check X, or lower `threshold`."
        if problem.samples.response.any()
        else "y is constant, or intercept and covariates explain all of it. Check y."
    )
    warn(f"The coefficient is zero: {reason}", ConvergenceWarning)
