"""The protocol of a source, and what can be said of X in one pass over it."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pyfastr.config import current_budget
from pyfastr.sources.chunked import ChunkedReader, is_dataset
from pyfastr.sources.cluster import ClusterSource
from pyfastr.sources.dask_array import dask_behind, dask_source
from pyfastr.sources.device import DeviceSource, is_on_device
from pyfastr.sources.files import reader_of_files
from pyfastr.sources.mapped import mapped_reader
from pyfastr.sources.memory import BLOCK_BYTES, ArraySource
from pyfastr.sources.namespaces import is_foreign, namespace_of, to_host
from pyfastr.sources.stored import StoredSource, block_limit
from pyfastr.sources.symmetry import Pair, symmetric_in

Array = NDArray[Any]


@runtime_checkable
class Source(Protocol):
    """X of shape ``(n_samples, p1, ..., pM)``, read block by block along the samples.

    Attributes
    ----------
    shape : tuple of int
        ``(n_samples, p1, ..., pM)``.
    dtype : numpy.dtype
        float32 or float64: the type of the blocks, and so of all work on them.
    slices : sequence of slice
        The blocks, in order; together they cover the samples once.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def slices(self) -> tuple[slice, ...]: ...

    def read(self, rows: slice) -> Array:
        """Return the C-contiguous block of these samples, to be read and never written."""
        ...


def is_stored(X: Any) -> bool:
    """Whether `X` is in files, lazy or a source, rather than an array or what becomes one."""
    # The protocol comes late: a dataset whose file is closed tells it no shape, and a delayed value
    # of Dask has any attribute that it is asked for.
    if dask_behind(X) is not None or is_dataset(X):
        return True
    return isinstance(X, Source) or reader_of_files(X) is not None


def as_source(X: Any) -> Source:
    """Wrap `X` without a copy; a source passes through.

    Datasets of h5py and Zarr, lists of .npy or NIfTI files, and memory maps that are large beside
    the memory budget are read from their files. Dask arrays are computed, once if they fit the
    budget; those of a cluster stay with its workers. Arrays of torch, CuPy and alike stay on their
    device. Small maps and all else are read as arrays of NumPy.
    """
    budget = current_budget()
    lazy = dask_behind(X)
    if lazy is not None:
        return dask_source(lazy, budget)
    if is_dataset(X):
        return StoredSource(ChunkedReader(X), budget)
    if isinstance(X, Source):
        return X
    if (files := reader_of_files(X)) is not None:
        return StoredSource(files(X), budget)
    if is_foreign(X):
        return DeviceSource(X)
    X = np.asarray(X)
    mapped = mapped_reader(X, budget)
    if mapped is not None:
        return StoredSource(mapped, budget)
    return ArraySource(X, block_bytes=min(BLOCK_BYTES, block_limit(budget)))


def place_of(source: Any, sample: int) -> str:
    """Name the file of a sample, if it is in one."""
    place = getattr(source, "place", None)
    return "" if place is None else place(sample)


def largest_entry(source: Source) -> float:
    """Return max|X| in one pass; NaN or infinity is an error that says where it stands."""
    return look_over(source, ())[0]


def look_over(source: Source, pairs: tuple[Pair, ...]) -> tuple[float, tuple[Pair, ...]]:
    """Return max|X| and those pairs of modes in which all samples are symmetric, in one pass.

    NaN or infinity is an error that says where it stands.
    """
    if isinstance(source, ClusterSource):
        return _look_there(source, pairs)
    largest = 0.0
    for rows in source.slices:
        block = block_where_it_is(source, rows)
        largest = max(largest, size_of(source, rows, block))
        pairs = symmetric_in(block, pairs)
    return largest, pairs


def _look_there(source: ClusterSource, pairs: tuple[Pair, ...]) -> tuple[float, tuple[Pair, ...]]:
    """Have workers look over the chunks that stay with them."""
    largest = 0.0
    for rows, (low, high, own) in zip(source.slices, source.looks(pairs), strict=True):
        if not (np.isfinite(low) and np.isfinite(high)):
            _raise_not_finite(source, rows.start, source.read(rows))
        largest = max(largest, -low, high)
        pairs = tuple(pair for pair in pairs if pair in own)
    return largest, pairs


def block_where_it_is(source: Any, rows: slice) -> Any:
    """Return a block on the device that has it, if that is not the host."""
    return source.block(rows) if is_on_device(source) else source.read(rows)


def size_of(source: Source, rows: slice, block: Array) -> float:
    """Return max|X| of one block that was read; NaN or infinity is an error."""
    # Minimum and maximum let NaN through, so no second scan or mask is needed.
    xp = namespace_of(block)
    low, high = float(xp.min(block)), float(xp.max(block))
    if not (np.isfinite(low) and np.isfinite(high)):
        _raise_not_finite(source, rows.start, to_host(block))
    return max(0.0, -low, high)


def _raise_not_finite(source: Source, first_sample: int, block: Array) -> None:
    """Name the first entry that is NaN or infinite."""
    bad = np.argwhere(~np.isfinite(block))
    number, *element = (int(i) for i in bad[0])
    kind = "NaN" if np.isnan(block[tuple(bad[0])]) else "infinity"
    place = place_of(source, first_sample + number)
    raise ValueError(
        f"Input X contains {kind}: first at sample {first_sample + number}"
        f"{f' ({place})' if place else ''}, "
        f"element {tuple(element)}, and {len(bad)} such values in the block of samples "
        f"read with it. Impute or drop them before fitting or predicting."
    )
