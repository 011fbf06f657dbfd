"""Values as JSON: what JSON has not is an object with the name of its kind under "@".

Arrays are kept apart, by name; the JSON refers to them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from numpy.typing import NDArray

from pyfastr.persistence.errors import UnstorableError, damaged
from pyfastr.persistence.strict_json import MAX_DIGITS

Array = NDArray[Any]

TAG = "@"
# What labels and objects may take in memory together, as they may claim more than the file holds.
MAX_CLAIM = 64 * 2**20
# Reckoned for an object whatever its size: a pipeline has some twenty, and 256 take little time.
OBJECT_CLAIM = MAX_CLAIM // 256


@dataclass(frozen=True)
class Kind:
    """How values of one kind become the fields of a tagged object, and come back.

    Attributes
    ----------
    tag : str
    matches : callable
        Whether a value is of this kind.
    fields : tuple of str
        What the object has beside its tag, no more and no less.
    encode : callable
        Of the encoder, the value and its path; gives the fields.
    decode : callable
        Of the decoder and the fields; gives the value or refuses.
    claim : int
        Bytes to reckon for each value, so that a small file cannot make many that are costly.
    """

    tag: str
    matches: Callable[[Any], bool]
    fields: tuple[str, ...]
    encode: Callable[["Encoder", Any, str], dict[str, Any]]
    decode: Callable[["Decoder", dict[str, Any]], Any]
    claim: int = 0


class Encoder:
    """Turns values into JSON and collects their arrays, each once."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.tensors: dict[str, Array] = {}
        self.unrestored: dict[str, str] = {}
        self._kinds = list(kinds)
        # The arrays are kept, so that no other can take their identity.
        self._known: dict[int, tuple[Array, str]] = {}

    def encode(self, value: Any, path: str) -> Any:
        """Return the JSON of a value that is found under this path."""
        if value is None or type(value) in (bool, str) or _is_finite(value):
            return value
        if type(value) is int:
            return _short(value)
        if type(value) is list:
            return [self.encode(item, f"{path}.{i}") for i, item in enumerate(value)]
        if type(value) is dict and all(type(key) is str and key != TAG for key in value):
            return {key: self.encode(item, f"{path}.{key}") for key, item in value.items()}
        for kind in self._kinds:
            if kind.matches(value):
                return {TAG: kind.tag, **kind.encode(self, value, path)}
        raise UnstorableError(f"{path} is of type {type(value).__name__}")

    def attempt(self, value: Any, path: str) -> Any:
        """Return the JSON of a value, or leave no trace of it and raise."""
        tensors, known = dict(self.tensors), dict(self._known)
        try:
            return self.encode(value, path)
        except UnstorableError:
            self.tensors, self._known = tensors, known
            raise

    def reference(self, array: Array, path: str) -> str:
        """Keep an array and return its name; one that is known keeps the name it has."""
        if id(array) in self._known:
            return self._known[id(array)][1]
        # Names with dots may lead to one path twice.
        name = path if path not in self.tensors else f"{path} ({len(self.tensors)})"
        self._known[id(array)] = array, name
        self.tensors[name] = array
        return name


class Decoder:
    """Turns JSON into values again, and refuses what no encoder has made."""

    def __init__(self, kinds: Iterable[Kind], tensors: dict[str, Array]) -> None:
        self.shared: dict[Any, Any] = {}
        self._kinds = {kind.tag: kind for kind in kinds}
        self._tensors = tensors
        self._used: set[str] = set()
        self._left = MAX_CLAIM

    def decode(self, node: Any) -> Any:
        """Return the value of a piece of JSON."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        if TAG not in node:
            return {key: self.decode(item) for key, item in node.items()}
        kind = self._kinds.get(node[TAG]) if isinstance(node[TAG], str) else None
        if kind is None or set(node) != {TAG, *kind.fields}:
            raise damaged(f"its document has an unknown kind of value, {node[TAG]!r:.60}")
        self.spend(kind.claim)
        return kind.decode(self, node)

    def tensor(self, name: Any) -> Array:
        """Return the array of this name."""
        if not isinstance(name, str) or name not in self._tensors:
            raise damaged(f"its document names an array {name!r:.60} that is not there")
        self._used.add(name)
        return self._tensors[name]

    def spend(self, n_bytes: int) -> None:
        """Refuse to take more memory than labels and objects ever need."""
        self._left -= n_bytes
        if self._left < 0:
            raise damaged(f"its labels and objects claim more than {MAX_CLAIM:,} bytes")

    def check_all_used(self) -> None:
        """Refuse arrays that no value refers to."""
        spare = sorted(set(self._tensors) - self._used)
        if spare:
            raise damaged(f"nothing refers to its array {spare[0]!r}")


def expect(value: Any, kind: type | tuple[type, ...], what: str) -> Any:
    """Return a value of this very type, or refuse it."""
    if type(value) not in (kind if isinstance(kind, tuple) else (kind,)):
        raise damaged(f"{what} is of type {type(value).__name__}")
    return value


def _is_finite(value: Any) -> bool:
    return type(value) is float and isfinite(value)


def _short(value: int) -> int:
    if len(str(abs(value))) > MAX_DIGITS - 1:
        raise UnstorableError(f"a whole number of more than {MAX_DIGITS - 1} digits")
    return value
