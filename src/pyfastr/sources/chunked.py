"""Arrays of h5py and Zarr, known by what they offer: neither package need be there."""

from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Looking for more chunks than these in a folder would take seconds.
MOST_CHUNKS = 100_000


class ChunkedReader:
    """Samples of a dataset with axes, type and chunks, from which slices are read.

    Parameters
    ----------
    dataset : h5py.Dataset, zarr.Array or alike
    """

    def __init__(self, dataset: Any) -> None:
        _check_open(dataset)
        self._dataset = dataset
        self.shape = tuple(map(int, dataset.shape))
        if not self.shape:
            raise ValueError(f"X is one number, {self.place(0)}; expected an array of samples.")
        self.dtype = np.dtype(dataset.dtype)
        self.chunk = int(dataset.chunks[0]) if dataset.chunks else 1
        self._file, self._file_bytes = _hdf5_file(dataset)
        self.advice = _look_at_chunks(dataset, self.place(0))

    def read_into(self, out: Array, rows: slice) -> None:
        """Write these samples into an array."""
        try:
            self._fill(out, rows)
        except Exception as error:
            _check_open(self._dataset)
            raise OSError(
                f"X cannot be read from {self.place(rows.start)}, samples {rows.start} to "
                f"{rows.stop - 1}: {error} Expected shape {self.shape} and dtype {self.dtype}; the "
                "file may be truncated or damaged."
            ) from error

    def _fill(self, out: Array, rows: slice) -> None:
        """Read in place where the dataset can."""
        if self._file is not None and self._file.stat().st_size < self._file_bytes:
            # The library would go on, with zeros for what is not there.
            raise EOFError(
                f"it has {self._file.stat().st_size} of {self._file_bytes} bytes that it had."
            )
        if hasattr(self._dataset, "read_direct"):
            self._dataset.read_direct(out, rows)
            return
        block = np.asarray(self._dataset[rows])
        if block.shape != out.shape:
            raise ValueError(f"what is there has shape {block.shape}.")
        out[...] = block

    def place(self, sample: int) -> str:
        """Name the dataset and its file."""
        dataset = self._dataset
        name = str(getattr(dataset, "name", None) or "")
        holder = getattr(getattr(dataset, "file", None), "filename", None)
        holder = holder or getattr(dataset, "store_path", None)
        if holder is None:
            return f"{type(dataset).__name__} {name}".strip()
        return f"dataset {name} of {holder}" if name.strip("/") else str(holder)


def is_dataset(X: Any) -> bool:
    """Whether X is an array that is stored in chunks, or contiguously, and read by slices.

    Arrays of NumPy, Dask and xarray take part in NumPy's functions; what is stored does not.
    """
    if hasattr(type(X), "__array_ufunc__") or not hasattr(type(X), "__getitem__"):
        return False
    if _is_hdf5(X):
        return hasattr(type(X), "chunks")
    chunks = getattr(X, "chunks", ())
    known = chunks is None or (
        isinstance(chunks, tuple) and len(chunks) > 0 and all(isinstance(c, int) for c in chunks)
    )
    return known and hasattr(X, "shape") and hasattr(X, "dtype")


def _is_hdf5(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "h5py"


def _hdf5_file(dataset: Any) -> tuple[Path | None, int]:
    """Return the file of a dataset and its size, if it is opened to be read and on disk."""
    file = getattr(dataset, "file", None)
    if not _is_hdf5(dataset) or file is None or file.mode != "r":
        return None, 0
    path = Path(file.filename)
    return (path, int(file.id.get_filesize())) if path.is_file() else (None, 0)


def _check_open(dataset: Any) -> None:
    """Refuse a dataset of h5py whose file is closed: it is false then."""
    if _is_hdf5(dataset) and not dataset:
        raise ValueError(
            "X is an HDF5 dataset whose file is closed; expected an open file. Fit and predict "
            "inside of `with h5py.File(path) as file:`."
        )


def _look_at_chunks(dataset: Any, place: str) -> str:
    """Refuse a Zarr array on disk that lacks all chunks of some samples; warn if it lacks a few.

    Zarr reads what is missing as its fill value. It also leaves chunks of nothing else unwritten:
    a part that no sample has is background, but one that only some samples lack may be lost.
    """
    written = _written_chunks(dataset)
    if written is None:
        return ""
    parts = written.reshape(len(written), -1)
    advice = (
        f"and Zarr takes them to be {dataset.fill_value}. Write them anew; if they are meant to be "
        "so, with zarr.config.set({'array.write_empty_chunks': True})."
    )
    empty = np.flatnonzero(~parts.any(axis=1))
    if len(empty):
        first = _describe_chunk(dataset, (empty[0], *[0] * (written.ndim - 1)))
        raise OSError(f"X lacks samples: {place} has no chunk of {first}, {advice}")
    lost = np.argwhere(~written & written.any(axis=0))
    if not len(lost):
        return ""
    first = _describe_chunk(dataset, tuple(lost[0]))
    return (
        f"X may lack values: {place} has no chunk for a part of {first}, which other samples have; "
        f"{len(lost)} such chunks are missing, {advice}"
    )


def _written_chunks(dataset: Any) -> NDArray[np.bool_] | None:
    """Return which chunks of a Zarr array are there, if it is on disk and they are not too many."""
    metadata: Any = getattr(dataset, "metadata", None)
    root = getattr(getattr(dataset, "store", None), "root", None)
    if not isinstance(root, Path) or not hasattr(metadata, "encode_chunk_key"):
        return None
    chunks = _stored_chunks(dataset)
    if 0 in chunks:
        raise OSError(f"X cannot be read: {dataset.store_path} says that its chunks are {chunks}.")
    grid = [ceil(n / c) for n, c in zip(dataset.shape, chunks, strict=True)]
    if prod(grid) > MOST_CHUNKS:
        return None
    folder = root / str(getattr(dataset, "path", ""))
    there = [(folder / metadata.encode_chunk_key(at)).exists() for at in np.ndindex(*grid)]
    return np.reshape(there, grid)


def _stored_chunks(dataset: Any) -> tuple[int, ...]:
    """Shape of what is one file of a Zarr array."""
    return getattr(dataset, "shards", None) or dataset.chunks


def _describe_chunk(dataset: Any, at: tuple[Any, ...]) -> str:
    """Name the samples of a chunk, and its file."""
    size = _stored_chunks(dataset)[0]
    first, last = at[0] * size, min((at[0] + 1) * size, dataset.shape[0]) - 1
    return f"samples {first} to {last} ({dataset.metadata.encode_chunk_key(at)})"
