"""Ranks of which areas under ROC curves are made, of many models at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def share_below(rows: Array, weights: Array) -> Array:
    """Weight of all that is below each value of its row, and half the weight of its equals."""
    order = np.argsort(rows, axis=1)
    ranked = np.take_along_axis(rows, order, axis=1)
    is_new = np.diff(ranked, axis=1, prepend=np.nan) != 0
    at = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    first = np.maximum.accumulate(np.where(is_new, at, 0), axis=1)
    is_last = np.roll(is_new, -1, axis=1)
    last = np.minimum.accumulate(np.where(is_last, at, at[:, -1:])[:, ::-1], axis=1)[:, ::-1]
    own = weights[order]
    through = np.cumsum(own, axis=1)
    below = np.take_along_axis(through - own, first, axis=1)
    shares = np.empty(rows.shape)
    middle = (below + np.take_along_axis(through, last, axis=1)) / 2
    np.put_along_axis(shares, order, middle, axis=1)
    return shares
