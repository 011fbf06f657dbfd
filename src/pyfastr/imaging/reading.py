"""From one volume to one sample: resampled, smoothed, cropped and masked."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.imaging.backend import image_data, make_image, nilearn
from pyfastr.imaging.grid import Grid, Slices, bounding_box, resample
from pyfastr.imaging.volumes import Volume

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

    def unchecked(self, volume: Volume) -> Array:
        """Return a whole volume on the grid, with its NaN where it was not resampled."""
        values = np.array(volume.read(), dtype=self.dtype)
        if volume.grid.same_as(self.grid):
            return values
        values[~np.isfinite(values)] = 0
        return resample(values, volume.grid, self.grid, "continuous")

    def _processed(self, volume: Volume, moved: bool) -> Array:
        """Resample and smooth, in this order, as maskers of nilearn do."""
        with np.errstate(over="ignore"):
            values = np.array(volume.read(), dtype=self.dtype)
        bad = ~np.isfinite(values)
        if bad.any():
            here = resample(bad.view(np.uint8), volume.grid, self.grid, "nearest") if moved else bad
            _check_finite(volume, int(np.count_nonzero(here[self.mask])))
            values[bad] = 0
        if moved:
            values = resample(values, volume.grid, self.grid, "continuous")
        if self.smoothing_fwhm is None:
            return values
        image = make_image(values, self.grid.affine)
        return image_data(nilearn("image").smooth_img(image, self.smoothing_fwhm))


def _check_finite(volume: Volume, n_bad: int) -> None:
    """Refuse NaN and infinity inside the mask."""
    if n_bad:
        raise ValueError(
            f"{volume.name} has NaN or infinity in {n_bad} voxels inside the mask; expected finite "
            "values there. Repair the image, leave it out, or give a mask_img without these voxels."
        )
