"""What regressor and classifier share: from checked data to fitted attributes."""

import os
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pyfastr.engines.parallel import blas_for
from pyfastr.estimators.checkpoint import INTERVAL, check_checkpoint
from pyfastr.estimators.coefficient import LazyCoefficient
from pyfastr.estimators.data import Data, scaled
from pyfastr.estimators.labels import check_covariate_names
from pyfastr.estimators.linear import LinearTensorMixin, check_prediction
from pyfastr.estimators.namespaces import DispatchMixin
from pyfastr.estimators.outlets import OutletMixin
from pyfastr.estimators.outputs import outputs_of
from pyfastr.estimators.sklearn_private import Interval, StrOptions
from pyfastr.estimators.validation import as_generator, check_covariates, check_init
from pyfastr.estimators.warning import warn
from pyfastr.estimators.watching import CallbackSupportMixin
from pyfastr.solver.models import Models, settle_signs
from pyfastr.solver.problem import Problem
from pyfastr.solver.settings import Settings
from pyfastr.solver.solve import Fit, solve
from pyfastr.sources.namespaces import to_host

Array = NDArray[Any]

# Any coefficient is zero long before, and float32 can add it to what X has.
LARGEST_RIDGE = 1e30
CONSTRAINTS: dict[str, list[Any]] = {
    "threshold": [Interval(Real, 0, 1, closed="left"), StrOptions({"theory"})],
    "ridge": [Interval(Real, 0, LARGEST_RIDGE, closed="both")],
    "n_terms": [Interval(Integral, 1, None, closed="left")],
    "init": [StrOptions({"mixed", "spectral", "random"}), list, tuple],
    "n_init": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "sweep": [StrOptions({"cyclic", "simultaneous"})],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "fit_intercept": ["boolean"],
    "refit_support": ["boolean", StrOptions({"evidence"})],
    "symmetry": [StrOptions({"auto"}), "array-like", None],
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
    symmetry: Literal["auto"] | Sequence[int] | None
    random_state: Any
    verbose: int
    checkpoint: str | os.PathLike[str] | None
    _checkpoint_interval: ClassVar[float] = INTERVAL
    _remedies = "Raise `max_iter` or `tol`, or raise `ridge`."

    def _fit_data(self, data: Data, known: Models | None = None) -> Fit:
        """Solve, beginning from solutions of folds if there are any, and set the attributes."""
        problem = data.problem
        settings = self._settings(data.source.shape, known)
        if settings.refit_support == "evidence":
            check_evidence(settings.n_terms, problem)
        with blas_for(data.source):
            solution = solve(problem, settings, as_generator(self.random_state))
        self._set_factors(data, solution.models)
        self._set_nuisance(data, data.nuisance_coefficients(solution.models, solution.fitted))
        self._set_history(data, solution)
        self.design_ = _own(data, solution.designs)
        self._warn(data, solution)
        return solution

    def _with_covariates(self, X: Any, covariates: Any) -> Array:
        """``<coef_, X_i>``, intercept and covariates."""
        check_is_fitted(self)
        prediction = self._linear_prediction(X)
        own: Any = to_host(getattr(self, "covariate_coef_", None))
        expected = 0 if own is None else own.shape[-1]
        check_covariate_names(self, covariates)
        Z = check_covariates(covariates, len(prediction), expected=expected)
        if Z is None or own is None:
            return prediction
        with np.errstate(over="ignore", invalid="ignore"):
            return check_prediction(prediction + (Z @ own.T).astype(prediction.dtype))

    @property
    def outputs_(self) -> list[Any]:
        """Each of several outputs, or of more than two classes, as a fitted model of one."""
        return outputs_of(self)

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
        """Read factors and scales off one model an output, in the user's units and type."""
        parts = [_typed(data, models.take(slice(k, k + 1))) for k in range(len(models))]
        each = parts[0] if data.n_outputs is None else map(np.stack, zip(*parts, strict=True))
        self.scales_, *self.factors_ = each
        self._coefficient = LazyCoefficient(self.factors_, self.scales_)

    def _set_nuisance(self, data: Data, found: Array) -> None:
        """Take over intercept and covariates ``(T, q)``."""
        first = int(self.fit_intercept)
        held("The intercept", found[:, :first], data.source.dtype, data)
        own = found[:, 0].copy() if self.fit_intercept else np.zeros(len(found))
        self.intercept_ = own if data.n_outputs else float(own[0])
        if data.covariates is not None:
            others = held("The coefficient of covariates", found[:, first:], found.dtype, data)
            self.covariate_coef_ = others if data.n_outputs else others[0]
        elif hasattr(self, "covariate_coef_"):
            del self.covariate_coef_

    def _set_history(self, data: Data, solution: Fit) -> None:
        """Keep what a person needs to judge convergence."""
        history = solution.history
        loss, change = np.transpose(history.loss), np.transpose(history.change)
        units = zip(loss, data.problem.y_scale.tolist(), strict=True)
        loss = np.stack([data.loss.in_units_of_y(row, scale) for row, scale in units])
        self.history_ = {"loss": _own(data, loss), "change": _own(data, change)}
        n_iter = np.count_nonzero(~np.isnan(change), axis=1)
        self.n_iter_ = n_iter if data.n_outputs else int(n_iter[0])
        self.converged_ = solution.converged if data.n_outputs else bool(solution.converged[0])
        self.starts_ = _own(data, solution.starts)
        if self.refit_support == "evidence":
            self.evidence_ = solution.evidence if data.n_outputs else float(solution.evidence[0])
        else:
            self.__dict__.pop("evidence_", None)

    def _warn(self, data: Data, solution: Fit) -> None:
        """Say what a person should not miss."""
        zero = np.logical_not(solution.models.scales.any(axis=1))
        if zero.any():
            warn_of_zero(data, zero)
        still_moving = np.flatnonzero(~solution.converged & ~zero)
        if not len(still_moving):
            return
        sweeps = np.asarray(solution.history.change)
        change = max(own[~np.isnan(own)][-1] for own in sweeps.T[still_moving])
        warn(
            f"The sweeps{_of_outputs(data, still_moving)} did not converge: W still changed by "
            f"{change:.2g} of its size in sweep {len(sweeps)}. {self._remedies}",
            ConvergenceWarning,
        )


def held(what: str, values: Array, dtype: Any, data: Data) -> Array:
    """Return values in a type that can hold them; it is an error if it cannot."""
    with np.errstate(over="ignore"):
        typed = values.astype(dtype)
    if not np.isfinite(typed).all():
        sizes = {"X": data.largest_entry, "y": np.abs(data.y).max()}
        if data.covariates is not None:
            sizes["covariates"] = np.abs(data.covariates).max(initial=0.0)
        given = ", ".join(f"{name} is of size {size:.3g}" for name, size in sizes.items())
        size = np.abs(values).max()
        much = f"of size {size:.3g}" if np.isfinite(size) else "beyond 1.8e308"
        raise ValueError(
            f"{what} is {much}, which {dtype} cannot hold: {given}; expected sizes nearer to each "
            "other. Rescale one."
        )
    return typed


def solver_settings(
    params: Any, x_shape: tuple[int, ...], threshold: float, ridge: float, n_terms: int
) -> Settings:
    """Translate parameters that estimators and their CV twins share, at one point of a grid."""
    shape = tuple(x_shape[1:])
    check_n_terms([n_terms], x_shape)
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


def terms_needed(shape: tuple[int, ...]) -> int:
    """Return how many unit-rank terms every coefficient of a shape is a sum of."""
    return prod(shape) // max(shape)


def check_n_terms(n_terms: Sequence[int], x_shape: tuple[int, ...]) -> None:
    """Refuse more terms than any coefficient needs, or than samples can tell apart."""
    n_samples, shape = x_shape[0], tuple(x_shape[1:])
    most, asked = terms_needed(shape), max(n_terms)
    if len(shape) == 1 and asked > 1:
        raise ValueError(
            f"n_terms is {asked}, but the samples are vectors of shape {shape}, whose "
            "coefficient is one vector; expected n_terms=1 for 2-D X."
        )
    if asked > most:
        raise ValueError(
            f"n_terms is {asked}, but every coefficient of shape {shape} is a sum of {most} "
            f"unit-rank terms: {prod(shape)} entries, {max(shape)} in each; expected at most "
            f"{most}."
        )
    if asked > n_samples:
        raise ValueError(
            f"n_terms is {asked}, but {n_samples} samples can be fitted exactly by as many terms; "
            f"expected at most {n_samples}."
        )


def check_evidence(n_terms: int, problem: Problem) -> None:
    """Refuse terms among whose supports samples cannot choose."""
    n_samples, n_free = int(problem.n_effective.min()), int(problem.degrees_of_freedom(1).max())
    most = max(1, n_samples // n_free)
    if n_terms > most:
        raise ValueError(
            f"n_terms is {n_terms} and refit_support is 'evidence', but {n_samples} samples can "
            f"choose the supports of {most} with {n_free} free parameters each; expected "
            f"n_terms={most} or less, or refit_support=True."
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


def _own(data: Data, values: Any) -> Any:
    """Return values of all outputs, or that of the only one."""
    return values if data.n_outputs or values is None else values[0]


def _typed(data: Data, one: Models) -> tuple[Array, ...]:
    """Return scales ``(n_terms,)`` and factors of one model, in the user's units and type."""
    dtype, problem = data.source.dtype, data.problem
    y_scale = float(problem.y_scale[one.task[0]])
    scales = scaled(one.scales[0], y_scale / problem.x_scale)
    order = np.argsort(-scales, kind="stable")
    typed = held("The coefficient", scales[order], dtype, data)
    factors = (
        np.ascontiguousarray(c[0][order].T.astype(dtype, copy=False))
        for c in settle_signs(one.components)
    )
    return typed, *factors


def warn_of_zero(data: Data, zero: Array) -> None:
    """Say why the coefficients of some outputs are zero."""
    varies = data.problem.samples.response.any(axis=1)
    varies = varies.reshape(-1, data.n_outputs or 1).any(axis=0)
    lower = "lower `threshold`, or `thresholds` of a CV estimator"
    for why, which in (
        (
            f"X does not vary, or a threshold emptied a mode. Check X; if it varies, {lower}.",
            varies,
        ),
        ("y is constant, or intercept and covariates explain all of it. Check y.", ~varies),
    ):
        own = np.flatnonzero(zero & which)
        if len(own):
            warn(f"The coefficient{_of_outputs(data, own)} is zero: {why}", ConvergenceWarning)


def _of_outputs(data: Data, which: Array) -> str:
    """Name outputs in a warning, if there are several."""
    return f" of output {', '.join(map(str, which))}" if data.n_outputs else ""
