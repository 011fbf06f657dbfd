"""The mask: given, taken from a masker of nilearn's, or computed from the images."""

import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.estimators.warning import warn
from pyfastr.imaging.backend import image_data, make_image, nilearn
from pyfastr.imaging.grid import Grid, resample
from pyfastr.imaging.reading import Reader
from pyfastr.imaging.volumes import Volume, find_volumes
from pyfastr.solver.progress import tell

Array = NDArray[Any]
Mask = NDArray[np.bool_]

STRATEGIES = {"background", "epi", "whole-brain-template", "gm-template", "wm-template"}
# What a masker may do to a series of volumes and samples of a study must not have done to them.
SERIES = ("runs", "standardize", "detrend", "high_variance_confounds", "low_pass", "high_pass")


@dataclass(frozen=True)
class Preparation:
    """What is to happen to the images: the user's parameters, or those of the masker given."""

    mask_img: Any
    mask_strategy: str
    mask_args: dict[str, Any] | None
    target_affine: Any
    target_shape: Any
    smoothing_fwhm: Any


def prepare(estimator: Any) -> Preparation:
    """Read parameters off an estimator, or off the masker that it was given as a mask."""
    mask_img = estimator.mask_img
    spatial = ("target_affine", "target_shape", "smoothing_fwhm")
    own = {name: getattr(estimator, name) for name in spatial}
    if not _is_masker(mask_img):
        return Preparation(mask_img, estimator.mask_strategy, None, **own)
    _check_spatial_only(mask_img)
    twice = [name for name, value in own.items() if value is not None]
    if twice:
        raise ValueError(
            f"{twice[0]} is set, but mask_img is a {type(mask_img).__name__} that has its own; "
            f"expected {twice[0]}=None here. Set it there, or give its mask image only."
        )
    return Preparation(
        getattr(mask_img, "mask_img_", mask_img.mask_img),
        mask_img.mask_strategy,
        mask_img.mask_args,
        **{name: getattr(mask_img, name) for name in spatial},
    )


def make_mask(preparation: Preparation, volumes: list[Volume], grid: Grid) -> Mask:
    """Return the mask on a grid."""
    if preparation.mask_img is not None:
        asked = preparation.target_affine is not None
        return _given_mask(preparation.mask_img, grid, expect_other_grid=asked)
    mean = _mean_volume(volumes, grid)
    masker = nilearn("maskers").NiftiMasker(
        mask_strategy=preparation.mask_strategy, mask_args=preparation.mask_args, reports=False
    )
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Computed an empty mask")
            found = masker.fit(make_image(mean, grid.affine)).mask_img_
    except ValueError as error:
        raise ValueError(
            f"No mask could be computed with mask_strategy={preparation.mask_strategy!r} "
            f"({error}) Give a mask_img, or another mask_strategy."
        ) from error
    return image_data(found) != 0


def _mean_volume(volumes: list[Volume], grid: Grid) -> Array:
    """Return the mean of all images on the grid; NaN of any of them stays NaN."""
    reader = Reader(np.ones(grid.shape, bool), grid, None, np.dtype(np.float32))
    total = np.zeros(grid.shape)
    for number, volume in enumerate(volumes):
        total += reader.unchecked(volume)
        tell("averaging images for a mask", number + 1, len(volumes))
    return (total / len(volumes)).astype(np.float32)


def _given_mask(mask_img: Any, grid: Grid, *, expect_other_grid: bool) -> Mask:
    """Read a mask, and bring it to the grid if it is on another, with a warning unless asked."""
    if not isinstance(mask_img, str | os.PathLike) and not hasattr(mask_img, "dataobj"):
        raise TypeError(
            f"mask_img is of type {type(mask_img).__name__}; expected the path of an image, an "
            "image, a NiftiMasker or None."
        )
    volumes = find_volumes(mask_img, "mask_img")
    if len(volumes) != 1:
        raise ValueError(f"mask_img holds {len(volumes)} volumes; expected one.")
    mask = _as_binary(volumes[0])
    if volumes[0].grid.same_as(grid):
        return mask
    if not expect_other_grid:
        warn(
            f"The mask ({volumes[0].name}) has {volumes[0].grid.describe()}, but the images have "
            f"{grid.describe()}: the mask was resampled to theirs by nearest neighbour. Set "
            "target_affine, or resample the mask yourself, to silence this."
        )
    moved = _moved(mask, volumes[0].grid, grid)
    if not moved.any():
        raise ValueError(
            f"The mask ({volumes[0].name}) covers none of the images' voxels; expected a mask of "
            "the same part of space. Check both affines."
        )
    return moved


def _moved(mask: Mask, source: Grid, target: Grid) -> Mask:
    """Bring a mask to another grid; nothing of it is left on one that lies elsewhere."""
    try:
        return resample(mask.astype(np.uint8), source, target, "nearest") != 0
    except nilearn("image").resampling.BoundingBoxError:
        return np.zeros(target.shape, bool)


def _as_binary(volume: Volume) -> Mask:
    """Return which voxels are inside; NaN is outside, as it is for nilearn."""
    values = np.nan_to_num(volume.read(), nan=0.0)
    inside = values != 0
    levels = np.unique(values[inside])
    if len(levels) == 0:
        raise ValueError(f"The mask ({volume.name}) is empty; expected voxels that are not zero.")
    if len(levels) > 1:
        raise ValueError(
            f"The mask ({volume.name}) has {len(levels)} different values beside zero; expected "
            "one. Threshold it first, as with nilearn.image.binarize_img."
        )
    return inside


def _is_masker(mask_img: Any) -> bool:
    """Whether this is a NiftiMasker or MultiNiftiMasker; images and paths are no estimators."""
    return hasattr(mask_img, "get_params") and isinstance(mask_img, nilearn("maskers").NiftiMasker)


def _check_spatial_only(masker: Any) -> None:
    """Refuse a masker that would treat the samples as a series in time."""
    for name in SERIES:
        if getattr(masker, name) not in (None, False):
            raise ValueError(
                f"mask_img is a masker with {name}={getattr(masker, name)!r}; expected one that "
                "only masks, resamples and smooths. Scale samples by TensorScaler in a Pipeline "
                "with NiftiTransformer, and clean series before fitting."
            )
