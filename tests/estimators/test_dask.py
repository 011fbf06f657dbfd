"""Fits to Dask arrays: the answer of samples in memory, chunks computed no more than needed."""

import logging
from threading import Lock
from weakref import finalize

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
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
from pyfastr.baselines import ElementaryRidge
from pyfastr.config import MemoryBudget, parse_bytes
from pyfastr.inference import (
    bootstrap_factors,
    permutation_test,
    slice_importance,
    stability_selection,
)
from pyfastr.sources.stored import block_limit

SMALL = "16MB"
QUICK = {"n_init": 2, "random_state": 0}
GRID = {"thresholds": [0.0, 0.1], "ridges": [1e-3], "cv": 3, "random_state": 0}
# Of 250 samples: as they come, uneven, with an empty one.
CHUNKS = (90, 7, 0, 60, 93)


@pytest.fixture(params=["synchronous", "threads"], autouse=True)
def scheduler(request):
    with dask.config.set(scheduler=request.param):
        yield request.param


class Counter:
    """Makes Dask arrays that know how often their chunks were computed."""

    def __init__(self):
        self.n_samples, self._lock = 0, Lock()

    def array(self, X, chunks):
        def counted(chunk):
            with self._lock:
                self.n_samples += len(chunk)
            return chunk

        lazy = da.from_array(X, chunks=(chunks, *X.shape[1:]))
        return lazy.map_blocks(counted, dtype=X.dtype, meta=X[:0])


@pytest.fixture
def counter():
    return Counter()


@pytest.fixture(name="data")
def several_blocks(draw):
    """2 MB of samples."""
    X, y, _ = draw((12, 10, 8), n_samples=250)
    return X, y


@pytest.fixture(name="wide")
def more_than_fits(draw):
    """6 MB of samples, beyond the part of the small budget for an X that stays."""
    X, y, _ = draw((20, 15, 10), n_samples=250)
    return X, y


def chunked(X, chunks=CHUNKS):
    return da.from_array(X, chunks=(chunks, *X.shape[1:]))


def one_block(X):
    """Samples of the largest chunks that the small budget has room for on this machine."""
    return max(1, block_limit(MemoryBudget(parse_bytes(SMALL))) // X[0].nbytes)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert_allclose(found[name], value, rtol=1e-8, atol=1e-8, err_msg=name)


def fit_all(X, y, weights, covariates):
    labels = y > np.median(y)
    regressor = FasTRRegressor(threshold=0.05, **QUICK)
    regressor.fit(X, y, sample_weight=weights, covariates=covariates)
    classifier = FasTRClassifier(**QUICK).fit(X, labels, sample_weight=weights)
    counts = FasTRRegressor(loss="poisson", ridge=0.1, **QUICK)
    counts.fit(X, np.round(np.exp(0.3 * (y - 2))))
    return {
        "coef": regressor.coef_,
        "intercept": regressor.intercept_,
        "covariates": regressor.covariate_coef_,
        "prediction": regressor.predict(X, covariates),
        "score": regressor.score(X, y, weights, covariates=covariates),
        "terms": FasTRRegressor(n_terms=2, ridge=1e-3, **QUICK).fit(X, y).coef_,
        "counts": counts.predict(X),
        "deviance": counts.score(X, np.round(np.exp(0.3 * (y - 2)))),
        "decision": classifier.decision_function(X),
        "probability": classifier.predict_proba(X),
        "classes": classifier.predict(X),
        "accuracy": classifier.score(X, labels),
        "scaled": TensorScaler(per=0).fit(X, sample_weight=weights).transform(X),
    }


@pytest.mark.parametrize("chunks", [CHUNKS, (250,), (1,) * 250])
def test_fits_give_the_answer_of_memory(data, chunks):
    X, y = data
    rng = np.random.default_rng(1)
    weights, covariates = rng.uniform(0.5, 2, len(y)), rng.normal(size=(len(y), 2))
    expected = fit_all(X, y, weights, covariates)
    assert_same(fit_all(chunked(X, chunks), y, weights, covariates), expected)


def test_an_array_beyond_the_budget_gives_the_answer_of_memory(wide):
    X, y = wide
    rng = np.random.default_rng(1)
    weights, covariates = rng.uniform(0.5, 2, len(y)), rng.normal(size=(len(y), 2))
    with config_context(memory_budget=SMALL):
        expected = fit_all(X, y, weights, covariates)
        found = fit_all(chunked(X, one_block(X)), y, weights, covariates)
    assert_same(found, expected)


def choose_all(X, y):
    regressor = FasTRRegressorCV(n_terms=(1, 2), **GRID).fit(X, y)
    grown = FasTRRegressorCV(**GRID).fit(X, y)
    classifier = FasTRClassifierCV(**GRID).fit(X, y > np.median(y))
    return {
        "coef": regressor.coef_,
        "scores": regressor.cv_results_["mean_test_score"],
        "held out": regressor.held_out_.prediction,
        "terms that are added": np.nan_to_num(grown.scores_path_, nan=-9.0),
        "prediction": regressor.predict(X),
        "decision": classifier.decision_function(X),
        "classes": classifier.predict(X),
        "probability": classifier.predict_proba(X),
        "path": fastr_path(X, y, thresholds=[0.0, 0.1], random_state=0).coef(1),
    }


def test_choices_give_the_answer_of_memory(draw):
    X, y, _ = draw((12, 9, 8), n_samples=240)
    assert_same(choose_all(chunked(X, (100, 100, 40)), y), choose_all(X, y))


def test_inference_gives_the_answer_of_memory(draw):
    X, y, _ = draw((6, 5), n_samples=80)
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
        for Z in (chunked(X, (30, 50)), X)
    )
    assert_same(found, expected)


def test_all_that_comes_with_x_may_be_lazy(data):
    X, y = data
    rng = np.random.default_rng(1)
    weights, Z = rng.uniform(0.5, 2, len(y)), rng.normal(size=(len(y), 2))
    groups = np.arange(len(y)) % 10
    lazy = [da.from_array(own, chunks=40) for own in (y, weights, Z, groups)]
    fitted, expected = (
        FasTRRegressorCV(**GRID).fit(X, own, sample_weight=g, covariates=c, groups=of)
        for own, g, c, of in (lazy, (y, weights, Z, groups))
    )
    assert_array_equal(fitted.coef_, expected.coef_)
    assert_array_equal(fitted.predict(X, lazy[2]), expected.predict(X, Z))
    assert fitted.score(X, lazy[0], lazy[1], lazy[2]) == expected.score(X, y, weights, Z)
    labels, classifier = y > 2, FasTRClassifier(**QUICK)
    coef = classifier.fit(X, labels, sample_weight=weights).coef_
    assert_array_equal(classifier.fit(X, lazy[0] > 2, sample_weight=lazy[1]).coef_, coef)
    assert classifier.score(X, lazy[0] > 2, lazy[1]) == classifier.score(X, labels, weights)


def test_what_fits_is_computed_once_and_said_so(data, counter, caplog):
    X, y = data
    with config_context(memory_budget="1GB"), caplog.at_level(logging.INFO, logger="pyfastr"):
        FasTRRegressorCV(**GRID).fit(counter.array(X, (100, 150)), y)
    assert counter.n_samples == len(X)
    told = (
        "of 1.9 MB, fits the memory budget of 1000.0 MB: it is computed once and stays in memory."
    )
    assert [record.getMessage() for record in caplog.records] == [f"X, a Dask array {told}"]


class Living:
    """Makes chunks and knows how many bytes of them were in memory at a time at most."""

    def __init__(self):
        self.most, self._now, self._lock = 0, 0, Lock()

    def make(self, chunk):
        made = chunk.copy()
        self._count(made.nbytes)
        finalize(made, self._count, -made.nbytes)
        return made

    def _count(self, change):
        with self._lock:
            self._now += change
            self.most = max(self.most, self._now)


def test_what_does_not_fit_is_never_in_memory_as_a_whole(draw, caplog):
    X, y, _ = draw((20, 15, 10), n_samples=600)
    chunks = Living()
    lazy = chunked(X, one_block(X)).map_blocks(chunks.make, dtype=X.dtype, meta=X[:0])
    with (
        config_context(memory_budget=SMALL),
        caplog.at_level(logging.INFO, logger="pyfastr"),
    ):
        FasTRRegressor(**QUICK).fit(lazy, y)
    assert "every pass computes its chunks anew" in caplog.text
    assert 0 < chunks.most < X.nbytes / 2


def test_prediction_waits_until_it_is_asked(data, counter):
    X, y = data
    Z = np.random.default_rng(1).normal(size=(len(y), 2))
    model = FasTRRegressor(**QUICK).fit(X.astype(np.float32), y, covariates=Z)
    lazy = counter.array(X.astype(np.float32), (100, 150))
    found = model.predict(lazy, Z)
    assert isinstance(found, da.Array)
    assert found.chunks == ((100, 150),)
    assert counter.n_samples == 0
    expected = model.predict(X.astype(np.float32), Z)
    assert found.dtype == expected.dtype == np.float32
    assert_allclose(found[:100].compute(), expected[:100], rtol=1e-5)
    assert counter.n_samples == 100
    model.fit(-X, y)
    assert_allclose(found.compute(), expected, rtol=1e-5)


def test_predicted_classes_keep_their_type(data):
    X, y = data
    model = FasTRClassifier(**QUICK).fit(X, np.where(y > 2, "patient", "control"))
    found = model.predict(chunked(X))
    assert found.dtype == model.classes_.dtype
    assert_array_equal(found.compute(), model.predict(X))
    assert model.predict_proba(chunked(X)).chunks == (CHUNKS, (2,))


def test_predictions_of_a_choice_are_sent_without_its_records(data):
    X, y = data
    model = FasTRRegressorCV(**GRID).fit(X, y)
    graph = model.predict(da.zeros(X.shape, chunks=(50, -1, -1, -1))).dask
    assert len(cloudpickle.dumps(graph)) < 30_000


def test_transformers_are_lazy(data, counter):
    X, y = data
    lazy = counter.array(X, (100, 150))
    scaler = TensorScaler().fit(X)
    scaled = scaler.transform(lazy)
    back = scaler.inverse_transform(scaled)
    selector = SliceSelector(FasTRRegressor(threshold=0.3, **QUICK)).fit(X, y)
    cropped = selector.transform(lazy)
    assert counter.n_samples == 0
    assert_allclose(scaled.compute(), scaler.transform(X))
    assert_allclose(back.compute(), X)
    assert cropped.shape == selector.transform(X).shape
    assert_array_equal(cropped.compute(), selector.transform(X))
    pipeline = make_pipeline(TensorScaler(), FasTRRegressor(**QUICK))
    found = pipeline.fit(lazy, y).predict(lazy)
    assert_allclose(found.compute(), pipeline.fit(X, y).predict(X), rtol=1e-8)


def test_scorers_of_ones_own_are_given_what_was_computed(data, counter):
    X, y = data

    def scorer(estimator, held_out, target):
        return -mean_squared_error(target, estimator.predict(held_out))

    grid = {**GRID, "cv": KFold(3), "scoring": scorer}
    found = FasTRRegressorCV(**grid).fit(counter.array(X, (100, 150)), y)
    expected = FasTRRegressorCV(**grid).fit(X, y)
    assert_allclose(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-8
    )
    assert counter.n_samples == len(X)


def test_scikit_learn_splits_dask_arrays(data):
    X, y = data
    model = FasTRRegressor(**QUICK)
    expected = cross_val_score(model, X, y, cv=KFold(3))
    assert_allclose(cross_val_score(model, chunked(X), y, cv=KFold(3)), expected)


def test_chunks_across_other_axes_are_warned_of_at_the_users_line(data):
    X, y = data
    lazy = da.from_array(X, chunks=(125, 6, 10, 2))
    cost = r"8 parts, along axes 1, 3\..* moves 1\.9 MB.*X\.rechunk\(\{1: -1, 2: -1, 3: -1\}\)"
    with pytest.warns(UserWarning, match=cost) as told:
        model = FasTRRegressor(**QUICK).fit(lazy, y)
    assert told[0].filename == __file__
    assert_allclose(model.coef_, FasTRRegressor(**QUICK).fit(X, y).coef_, atol=1e-8)
    with pytest.warns(UserWarning, match=cost) as told:
        found = model.predict(lazy)
    assert len(told) == 1
    assert_allclose(found.compute(), model.predict(X), atol=1e-12)


def test_samples_of_divided_chunks_are_put_together_in_parts(wide):
    X, y = wide
    lazy = da.from_array(X, chunks=(250, 2, 15, 10))
    with (
        config_context(memory_budget=SMALL),
        pytest.warns(UserWarning, match="10 parts, along axis 1"),
    ):
        found = FasTRRegressor(**QUICK).fit(lazy, y)
    assert_allclose(found.coef_, FasTRRegressor(**QUICK).fit(X, y).coef_, atol=1e-8)


def test_large_chunks_are_warned_of(wide):
    X, y = wide
    with (
        config_context(memory_budget=SMALL),
        pytest.warns(UserWarning, match="chunks of up to 6.0 MB, but a block of samples may take"),
    ):
        FasTRRegressor(**QUICK).fit(chunked(X, (250,)), y)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (da.zeros(9), r"X has shape \(9,\); expected \(n_"),
        (da.zeros(()), r"X has shape \(\); expected \(n_"),
        (da.zeros((0, 3, 2)), "0 sample.*minimum of 2"),
        (da.zeros((1, 3, 2)), "1 sample.*minimum of 2"),
        (da.zeros((9, 3), dtype=complex), "complex128; expected real"),
        (da.zeros((9, 3), dtype=object, chunks=3), "object; expected real"),
        (da.zeros((9, 0, 2)), "a mode of size 0"),
        (da.zeros((8, 3, 2)), r"y has \d+ values, but X has 8 samples"),
        (
            da.from_array(np.arange(36.0).reshape(18, 2))[da.arange(18) % 2 == 0],
            r"axis 0 is not known; expected known chunks. Call X.compute_chunk_sizes\(\)",
        ),
    ],
)
def test_arrays_that_cannot_be_fitted_are_refused(X, message):
    for model in (FasTRRegressor(), FasTRClassifier(), FasTRRegressorCV()):
        with pytest.raises(ValueError, match=message):
            model.fit(X, np.arange(9) % 2)


def test_other_collections_are_refused():
    with pytest.raises(TypeError, match=r"X is a Delayed of Dask; expected a Dask array"):
        FasTRRegressor().fit(dask.delayed(np.zeros)((9, 2)), np.arange(9))


@pytest.mark.parametrize("budget", [SMALL, "1GB"])
def test_nan_is_found_in_its_chunk(wide, budget):
    X, y = wide
    model = FasTRRegressor(**QUICK).fit(X, y)
    X[99, 0, 0, 0] = np.nan
    lazy = chunked(X, 2)
    where = r"NaN: first at sample 99 \(chunk 49 of the Dask array\)"
    with config_context(memory_budget=budget), pytest.raises(ValueError, match=where):
        FasTRRegressor().fit(lazy, y)
    with pytest.raises(ValueError, match=r"NaN: first at sample 1,") as caught:
        model.predict(lazy).compute()
    assert "The first sample of this chunk is sample 98 of X." in caught.value.__notes__


def test_chunks_of_another_shape_than_announced_are_refused(data):
    X, y = data
    lazy = chunked(X, (100, 150)).map_blocks(lambda chunk: chunk[1:], dtype=float, meta=X[:0])
    with pytest.raises(ValueError, match=r"samples 0 to 99 turned out.*\(99, 12, 10, 8\)"):
        FasTRRegressor().fit(lazy, y)


def test_errors_of_the_users_own_chunks_say_which(data):
    X, y = data

    def failing(chunk):
        raise RuntimeError("the scanner is off")

    lazy = chunked(X, (100, 150)).map_blocks(failing, dtype=float, meta=X[:0])
    with pytest.raises(RuntimeError, match="scanner") as caught:
        FasTRRegressor().fit(lazy, y)
    assert "samples 0 to 249 of X" in caught.value.__notes__[0]


def test_predict_compares_shapes_at_once(data):
    X, y = data
    Z = np.ones((len(y), 1))
    model = FasTRRegressor(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match=r"samples of shape \(12, 10, 4\), but FasTRRegressor"):
        model.predict(chunked(X)[..., :4])
    with pytest.raises(ValueError, match="covariates has 1 columns, but the model was fitted with"):
        model.predict(chunked(X), Z)
    with pytest.raises(ValueError, match="covariates has 3 rows"):
        model.predict(chunked(X), Z[:3])


def test_labelled_arrays_stay_lazy(data, counter):
    X, y = data
    lazy = xr.DataArray(counter.array(X, (100, 150)), dims=("scan", "x", "y", "z"))
    model = FasTRRegressor(**QUICK).fit(lazy, y)
    assert model.mode_names_in_ == ("x", "y", "z")
    assert counter.n_samples == len(X)
    assert isinstance(model.predict(lazy), da.Array)


@pytest.mark.parametrize("dtype", [np.int16, ">f4", np.float16])
def test_other_types_are_converted_as_in_memory(data, dtype):
    X, y = data
    X = (10 * X).astype(dtype)
    model = FasTRRegressor(**QUICK).fit(chunked(X), y)
    expected = FasTRRegressor(**QUICK).fit(X, y)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-5, atol=1e-6)
    found = model.predict(chunked(X))
    assert found.dtype == expected.predict(X).dtype == found.compute().dtype


def test_baselines_take_dask_arrays(draw):
    X, y, _ = draw((5, 4))
    model = ElementaryRidge()
    lazy = chunked(X, (30, 50))
    assert_allclose(model.fit(lazy, y).predict(lazy), model.fit(X, y).predict(X))
