"""Elementary ridge regression: a ridge solution and a soft threshold, in closed form."""

from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from pyfastr.baselines.proximal import soft_threshold
from pyfastr.baselines.ridge import check_gram_side, ridge_solution, ridge_solutions
from pyfastr.baselines.samples import FlatSamples, flatten, store_coefficient
from pyfastr.baselines.values import check_values
from pyfastr.estimators.linear import LinearTensorMixin
from pyfastr.estimators.sklearn_private import Interval, checks_parameters

Array = NDArray[Any]


class ElementaryRidge(LinearTensorMixin, RegressorMixin, BaseEstimator):
    r"""Elementary estimator with a ridge (EE-Ridge) on vectorised samples.

    .. math:: w = S_\lambda\bigl((X^T X + \varepsilon I)^{-1} X^T y\bigr),

    where the rows of X are the flattened samples and :math:`S_\lambda` moves every entry
    towards zero by :math:`\lambda`. It is the solution of

    .. math:: \min_w \lVert w\rVert_1 \quad\text{subject to}\quad
              \lVert w - (X^T X + \varepsilon I)^{-1} X^T y\rVert_\infty \le \lambda .

    Parameters
    ----------
    threshold : float, default=0.1
        :math:`\lambda`, in the units of the coefficient.
    ridge : float, default=1.0
        :math:`\varepsilon`, in the units of :math:`X^T X`; greater than 0.
    fit_intercept : bool, default=False
        Whether to centre X and y and fit an intercept. The authors' method has none.

    Attributes
    ----------
    coef_ : ndarray of shape (p1, ..., pM)
        The coefficient W.
    intercept_ : float
        0.0 if there is no intercept.
    n_iter_ : int
        Always 1: the solution is in closed form.
    tensor_shape_in_ : tuple of int
        Shape ``(p1, ..., pM)`` of a sample.
    n_features_in_ : int
        Size of the first mode.
    param_grid_ : dict
        A grid for :class:`~sklearn.model_selection.GridSearchCV`. The authors choose by
        cross-validation but name no values.

    See Also
    --------
    elementary_ridge_path : A whole grid from one decomposition of the samples.

    Notes
    -----
    The shape of the samples plays no part. The smaller of the two Gram matrices is formed,
    n_samples × n_samples or p × p, so the smaller number may be 20,000 at most.

    References
    ----------
    E. Yang, A. Lozano, P. Ravikumar. Elementary estimators for high-dimensional linear
    regression. International Conference on Machine Learning, 2014.

    Examples
    --------
    >>> from pyfastr.baselines import ElementaryRidge
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(200, (8, 6), random_state=0)
    >>> model = ElementaryRidge(threshold=0.01).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    param_grid_: ClassVar[dict[str, list[Any]]] = {
        "threshold": [0.0, *np.logspace(-3, 1, 13).tolist()],
        "ridge": np.logspace(-3, 3, 7).tolist(),
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [Interval(Real, 0, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self, threshold: float = 0.1, ridge: float = 1.0, *, fit_intercept: bool = False
    ) -> None:
        self.threshold = threshold
        self.ridge = ridge
        self.fit_intercept = fit_intercept

    @checks_parameters
    def fit(self, X: Any, y: Any) -> "ElementaryRidge":
        """Fit the coefficient.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)

        Returns
        -------
        ElementaryRidge
            The fitted estimator itself.
        """
        samples = _flatten_checked(self, X, y, fit_intercept=self.fit_intercept)
        solution = ridge_solution(samples.X, samples.y, self.ridge)
        store_coefficient(self, soft_threshold(solution, self.threshold), samples)
        self.n_iter_ = 1
        return self


def elementary_ridge_path(X: Any, y: Any, *, thresholds: ArrayLike, ridges: ArrayLike) -> Array:
    """Fit `ElementaryRidge` for every pair of a grid, with one decomposition of the samples.

    Parameters
    ----------
    X : array-like of shape (n_samples, p1, ..., pM)
        As it is: there is no intercept. Centre X and y for one.
    y : array-like of shape (n_samples,)
    thresholds : array-like of shape (n_thresholds,)
    ridges : array-like of shape (n_ridges,)

    Returns
    -------
    ndarray of shape (n_thresholds, n_ridges, p1, ..., pM)

    Examples
    --------
    >>> from pyfastr.baselines import elementary_ridge_path
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(200, (8, 6), random_state=0)
    >>> elementary_ridge_path(X, y, thresholds=[0.01, 0.1], ridges=[0.1, 1, 10]).shape
    (2, 3, 8, 6)
    """
    thresholds = check_values("thresholds", thresholds)
    ridges = check_values("ridges", ridges, positive=True)
    samples = _flatten_checked(ElementaryRidge(), X, y, fit_intercept=False)
    solutions = ridge_solutions(samples.X, samples.y, ridges)
    coefs = soft_threshold(solutions, thresholds[:, np.newaxis, np.newaxis])
    return coefs.reshape(len(thresholds), len(ridges), *samples.shape)


def _flatten_checked(estimator: Any, X: Any, y: Any, *, fit_intercept: bool) -> FlatSamples:
    """Flatten the samples if their Gram matrix fits in memory."""
    check = partial(check_gram_side, method="ElementaryRidge", instead="VectorizedLasso")
    return flatten(estimator, X, y, fit_intercept=fit_intercept, check_size=check)
