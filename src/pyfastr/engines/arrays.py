"""What NumPy and other libraries call differently: arrays of the kernels may be of any of them.

Arrays of NumPy go the way that is called soonest. Those of other libraries stay on their device,
follow the array API standard, and are new with every result: nothing is written in place.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.parallel import map_threads
from pyfastr.sources.namespaces import cast, device_of, namespace_of, to_device

Array = NDArray[Any]
# Of NumPy or of another library: they have no type in common.
AnyArray = Any
Result = TypeVar("Result")

# Bytes that one product takes or makes on a device of its own, whose calls are slow to begin, and
# on the processor, where memory that was just used is at hand and new memory is slow to get.
DEVICE_BYTES, PROCESSOR_BYTES = 256 << 20, 16 << 20


def is_ours(x: AnyArray) -> bool:
    """Whether an array is of NumPy."""
    return isinstance(x, np.ndarray)


def room_beside(x: AnyArray) -> int:
    """Return the bytes that one product on the device of an array should take or make."""
    return PROCESSOR_BYTES if "cpu" in str(device_of(x)).lower() else DEVICE_BYTES


def beside(array: Array, like: AnyArray) -> AnyArray:
    """Return an array of NumPy where another array is, and in its type."""
    return cast(array if is_ours(like) else to_device(array, like=like), dtype_of(like))


def dtype_of(x: AnyArray) -> np.dtype[Any]:
    """Return the type of floating-point numbers as NumPy calls it."""
    if is_ours(x):
        own: np.dtype[Any] = x.dtype
        return own
    return np.dtype(np.float32 if x.dtype == namespace_of(x).float32 else np.float64)


def size_of_rows(x: AnyArray) -> int:
    """Return the bytes of one entry along the first axis, at least one."""
    return max(1, int(np.prod(x.shape[1:])) * dtype_of(x).itemsize)


def join(parts: Sequence[AnyArray], axis: int = 0) -> AnyArray:
    """Put arrays behind each other."""
    if is_ours(parts[0]):
        return np.concatenate(parts, axis=axis)
    return parts[0] if len(parts) == 1 else namespace_of(parts[0]).concat(parts, axis=axis)


def permuted(x: AnyArray, axes: tuple[int, ...]) -> AnyArray:
    """Put the axes of an array in another order."""
    return x.transpose(axes) if is_ours(x) else namespace_of(x).permute_dims(x, axes)


def reshaped(x: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Reshape an array."""
    return x.reshape(shape) if is_ours(x) else namespace_of(x).reshape(x, shape)


def broadcast(x: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Repeat an array without a copy."""
    return namespace_of(x).broadcast_to(x, shape)


def row_products(left: AnyArray, right: AnyArray) -> AnyArray:
    """Return inner products ``(K,)`` of the rows of two arrays ``(K or 1, n)``."""
    if is_ours(left):
        return np.einsum("kn,kn->k", left, np.broadcast_to(right, left.shape))
    return namespace_of(left).vecdot(left, right)


def times(features: AnyArray, vectors: AnyArray) -> AnyArray:
    """Multiply features ``(K, n, q)`` with vectors ``(K, q)`` of their type: ``(K, n)``."""
    return (features @ vectors[..., None])[..., 0]


def map_parts(
    work: Callable[[slice], Result], array: AnyArray, cut: Callable[[Array], list[slice]]
) -> list[Result]:
    """Apply `work` to parts of a batch: in threads as NumPy is to cut it, or one after another.

    Other libraries have threads of their own.
    """
    if is_ours(array):
        return map_threads(work, cut(array))
    return [work(part) for part in parts_of(array, size_of_rows(array))]


def parts_of(array: AnyArray, row_bytes: int) -> list[slice]:
    """Cut an array along its first axis, given the bytes that a product takes or makes for each."""
    step, n = max(1, room_beside(array) // row_bytes), array.shape[0]
    # The standard leaves open what a slice beyond the end is.
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]
