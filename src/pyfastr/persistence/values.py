"""Kinds of values that Python and NumPy have and JSON has not."""

import re
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.persistence.codec import OBJECT_CLAIM, Decoder, Encoder, Kind, expect
from pyfastr.persistence.container import MAX_AXES, dtype_name
from pyfastr.persistence.errors import UnstorableError, damaged

Array = NDArray[Any]

SCALARS = {
    name: np.dtype(name)
    for name in (
        *("bool", "float16", "float32", "float64"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
}
# Elements of an array of objects: labels and names.
PLAIN = (str, int, float, bool, type(None))
# Dates along a mode.
TIMES = re.compile(r"[mM]8\[[1-9][0-9]{0,8}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")
STATE_LENGTH = 624


def _encode_float(encoder: Encoder, value: float, path: str) -> Any:
    return {"value": repr(value)}


def _decode_float(decoder: Decoder, node: dict[str, Any]) -> float:
    if node["value"] not in ("nan", "inf", "-inf"):
        raise damaged(f"its document has the number {node['value']!r:.60}")
    return float(node["value"])


def _encode_tuple(encoder: Encoder, value: tuple[Any, ...], path: str) -> Any:
    return {"items": encoder.encode(list(value), path)}


def _decode_tuple(decoder: Decoder, node: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(decoder.decode(expect(node["items"], list, "a tuple")))


def _encode_dict(encoder: Encoder, value: dict[Any, Any], path: str) -> Any:
    if not all(_is_plain(key) for key in value):
        raise UnstorableError(f"{path} has keys other than numbers and text")
    return {"items": encoder.encode([list(pair) for pair in value.items()], path)}


def _decode_dict(decoder: Decoder, node: dict[str, Any]) -> dict[Any, Any]:
    pairs = decoder.decode(expect(node["items"], list, "a dict"))
    if not all(type(pair) is list and len(pair) == 2 and _is_plain(pair[0]) for pair in pairs):
        raise damaged("a dict in its document has no pairs of keys and values")
    return dict(pairs)


def _encode_scalar(encoder: Encoder, value: np.generic, path: str) -> Any:
    name = value.dtype.name
    if name not in SCALARS and value.dtype.kind != "U":
        raise UnstorableError(f"{path} is a NumPy {name}")
    own = "str" if value.dtype.kind == "U" else name
    return {"dtype": own, "value": encoder.encode(value.item(), path)}


def _decode_scalar(decoder: Decoder, node: dict[str, Any]) -> Any:
    name, value = node["dtype"], decoder.decode(node["value"])
    if name == "str":
        return np.str_(expect(value, str, "a text"))
    dtype = SCALARS.get(expect(name, str, "the type of a number"))
    if dtype is None:
        raise damaged(f"its document has a number of type {name!r:.60}")
    wanted: type = {"b": bool, "f": float}.get(dtype.kind, int)
    expect(value, wanted, f"a number of type {name}")
    with np.errstate(over="ignore"):
        array = np.array(value).astype(dtype)
    if array.item() != value and value == value:
        raise damaged(f"its document has a {name} of {value!r:.60}")
    return array[()]


def _encode_array(encoder: Encoder, value: Array, path: str) -> Any:
    plain = np.asarray(value) if type(value) is not np.ndarray else value
    dtype_name(plain)
    return {"tensor": encoder.reference(plain, path)}


def _decode_array(decoder: Decoder, node: dict[str, Any]) -> Array:
    return decoder.tensor(node["tensor"])


def _encode_times(encoder: Encoder, value: Array, path: str) -> Any:
    unit, count = np.datetime_data(value.dtype)
    counts = np.ascontiguousarray(value).view(np.int64)
    return {
        "dtype": f"{value.dtype.kind}8[{count}{unit}]",
        "counts": encoder.encode(counts, path),
    }


def _decode_times(decoder: Decoder, node: dict[str, Any]) -> Array:
    dtype, counts = node["dtype"], decoder.decode(node["counts"])
    if not isinstance(counts, np.ndarray) or counts.dtype != np.int64:
        raise damaged("times are no whole numbers")
    if type(dtype) is not str or not TIMES.fullmatch(dtype):
        raise damaged(f"times are of type {dtype!r:.60}")
    return counts.view(dtype)


def _encode_texts(encoder: Encoder, value: Array, path: str) -> Any:
    items = value.ravel().tolist()
    if not all(_is_plain(item) for item in items):
        raise UnstorableError(f"{path} is an array of objects")
    width = None if value.dtype.kind == "O" else value.dtype.itemsize // 4
    return {"width": width, "shape": list(value.shape), "items": encoder.encode(items, path)}


def _decode_texts(decoder: Decoder, node: dict[str, Any]) -> Array:
    width, shape = node["width"], expect(node["shape"], list, "the shape of labels")
    items = decoder.decode(expect(node["items"], list, "labels"))
    # The product of endless sizes would take minutes.
    sizes = len(shape) <= MAX_AXES and all(type(p) is int and p >= 0 for p in shape)
    if not sizes or prod(shape) != len(items):
        raise damaged("the shape of labels does not fit their number")
    if not all(_is_plain(item) if width is None else type(item) is str for item in items):
        raise damaged("labels are neither text nor numbers")
    array: Array = np.empty(len(items), _text_dtype(decoder, width, items))
    array[:] = items
    return array.reshape(shape)


def _text_dtype(decoder: Decoder, width: Any, items: list[Any]) -> Any:
    """Return the type of an array of text, or of objects if there is no width."""
    if width is None:
        return object
    longest = max(map(len, items), default=0)
    if type(width) is not int or width < longest:
        raise damaged(f"text of up to {longest} characters is said to be {width!r:.60} wide")
    # The width is kept, so that a short text may claim much memory.
    decoder.spend(4 * width * max(len(items), 1))
    return f"<U{width}"


def _encode_masked(encoder: Encoder, value: Any, path: str) -> Any:
    data, mask = np.ma.getdata(value), np.ma.getmaskarray(value)
    return {
        "data": encoder.encode(data, f"{path}.data"),
        "mask": encoder.encode(mask, f"{path}.mask"),
    }


def _decode_masked(decoder: Decoder, node: dict[str, Any]) -> Any:
    data, mask = decoder.decode(node["data"]), decoder.decode(node["mask"])
    both = isinstance(data, np.ndarray) and isinstance(mask, np.ndarray)
    if not both or mask.dtype != bool or mask.shape != data.shape:
        raise damaged("the mask of an array does not fit it")
    return np.ma.MaskedArray(data, mask=mask)


def _encode_random_state(encoder: Encoder, value: Any, path: str) -> Any:
    name = value.get_state(legacy=False)["bit_generator"]
    if name != "MT19937":
        raise UnstorableError(f"{path} is a RandomState of kind {name}")
    return {"state": encoder.encode(list(value.get_state(legacy=True)[1:]), path)}


def _decode_random_state(decoder: Decoder, node: dict[str, Any]) -> Any:
    state = decoder.decode(expect(node["state"], list, "a RandomState"))
    if [type(part) for part in state] != [np.ndarray, int, int, float]:
        raise damaged("a RandomState is not complete")
    key, position, has_gauss, _ = state
    # NumPy believes the position, and would read beyond the key.
    within = 0 <= position <= STATE_LENGTH and has_gauss in (0, 1)
    if key.dtype != np.uint32 or key.shape != (STATE_LENGTH,) or not within:
        raise damaged("the state of a RandomState is none of its own")
    restored = np.random.RandomState(0)
    restored.set_state(("MT19937", *state))
    return restored


def _decode_dtype(decoder: Decoder, node: dict[str, Any]) -> Any:
    dtype = SCALARS.get(expect(node["name"], str, "a type of numbers"))
    if dtype is None:
        raise damaged(f"its document has numbers of type {node['name']!r:.60}")
    return dtype


def _is_dtype(value: Any) -> bool:
    return isinstance(value, np.dtype) and value.name in SCALARS


def _is_number_type(value: Any) -> bool:
    return isinstance(value, type) and value in {dtype.type for dtype in SCALARS.values()}


def _is_plain(value: Any) -> bool:
    """Whether a value may be a label or a key."""
    return type(value) in PLAIN or isinstance(value, np.generic)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def _is_times(value: Any) -> bool:
    """Whether these are dates or spans of a known unit."""
    dated = isinstance(value, np.ndarray) and value.dtype.kind in "mM"
    return dated and np.datetime_data(value.dtype)[0] != "generic"


def _is_texts(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "UO"


VALUES = (
    Kind("float", lambda v: type(v) is float, ("value",), _encode_float, _decode_float),
    Kind("tuple", lambda v: type(v) is tuple, ("items",), _encode_tuple, _decode_tuple),
    Kind("dict", lambda v: type(v) is dict, ("items",), _encode_dict, _decode_dict),
    Kind(
        "scalar",
        lambda v: isinstance(v, np.generic),
        ("dtype", "value"),
        _encode_scalar,
        _decode_scalar,
    ),
    Kind(
        "masked",
        lambda v: isinstance(v, np.ma.MaskedArray),
        ("data", "mask"),
        _encode_masked,
        _decode_masked,
    ),
    Kind("array", _is_array, ("tensor",), _encode_array, _decode_array),
    Kind("times", _is_times, ("dtype", "counts"), _encode_times, _decode_times),
    Kind("texts", _is_texts, ("width", "shape", "items"), _encode_texts, _decode_texts),
    Kind(
        "random_state",
        lambda v: isinstance(v, np.random.RandomState),
        ("state",),
        _encode_random_state,
        _decode_random_state,
        OBJECT_CLAIM,
    ),
    Kind(
        "dtype",
        _is_dtype,
        ("name",),
        lambda encoder, value, path: {"name": value.name},
        _decode_dtype,
    ),
    Kind(
        "type",
        _is_number_type,
        ("name",),
        lambda encoder, value, path: {"name": np.dtype(value).name},
        lambda decoder, node: _decode_dtype(decoder, node).type,
    ),
    Kind(
        "path",
        lambda v: isinstance(v, Path),
        ("value",),
        lambda encoder, value, path: {"value": str(value)},
        lambda decoder, node: Path(expect(node["value"], str, "a path")),
    ),
)
