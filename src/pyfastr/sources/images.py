"""Samples in NIfTI files, one file a sample."""

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.extras import require

Array = NDArray[Any]

# Of a voxel, up to which affines differ by rounding only.
SAME_PLACE = 1e-3
# No more than this times its size can come out of a file packed by gzip.
UNPACKED = 1040


class ImagesReader:
    """Samples in NIfTI files, each one image of shape ``(p1, ..., pM)``, in the order of the list.

    All headers are compared before any values are read. Values are scaled by the slope and
    intercept of their own file; they are float32 unless a file's type has more digits than that.

    Parameters
    ----------
    paths : sequence of path
    """

    chunk = 1

    def __init__(self, paths: Sequence[Any]) -> None:
        self._paths = [Path(path) for path in paths]
        images = [self._open(sample) for sample in range(len(paths))]
        self._stored = [image.dataobj for image in images]
        self.shape: tuple[int, ...] = (len(paths), *self._stored[0].shape)
        for sample in range(len(paths)):
            self._check_header(sample)
            self._check_size(sample)
        self.dtype: np.dtype[Any] = np.result_type(np.float32, *{s.dtype for s in self._stored})
        self.advice = self._advice(images)

    def read_into(self, out: Array, rows: slice) -> None:
        """Write these samples into an array."""
        for sample in range(rows.start, rows.stop):
            try:
                # What is too large for float32 becomes infinity, which is then told of.
                with np.errstate(over="ignore"):
                    out[sample - rows.start] = np.asanyarray(self._stored[sample])
            except Exception as error:
                raise self._damaged(sample, error) from error

    def place(self, sample: int) -> str:
        """Name the file of a sample."""
        return f"file {self._paths[sample]}"

    def _open(self, sample: int) -> Any:
        """Read the header of one file."""
        path = self._paths[sample]
        nibabel = require("nibabel", "imaging", "Reading NIfTI files")
        try:
            # A map of a file that is cut short while it is read would kill Python.
            return nibabel.load(path, mmap=False)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"X has no sample {sample}: there is no file {path}; expected one NIfTI file for "
                "each sample."
            ) from error
        except Exception as error:
            raise self._damaged(sample, error) from error

    def _damaged(self, sample: int, error: object) -> OSError:
        """Return the error of a file that is no image, or not whole."""
        # Lack of memory, which a damaged size asks for, says nothing.
        reason = " ".join(str(error).split()) or type(error).__name__
        return OSError(
            f"X has sample {sample} in {self._paths[sample]}, which cannot be read ({reason}); "
            "expected a whole NIfTI file. Write or fetch it anew."
        )

    def _check_header(self, sample: int) -> None:
        """Refuse another shape than the first file's, and values that are no real numbers."""
        found = self._stored[sample]
        if found.shape != self.shape[1:]:
            raise ValueError(
                f"X has sample {sample} in {self.place(sample)} of shape {found.shape}; expected "
                f"shape {self.shape[1:]}, as in {self.place(0)}. To resample images to one grid, "
                "use NiftiRegressor or NiftiClassifier with target_affine."
            )
        if found.dtype.kind not in "iuf":
            raise ValueError(
                f"X has sample {sample} in {self.place(sample)} of dtype {found.dtype}; expected "
                "real numbers."
            )

    def _check_size(self, sample: int) -> None:
        """Refuse a file that cannot hold what its header announces, before room is made for it."""
        found, path = self._stored[sample], self._paths[sample]
        announced = found.offset + prod(found.shape) * found.dtype.itemsize
        held = path.stat().st_size * (UNPACKED if path.suffix.lower() == ".gz" else 1)
        if announced > held:
            raise self._damaged(sample, f"it has at most {held} of {announced} bytes")

    def _advice(self, images: Sequence[Any]) -> str:
        """Say if voxels of the same number lie elsewhere in some file."""
        # Kinds of NIfTI that are no volumes have no affine.
        affines = [np.asarray(getattr(image, "affine", np.eye(4))) for image in images]
        nearest = SAME_PLACE * np.abs(affines[0][:3, :3]).max()
        gaps = [np.abs(affine - affines[0]).max() for affine in affines]
        moved = next((sample for sample, gap in enumerate(gaps) if gap > nearest), None)
        if moved is None:
            return ""
        return (
            f"X has sample {moved} in {self.place(moved)} with another affine than "
            f"{self.place(0)}: the same voxel is another place there. Use NiftiRegressor or "
            "NiftiClassifier with target_affine to resample the images to one grid."
        )
