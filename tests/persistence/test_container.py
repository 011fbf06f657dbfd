"""The format by itself: what is written comes back, and every refusal says what it has found."""

import json

import numpy as np
import pytest

from pyfastr.persistence import container, strict_json
from pyfastr.persistence.errors import RefusedError, UnstorableError

DOCUMENT = {"pyfastr": "{}"}
NO_HEADER = "it does not begin with a header of names and values"
LATE = "array 'a' does not begin where the one before it ends"
ENTRY = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}


@pytest.fixture(name="written")
def write_arrays(tmp_path):
    def write(tensors, document="{}"):
        path = tmp_path / "arrays.fastr"
        with path.open("wb") as file:
            container.write(file, tensors, document)
        return path

    return write


def read(path):
    with path.open("rb") as file:
        header = container.read_header(file)
        return header, container.read_tensors(file, header)


def test_arrays_of_any_order_of_bytes_and_axes_come_back(written):
    rng = np.random.default_rng(0)
    tensors = {
        "big": rng.normal(size=(3, 4)).astype(">f8"),
        "columns": np.asfortranarray(rng.integers(9, size=(2, 3, 4), dtype=np.int16)),
        "every_other": rng.normal(size=10).astype(np.float32)[::2],
        "axes": np.full((1,) * 32, 7.0),
        "mask": np.array([True, False]),
    }
    _, found = read(written(tensors))
    assert sorted(found) == sorted(tensors)
    for name, array in tensors.items():
        assert found[name].dtype == array.dtype.newbyteorder("<")
        np.testing.assert_array_equal(found[name], array)


def test_every_array_begins_at_a_multiple_of_its_width(written):
    """Programs that map a file into memory may need this, whatever the length of the header."""
    for length in range(9):
        tensors = {"a": np.ones(3, bool), "b" * (length + 1): np.ones(3), "c": np.ones(1, "f4")}
        header, _ = read(written(tensors, "x" * length))
        assert header.length % 8 == 0
        for entry in header.entries:
            assert entry.begin % container.DTYPES[entry.dtype].itemsize == 0


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.ones(2, complex), "an array of type complex128 with 1 axes"),
        (np.ones((1,) * 33), "an array of type float64 with 33 axes"),
    ],
    ids=["complex", "axes"],
)
def test_arrays_without_a_place_are_told(array, words):
    with pytest.raises(UnstorableError, match=words):
        container.dtype_name(array)


FOREIGN = (
    "it is not a pyfastr model file, or is damaged: ",
    ". Expected a file that pyfastr.save has written.",
)
DAMAGED = (
    "the file is damaged or forged: ",
    ". Take another copy of it, or fit and save the model again.",
)


def refused(path):
    """Return what a file is refused for, without what is said of all that are refused alike."""
    with pytest.raises(RefusedError) as caught:
        read(path)
    words = str(caught.value)
    before, after = FOREIGN if words.startswith(FOREIGN[0]) else DAMAGED
    assert words.startswith(before)
    assert words.endswith(after)
    return words[len(before) : -len(after)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"abc", "it has 3 bytes"),
        (bytes(8), NO_HEADER),
        (bytes([3]) + bytes(9), "its first bytes claim a header of 3 bytes in a file of 10"),
        ((2).to_bytes(8, "little") + b"[]", NO_HEADER),
        ((2).to_bytes(8, "little") + b"{\xfc", NO_HEADER),
        (
            (2).to_bytes(8, "little") + b"{}",
            "it is a safetensors file of another program, without pyfastr's document",
        ),
    ],
    ids=["empty", "short", "zeros", "length", "list", "no_ascii", "other"],
)
def test_what_is_no_model_file_is_told(tmp_path, content, words):
    path = tmp_path / "other"
    path.write_bytes(content)
    assert refused(path) == words


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (ENTRY | {"shape": [3]}, "array 'a' has a shape that does not fit its 16 bytes"),
        (ENTRY | {"data_offsets": [8, 24]}, LATE),
        (ENTRY | {"shape": [1] * 33}, "array 'a' has a shape that does not fit its 16 bytes"),
        (
            ENTRY | {"shape": [3], "data_offsets": [8, 16]},
            "array 'a' has a shape that does not fit its 8 bytes",
        ),
        (ENTRY | {"dtype": "C64"}, "array 'a' is of type 'C64'"),
        (ENTRY | {"shape": [-1]}, "shape or place of array 'a' are no whole numbers"),
        (
            ENTRY | {"shape": [0, 2**25], "data_offsets": [0, 0]},
            "array 'a' is empty but of shape (0, 33554432)",
        ),
        ({}, "its header has no type, shape and place of array 'a'"),
        (
            ENTRY | {"shape": [1], "data_offsets": [0, 8]},
            "it has 8 bytes that belong to no array",
        ),
        (
            ENTRY | {"shape": [3], "data_offsets": [0, 24]},
            "it is cut short: 8 bytes are missing at its end",
        ),
        (ENTRY, "its contents do not match its checksum"),
    ],
)
def test_what_is_wrong_with_an_array_is_told(raw_file, entry, words):
    path = raw_file({"__metadata__": DOCUMENT, "a": entry}, data=bytes(16))
    assert refused(path) == words


def test_an_array_of_32_axes_and_an_empty_one_of_long_axes_are_read(written):
    tensors = {"axes": np.ones((1,) * 32), "empty": np.empty((0, 2**24))}
    _, found = read(written(tensors))
    assert found["axes"].ndim == 32
    assert found["empty"].shape == (0, 2**24)


def test_booleans_beyond_one_are_told(written):
    for value in (2, 255):
        path = written({"mask": np.array([1, value], np.uint8).view(bool)})
        assert refused(path) == "array 'mask' of booleans has other values than 0 and 1"


def test_a_file_that_shrinks_while_it_is_read_is_told(written):
    path = written({"a": np.ones(100)})
    with path.open("r+b") as file:
        header = container.read_header(file)
        file.truncate(500)
        with pytest.raises(RefusedError, match=r": it became shorter while it was read\. Take"):
            container.read_tensors(file, header)


def test_what_no_file_can_hold_is_told_before_anything_is_written(tmp_path):
    path = tmp_path / "arrays.fastr"
    with path.open("wb") as file, pytest.raises(RefusedError) as caught:
        container.write(file, {}, "x" * (strict_json.MAX_BYTES + 1))
    told = "which is more than a model file can hold. Fit arrays without column names, or choose"
    assert told in str(caught.value)
    assert path.stat().st_size == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NaN", "its header has the number NaN"),
        ("[-Infinity]", "its header has the number -Infinity"),
        ("1e999", "its header has the number 1e999"),
        ("1" * 41, "its header has a number of 41 digits"),
        ('{"a":1,"a":2}', "its header has a name twice"),
        ("[1,]", "its header is no JSON ("),
        ("[" * 61 + "]" * 61, "its header is nested too deeply"),
        ("[" * 100_000, "its header is nested too deeply"),
        ("[" + "0," * 500_000 + "0]", "its header has more values than any model needs"),
    ],
    ids=lambda text: text[:30],
)
def test_what_is_wrong_with_a_header_is_told(text, words):
    with pytest.raises(RefusedError) as caught:
        strict_json.loads(text)
    assert str(caught.value).startswith(f"the file is damaged or forged: {words}")


def test_numbers_of_40_digits_and_lists_60_deep_are_read():
    assert strict_json.loads("1" * 40) == int("1" * 40)
    nested = "[" * 60 + "]" * 60
    assert json.dumps(strict_json.loads(nested)) == nested


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_never_written(number):
    with pytest.raises(ValueError, match="not JSON compliant"):
        strict_json.dumps([number])
