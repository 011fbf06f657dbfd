"""Dask arrays as blocks of samples: whole chunks, computed once or when they are wanted."""

import dask
import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pyfastr.config import MemoryBudget
from pyfastr.sources import Source, as_source
from pyfastr.sources.dask_array import LazySource, PersistedSource, computed, dask_source

AMPLE, SCANT = MemoryBudget(1_000_000_000), MemoryBudget(16_000_000)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def samples(n_samples, shape=(30, 20, 10)):
    return np.random.default_rng(0).normal(size=(n_samples, *shape))


@pytest.mark.parametrize(("budget", "kind"), [(AMPLE, PersistedSource), (SCANT, LazySource)])
@pytest.mark.parametrize("chunks", [(400,), (5, 0, 195, 50, 150), (1,) * 400])
def test_blocks_cover_the_samples_once_and_in_order(budget, kind, chunks):
    X = samples(400)
    source = dask_source(da.from_array(X, chunks=(chunks, 30, 20, 10)), budget)
    assert isinstance(source, Source)
    assert isinstance(source, kind)
    numbers = [i for rows in source.slices for i in range(400)[rows]]
    assert numbers == list(range(400))
    assert_array_equal(np.concatenate([source.read(rows) for rows in source.slices]), X)


@pytest.mark.parametrize("budget", [AMPLE, SCANT])
@pytest.mark.parametrize("rows", [slice(0, 1), slice(3, 260), slice(199, 201), slice(399, 400)])
def test_any_samples_can_be_read(budget, rows):
    X = samples(400)
    source = dask_source(da.from_array(X, chunks=(200, 30, 20, 10)), budget)
    assert_array_equal(source.read(rows), X[rows])
    assert_array_equal(source[rows], X[rows])


def test_blocks_of_what_stays_are_views_that_nobody_writes_to():
    source = dask_source(da.from_array(samples(400), chunks=(200, 30, 20, 10)), AMPLE)
    # A chunk of 9.6 MB makes two blocks.
    assert [rows.stop for rows in source.slices] == [100, 200, 300, 400]
    for rows in source.slices:
        block = source.read(rows)
        assert np.shares_memory(block, source.read(rows))
        assert not block.flags.writeable
        assert block.flags.c_contiguous


def test_blocks_are_contiguous_whatever_the_chunks_are():
    X = np.asfortranarray(samples(20))
    for budget in (AMPLE, MemoryBudget(1_000)):
        source = dask_source(da.from_array(X, chunks=(10, 30, 20, 10)), budget)
        assert all(source.read(rows).flags.c_contiguous for rows in source.slices)


def test_nothing_is_computed_before_the_first_read():
    def fail(chunk):
        raise AssertionError

    X = da.zeros((9, 2), chunks=(3, 2)).map_blocks(fail, dtype=float, meta=np.empty((0, 2)))
    assert as_source(X).shape == (9, 2)


def test_only_collections_of_dask_are_computed():
    plain = np.arange(3)
    assert computed(plain) is plain
    assert computed(None) is None
    assert_array_equal(computed(da.arange(3)), plain)
    assert computed(dask.delayed(7)) == 7
