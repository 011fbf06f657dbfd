"""Proximal operators of the penalties of the baselines.

Each minimises ``½‖V − Z‖_F² + t·norm(V)`` over V. Those of tensors take several at once, along
the first axis, each with a threshold of its own.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]

# From this ratio of the sides on, a triangular factor without its orthogonal one is cheaper
# than the singular vectors of the long side, which are not needed.
_WIDE = 2


def soft_threshold(values: Array, threshold: ArrayLike) -> Array:
    """Move every entry towards zero by `threshold`, at most to zero: the operator of ‖·‖₁.

    Parameters
    ----------
    values : ndarray
    threshold : float or ndarray
        At least 0; broadcast against `values`.

    Returns
    -------
    ndarray of the shape of `values`
    """
    return np.sign(values) * np.maximum(np.abs(values) - threshold, 0.0)


def singular_value_threshold(
    matrices: Array, threshold: ArrayLike, n_singular: int | None = None
) -> Array:
    """Soft-threshold the singular values: the operator of the nuclear norm.

    Parameters
    ----------
    matrices : ndarray of shape (..., m, n)
        Real or complex.
    threshold : float or ndarray of shape (...)
    n_singular : int, optional
        Keep no more than this many of the largest singular values. The result is then
        not a proximal operator unless the others are below the threshold.

    Returns
    -------
    ndarray of shape (..., m, n)
    """
    if matrices.shape[-2] > matrices.shape[-1]:
        transposed = singular_value_threshold(matrices.swapaxes(-1, -2), threshold, n_singular)
        return transposed.swapaxes(-1, -2)
    left, values = _left_singular(matrices)
    kept = soft_threshold(values, np.expand_dims(threshold, -1))
    rank = int(np.count_nonzero(kept, axis=-1).max(initial=0))
    rank = rank if n_singular is None else min(rank, n_singular)
    left, shares = left[..., :rank], kept[..., :rank] / np.where(kept > 0, values, 1)[..., :rank]
    return (left * shares[..., np.newaxis, :]) @ (left.conj().swapaxes(-1, -2) @ matrices)


def unfolding_threshold(
    tensors: Array, threshold: Array, mode: int, n_singular: int | None = None
) -> Array:
    """Soft-threshold the singular values of one unfolding of each tensor.

    Parameters
    ----------
    tensors : ndarray of shape (K, p1, ..., pM)
    threshold : ndarray of shape (K,)
    mode : int
        The mode whose elements are the rows of the unfolding, from 0.
    n_singular : int, optional
        See `singular_value_threshold`.

    Returns
    -------
    ndarray of shape (K, p1, ..., pM)
    """
    front = np.moveaxis(tensors, mode + 1, 1)
    shrunk = singular_value_threshold(unfold(tensors, mode), threshold, n_singular)
    return np.moveaxis(shrunk.reshape(front.shape), 1, mode + 1)


def tubal_threshold(tensors: Array, threshold: Array, mode: int) -> Array:
    """Soft-threshold the singular values of all slices after a Fourier transform of one mode.

    The operator of the tubal nuclear norm, the mean over the transformed slices of their
    nuclear norms.

    Parameters
    ----------
    tensors : ndarray of shape (K, p1, p2, p3)
    threshold : ndarray of shape (K,)
    mode : int
        The transformed mode, from 0.

    Returns
    -------
    ndarray of shape (K, p1, p2, p3)
    """
    shrunk = singular_value_threshold(transformed_slices(tensors, mode), threshold[:, np.newaxis])
    size = tensors.shape[mode + 1]
    return np.fft.irfft(np.moveaxis(shrunk, 1, mode + 1), n=size, axis=mode + 1)


def unfold(tensors: Array, mode: int) -> Array:
    """Return the unfolding of each tensor: shape (K, p_mode, product of the other sizes)."""
    front = np.moveaxis(tensors, mode + 1, 1)
    return front.reshape(*front.shape[:2], -1)


def transformed_slices(tensors: Array, mode: int) -> Array:
    """Return the slices across a Fourier-transformed mode, one of each conjugate pair."""
    return np.moveaxis(np.fft.rfft(tensors, axis=mode + 1), mode + 1, 1)


def _left_singular(matrices: Array) -> tuple[Array, Array]:
    """Singular vectors of the short side (rows) and singular values, largest first."""
    rows, columns = matrices.shape[-2:]
    if columns >= _WIDE * rows:
        triangular = np.asarray(np.linalg.qr(matrices.conj().swapaxes(-1, -2), mode="r"))
        matrices = triangular.conj().swapaxes(-1, -2)
    left, values, _ = np.linalg.svd(matrices, full_matrices=False)
    return left, values
