"""The Dantzig selector as a linear program."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import block_array, csc_array, eye_array
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from pyfastr.baselines.samples import flatten, store_coefficient
from pyfastr.estimators.linear import LinearTensorMixin
from pyfastr.estimators.sklearn_private import Interval, checks_parameters
from pyfastr.estimators.warning import warn

Array = NDArray[Any]

# 1000 features take seconds, and the time grows with about the third power.
MAX_FEATURES = 3_000


class DantzigSelector(LinearTensorMixin, RegressorMixin, BaseEstimator):
    r"""Dantzig selector on vectorised samples.

    .. math:: \min_w \lVert w\rVert_1 \quad\text{subject to}\quad
              \lVert X^T (y - X w)\rVert_\infty \le \lambda ,

    where the rows of X are the flattened samples: a linear program, solved to optimality by
    SciPy's HiGHS.

    Parameters
    ----------
    alpha : float, default=1.0
        :math:`\lambda`, in the units of :math:`X^T y`. For columns of length 1 and noise of
        standard deviation :math:`\sigma` the authors advise :math:`\sigma\sqrt{2\log p}`.
    fit_intercept : bool, default=False
        Whether to centre X and y and fit an intercept. The authors' method has none.

    Attributes
    ----------
    coef_ : ndarray of shape (p1, ..., pM)
        The coefficient W.
    intercept_ : float
        0.0 if there is no intercept.
    n_iter_ : int
        Iterations of the linear program; 0 if `alpha` is so large that W is zero.
    tensor_shape_in_ : tuple of int
        Shape ``(p1, ..., pM)`` of a sample.
    n_features_in_ : int
        Size of the first mode.
    param_grid_ : dict
        A grid for :class:`~sklearn.model_selection.GridSearchCV`. The authors name none.

    Notes
    -----
    Samples may have 3,000 elements at most. With 1000 elements a fit takes seconds, and the
    time grows with about the third power of their number. Beyond, :class:`VectorizedLasso`
    has much the same solutions. The shape of the samples plays no part.

    References
    ----------
    E. Candès, T. Tao. The Dantzig selector: statistical estimation when p is much larger than
    n. Annals of Statistics 35, 2007.

    Examples
    --------
    >>> from pyfastr.baselines import DantzigSelector
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(100, (6, 5), random_state=0)
    >>> model = DantzigSelector(alpha=1.0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    param_grid_: ClassVar[dict[str, list[Any]]] = {"alpha": np.logspace(-2, 3, 16).tolist()}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
    }

    def __init__(self, alpha: float = 1.0, *, fit_intercept: bool = False) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    @checks_parameters
    def fit(self, X: Any, y: Any) -> "DantzigSelector":
        """Fit the coefficient.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)

        Returns
        -------
        DantzigSelector
            The fitted estimator itself.
        """
        samples = flatten(self, X, y, fit_intercept=self.fit_intercept, check_size=_check_features)
        store_coefficient(self, self._select(samples.X, samples.y), samples)
        return self

    def _select(self, X: Array, y: Array) -> Array:
        """Solve the linear program in units in which X and y are of size 1."""
        self.n_iter_ = 0
        if np.abs(X.T @ y).max() <= self.alpha:
            return np.zeros(X.shape[1])
        X_size, y_size = np.linalg.norm(X, axis=0).max(), np.linalg.norm(y)
        scaled = (X / X_size, y / y_size, self.alpha / (X_size * y_size))
        wide = X.shape[1] > 2 * X.shape[0]
        program = _residual_program(*scaled) if wide else _gram_program(*scaled)
        result = linprog(**program, method="highs")
        self.n_iter_ = int(result.nit)
        if result.x is None:
            raise ValueError(
                f"DantzigSelector found no solution for alpha={self.alpha}: {result.message} Raise "
                "`alpha`, or use VectorizedLasso."
            )
        if result.status:
            message = f"DantzigSelector(alpha={self.alpha}): {result.message} Raise `alpha`."
            warn(message, ConvergenceWarning)
        positive, negative = np.split(result.x[: 2 * X.shape[1]], 2)
        return (y_size / X_size) * (positive - negative)


def _check_features(n_samples: int, n_features: int) -> None:
    """Refuse samples whose linear program would take hours."""
    if n_features > MAX_FEATURES:
        raise ValueError(
            f"X has samples of {n_features} elements; the linear program of DantzigSelector "
            f"takes at most {MAX_FEATURES}. Use VectorizedLasso: its solutions are similar."
        )


def _gram_program(X: Array, y: Array, alpha: float) -> dict[str, Any]:
    """State the program in w⁺, w⁻ and the correlations c: XᵀXw + c = Xᵀy, |c| ≤ λ."""
    p = X.shape[1]
    gram = csc_array(X.T @ X)
    return {
        "c": np.repeat([1.0, 0.0], [2 * p, p]),
        "A_eq": block_array([[gram, -gram, eye_array(p)]], format="csc"),
        "b_eq": X.T @ y,
        "bounds": _bounds((2 * p, 0, np.inf), (p, -alpha, alpha)),
    }


def _residual_program(X: Array, y: Array, alpha: float) -> dict[str, Any]:
    """State the program with the residuals r, too: Xw + r = y, Xᵀr = c, |c| ≤ λ.

    3·n_samples·p entries instead of 2·p².
    """
    n, p = X.shape
    matrix = csc_array(X)
    rows = [[matrix, -matrix, eye_array(n), None], [None, None, matrix.T, -eye_array(p)]]
    return {
        "c": np.repeat([1.0, 0.0], [2 * p, n + p]),
        "A_eq": block_array(rows, format="csc"),
        "b_eq": np.concatenate([y, np.zeros(p)]),
        "bounds": _bounds((2 * p, 0, np.inf), (n, -np.inf, np.inf), (p, -alpha, alpha)),
    }


def _bounds(*groups: tuple[int, float, float]) -> Array:
    """Lower and upper bounds of groups of variables, each given as (number, low, high)."""
    counts = [count for count, _, _ in groups]
    return np.repeat([[low, high] for _, low, high in groups], counts, axis=0)
