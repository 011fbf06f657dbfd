"""Ways to damage files of any kind, and to forge model files, at random."""

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Rng = np.random.Generator

# What a hostile hand may put in place of any value.
HOSTILE: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**62, 10**38, 1e308, -1e308, "", "nan", "x" * 5000, [], {}, [[]]),
    *([0] * 2000, {"@": "float", "value": "nan"}, {"@": "array", "tensor": "none"}, {"@": []}),
    *({"@": "tuple", "items": [1, [2]]}, {"@": "dict", "items": [[[], 1]]}, {"@": "os.system"}),
    {"@": "texts", "width": 2**40, "shape": [1], "items": ["a"]},
    {"@": "texts", "width": None, "shape": [10**38] * 2000, "items": []},
    {"@": "scalar", "dtype": "uint8", "value": 300},
    [{"@": "record", "class": "Starts", "fields": {}}] * 500,
    json.loads("[" * 100 + "]" * 100),
    {"@": "type", "name": "object"},
    {"@": "record", "class": "Starts", "fields": {}},
    {"@": "estimator", "class": "Pipeline", "params": {}, "fitted": {}, "output": None},
    {"@": "estimator", "class": "TensorScaler", "params": {}, "fitted": {}, "output": "pandas"},
)

# What models say of numbers that their type cannot hold.
BEYOND = ("contains infinity", "than float32 can hold")

# Sizes, offsets and types that are none.
NUMBERS = (0, 1, 2, 3, 7, 14, 15, 16, 127, 128, 255, 2**15, 2**16 - 1, 2**24, 2**31 - 1, -1, -2)


def mutate(corpus: list[bytes], rng: Rng) -> bytes:
    """Return one of the files, damaged or forged in one of many ways."""
    way = WAYS[rng.integers(len(WAYS))]
    return way(corpus[rng.integers(len(corpus))], corpus, rng)


def flip_bits(file: bytes, corpus: list[bytes], rng: Rng) -> bytes:
    changed = bytearray(file)
    for place in rng.integers(len(file), size=rng.integers(1, 9)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def truncate(file: bytes, corpus: list[bytes], rng: Rng) -> bytes:
    return file[: rng.integers(len(file))]


def splice(file: bytes, corpus: list[bytes], rng: Rng) -> bytes:
    other = corpus[rng.integers(len(corpus))]
    return file[: rng.integers(len(file))] + other[rng.integers(len(other)) :]


def overwrite(file: bytes, corpus: list[bytes], rng: Rng) -> bytes:
    begin, length = int(rng.integers(len(file))), int(rng.integers(1, 200))
    filler = (rng.bytes(length), b"\0" * length, b"\xff" * length, b"[" * length)
    return file[:begin] + filler[rng.integers(4)] + file[begin + length :]


def forge_number(file: bytes, corpus: list[bytes], rng: Rng) -> bytes:
    """Put a telling number where a size, a type or a place may stand."""
    width = int(rng.choice([1, 2, 4, 8]))
    number = int(rng.choice(NUMBERS)) % (1 << 8 * width)
    begin = int(rng.integers(max(len(file) - width, 1)))
    forged = number.to_bytes(width, str(rng.choice(["little", "big"])))
    return file[:begin] + forged + file[begin + width :]


def claim_length(file: bytes, corpus: list[bytes], rng: Rng) -> bytes:
    length = int(rng.choice([0, 1, 8, len(file), len(file) - 8, 2**24, 2**31, 2**60, 2**63 - 1]))
    return length.to_bytes(8, "little") + file[8:]


def forge_document(file: bytes, corpus: list[bytes], rng: Rng) -> bytes:
    document, entries, data = take_apart(file)
    for _ in range(rng.integers(1, 4)):
        replace_somewhere(document, rng)
    return put_together(document, entries, data)


def forge_entries(file: bytes, corpus: list[bytes], rng: Rng) -> bytes:
    document, entries, data = take_apart(file)
    replace_somewhere(entries, rng)
    return put_together(document, entries, data)


def forge_data(file: bytes, corpus: list[bytes], rng: Rng) -> bytes:
    document, entries, data = take_apart(file)
    begin = int(rng.integers(max(len(data) - 8, 1)))
    nan = np.array([np.nan, np.inf, -1.0, 1e300, 0.0])[rng.integers(5)].tobytes()
    begin -= begin % 8
    return put_together(document, entries, (data[:begin] + nan + data[begin + 8 :])[: len(data)])


WAYS: tuple[Callable[[bytes, list[bytes], Rng], bytes], ...] = (
    *(flip_bits, truncate, splice, overwrite, claim_length),
    *(forge_document, forge_document, forge_document, forge_entries, forge_data),
)


DAMAGES = (flip_bits, truncate, splice, overwrite, forge_number, forge_number)


def damage(corpus: list[bytes], rng: Rng) -> bytes:
    """Return one of several files of any kind, with damage."""
    way = DAMAGES[rng.integers(len(DAMAGES))]
    return way(corpus[rng.integers(len(corpus))], corpus, rng)


def take_apart(file: bytes) -> tuple[Any, Any, bytes]:
    """Return document, entries and data of a sound file."""
    length = int.from_bytes(file[:8], "little")
    entries = json.loads(file[8 : 8 + length])
    document = json.loads(entries.pop("__metadata__")["pyfastr"])
    return document, entries, file[8 + length :]


def put_together(document: Any, entries: Any, data: bytes) -> bytes:
    """Return a file whose checksum is right, if entries are in the order of their data."""
    text = json.dumps(document, separators=(",", ":"))
    claims = [[name, entry] for name, entry in entries.items()]
    digest = hashlib.sha256(json.dumps([text, claims], separators=(",", ":")).encode())
    digest.update(data)
    metadata = {"pyfastr": text, "sha256": digest.hexdigest()}
    header = json.dumps({"__metadata__": metadata} | entries, separators=(",", ":")).encode()
    return len(header).to_bytes(8, "little") + header + data


def replace_somewhere(tree: Any, rng: Rng) -> None:
    """Replace, drop, rename or exchange one value of a tree."""
    places = list(_places(tree))
    parent, key = places[rng.integers(len(places))]
    what = rng.integers(6)
    if what == 0:
        del parent[key]
    elif what == 1 and isinstance(parent, dict):
        parent[f"{key}x"] = parent.pop(key)
    elif what == 2:
        other, place = places[rng.integers(len(places))]
        parent[key] = json.loads(json.dumps(other[place]))
    elif what == 3 and isinstance(parent[key], int | float):
        parent[key] = parent[key] * int(rng.integers(-2, 4)) + int(rng.integers(-1, 2))
    else:
        parent[key] = json.loads(json.dumps(HOSTILE[rng.integers(len(HOSTILE))]))


def _places(tree: Any) -> Any:
    """Yield every value of a tree as its parent and its key."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(pairs):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def ask(model: Any) -> None:
    """Let a model answer about samples of the shape that it claims: it must not fail."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    first = model.steps[0][1] if hasattr(model, "steps") else model
    linear = getattr(last, "estimator_", last)
    covariates = getattr(linear, "covariate_coef_", None)
    given: dict[str, Any] = (
        {} if covariates is None else {"covariates": np.zeros((2, len(covariates)))}
    )
    transformer = getattr(first, "transformer_", first)
    if hasattr(transformer, "mask_img_"):
        X: Any = [_blank(transformer.mask_img_)] * 2
    else:
        X = np.zeros((2, *first.tensor_shape_in_))
    # Names of columns that zeros lack are no failure, nor are forged numbers beyond float32.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            (model.predict if hasattr(model, "predict") else model.transform)(X, **given)
        except ValueError as error:
            if not any(said in str(error) for said in BEYOND):
                raise


def _blank(mask: Any) -> Any:
    """Return an image of zeros on the grid of a mask."""
    return type(mask)(np.zeros(mask.shape, np.float32), mask.affine)


def written(path: Path, content: bytes) -> Path:
    """Write a file, and return where it is."""
    path.write_bytes(content)
    return path
