"""Arrays of other libraries, read where they are."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.manners import ArrayManners
from pyfastr.sources.memory import BLOCK_BYTES, even_slices
from pyfastr.sources.namespaces import host_dtype, namespace_of, to_host

Array = NDArray[Any]


class DeviceSource(ArrayManners):
    """Blocks of an array of torch, CuPy or another library of the array API standard.

    A block is a view of the array and stays on its device. Types other than float32 and float64
    are converted one block at a time.

    Parameters
    ----------
    X : array of shape (n_samples, p1, ..., pM)
    block_bytes : int
        About how many bytes one block holds; at least one sample.

    Attributes
    ----------
    array : array
        X itself.
    block_dtype : dtype
        Of blocks, as the library of X calls it.
    is_viewed : bool
        Whether blocks are views.
    """

    on_device = True

    def __init__(self, X: Any, *, block_bytes: int = BLOCK_BYTES) -> None:
        self.array = X
        self.shape: tuple[int, ...] = tuple(map(int, X.shape))
        self.dtype = host_dtype(X)
        self.block_dtype = getattr(namespace_of(X), self.dtype.name)
        self.is_viewed = X.dtype == self.block_dtype
        self.slices = even_slices(
            self.shape[0], self.dtype.itemsize * prod(self.shape) / block_bytes
        )

    def block(self, rows: slice) -> Any:
        """Return the block of these samples on the device, to be read and never written."""
        xp = namespace_of(self.array)
        return xp.astype(self.array[rows, ...], self.block_dtype, copy=False)

    def read(self, rows: slice) -> Array:
        """Return the block of these samples on the host, for work that NumPy does."""
        return np.ascontiguousarray(to_host(self.block(rows)))


def is_on_device(source: Any) -> bool:
    """Whether a source has blocks of another library than NumPy, which `block` returns."""
    return bool(getattr(source, "on_device", False))
