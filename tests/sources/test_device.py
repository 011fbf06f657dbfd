"""Arrays of other libraries: what they are, their way to the host and back, and their blocks."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pyfastr.sources import DeviceSource, Source, as_source, largest_entry
from pyfastr.sources.namespaces import (
    describe,
    is_beside,
    is_foreign,
    is_real,
    namespace_of,
    to_device,
    to_host,
)


def draw(shape=(30, 4, 5), dtype=np.float64):
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("own", [np.ones(3), np.float64(1), [1.0, 2.0], 3.0, None, "X.npy"])
def test_what_is_no_array_of_another_library(own):
    assert not is_foreign(own)
    assert to_host(own) is own


def test_arrays_go_to_the_device_and_come_back(library):
    X = draw()
    there = to_device(X, like=library.array(0.0))
    assert is_foreign(there)
    assert library.has(there)
    assert is_beside(there, library.array(1.0))
    assert not is_beside(there, X)
    assert to_device(there, like=there) is there
    assert_array_equal(to_host(there), X)
    assert_array_equal(to_device(there, like=X), X)
    assert describe(there).startswith(f"of {library.module.__name__} on ")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_the_type_stays_what_it_was(library, dtype):
    there = to_device(np.ones((2, 3), dtype), like=library.array(0.0))
    assert to_host(there).dtype == dtype


def test_memory_that_may_not_be_written_or_runs_backwards(library):
    X = draw()
    X.flags.writeable = False
    for given in (X, X[::-1], X.T):
        assert_array_equal(to_host(to_device(given, like=library.array(0.0))), given)


def test_numpy_needs_no_other_package():
    assert namespace_of(np.ones(2)) is np


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    with pytest.raises(ImportError, match=r"pip install 'pyfastr\[arrays\]'"):
        namespace_of(strict.ones(2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_are_on_the_device_and_cover_the_samples(library, dtype):
    X = draw(dtype=dtype)
    source = DeviceSource(library.array(X), block_bytes=X.nbytes // 7)
    assert isinstance(source, Source)
    assert (source.shape, source.dtype) == (X.shape, np.dtype(dtype))
    assert len(source.slices) > 4
    blocks = [source.block(rows) for rows in source.slices]
    assert all(library.has(block) for block in blocks)
    assert_array_equal(np.concatenate([to_host(block) for block in blocks]), X)
    assert_array_equal(np.concatenate([source.read(rows) for rows in source.slices]), X)
    assert_array_equal(np.asarray(source), X)
    assert_array_equal(source[[3, 1]], X[[3, 1]])


def test_blocks_of_torch_are_views():
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    X = torch.ones(10, 3, dtype=torch.float64)
    source = DeviceSource(X, block_bytes=60)
    first = source.slices[1].start
    assert source.block(source.slices[1]).data_ptr() == X[first:].data_ptr()


@pytest.mark.parametrize("dtype", [np.int16, np.uint8])
def test_integers_are_converted_a_block_at_a_time(library, dtype):
    X = np.arange(60).reshape(10, 6).astype(dtype)
    source = DeviceSource(library.array(X), block_bytes=100)
    assert source.dtype == np.float64
    assert to_host(source.block(slice(2, 5))).dtype == np.float64
    assert_array_equal(np.asarray(source), X)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision_is_converted_too(name):
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    X = torch.arange(12, dtype=getattr(torch, name)).reshape(4, 3)
    source = DeviceSource(X)
    assert source.dtype == np.float64
    assert_array_equal(np.asarray(source), np.arange(12.0).reshape(4, 3))


def test_complex_numbers_are_told_from_real_ones(library):
    assert is_real(library.array(draw()))
    assert is_real(library.array(np.arange(3)))
    assert not is_real(library.array(np.ones(3, complex)))


def test_the_largest_entry_is_found_on_the_device(library):
    X = draw()
    X[17, 2, 3] = -9
    source = as_source(library.array(X))
    assert isinstance(source, DeviceSource)
    source.read = lambda rows: pytest.fail("X was brought to the host")
    assert largest_entry(source) == 9


@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_what_is_not_finite_is_named(library, value, kind):
    X = draw()
    X[17, 2, 3] = value
    source = DeviceSource(library.array(X), block_bytes=X.nbytes // 4)
    with pytest.raises(ValueError, match=rf"X contains {kind}: first at sample 17, element \(2, 3"):
        largest_entry(source)
