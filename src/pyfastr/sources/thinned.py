"""Some of the samples of another source."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.base import Source


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
        edges = [np.searchsorted(which, (s.start, s.stop)).tolist() for s in source.slices]
        self.slices = tuple(slice(i, j) for i, j in edges if i < j)

    def read(self, rows: slice) -> NDArray[Any]:
        """Return the block of these samples."""
        wanted = self._which[rows]
        first, last = int(wanted[0]), int(wanted[-1])
        block = self._source.read(slice(first, last + 1))
        # Neighbours need no copy; of large samples blocks hold few.
        return block if len(block) == len(wanted) else block[wanted - first]
