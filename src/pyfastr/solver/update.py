"""The linear solution of an update: ridge regression on the projected samples."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.parallel import solve_vectors
from pyfastr.solver.penalties import Penalty

Array = NDArray[Any]


def ridge_solution(Q: Array, z: Array, penalty: Penalty) -> Array:
    """``(Q'Q + e I)^-1 Q'z`` of K models, e being the curvature of the penalty.

    Parameters
    ----------
    Q : ndarray of shape (K, n_samples, q)
    z : ndarray of shape (K, n_samples) or (1, n_samples)
    penalty : Penalty

    Returns
    -------
    ndarray of shape (K, q)
        Solved in the smaller of the spaces of features (primal) and samples (dual).
    """
    _, n, q = Q.shape
    transposed = Q.transpose(0, 2, 1)
    z = np.broadcast_to(z, (len(Q), n))
    if q <= n:
        return solve_regularised(transposed @ Q, (z[:, None] @ Q)[:, 0], penalty, q)
    return (transposed @ solve_regularised(Q @ transposed, z, penalty, q)[:, :, None])[..., 0]


def solve_regularised(gram: Array, rhs: Array, penalty: Penalty, n_features: int) -> Array:
    """Solve ``(gram + e I) x = rhs`` for rows of `rhs`; the Gram matrices are overwritten."""
    return solve_vectors(regularise(gram, penalty, n_features), rhs)


def regularise(gram: Array, penalty: Penalty, n_features: int) -> Array:
    """Add the penalty's curvature to the diagonal of every matrix, in place."""
    diagonal = np.einsum("kii->ki", gram)
    diagonal += penalty.curvature(gram, n_features)[:, None]
    return gram
