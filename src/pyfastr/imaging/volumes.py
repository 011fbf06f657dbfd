"""What the user names as images: found, checked by their headers, and read one at a time."""

import glob
import math
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.imaging.backend import nibabel
from pyfastr.imaging.grid import Grid

Array = NDArray[Any]

# No more than this times its size can come out of a file packed by gzip.
DEFLATE_RATIO = 1040


@dataclass(frozen=True, eq=False)
class Volume:
    """One 3-D image that has been found but not read.

    Attributes
    ----------
    name : str
        What messages call it: its file, or its place in the list.
    stored : array-like
        The values, in memory or to be read from the file.
    index : int or None
        Which volume of a 4-D image.
    grid : Grid
    dtype : dtype
        Type of the values as they are stored.
    """

    name: str
    stored: Any
    index: int | None
    grid: Grid
    dtype: np.dtype[Any]

    def read(self) -> Array:
        """Return the values; they may be the user's own, so they must not be written to."""
        try:
            own = self.stored if self.index is None else self.stored[..., self.index]
            return np.asanyarray(own)
        except _unreadable() as error:
            raise _damaged(self.name, str(error)) from error


def find_volumes(imgs: Any, argument: str = "imgs") -> list[Volume]:
    """Return the volumes that paths, patterns, lists or a 4-D image stand for.

    Only headers are read here, so that a wrong file among many is told of at once. Messages call
    images that are in memory by the name of the argument.
    """
    if isinstance(imgs, str | os.PathLike):
        imgs = _expand(imgs)
    if _is_image(imgs):
        return _of_image(imgs, imgs.get_filename() or argument)
    numbers = isinstance(imgs, np.ndarray) and imgs.dtype.kind in "biufc"
    if numbers or not isinstance(imgs, Iterable):
        raise TypeError(
            f"{argument} is of type {type(imgs).__name__}; expected paths or a pattern of paths, "
            "nibabel images, a list of these, or a 4-D image. For arrays, use FasTRRegressor or "
            "FasTRClassifier."
        )
    items = list(imgs)
    if not items:
        raise ValueError(f"{argument} is empty; expected at least one image.")
    return [_of_item(item, f"{argument}[{number}]") for number, item in enumerate(items)]


def open_image(path: Any) -> Any:
    """Read the header of a file."""
    path = Path(path).expanduser()
    nib = nibabel()
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; expected the path of an image.")
    if path.is_dir():
        raise ValueError(
            f"{path} is a folder; expected an image, or a pattern as '{path}/*.nii.gz'."
        )
    try:
        return nib.load(path)
    except _unreadable() as error:
        raise ValueError(
            f"{path} cannot be read as an image ({error}); expected a NIfTI file or another kind "
            "that nibabel reads."
        ) from error


def check_one_grid(volumes: list[Volume], grid: Grid, origin: str) -> None:
    """Refuse the first volume that lies elsewhere than it should."""
    for volume in volumes:
        if not volume.grid.same_as(grid):
            raise ValueError(
                f"{volume.name} has {volume.grid.describe()}; expected {grid.describe()}, as "
                f"{origin} has. Set target_affine (a voxel size, or the affine and target_shape "
                "of the grid you want) to have all images resampled."
            )


def check_overlap(volumes: list[Volume], grid: Grid) -> None:
    """Refuse the first volume of which nothing would be left after resampling."""
    for volume in volumes:
        if not volume.grid.overlaps(grid):
            raise ValueError(
                f"{volume.name} has {volume.grid.describe()}, which lies outside of the grid that "
                f"images are resampled to, {grid.describe()}; expected images of the same part of "
                "space. Check the origin in its header."
            )


def _expand(path: Any) -> Any:
    """Return the image of a path, or the files of a pattern in plain alphabetical order."""
    pattern = str(Path(path).expanduser())
    if not glob.has_magic(pattern) or Path(pattern).exists():
        return open_image(pattern)
    # Path.glob takes no absolute patterns.
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    if not found:
        raise FileNotFoundError(f"No file matches {pattern}; check the folder and the pattern.")
    return found


def _is_image(item: Any) -> bool:
    """Whether this is an image of nibabel's."""
    return isinstance(item, nibabel().spatialimages.SpatialImage)


def _of_item(item: Any, place: str) -> Volume:
    """Return the one volume of an item of a list."""
    if isinstance(item, Volume):
        return item
    if isinstance(item, str | os.PathLike):
        image, name = open_image(item), str(item)
    elif _is_image(item):
        image, name = item, item.get_filename() or place
    else:
        raise TypeError(
            f"{place} is of type {type(item).__name__}; expected a path or a nibabel image."
        )
    volumes = _of_image(image, name)
    if len(volumes) != 1:
        raise ValueError(
            f"{name} has shape {image.shape}; expected 3-D images in a list. Give a 4-D image by "
            "itself, or split it."
        )
    return volumes[0]


def _of_image(image: Any, name: str) -> list[Volume]:
    """Return the volumes of a 3-D or 4-D image."""
    shape = tuple(image.shape)
    if min(shape, default=0) < 1:
        raise ValueError(f"{name} is empty: its shape is {shape}; expected voxels on every axis.")
    if len(shape) not in (3, 4):
        raise ValueError(f"{name} has shape {shape}; expected a 3-D or a 4-D image.")
    _check_header(image, name)
    _check_size(image.dataobj, name)
    grid, dtype = Grid.of(image), np.dtype(image.get_data_dtype())
    if len(shape) == 3:
        return [Volume(name, image.dataobj, None, grid, dtype)]
    stored = _kept_open(image.dataobj)
    return [Volume(f"{name} (volume {i})", stored, i, grid, dtype) for i in range(shape[3])]


def _kept_open(stored: Any) -> Any:
    """Return a proxy that keeps its file open: volumes read in order are unpacked once."""
    if not _is_plain_proxy(stored):
        return stored
    layout = (stored.shape, stored.dtype, stored.offset, stored.slope, stored.inter)
    return type(stored)(stored.file_like, layout, order=stored.order, keep_file_open=True)


def _unreadable() -> tuple[type[Exception], ...]:
    """Return the errors of files that are no images, or not whole."""
    nib = nibabel()
    own = (nib.filebasedimages.ImageFileError, nib.spatialimages.HeaderDataError)
    numbers = (OverflowError, ValueError, zlib.error)
    return (OSError, EOFError, *numbers, nib.wrapstruct.WrapStructError, *own)


def _damaged(name: str, reason: str) -> ValueError:
    """Return the error of a file whose values are not all there."""
    return ValueError(
        f"{name} cannot be read ({reason}); the file may be damaged or cut short. Write or fetch "
        "it again, or leave it out."
    )


def _check_size(stored: Any, name: str) -> None:
    """Refuse a header that announces more than its file can hold, before room is made for it."""
    if not _is_plain_proxy(stored) or not isinstance(stored.file_like, str | os.PathLike):
        return
    path = Path(stored.file_like)
    if path.suffix not in (".nii", ".img", ".gz"):
        return
    announced = stored.offset + math.prod(stored.shape) * stored.dtype.itemsize
    held = path.stat().st_size * (DEFLATE_RATIO if path.suffix == ".gz" else 1)
    if announced > held:
        raise _damaged(name, f"its header announces {announced:,} bytes, which it does not hold")


def _is_plain_proxy(stored: Any) -> bool:
    """Whether these are values in a file that nibabel reads without further ado."""
    return type(stored) is nibabel().arrayproxy.ArrayProxy


def _check_header(image: Any, name: str) -> None:
    """Refuse values that are no real numbers and affines that put voxels on top of each other."""
    dtype = np.dtype(image.get_data_dtype())
    if dtype.kind not in "biuf":
        raise ValueError(f"{name} holds values of type {dtype}; expected real numbers.")
    affine = np.asarray(image.affine, dtype=float)
    if not np.isfinite(affine).all() or np.linalg.matrix_rank(affine[:3, :3]) < 3:
        raise ValueError(
            f"{name} has the affine {affine.tolist()}, which places voxels nowhere or on top of "
            "each other; expected an invertible one. Repair the header."
        )
