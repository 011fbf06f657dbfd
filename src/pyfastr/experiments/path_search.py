"""Cross-validation of methods that solve a whole grid of parameters at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

Array = NDArray[Any]

# X, y and the values of two parameters, to coefficients of shape (n_first, n_second, p1, ..., pM).
GridPath = Callable[..., Array]


class PathSearchCV:
    """`GridSearchCV` that fits the grid of every fold by one call of a path function.

    Parameters
    ----------
    estimator : estimator
        Without intercept; its `param_grid_` has two parameters.
    path : callable
        ``path(X, y, firsts=..., seconds=...)`` with the plurals of the parameters' names; returns
        coefficients of shape (n_first, n_second, p1, ..., pM).
    n_folds : int, default=5

    Attributes
    ----------
    best_params_ : dict
        The pair with the lowest mean squared error on the folds left out.
    best_estimator_ : estimator
        Fitted with it to all samples.

    Examples
    --------
    >>> from pyfastr.baselines import ElementaryRidge, elementary_ridge_path
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.experiments.path_search import PathSearchCV
    >>> X, y = make_tensor_regression(100, (5, 4), random_state=0)
    >>> search = PathSearchCV(ElementaryRidge(), elementary_ridge_path).fit(X, y)
    >>> search.best_estimator_.score(X, y) > 0.99
    True
    """

    def __init__(self, estimator: Any, path: GridPath, n_folds: int = 5) -> None:
        self.estimator = estimator
        self.path = path
        self.n_folds = n_folds

    def fit(self, X: Array, y: Array) -> "PathSearchCV":
        """Choose a pair and fit it to all samples.

        Parameters
        ----------
        X : ndarray of shape (n_samples, p1, ..., pM)
        y : ndarray of shape (n_samples,)

        Returns
        -------
        PathSearchCV
            The fitted search itself.
        """
        grid = self.estimator.param_grid_
        folds = KFold(self.n_folds).split(X)
        errors = np.mean([self._held_out_errors(X, y, *fold) for fold in folds], axis=0)
        best = np.unravel_index(errors.argmin(), errors.shape)
        self.best_params_ = {name: grid[name][i] for name, i in zip(grid, best, strict=True)}
        self.best_estimator_ = clone(self.estimator).set_params(**self.best_params_).fit(X, y)
        return self

    def _held_out_errors(self, X: Array, y: Array, train: Array, test: Array) -> Array:
        """Mean squared error of every pair on the samples left out."""
        values = {f"{name}s": values for name, values in self.estimator.param_grid_.items()}
        coefs = self.path(X[train], y[train], **values)
        predictions = coefs.reshape(*coefs.shape[:2], -1) @ X[test].reshape(len(test), -1).T
        return np.mean((predictions - y[test]) ** 2, axis=-1)

    def predict(self, X: Array) -> Array:
        """Predict the response by the best estimator.

        Parameters
        ----------
        X : ndarray of shape (n_samples, p1, ..., pM)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.best_estimator_.predict(X)
