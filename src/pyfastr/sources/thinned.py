"""Some of the samples of another source."""

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.base import Source, block_where_it_is, place_of
from pyfastr.sources.device import is_on_device
from pyfastr.sources.manners import ArrayManners
from pyfastr.sources.namespaces import take, to_host
from pyfastr.sources.stored import KeptSource, is_in_memory

# Neighbours among samples of so many bytes make blocks of their own, which are views; smaller ones
# are copied together.
LARGE_SAMPLE = 1 << 20


class ThinnedSource(ArrayManners):
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
        self.in_memory, self.on_device = is_in_memory(source), is_on_device(source)
        edges = np.searchsorted(which, [s.start for s in source.slices])
        if prod(self.shape[1:]) * self.dtype.itemsize >= LARGE_SAMPLE:
            edges = np.append(edges, np.flatnonzero(np.diff(which) > 1) + 1)
        edges = np.unique(np.append(edges, len(which)))
        self.slices = tuple(slice(int(i), int(j)) for i, j in pairwise(edges))

    @property
    def numbers(self) -> NDArray[Any]:
        """Numbers that the samples have in the other source."""
        return self._which

    def block(self, rows: slice) -> Any:
        """Return the block of these samples, where they are."""
        wanted = self._which[rows]
        first, last = int(wanted[0]), int(wanted[-1])
        block = block_where_it_is(self._source, slice(first, last + 1))
        # Neighbours need no copy.
        return block if block.shape[0] == len(wanted) else take(block, wanted - first, axis=0)

    def read(self, rows: slice) -> NDArray[Any]:
        """Return the block of these samples on the host."""
        block: NDArray[Any] = to_host(self.block(rows))
        return block

    def place(self, sample: int) -> str:
        """Name the file of a sample."""
        return place_of(self._source, int(self._which[sample]))


def thin(source: Source, which: NDArray[Any], room: int) -> Source:
    """Return some samples, in ascending order; those of files stay in memory up to `room` bytes.

    Few samples out of many blocks would cost as much to read, pass for pass, as all of them.
    """
    some = ThinnedSource(source, which)
    return some if is_in_memory(source) else KeptSource(some, room)


def some_samples(source: Source, which: NDArray[Any]) -> Any:
    """Return samples by number or mask: a source where they are in order, else an array."""
    numbers = np.arange(source.shape[0])[which]
    some = ThinnedSource(source, np.unique(numbers))
    if np.array_equal(numbers, some.numbers):
        return some
    return some[np.searchsorted(some.numbers, numbers)]
