"""X in files: blocks of whole chunks, read ahead in a thread, within the memory budget."""

import os
from collections.abc import Callable
from math import ceil, prod
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pyfastr.config import MemoryBudget, current_budget
from pyfastr.sources.ahead import DEPTH, ReadAhead
from pyfastr.sources.buffers import Buffers
from pyfastr.sources.manners import ArrayManners
from pyfastr.sources.memory import BLOCK_BYTES, even_slices, working_dtype

Array = NDArray[Any]

# Of a block at work: as it is read, and as it is converted, rounded or scaled.
COPIES = 2


class Reader(Protocol):
    """Stored samples: how they are laid out, how some of them are read, and where they are.

    Attributes
    ----------
    shape : tuple of int
        ``(n_samples, p1, ..., pM)``.
    dtype : numpy.dtype
        As stored.
    chunk : int
        Samples that are stored together, and so best read together.
    advice : str
        What a person should know of the files; mostly nothing.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def chunk(self) -> int: ...

    @property
    def advice(self) -> str: ...

    def read_into(self, out: Array, rows: slice) -> None:
        """Write these samples, of the type in which they are stored, into a contiguous array."""
        ...

    def place(self, sample: int) -> str:
        """Name the file of a sample, for errors."""
        ...


class AheadSource(ArrayManners):
    """Blocks that are made when they are wanted, the next ones in a thread meanwhile.

    Parameters
    ----------
    load : callable
        Makes the array of any slice of samples, which nobody writes to.
    shape : tuple of int
    dtype : numpy.dtype
        Of the blocks.
    slices : tuple of slice
        The blocks.
    room : int
        Bytes of blocks that stay in memory.
    at_hand : callable, optional
        As `ReadAhead` has it.
    """

    in_memory = False

    def __init__(
        self,
        load: Callable[[slice], Array],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        slices: tuple[slice, ...],
        room: int,
        at_hand: Callable[[slice], Array | None] | None = None,
    ) -> None:
        self.shape, self.dtype, self.slices = shape, dtype, slices
        self._numbers = {rows.start: number for number, rows in enumerate(slices)}
        self._load = load
        self._blocks = ReadAhead(load, slices, room, at_hand)

    def read(self, rows: slice) -> Array:
        """Return the C-contiguous block of these samples, which need not be one of `slices`."""
        number = self._numbers.get(rows.start)
        if number is not None and self.slices[number].stop == rows.stop:
            return self._blocks.read(number)
        parts = [self._part(number, rows) for number in self._touched(rows)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _touched(self, rows: slice) -> list[int]:
        """Numbers of the blocks that have some of these samples."""
        blocks = enumerate(self.slices)
        return [i for i, own in blocks if own.start < rows.stop and own.stop > rows.start]

    def _part(self, number: int, rows: slice) -> Array:
        """Return what one block has of some samples, without reading the others."""
        own = self.slices[number]
        first, last = max(own.start, rows.start), min(own.stop, rows.stop)
        if (first, last) == (own.start, own.stop):
            return self._blocks.read(number)
        block = self._blocks.peek(number)
        if block is None:
            return self._load(slice(first, last))
        return block[first - own.start : last - own.start]


@runtime_checkable
class CachedReader(Reader, Protocol):
    """One that can tell whether samples have to be waited for."""

    def read_cached(self, out: Array, rows: slice) -> bool:
        """Write these samples if the system has them in its cache, and return whether it had."""
        ...


class StoredSource(AheadSource):
    """Blocks of stored samples; of X only a part of the memory budget is in memory at any time.

    Blocks are of whole chunks and read in order, the next ones in a thread while one is worked on.
    They are converted to float32 or float64 as they are read. The first blocks stay in memory as
    far as the budget's part for it goes, so that X that is small beside the budget is read once.

    Parameters
    ----------
    reader : Reader
    budget : MemoryBudget, optional

    Attributes
    ----------
    stored_dtype : numpy.dtype
        Before conversion.
    advice : str
        What a person should know of the way X is stored; mostly nothing.
    """

    def __init__(self, reader: Reader, budget: MemoryBudget | None = None) -> None:
        budget = current_budget() if budget is None else budget
        self._reader = reader
        self.stored_dtype = reader.dtype
        dtype, limit = working_dtype(reader.dtype), block_limit(budget)
        self.advice = f"{reader.advice} {_advice(reader, dtype, limit)}".strip()
        shape, load = tuple(map(int, reader.shape)), _Loader(reader, dtype)
        slices = _chunk_slices(reader, dtype, limit)
        at_hand = load.at_hand if isinstance(reader, CachedReader) else None
        super().__init__(load, shape, dtype, slices, budget.stored, at_hand)

    def place(self, sample: int) -> str:
        """Name the file of a sample."""
        return self._reader.place(sample)


class _Loader:
    """Reads and converts blocks; passes share them, so nobody may write to them."""

    def __init__(self, reader: Reader, dtype: np.dtype[Any]) -> None:
        self._reader, self.dtype = reader, dtype
        self._buffers = Buffers(_n_blocks())

    def __call__(self, rows: slice) -> Array:
        block = self._empty(rows)
        self._reader.read_into(block, rows)
        return self._converted(block)

    def at_hand(self, rows: slice) -> Array | None:
        """Return a block that the system has in its cache."""
        assert isinstance(self._reader, CachedReader)
        block = self._empty(rows)
        return self._converted(block) if self._reader.read_cached(block, rows) else None

    def _empty(self, rows: slice) -> Array:
        shape = (rows.stop - rows.start, *self._reader.shape[1:])
        return self._buffers.empty(shape, self._reader.dtype)

    def _converted(self, block: Array) -> Array:
        if block.dtype != self.dtype:
            raw, block = block, self._buffers.empty(block.shape, self.dtype)
            np.copyto(block, raw)
        block.flags.writeable = False
        return block


class KeptSource(ArrayManners):
    """Another source whose blocks stay in memory once read, as far as there is room for them."""

    in_memory = False

    def __init__(self, source: Any, room: int) -> None:
        self._source = source
        self.shape, self.dtype, self.slices = source.shape, source.dtype, source.slices
        self._numbers = {rows.start: number for number, rows in enumerate(self.slices)}
        self._blocks = ReadAhead(source.read, self.slices, room)

    def read(self, rows: slice) -> Array:
        """Return the block of these samples."""
        number = self._numbers.get(rows.start)
        if number is not None and self.slices[number].stop == rows.stop:
            return self._blocks.read(number)
        block: Array = self._source.read(rows)
        return block


def is_in_memory(source: Any) -> bool:
    """Whether reading blocks of a source costs no more than memory does."""
    return bool(getattr(source, "in_memory", True))


def block_limit(budget: MemoryBudget) -> int:
    """Bytes of one block, so that those of all threads and those read ahead are within budget."""
    return budget.blocks // _n_blocks()


def _n_blocks() -> int:
    """Blocks in memory at one time: those read ahead, and those that threads work on."""
    can_tell = hasattr(os, "sched_getaffinity")
    n_threads = len(os.sched_getaffinity(0)) if can_tell else os.cpu_count() or 1
    return DEPTH + COPIES * n_threads


def _chunk_slices(reader: Reader, dtype: np.dtype[Any], limit: int) -> tuple[slice, ...]:
    """Cut the samples into blocks of whole chunks, of about the size that suits the solver."""
    n_samples = reader.shape[0]
    chunk = max(1, min(reader.chunk, n_samples))
    chunk = ceil(chunk / _n_parts(reader, dtype, limit))
    n_blocks = prod(reader.shape) * dtype.itemsize / min(BLOCK_BYTES, limit)
    units = even_slices(ceil(n_samples / chunk), n_blocks)
    return tuple(slice(s.start * chunk, min(s.stop * chunk, n_samples)) for s in units)


def _chunk_bytes(reader: Reader, dtype: np.dtype[Any]) -> int:
    """Bytes of the samples of one chunk, as they are stored or converted."""
    n_samples, *shape = reader.shape
    itemsize = max(dtype.itemsize, reader.dtype.itemsize)
    return max(1, min(reader.chunk, n_samples)) * prod(shape) * itemsize


def _n_parts(reader: Reader, dtype: np.dtype[Any], limit: int) -> int:
    """Return in how many parts a chunk is read: one, if it is not too large; samples are whole."""
    most = min(reader.chunk, reader.shape[0])
    return max(1, min(most, ceil(_chunk_bytes(reader, dtype) / limit)))


def _advice(reader: Reader, dtype: np.dtype[Any], limit: int) -> str:
    """Say what chunks that are too large cost."""
    n_parts = _n_parts(reader, dtype, limit)
    if n_parts <= 1:
        return ""
    return (
        f"X ({reader.place(0)}) is stored in chunks of {reader.chunk} samples, "
        f"{_chunk_bytes(reader, dtype) / 1e6:.1f} MB, but one block of samples may take "
        f"{limit / 1e6:.1f} MB: every pass reads each chunk {n_parts} times. Store X in chunks of "
        "fewer samples, or raise memory_budget."
    )
