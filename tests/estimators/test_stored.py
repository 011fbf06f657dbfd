"""Fits to samples in files: the answer, the reads and the errors of samples in memory."""

import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    SliceSelector,
    TensorScaler,
    config_context,
    fastr_path,
)
from pyfastr.baselines import ElementaryRidge, PublishedFasTR
from pyfastr.config import MemoryBudget
from pyfastr.inference import (
    bootstrap_factors,
    permutation_test,
    slice_importance,
    stability_selection,
)
from pyfastr.sources import ArraySource, StoredSource, as_source
from pyfastr.sources.stored import block_limit

KINDS = ["memmap", "hdf5", "contiguous hdf5", "zarr 2", "zarr 3", "npy files", "nii files"]
SMALL = "16MB"
QUICK = {"n_init": 2, "random_state": 0}


@pytest.fixture(name="data")
def several_blocks(draw):
    """2 MB of samples: several blocks in the small budget, more than stays of them."""
    X, y, _ = draw((12, 10, 8), n_samples=250)
    return X, y


def fit_all(X, y, weights, covariates):
    """Results of everything that takes X, by name."""
    labels = y > np.median(y)
    regressor = FasTRRegressor(threshold=0.05, **QUICK)
    regressor.fit(X, y, sample_weight=weights, covariates=covariates)
    several = FasTRRegressor(n_terms=2, ridge=1e-3, **QUICK).fit(X, y)
    classifier = FasTRClassifier(**QUICK).fit(X, labels)
    return {
        "coef": regressor.coef_,
        "intercept": regressor.intercept_,
        "covariates": regressor.covariate_coef_,
        "prediction": regressor.predict(X, covariates),
        "score": regressor.score(X, y, covariates=covariates),
        "fingerprint": regressor.fingerprint_,
        "terms": several.coef_,
        "simultaneous": FasTRRegressor(sweep="simultaneous", ridge=0.1, **QUICK).fit(X, y).coef_,
        "decision": classifier.decision_function(X),
        "probability": classifier.predict_proba(X),
        "logistic": FasTRClassifier(loss="logistic", ridge=0.1, **QUICK).fit(X, labels).coef_,
        "scaled mean": TensorScaler(per=0).fit(X, sample_weight=weights).mean_,
        "scaled": np.asarray(TensorScaler().fit_transform(X)),
    }


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, str):
            assert found[name] == value
        else:
            assert_allclose(found[name], value, rtol=1e-8, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_storage_gives_the_answer_of_memory(data, store, kind):
    X, y = data
    rng = np.random.default_rng(1)
    weights, covariates = rng.uniform(0.5, 2, len(y)), rng.normal(size=(len(y), 2))
    with config_context(memory_budget=SMALL):
        stored = store(X, kind)
        assert isinstance(as_source(stored), StoredSource)
        found = fit_all(stored, y, weights, covariates)
        expected = fit_all(X, y, weights, covariates)
    assert_same(found, expected)


def choose_all(X, y):
    """Results of what fits many times."""
    labels = y > np.median(y)
    grid = {"thresholds": [0.0, 0.1], "ridges": [1e-3], "cv": 3, "random_state": 0}
    regressor = FasTRRegressorCV(**grid).fit(X, y)
    classifier = FasTRClassifierCV(**grid).fit(X, labels)
    one = FasTRRegressor(threshold=0.1, **QUICK)
    test = permutation_test(one, X, y, n_permutations=4, cv=3, random_state=0)
    return {
        "coef": regressor.coef_,
        "scores": regressor.cv_results_["mean_test_score"],
        "held out": regressor.held_out_.prediction,
        "prediction": regressor.predict(X),
        "decision": classifier.decision_function(X),
        "calibration": classifier.best_estimator_.calibration_,
        "path": fastr_path(X, y, thresholds=[0.0, 0.1], random_state=0).coef(1),
        "permuted": test.permutation_scores,
        "p value": test.p_value,
    }


def test_choice_and_inference_give_the_answer_of_memory(draw, store):
    X, y, _ = draw((12, 9, 8), n_samples=240)
    with config_context(memory_budget=SMALL):
        expected = choose_all(X, y)
        for kind in ("memmap", "hdf5", "nii files"):
            assert_same(choose_all(store(X, kind), y), expected)


def test_the_budget_changes_no_answer(data, store):
    X, y = data
    with config_context(memory_budget=SMALL):
        stored = FasTRRegressor(**QUICK).fit(store(X, "hdf5"), y)
    assert_allclose(stored.coef_, FasTRRegressor(**QUICK).fit(X, y).coef_, atol=1e-8)


@pytest.mark.parametrize("kind", ["hdf5", "npy files"])
@pytest.mark.parametrize("shape", [(800,), (30, 30)])
def test_vectors_and_matrices_give_the_answer_of_memory(draw, store, kind, shape):
    X, y, _ = draw(shape, n_samples=400)
    with config_context(memory_budget=SMALL):
        found = FasTRRegressor(ridge=0.1, **QUICK).fit(store(X, kind), y)
        expected = FasTRRegressor(ridge=0.1, **QUICK).fit(X, y)
    assert_allclose(found.coef_, expected.coef_, rtol=1e-8, atol=1e-8)


def test_other_inference_gives_the_answer_of_memory(draw, store):
    X, y, _ = draw((6, 5), n_samples=80)
    stored = store(X, "zarr 3")
    model = make_pipeline(TensorScaler(), FasTRRegressor(threshold=0.1, **QUICK))
    found, expected = (
        {
            "stable": stability_selection(model, Z, y, n_subsamples=6, random_state=0).frequencies[
                0
            ],
            "bootstrap": bootstrap_factors(
                FasTRRegressor(**QUICK), Z, y, n_bootstrap=5, random_state=0
            ).samples[0],
            "importance": slice_importance(
                model.fit(Z, y), Z, y, n_repeats=2, random_state=0
            ).importances[0],
            "permutation": permutation_test(
                model, Z, y, n_permutations=5, cv=3, random_state=0
            ).permutation_scores,
        }
        for Z in (stored, X)
    )
    assert_same(found, expected)


def test_a_pipeline_scales_as_blocks_are_read(data, store):
    X, y = data
    model = make_pipeline(TensorScaler(), FasTRRegressor(**QUICK))
    with config_context(memory_budget=SMALL):
        stored = store(X, "hdf5")
        found = model.fit(stored, y).predict(stored)
        scaled = model[:-1].transform(stored)
        assert not isinstance(scaled, np.ndarray)
        assert_allclose(np.asarray(scaled[:9]), model[:-1].transform(X)[:9], rtol=1e-12)
        expected = model.fit(X, y).predict(X)
    assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


class NothingStays(MemoryBudget):
    """The parts of a budget, but for blocks that stay: every read is one of the file."""

    stored = 0


class CountingReader:
    """A file that counts the samples that are read."""

    chunk, advice = 1, ""

    def __init__(self, X):
        self._X, self.n_read = X, 0
        self.shape, self.dtype = X.shape, X.dtype

    def read_into(self, out, rows):
        self.n_read += rows.stop - rows.start
        out[...] = self._X[rows]

    def place(self, sample):
        return f"row {sample}"


class CountingArray(ArraySource):
    """An array that does, and is treated like a file."""

    in_memory, n_read = False, 0

    def read(self, rows):
        self.n_read += rows.stop - rows.start
        return super().read(rows)


def n_passes(model, X, y):
    """Return how often a fit reads X from its file."""
    reader = CountingReader(X)
    model.fit(StoredSource(reader, NothingStays(16_000_000)), y)
    return reader.n_read / len(X)


def test_each_sweep_reads_as_much_as_in_memory(data):
    X, y = data
    stored = CountingReader(X)
    source = StoredSource(stored, NothingStays(16_000_000))
    array = CountingArray(X, block_bytes=block_limit(MemoryBudget(16_000_000)))
    assert array.slices == source.slices
    with config_context(memory_budget=SMALL):
        a = FasTRRegressor(**QUICK).fit(array, y)
        b = FasTRRegressor(**QUICK).fit(source, y)
    assert a.n_iter_ == b.n_iter_
    assert stored.n_read == array.n_read > 5 * len(X)


def test_a_choice_among_250_fits_reads_about_as_often_as_one(draw):
    X, y, _ = draw((10, 8, 6), n_samples=200)
    ridges, thresholds = np.geomspace(1e-4, 1, 5), np.linspace(0, 0.4, 10)
    grid = {"ridges": ridges, "thresholds": thresholds, "cv": 5, "n_terms": 1, "random_state": 0}
    chosen = n_passes(FasTRRegressorCV(**grid), X, y)
    corners = [FasTRRegressor(t, r, random_state=0) for t in (0.0, 0.4) for r in (1e-4, 1.0)]
    singles = [n_passes(model, X, y) for model in corners]
    assert chosen < 3 * max(singles)


def test_nothing_reads_all_samples_at_once(data, counting):
    X, y = data
    dataset = counting(X, 5)
    seen = []

    def scorer(estimator, held_out, target):
        seen.append(held_out)
        return -mean_squared_error(target, estimator.predict(held_out))

    grid = {"thresholds": [0.0, 0.1], "ridges": [1e-3], "cv": KFold(3), "random_state": 0}
    with config_context(memory_budget=SMALL):
        model = FasTRRegressorCV(scoring=scorer, **grid).fit(dataset, y)
        model.predict(dataset)
    assert max(rows.stop - rows.start for rows in dataset.reads) < 100
    assert not any(isinstance(held_out, np.ndarray) for held_out in seen)
    assert_array_equal(np.asarray(seen[0]), X[:84])
    with config_context(memory_budget=SMALL):
        expected = FasTRRegressorCV(scoring=scorer, **grid).fit(X, y)
    assert_allclose(
        model.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-8
    )


def test_scikit_learn_splits_stored_samples(data, store):
    X, y = data
    model = FasTRRegressor(**QUICK)
    expected = cross_val_score(model, X, y, cv=KFold(3))
    for kind in ("hdf5", "npy files"):
        assert_allclose(cross_val_score(model, store(X, kind), y, cv=KFold(3)), expected)


def test_slices_are_cropped_as_blocks_are_read(data, store):
    X, y = data
    selector = SliceSelector(FasTRRegressor(threshold=0.3, **QUICK))
    with config_context(memory_budget=SMALL):
        stored = store(X, "zarr 3")
        found = selector.fit(stored, y).transform(stored)
    assert_array_equal(found, selector.transform(X))


def test_baselines_take_stored_samples(draw, store):
    X, y, _ = draw((5, 4))
    stored = store(X, "hdf5")
    for model in (ElementaryRidge(), PublishedFasTR(random_state=0)):
        assert_allclose(model.fit(stored, y).predict(stored), model.fit(X, y).predict(X))


def test_a_source_is_taken_as_x(data):
    X, y = data
    model = FasTRRegressor(**QUICK).fit(ArraySource(X), y)
    assert_array_equal(model.coef_, FasTRRegressor(**QUICK).fit(X, y).coef_)
    assert_array_equal(model.predict(ArraySource(X[:3])), model.predict(X[:3]))


def test_large_chunks_are_warned_of_at_the_users_line(data, store):
    X, y = data
    with (
        config_context(memory_budget=SMALL),
        pytest.warns(UserWarning, match="every pass reads each chunk 4 times") as told,
    ):
        FasTRRegressor(**QUICK).fit(store(X, "hdf5", chunk=250), y)
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: f.create_dataset("X", data=np.zeros(9)), r"X has shape \(9,\); expected \(n_"),
        (lambda f: f.create_dataset("X", data=3.0), "X is one number, dataset /X of .*X.h5"),
        (lambda f: f.create_dataset("X", data=np.zeros((0, 3, 2))), "0 sample.*minimum of 2"),
        (lambda f: f.create_dataset("X", data=np.zeros((1, 3, 2))), "1 sample.*minimum of 2"),
        (lambda f: f.create_dataset("X", data=np.zeros((9, 3), complex)), "complex128; expected"),
        (lambda f: f.create_dataset("X", data=np.array([[b"a"]] * 9)), "S1; expected real"),
        (lambda f: f.create_dataset("X", data=np.zeros((9, 0, 2))), "a mode of size 0"),
        (
            lambda f: f.create_dataset("X", data=np.zeros((8, 3, 2))),
            r"y has \d+ values, but X has 8 samples",
        ),
    ],
)
def test_stored_arrays_that_cannot_be_fitted_are_refused(tmp_path, make, message):
    with h5py.File(tmp_path / "X.h5", "w") as file:
        X = make(file)
        for model in (FasTRRegressor(), FasTRClassifier()):
            with pytest.raises(ValueError, match=message):
                model.fit(X, np.arange(9) % 2)


@pytest.mark.parametrize("dtype", [complex, "U3"])
def test_files_without_real_numbers_are_refused(store, dtype):
    paths = store(np.zeros((9, 3, 2), dtype), "npy files")
    with pytest.raises(ValueError, match=r"X has dtype .*; expected real numbers"):
        FasTRRegressor().fit(paths, np.arange(9))


def test_predict_compares_shapes_and_finds_nan_in_its_only_pass(data, store, counting):
    X, y = data
    model = FasTRRegressor(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match=r"samples of shape \(12, 10, 4\), but FasTRRegressor"):
        model.predict(store(X[..., :4], "hdf5"))
    X[99, 0, 0, 0] = np.nan
    dataset = counting(X, 10)
    with pytest.raises(ValueError, match=r"contains NaN: first at sample 99 \(CountingDataset\)"):
        model.predict(dataset)
    assert dataset.n_read <= len(X)


MEMORY = """
    import sys
    import numpy as np
    import pyfastr
    from pathlib import Path

    def status(field):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))

    rng = np.random.default_rng(0)
    small = pyfastr.FasTRRegressor(n_init=2, random_state=0)
    small.fit(rng.normal(size=(60, 6, 5, 4)), rng.normal(size=60))
    X, y = np.load(sys.argv[1], mmap_mode="r"), np.load(sys.argv[2])
    before = status("VmRSS")
    with pyfastr.config_context(memory_budget="20MB"):
        model = pyfastr.FasTRRegressor(n_init=4, random_state=0).fit(X, y)
        model.predict(X)
    print(status("VmHWM") - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_keeps_to_the_budget_and_not_to_the_file(tmp_path):
    rng = np.random.default_rng(0)
    shape, n_samples = (40, 32, 20), 2000
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (n_samples, *shape))
    y = np.empty(n_samples)
    for i in range(0, n_samples, 100):
        block = rng.standard_normal((100, *shape), np.float32)
        X[i : i + 100], y[i : i + 100] = block, block[:, :9, :9, :9].sum(axis=(1, 2, 3))
    assert X.nbytes > 200e6
    np.save(tmp_path / "y.npy", y)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEMORY), tmp_path / "X.npy", tmp_path / "y.npy"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) < 2.5 * 20e6
