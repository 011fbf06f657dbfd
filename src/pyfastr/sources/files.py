"""Samples in NumPy files, one file a sample."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.images import ImagesReader

Array = NDArray[Any]


class FilesReader:
    """Samples in .npy files, each one array of shape ``(p1, ..., pM)``, in the order of the list.

    The first file tells shape and type; every other one is compared with it when it is read.

    Parameters
    ----------
    paths : sequence of path
    """

    chunk, advice = 1, ""

    def __init__(self, paths: Sequence[Any]) -> None:
        self._paths = [Path(path) for path in paths]
        first = self._open(0)
        self.shape: tuple[int, ...] = (len(self._paths), *first.shape)
        self.dtype: np.dtype[Any] = first.dtype

    def read_into(self, out: Array, rows: slice) -> None:
        """Write these samples into an array."""
        for sample in range(rows.start, rows.stop):
            found = self._open(sample)
            if found.shape != self.shape[1:] or not np.can_cast(found.dtype, self.dtype):
                raise ValueError(
                    f"X has sample {sample} in {self.place(sample)} of shape {found.shape} and "
                    f"dtype {found.dtype}; expected shape {self.shape[1:]} and dtype {self.dtype}, "
                    f"as in {self.place(0)}."
                )
            out[sample - rows.start] = found

    def place(self, sample: int) -> str:
        """Name the file of a sample."""
        return f"file {self._paths[sample]}"

    def _open(self, sample: int) -> Array:
        """Read one file; objects, which could run code, are refused."""
        path = self._paths[sample]
        try:
            return np.asarray(np.load(path, allow_pickle=False))
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"X has no sample {sample}: there is no file {path}; expected one .npy file for "
                "each sample."
            ) from error
        # What NumPy raises on damaged headers has no common type.
        except Exception as error:
            raise OSError(
                f"X has sample {sample} in {path}, which cannot be read: {_reason(error)} Expected "
                "a whole .npy file of numbers; write it anew."
            ) from error


def _reason(error: Exception) -> str:
    """Return what an error says in one line; some say nothing."""
    return " ".join(str(error).split()) or f"{type(error).__name__}."


_READERS: dict[str, type[FilesReader] | type[ImagesReader]] = {
    ".npy": FilesReader,
    ".nii": ImagesReader,
    ".nii.gz": ImagesReader,
}


def reader_of_files(X: Any) -> type[FilesReader] | type[ImagesReader] | None:
    """Return what reads a list of files, or None if X is none; several kinds are refused."""
    if isinstance(X, str | os.PathLike) and _reader_of(X):
        raise ValueError(
            f"X is the file {str(X)!r}; expected a list of files, one for each sample. Open an "
            ".npy file of all samples with np.load(path, mmap_mode='r'); for a 4-D image of all "
            "samples, use NiftiRegressor or NiftiClassifier."
        )
    if not isinstance(X, list | tuple) or not X:
        return None
    if not all(isinstance(path, str | os.PathLike) for path in X):
        return None
    found = [_reader_of(path) for path in X]
    other = next((path for path, kind in zip(X, found, strict=True) if kind != found[0]), None)
    if other is not None:
        raise ValueError(
            f"X is a list of files of several kinds, {str(X[0])!r} and {str(other)!r} among them; "
            "expected one file for each sample, all of them .npy, or all of them NIfTI (.nii, "
            ".nii.gz)."
        )
    return found[0]


def _reader_of(path: Any) -> type[FilesReader] | type[ImagesReader] | None:
    """Return what reads a file, by the ending of its name."""
    name = str(path).lower()
    return next((kind for ending, kind in _READERS.items() if name.endswith(ending)), None)
