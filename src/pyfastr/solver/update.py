"""The update of one mode: ridge regression on the projected samples, then a soft threshold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.parallel import solve_vectors

Array = NDArray[Any]


@dataclass(frozen=True)
class Penalty:
    """What an update is penalised by, the same for all models or one value for each.

    Attributes
    ----------
    ridge, threshold : float or ndarray of shape (K,)
        Relative, as `FasTRRegressor` defines them.
    masks : list of M arrays (K, R, p_m) of bool, optional
        Entries outside are zero.
    """

    ridge: float | Array
    threshold: float | Array = 0.0
    masks: list[Array] | None = None

    def take(self, which: Array | slice) -> "Penalty":
        """Return the penalty of some of the models."""
        ridge, threshold = (
            value[which] if isinstance(value, np.ndarray) else value
            for value in (self.ridge, self.threshold)
        )
        masks = None if self.masks is None else [m[which] for m in self.masks]
        return Penalty(ridge, threshold, masks)


def soft_threshold(vectors: Array, threshold: float | Array) -> Array:
    """Shrink every vector (last axis) by ``threshold * max|vector|``: the relative S_lambda.

    `threshold` is one number, or one for each row of `vectors`.
    """
    if not np.any(threshold):
        return vectors
    size = np.abs(vectors)
    share = np.asarray(threshold)[..., None].astype(vectors.dtype)
    cut = share * size.max(axis=-1, keepdims=True)
    return np.sign(vectors) * np.maximum(size - cut, 0)


def ridge_solution(Q: Array, z: Array, ridge: Array | float) -> Array:
    """``(Q'Q + e I)^-1 Q'z`` of K models, with ``e = ridge * trace(Q'Q) / q``.

    Parameters
    ----------
    Q : ndarray of shape (K, n_samples, q)
    z : ndarray of shape (K, n_samples) or (1, n_samples)
    ridge : float or ndarray of shape (K,)

    Returns
    -------
    ndarray of shape (K, q)
        Solved in the smaller of the spaces of features (primal) and samples (dual).
    """
    _, n, q = Q.shape
    transposed = Q.transpose(0, 2, 1)
    z = np.broadcast_to(z, (len(Q), n))
    if q <= n:
        return solve_regularised(transposed @ Q, (z[:, None] @ Q)[:, 0], ridge, q)
    return (transposed @ solve_regularised(Q @ transposed, z, ridge, q)[:, :, None])[..., 0]


def solve_regularised(gram: Array, rhs: Array, ridge: Array | float, n_features: int) -> Array:
    """Solve ``(gram + ridge * trace(gram) / n_features * I) x = rhs`` for rows of `rhs`."""
    return solve_vectors(regularise(gram, ridge, n_features), rhs)


def regularise(gram: Array, ridge: Array | float, n_features: int) -> Array:
    """Add the ridge to the diagonal of every matrix, in place.

    A ridge too small for the precision is raised to it, and a zero matrix (nothing to fit) becomes
    the identity, whose solution is zero, so that the result is always finite.
    """
    diagonal = np.arange(gram.shape[-1])
    entries = gram[:, diagonal, diagonal]
    trace, n_used = entries.sum(axis=1), np.count_nonzero(entries, axis=1)
    smallest = 4 * np.finfo(gram.dtype).eps
    # Precision is that of the features there are: a mask may leave few.
    amount = np.maximum(ridge / n_features, smallest / np.maximum(n_used, 1)) * trace
    gram[:, diagonal, diagonal] += np.where(trace > 0, amount, 1)[:, None]
    return gram
