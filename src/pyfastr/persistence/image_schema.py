"""What the attributes of fitted estimators of images must be."""

from typing import Any

import numpy as np

from pyfastr.persistence.errors import RefusedError
from pyfastr.persistence.registry import ESTIMATORS, is_registered

NEEDED_OF_IMAGES = {
    "NiftiTransformer": ("mask_img_", "resampled_", "smoothing_fwhm_", "dtype_"),
    "NiftiRegressor": ("transformer_", "estimator_"),
    "NiftiClassifier": ("transformer_", "estimator_"),
}
INNER = {
    "NiftiRegressor": ("FasTRRegressor", "FasTRRegressorCV"),
    "NiftiClassifier": ("FasTRClassifier", "FasTRClassifierCV"),
}
# In voxels: the kernel of a filter takes as much memory as it is wide.
WIDEST = 10_000


def check_images(model: Any) -> None:
    """Refuse a transformer that cannot read images, or a model that does not fit to its own."""
    name = type(model).__name__
    if name == "NiftiTransformer":
        _check_transformer(model)
    elif name in INNER:
        _check_model(model, INNER[name])


def box_shape(transformer: Any) -> tuple[int, ...]:
    """Return the shape of the arrays that a transformer makes of images."""
    return tuple(s.stop - s.start for s in transformer.slices_)


def _check_transformer(transformer: Any) -> None:
    mask = transformer.mask_img_
    if not _is_volume(mask) or not np.asarray(mask.dataobj).any():
        raise _wrong("mask_img_", "an image of three axes with voxels inside")
    if type(transformer.resampled_) is not bool:
        raise _wrong("resampled_", "True or False")
    if transformer.dtype_ not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise _wrong("dtype_", "float32 or float64")
    voxel = float(np.linalg.norm(mask.affine[:3, :3], axis=0).min())
    if not _is_width(transformer.smoothing_fwhm_, WIDEST * voxel):
        raise _wrong("smoothing_fwhm_", "None, 'fast', or widths in millimetres")


def _check_model(model: Any, inner: tuple[str, ...]) -> None:
    estimator, transformer = model.estimator_, model.transformer_
    if type(estimator).__name__ not in inner or not is_registered(ESTIMATORS, estimator):
        raise _wrong("estimator_", " or ".join(inner))
    if type(transformer).__name__ != "NiftiTransformer":
        raise _wrong("transformer_", "a NiftiTransformer")
    _check_transformer(transformer)
    if box_shape(transformer) != getattr(estimator, "tensor_shape_in_", None):
        raise _wrong("mask_img_", "a mask whose box is of the shape of the coefficient")
    mean = getattr(model, "mean_img_", None)
    if mean is not None and (not _is_volume(mean) or mean.shape != transformer.mask_img_.shape):
        raise _wrong("mean_img_", "an image on the grid of the mask")


def _is_volume(image: Any) -> bool:
    return hasattr(image, "dataobj") and len(image.shape) == 3


def _is_width(width: Any, widest: float) -> bool:
    """Whether images can be smoothed so; sequences have a width for each axis."""
    if width is None or (isinstance(width, str) and width == "fast"):
        return True
    try:
        sizes = np.asarray(width, dtype=float)
    except (TypeError, ValueError):
        return False
    return sizes.shape in ((), (3,)) and bool(((sizes >= 0) & (sizes <= widest)).all())


def _wrong(attribute: str, expected: str) -> RefusedError:
    return RefusedError(
        f"{attribute} of its estimator of images is not as expected: {expected}. Fit and save the "
        "model again."
    )
