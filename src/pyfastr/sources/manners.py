"""What lets a source stand where NumPy arrays are expected."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class ArrayManners:
    """Length, dimensions, indexing and conversion for sources.

    Only the samples that are asked for are read; ``np.asarray`` asks for all of them.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    slices: tuple[slice, ...]

    def read(self, rows: slice) -> Array:
        """Return the block of these samples."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Array:
        """Read samples by number, slice, mask or array of numbers; further axes as in NumPy."""
        first, *rest = key if isinstance(key, tuple) else (key,)
        if first is Ellipsis:
            first = slice(None)
            rest = [Ellipsis, *rest] if rest else rest
        numbers = np.arange(len(self))[first]
        found = self._rows(np.atleast_1d(numbers))
        found = found if np.ndim(numbers) else found[0]
        return found[(slice(None),) * np.ndim(numbers) + tuple(rest)] if rest else found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("X is stored: an array of it is a copy; expected copy to be True.")
        whole = self._rows(np.arange(len(self)))
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def _rows(self, numbers: Array) -> Array:
        """Read samples in any order, a block at a time."""
        out = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        for rows in self.slices:
            at = np.flatnonzero((numbers >= rows.start) & (numbers < rows.stop))
            if at.size:
                wanted = numbers[at]
                first, last = int(wanted.min()), int(wanted.max())
                out[at] = self.read(slice(first, last + 1))[wanted - first]
        return out
