"""Some of the samples of another source."""

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.base import Source

# Neighbours among samples of so many bytes make blocks of their own, which are views; smaller ones
# are copied together.
LARGE_SAMPLE = 1 << 20


class ThinnedSource:
    """Some samples of a source; of its blocks only these are touched, without a lasting copy.

    Parameters
    ----------
    source : Source
    which : ndarray of int
        Numbers of the samples, ascending.
    """

    def __init__(self, source: Source, which: NDArray[Any]) -> None:
        self._source, self._which = source, which
        self.shape = (len(which), *source.shape[1:])
        self.dtype = source.dtype
        edges = np.searchsorted(which, [s.start for s in source.slices])
        if prod(self.shape[1:]) * self.dtype.itemsize >= LARGE_SAMPLE:
            edges = np.append(edges, np.flatnonzero(np.diff(which) > 1) + 1)
        edges = np.unique(np.append(edges, len(which)))
        self.slices = tuple(slice(int(i), int(j)) for i, j in pairwise(edges))

    def read(self, rows: slice) -> NDArray[Any]:
        """Return the block of these samples."""
        wanted = self._which[rows]
        first, last = int(wanted[0]), int(wanted[-1])
        block = self._source.read(slice(first, last + 1))
        # Neighbours need no copy.
        return block if len(block) == len(wanted) else block[wanted - first]
