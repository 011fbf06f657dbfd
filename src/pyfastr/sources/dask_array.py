"""Dask arrays, known by their type: Dask need not be there."""

import logging
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate, pairwise
from math import ceil, isnan, prod
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.config import MemoryBudget, current_budget
from pyfastr.sources.cluster import ClusterSource, client_of
from pyfastr.sources.manners import ArrayManners
from pyfastr.sources.memory import BLOCK_BYTES, even_slices, working_dtype
from pyfastr.sources.stored import AheadSource, block_limit

Array = NDArray[Any]

# Chunks below this share of a block are put together: the work of a block should outweigh its call.
SMALL_CHUNK = 1 / 8
_log = logging.getLogger("pyfastr")


def dask_behind(X: Any) -> Any:
    """Return the Dask array that X is, or that an xarray DataArray holds; None for all else.

    Other collections of Dask are refused, because NumPy would load them whole or not at all.
    """
    if hasattr(type(X), "to_dataset") and getattr(X, "chunks", None):
        X = X.data
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(X).__mro__}
    if ("dask", "Array") in kinds:
        return X
    if type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "__dask_graph__"):
        raise TypeError(
            f"X is a {type(X).__name__} of Dask; expected a Dask array, or anything NumPy takes. "
            "Use X.to_dask_array(lengths=True) of a data frame, dask.array.from_delayed of delayed "
            "values, or X.compute() if it fits in memory."
        )
    return None


def computed(value: Any) -> Any:
    """Return what a Dask collection stands for, and anything else as it is.

    It is for what is as long as the samples are many: responses, weights, covariates, predictions.
    """
    is_lazy = type(value).__module__.partition(".")[0] == "dask" and hasattr(value, "compute")
    return value.compute() if is_lazy else value


@dataclass(frozen=True)
class WholeSamples:
    """A Dask array whose chunks are of whole samples, and what it cost to make it so.

    Attributes
    ----------
    X : dask.array.Array
    advice : str
        For the person whose chunks lie across other axes; mostly nothing.
    """

    X: Any
    advice: str

    @classmethod
    def of(cls, X: Any, budget: MemoryBudget) -> "WholeSamples":
        """Put the parts of samples together where chunks divide them."""
        _check_known(X)
        divided = [axis for axis in range(1, X.ndim) if len(X.chunks[axis]) > 1]
        if not divided:
            return cls(X, "")
        n_parts = prod(len(X.chunks[axis]) for axis in divided)
        whole = dict.fromkeys(range(1, X.ndim), -1)
        advice = (
            f"X is a Dask array whose chunks divide each sample into {n_parts} parts, along "
            f"{'axis' if len(divided) == 1 else 'axes'} {', '.join(map(str, divided))}. They are "
            f"put together first, which moves {X.nbytes / 1e6:.1f} MB, all of X, whenever X is "
            f"computed. Chunk X along the samples only, best where it is stored; otherwise pass "
            f"X.rechunk({whole}).persist()."
        )
        return cls(X.rechunk({0: _rows_of_parts(X, budget), **whole}), advice)


def _check_known(X: Any) -> None:
    """Refuse chunks of unknown size."""
    unknown = [axis for axis, size in enumerate(X.shape) if isnan(size)]
    if unknown:
        raise ValueError(
            f"X is a Dask array of shape {X.shape}, whose size along axis {unknown[0]} is not "
            "known; expected known chunks. Call X.compute_chunk_sizes() first."
        )


def _rows_of_parts(X: Any, budget: MemoryBudget) -> tuple[int, ...]:
    """Return how many samples a chunk has once it is whole: as before, or fewer if too large."""
    sample_bytes = prod(X.shape[1:]) * X.dtype.itemsize
    most = max(1, block_limit(budget) // max(1, sample_bytes))
    edges = (even_slices(rows, 0 if rows <= most else rows / most) for rows in X.chunks[0])
    return tuple(part.stop - part.start for own in edges for part in own)


def dask_source(
    X: Any, budget: MemoryBudget | None = None
) -> "ClusterSource | PersistedSource | LazySource":
    """Return a Dask array as a source: on a cluster's workers, in memory, or block by block.

    It is computed once and stays in memory if it fits the budget.
    """
    budget = current_budget() if budget is None else budget
    whole = WholeSamples.of(X, budget)
    client = client_of(whole.X)
    if client is not None:
        return ClusterSource(whole.X, client, whole.advice)
    fits = prod(X.shape) * working_dtype(X.dtype).itemsize <= budget.whole
    kind = PersistedSource if fits else LazySource
    return kind(whole, budget)


class _Chunks:
    """The chunks of a Dask array along the samples, computed by the user's scheduler."""

    def __init__(self, X: Any, note: str) -> None:
        self.shape: tuple[int, ...] = tuple(map(int, X.shape))
        self.dtype = working_dtype(X.dtype)
        self.edges = (0, *accumulate(map(int, X.chunks[0]))) if X.ndim else (0,)
        self._X, self._note = X, note
        self._delayed: Sequence[Any] | None = None

    def compute(self, rows: slice) -> list[Array]:
        """Return all chunks that have some of these samples, in the working type."""
        first, last = self.number(rows.start), self.number(rows.stop - 1) + 1
        if self._delayed is None:
            _log.info("X, a Dask array of %.1f MB, %s", self.n_bytes / 1e6, self._note)
            self._delayed = self._X.to_delayed().ravel()
        try:
            found = import_module("dask").compute(*self._delayed[first:last])
        except Exception as error:
            error.add_note(
                f"This happened as samples {self.edges[first]} to {self.edges[last] - 1} of X, "
                "a Dask array, were computed."
            )
            raise
        return [self._checked(number, own) for number, own in enumerate(found, first)]

    @property
    def n_bytes(self) -> int:
        """Size of all samples in the working type."""
        return prod(self.shape) * self.dtype.itemsize

    def number(self, sample: int) -> int:
        """Return the number of the chunk of a sample."""
        return bisect_right(self.edges, sample) - 1

    def _checked(self, number: int, chunk: Any) -> Array:
        """Refuse what is not the chunk that was announced; convert what is."""
        first, stop = self.edges[number : number + 2]
        expected = (stop - first, *self.shape[1:])
        if not isinstance(chunk, np.ndarray) or chunk.shape != expected:
            raise ValueError(
                f"X is a Dask array whose samples {first} to {stop - 1} turned out to be "
                f"{type(chunk).__name__} of shape {np.shape(chunk)}; expected a NumPy array of "
                f"shape {expected}. Mend the function that makes its chunks, or give map_blocks "
                "their true shape."
            )
        chunk = np.ascontiguousarray(chunk, dtype=self.dtype).view()
        chunk.flags.writeable = False
        return chunk


class _DaskSource:
    """What both kinds have in common: where samples are, and what a person should know."""

    def __init__(self, whole: WholeSamples, note: str) -> None:
        self._chunks = _Chunks(whole.X, note)
        self.stored_dtype: np.dtype[Any] = whole.X.dtype
        self.advice = whole.advice

    def place(self, sample: int) -> str:
        """Name the chunk of a sample."""
        return f"chunk {self._chunks.number(sample)} of the Dask array"


class PersistedSource(_DaskSource, ArrayManners):
    """A Dask array that fits the memory budget: all of it is computed at the first read, and stays.

    Blocks are views of its chunks. Many small chunks are put together as they come.

    Parameters
    ----------
    whole : WholeSamples
    budget : MemoryBudget
    """

    in_memory = True

    def __init__(self, whole: WholeSamples, budget: MemoryBudget) -> None:
        room = f"{budget.total / 1e6:.1f} MB"
        super().__init__(
            whole, f"fits the memory budget of {room}: it is computed once and stays in memory."
        )
        self.shape, self.dtype = self._chunks.shape, self._chunks.dtype
        self._groups = _groups(self._chunks, int(SMALL_CHUNK * BLOCK_BYTES))
        self._starts = [group.start for group in self._groups]
        self.slices = tuple(part for group in self._groups for part in self._parts(group))
        self._lock = Lock()
        self._kept: list[Array] = []

    def read(self, rows: slice) -> Array:
        """Return the C-contiguous block of these samples."""
        kept = self._computed()
        first = bisect_right(self._starts, rows.start) - 1
        last = bisect_right(self._starts, rows.stop - 1)
        parts = [
            kept[number][max(0, rows.start - start) : rows.stop - start]
            for number, start in enumerate(self._starts[first:last], first)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _computed(self) -> list[Array]:
        """Compute all samples, once though several threads ask."""
        with self._lock:
            if not self._kept:
                self._kept = self._compute()
        return self._kept

    def _compute(self) -> list[Array]:
        """Compute all chunks at once, so that the scheduler shares them among its workers."""
        chunks = self._chunks.compute(slice(0, self.shape[0]))
        chunks.reverse()
        kept = []
        for group in self._groups:
            members = [chunks.pop()]
            while sum(map(len, members)) < group.stop - group.start:
                members.append(chunks.pop())
            kept.append(_joined(members))
        return kept

    def _parts(self, group: slice) -> list[slice]:
        """Cut a large chunk into blocks."""
        n_samples = group.stop - group.start
        size = n_samples * prod(self.shape[1:]) * self.dtype.itemsize
        # At least so many parts as the size asks for: threads share them.
        n_parts = min(max(1, ceil(size / BLOCK_BYTES)), n_samples)
        edges = np.linspace(group.start, group.stop, n_parts + 1).astype(int)
        return [slice(int(i), int(j)) for i, j in pairwise(edges)]


class LazySource(_DaskSource, AheadSource):
    """A Dask array beyond the memory budget: every pass computes its chunks, a few at a time.

    Parameters
    ----------
    whole : WholeSamples
    budget : MemoryBudget
    """

    def __init__(self, whole: WholeSamples, budget: MemoryBudget) -> None:
        room = f"{budget.whole / 1e6:.1f} of {budget.total / 1e6:.1f} MB"
        note = (
            f"exceeds its part of the memory budget, {room}: every pass computes its chunks anew."
        )
        _DaskSource.__init__(self, whole, note)
        chunks, limit = self._chunks, block_limit(budget)
        slices = _groups(chunks, min(BLOCK_BYTES, limit))
        AheadSource.__init__(self, self._block, chunks.shape, chunks.dtype, slices, budget.stored)
        self.advice = " ".join(filter(None, [self.advice, self._advice_on_size(limit)]))

    def _block(self, rows: slice) -> Array:
        """Compute samples; a chunk is computed whole though only some of it be wanted."""
        begin = self._chunks.edges[self._chunks.number(rows.start)]
        joined = _joined(self._chunks.compute(rows))
        return joined[rows.start - begin : rows.stop - begin]

    def _advice_on_size(self, limit: int) -> str:
        """Say what chunks that are too large cost."""
        sample_bytes = prod(self.shape[1:]) * self.dtype.itemsize
        largest = max((j - i for i, j in pairwise(self._chunks.edges)), default=0) * sample_bytes
        if largest <= limit:
            return ""
        return (
            f"X is a Dask array with chunks of up to {largest / 1e6:.1f} MB, but a block of "
            f"samples may take {limit / 1e6:.1f} MB and several are in memory at a time. Use "
            "X.rechunk to have chunks of fewer samples, or raise memory_budget."
        )


def _groups(chunks: _Chunks, least: int) -> tuple[slice, ...]:
    """Put neighbouring chunks together while they have fewer bytes than `least`."""
    sample_bytes = prod(chunks.shape[1:]) * chunks.dtype.itemsize
    found: list[slice] = []
    for begin, end in pairwise(chunks.edges):
        if begin == end:
            continue
        last = found[-1] if found else slice(0, 0)
        if found and (end - last.start) * sample_bytes <= least:
            found[-1] = slice(last.start, end)
        else:
            found.append(slice(begin, end))
    return tuple(found)


def _joined(parts: list[Array]) -> Array:
    """Return the samples of several arrays as one; one alone is not copied."""
    if len(parts) == 1:
        return parts[0]
    whole = np.concatenate(parts)
    whole.flags.writeable = False
    return whole
