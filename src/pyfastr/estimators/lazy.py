"""Methods that a Dask array is not computed for: they return a Dask array, chunk by chunk."""

from collections.abc import Callable
from copy import copy
from functools import partial, wraps
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pyfastr.config import current_budget
from pyfastr.estimators.labels import check_covariate_names
from pyfastr.estimators.validation import check_covariates, check_tensor
from pyfastr.sources import WholeSamples, dask_behind

Array = NDArray[Any]
Method = TypeVar("Method", bound=Callable[..., Any])

# What is compared once for all chunks; they have no names.
_NAMES = ("feature_names_in_", "covariate_names_in_")


def by_chunks(method: Method) -> Method:
    """Let a method of X and covariates answer for each chunk of a Dask array, when it is asked."""

    @wraps(method)
    def mapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if dask_behind(X) is None:
            return method(self, X, *args, **kwargs)
        return _over_chunks(self, method.__name__, X, *args, **kwargs)

    return mapped  # type: ignore[return-value]


def _over_chunks(model: Any, name: str, X: Any, covariates: Any = None) -> Any:
    """Return a Dask array of one chunk for each chunk of X; errors of shapes come at once."""
    check_is_fitted(model)
    check_tensor(model, X, reset=False)
    check_covariate_names(model, covariates)
    whole = WholeSamples.of(dask_behind(X), current_budget()).X
    Z = check_covariates(covariates, whole.shape[0])
    light = _light(model)
    one = np.zeros((1, *whole.shape[1:]), whole.dtype)
    # One sample of zeros tells type and shape of what comes out.
    probe = _answer(light, name, one, None if Z is None else Z[:1])
    da = import_module("dask.array")
    rows, inner = whole.chunks[0], tuple(range(1, whole.ndim))
    inputs = [whole, (0, *inner), da.arange(whole.shape[0], chunks=(rows,)), (0,)]
    if Z is not None:
        inputs += [da.from_array(Z, chunks=(rows, -1)), (0, whole.ndim)]
    outer = {-axis: size for axis, size in enumerate(probe.shape) if axis}
    return da.blockwise(
        partial(_chunk, light, name, probe[:0]),
        (0, *outer),
        *inputs,
        token=name,
        new_axes=outer,
        concatenate=True,
        dtype=probe.dtype,
        meta=probe[:0],
    )


def _light(model: Any) -> Any:
    """Return what predictions need: later fits leave it as it is, and it is sent in kilobytes."""
    light = copy(getattr(model, "best_estimator_", model))
    for name in _NAMES:
        light.__dict__.pop(name, None)
    return light


def _chunk(
    model: Any, name: str, nothing: Array, chunk: Array, numbers: Array, Z: Array | None = None
) -> Array:
    """Answer for one chunk; errors tell where it is in X."""
    if not len(chunk):
        return nothing
    try:
        return _answer(model, name, chunk, Z)
    except Exception as error:
        error.add_note(f"The first sample of this chunk is sample {numbers[0]} of X.")
        raise


def _answer(model: Any, name: str, chunk: Array, Z: Array | None) -> Array:
    """Call the method; one that knows of no covariates is given none."""
    method = getattr(model, name)
    return np.asarray(method(chunk) if Z is None else method(chunk, Z))
