"""Another source, centred and scaled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.base import Source, block_where_it_is, place_of
from pyfastr.sources.device import is_on_device
from pyfastr.sources.manners import ArrayManners
from pyfastr.sources.namespaces import cast, to_device, to_host
from pyfastr.sources.stored import is_in_memory


class ScaledSource(ArrayManners):
    """``(X - mean) / scale`` of a source, made when a block is read; X itself is not copied.

    Training sets that differ have a scaling of their own each, and all share one X.

    Parameters
    ----------
    source : Source
    mean, scale : ndarray or None
        Of a shape that broadcasts to a sample's; None leaves that step out.
    """

    def __init__(
        self, source: Source, mean: NDArray[Any] | None, scale: NDArray[Any] | None
    ) -> None:
        self._source, self._mean, self._scale = source, mean, scale
        self.shape = source.shape
        self.dtype = source.dtype
        self.slices = source.slices
        self.in_memory, self.on_device = is_in_memory(source), is_on_device(source)

    def block(self, rows: slice) -> Any:
        """Return the block of these samples, where they are."""
        if not self.on_device:
            return self.read(rows)
        # As NumPy does, in the type of mean and scale, and rounded at the end.
        block = block_where_it_is(self._source, rows)
        if self._mean is not None:
            block = block - to_device(self._mean, like=block)
        if self._scale is not None:
            block = block / to_device(self._scale, like=block)
        return cast(block, self.dtype)

    def read(self, rows: slice) -> NDArray[Any]:
        """Return the block on the host, in the type of the source: 2 flops an entry."""
        if self.on_device:
            there: NDArray[Any] = to_host(self.block(rows))
            return there
        block = self._source.read(rows)
        out = np.empty(block.shape, self.dtype)
        np.subtract(block, 0.0 if self._mean is None else self._mean, out=out)
        if self._scale is not None:
            out /= self._scale
        return out

    def place(self, sample: int) -> str:
        """Name the file of a sample."""
        return place_of(self._source, sample)
