"""Ridge regression on vectorised samples, in the smaller of the spaces of samples and features."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Array = NDArray[Any]

# A square matrix of this side takes 3.2 GB and its factorisation about as much again.
MAX_GRAM_SIDE = 20_000


def ridge_solution(P: Array, y: Array, ridge: float) -> Array:
    """Return (PᵀP + εI)⁻¹Pᵀy, by the N × N system if that is the smaller one."""
    N, p = P.shape
    try:
        if p <= N:
            return np.linalg.solve(P.T @ P + ridge * np.eye(p), P.T @ y)
        dual: Array = P.T @ np.linalg.solve(P @ P.T + ridge * np.eye(N), y)
        return dual
    except np.linalg.LinAlgError as error:
        raise ValueError(
            f"ridge={ridge} is too small beside the projected X to make its Gram matrix "
            "invertible; raise it."
        ) from error


def ridge_solutions(X: Array, y: Array, ridges: Array) -> Array:
    """Return (XᵀX + εI)⁻¹Xᵀy for every ε, from one eigendecomposition of the smaller Gram matrix.

    Parameters
    ----------
    X : ndarray of shape (n_samples, p)
    y : ndarray of shape (n_samples,)
    ridges : ndarray of shape (n_ridges,)
        Greater than 0.

    Returns
    -------
    ndarray of shape (n_ridges, p)
    """
    primal = X.shape[1] <= X.shape[0]
    values, vectors = np.linalg.eigh(X.T @ X if primal else X @ X.T)
    smallest = len(values) * np.finfo(np.float64).eps * values[-1]
    if ridges.min() + max(values[0], 0.0) < smallest:
        raise ValueError(
            f"ridges has {ridges.min()}, too small beside X to make its Gram matrix invertible; "
            f"expected more than {smallest:.2g}."
        )
    rotated = vectors.T @ (X.T @ y if primal else y)
    solved = (rotated / (np.maximum(values, 0.0) + ridges[:, np.newaxis])) @ vectors.T
    return solved if primal else solved @ X


class UnitRidge:
    """The matrix (XᵀX + I)⁻¹ of the samples, factored once and applied to many vectors.

    Parameters
    ----------
    X : ndarray of shape (n_samples, p)
    """

    def __init__(self, X: Array) -> None:
        self._X = X
        self._primal = X.shape[1] <= X.shape[0]
        gram = X.T @ X if self._primal else X @ X.T
        gram[np.diag_indices_from(gram)] += 1.0
        self._factor = cho_factor(gram, overwrite_a=True)

    def solve(self, vectors: Array) -> Array:
        """Apply it to the rows of a matrix of shape (K, p).

        4·K·n_samples·p flops and two reads of X where p > n_samples, shared by the K rows.
        """
        if self._primal:
            solved: Array = cho_solve(self._factor, vectors.T, check_finite=False).T
            return solved
        in_samples = cho_solve(self._factor, self._X @ vectors.T, check_finite=False)
        return vectors - in_samples.T @ self._X


def check_gram_side(n_samples: int, n_features: int, *, method: str, instead: str) -> None:
    """Refuse sizes whose smaller Gram matrix would not fit in memory."""
    side = min(n_samples, n_features)
    if side > MAX_GRAM_SIDE:
        raise ValueError(
            f"X has {n_samples} samples of {n_features} features: {method} factors a matrix of "
            f"{side} × {side}, and its limit is {MAX_GRAM_SIDE}. Use fewer samples, or {instead}."
        )
