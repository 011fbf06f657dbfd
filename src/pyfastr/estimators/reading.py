"""Reading of numbers that users pass; errors name the argument."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.utils.validation import check_array

from pyfastr.solver.problem import PLAIN_RANGE, power_of_two

Array = NDArray[Any]

REAL_KINDS = "biuf"
# Sums of so many numbers as there are samples stay in the range of floats.
LARGEST = 1e300
EXPECTED = {
    "X": "real numbers of shape (n_samples, p1, ..., pM)",
    "y": "a real number for each sample",
    "sample_weight": "a number of 0 or more for each sample",
    "covariates": (
        "real numbers of shape (n_samples, n_covariates), categories as columns of 0 and 1"
    ),
}


def read_numbers(name: str, given: Any) -> Array:
    """Return what a user passed as an array of real numbers, of the type that it has.

    An array is returned as it is, NaN and all; objects that are numbers become float64.

    Parameters
    ----------
    name : str
        Of the argument, one that `EXPECTED` knows.
    given : array-like

    Returns
    -------
    ndarray
    """
    refuse_images(name, given)
    try:
        # Arrays on devices do not come here; with dispatch on, scikit-learn would refuse plain
        # numbers.
        with config_context(array_api_dispatch=False):
            array: Array = check_array(
                given,
                dtype="numeric",
                ensure_2d=False,
                allow_nd=True,
                ensure_all_finite=False,
                ensure_min_samples=0,
                ensure_min_features=0,
                input_name=name,
            )
    except (TypeError, ValueError) as error:
        if issparse(given):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(_no_numbers(name, given, error)) from error
    if array.dtype.kind not in REAL_KINDS:
        raise ValueError(f"{name} has dtype {array.dtype}; expected {EXPECTED[name]}.")
    return array


def refuse_images(name: str, given: Any) -> None:
    """Refuse images that are loaded, alone or in a list: which array they mean is not said."""
    several = given if isinstance(given, list | tuple) else [given]
    first = next((own for own in several if _is_image(own)), None)
    if first is None:
        return
    what = "a list of images" if first is not given else "an image"
    ways = (
        ", or paths of NIfTI files, one for each sample. Use pyfastr.imaging.NiftiRegressor or "
        "NiftiClassifier, which take images"
    )
    raise ValueError(
        f"{name} is {what} ({type(first).__name__}); expected {EXPECTED[name]}"
        f"{ways if name == 'X' else ''}."
    )


def _is_image(given: Any) -> bool:
    """Whether this is a loaded image."""
    # Objects that stand for others, such as those of Dask, have attributes of any name; no class.
    return hasattr(type(given), "affine") and hasattr(type(given), "get_fdata")


def check_as_many(name: str, n_given: int, n_samples: int) -> None:
    """Refuse another number of values than of samples."""
    if n_given != n_samples:
        raise ValueError(
            f"{name} has {n_given} values, but X has {n_samples} samples; expected one for each."
        )


def check_finite(name: str, values: Array) -> None:
    """Refuse NaN and infinity among values of one row for each sample, and say where."""
    bad = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))
    if bad.size:
        kind = "NaN" if np.isnan(values[bad[0]]).any() else "infinity"
        raise ValueError(
            f"{name} contains {kind}: first at sample {bad[0]}, {bad.size} such samples in all; "
            f"expected {EXPECTED[name]}. Impute or drop them."
        )


def read_weights(sample_weight: Any, n_samples: int) -> Array:
    """Return weights of samples, all finite, none negative, at least one of them positive.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), number or None
        A number, or None, weighs all samples alike.
    n_samples : int

    Returns
    -------
    ndarray of shape (n_samples,)
    """
    given = read_numbers("sample_weight", 1.0 if sample_weight is None else sample_weight)
    weights = np.array(np.broadcast_to(given, n_samples) if given.ndim == 0 else given, float)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; expected ({n_samples},), a weight for each "
            "sample of X."
        )
    check_finite("sample_weight", weights)
    least, largest = float(weights.min()), float(weights.max())
    if least < 0 or not 0 < largest <= LARGEST:
        what = "is zero for all samples" if not weights.any() else f"is from {least} to {largest}"
        raise ValueError(
            f"sample_weight {what}; expected weights of 0 or more and at most {LARGEST:g}, one of "
            "them above 0."
        )
    return weights


def read_covariates(covariates: Any, n_samples: int) -> Array:
    """Return covariates as columns of finite numbers, a row for each sample."""
    Z = read_numbers("covariates", covariates).astype(float)
    if Z.ndim not in (1, 2) or not Z.size:
        raise ValueError(
            f"covariates has shape {Z.shape}; expected ({n_samples}, n_covariates), or "
            f"({n_samples},) for a single one."
        )
    Z = Z.reshape(len(Z), -1)
    if len(Z) != n_samples:
        raise ValueError(
            f"covariates has {len(Z)} rows; expected one for each of the {n_samples} samples."
        )
    check_finite("covariates", Z)
    return Z


def in_plain_units(weights: Array) -> Array:
    """Return weights whose squares and products are in the range of floats; only ratios count."""
    return weights / unit_of_weights(weights)


def unit_of_weights(weights: Array) -> float:
    """Return the power of two that they are divided by for that; 1 for those of usual size."""
    low, high = PLAIN_RANGE
    largest = weights.max()
    return 1.0 if low < largest < high else float(power_of_two(largest))


def _no_numbers(name: str, given: Any, error: Exception) -> str:
    """Say what was given instead of numbers, and why it cannot be read."""
    return (
        f"{name}, of type {type(given).__name__}, is no array of real numbers "
        f"({_unequal(given) or first_line(error)}); expected {EXPECTED[name]}."
    )


def first_line(error: Exception) -> str:
    """Return what is wrong; scikit-learn prints the whole array below it."""
    return str(error).partition("\n")[0].rstrip(" .:")


def _unequal(given: Any) -> str:
    """Name the first sample of a list that has another shape than the first; nothing if none."""
    if not isinstance(given, list | tuple):
        return ""
    shapes = [_shape(sample) for sample in given]
    other = next((n for n, shape in enumerate(shapes) if shape != shapes[0]), None)
    if other is None:
        return ""
    return f"sample {other} is {shapes[other]}, sample 0 is {shapes[0]}"


def _shape(sample: Any) -> str:
    """Describe the shape of one sample."""
    try:
        return f"of shape {np.shape(sample)}"
    except ValueError:
        return "of unequal parts"
