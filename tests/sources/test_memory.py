"""Arrays as blocks of samples: views where the layout allows it, converted blocks otherwise."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pyfastr.sources import (
    ArraySource,
    RoundedSource,
    Source,
    ThinnedSource,
    as_source,
    largest_entry,
)


@pytest.fixture(name="X")
def tensors():
    return np.random.default_rng(0).normal(scale=3, size=(23, 4, 3, 2))


def blocks_of(source):
    return [source.read(rows) for rows in source.slices]


@pytest.mark.parametrize("n_samples", [0, 1, 2, 3, 7, 23, 100])
@pytest.mark.parametrize("block_bytes", [1, 200, 1000, 1 << 20])
def test_blocks_cover_the_samples_once_and_in_order(n_samples, block_bytes):
    X = np.arange(n_samples * 6.0).reshape(n_samples, 3, 2)
    source = ArraySource(X, block_bytes=block_bytes)
    assert [i for rows in source.slices for i in range(n_samples)[rows]] == list(range(n_samples))
    assert_array_equal(np.concatenate(blocks_of(source)), X)
    # A block is about as large as asked for, and never more than twice that beyond one sample.
    assert all(block.nbytes <= max(2 * block_bytes, 48) for block in blocks_of(source))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_of_plain_arrays_are_views(X, dtype):
    X = X.astype(dtype)
    source = ArraySource(X, block_bytes=500)
    assert len(source.slices) > 1
    assert source.dtype == dtype
    assert source.shape == X.shape
    assert all(np.shares_memory(block, X) for block in blocks_of(source))


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint16, np.int64, bool, ">f8", ">i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_other_types_and_layouts_become_contiguous_blocks_of_float64(X, dtype, order):
    X = np.asarray(np.abs(X), dtype=dtype, order=order)
    before = X.copy()
    source = ArraySource(X, block_bytes=500)
    assert source.dtype == np.float64
    for block in blocks_of(source):
        assert block.dtype == np.float64
        assert block.dtype.isnative
        assert block.flags.c_contiguous
        assert not np.shares_memory(block, X)
    assert_array_equal(np.concatenate(blocks_of(source)), X.astype(float))
    assert_array_equal(X, before)


@pytest.mark.parametrize(
    "convert",
    [
        np.asfortranarray,
        lambda X: X.astype(">f4"),
        lambda X: np.moveaxis(X, 0, -1).copy().transpose(3, 0, 1, 2),
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X[::-1][::-1],
        lambda X: np.flip(np.flip(X, 2).copy(), 2),
    ],
)
def test_float32_of_any_layout_stays_float32(X, convert):
    X = X.astype(np.float32)
    source = ArraySource(convert(X), block_bytes=500)
    assert source.dtype == np.float32
    assert all(b.flags.c_contiguous and b.dtype == np.float32 for b in blocks_of(source))
    assert_array_equal(np.concatenate(blocks_of(source)), X)


def test_read_only_maps_of_files_are_read_in_place(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    source = as_source(mapped)
    assert isinstance(source, Source)
    assert all(np.shares_memory(block, mapped) for block in blocks_of(source))
    assert_array_equal(np.concatenate(blocks_of(source)), X)


def test_sources_pass_and_lists_are_wrapped(X):
    source = ArraySource(X)
    assert as_source(source) is source
    assert_array_equal(np.concatenate(blocks_of(as_source(X.tolist()))), X)


def test_the_largest_entry_is_that_of_absolute_values(X):
    X[5, 1, 2, 0] = -77.0
    assert largest_entry(ArraySource(X, block_bytes=500)) == 77.0
    assert largest_entry(ArraySource(np.abs(X))) == 77.0
    assert largest_entry(ArraySource(np.zeros((3, 2)))) == 0.0
    assert largest_entry(ArraySource(np.array([[-128], [3]], np.int8))) == 128.0


@pytest.mark.parametrize(
    ("bad", "kind"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_the_first_entry_that_is_not_finite_is_named(X, bad, kind):
    X[17, 3, 0, 1] = X[17, 3, 2, 1] = bad
    with pytest.raises(
        ValueError,
        match=rf"Input X contains {kind}: first at sample 17, element \(3, 0, 1\), and 2 such",
    ):
        largest_entry(ArraySource(X, block_bytes=500))


def test_a_rounded_source_is_x_in_float32(X):
    source = ArraySource(X, block_bytes=500)
    rounded = RoundedSource(source)
    assert isinstance(rounded, Source)
    assert rounded.shape == X.shape
    assert rounded.slices == source.slices
    found = np.concatenate(blocks_of(rounded))
    assert found.dtype == rounded.dtype == np.float32
    assert_array_equal(found, X.astype(np.float32))


@pytest.mark.parametrize("which", [[0], [22], [3, 4, 5], [0, 7, 8, 15, 22], list(range(23))])
@pytest.mark.parametrize("block_bytes", [1, 500, 1 << 20])
def test_a_thinned_source_has_the_samples_that_were_asked_for(X, which, block_bytes):
    thinned = ThinnedSource(ArraySource(X, block_bytes=block_bytes), np.array(which))
    assert isinstance(thinned, Source)
    assert thinned.shape == (len(which), *X.shape[1:])
    assert thinned.dtype == X.dtype
    assert_array_equal(np.concatenate(blocks_of(thinned)), X[which])


def test_large_samples_are_thinned_without_copies(X, monkeypatch):
    monkeypatch.setattr("pyfastr.sources.thinned.LARGE_SAMPLE", X[0].nbytes)
    which = np.array([0, 1, 4, 8, 9, 10, 22])
    thinned = ThinnedSource(ArraySource(X), which)
    assert all(np.shares_memory(block, X) for block in blocks_of(thinned))
    assert_array_equal(np.concatenate(blocks_of(thinned)), X[which])
