"""The two packages that brain images need, loaded on first use."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.estimators.extras import require

Array = NDArray[Any]


def nibabel() -> Any:
    """Return nibabel, or say how to install it."""
    return require("nibabel", "imaging", "Reading brain images")


def nilearn(module: str) -> Any:
    """Return a module of nilearn, or say how to install it."""
    return require(f"nilearn.{module}", "imaging", "Working with brain images")


def make_image(data: Array, affine: Array) -> Any:
    """Return an array as a NIfTI image that is held in memory."""
    return nibabel().Nifti1Image(data, affine)


def image_data(image: Any) -> Array:
    """Return the values of an image as they are stored, without nibabel's own cache."""
    return np.asanyarray(image.dataobj)
