"""Arrays of other libraries than NumPy, and their way to the host and back."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Known by their class, as they offer no namespace of their own in every version.
_CLASSES = {"torch": "Tensor", "cupy": "ndarray"}


def is_foreign(x: Any) -> bool:
    """Whether `x` is an array of torch, CuPy or another library of the array API standard.

    Nothing is imported: who has such an array has imported its library.
    """
    if isinstance(x, np.ndarray | np.generic):
        return False
    known = any(_is_of(x, library) for library in _CLASSES)
    return known or hasattr(type(x), "__array_namespace__")


def namespace_of(x: Any) -> Any:
    """Return the functions for an array: NumPy, or what array-api-compat makes of a library."""
    if isinstance(x, np.ndarray):
        return np
    return _compat().array_namespace(x)


def device_of(x: Any) -> Any:
    """Return the device of an array, as its library calls it; that of NumPy is "cpu"."""
    return getattr(x, "device", "cpu") if is_foreign(x) else "cpu"


def describe(x: Any) -> str:
    """Name the library and the device of an array, for errors."""
    if not is_foreign(x):
        return "of NumPy"
    return f"of {type(x).__module__.partition('.')[0]} on {device_of(x)}"


def is_beside(x: Any, other: Any) -> bool:
    """Whether two arrays are of one library and on one device."""
    if not is_foreign(x) and not is_foreign(other):
        return True
    return is_of_one_library(x, other) and bool(device_of(x) == device_of(other))


def is_of_one_library(x: Any, other: Any) -> bool:
    """Whether two arrays are of one library."""
    if is_foreign(x) != is_foreign(other):
        return False
    return not is_foreign(x) or namespace_of(x) is namespace_of(other)


def to_host(x: Any) -> Any:
    """Return an array of another library as one of NumPy, without a copy if it can; else `x`."""
    if not is_foreign(x):
        return x
    if _is_of(x, "torch"):
        # NumPy has no bfloat16, whose values float32 has, too.
        x = x.float() if str(x.dtype) == "torch.bfloat16" else x
        return x.cpu().numpy()
    if _is_of(x, "cupy"):
        return x.get()
    if type(x).__module__.startswith("array_api_strict"):
        # Its devices stand for others in tests: all but one keep NumPy out.
        x = x.to_device(namespace_of(x).Device("CPU_DEVICE"))
    return np.asarray(x)


def to_device(array: Array, *, like: Any) -> Any:
    """Return an array in the library and on the device of another.

    A device without float64 gets float32.
    """
    if is_beside(array, like):
        return array
    array = to_host(array)
    if not is_foreign(like):
        return array
    xp = namespace_of(like)
    if array.dtype == np.float64 and not _has_float64(like):
        array = array.astype(np.float32)
    # torch warns of memory that it may not write to, and refuses to read backwards.
    array = np.require(array, requirements=["C", "W"])
    return xp.asarray(array, device=device_of(like))


def take(x: Any, numbers: Array, *, axis: int) -> Any:
    """Return the slices of an array that have these numbers."""
    return namespace_of(x).take(x, to_device(numbers, like=x), axis=axis)


def cast(x: Any, dtype: Any) -> Any:
    """Return an array in a type of NumPy, itself if it has that already.

    A device without float64 gives float32 instead.
    """
    if isinstance(x, np.ndarray):
        return x.astype(dtype, copy=False)
    xp, wanted = namespace_of(x), np.dtype(dtype).name
    if wanted == "float64" and x.dtype != xp.float64 and not _has_float64(x):
        wanted = "float32"
    return xp.astype(x, getattr(xp, wanted), copy=False)


def host_dtype(x: Any) -> np.dtype[Any]:
    """Return the type of blocks: float32 or float64 as they are, the best there is for all else."""
    xp = namespace_of(x)
    if x.dtype == xp.float32 or (x.dtype != xp.float64 and not _has_float64(x)):
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def is_real(x: Any) -> bool:
    """Whether the entries of an array of another library are real numbers."""
    xp = namespace_of(x)
    return not xp.isdtype(x.dtype, "complex floating")


def is_floating(x: Any) -> bool:
    """Whether the entries of an array are real numbers that may be rounded."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind == "f"
    return bool(namespace_of(x).isdtype(x.dtype, "real floating"))


def _has_float64(x: Any) -> bool:
    """Whether the device of an array knows float64."""
    info = namespace_of(x).__array_namespace_info__()
    return "float64" in info.dtypes(device=device_of(x), kind="real floating")


def _is_of(x: Any, library: str) -> bool:
    """Whether `x` is an array of a library, which is not imported for it."""
    module = sys.modules.get(library)
    return module is not None and isinstance(x, getattr(module, _CLASSES[library]))


def _compat() -> ModuleType:
    """Return array-api-compat, or say how to install it."""
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError(
            "Arrays of other libraries than NumPy need array-api-compat, which is not installed. "
            "Run: pip install 'pyfastr[arrays]'",
            name="array_api_compat",
        ) from error
    return array_api_compat
