"""Another source in fewer digits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.base import Source, block_where_it_is
from pyfastr.sources.device import is_on_device
from pyfastr.sources.namespaces import cast, to_host
from pyfastr.sources.stored import is_in_memory


class RoundedSource:
    """A float64 source rounded to float32, one block at a time.

    Products in float32 take half the time; a search for starts needs no more digits.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.shape = source.shape
        self.dtype = np.dtype(np.float32)
        self.slices = source.slices
        self.in_memory, self.on_device = is_in_memory(source), is_on_device(source)

    def block(self, rows: slice) -> Any:
        """Return the rounded block of these samples, where they are."""
        return cast(block_where_it_is(self._source, rows), self.dtype)

    def read(self, rows: slice) -> NDArray[Any]:
        """Return the rounded block of these samples on the host."""
        block: NDArray[Any] = to_host(self.block(rows))
        return block
