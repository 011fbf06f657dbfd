"""The safetensors format: eight bytes of length, a JSON header, then the arrays end to end.

Written and read here, not by the package of that name, whose reader leaves the size of the header
and of the metadata in it to the file. The package reads these files all the same.
"""

import hashlib
import os
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pyfastr.persistence import strict_json
from pyfastr.persistence.errors import RefusedError, UnstorableError, damaged, foreign

Array = NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
METADATA, DOCUMENT, DIGEST = "__metadata__", "pyfastr", "sha256"
LENGTH, ALIGNMENT, MAX_AXES = 8, 8, 32


@dataclass(frozen=True)
class Entry:
    """Where one array is, in bytes from the end of the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    def as_json(self) -> dict[str, Any]:
        """Return what the header says of it."""
        offsets = [self.begin, self.end]
        return {"dtype": self.dtype, "shape": list(self.shape), "data_offsets": offsets}


@dataclass(frozen=True)
class Header:
    """Checked: the entries lie end to end and fill the file to its last byte."""

    entries: list[Entry]
    document: str
    digest: str
    length: int


def write(file: BinaryIO, tensors: dict[str, Array], document: str) -> None:
    """Write arrays and the document that speaks of them."""
    entries = _laid_out(tensors)
    data = [np.ascontiguousarray(tensors[e.name], DTYPES[e.dtype]) for e in entries]
    digest = _digest(document, entries)
    for array in data:
        digest.update(_bytes_of(array))
    metadata = {DOCUMENT: document, DIGEST: digest.hexdigest()}
    header = strict_json.dumps({METADATA: metadata} | {e.name: e.as_json() for e in entries})
    if not strict_json.within_limits(header):
        raise RefusedError(
            f"its names and settings take {len(header):,} characters, which is more than a model "
            "file can hold. Fit arrays without column names, or choose among fewer points."
        )
    header += " " * (-len(header) % ALIGNMENT)
    file.write(len(header).to_bytes(LENGTH, "little") + header.encode("ascii"))
    for array in data:
        file.write(_bytes_of(array))


def read_header(file: BinaryIO) -> Header:
    """Read the header and compare all that it claims with the size of the file."""
    size = os.fstat(file.fileno()).st_size
    if size < LENGTH:
        raise foreign(f"it has {size} bytes" if size else "it is empty")
    length = int.from_bytes(file.read(LENGTH), "little")
    if length > min(size - LENGTH, strict_json.MAX_BYTES):
        raise foreign(f"its first bytes claim a header of {length:,} bytes in a file of {size:,}")
    raw = file.read(length)
    if not raw.startswith(b"{") or not raw.isascii():
        raise foreign("it does not begin with a header of names and values")
    parsed = strict_json.loads(raw.decode("ascii"))
    document, digest = _metadata(parsed.pop(METADATA, None))
    entries = sorted((_entry(*pair) for pair in parsed.items()), key=lambda e: (e.begin, e.end))
    _check_tiles(entries, size - LENGTH - length)
    return Header(entries, document, digest, length)


def read_tensors(file: BinaryIO, header: Header) -> dict[str, Array]:
    """Read the arrays, which together are as large as the file, and compare the digest."""
    file.seek(LENGTH + header.length)
    digest = _digest(header.document, header.entries)
    tensors = {}
    for entry in header.entries:
        array: Array = np.empty(entry.shape, DTYPES[entry.dtype])
        raw = _bytes_of(array)
        if file.readinto(raw) != len(raw):  # type: ignore[attr-defined]
            raise damaged("it became shorter while it was read")
        digest.update(raw)
        tensors[entry.name] = array
    if digest.hexdigest() != header.digest:
        raise damaged("its contents do not match its checksum")
    for name, array in tensors.items():
        if array.dtype == bool and array.size and array.view(np.uint8).max() > 1:
            raise damaged(f"array {name!r} of booleans has other values than 0 and 1")
    return tensors


def dtype_name(array: Array) -> str:
    """Return the format's name for an array's type."""
    dtype = array.dtype.newbyteorder("<")
    if dtype not in NAMES or array.ndim > MAX_AXES:
        raise UnstorableError(f"an array of type {array.dtype} with {array.ndim} axes")
    return NAMES[dtype]


def _laid_out(tensors: dict[str, Array]) -> list[Entry]:
    """Place the arrays end to end, wide types first, so that each begins at a multiple of its own.

    The order of equals is the order of names: the same model gives the same bytes.
    """
    entries, begin = [], 0
    for name in sorted(tensors, key=lambda n: (-tensors[n].dtype.itemsize, n)):
        array = tensors[name]
        entries.append(Entry(name, dtype_name(array), array.shape, begin, begin + array.nbytes))
        begin += array.nbytes
    return entries


def _bytes_of(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _digest(document: str, entries: list[Entry]) -> "hashlib._Hash":
    """Begin a digest with all that the header says."""
    claims = [[e.name, e.as_json()] for e in entries]
    return hashlib.sha256(strict_json.dumps([document, claims]).encode("ascii"))


def _metadata(found: Any) -> tuple[str, str]:
    """Return the document and the digest."""
    if not isinstance(found, dict) or not isinstance(found.get(DOCUMENT), str):
        raise foreign("it is a safetensors file of another program, without pyfastr's document")
    digest = found.get(DIGEST)
    return found[DOCUMENT], digest if isinstance(digest, str) else ""


def _entry(name: str, claim: Any) -> Entry:
    """Check one entry by itself."""
    if not isinstance(claim, dict) or set(claim) != {"dtype", "shape", "data_offsets"}:
        raise damaged(f"its header has no type, shape and place of array {name!r}")
    dtype, shape, offsets = claim["dtype"], claim["shape"], claim["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise damaged(f"array {name!r} is of type {dtype!r}")
    if not _is_counts(shape) or not _is_counts(offsets) or len(offsets) != 2:
        raise damaged(f"shape or place of array {name!r} are no whole numbers")
    begin, end = offsets
    if len(shape) > MAX_AXES or prod(shape) * DTYPES[dtype].itemsize != end - begin:
        raise damaged(f"array {name!r} has a shape that does not fit its {end - begin:,} bytes")
    # Beside an axis of size 0, any other would fit.
    if 0 in shape and max(shape) > end + strict_json.MAX_BYTES:
        raise damaged(f"array {name!r} is empty but of shape {tuple(shape)}")
    return Entry(name, dtype, tuple(shape), begin, end)


def _is_counts(values: Any) -> bool:
    """Whether these are whole numbers of at least zero."""
    return isinstance(values, list) and all(type(v) is int and v >= 0 for v in values)


def _check_tiles(entries: list[Entry], size: int) -> None:
    """Refuse gaps, overlaps, and claims beyond the end of the file."""
    reached = 0
    for entry in entries:
        if entry.begin != reached:
            raise damaged(f"array {entry.name!r} does not begin where the one before it ends")
        reached = entry.end
    if reached > size:
        raise damaged(f"it is cut short: {reached - size:,} bytes are missing at its end")
    if reached < size:
        raise damaged(f"it has {size - reached:,} bytes that belong to no array")
