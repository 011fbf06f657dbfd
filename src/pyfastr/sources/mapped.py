"""Memory maps of files that are larger than what should be in memory."""

import mmap
import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.config import MemoryBudget

Array = NDArray[Any]


class MappedReader:
    """Samples of a memory map, read from its file.

    Pages of a map that have been touched count as this process's memory until the system needs
    them; what is read from the file does not.

    Parameters
    ----------
    X : ndarray
        In C order, its memory that of a map.
    path : Path
    offset : int
        Where the first sample is in the file.
    """

    chunk, advice = 1, ""

    def __init__(self, X: Array, path: Path, offset: int) -> None:
        self.shape, self.dtype = X.shape, X.dtype
        self._path, self._offset = path, offset
        self._sample_bytes = prod(X.shape[1:]) * X.dtype.itemsize

    def read_into(self, out: Array, rows: slice) -> None:
        """Write these samples into an array."""
        try:
            is_whole = self._fill(out.data.cast("B"), rows.start)
        except OSError as error:
            raise OSError(
                f"X is a memory map of {self._path}, which cannot be read at samples {rows.start} "
                f"to {rows.stop - 1}: {error} Expected a disk that can be read; take another copy "
                "of the file."
            ) from error
        if not is_whole:
            self._raise_truncated()

    def _fill(self, view: memoryview, first: int) -> bool:
        """Read from the first of some samples on, and return whether there was enough to read."""
        with self._path.open("rb", buffering=0) as file:
            file.seek(self._offset + first * self._sample_bytes)
            done = 0
            while done < len(view):
                count = file.readinto(view[done:])
                if not count:
                    return False
                done += count
        return True

    def read_cached(self, out: Array, rows: slice) -> bool:
        """Write these samples if the system has them in its cache, and return whether it had."""
        if not hasattr(os, "RWF_NOWAIT"):
            return False
        begin = self._offset + rows.start * self._sample_bytes
        try:
            with self._path.open("rb", buffering=0) as file:
                count = os.preadv(file.fileno(), [out.data.cast("B")], begin, os.RWF_NOWAIT)
        except OSError:
            # They are not in the cache, or the file system cannot tell.
            return False
        return count == out.nbytes

    def place(self, sample: int) -> str:
        """Name the file."""
        return f"file {self._path}"

    def check_size(self) -> None:
        """Refuse a file that ends before the last sample; touching the map there kills Python."""
        if self._path.stat().st_size < self._offset + self.shape[0] * self._sample_bytes:
            self._raise_truncated()

    def _raise_truncated(self) -> None:
        expected = self._offset + self.shape[0] * self._sample_bytes
        raise OSError(
            f"X is a memory map of {self._path}, which is truncated: it has "
            f"{self._path.stat().st_size} bytes; expected {expected} for shape {self.shape} and "
            f"dtype {self.dtype}. Write the file anew."
        )


def mapped_reader(X: Array, budget: MemoryBudget) -> MappedReader | None:
    """Return a reader of the file behind an array, or None if the array is better read itself.

    That is so for arrays in memory, small maps, changes that are not in the file, other layouts
    than C order, and files that have gone.
    """
    owner = _map_behind(X)
    if owner is None or owner.mode == "c" or owner.filename is None:
        return None
    path = Path(owner.filename)
    if not path.is_file() or not X.flags.c_contiguous or not X.size:
        return None
    reader = MappedReader(X, path, _file_offset(X, owner))
    reader.check_size()
    if X.nbytes <= budget.stored or not _is_same_file(reader, X):
        return None
    return reader


def _is_same_file(reader: MappedReader, X: Array) -> bool:
    """Whether the file still has what is mapped: another one may have taken its name since."""
    first = np.empty_like(X[:1])
    reader.read_into(first, slice(0, 1))
    return first.tobytes() == X[:1].tobytes()


def _map_behind(X: Any) -> Any:
    """Return the memory map whose memory an array uses, or None."""
    owner = None
    while isinstance(X, np.ndarray):
        owner = X if isinstance(X, np.memmap) else owner
        X = X.base
    return owner if isinstance(X, mmap.mmap) else None


def _file_offset(X: Array, owner: Any) -> int:
    """Position in the file of an array's first entry."""
    begin = owner.offset - owner.offset % mmap.ALLOCATIONGRANULARITY
    address = np.frombuffer(owner._mmap, np.uint8).__array_interface__["data"][0]
    return int(begin + X.__array_interface__["data"][0] - address)
