"""What a MATLAB 5 file says it holds, checked before anything is allocated for it.

A reader believes the sizes in a file: one damaged number, and it asks for gigabytes. Here the
tags are followed through the file, and no value is read that is longer than a name.
"""

import struct
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import BinaryIO, Protocol

_MAX_NAME_BYTES = 2**12
_MAX_DEPTH = 4
_CHUNK_BYTES = 2**16

_MATRIX, _COMPRESSED = 14, 15
_CELL, _STRUCT, _CHAR, _OPAQUE = 1, 2, 4, 17
_NUMERIC = range(6, 16)
_COMPLEX_FLAG = 0x0800
_BYTES_OF_TYPE = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}
_TEXT_TYPES = frozenset({1, 2, 4, 16, 17, 18})

# Given the file, a field, what was found there and what is expected, returns the error to raise.
Refusal = Callable[[Path, str, str, str], Exception]


class _TruncatedError(Exception):
    """The bytes end before the tags say so."""


class _Stream(Protocol):
    """Bytes that are read forward."""

    def read(self, n_bytes: int) -> bytes: ...

    def skip(self, n_bytes: int) -> None: ...

    def tell(self) -> int: ...


class _Plain:
    """The bytes of the file itself."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, n_bytes: int) -> bytes:
        found = self._file.read(n_bytes)
        if len(found) < n_bytes:
            raise _TruncatedError
        return found

    def skip(self, n_bytes: int) -> None:
        self._file.seek(n_bytes, 1)

    def tell(self) -> int:
        return self._file.tell()


class _Inflated:
    """The bytes of a compressed variable, inflated a chunk at a time and not kept."""

    def __init__(self, file: BinaryIO, n_bytes: int) -> None:
        self._file = file
        self._left = n_bytes
        self._inflate = zlib.decompressobj()
        self._position = 0

    def read(self, n_bytes: int) -> bytes:
        found = bytearray()
        while len(found) < n_bytes:
            found += self._next_bytes(n_bytes - len(found))
        return bytes(found)

    def skip(self, n_bytes: int) -> None:
        while n_bytes > 0:
            n_bytes -= len(self._next_bytes(min(n_bytes, _CHUNK_BYTES)))

    def tell(self) -> int:
        return self._position

    def _next_bytes(self, n_bytes: int) -> bytes:
        """Return some of the next bytes, at most so many."""
        while True:
            waiting = self._inflate.unconsumed_tail
            if not waiting:
                waiting = self._file.read(min(self._left, _CHUNK_BYTES))
                self._left -= len(waiting)
            found = self._inflate.decompress(waiting, n_bytes)
            self._position += len(found)
            if found:
                return found
            if not waiting:
                raise _TruncatedError


def check_mat_file(
    path: Path, variables: Collection[str], *, most: int, refusal: Refusal
) -> list[str]:
    """Check the structure of a MATLAB 5 file, without building any array.

    Parameters
    ----------
    path : Path
    variables : collection of str
        The variables that must be there. Others are passed over.
    most : int
        Values that those variables may have in all.
    refusal : callable
        Makes the error of a file that is not MATLAB 5, ends too early, lacks a variable, or says
        that an array is larger than that.

    Returns
    -------
    list of str
        The names of all variables.
    """
    with path.open("rb") as file, _naming_the_file(path, refusal):
        walk = _Walk(path, file, variables, most, refusal)
        found = list(walk.top_level_names())
    for name in variables:
        if name not in found:
            raise refusal(path, f"variable {name}", "is missing", f"{', '.join(variables)}")
    return found


@contextmanager
def _naming_the_file(path: Path, refusal: Refusal) -> Iterator[None]:
    """Turn what can go wrong with the bytes into an error that names the file."""
    try:
        yield
    except (_TruncatedError, zlib.error) as error:
        n_bytes = path.stat().st_size
        raise refusal(
            path,
            "the file",
            f"breaks off or is garbled within its {n_bytes} bytes",
            "a complete MATLAB 5 file",
        ) from error


class _Walk:
    """One way through the tags of a file."""

    def __init__(
        self,
        path: Path,
        file: BinaryIO,
        variables: Collection[str],
        most: int,
        refusal: Refusal,
    ) -> None:
        self._path = path
        self._file = file
        self._variables = variables
        self._most = most
        self._refusal = refusal
        self._n_elements = 0
        self._order = self._byte_order()

    def _byte_order(self) -> str:
        """Read the header: which end of a number comes first."""
        header = self._file.read(128)
        mark = header[126:128]
        if not header.startswith(b"MATLAB 5.0") or mark not in (b"IM", b"MI"):
            raise self._refusal(
                self._path, "the file", f"starts with {header[:24]!r}", "a MATLAB 5.0 MAT-file"
            )
        return "<" if mark == b"IM" else ">"

    def top_level_names(self) -> Iterator[str]:
        """Yield the names of the variables, checking those that are asked for."""
        size = self._path.stat().st_size
        while (start := self._file.tell()) < size:
            kind, n_bytes = self._unpack("II", _Plain(self._file).read(8))
            end = start + 8 + n_bytes
            if end > size:
                raise _TruncatedError
            yield self._variable(kind, n_bytes)
            self._file.seek(end)

    def _variable(self, kind: int, n_bytes: int) -> str:
        """Check one variable, if it is asked for, and return its name."""
        stream: _Stream = _Plain(self._file)
        if kind == _COMPRESSED:
            stream = _Inflated(self._file, n_bytes)
            kind, n_bytes = self._unpack("II", stream.read(8))
        self._require(kind == _MATRIX, "a variable", f"has tag {kind}", f"tag {_MATRIX}")
        self._require(
            n_bytes <= 8 * self._most,
            "a variable",
            f"says that it takes {n_bytes} bytes",
            f"at most {8 * self._most}",
        )
        return self._array(stream, n_bytes, "")

    def _array(self, stream: _Stream, n_bytes: int, field: str, depth: int = 0) -> str:
        """Check an array and those inside it; return its name in the file."""
        end = stream.tell() + n_bytes
        if n_bytes == 0:
            return ""
        flags = self._unpack("4I", stream.read(16))[2]
        if flags & 0xFF == _OPAQUE and depth == 0:
            # Objects of MATLAB's own have no dimensions; they cannot be asked for.
            return ""
        dims = self._dims(stream, field)
        name = self._short(stream, field).decode("latin-1")
        if depth == 0 and name not in self._variables:
            return name
        field = field or name
        self._require(depth <= _MAX_DEPTH, field, "is deeply nested", f"{_MAX_DEPTH} levels")
        self._check_size(field, dims)
        if flags & 0xFF in (_CELL, _STRUCT):
            for inner in self._inner_names(stream, flags & 0xFF, field, dims):
                self._inner(stream, end, inner, depth)
        else:
            self._leaf(stream, end, flags, field, dims)
        if stream.tell() > end:
            raise _TruncatedError
        stream.skip(end - stream.tell())
        return name

    def _inner(self, stream: _Stream, end: int, field: str, depth: int) -> None:
        """Check one array inside another, which ends at `end`."""
        kind, n_bytes = self._unpack("II", stream.read(8))
        if kind != _MATRIX or n_bytes > end - stream.tell():
            raise _TruncatedError
        self._array(stream, n_bytes, field, depth + 1)

    def _inner_names(
        self, stream: _Stream, kind: int, field: str, dims: tuple[int, ...]
    ) -> Iterator[str]:
        """Yield what MATLAB calls the arrays in a cell or struct array, in their order."""
        if kind == _CELL:
            yield from (f"{field}{{{i}}}" for i in range(1, prod(dims) + 1))
            return
        names = self._field_names(stream, field)
        self._check_size(field, (*dims, len(names)))
        for i in range(1, prod(dims) + 1):
            place = f"{field}({i})" if prod(dims) > 1 else field
            yield from (f"{place}.{name}" for name in names)

    def _field_names(self, stream: _Stream, field: str) -> list[str]:
        """Read the names of the fields of a struct array: all of one length, zeros behind."""
        length = self._unpack("I", self._short(stream, field)[:4].ljust(4, b"\0"))[0]
        joined = self._short(stream, field)
        self._require(length > 0, field, "has field names of no length", "names")
        parts = [joined[i : i + length] for i in range(0, len(joined), length)]
        return [part.partition(b"\0")[0].decode("latin-1") for part in parts]

    def _leaf(
        self, stream: _Stream, end: int, flags: int, field: str, dims: tuple[int, ...]
    ) -> None:
        """Check that numbers or text take the bytes that their dimensions ask for."""
        kind = flags & 0xFF
        plain = (kind == _CHAR or kind in _NUMERIC) and not flags & _COMPLEX_FLAG
        self._require(plain, field, f"is of MATLAB class {kind}", "real numbers or text")
        stored, n_bytes, _ = self._tag(stream)
        if n_bytes > end - stream.tell():
            raise _TruncatedError
        # SciPy looks types up in a table without asking whether they are in it, and crashes.
        known = _TEXT_TYPES if kind == _CHAR else _BYTES_OF_TYPE
        self._require(stored in known, field, f"is stored as type {stored}", f"{sorted(known)}")
        if kind != _CHAR:
            asked = prod(dims) * _BYTES_OF_TYPE[stored]
            found = f"has {n_bytes} bytes for {'×'.join(map(str, dims))} values"
            self._require(n_bytes == asked, field, found, f"{asked} bytes")

    def _dims(self, stream: _Stream, field: str) -> tuple[int, ...]:
        """Read the dimensions of an array."""
        stored = self._short(stream, field)
        dims = self._unpack(f"{len(stored) // 4}i", stored[: len(stored) // 4 * 4])
        self._require(
            len(dims) >= 2 and min(dims) >= 0, field, f"has dimensions {dims}", "two or more"
        )
        return dims

    def _check_size(self, field: str, dims: tuple[int, ...]) -> None:
        """Refuse an array if it and those before it hold more values than allowed."""
        self._n_elements += prod(dims)
        self._require(
            self._n_elements <= self._most,
            field,
            f"says that it is {'×'.join(map(str, dims))}",
            f"at most {self._most} values in a file",
        )

    def _short(self, stream: _Stream, field: str) -> bytes:
        """Read a short element: dimensions, or names."""
        _, n_bytes, padding = self._tag(stream)
        self._require(
            n_bytes <= _MAX_NAME_BYTES,
            field or "a variable",
            f"has a name or dimensions of {n_bytes} bytes",
            f"at most {_MAX_NAME_BYTES}",
        )
        found = stream.read(n_bytes)
        stream.read(padding)
        return found

    def _tag(self, stream: _Stream) -> tuple[int, int, int]:
        """Read a tag: the type of what follows, its bytes, and how many fill up behind it."""
        (first,) = self._unpack("I", stream.read(4))
        if first >> 16:  # up to four bytes share the eight bytes of the tag
            n_bytes = min(first >> 16, 4)
            return first & 0xFFFF, n_bytes, 4 - n_bytes
        (n_bytes,) = self._unpack("I", stream.read(4))
        return first, n_bytes, -n_bytes % 8

    def _unpack(self, form: str, stored: bytes) -> tuple[int, ...]:
        """Unpack whole numbers in the byte order of the file."""
        return struct.unpack(self._order + form, stored)

    def _require(self, fact: bool, field: str, found: str, expected: str) -> None:
        """Raise the error of a damaged file unless a fact holds."""
        if not fact:
            raise self._refusal(self._path, field or "a variable", found, expected)
