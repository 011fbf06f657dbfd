"""The coefficients along thresholds, all from one solution."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from pyfastr.estimators.coefficient import LazyCoefficient
from pyfastr.estimators.data import Data, scaled
from pyfastr.estimators.fitting import held
from pyfastr.estimators.regressor import FasTRRegressor
from pyfastr.estimators.validation import as_generator, check_tensor_and_response
from pyfastr.estimators.warning import warn
from pyfastr.solver.finish import Finished
from pyfastr.solver.grid import solve_grid
from pyfastr.solver.models import Models
from pyfastr.solver.settings import Settings

Array = NDArray[Any]

# Shares of the largest entry. Above these, sweeps tend to jump between supports for ever.
THRESHOLDS = np.linspace(0, 0.6, 31)


@dataclass(frozen=True)
class FasTRPath:
    """Coefficients along thresholds, as `fastr_path` returns them.

    Terms are in descending order of their scales in `start`, at every threshold the same.

    Attributes
    ----------
    thresholds : ndarray of shape (n_thresholds,)
    factors : list of M ndarrays of shape (n_thresholds, p_m, n_terms)
        Components of unit length; a term that vanished is zero.
    scales : ndarray of shape (n_thresholds, n_terms)
    intercepts : ndarray of shape (n_thresholds,)
    covariate_coefs : ndarray of shape (n_thresholds, n_covariates)
    converged : ndarray of shape (n_thresholds,)
        Whether the sweeps ended by `tol`.
    start : list of M ndarrays of shape (p_m, n_terms)
        The solution without threshold from which all sweeps began; as `init` of a
        `FasTRRegressor` it gives the same model as the path has.
    mode_names, mode_coords : tuple of M str, list of M ndarrays, or None
        Names and coordinates of the modes, if X was an xarray DataArray.
    """

    thresholds: Array
    factors: list[Array]
    scales: Array
    intercepts: Array
    covariate_coefs: Array
    converged: Array
    start: list[Array]
    mode_names: tuple[str, ...] | None = None
    mode_coords: list[Array | None] | None = None

    def coef(self, index: int) -> Array:
        """Build the coefficient at one threshold.

        Parameters
        ----------
        index : int
            Of the threshold.

        Returns
        -------
        ndarray of shape (p1, ..., pM)
        """
        return LazyCoefficient([f[index] for f in self.factors], self.scales[index])()

    @property
    def n_nonzero(self) -> Array:
        """Entries of each mode that are not zero in every term: ``(n_thresholds, M)``."""
        return np.stack([f.any(axis=2).sum(axis=1) for f in self.factors], axis=1)

    def plot(self, axes: Any = None) -> Array:
        """Draw the entries of each mode against the threshold.

        Parameters
        ----------
        axes : sequence of M matplotlib axes, optional
            A new figure by default.

        Returns
        -------
        ndarray of M matplotlib axes
            With a line for each entry and term.
        """
        # By name: pictures are a layer above.
        display = import_module("pyfastr.display").PathDisplay
        return display.from_result(self, axes=axes).axes_


def fastr_path(
    X: Any,
    y: Any,
    *,
    thresholds: Sequence[float] | Array | Literal["auto"] = "auto",
    ridge: float = 1e-5,
    n_terms: int = 1,
    sample_weight: Any = None,
    covariates: Any = None,
    fit_intercept: bool = True,
    refit_support: bool = False,
    symmetry: Literal["auto"] | Sequence[int] | None = "auto",
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 1000,
    tol: float = 1e-3,
    random_state: int | np.random.RandomState | None = None,
) -> FasTRPath:
    """Compute the coefficients along thresholds for a given ridge.

    The best solution without threshold is sought once. From there all thresholds sweep in one
    batch that shares each pass over X.

    Parameters
    ----------
    X : array-like of shape (n_samples, p1, ..., pM)
        M >= 1. Never copied or written to; stored data are read block by block.
    y : array-like of shape (n_samples,)
    thresholds : sequence of float or "auto", default="auto"
        Relative thresholds in [0, 1); "auto" has 31 from 0 to 0.6.
    ridge, n_terms, fit_intercept, symmetry, n_init, max_iter, tol
        As in :class:`FasTRRegressor`.
    sample_weight : array-like of shape (n_samples,), optional
    covariates : array-like of shape (n_samples, n_covariates), optional
    refit_support : bool, default=False
        Whether the non-zero entries at each threshold are fitted anew without it.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Returns
    -------
    FasTRPath

    Examples
    --------
    >>> from pyfastr import fastr_path
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(100, (8, 8), sparsity=0.5, random_state=0)
    >>> path = fastr_path(X, y, thresholds=[0.0, 0.1, 0.5], random_state=0)
    >>> path.coef(1).shape
    (8, 8)
    >>> path.n_nonzero[0], bool((path.n_nonzero[2] < path.n_nonzero[0]).all())
    (array([8, 8]), True)
    """
    grid = _checked_thresholds(thresholds)
    estimator = FasTRRegressor(
        ridge=ridge,
        n_terms=n_terms,
        fit_intercept=fit_intercept,
        refit_support=refit_support,
        symmetry=symmetry,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        random_state=random_state,
    )
    estimator._validate_params()
    _check_no_evidence(refit_support)
    X, y = check_tensor_and_response(estimator, X, y)
    data = Data.check(estimator, X, y, sample_weight, covariates, fit_intercept=fit_intercept)
    settings = _settings(estimator, data)
    rng = as_generator(random_state)
    fits = solve_grid(data.problem, [settings.ridge], grid.tolist(), settings, rng)
    _warn_of_unconverged(grid, fits)
    names, coords = (getattr(estimator, f"mode_{what}_in_", None) for what in ("names", "coords"))
    return replace(_path(data, grid, fits), mode_names=names, mode_coords=coords)


def _settings(estimator: FasTRRegressor, data: Data) -> Settings:
    """Return settings that begin all points at one solution, found as that of a fit is.

    A path is to be followed from one threshold to the next.
    """
    settings = estimator._settings(data.source.shape)
    policy = settings.policy.with_budget(settings.policy.rounds.budget)
    return replace(settings, may_start_sparse=False, policy=policy)


def _path(data: Data, thresholds: Array, fits: Finished) -> FasTRPath:
    """Bring the models of one task into the user's units."""
    unit = float(data.problem.y_scale[0]) / data.problem.x_scale
    order = np.argsort(-fits.begun_from.scales[0], kind="stable")
    factors, scales = _ordered(fits.models, order)
    start, start_scales = _ordered(fits.begun_from, order)
    first = scaled(start[0][0] * start_scales[0], unit)
    nuisance = data.nuisance_coefficients(fits.models, fits.fitted)
    held("The coefficient of intercept or covariates", nuisance, nuisance.dtype, data)
    n_first = int(data.fit_intercept)
    return FasTRPath(
        thresholds=thresholds,
        factors=factors,
        scales=held("The coefficient", scaled(scales, unit), scales.dtype, data),
        intercepts=nuisance[:, 0] if n_first else np.zeros(len(thresholds)),
        covariate_coefs=nuisance[:, n_first:],
        converged=fits.converged,
        start=[held("The start", first, first.dtype, data), *(s[0] for s in start[1:])],
    )


def _ordered(models: Models, order: Array) -> tuple[list[Array], Array]:
    """Return components ``(K, p_m, R)`` and scales with the terms in another order."""
    return [c[:, order].transpose(0, 2, 1) for c in models.components], models.scales[:, order]


def _checked_thresholds(thresholds: Any) -> Array:
    """Return the thresholds as an array."""
    if isinstance(thresholds, str) and thresholds == "auto":
        return THRESHOLDS.copy()
    try:
        grid = np.asarray(thresholds, dtype=float)
    except (TypeError, ValueError):
        grid = np.empty(0)
    if grid.ndim != 1 or not len(grid) or not np.all((grid >= 0) & (grid < 1)):
        raise ValueError(
            f"thresholds is {thresholds!r}; expected 'auto' or a sequence of at least one number "
            "in [0, 1), shares of the largest entry."
        )
    return grid


def _check_no_evidence(refit_support: Any) -> None:
    """Refuse the refit that asks for no threshold."""
    if refit_support == "evidence":
        raise ValueError(
            "refit_support is 'evidence', which chooses the support without a threshold and so has "
            "no path; expected True or False. Use FasTRRegressor for the evidence."
        )


def _warn_of_unconverged(thresholds: Array, fits: Finished) -> None:
    """Say which points of the path to distrust."""
    moving = thresholds[~fits.converged]
    if len(moving):
        warn(
            f"The sweeps did not converge at {len(moving)} of {len(thresholds)} thresholds, the "
            f"smallest {moving.min():.3g}. Raise `max_iter`, `tol` or `ridge`.",
            ConvergenceWarning,
        )
