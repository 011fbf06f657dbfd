"""Arrays of h5py and Zarr, known by what they offer: neither package need be there."""

from itertools import product
from math import ceil
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
        _check_chunks(dataset, self.place(0))

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


def _check_chunks(dataset: Any, place: str) -> None:
    """Refuse a Zarr array on disk that lacks all chunks of some samples.

    Zarr reads what is missing as its fill value. It also leaves chunks of nothing else unwritten,
    so that a part of a sample may well be missing.
    """
    metadata: Any = getattr(dataset, "metadata", None)
    root = getattr(getattr(dataset, "store", None), "root", None)
    if not isinstance(root, Path) or not hasattr(metadata, "encode_chunk_key"):
        return
    stored = getattr(dataset, "shards", None) or dataset.chunks
    grid = [ceil(n / c) for n, c in zip(dataset.shape, stored, strict=True)]
    if np.prod(grid, dtype=float) > MOST_CHUNKS:
        return
    folder = root / str(getattr(dataset, "path", ""))
    others = list(product(*map(range, grid[1:])))
    for row in range(grid[0]):
        keys = (metadata.encode_chunk_key((row, *other)) for other in others)
        if not any((folder / key).exists() for key in keys):
            first, last = row * stored[0], min((row + 1) * stored[0], dataset.shape[0]) - 1
            raise OSError(
                f"X lacks samples {first} to {last}: {place} has no chunk of them (the first would "
                f"be {metadata.encode_chunk_key((row, *others[0]))}), and Zarr would take them to "
                f"be {dataset.fill_value}. Write them anew; if they are meant to be so, with "
                "zarr.config.set({'array.write_empty_chunks': True})."
            )
