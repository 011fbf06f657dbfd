"""Stored samples that cannot be fitted: `fit` says which file and samples, and leaves no traces."""

import gc
import threading

import h5py
import numpy as np
import pytest
import zarr
from numpy.testing import assert_array_equal

from pyfastr import FasTRClassifier, FasTRRegressor, FasTRRegressorCV, config_context
from pyfastr.config import MemoryBudget
from pyfastr.sources import StoredSource
from pyfastr.sources.chunked import ChunkedReader
from pyfastr.sources.files import reader_of_files
from pyfastr.sources.mapped import mapped_reader

SHAPE = (12, 10, 8)
SMALL = "16MB"
# Blocks of one sample, on any number of cores.
TINY = MemoryBudget(20_000)


@pytest.fixture(name="X")
def tensors():
    """2 MB of samples: several blocks in the small budget."""
    return np.random.default_rng(0).normal(size=(250, *SHAPE))


def refuse(X, error, match, model=None):
    """Check that a fit fails as expected and is nowhere to be seen afterwards."""
    model = FasTRRegressor(n_init=2, random_state=0) if model is None else model
    n_samples = len(X) if isinstance(X, list) else X.shape[0]
    before, attributes = set(threading.enumerate()), vars(model).copy()
    with config_context(memory_budget=SMALL), pytest.raises(error, match=match):
        model.fit(X, np.arange(n_samples) % 2)
    assert vars(model).keys() == attributes.keys()
    assert all(vars(model)[name] is value for name, value in attributes.items())
    del X
    gc.collect()
    readers = {t for t in threading.enumerate() if t.name.startswith("pyfastr-reader")} - before
    for thread in readers:
        thread.join(10)
    assert not any(thread.is_alive() for thread in readers)


def halve(path):
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


@pytest.mark.parametrize("model", [FasTRRegressor(), FasTRClassifier(), FasTRRegressorCV()])
@pytest.mark.parametrize("chunks", [None, (5, *SHAPE)], ids=["contiguous", "chunks"])
def test_an_hdf5_file_that_was_cut_short(X, tmp_path, model, chunks):
    path = tmp_path / "X.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=chunks)
    # Opened without its lock, so that it can be cut while it is open.
    with h5py.File(path, "r", locking=False) as file:
        halve(path)
        expected = r"X cannot be read from dataset /X of .*X.h5, samples .* it has \d+ of \d+ bytes"
        refuse(file["X"], OSError, expected, model)


@pytest.mark.parametrize("budget", [SMALL, "1GB"], ids=["beyond the budget", "within"])
def test_a_memory_map_whose_file_was_cut_short(X, tmp_path, budget):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    halve(tmp_path / "X.npy")
    with (
        config_context(memory_budget=budget),
        pytest.raises(OSError, match="which is truncated"),
    ):
        FasTRRegressor().fit(mapped, np.arange(len(X)))


def zarr_chunks(folder, row):
    """Files of a row of chunks of format 2 or 3."""
    return sorted([*folder.glob(f"{row}.*"), *folder.glob(f"c/{row}/*/*/*")])


@pytest.mark.parametrize("kind", ["zarr 2", "zarr 3"])
def test_zarr_without_the_chunks_of_some_samples(X, store, tmp_path, kind):
    store(X, kind)
    for path in zarr_chunks(tmp_path / "X.zarr", row=4):
        path.unlink()
    found = zarr.open_array(tmp_path / "X.zarr", mode="r")
    refuse(found, OSError, r"X lacks samples: .*X.zarr has no chunk of samples 28 to 34 \(")


@pytest.mark.parametrize("kind", ["zarr 2", "zarr 3"])
def test_zarr_with_a_chunk_that_was_cut_short(X, store, tmp_path, kind):
    found = store(X, kind)
    halve(zarr_chunks(tmp_path / "X.zarr", row=4)[0])
    refuse(found, OSError, r"X cannot be read from .*X.zarr, samples \d+ to \d+: .*damaged")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_missing_chunk_is_nan_where_the_array_says_so(X, tmp_path, zarr_format):
    options = {"chunks": (7, 12, 10, 4), "zarr_format": zarr_format, "fill_value": np.nan}
    array = zarr.create_array(tmp_path / "X.zarr", shape=X.shape, dtype=X.dtype, **options)
    array[...] = X
    zarr_chunks(tmp_path / "X.zarr", row=4)[1].unlink()
    with pytest.warns(UserWarning, match=r"no chunk for a part of samples 28 to 34 .* to be nan"):
        refuse(array, ValueError, r"NaN: first at sample 28 \(.*X.zarr\), element \(0, 0, 4\)")


@pytest.mark.parametrize("kind", ["zarr 2", "zarr 3"])
def test_a_fit_goes_on_with_zeros_for_a_chunk_but_warns(X, store, tmp_path, kind):
    store(X, kind)
    zarr_chunks(tmp_path / "X.zarr", row=4)[1].unlink()
    y, model = X[:, 0, 0, 0], FasTRRegressor(n_init=2, random_state=0)
    with pytest.warns(UserWarning, match="no chunk for a part of samples 28 to 34") as told:
        model.fit(zarr.open_array(tmp_path / "X.zarr", mode="r"), y)
    assert told[0].filename == __file__


@pytest.mark.parametrize("kind", ["npy files", "nii files", "nii.gz files"])
def test_a_file_of_another_shape_in_the_list(X, store, kind):
    paths = store(X, kind)
    store(X[:1, ..., :5], kind)
    expected = r"sample 1 in .*sample0001.* of shape \(12, 10, 8\).*expected shape \(12, 10, 5\)"
    refuse(paths, ValueError, expected)


@pytest.mark.parametrize("kind", ["memmap", "hdf5", "zarr 3", "npy files", "nii files"])
def test_nan_in_a_late_block_is_named_with_file_and_sample(store, kind):
    X = np.random.default_rng(0).normal(size=(720, 8, 8, 8))
    X[700, 1, 2, 3] = np.nan
    stored = store(X, kind, chunk=1)
    if kind.endswith("files"):
        reader = reader_of_files(stored)(stored)
    else:
        reader = mapped_reader(stored, TINY) if kind == "memmap" else ChunkedReader(stored)
    assert len(StoredSource(reader, TINY).slices) == 720
    name = {"npy files": "sample0700.npy", "nii files": "sample0700.nii"}.get(kind, r"X\.")
    expected = rf"NaN: first at sample 700 \(.*{name}.*\), element \(1, 2, 3\)"
    refuse(StoredSource(reader, TINY), ValueError, expected)


def test_a_fit_that_fails_leaves_the_model_of_the_last_one(X, store):
    y = X[:, 0, 0, 0]
    model = FasTRRegressor(n_init=2, random_state=0).fit(X, y)
    expected = model.predict(X)
    other = X[..., :5].copy()
    other[200, 0, 0, 0] = np.nan
    refuse(store(other, "hdf5"), ValueError, "first at sample 200", model)
    assert_array_equal(model.predict(X), expected)
