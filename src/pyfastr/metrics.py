"""How close an estimated coefficient comes to the true one: in value and in support."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def coefficient_error(coef: ArrayLike, coef_true: ArrayLike) -> float:
    r"""Relative error of a coefficient in the Frobenius norm, the paper's CE.

    .. math:: \lVert\widehat{W} - W\rVert_F / \lVert W\rVert_F

    Parameters
    ----------
    coef : array-like of shape (p1, ..., pM)
        The estimate.
    coef_true : array-like of shape (p1, ..., pM)
        The truth; at least one entry is not zero.

    Returns
    -------
    float
        0.0 for the truth itself, 1.0 for an estimate of all zeros.

    Examples
    --------
    >>> from pyfastr.metrics import coefficient_error
    >>> coefficient_error([[3.0, 0.0]], [[3.0, 4.0]])
    0.8
    """
    estimate, truth = _check_pair(coef, coef_true)
    unit = _largest(truth)
    if unit == 0.0:
        raise ValueError(
            "coef_true is zero everywhere, so no error can be taken relative to it; "
            "expected at least one non-zero entry."
        )
    # The squares inside a norm overflow from 1e154 on and vanish below 1e-162, hence
    # each norm is taken of entries scaled to at most 1 (2 for the difference).
    common = max(unit, _largest(estimate))
    difference = float(np.linalg.norm((estimate / common - truth / common).ravel()))
    reference = float(np.linalg.norm((truth / unit).ravel()))
    return difference / reference * (common / unit)


def support_precision(coef: ArrayLike, coef_true: ArrayLike) -> float:
    """Share of the selected entries that are truly non-zero.

    Parameters
    ----------
    coef : array-like of shape (p1, ..., pM)
        The estimate; its non-zero entries are the selected ones.
    coef_true : array-like of shape (p1, ..., pM)

    Returns
    -------
    float
        Between 0 and 1. If nothing is selected, nothing is selected wrongly: 1.0.

    Examples
    --------
    >>> from pyfastr.metrics import support_precision
    >>> support_precision([1.0, 0.5, 0.0, 0.0], [2.0, 0.0, 0.0, 1.0])
    0.5
    """
    selected, relevant = (array != 0 for array in _check_pair(coef, coef_true))
    return _share(selected & relevant, selected)


def support_recall(coef: ArrayLike, coef_true: ArrayLike) -> float:
    """Share of the truly non-zero entries that are selected.

    Parameters
    ----------
    coef : array-like of shape (p1, ..., pM)
        The estimate; its non-zero entries are the selected ones.
    coef_true : array-like of shape (p1, ..., pM)

    Returns
    -------
    float
        Between 0 and 1. If `coef_true` is zero everywhere, nothing is missed: 1.0.

    Examples
    --------
    >>> from pyfastr.metrics import support_recall
    >>> support_recall([1.0, 0.5, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0])
    1.0
    """
    selected, relevant = (array != 0 for array in _check_pair(coef, coef_true))
    return _share(selected & relevant, relevant)


def _share(part: NDArray[np.bool_], whole: NDArray[np.bool_]) -> float:
    """Count of `part` over count of `whole`; all of nothing is 1."""
    count = int(np.count_nonzero(whole))
    return int(np.count_nonzero(part)) / count if count else 1.0


def _largest(array: Array) -> float:
    """Return max|array|, 0 for an empty array."""
    return float(np.abs(array).max(initial=0.0))


def _check_pair(coef: Any, coef_true: Any) -> tuple[Array, Array]:
    """Return both as float64 arrays of one shape, finite throughout."""
    estimate = _check_finite(coef, "coef")
    truth = _check_finite(coef_true, "coef_true")
    if estimate.shape != truth.shape:
        raise ValueError(
            f"coef has shape {estimate.shape} and coef_true has shape {truth.shape}; "
            "expected the same shape."
        )
    return estimate, truth


def _check_finite(value: Any, name: str) -> Array:
    """Return `value` as a float64 array; NaN and infinity are an error."""
    array: Array = np.asarray(value, dtype=np.float64)
    bad = int(np.count_nonzero(~np.isfinite(array)))
    if bad:
        raise ValueError(
            f"{name} contains NaN or infinity in {bad} of {array.size} entries; "
            "expected finite numbers."
        )
    return array
