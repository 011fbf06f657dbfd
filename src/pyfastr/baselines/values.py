"""Validation of the lists of parameters that a path takes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def check_values(name: str, values: Any, *, positive: bool = False) -> Array:
    """Return `values` as a float vector; refuse what is empty, negative or not finite.

    Parameters
    ----------
    name : str
        How the message calls them.
    values : array-like of shape (n_values,)
    positive : bool
        Whether zero is refused, too.

    Returns
    -------
    ndarray of shape (n_values,)
    """
    vector: Array = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or not vector.size:
        raise ValueError(
            f"{name} has shape {vector.shape}; expected a list of at least one number."
        )
    allowed = np.isfinite(vector) & ((vector > 0) if positive else (vector >= 0))
    if not allowed.all():
        least = "greater than 0" if positive else "at least 0"
        raise ValueError(
            f"{name} has {vector[~allowed][0]}; expected finite numbers, {least}. Leave it out."
        )
    return vector
