"""X in memory as a NumPy array."""

from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.manners import ArrayManners

# A block should be small enough to share the work among a few threads and large enough for a
# few microseconds of Python a block not to show.
BLOCK_BYTES = 8 << 20


class ArraySource(ArrayManners):
    """Blocks of a NumPy array (or memmap): views wherever the layout allows it.

    A C-contiguous float32 or float64 array is never copied. Other layouts and types
    (Fortran order, integers, big-endian) are converted one block at a time, so the memory
    above X stays at one block; each pass then pays for the conversion.

    Parameters
    ----------
    X : ndarray of shape (n_samples, p1, ..., pM)
    block_bytes : int
        About how many bytes one block holds; at least one sample.

    Attributes
    ----------
    is_viewed : bool
        Whether blocks are views.
    """

    def __init__(self, X: NDArray[Any], *, block_bytes: int = BLOCK_BYTES) -> None:
        self._X = X
        self.shape: tuple[int, ...] = X.shape
        self.dtype = working_dtype(X.dtype)
        self.is_viewed = X.flags.c_contiguous and X.dtype == self.dtype
        self.slices = even_slices(len(X), self.dtype.itemsize * X.size / block_bytes)

    def read(self, rows: slice) -> NDArray[Any]:
        """Return the C-contiguous block of these samples."""
        return np.ascontiguousarray(self._X[rows], dtype=self.dtype)


def working_dtype(stored: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of blocks: float32 or float64 as they are, float64 for all else."""
    native = stored.newbyteorder("=")
    return native if native in (np.float32, np.float64) else np.dtype(np.float64)


def even_slices(n_samples: int, n_blocks: float) -> tuple[slice, ...]:
    """Cut the samples into at least `n_blocks` blocks of about the same size.

    A multiple of four blocks where there are several, so that a few threads end together.
    """
    count = 1 if n_blocks <= 0.5 else 4 * ceil(n_blocks / 4)
    edges = np.linspace(0, n_samples, min(count, max(1, n_samples)) + 1).astype(int)
    return tuple(slice(int(i), int(j)) for i, j in pairwise(edges))
