"""Lasso and elastic net on vectorised samples, by the solvers of others."""

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import check_cv

from pyfastr.baselines.l1_path import (
    PathSolver,
    faster_solver,
    held_out_errors,
    l1_path,
    one_warning,
    own_copies,
)
from pyfastr.baselines.samples import FlatSamples, flatten, store_coefficient
from pyfastr.baselines.values import check_values
from pyfastr.estimators.linear import LinearTensorMixin
from pyfastr.estimators.sklearn_private import Interval, StrOptions, checks_parameters

Array = NDArray[Any]


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
        samples = flatten(self, X, y, fit_intercept=False)
        alpha, ratio, largest = self.alpha, float(ratios[0]), self._largest(samples)
        if isinstance(alpha, str):
            alpha, ratio = self._choose(samples, ratios, largest)
        self.alpha_, self.l1_ratio_ = float(alpha), ratio
        share = self.alpha_ * ratio / largest if largest else 1.0
        solver = self._path_solver(samples.X.shape, share, ratio)
        own = own_copies(samples, slice(None), self.fit_intercept)
        with one_warning(f"{type(self).__name__}(alpha={self.alpha_:.4g})"):
            coefs, n_iters = l1_path(own.X, own.y, [self.alpha_], ratio, solver)
        centred = replace(samples, X_mean=own.X_mean, y_mean=own.y_mean)
        store_coefficient(self, coefs[:, 0], centred)
        self.n_iter_ = int(n_iters[0])

    def _largest(self, samples: FlatSamples) -> float:
        """Return the smallest penalty of the ℓ1 norm that gives zero."""
        # Centring y makes centring X superfluous.
        y = samples.y - samples.y.mean() if self.fit_intercept else samples.y
        return float(np.abs(y @ samples.X).max()) / len(y)

    def _choose(self, samples: FlatSamples, ratios: Array, largest: float) -> tuple[float, float]:
        """Return the penalty and the ratio of the least mean squared error left out."""
        # Without any correlation every penalty gives zero; the grid must still be a grid.
        tops = (largest or 1.0) / ratios
        self.alphas_ = np.stack([np.geomspace(top, 1e-3 * top, self.n_alphas) for top in tops])
        folds = list(check_cv(self.cv).split(samples.X, samples.y))
        errors = []
        with one_warning(f"The cross-validation of {type(self).__name__}"):
            for alphas, ratio in zip(self.alphas_, ratios.tolist(), strict=True):
                solver = self._path_solver(samples.X.shape, 0.0, ratio)
                how = (alphas, ratio, solver, self.fit_intercept)
                errors.append([held_out_errors(samples, fold, *how) for fold in folds])
        self.mse_path_: Array = np.moveaxis(np.array(errors), 1, 2)
        best = np.unravel_index(self.mse_path_.mean(axis=2).argmin(), self.alphas_.shape)
        return float(self.alphas_[best]), float(ratios[best[0]])

    def _path_solver(self, shape: tuple[int, ...], alpha_share: float, ratio: float) -> PathSolver:
        """Take the faster solver for this size and penalty, unless one was asked for."""
        n_samples, n_features = shape
        name = self.solver
        if name == "auto":
            name = faster_solver(n_samples, n_features, alpha_share, ratio)
        return PathSolver(name, self.tol, self.max_iter)


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
    The shape of the samples plays no part. A copy of X in float64 is made.

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

    @checks_parameters
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
    The shape of the samples plays no part. A copy of X in float64 is made.

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

    @checks_parameters
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
