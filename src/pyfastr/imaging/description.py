"""What a report says of the images beside the model."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pyfastr.display.code_text import code_for
from pyfastr.display.document import Section, Table
from pyfastr.display.fitted import fitted_part
from pyfastr.imaging.backend import nibabel
from pyfastr.imaging.grid import Grid

DIRECTIONS = {"L": "left", "R": "right", "P": "back", "A": "front", "I": "down", "S": "up"}


def images_section(transformer: Any) -> Section:
    """Describe grid, mask and preparation of the images that a model was fitted to."""
    table = Table("", ["", ""], [list(row) for row in _rows(transformer)], is_prose=True)
    text = (
        "The model sees the box around the mask, with zero outside the mask. The coefficient is an "
        "outer product and so goes on outside, where it meets no data: in the view above, as in "
        "`coef_img_`, it is zero there."
    )
    return Section("images", "Images", [text], [table])


def fitting_code(model: Any) -> str:
    """Return the code that fits a model of images again."""
    part = fitted_part(model.estimator_)
    confounds = ", confounds=confounds" if hasattr(part, "covariate_coef_") else ""
    step = "[-1]" if hasattr(model.estimator_, "steps") else ""
    return code_for(
        model,
        part,
        fingerprint=getattr(part, "fingerprint_", ""),
        call=f"model.fit(imgs, y{confounds})",
        holder=f"model.estimator_{step}",
    )


def _rows(transformer: Any) -> Iterator[tuple[str, str]]:
    grid = Grid.of(transformer.mask_img_)
    box = transformer.slices_
    n_box = int(np.prod([s.stop - s.start for s in box]))
    codes = nibabel().aff2axcodes(grid.affine)
    yield "Grid", f"{_times(grid.shape)} voxels of {_times(grid.voxel_sizes)} mm"
    yield "Axes point", ", ".join(DIRECTIONS[code] for code in codes)
    yield "Mask", f"{transformer.n_elements_:,} voxels of the {n_box:,} in its box"
    yield "Box", ", ".join(f"{s.start} to {s.stop - 1}" for s in box) + " (voxels of the grid)"
    yield "Resampled", "to this grid" if transformer.resampled_ else "no"
    fwhm = transformer.smoothing_fwhm_
    width = fwhm if fwhm is None or isinstance(fwhm, str) else f"{_times(np.atleast_1d(fwhm))} mm"
    yield "Smoothed", "no" if width is None else f"{width} (full width at half maximum)"


def _times(sizes: Any) -> str:
    """Write sizes as "2 × 2 × 3.5"."""
    return " × ".join(f"{float(size):.4g}" for size in sizes)
