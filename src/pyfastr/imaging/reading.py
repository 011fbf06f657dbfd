"""From one volume to one sample: resampled, smoothed, cropped and masked."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_erosion

from pyfastr.imaging.backend import image_data, make_image, nilearn
from pyfastr.imaging.grid import Grid, Slices, bounding_box, resample
from pyfastr.imaging.volumes import Volume
from pyfastr.solver.progress import tell

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads volumes as samples.

    Attributes
    ----------
    mask : ndarray of bool
        On `grid`.
    grid : Grid
    smoothing_fwhm : float, array-like of 3 floats, "fast" or None
    dtype : dtype
    """

    mask: NDArray[np.bool_]
    grid: Grid
    smoothing_fwhm: Any
    dtype: np.dtype[Any]

    @cached_property
    def slices(self) -> Slices:
        """The box that holds the mask."""
        return bounding_box(self.mask)

    @cached_property
    def outside(self) -> NDArray[np.bool_]:
        """Voxels of the box that are outside the mask."""
        return ~self.mask[self.slices]

    def read(self, volume: Volume, out: Array) -> None:
        """Write a sample to an array of the shape of the box.

        NaN and infinity become zero outside the mask and are refused inside.
        """
        moved = not volume.grid.same_as(self.grid)
        if moved or self.smoothing_fwhm is not None:
            values = self._processed(volume, moved)
        else:
            values = volume.read()
        with np.errstate(over="ignore"):
            out[...] = values[self.slices]
        out[self.outside] = 0
        _check_finite(volume, int(np.count_nonzero(~np.isfinite(out))))

    def read_all(self, volumes: list[Volume]) -> Array:
        """Return samples of shape ``(n_samples, i, j, k)``, each read straight into its place."""
        X = np.empty((len(volumes), *self.outside.shape), dtype=self.dtype)
        for number, volume in enumerate(volumes):
            self.read(volume, X[number])
            last = number + 1 == len(volumes)
            note = f"read {len(volumes)} images as {self.dtype} of shape {X.shape}" if last else ""
            tell("reading images", number + 1, len(volumes), note)
        return X

    def unchecked(self, volume: Volume) -> Array:
        """Return a whole volume on the grid, with NaN where it has no finite value."""
        values = np.array(volume.read(), dtype=self.dtype)
        if volume.grid.same_as(self.grid):
            return values
        bad = ~np.isfinite(values)
        values[bad] = 0
        values = resample(values, volume.grid, self.grid, "continuous")
        if bad.any():
            values[_nearest(bad, volume.grid, self.grid)] = np.nan
        return values

    def _processed(self, volume: Volume, moved: bool) -> Array:
        """Resample and smooth, in this order, as maskers of nilearn do."""
        with np.errstate(over="ignore"):
            values = np.array(volume.read(), dtype=self.dtype)
        bad = ~np.isfinite(values)
        if bad.any():
            _check_finite(volume, self._n_inside(bad, volume.grid))
            values[bad] = 0
        if moved:
            values = resample(values, volume.grid, self.grid, "continuous")
        if self.smoothing_fwhm is None:
            return values
        image = make_image(values, self.grid.affine)
        return image_data(nilearn("image").smooth_img(image, self.smoothing_fwhm))

    def _n_inside(self, bad: NDArray[np.bool_], source: Grid) -> int:
        """Count voxels of a volume that are bad and inside the mask.

        On another grid these are the voxels of the mask that are nearest to a bad one, or the bad
        ones deep inside that no voxel is nearest to. A background of NaN up to the edge of the
        mask is none of them.
        """
        if source.same_as(self.grid):
            return int(np.count_nonzero(bad[self.mask]))
        here = _nearest(bad, source, self.grid)[self.mask]
        deep = _nearest(binary_erosion(self.mask), self.grid, source)
        return int(max(np.count_nonzero(here), np.count_nonzero(bad & deep)))


def _nearest(flags: NDArray[np.bool_], source: Grid, target: Grid) -> NDArray[np.bool_]:
    """Bring flags to another grid."""
    return resample(flags.astype(np.uint8), source, target, "nearest") != 0


def _check_finite(volume: Volume, n_bad: int) -> None:
    """Refuse NaN and infinity inside the mask."""
    if n_bad:
        raise ValueError(
            f"{volume.name} has NaN or infinity in {n_bad} voxels inside the mask; expected finite "
            "values there. Repair the image, leave it out, or give a mask_img without these voxels."
        )
