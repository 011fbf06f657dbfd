"""What the methods on vectorised samples share: the matrix of samples and the way back."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.baselines.limits import check_copy_memory
from pyfastr.estimators.validation import as_array, check_tensor_and_response
from pyfastr.sources import as_source, largest_entry

Array = NDArray[Any]

# Squares of larger entries, summed over samples and features, leave too little of the range.
_LARGEST = 1e100


@dataclass(frozen=True)
class FlatSamples:
    """Samples as the rows of a float64 matrix, with what was taken off them.

    Attributes
    ----------
    X : ndarray of shape (n_samples, p)
        To be read and never written: it may be the user's own memory.
    y : ndarray of shape (n_samples,)
    X_mean : ndarray of shape (p,) or None
        What was subtracted from every sample for the intercept; None: nothing.
    y_mean : float
    shape : tuple of int
        Shape (p1, ..., pM) of a sample.
    dtype : numpy.dtype
        The type in which the coefficient is given back.
    """

    X: Array
    y: Array
    X_mean: Array | None
    y_mean: float
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def flatten(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    fit_intercept: bool,
    check_size: Callable[[int, int], None] | None = None,
) -> FlatSamples:
    """Validate X and y and flatten the samples; centre both if there is an intercept.

    A C-contiguous float64 X without intercept is not copied; anything else is, once, after
    `check_size` was told the numbers of samples and of their elements.
    """
    tensor, y = check_tensor_and_response(estimator, X, y)
    X = as_array(X, tensor)
    if check_size is not None:
        check_size(len(X), prod(X.shape[1:]))
    source = as_source(X)
    plain = X.dtype == np.float64 and X.flags.c_contiguous
    if fit_intercept or not plain:
        check_copy_memory(source, type(estimator).__name__)
    largest = max(largest_entry(source), float(np.abs(y).max()))
    if largest > _LARGEST:
        raise ValueError(
            f"X or y has entries of size {largest:.2g}, whose squares overflow; expected at most "
            f"{_LARGEST:g}. Bring X and y to a scale near 1."
        )
    flat = np.ascontiguousarray(X, dtype=np.float64).reshape(len(X), -1)
    response = y.astype(np.float64, copy=False)
    if not fit_intercept:
        return FlatSamples(flat, response, None, 0.0, X.shape[1:], source.dtype)
    X_mean, y_mean = flat.mean(axis=0), float(response.mean())
    # A copy is the solver's own and may be written to.
    centred = np.subtract(flat, X_mean, out=None if np.shares_memory(flat, X) else flat)
    return FlatSamples(centred, response - y_mean, X_mean, y_mean, X.shape[1:], source.dtype)


def store_coefficient(estimator: Any, coef: Array, samples: FlatSamples) -> None:
    """Set `coef_` and `intercept_` from a coefficient on the flattened samples."""
    with np.errstate(over="ignore"):
        typed = coef.reshape(samples.shape).astype(samples.dtype, copy=False)
    if not np.isfinite(typed).all():
        raise ValueError(
            f"The coefficient of {type(estimator).__name__} overflowed: bring X and y to a scale "
            "near 1."
        )
    estimator.coef_ = typed
    offset = 0.0 if samples.X_mean is None else float(samples.X_mean @ coef.ravel())
    estimator.intercept_ = samples.y_mean - offset
