"""In which modes samples are symmetric, found out in the pass over X that looks for NaN."""

import numpy as np
import pytest

from pyfastr.sources import ArraySource, DeviceSource, StoredSource, as_source, look_over
from pyfastr.sources.symmetry import TOLERANCE, equal_modes, first_asymmetry, symmetric_in

PAIRS = ((0, 1),)


def draw(n_samples=40, shape=(5, 5), dtype=np.float64):
    X = np.random.default_rng(0).normal(size=(n_samples, *shape))
    return (X + X.swapaxes(1, 2)).astype(dtype)


@pytest.mark.parametrize(
    ("shape", "pairs"),
    [
        ((5,), ()),
        ((4, 5), ()),
        ((5, 5), ((0, 1),)),
        ((1, 1, 3), ()),
        ((4, 3, 4), ((0, 2),)),
        ((3, 3, 3), ((0, 1), (0, 2), (1, 2))),
    ],
)
def test_modes_of_one_size_are_worth_a_look(shape, pairs):
    assert equal_modes(shape) == pairs


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("block_bytes", [1 << 20, 500])
def test_symmetric_samples_are_recognised(dtype, block_bytes):
    X = draw(dtype=dtype)
    source = ArraySource(X, block_bytes=block_bytes)
    assert look_over(source, PAIRS) == (np.abs(X).max(), PAIRS)
    assert look_over(source, ()) == (np.abs(X).max(), ())


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64])
def test_whole_numbers_are_symmetric_exactly_or_not_at_all(dtype):
    X = (draw() > 0).astype(dtype)
    assert symmetric_in(X, PAIRS) == PAIRS
    X[17, 1, 3] = 1 - X[17, 1, 3]
    assert symmetric_in(X, PAIRS) == ()


@pytest.mark.parametrize("sample", [0, 1, 17, 39])
@pytest.mark.parametrize("block_bytes", [1 << 20, 500])
def test_one_entry_is_enough_to_differ(sample, block_bytes):
    X = draw()
    X[sample, 1, 3] += 0.01
    assert look_over(ArraySource(X, block_bytes=block_bytes), PAIRS)[1] == ()
    assert first_asymmetry(X, PAIRS[0]) == (sample, 1, 3)


def test_entries_may_differ_by_rounding_of_float32():
    X = draw()
    X = X * (1 + 1e-7 * np.random.default_rng(1).normal(size=X.shape))
    assert look_over(ArraySource(X), PAIRS)[1] == PAIRS
    assert first_asymmetry(X, PAIRS[0]) is None


@pytest.mark.parametrize(("share", "left"), [(0.9, PAIRS), (1.1, ())])
def test_the_tolerance_is_relative_to_the_range_of_the_sample(share, left):
    X = 1000 + draw() * np.arange(1, 41)[:, None, None]
    X[30, 2, 0] = X[30, 0, 2] + share * TOLERANCE * np.ptp(X[30])
    assert symmetric_in(X, PAIRS) == left


def test_of_several_pairs_those_are_left_that_hold():
    X = np.random.default_rng(0).normal(size=(30, 4, 4, 4))
    X = X + X.transpose(0, 3, 2, 1)
    assert look_over(ArraySource(X, block_bytes=600), equal_modes((4, 4, 4)))[1] == ((0, 2),)


def test_no_block_is_compared_after_the_first_that_differs():
    seen = []

    class Watched:
        def __init__(self, X):
            self.X, self.shape, self.ndim = X, X.shape, X.ndim

        def __getitem__(self, key):
            seen.append(key[0])
            return self.X[key]

    X = np.random.default_rng(0).normal(size=(50, 5, 5))
    assert symmetric_in(Watched(X), PAIRS) == ()
    assert seen == [slice(0, 1)]


def test_arrays_of_other_libraries_are_compared_on_their_device(library):
    X = draw()
    assert look_over(DeviceSource(library.array(X), block_bytes=500), PAIRS)[1] == PAIRS
    X[-1, 0, 1] += 1
    assert look_over(DeviceSource(library.array(X), block_bytes=500), PAIRS)[1] == ()


def test_files_are_compared_as_they_are_read(tmp_path):
    X = draw()
    for number, sample in enumerate(X):
        np.save(tmp_path / f"{number:02d}.npy", sample)
    source = as_source([str(path) for path in sorted(tmp_path.iterdir())])
    assert isinstance(source, StoredSource)
    assert look_over(source, PAIRS)[1] == PAIRS


def test_dask_arrays_are_compared_chunk_by_chunk():
    da = pytest.importorskip("dask.array")
    X = draw()
    assert look_over(as_source(da.from_array(X, chunks=(7, 5, 5))), PAIRS)[1] == PAIRS
    X[-1, 0, 1] += 1
    assert look_over(as_source(da.from_array(X, chunks=(7, 5, 5))), PAIRS)[1] == ()
