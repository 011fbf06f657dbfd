"""Values of all kinds as JSON and back."""

import re
from pathlib import Path

import numpy as np
import pytest

from pyfastr.persistence import strict_json
from pyfastr.persistence.codec import Decoder, Encoder
from pyfastr.persistence.errors import RefusedError, UnstorableError
from pyfastr.persistence.values import VALUES


def shown(value):
    """The beginning of a value, the same in every process: tests are told apart by it.

    It has no backslash, for which pytest does not find a test by its name.
    """
    return re.sub(r" at 0x[0-9A-Fa-f]+|[\\\n]", "", ascii(value))[:30]


@pytest.fixture(name="there_and_back")
def through_text():
    def go(value):
        encoder = Encoder(VALUES)
        text = strict_json.dumps(encoder.encode(value, "value"))
        decoder = Decoder(VALUES, encoder.tensors)
        found = decoder.decode(strict_json.loads(text))
        decoder.check_all_used()
        return found

    return go


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 0, -(10**38), "", "ü \ud800 \"'\\", -0.0, 5e-324, 1.7976931348623157e308),
        *(0.1, float("inf"), float("-inf"), float("nan"), [], [1, [2, [3]]], (), (1, (2,))),
        *({}, {"a": 1, "@": 2}, {1: 2, "1": 3, 2.5: ()}, {True: 1, None: 2}),
        *(np.float32(0.1), np.float64("nan"), np.int8(-3), np.uint64(2**64 - 1), np.bool_(True)),
        *(np.str_("a"), np.float16(0.1), {np.int64(3): 1.0}),
        *(np.dtype(np.float32), np.float64, Path("a") / "b"),
        *(np.array(3.5), np.empty((0, 3)), np.arange(6, dtype=np.uint16).reshape(2, 3)),
        *(np.array([True, False]), np.array([np.nan, -0.0, np.inf], np.float16)),
        *(np.array(["a", "long"]), np.array(["a", ""], "<U9"), np.array([["a", 1, None]], object)),
        np.array([], dtype="<U3"),
        np.array(["2026-01-01", "NaT"], "M8[ns]"),
        np.array([[1, 2]], "m8[25s]"),
        np.ma.MaskedArray([1.0, 2.0], mask=[True, False]),
        np.random.RandomState(7),
    ],
    ids=lambda value: f"{type(value).__name__}-{shown(value)}",
)
def test_values_come_back_as_they_were(there_and_back, same, value):
    assert same(there_and_back(value), value)


def test_a_random_state_goes_on_where_it_was(there_and_back):
    state = np.random.RandomState(3)
    state.normal(size=3)
    np.testing.assert_array_equal(there_and_back(state).normal(size=5), state.normal(size=5))


def test_arrays_of_any_layout_come_back_in_order(there_and_back):
    array = np.arange(24.0).reshape(2, 3, 4)
    for view in (array.T, array[:, ::-2], array.astype(">f8"), np.asfortranarray(array)):
        np.testing.assert_array_equal(there_and_back(view), view)


def test_one_array_in_two_places_is_kept_once(there_and_back):
    array = np.arange(3.0)
    first, second = there_and_back([array, array])
    assert first is second


def test_two_arrays_of_one_name_are_both_kept(there_and_back):
    first, second = np.arange(3.0), np.arange(4.0)
    found = there_and_back({"a": {"b": first}, "a.b": second})
    np.testing.assert_array_equal(found["a"]["b"], first)
    np.testing.assert_array_equal(found["a.b"], second)


@pytest.mark.parametrize(
    "value",
    [
        *(object(), len, 1j, b"bytes", {1, 2}, 10**60, np.array([1j]), np.complex64(1)),
        *(np.array([object()]), {(1, 2): 3}, np.array([b"a"]), np.random.default_rng(0), list),
        np.random.RandomState(np.random.PCG64(0)),
        np.array([(1,)], dtype=[("a", int)]),
    ],
    ids=shown,
)
def test_values_without_a_place_are_told(value):
    with pytest.raises(UnstorableError):
        Encoder(VALUES).encode({"deep": [value]}, "value")


@pytest.mark.parametrize(
    "node",
    [
        *({"@": "float", "value": "1.5"}, {"@": "float"}, {"@": "float", "value": "nan", "x": 1}),
        *({"@": "unknown"}, {"@": 3}, {"@": ["tuple"]}, {"@": "tuple", "items": {}}),
        *({"@": "dict", "items": [[1]]}, {"@": "dict", "items": [[[], 1]]}, {"@": None}),
        {"@": "scalar", "dtype": "uint8", "value": 300},
        {"@": "scalar", "dtype": "float32", "value": 1e300},
        {"@": "scalar", "dtype": "float32", "value": True},
        {"@": "scalar", "dtype": "object", "value": 1},
        {"@": "array", "tensor": "missing"},
        {"@": "array", "tensor": []},
        {"@": "texts", "width": 2**40, "shape": [1], "items": ["a"]},
        {"@": "texts", "width": 1, "shape": [1], "items": ["abc"]},
        {"@": "texts", "width": -1, "shape": [0], "items": []},
        {"@": "texts", "width": None, "shape": [2], "items": ["a"]},
        {"@": "texts", "width": None, "shape": [1], "items": [[1]]},
        {"@": "texts", "width": None, "shape": [10**38] * 100_000, "items": []},
        {"@": "type", "name": "object"},
        {"@": "dtype", "name": []},
        {"@": "path", "value": 3},
        {"@": "times", "dtype": "M8[ns]", "counts": 3},
        {"@": "times", "dtype": "O", "counts": {"@": "array", "tensor": "whole"}},
        {"@": "masked", "data": 1, "mask": 2},
        {
            "@": "masked",
            "data": {"@": "array", "tensor": "whole"},
            "mask": {"@": "array", "tensor": "whole"},
        },
        {"@": "random_state", "state": [{"@": "array", "tensor": "key"}, 10**6, 0, 0.0]},
        {"@": "random_state", "state": [{"@": "array", "tensor": "key"}, 0, 5, 0.0]},
        {"@": "random_state", "state": [{"@": "array", "tensor": "whole"}, 0, 0, 0.0]},
        {"@": "random_state", "state": []},
    ],
    ids=lambda node: f"{node!r:.50}",
)
def test_nodes_that_nobody_wrote_are_refused(node):
    tensors = {"whole": np.arange(3), "key": np.zeros(624, np.uint32)}
    with pytest.raises(RefusedError):
        Decoder(VALUES, tensors).decode([node])


def test_many_short_labels_cannot_claim_much_memory():
    node = {"@": "texts", "width": 2**20, "shape": [1], "items": ["a"]}
    with pytest.raises(RefusedError, match="labels and objects claim"):
        Decoder(VALUES, {}).decode([node] * 1000)


def test_many_objects_cannot_take_much_time():
    node = {"@": "random_state", "state": [{"@": "array", "tensor": "key"}, 0, 0, 0.0]}
    with pytest.raises(RefusedError, match="labels and objects claim"):
        Decoder(VALUES, {"key": np.zeros(624, np.uint32)}).decode([node] * 300)


@pytest.mark.parametrize(
    "text",
    [
        *("NaN", "[Infinity]", "1e999", "-1e999", "1" * 5000, '{"a":1,"a":2}', "[1,]", "", "{"),
        *("[" * 100_000, '{"a":' * 100_000, "[" + "0," * 500_000 + "0]"),
    ],
    ids=lambda text: f"{text:.12}-{len(text)}",
)
def test_json_beyond_its_standard_or_all_measure_is_refused(text):
    with pytest.raises(RefusedError):
        strict_json.loads(text)


@pytest.mark.parametrize("opened", ["[", '{"a":'])
def test_deep_documents_are_refused(opened):
    closed = {"[": "]"}.get(opened, "}")
    assert strict_json.loads(opened * 59 + "1" + closed * 59)
    with pytest.raises(RefusedError, match="nested"):
        strict_json.loads(opened * 200 + "1" + closed * 200)
