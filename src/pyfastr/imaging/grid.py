"""Where the voxels of a volume are: shape, affine, and millimetres along each axis."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.imaging.backend import image_data, make_image, nibabel, nilearn

Array = NDArray[Any]
Slices = tuple[slice, slice, slice]

# Grids whose corners are nearer than this share of a voxel are one grid: headers round affines.
SAME_GRID = 1e-3


@dataclass(frozen=True, eq=False)
class Grid:
    """Shape of a volume, and the affine that takes voxel indices to millimetres."""

    shape: tuple[int, int, int]
    affine: Array

    @classmethod
    def of(cls, image: Any) -> "Grid":
        """Return the grid of the first three axes of an image."""
        return cls(tuple(image.shape[:3]), np.asarray(image.affine, dtype=float))

    @property
    def voxel_sizes(self) -> Array:
        """Millimetres from one voxel to the next along each axis."""
        return np.linalg.norm(self.affine[:3, :3], axis=0)

    def same_as(self, other: "Grid") -> bool:
        """Whether the voxels are in the same places, but for rounding in a header."""
        if self.shape != other.shape:
            return False
        gap = np.abs((self.affine - other.affine) @ self._corners()).max()
        return bool(gap <= SAME_GRID * self.voxel_sizes.min())

    def overlaps(self, other: "Grid") -> bool:
        """Whether the box of this grid reaches into that of the other."""
        places = (np.linalg.inv(other.affine) @ self.affine @ self._corners())[:3]
        last = np.array(other.shape) - 1
        return bool((places.max(axis=1) >= 0).all() and (places.min(axis=1) <= last).all())

    def _corners(self) -> Array:
        """Return the indices of the eight corners as columns that an affine can be applied to."""
        corners = np.array([*np.ndindex(2, 2, 2)]) * (np.array(self.shape) - 1)
        return np.column_stack([corners, np.ones(8)]).T

    def crop(self, slices: Slices) -> "Grid":
        """Return the grid of a box."""
        start = np.array([s.start for s in slices])
        affine = self.affine.copy()
        affine[:3, 3] += affine[:3, :3] @ start
        return Grid(tuple(s.stop - s.start for s in slices), affine)

    def describe(self) -> str:
        """Say shape and affine in one line."""
        rows = ", ".join(str([float(f"{v:.6g}") for v in row]) for row in self.affine[:3])
        return f"shape {self.shape} and affine [{rows}]"


def axis_names(grid: Grid) -> tuple[str, ...]:
    """Name each axis by the direction in space that it is nearest to."""
    directions = nibabel().orientations.io_orientation(grid.affine)[:, 0]
    return tuple(f"{'xyz'[int(direction)]} (mm)" for direction in directions)


def axis_coordinates(grid: Grid) -> list[Array]:
    """Millimetres of the voxels along each axis.

    A voxel's position is projected on the direction of its axis, which is taken to point to the
    right, to the front or upwards. For axes that are parallel to those of space, these are the
    coordinates in space; for oblique ones, those in a frame that is turned with the axes.
    """
    orientation = nibabel().orientations.io_orientation(grid.affine)
    steps = grid.affine[:3, :3]
    directions = steps / grid.voxel_sizes * orientation[:, 1]
    origins = directions.T @ grid.affine[:3, 3]
    return [
        origins[m] + np.arange(grid.shape[m]) * (directions[:, m] @ steps[:, m]) for m in range(3)
    ]


def bounding_box(mask: NDArray[np.bool_]) -> Slices:
    """Return the smallest box that holds a mask which is not empty."""
    box = []
    for axis in range(3):
        inside = np.flatnonzero(mask.any(axis=tuple(a for a in range(3) if a != axis)))
        box.append(slice(int(inside[0]), int(inside[-1]) + 1))
    return tuple(box)  # type: ignore[return-value]


def resample(data: Array, source: Grid, target: Grid, interpolation: str) -> Array:
    """Bring a volume to another grid."""
    moved = nilearn("image").resample_img(
        make_image(data, source.affine),
        target_affine=target.affine,
        target_shape=target.shape,
        interpolation=interpolation,
        force_resample=True,
        copy_header=True,
    )
    return image_data(moved)


def target_grid(first: Grid, target_affine: Any, target_shape: Any) -> Grid:
    """Return the grid that is asked for; it covers the first image unless it says its shape."""
    if target_affine is None:
        if target_shape is not None:
            raise ValueError(
                f"target_shape is {target_shape!r} without a target_affine; expected both, the "
                "affine as a 4×4 array."
            )
        return first
    affine = _as_affine(target_affine, first)
    if target_shape is not None:
        return Grid(_check_target_shape(target_shape, affine), affine)
    try:
        return _covering(first, affine)
    except nilearn("image").resampling.BoundingBoxError as error:
        raise ValueError(
            f"target_affine is {affine.tolist()}, a grid that begins beyond the first image, which "
            f"has {first.describe()}; expected one that covers it. Check both, or give a 3×3 array."
        ) from error


def _covering(first: Grid, affine: Array) -> Grid:
    """Return the grid of an affine that is large enough for a volume."""
    covering = nilearn("image").resample_img(
        make_image(np.zeros(first.shape, np.uint8), first.affine),
        target_affine=affine,
        interpolation="nearest",
        force_resample=True,
        copy_header=True,
    )
    return Grid.of(covering)


def _as_affine(target_affine: Any, first: Grid) -> Array:
    """Return a 3×3 or 4×4 matrix; voxel sizes keep the directions of the first image."""
    if isinstance(target_affine, Real):
        target_affine = [target_affine] * 3
    try:
        affine = np.asarray(target_affine, dtype=float)
    except (TypeError, ValueError):
        affine = np.empty(0)
    if affine.shape == (3,) and (affine > 0).all() and np.isfinite(affine).all():
        return first.affine[:3, :3] / first.voxel_sizes * affine
    square = affine.shape in {(3, 3), (4, 4)} and np.isfinite(affine).all()
    if not square or abs(np.linalg.det(affine[:3, :3])) < np.finfo(float).tiny:
        raise ValueError(
            f"target_affine is {target_affine!r}; expected a voxel size in millimetres, three of "
            "them, or an invertible 3×3 or 4×4 array."
        )
    return affine


def _check_target_shape(target_shape: Any, affine: Array) -> tuple[int, int, int]:
    """Return three sizes; only a 4×4 affine says where they begin."""
    shape = tuple(int(size) for size in np.atleast_1d(target_shape))
    if len(shape) != 3 or min(shape) < 1:
        raise ValueError(f"target_shape is {target_shape!r}; expected three ints of at least 1.")
    if affine.shape != (4, 4):
        raise ValueError(
            f"target_shape is {target_shape!r}, but target_affine is no 4×4 array; expected one, "
            "because only that says where the grid begins. Or leave target_shape out."
        )
    return shape
