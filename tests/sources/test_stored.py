"""Samples in files: the same blocks as in memory, read chunk by chunk, each once a pass."""

import gc
import multiprocessing
import os
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr
from numpy.testing import assert_array_equal

from pyfastr import config_context
from pyfastr.config import MemoryBudget
from pyfastr.sources import (
    ArraySource,
    KeptSource,
    ScaledSource,
    Source,
    StoredSource,
    ThinnedSource,
    as_source,
    is_in_memory,
    is_stored,
    largest_entry,
    some_samples,
    thin,
)
from pyfastr.sources.ahead import ReadAhead
from pyfastr.sources.mapped import mapped_reader
from pyfastr.sources.stored import block_limit

KINDS = [
    *["memmap", "hdf5", "contiguous hdf5", "gzip hdf5", "zarr 2", "zarr 3", "sharded zarr"],
    *["npy files", "nii files", "nii.gz files"],
]
# In small parts: 2 MB of samples are several blocks, and most of them do not stay.
SMALL = "16MB"


@pytest.fixture(name="X")
def tensors():
    return np.random.default_rng(0).normal(size=(250, 12, 10, 8))


def blocks_of(source):
    return np.concatenate([source.read(rows) for rows in source.slices])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, ">f4"])
def test_blocks_are_those_of_the_array(X, store, kind, dtype):
    X = (100 * X).astype(dtype)
    with config_context(memory_budget=SMALL):
        source, expected = as_source(store(X, kind)), ArraySource(X)
    assert isinstance(source, Source)
    assert source.shape == X.shape
    # Images of few bits become float32, which has all their digits.
    short = kind.startswith("nii") and dtype == np.int16
    assert source.dtype == (np.float32 if short else expected.dtype)
    assert source.dtype.isnative
    for _ in range(2):
        assert_array_equal(blocks_of(source), X)
    for rows in source.slices:
        block = source.read(rows)
        assert block.flags.c_contiguous
        assert not block.flags.writeable or is_in_memory(source)
    assert_array_equal(source.read(slice(3, 101)), X[3:101])
    assert_array_equal(source.read(slice(0, len(X))), X)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_keep_to_the_budget_and_to_chunks(X, store, kind):
    with config_context(memory_budget=SMALL):
        source = as_source(store(X, kind))
    assert isinstance(source, StoredSource)
    assert not source.advice
    edges = [0, *(rows.stop for rows in source.slices)]
    assert [rows.start for rows in source.slices] == edges[:-1]
    assert edges[-1] == len(X)
    chunk = 7 if "zarr" in kind or kind in ("hdf5", "gzip hdf5") else 1
    assert all(edge % chunk == 0 for edge in edges[:-1])
    limit = block_limit(MemoryBudget(16_000_000))
    assert max(rows.stop - rows.start for rows in source.slices) * X[0].nbytes <= limit


def test_small_maps_are_read_in_place_and_large_ones_from_their_file(X, store):
    mapped = store(X, "memmap")
    assert isinstance(as_source(mapped), ArraySource)
    with config_context(memory_budget=SMALL):
        for view in (mapped, np.asarray(mapped), mapped[1:], mapped[20:240, ...]):
            source = as_source(view)
            assert isinstance(source, StoredSource)
            assert_array_equal(blocks_of(source), view)
        for other in (mapped[:, ::2], mapped[::-1], mapped.transpose(0, 2, 1, 3), mapped[:5]):
            assert isinstance(as_source(other), ArraySource)


def test_what_the_file_does_not_have_is_read_from_memory(X, tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    private = np.load(path, mmap_mode="c")
    private[3] = 7.0
    mapped = np.load(path, mmap_mode="r")
    # Another file takes the name: the map still has the old one.
    np.save(tmp_path / "other.npy", X + 1)
    (tmp_path / "other.npy").rename(path)
    with config_context(memory_budget=SMALL):
        assert_array_equal(blocks_of(as_source(private)), private)
        assert_array_equal(blocks_of(as_source(mapped)), X)
        path.unlink()
        assert_array_equal(blocks_of(as_source(mapped)), X)


def test_chunks_that_are_too_large_are_told(X, store):
    with config_context(memory_budget=SMALL):
        source = as_source(store(X, "hdf5", chunk=200))
    assert "chunks of 200 samples, 1.5 MB" in source.advice
    assert "every pass reads each chunk 3 times" in source.advice
    assert_array_equal(blocks_of(source), X)
    assert max(rows.stop - rows.start for rows in source.slices) <= 67


def test_every_pass_reads_what_does_not_stay_once(X, counting):
    dataset = counting(X, 5)
    with config_context(memory_budget=SMALL):
        source = as_source(dataset)
    blocks_of(source)
    assert dataset.n_read == len(X)
    assert len(dataset.reads) == len(source.slices)
    blocks_of(source)
    again = dataset.n_read - len(X)
    # A tenth of the budget is 1.6 of 1.9 MB, in whole blocks.
    assert 0 < again < 0.5 * len(X)
    blocks_of(source)
    assert dataset.n_read == len(X) + 2 * again


def test_what_is_small_beside_the_budget_is_read_once(X, counting):
    dataset = counting(X, 5)
    source = as_source(dataset)
    for _ in range(3):
        assert_array_equal(blocks_of(source), X)
    assert dataset.n_read == len(X)


def test_blocks_in_use_are_never_overwritten(X, counting):
    with config_context(memory_budget=SMALL):
        source = as_source(counting(X, 1))
    held = [source.read(rows) for rows in source.slices]
    part = source.read(source.slices[-1])[:1]
    for _ in range(3):
        blocks_of(source)
    assert_array_equal(np.concatenate(held), X)
    assert_array_equal(part, X[source.slices[-1]][:1])


def test_memory_of_blocks_is_used_again(X, counting):
    with config_context(memory_budget=SMALL):
        source = as_source(counting(np.repeat(X, 4, axis=0), 1))
    addresses = [source.read(rows).ctypes.data for _ in range(3) for rows in source.slices]
    assert len(set(addresses)) < len(addresses) / 2


def test_threads_may_read_side_by_side_and_out_of_order(X, counting):
    with config_context(memory_budget=SMALL):
        source = as_source(counting(X, 1))
    order = np.random.default_rng(1).permutation(len(source.slices)).tolist() * 5
    with ThreadPoolExecutor(4) as pool:
        blocks = pool.map(lambda i: (i, source.read(source.slices[i])), order)
        for i, block in blocks:
            assert_array_equal(block, X[source.slices[i]])


def test_an_error_of_a_block_that_is_read_ahead_is_raised_for_that_block(X, counting):
    class Damaged(counting):
        def __getitem__(self, rows):
            if rows.start <= 150 < rows.stop:
                raise RuntimeError("a bad sector")
            return super().__getitem__(rows)

    with config_context(memory_budget=SMALL):
        source = as_source(Damaged(X, 5))
    bad = next(rows for rows in source.slices if rows.start <= 150 < rows.stop)
    for rows in source.slices:
        if rows != bad:
            assert_array_equal(source.read(rows), X[rows])
    for _ in range(2):
        with pytest.raises(OSError, match=f"samples {bad.start} to {bad.stop - 1}: a bad sector"):
            source.read(bad)


def test_blocks_at_hand_need_no_reader_and_the_first_that_is_not_starts_reading_ahead():
    slices = [slice(i, i + 1) for i in range(8)]
    loaded, looked_for = [], []

    def load(rows):
        loaded.append(rows.start)
        return np.array([rows.start])

    def at_hand(rows):
        looked_for.append(rows.start)
        return None if rows.start == 4 else np.array([rows.start])

    blocks = ReadAhead(load, slices, room=0, at_hand=at_hand)
    assert [int(blocks.read(i)[0]) for i in range(8)] == list(range(8))
    assert looked_for == [0, 1, 2, 3, 4]
    assert loaded == [4, 5, 6, 7]
    # The next pass looks again.
    assert int(blocks.read(0)[0]) == 0
    assert loaded == [4, 5, 6, 7]


def test_what_is_read_from_the_systems_cache_is_what_the_file_has(X, store, tmp_path):
    reader = mapped_reader(store(X, "memmap"), MemoryBudget(16_000_000))
    out = np.zeros((30, *X.shape[1:]))
    if reader.read_cached(out, slice(20, 50)):
        assert_array_equal(out, X[20:50])
    # Nothing is there beyond the end of a file.
    os.truncate(tmp_path / "X.npy", 5000)
    assert not reader.read_cached(out, slice(20, 50))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_reads_on(X, store):
    with config_context(memory_budget=SMALL):
        source = as_source(store(X, "memmap"))
    source.read(source.slices[0])
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(float(blocks_of(source).sum())))
    child.start()
    assert receiver.poll(30)
    assert receiver.recv() == X.sum()
    child.join()


def test_sources_are_indexed_like_arrays_without_reading_more(X, counting):
    dataset = counting(X, 5)
    with config_context(memory_budget=SMALL):
        source = as_source(dataset)
    mask = np.zeros(len(X), bool)
    mask[[3, 77]] = True
    keys = (5, slice(3, 9), [8, 2, 8], mask, (slice(2, 4), 3), (4, ..., 1), (..., 2), np.int64(-1))
    for key in keys[:4]:
        assert_array_equal(source[key], X[key])
    assert dataset.n_read < 130
    for key in keys:
        assert_array_equal(source[key], X[key])
    assert len(source) == len(X)
    assert source.ndim == 4
    assert_array_equal(np.asarray(source), X)
    assert np.asarray(source, dtype=np.float32).dtype == np.float32


def test_some_samples_are_read_when_they_are_wanted(X, counting):
    dataset = counting(X, 5)
    with config_context(memory_budget=SMALL):
        source = as_source(dataset)
    which = np.arange(0, len(X), 3)
    lazy = some_samples(source, which)
    assert isinstance(lazy, ThinnedSource)
    assert not dataset.reads
    assert_array_equal(np.asarray(lazy), X[which])
    assert_array_equal(some_samples(source, which[::-1]), X[which[::-1]])
    assert_array_equal(some_samples(source, np.array([4, 4, 1])), X[[4, 4, 1]])


def test_a_subset_that_a_search_works_on_stays_in_memory(X, counting):
    dataset = counting(X, 5)
    with config_context(memory_budget=SMALL):
        source = as_source(dataset)
    which = np.arange(0, len(X), 10)
    subset = thin(source, which, room=10**6)
    assert isinstance(subset, KeptSource)
    assert_array_equal(blocks_of(subset), X[which])
    before = dataset.n_read
    assert_array_equal(blocks_of(subset), X[which])
    assert dataset.n_read == before
    assert isinstance(thin(ArraySource(X), which, room=10**6), ThinnedSource)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_nan_and_infinity_are_named_with_sample_and_file(X, store, kind, bad):
    X[177, 3, 0, 1] = bad
    with config_context(memory_budget=SMALL):
        source = as_source(store(X, kind))
    file = {"memmap": "X.npy"}.get(kind, "/inner/X of .*X.h5")
    file = "X.zarr" if "zarr" in kind else file
    file = f"sample0177.{kind.removesuffix(' files')}" if kind.endswith("files") else file
    name = "NaN" if np.isnan(bad) else "infinity"
    expected = rf"contains {name}: first at sample 177 \(.*{file}\), element \(3, 0, 1\)"
    with pytest.raises(ValueError, match=expected):
        largest_entry(source)
    with pytest.raises(ValueError, match=rf"first at sample 77 \(.*{file}\)"):
        largest_entry(ThinnedSource(source, np.arange(100, 250)))
    with pytest.raises(ValueError, match=rf"first at sample 177 \(.*{file}\)"):
        largest_entry(ScaledSource(source, np.ones(X.shape[1:]), None))


def test_what_is_no_file_is_not_taken_for_one(X):
    assert not any(is_stored(other) for other in (X, X.tolist(), X[0], [], ["a"], [["x.npy"]], "X"))
    import pandas as pd
    import xarray as xr

    frames = (xr.DataArray(X), pd.DataFrame(X[:, 0, 0]))
    assert not any(is_stored(other) for other in frames)


def test_a_truncated_map_is_named_and_does_not_kill_python(X, tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    with config_context(memory_budget=SMALL):
        source = as_source(mapped)
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)
        with pytest.raises(OSError, match=r"memory map of .*X.npy, which is truncated: it has \d+"):
            largest_entry(source)
        with pytest.raises(OSError, match=rf"expected {X.nbytes + 128} for shape"):
            as_source(mapped)
    # The same within the budget, where the map itself would be read.
    with pytest.raises(OSError, match="which is truncated"):
        as_source(mapped)


def test_a_truncated_hdf5_file_is_named(X, tmp_path):
    path = tmp_path / "X.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(5, *X.shape[1:]))
    # Opened without its lock, so that it can be cut while it is open.
    with h5py.File(path, "r", locking=False) as file:
        with config_context(memory_budget=SMALL):
            source = as_source(file["X"])
        with path.open("r+b") as other:
            other.truncate(path.stat().st_size // 2)
        expected = r"X cannot be read from dataset /X of .*X.h5, samples .* it has \d+ of \d+ bytes"
        with pytest.raises(OSError, match=expected):
            largest_entry(source)


def test_a_closed_hdf5_file_is_told(X, tmp_path):
    path = tmp_path / "X.h5"
    with h5py.File(path, "w") as file:
        file["X"] = X
    with h5py.File(path) as file, config_context(memory_budget=SMALL):
        closed = file["X"]
        source = as_source(closed)
    message = "X is an HDF5 dataset whose file is closed; expected an open file"
    with pytest.raises(ValueError, match=message):
        as_source(closed)
    with pytest.raises(ValueError, match=message):
        largest_entry(source)


@pytest.mark.parametrize("kind", ["zarr 2", "zarr 3", "sharded zarr"])
def test_samples_without_any_chunk_are_named(X, store, kind, tmp_path):
    store(X, kind)
    for path in chunks_of(tmp_path / "X.zarr", row=3):
        path.unlink()
    first, last = (42, 55) if kind == "sharded zarr" else (21, 27)
    expected = rf"X lacks samples: .*X.zarr has no chunk of samples {first} to {last} \(.*to be 0.0"
    with pytest.raises(OSError, match=expected):
        as_source(zarr.open_array(tmp_path / "X.zarr", mode="r"))


@pytest.mark.parametrize("kind", ["zarr 2", "zarr 3"])
def test_a_part_that_only_some_samples_lack_is_told_of(X, store, kind, tmp_path):
    assert not as_source(store(X, kind)).advice
    chunks_of(tmp_path / "X.zarr", row=3)[1].unlink()
    source = as_source(zarr.open_array(tmp_path / "X.zarr", mode="r"))
    assert "X.zarr has no chunk for a part of samples 21 to 27 (" in source.advice
    assert "1 such chunks are missing" in source.advice


def test_a_background_that_no_sample_has_written_is_no_loss(X, store):
    X[..., :4] = 0
    assert not as_source(store(X, "zarr 3")).advice


def chunks_of(folder, row):
    """Files of a row of chunks of a Zarr array of format 2 or 3."""
    return sorted([*folder.glob(f"{row}.*"), *folder.glob(f"c/{row}/*/*/*")])


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (lambda p: p.unlink(), FileNotFoundError, r"no sample 42: there is no file .*sample0042"),
        (
            lambda p: np.save(p, np.zeros((12, 10))),
            ValueError,
            r"sample0042.npy of shape \(12, 10\) .* shape \(12, 10, 8\) .* as in .*sample0000.npy",
        ),
        (
            lambda p: np.save(p, np.zeros((12, 10, 8), complex)),
            ValueError,
            "of shape .* and dtype complex128; expected shape",
        ),
        (lambda p: p.write_bytes(p.read_bytes()[:500]), OSError, "sample 42 in .* cannot be read"),
        (lambda p: p.write_bytes(b""), OSError, "sample 42 in .* cannot be read"),
        (lambda p: p.write_text("no array"), OSError, "sample 42 in .* cannot be read"),
    ],
)
def test_a_file_that_does_not_fit_is_named(X, store, tmp_path, damage, error, message):
    paths = store(X, "npy files")
    damage(tmp_path / "sample0042.npy")
    with config_context(memory_budget=SMALL), pytest.raises(error, match=message):
        largest_entry(as_source(paths))


@pytest.mark.parametrize("paths", [["a.npy", "b.csv"], ["b.csv", "a.nii"], ["a.npy", "b.nii.gz"]])
def test_a_list_of_files_of_several_kinds_is_refused(paths):
    first, second = paths
    with pytest.raises(ValueError, match=f"of several kinds, '{first}' and '{second}' among them"):
        as_source(paths)


@pytest.mark.parametrize("path", ["X.npy", Path("bold.nii.gz"), "T1.NII"])
def test_a_file_that_is_no_list_is_refused_with_a_way_out(path):
    with pytest.raises(ValueError, match=f"X is the file '{path}'; expected a list of files"):
        as_source(path)


def test_what_stays_is_freed_with_the_source(X, counting):
    source = as_source(counting(X, 5))
    blocks_of(source)
    block = weakref.ref(source.read(source.slices[0]))
    gc.disable()
    try:
        del source
        assert block() is None
    finally:
        gc.enable()
