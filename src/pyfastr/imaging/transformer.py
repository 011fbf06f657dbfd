"""Brain images to arrays and back."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.outlets import SavedMixin
from pyfastr.estimators.sklearn_private import StrOptions, checks_parameters
from pyfastr.estimators.watching import showing
from pyfastr.imaging.backend import image_data, make_image
from pyfastr.imaging.grid import (
    Grid,
    Slices,
    axis_coordinates,
    axis_names,
    bounding_box,
    target_grid,
)
from pyfastr.imaging.masks import STRATEGIES, make_mask, prepare
from pyfastr.imaging.reading import Reader
from pyfastr.imaging.tags import ImageInputMixin
from pyfastr.imaging.volumes import Volume, check_one_grid, check_overlap, find_volumes

Array = NDArray[Any]


class NiftiTransformer(SavedMixin, ImageInputMixin, TransformerMixin, BaseEstimator):
    """Brain images to arrays that keep their three axes, and back.

    Every image becomes an array of the box around the mask, zero outside the mask. Images are
    read one at a time, into one array.

    Parameters
    ----------
    mask_img : image, path, nilearn masker or None, default=None
        The mask. None computes one from the mean of the images. A `NiftiMasker` or
        `MultiNiftiMasker`, fitted or not, gives its mask, resampling and smoothing; scikit-learn's
        `clone` forgets that it was fitted. A mask on another grid than the images is resampled to
        theirs by nearest neighbour, with a warning (nilearn resamples the images instead).
    mask_strategy : str, default="background"
        How to compute a mask: "background", "epi", "whole-brain-template", "gm-template" or
        "wm-template", as in nilearn's `NiftiMasker`.
    target_affine : float, array-like of shape (3,), (3, 3) or (4, 4), or None, default=None
        Resample all images to this affine. A number is a voxel size in millimetres, three are one
        for each axis: these keep the directions of the first image, whose field of view is
        covered. None takes images as they are, and all must be on one grid.
    target_shape : sequence of 3 int or None, default=None
        Shape of the resampled images; needs a `target_affine` of shape (4, 4).
    smoothing_fwhm : float, sequence of 3 floats, "fast" or None, default=None
        Width of a Gaussian filter in millimetres, as in `nilearn.image.smooth_img`.
    dtype : {"auto", float32, float64}, default="auto"
        Type of the arrays. "auto" is float32 if that holds every stored value (float32 and
        integers of up to 16 bits), otherwise float64; the first fit decides.
    verbose : int, default=0
        1 draws a bar while images are read, where a person watches; 2 prints a line.

    Attributes
    ----------
    mask_img_ : image
        The mask on the grid of the images, or on the one that they are resampled to.
    resampled_ : bool
        Whether images are resampled to the grid of the mask. Otherwise they must be on it.
    smoothing_fwhm_ : float, sequence of 3 floats, "fast" or None
    dtype_ : dtype
        Type of the arrays.
    affine_ : ndarray of shape (4, 4)
        Affine of the box, for the arrays.
    slices_ : tuple of 3 slices
        The box around the mask.
    n_elements_ : int
        Number of voxels in the mask.
    mode_names_ : tuple of 3 str
        "x (mm)", "y (mm)" and "z (mm)", in the order of the axes.
    mode_coords_ : list of 3 ndarrays
        Millimetres of the voxels along each axis of the arrays. Oblique axes have no one
        coordinate in space: there it is the position projected on the direction of the axis.

    Notes
    -----
    A pattern such as ``"sub-*.nii.gz"`` stands for its files in alphabetical order: "sub-10" comes
    before "sub-2".

    NaN and infinity become zero outside the mask, and are refused inside.

    Examples
    --------
    >>> import tempfile
    >>> from pyfastr.datasets import make_nifti_study
    >>> from pyfastr.imaging import NiftiTransformer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = make_nifti_study(folder, n_subjects=4, random_state=0)
    ...     transformer = NiftiTransformer(mask_img=study.mask)
    ...     X = transformer.fit_transform(study.images)
    >>> X.shape
    (4, 10, 12, 8)
    >>> transformer.inverse_transform(X[0]).shape
    (12, 14, 10)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "mask_img": "no_validation",
        "mask_strategy": [StrOptions(STRATEGIES)],
        "target_affine": "no_validation",
        "target_shape": ["array-like", None],
        "smoothing_fwhm": "no_validation",
        "dtype": "no_validation",
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        mask_img: Any = None,
        *,
        mask_strategy: str = "background",
        target_affine: Any = None,
        target_shape: Sequence[int] | None = None,
        smoothing_fwhm: float | Sequence[float] | Literal["fast"] | None = None,
        dtype: DTypeLike | Literal["auto"] = "auto",
        verbose: int = 0,
    ) -> None:
        self.mask_img = mask_img
        self.mask_strategy = mask_strategy
        self.target_affine = target_affine
        self.target_shape = target_shape
        self.smoothing_fwhm = smoothing_fwhm
        self.dtype = dtype
        self.verbose = verbose

    @checks_parameters
    def fit(self, imgs: Any, y: Any = None) -> "NiftiTransformer":
        """Find the grid and the mask.

        Parameters
        ----------
        imgs : path, pattern, image, or list of paths or 3-D images
            One 4-D image holds a sample in each volume.
        y : None
            Not used.

        Returns
        -------
        NiftiTransformer
            The fitted transformer itself.
        """
        volumes = find_volumes(imgs)
        dtype = _choose_dtype(self.dtype, volumes)
        wanted = prepare(self)
        _check_fwhm(wanted.smoothing_fwhm)
        grid = target_grid(volumes[0].grid, wanted.target_affine, wanted.target_shape)
        if wanted.target_affine is None:
            check_one_grid(volumes, grid, f"the first image, {volumes[0].name},")
        else:
            check_overlap(volumes, grid)
        with showing(self.verbose):
            mask = make_mask(wanted, volumes, grid)
        self.mask_img_ = make_image(mask.astype(np.uint8), grid.affine)
        self.resampled_ = wanted.target_affine is not None
        self.smoothing_fwhm_ = wanted.smoothing_fwhm
        self.dtype_ = dtype
        return self

    def transform(self, imgs: Any) -> Array:
        """Read images as arrays.

        Parameters
        ----------
        imgs : path, pattern, image, or list of paths or 3-D images

        Returns
        -------
        ndarray of shape (n_samples, i, j, k)
        """
        check_is_fitted(self)
        volumes = find_volumes(imgs)
        if self.resampled_:
            check_overlap(volumes, self._grid)
        else:
            check_one_grid(volumes, self._grid, "the training images")
        reader = Reader(self._mask, self._grid, self.smoothing_fwhm_, self.dtype_)
        with showing(self.verbose):
            return reader.read_all(volumes)

    def inverse_transform(self, X: Any) -> Any:
        """Return arrays as an image on the whole grid, zero outside the mask.

        Parameters
        ----------
        X : array-like of shape (i, j, k) or (n_samples, i, j, k)

        Returns
        -------
        Nifti1Image
            3-D for one array, 4-D for several.
        """
        check_is_fitted(self)
        arrays = np.asarray(X)
        arrays = arrays.astype(np.result_type(np.float32, arrays.dtype), copy=False)
        mask, slices = self._mask, self.slices_
        box = mask[slices]
        if arrays.ndim not in (3, 4) or arrays.shape[-3:] != box.shape:
            raise ValueError(
                f"Input to 'inverse_transform' has wrong shape: {arrays.shape}; expected "
                f"{box.shape} or (n_samples, {', '.join(map(str, box.shape))})."
            )
        whole = np.zeros((*mask.shape, *arrays.shape[:-3]), dtype=arrays.dtype)
        whole[mask] = np.moveaxis(arrays[..., box], -1, 0)
        return make_image(whole, self.mask_img_.affine)

    @property
    def slices_(self) -> Slices:
        return bounding_box(self._mask)

    @property
    def affine_(self) -> Array:
        return self._box.affine

    @property
    def n_elements_(self) -> int:
        return int(np.count_nonzero(self._mask))

    @property
    def mode_names_(self) -> tuple[str, ...]:
        return axis_names(self._box)

    @property
    def mode_coords_(self) -> list[Array]:
        return axis_coordinates(self._box)

    @property
    def _mask(self) -> NDArray[np.bool_]:
        """The mask as an array."""
        return image_data(self.mask_img_) != 0

    @property
    def _grid(self) -> Grid:
        """The grid of the mask, which is that of the images as they are used."""
        return Grid.of(self.mask_img_)

    @property
    def _box(self) -> Grid:
        """The grid of the arrays."""
        return self._grid.crop(self.slices_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "mask_img_")


def _check_fwhm(fwhm: Any) -> None:
    """Refuse what is no width."""
    if fwhm is None or (isinstance(fwhm, str) and fwhm == "fast"):
        return
    try:
        widths = np.asarray(fwhm, dtype=float)
    except (TypeError, ValueError):
        widths = np.empty(0)
    if widths.shape not in {(), (3,)} or not np.isfinite(widths).all() or (widths <= 0).any():
        raise ValueError(
            f"smoothing_fwhm is {fwhm!r}; expected a width in millimetres above 0, three of them, "
            "'fast' or None."
        )


def _choose_dtype(dtype: Any, volumes: list[Volume]) -> np.dtype[Any]:
    """Return float32 or float64."""
    if isinstance(dtype, str) and dtype == "auto":
        stored = {volume.dtype for volume in volumes}
        return np.result_type(np.float32, *stored) if _fit_float64(stored) else np.dtype(float)
    try:
        real = np.dtype(dtype)
    except TypeError:
        real = None
    if dtype is None or real not in (np.float32, np.float64):
        raise ValueError(f"dtype is {dtype!r}; expected 'auto', float32 or float64.")
    return real


def _fit_float64(stored: set[np.dtype[Any]]) -> bool:
    """Whether no type is wider than float64."""
    return bool(np.result_type(np.float32, *stored).itemsize <= 8)
