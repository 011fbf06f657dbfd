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
    group = np.cumsum(is_new).reshape(rows.shape) - 1
    at = np.bincount(group.ravel(), weights[order].ravel())
    before = np.arange(len(rows))[:, None] * weights.sum()
    shares = np.empty(rows.shape)
    np.put_along_axis(shares, order, (np.cumsum(at) - at / 2)[group] - before, axis=1)
    return shares
