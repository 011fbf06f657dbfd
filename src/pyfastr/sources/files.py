"""Samples in NumPy files, one file a sample."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class FilesReader:
    """Samples in .npy files, each one array of shape ``(p1, ..., pM)``, in the order of the list.

    The first file tells shape and type; every other one is compared with it when it is read.

    Parameters
    ----------
    paths : sequence of path
    """

    chunk = 1

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
        except (OSError, EOFError, ValueError) as error:
            raise OSError(
                f"X has sample {sample} in {path}, which cannot be read: {error} Expected a whole "
                ".npy file of numbers; write it anew."
            ) from error


def is_file_list(X: Any) -> bool:
    """Whether X is a list of .npy files; a list in which only some are is refused."""
    if not isinstance(X, list | tuple) or not X:
        return False
    if not all(isinstance(path, str | os.PathLike) for path in X):
        return False
    wrong = [path for path in X if Path(path).suffix.lower() != ".npy"]
    if wrong and len(wrong) < len(X):
        raise ValueError(
            f"X is a list of files, and {str(wrong[0])!r} is one of {len(wrong)} that are no .npy "
            "file; expected one .npy file for each sample."
        )
    return not wrong
