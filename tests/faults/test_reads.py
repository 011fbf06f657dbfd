"""Samples that cannot be read: the file is named, and estimators and threads are as before."""

import sys
import tokenize
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from pyfastr import FasTRRegressor, SliceSelector, TensorScaler
from pyfastr.baselines import GLTRM, SURF, ElementaryRidge, OrTRR, PublishedFasTR, VectorizedLasso
from pyfastr.cli.arrays import read_array
from pyfastr.cli.errors import InputError
from pyfastr.cli.places import Place
from pyfastr.datasets import make_tensor_regression
from pyfastr.sources import as_source
from pyfastr.sources.mapped import MappedReader


@pytest.mark.parametrize("name", ["regressor", "two terms", "logistic", "choice", "scaler"])
def test_a_file_that_is_damaged_meanwhile(benchmarks, tmp_path, name):
    assert benchmarks.faults.break_a_read(name, tmp_path, np.random.default_rng(0)) == []


# Seeded where starts are drawn: all fits of an estimator then read equally often.
OTHERS = [
    *(TensorScaler(), SliceSelector(FasTRRegressor(ridge=0.1, random_state=0))),
    *(model(random_state=0) for model in (GLTRM, OrTRR, PublishedFasTR)),
    *(ElementaryRidge(), SURF(), VectorizedLasso()),
]


@pytest.mark.parametrize("estimator", OTHERS, ids=lambda own: type(own).__name__)
def test_any_fit_that_fails_changes_nothing(benchmarks, estimator):
    def fail():
        raise OSError("the disk is gone")

    X, y = make_tensor_regression(40, (4, 3), noise=0.1, random_state=0)
    other = np.concatenate([X, X], axis=1)
    model = clone(estimator).fit(X, y)
    before = dict(vars(model))
    n_reads = benchmarks.faults.Counting(other)
    clone(estimator).fit(n_reads, y)
    for at in {1, n_reads.n_reads}:
        with pytest.raises(OSError, match="the disk is gone"):
            model.fit(benchmarks.faults.Counting(other, at, fail), y)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is before[name] for name in before)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file that fails to be read")
def test_an_error_of_the_disk_names_map_and_samples():
    # The first page of a process is never there.
    reader = MappedReader(np.zeros((5, 3)), Path("/proc/self/mem"), 0)
    with pytest.raises(OSError, match=r"memory map of /proc/self/mem, .* samples 2 to 3: .*Input"):
        reader.read_into(np.empty((2, 3)), slice(2, 4))


def test_a_header_that_numpy_fails_on_names_the_file(tmp_path):
    paths = [tmp_path / f"{number}.npy" for number in range(2)]
    for path in paths:
        np.save(path, np.zeros((4, 3)))
    content = paths[1].read_bytes()
    paths[1].write_bytes(content.replace(b"(4, 3)", b"(4, 3 "))
    source = as_source(paths)
    with pytest.raises(OSError, match=r"sample 1 in .*1\.npy, which cannot be read: .*EOF") as told:
        source.read(source.slices[-1])
    if sys.version_info < (3, 12):
        assert isinstance(told.value.__cause__, tokenize.TokenError)


def test_a_store_with_chunks_of_no_size_is_refused(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "X.zarr", shape=(6, 4), chunks=(2, 4), dtype="f4")[...] = 1
    described = tmp_path / "X.zarr" / "zarr.json"
    text = described.read_text().replace(" ", "").replace("\n", "")
    assert '"chunk_shape":[2,4]' in text
    described.write_text(text.replace('"chunk_shape":[2,4]', '"chunk_shape":[0,4]'))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = zarr.open_array(tmp_path / "X.zarr", mode="r")
    if X.chunks == (1, 4):
        pytest.skip("newer Zarr warns and takes chunks of one")
    with pytest.raises(OSError, match=r"X\.zarr says that its chunks are \(0, 4\)"):
        as_source(X)


def test_a_matlab_file_is_followed_before_scipy_believes_it(tmp_path):
    from scipy.io import savemat

    path = tmp_path / "X.mat"
    savemat(path, {"X": np.arange(12.0).reshape(4, 3), "other": np.zeros((2, 2))})
    np.testing.assert_array_equal(
        read_array(Place(path, "X"), "DATA"), np.arange(12.0).reshape(4, 3)
    )
    content = path.read_bytes()
    rows = (4).to_bytes(4, "little") + (3).to_bytes(4, "little")
    path.write_bytes(content.replace(rows, (2**30).to_bytes(4, "little") + rows[4:], 1))
    with pytest.raises(InputError, match=r"X\.mat cannot be read: X says that it is 1073741824×3"):
        read_array(Place(path, "X"), "DATA")
    np.testing.assert_array_equal(read_array(Place(path, "other"), "DATA"), np.zeros((2, 2)))


def test_an_old_matlab_file_that_claims_too_much_is_refused(tmp_path):
    from scipy.io import savemat

    path = tmp_path / "X.mat"
    savemat(path, {"X": np.arange(12.0).reshape(4, 3)}, format="4")
    np.testing.assert_array_equal(read_array(Place(path), "DATA"), np.arange(12.0).reshape(4, 3))
    content = path.read_bytes()
    path.write_bytes(content[:16] + (2**31 - 1).to_bytes(4, "little") + content[20:])
    with pytest.raises(InputError, match=r"X\.mat"):
        read_array(Place(path), "DATA")
