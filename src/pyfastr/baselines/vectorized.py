"""Lasso and elastic net on vectorised samples, by the solvers of others."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import Interval, StrOptions

from pyfastr.baselines.samples import FlatSamples, flatten, store_coefficient
from pyfastr.baselines.values import check_values
from pyfastr.estimators.validation import LinearTensorMixin

Array = NDArray[Any]

# celer's working sets pay where most features are never looked at: with many features, and at
# penalties that leave scikit-learn many sweeps to do. See benchmarks/baselines.py.
_CELER_MIN_FEATURES_PER_SAMPLE = 2
_CELER_MAX_ALPHA = 0.3


class PathSolver(NamedTuple):
    """How to solve for a coefficient: the solver's name, tolerance and limit."""

    name: str
    tol: float
    max_iter: int


class _VectorizedRegressor(LinearTensorMixin, RegressorMixin, BaseEstimator):
    """What both share: one penalty or the choice of it by cross-validation."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"cv"})],
        "n_alphas": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object"],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto", "celer", "sklearn"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    alpha: float | str
    n_alphas: int
    cv: Any
    fit_intercept: bool
    solver: str
    max_iter: int
    tol: float

    def _fit_ratios(self, X: Any, y: Any, ratios: Array) -> None:
        """Fit the given penalty, or the best of all ratios and of a grid of penalties."""
        samples = flatten(self, X, y, fit_intercept=self.fit_intercept)
        largest = float(np.abs(samples.y @ samples.X).max()) / len(samples.y)
        alpha, ratio = self.alpha, float(ratios[0])
        if isinstance(alpha, str):
            alpha, ratio = self._choose(samples, ratios, largest)
        self.alpha_, self.l1_ratio_ = float(alpha), ratio
        share = self.alpha_ * ratio / largest if largest else 1.0
        solver = self._path_solver(samples.X.shape, share)
        with _one_warning(f"{type(self).__name__}(alpha={self.alpha_:.4g})", stacklevel=6):
            coefs, n_iters = _path(*_copies(samples), [self.alpha_], ratio, solver)
        store_coefficient(self, coefs[:, 0], samples)
        self.n_iter_ = int(n_iters[0])

    def _choose(self, samples: FlatSamples, ratios: Array, largest: float) -> tuple[float, float]:
        """Return the penalty and the ratio of the least mean squared error left out."""
        # Without any correlation every penalty gives zero; the grid must still be a grid.
        tops = (largest or 1.0) / ratios
        self.alphas_ = np.stack([np.geomspace(top, 1e-3 * top, self.n_alphas) for top in tops])
        folds = list(check_cv(self.cv).split(samples.X, samples.y))
        solver = self._path_solver(samples.X.shape, 0.0)
        with _one_warning(f"The cross-validation of {type(self).__name__}", stacklevel=7):
            errors = [
                [
                    _held_out_errors(
                        samples, fold, alphas, float(ratio), solver, self.fit_intercept
                    )
                    for fold in folds
                ]
                for alphas, ratio in zip(self.alphas_, ratios, strict=True)
            ]
        self.mse_path_: Array = np.moveaxis(np.array(errors), 1, 2)
        best = np.unravel_index(self.mse_path_.mean(axis=2).argmin(), self.alphas_.shape)
        return float(self.alphas_[best]), float(ratios[best[0]])

    def _path_solver(self, shape: tuple[int, ...], alpha_share: float) -> PathSolver:
        """Choose the faster solver for this size and penalty, unless one was asked for."""
        n_samples, n_features = shape
        wide = n_features >= _CELER_MIN_FEATURES_PER_SAMPLE * n_samples
        faster = wide and alpha_share <= _CELER_MAX_ALPHA and _has_celer()
        automatic = "celer" if faster else "sklearn"
        return PathSolver(
            automatic if self.solver == "auto" else self.solver, self.tol, self.max_iter
        )


class VectorizedLasso(_VectorizedRegressor):
    r"""Lasso on vectorised samples, with the penalty chosen by cross-validation.

    .. math:: \min_{w, b} \frac{1}{2N} \lVert y - X w - b\rVert^2 + \alpha \lVert w\rVert_1,

    where the rows of X are the flattened samples. The solver is celer's or scikit-learn's.

    Parameters
    ----------
    alpha : float or "cv", default="cv"
        The penalty, as in :class:`sklearn.linear_model.Lasso`; "cv": chosen from a path of
        penalties as :class:`sklearn.linear_model.LassoCV` does.
    n_alphas : int, default=100
        Number of penalties on the path, from the smallest that gives zero down to a
        thousandth of it.
    cv : int, cross-validation generator or iterable, default=5
        The folds.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    solver : {"auto", "celer", "sklearn"}, default="auto"
        "auto" takes the faster one: celer for samples of many more elements than there are
        samples, if it is installed (``pip install pyfastr[baselines]``).
    max_iter : int, default=1000
        Largest number of sweeps of coordinate descent, or of working sets of celer.
    tol : float, default=1e-4
        Stop at a duality gap of this, relative to the squared norm of y.

    Attributes
    ----------
    coef_ : ndarray of shape (p1, ..., pM)
        The coefficient W.
    intercept_ : float
        0.0 if there is no intercept.
    alpha_ : float
        The penalty of the fit.
    alphas_ : ndarray of shape (1, n_alphas)
        The path; only with ``alpha="cv"``.
    mse_path_ : ndarray of shape (1, n_alphas, n_folds)
        Mean squared errors on the folds left out; only with ``alpha="cv"``.
    n_iter_ : int
        Iterations of the last fit.
    tensor_shape_in_ : tuple of int
        Shape ``(p1, ..., pM)`` of a sample.
    n_features_in_ : int
        Size of the first mode.
    param_grid_ : dict
        A grid for :class:`~sklearn.model_selection.GridSearchCV`; ``alpha="cv"`` is faster.

    Notes
    -----
    The shape of the samples plays no part. A copy of X in float64 is made, and during
    cross-validation a second one of the samples of a fold.

    References
    ----------
    R. Tibshirani. Regression shrinkage and selection via the lasso. Journal of the Royal
    Statistical Society B 58, 1996.

    M. Massias, A. Gramfort, J. Salmon. Celer: a fast solver for the lasso with dual
    extrapolation. International Conference on Machine Learning, 2018.

    Examples
    --------
    >>> from pyfastr.baselines import VectorizedLasso
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(200, (8, 6), random_state=0)
    >>> model = VectorizedLasso().fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    param_grid_: ClassVar[dict[str, list[Any]]] = {"alpha": np.logspace(-3, 2, 16).tolist()}

    def __init__(
        self,
        alpha: float | str = "cv",
        *,
        n_alphas: int = 100,
        cv: Any = 5,
        fit_intercept: bool = True,
        solver: str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        self.alpha = alpha
        self.n_alphas = n_alphas
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> "VectorizedLasso":
        """Fit the coefficient.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)

        Returns
        -------
        VectorizedLasso
            The fitted estimator itself.
        """
        self._fit_ratios(X, y, np.ones(1))
        return self


class VectorizedElasticNet(_VectorizedRegressor):
    r"""Elastic net on vectorised samples, with the penalty chosen by cross-validation.

    .. math:: \min_{w, b} \frac{1}{2N} \lVert y - X w - b\rVert^2 + \alpha\rho \lVert w\rVert_1
              + \frac{\alpha(1-\rho)}{2} \lVert w\rVert_2^2,

    where the rows of X are the flattened samples. The solver is celer's or scikit-learn's.

    Parameters
    ----------
    alpha : float or "cv", default="cv"
        The penalty, as in :class:`sklearn.linear_model.ElasticNet`; "cv": chosen from a path
        of penalties as :class:`sklearn.linear_model.ElasticNetCV` does.
    l1_ratio : float or sequence of float, default=0.5
        :math:`\rho`, greater than 0 and at most 1. Of several, which ``alpha="cv"`` takes,
        the best is chosen.
    n_alphas : int, default=100
        Number of penalties on the path, from the smallest that gives zero down to a
        thousandth of it.
    cv : int, cross-validation generator or iterable, default=5
        The folds.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    solver : {"auto", "celer", "sklearn"}, default="auto"
        "auto" takes the faster one: celer for samples of many more elements than there are
        samples, if it is installed (``pip install pyfastr[baselines]``).
    max_iter : int, default=1000
        Largest number of sweeps of coordinate descent, or of working sets of celer.
    tol : float, default=1e-4
        Stop at a duality gap of this, relative to the squared norm of y.

    Attributes
    ----------
    coef_ : ndarray of shape (p1, ..., pM)
        The coefficient W.
    intercept_ : float
        0.0 if there is no intercept.
    alpha_, l1_ratio_ : float
        The penalty of the fit.
    alphas_ : ndarray of shape (n_ratios, n_alphas)
        The path of each ratio; only with ``alpha="cv"``.
    mse_path_ : ndarray of shape (n_ratios, n_alphas, n_folds)
        Mean squared errors on the folds left out; only with ``alpha="cv"``.
    n_iter_ : int
        Iterations of the last fit.
    tensor_shape_in_ : tuple of int
        Shape ``(p1, ..., pM)`` of a sample.
    n_features_in_ : int
        Size of the first mode.
    param_grid_ : dict
        A grid for :class:`~sklearn.model_selection.GridSearchCV`; ``alpha="cv"`` is faster.

    Notes
    -----
    The shape of the samples plays no part. A copy of X in float64 is made, and during
    cross-validation a second one of the samples of a fold.

    References
    ----------
    H. Zou, T. Hastie. Regularization and variable selection via the elastic net. Journal of
    the Royal Statistical Society B 67, 2005.

    Examples
    --------
    >>> from pyfastr.baselines import VectorizedElasticNet
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(200, (8, 6), random_state=0)
    >>> model = VectorizedElasticNet(l1_ratio=[0.5, 0.9]).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    param_grid_: ClassVar[dict[str, list[Any]]] = {
        "alpha": np.logspace(-3, 2, 16).tolist(),
        "l1_ratio": [0.1, 0.5, 0.7, 0.9, 0.95, 0.99],
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_VectorizedRegressor._parameter_constraints,
        "l1_ratio": [Interval(Real, 0, 1, closed="right"), "array-like"],
    }

    def __init__(
        self,
        alpha: float | str = "cv",
        l1_ratio: float | Sequence[float] = 0.5,
        *,
        n_alphas: int = 100,
        cv: Any = 5,
        fit_intercept: bool = True,
        solver: str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.n_alphas = n_alphas
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> "VectorizedElasticNet":
        """Fit the coefficient.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)

        Returns
        -------
        VectorizedElasticNet
            The fitted estimator itself.
        """
        self._fit_ratios(X, y, self._checked_ratios())
        return self

    def _checked_ratios(self) -> Array:
        """Return the ratios as a vector."""
        ratios = check_values("l1_ratio", np.atleast_1d(self.l1_ratio), positive=True)
        if ratios.max() > 1:
            raise ValueError(f"l1_ratio has {ratios.max()}; expected at most 1.")
        if len(ratios) > 1 and self.alpha != "cv":
            raise ValueError(
                f"l1_ratio has {len(ratios)} values with alpha={self.alpha}; expected one. Give "
                'one, or alpha="cv" to choose.'
            )
        return ratios


def _held_out_errors(
    samples: FlatSamples,
    fold: tuple[Array, Array],
    alphas: Array,
    ratio: float,
    solver: PathSolver,
    fit_intercept: bool,
) -> Array:
    """Mean squared error on the samples left out, for every penalty."""
    train, test = fold
    X, y = _copies(samples, train)
    X_mean, y_mean = np.zeros(X.shape[1]), 0.0
    if fit_intercept:
        X_mean, y_mean = X.mean(axis=0), y.mean()
        X -= X_mean
        y -= y_mean
    coefs, _ = _path(X, y, alphas, ratio, solver)
    predictions = samples.X[test] @ coefs - X_mean @ coefs + y_mean
    return ((samples.y[test, np.newaxis] - predictions) ** 2).mean(axis=0)


def _copies(samples: FlatSamples, rows: Any = slice(None)) -> tuple[Array, Array]:
    """Copy samples into memory that is the solvers' own: celer takes no other."""
    return np.array(samples.X[rows], order="F"), np.array(samples.y[rows])


def _path(X: Array, y: Array, alphas: Any, ratio: float, solver: PathSolver) -> tuple[Array, Array]:
    """Coefficients (p, n_alphas) and iterations along a path, from a Fortran-ordered X."""
    common: dict[str, Any] = {
        "l1_ratio": ratio,
        "alphas": np.asarray(alphas),
        "tol": solver.tol,
        "max_iter": solver.max_iter,
        "return_n_iter": True,
    }
    if solver.name == "sklearn":
        # As in scikit-learn's own estimators: a Gram matrix pays only for many penalties.
        gram = "auto" if len(alphas) > 1 else False
        _, coefs, _, n_iters = enet_path(X, y, precompute=gram, copy_X=False, **common)
    else:
        _, coefs, _, n_iters = _celer_path()(X, y, "lasso", **common)
    return coefs, np.asarray(n_iters)


def _celer_path() -> Any:
    """Import celer's path, or say how to get it."""
    try:
        from celer import celer_path
    except ImportError as error:
        raise ImportError(
            'solver="celer" needs celer: run `pip install pyfastr[baselines]`, or use '
            'solver="sklearn".'
        ) from error
    return celer_path


@cache
def _has_celer() -> bool:
    """Whether celer is installed."""
    return find_spec("celer") is not None


@contextmanager
def _one_warning(what: str, stacklevel: int) -> Iterator[None]:
    """Make one warning of those of all fits within."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    n_fits = sum(issubclass(w.category, ConvergenceWarning) for w in caught)
    if n_fits:
        message = (
            f"{what} did not converge to `tol` in {n_fits} fits: raise `max_iter` or `tol`, or "
            "bring X and y to a scale near 1."
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)
