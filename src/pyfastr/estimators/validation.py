"""What every estimator asks of X and y."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d, validate_data

from pyfastr.estimators.labels import check_modes, record_modes
from pyfastr.estimators.namespaces import admit, on_host
from pyfastr.estimators.reading import (
    LARGEST,
    REAL_KINDS,
    check_as_many,
    read_covariates,
    read_numbers,
    refuse_images,
)
from pyfastr.estimators.warning import warn
from pyfastr.sources import (
    Source,
    as_source,
    block_where_it_is,
    computed,
    is_in_memory,
    is_stored,
    size_of,
)
from pyfastr.sources.namespaces import is_foreign

Array = NDArray[Any]
# An array in memory, or a source that reads files.
Samples = Array | Source

# What a fit records of its input, before anything is solved.
INPUT_ATTRIBUTES = (
    *("tensor_shape_in_", "n_features_in_", "feature_names_in_", "n_samples_in_", "fingerprint_"),
    *("mode_names_in_", "mode_coords_in_", "covariate_names_in_", "classes_"),
    "symmetric_modes_",
)


def check_tensor(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    min_samples: int = 1,
    feature_names: bool = True,
) -> Samples:
    """Return `X` as an array of at least two dimensions, without a copy, or as a source of files.

    Sparse, complex, one-dimensional, empty, ragged and non-numeric input is refused, and so are
    images that are loaded. The type and the layout of `X` are left as they are
    (sources convert block by block), and `X` is not scanned for NaN. Datasets of h5py and Zarr,
    lists of .npy or NIfTI files and large memory maps are not read. Arrays of other libraries stay
    on their device if scikit-learn dispatches and the estimator can work there.

    Parameters
    ----------
    estimator : estimator
        Is given `tensor_shape_in_`, `n_features_in_` (which scikit-learn counts along
        the first mode) and, for a data frame, `feature_names_in_`.
    X : array-like or stored, of shape (n_samples, p1, ..., pM)
    reset : bool
        True in `fit`: record the shape of a sample. False later: compare with it.
    min_samples : int
    feature_names : bool
        Whether to record or compare the names of the columns. What a transformer
        returned has none, so `inverse_transform` does not ask for them.

    Returns
    -------
    ndarray or Source of shape (n_samples, p1, ..., pM)
    """
    tensor = _as_samples(estimator, X, min_samples)
    if not reset:
        check_modes(estimator, X)
        _check_sample_shape(estimator, tensor.shape[1:])
    if feature_names:
        named = tensor if is_stored(X) or is_foreign(X) else X
        validate_data(estimator, named, reset=reset, skip_check_array=True)
    if reset:
        estimator.tensor_shape_in_ = tensor.shape[1:]
        record_modes(estimator, X)
    return tensor


def as_array(X: Any, checked: Samples) -> Array:
    """Return samples as an array for methods that need all of them at once.

    Parameters
    ----------
    X : array-like or stored
        As it was given; an array, though it be a memory map, needs no copy.
    checked : ndarray or Source
        What `check_tensor` made of it.

    Returns
    -------
    ndarray of shape (n_samples, p1, ..., pM)
    """
    return np.asarray(X if isinstance(X, np.ndarray) else checked)


def share_input(estimator: Any, other: Any) -> None:
    """Give another estimator what a fit has recorded of its input."""
    for name in INPUT_ATTRIBUTES:
        if hasattr(estimator, name):
            setattr(other, name, getattr(estimator, name))


def check_tensor_and_response(
    estimator: Any, X: Any, y: Any, *, min_samples: int = 2, multi_output: bool = False
) -> tuple[Samples, Array]:
    """Return `X` as `check_tensor` does and `y` as finite floats, one or a row for each sample.

    Parameters
    ----------
    estimator : estimator
    X : array-like of shape (n_samples, p1, ..., pM)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    min_samples : int
    multi_output : bool
        Whether there may be several columns. If not, a single one is accepted with a
        DataConversionWarning.

    Returns
    -------
    X : ndarray or Source of shape (n_samples, p1, ..., pM)
    y : ndarray of the shape it was given in, a single column without `multi_output` as a vector
        float32 if it was given as float32, otherwise float64.
    """
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, "
            "but the target y is None."
        )
    tensor = check_tensor(estimator, X, reset=True, min_samples=min_samples)
    response = _as_floats(*on_host(X, y=computed(y)), multi_output=multi_output)
    check_as_many("y", len(response), tensor.shape[0])
    return tensor, response


def check_covariates(
    covariates: Any, n_samples: int, *, expected: int | None = None
) -> Array | None:
    """Return covariates as a finite float matrix, or None.

    Parameters
    ----------
    covariates : array-like of shape (n_samples, n_covariates) or (n_samples,), or None
    n_samples : int
    expected : int, optional
        Number of columns seen in `fit`; 0 if there were none.

    Returns
    -------
    ndarray of shape (n_samples, n_covariates) or None
    """
    given = 0
    Z: Any = None
    if covariates is not None:
        Z = read_covariates(computed(covariates), n_samples)
        given = Z.shape[1]
    if expected is not None and given != expected:
        raise ValueError(
            f"covariates has {given} columns, but the model was fitted with {expected}; expected "
            "the same columns as in fit."
        )
    return Z


def check_modes_asked_for(modes: Any, n_modes: int) -> tuple[int, ...]:
    """Return modes that a user names, counted from the first; None are all.

    Parameters
    ----------
    modes : int, sequence of int or None
        Counted over the axes of a sample, negative ones from the last.
    n_modes : int

    Returns
    -------
    tuple of int
    """
    if modes is None:
        return tuple(range(n_modes))
    named = [modes] if isinstance(modes, Integral) else list(modes)
    for mode in named:
        if not isinstance(mode, Integral) or not -n_modes <= int(mode) < n_modes:
            raise ValueError(
                f"modes has {mode!r}; expected ints from {-n_modes} to {n_modes - 1}, because "
                f"samples have {n_modes} modes."
            )
    if not named:
        raise ValueError("modes is empty; expected at least one mode, or None for all.")
    return tuple(int(mode) % n_modes for mode in named)


def check_init(init: Any, shape: tuple[int, ...], n_terms: int) -> list[Array]:
    """Return a user's start as M float arrays of shape ``(p_m, n_terms)``."""
    wanted = [(p, n_terms) for p in shape]
    try:
        arrays = [np.asarray(a, dtype=float) for a in init]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"init holds what is no array of numbers; expected arrays of shapes {wanted}."
        ) from error
    arrays = [a[:, None] if a.ndim == 1 and n_terms == 1 else a for a in arrays]
    given = [a.shape for a in arrays]
    if given != wanted:
        raise ValueError(
            f"init has arrays of shapes {given}; expected {wanted}: one for each of the "
            f"{len(shape)} modes, a column for each of the n_terms={n_terms} terms."
        )
    for mode, array in enumerate(arrays):
        if not np.isfinite(array).all() or not array.any(axis=0).all():
            raise ValueError(
                f"init[{mode}] has a column with NaN or infinity, or all of zeros; expected finite "
                "columns that are not zero."
            )
    return arrays


def as_generator(random_state: Any) -> np.random.Generator:
    """Turn what scikit-learn takes as a seed into a Generator, which can draw float32."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    try:
        legacy = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state is {random_state!r}; expected an int, a numpy RandomState, "
            "a numpy Generator or None."
        ) from error
    return np.random.default_rng(legacy.randint(2**32, size=4, dtype=np.uint32))


def finite_blocks(source: Source) -> Iterator[tuple[slice, Array]]:
    """Yield each block with its samples; NaN or infinity is an error that says where."""
    for rows in source.slices:
        block = source.read(rows)
        # The block is in cache by now: looking at it here spares a second pass over X.
        size_of(source, rows, block)
        yield rows, block


def finite_blocks_there(source: Source) -> Iterator[tuple[slice, Any]]:
    """Yield the same, but blocks on the device that has them."""
    for rows in source.slices:
        block = block_where_it_is(source, rows)
        size_of(source, rows, block)
        yield rows, block


def _as_samples(estimator: Any, X: Any, min_samples: int) -> Samples:
    """Refuse what is no numeric array of samples; anything else keeps type and layout."""
    tensor: Samples
    refuse_images("X", X)
    X = admit(estimator, X) if is_foreign(X) else X
    if is_stored(X):
        tensor = as_source(X)
        dtype = getattr(tensor, "stored_dtype", tensor.dtype)
        if dtype.kind not in REAL_KINDS:
            raise ValueError(f"X has dtype {dtype}; expected real numbers.")
        _check_shape(estimator, tensor.shape, min_samples)
    else:
        tensor = read_numbers("X", X)
        _check_shape(estimator, tensor.shape, min_samples)
        mapped = as_source(tensor)
        tensor = tensor if is_in_memory(mapped) else mapped
    if getattr(tensor, "advice", ""):
        warn(tensor.advice)  # type: ignore[union-attr]
    return tensor


def _check_shape(estimator: Any, shape: tuple[int, ...], min_samples: int) -> None:
    """Refuse what has no samples, no modes, or a mode without elements."""
    if len(shape) < 2:
        raise ValueError(
            f"X has shape {shape}; expected (n_samples, p1, ..., pM), with an axis of samples and "
            "at least one more. Reshape your data: X.reshape(-1, 1) makes every number a sample, "
            "X.reshape(1, -1) makes all of them one."
        )
    if shape[0] < min_samples:
        raise ValueError(
            f"X has {shape[0]} sample(s) (shape={shape}), while a minimum of {min_samples} is "
            f"required by {type(estimator).__name__}."
        )
    if shape[1:] == (0,):
        # scikit-learn's sentence for matrices, which its estimator checks look for.
        raise ValueError(f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if 0 in shape[1:]:
        raise ValueError(
            f"X has shape {shape}: a mode of size 0 leaves nothing to fit; expected every mode to "
            "hold at least 1 element."
        )


def _check_sample_shape(estimator: Any, given: tuple[int, ...]) -> None:
    """Compare the shape of a sample with the one seen in `fit`."""
    expected = estimator.tensor_shape_in_
    name = type(estimator).__name__
    if given == expected:
        return
    if len(given) == len(expected) == 1:
        # scikit-learn's sentence for matrices, which its estimator checks look for.
        raise ValueError(
            f"X has {given[0]} features, but {name} is expecting {expected[0]} features as input."
        )
    raise ValueError(
        f"X has samples of shape {given}, but {name} was fitted on samples of shape "
        f"{expected}: expected X of shape (n_samples, {', '.join(map(str, expected))})."
    )


def _as_floats(y: Any, *, multi_output: bool) -> Array:
    """Return `y` as finite float32 or float64 numbers, a vector or a matrix."""
    y = read_numbers("y", y)
    if multi_output and (y.ndim not in (1, 2) or y.shape[1:] == (0,)):
        raise ValueError(
            f"y should be a 1d array, or have a column for each output, got shape {y.shape}; "
            "expected (n_samples,) or (n_samples, n_outputs)."
        )
    if not multi_output and (y.ndim != 1 and y.shape[1:] != (1,)):
        raise ValueError(
            f"y should be a 1d array, got an array of shape {y.shape}; expected (n_samples,), a "
            "number for each sample."
        )
    numbers: Array = y if multi_output and y.ndim == 2 else column_or_1d(y, warn=True)
    dtype = np.float32 if numbers.dtype == np.float32 else np.float64
    numbers = numbers.astype(dtype, copy=False)
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        kind = (
            "NaN"
            if np.isnan(numbers[tuple(bad[0])])
            else f"infinity or a value too large for {numbers.dtype!r}"
        )
        raise ValueError(
            f"Input y contains {kind}: first at sample {bad[0][0]}, {len(bad)} such values "
            "in all. Drop these samples before fitting."
        )
    size = float(np.abs(numbers).max(initial=0.0))
    if size > LARGEST:
        raise ValueError(f"y is of size {size:.3g}; expected numbers up to {LARGEST:g}. Rescale y.")
    return numbers
