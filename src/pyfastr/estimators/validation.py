"""What every estimator asks of X and y, and the prediction of a linear tensor model."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from pyfastr.estimators.labels import check_modes, record_modes
from pyfastr.estimators.namespaces import admit, on_host
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
from pyfastr.sources.namespaces import is_foreign, namespace_of, to_device, to_host

Array = NDArray[Any]
# An array in memory, or a source that reads files.
Samples = Array | Source

_REAL_KINDS = "biuf"
# What a fit records of its input, before anything is solved.
INPUT_ATTRIBUTES = (
    *("tensor_shape_in_", "n_features_in_", "feature_names_in_", "n_samples_in_", "fingerprint_"),
    *("mode_names_in_", "mode_coords_in_", "covariate_names_in_", "classes_"),
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

    Sparse, complex, one-dimensional, empty and non-numeric input is refused with
    scikit-learn's own messages. The type and the layout of `X` are left as they are
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
    estimator: Any, X: Any, y: Any, *, min_samples: int = 2
) -> tuple[Samples, Array]:
    """Return `X` as `check_tensor` does and `y` as a finite float vector of its length.

    Parameters
    ----------
    estimator : estimator
    X : array-like of shape (n_samples, p1, ..., pM)
    y : array-like of shape (n_samples,)
        A single column is accepted with a DataConversionWarning.
    min_samples : int

    Returns
    -------
    X : ndarray or Source of shape (n_samples, p1, ..., pM)
    y : ndarray of shape (n_samples,)
        float32 if it was given as float32, otherwise float64.
    """
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, "
            "but the target y is None."
        )
    tensor = check_tensor(estimator, X, reset=True, min_samples=min_samples)
    response = _as_float_vector(*on_host(X, y=computed(y)))
    check_consistent_length(tensor, response)
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
        Z = computed(covariates)
        Z = check_array(Z, dtype=float, ensure_2d=False, input_name="covariates")
        Z = Z.reshape(-1, 1) if Z.ndim == 1 else Z
        if len(Z) != n_samples:
            raise ValueError(
                f"covariates has {len(Z)} rows; expected one for each of the {n_samples} samples."
            )
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


class TensorInputMixin:
    """Samples may have more than two axes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # In addition to two_d_array, which stays True: a matrix is the case M = 1.
        tags.input_tags.three_d_array = True
        return tags


class LinearTensorMixin(TensorInputMixin):
    """`predict` for estimators that have `coef_` of a sample's shape and `intercept_`."""

    coef_: Array
    intercept_: float

    def predict(self, X: Any) -> Array:
        """Predict ``<coef_, X_i> + intercept_`` for each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._linear_prediction(X)

    def _linear_prediction(self, X: Any) -> Array:
        """Read X once, block by block."""
        source = as_source(check_tensor(self, X, reset=False))
        weights: Any = np.ravel(to_host(self.coef_)).astype(source.dtype, copy=False)
        prediction = np.empty(source.shape[0], dtype=source.dtype)
        for rows, block in finite_blocks_there(source):
            samples = namespace_of(block).reshape(block, (block.shape[0], -1))
            weights = to_device(weights, like=block)
            prediction[rows] = to_host(samples @ weights)
        prediction += self.intercept_
        return prediction


def _as_samples(estimator: Any, X: Any, min_samples: int) -> Samples:
    """Refuse what is no numeric array of samples; anything else keeps type and layout."""
    tensor: Samples
    X = admit(estimator, X) if is_foreign(X) else X
    if is_stored(X):
        tensor = as_source(X)
        _check_stored(estimator, tensor, min_samples)
    else:
        tensor = _as_real_array(estimator, X, min_samples)
        mapped = as_source(tensor)
        tensor = tensor if is_in_memory(mapped) else mapped
    if getattr(tensor, "advice", ""):
        warn(tensor.advice)  # type: ignore[union-attr]
    if 0 in tensor.shape[1:]:
        raise ValueError(
            f"X has shape {tensor.shape}: a mode of size 0 leaves nothing to fit; "
            "expected every mode to hold at least 1 element."
        )
    return tensor


def _check_stored(estimator: Any, source: Source, min_samples: int) -> None:
    """Ask of stored samples what scikit-learn asks of arrays, in words like its own."""
    dtype = getattr(source, "stored_dtype", source.dtype)
    if dtype.kind not in _REAL_KINDS:
        raise ValueError(f"X has dtype {dtype}; expected real numbers.")
    if len(source.shape) < 2:
        raise ValueError(
            f"X has shape {source.shape}; expected (n_samples, p1, ..., pM), with an axis of "
            "samples and at least one more."
        )
    if source.shape[0] < min_samples:
        raise ValueError(
            f"Found array with {source.shape[0]} sample(s) (shape={source.shape}) while a minimum "
            f"of {min_samples} is required by {type(estimator).__name__}."
        )


def _as_real_array(estimator: Any, X: Any, min_samples: int) -> Array:
    """Refuse with scikit-learn's messages what is no numeric array."""
    tensor: Array = check_array(
        X,
        dtype="numeric",
        allow_nd=True,
        ensure_all_finite=False,
        ensure_min_samples=min_samples,
        estimator=estimator,
        input_name="X",
    )
    if tensor.dtype.kind not in _REAL_KINDS:
        raise ValueError(f"X has dtype {tensor.dtype}; expected real numbers.")
    return tensor


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


def _as_float_vector(y: Any) -> Array:
    """Return `y` as a finite float32 or float64 vector."""
    vector: Array = column_or_1d(y, warn=True)
    if vector.dtype.kind not in _REAL_KINDS + "O":
        raise ValueError(f"y has dtype {vector.dtype}; expected real numbers.")
    dtype = np.float32 if vector.dtype == np.float32 else np.float64
    vector = vector.astype(dtype, copy=False)
    bad = np.flatnonzero(~np.isfinite(vector))
    if bad.size:
        kind = (
            "NaN"
            if np.isnan(vector[bad[0]])
            else f"infinity or a value too large for {vector.dtype!r}"
        )
        raise ValueError(
            f"Input y contains {kind}: first at sample {bad[0]}, {bad.size} such values "
            "in all. Drop these samples before fitting."
        )
    return vector
