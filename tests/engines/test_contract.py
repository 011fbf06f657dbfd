"""What every engine owes: wherever X lives, a fit gives the answer of memory and reads as little.

A new place for X joins by one line in `PLACES`.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pyfastr import FasTRClassifier, FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV
from pyfastr.config import config_context
from pyfastr.datasets import make_tensor_regression
from pyfastr.engines import Draw, engine_of
from pyfastr.solver.losses import LOGISTIC, SQUARED
from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.problem import make_problem
from pyfastr.solver.sweep import cyclic_sweep, simultaneous_sweep
from pyfastr.sources import ArraySource, ClusterSource, DeviceSource, as_source


@cache
def two_workers():
    """A cluster that no Dask array uses by itself."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    cluster = distributed.LocalCluster(**options, silence_logs=50)
    return distributed.Client(cluster, set_as_default=False)


@pytest.fixture(scope="module", autouse=True)
def _workers_are_sent_home():
    yield
    if two_workers.cache_info().currsize:
        two_workers().cluster.close()
        two_workers().close()
        two_workers.cache_clear()


def on_cluster(X):
    lazy = pytest.importorskip("dask.array").from_array(X, (60, -1, -1, -1))
    return ClusterSource(lazy, two_workers())


def on_device(X, library, device):
    """X on a device of a library, in several blocks."""
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    pytest.importorskip("array_api_compat", reason="needs pip install 'pyfastr[arrays]'")
    named = device if library == "torch" else xp.Device(device)
    return DeviceSource(xp.asarray(X, device=named), block_bytes=X[:10].nbytes)


# How X comes to live there: of an array, and of a function that writes it to files and opens them.
PLACES = {
    "tiny blocks": lambda X, store: ArraySource(X, block_bytes=X[:10].nbytes),
    "Fortran order": lambda X, store: np.asfortranarray(X),
    "big-endian": lambda X, store: X.astype(">f8"),
    "memmap": lambda X, store: store(X, "memmap"),
    "hdf5": lambda X, store: store(X, "hdf5"),
    "zarr": lambda X, store: store(X, "zarr 3"),
    "npy files": lambda X, store: store(X, "npy files"),
    "dask": lambda X, store: pytest.importorskip("dask.array").from_array(X, (60, -1, -1, -1)),
    "cluster": lambda X, store: on_cluster(X),
    "torch": lambda X, store: on_device(X, "torch", "cpu"),
    "a device": lambda X, store: on_device(X, "array_api_strict", "device1"),
}
# With so little memory the samples are several blocks, more than stay in memory of files.
BUDGET = "16MB"
SHAPE, N_SAMPLES = (12, 10, 8), 250
QUICK = {"n_init": 2, "random_state": 0}
GRID = {"thresholds": [0.0, 0.1], "ridges": [1e-3], "cv": 3, "random_state": 0}


@dataclass(frozen=True)
class Data:
    """Samples with a mean, and what is to be told from them."""

    X: np.ndarray
    y: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    covariates: np.ndarray


@cache
def data():
    rng = np.random.default_rng(0)
    X, _, W = make_tensor_regression(N_SAMPLES, SHAPE, coef=True, random_state=0)
    signal = X.reshape(N_SAMPLES, -1) @ W.ravel() / np.linalg.norm(W)
    covariates = rng.normal(size=(N_SAMPLES, 2))
    return Data(
        X + rng.normal(size=SHAPE),
        2 + signal + 0.1 * rng.normal(size=N_SAMPLES),
        np.where(signal + 0.5 * rng.normal(size=N_SAMPLES) > 0, "more", "less"),
        rng.poisson(np.exp(0.5 + 0.7 * signal)),
        rng.integers(0, 4, N_SAMPLES).astype(float),
        covariates,
    )


def results_of(model, X):
    """What a user sees of a fitted regressor."""
    return {
        "coef": model.coef_,
        "intercept": model.intercept_,
        "n_iter": model.n_iter_,
        "prediction": model.predict(X),
    }


def regressor(X, d):
    return results_of(FasTRRegressor(threshold=0.05, **QUICK).fit(X, d.y), X)


def simultaneous(X, d):
    return results_of(FasTRRegressor(sweep="simultaneous", ridge=0.1, **QUICK).fit(X, d.y), X)


def two_terms(X, d):
    return results_of(FasTRRegressor(n_terms=2, ridge=1e-3, **QUICK).fit(X, d.y), X)


def weights(X, d):
    return results_of(FasTRRegressor(**QUICK).fit(X, d.y, sample_weight=d.weights), X)


def covariates(X, d):
    model = FasTRRegressor(**QUICK).fit(X, d.y + d.covariates[:, 0], covariates=d.covariates)
    return {
        "coef": model.coef_,
        "covariates": model.covariate_coef_,
        "prediction": model.predict(X, d.covariates),
    }


def poisson(X, d):
    return results_of(FasTRRegressor(loss="poisson", ridge=0.1, **QUICK).fit(X, d.counts), X)


def chosen_regressor(X, d):
    model = FasTRRegressorCV(**GRID).fit(X, d.y)
    scores = {"scores": model.cv_results_["mean_test_score"], "best": model.best_index_}
    return results_of(model, X) | scores | {"held out": model.held_out_.prediction}


def classes_of(model, X):
    """What a user sees of a fitted classifier."""
    return {"decision": model.decision_function(X), "probability": model.predict_proba(X)}


def squared_classifier(X, d):
    return classes_of(FasTRClassifier(**QUICK).fit(X, d.labels), X)


def logistic_classifier(X, d):
    return classes_of(FasTRClassifier(loss="logistic", ridge=0.1, **QUICK).fit(X, d.labels), X)


def chosen_classifier(X, d):
    model = FasTRClassifierCV(**GRID).fit(X, d.labels)
    return classes_of(model, X) | {"scores": model.cv_results_["mean_test_score"]}


FITS = [
    regressor,
    simultaneous,
    two_terms,
    weights,
    covariates,
    poisson,
    chosen_regressor,
    squared_classifier,
    logistic_classifier,
    chosen_classifier,
]


@cache
def answer_of_memory(fit):
    return fit(data().X, data())


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: fit.__name__.replace("_", " "))
@pytest.mark.parametrize("place", PLACES)
def test_a_fit_gives_the_answer_of_memory(store, place, fit):
    expected = answer_of_memory(fit)
    with config_context(memory_budget=BUDGET):
        X = PLACES[place](data().X, store)
        assert len(as_source(X).slices) > 1
        found = fit(X, data())
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert_allclose(found[name], value, rtol=1e-8, atol=1e-8, err_msg=name)


def sweep_in_turn(problem, models):
    return cyclic_sweep(problem, models, Penalty(0.1))[0]


def sweep_by_drawn_weights(problem, models):
    keys = np.arange(len(models), dtype=np.uint64)
    return cyclic_sweep(problem, models, Penalty(0.1), lambda _: Draw(keys))[0]


def sweep_at_once(problem, models):
    return simultaneous_sweep(problem, models, Penalty(0.1))[0]


SWEEPS = {
    "in turn": (sweep_in_turn, SQUARED),
    "by drawn weights": (sweep_by_drawn_weights, SQUARED),
    "at once": (sweep_at_once, SQUARED),
    "logistic": (sweep_in_turn, LOGISTIC),
}


def passes_of(X, sweep, loss, n_models):
    """Passes over X that a few sweeps take, and the models they end with."""
    y = data().y if loss is SQUARED else np.where(data().labels == "more", 1.0, -1.0)
    problem = make_problem(as_source(X), y, x_scale=1.0, fit_intercept=True, loss=loss)
    models = Models.random(n_models, 1, SHAPE, np.random.default_rng(1))
    before = problem.engine.passes
    for _ in range(4):
        models = sweep(problem, models)
    return problem.engine.passes - before, models


@pytest.mark.parametrize("n_models", [1, 20])
@pytest.mark.parametrize("kind", SWEEPS)
@pytest.mark.parametrize("place", PLACES)
def test_a_sweep_reads_x_as_often_as_in_memory(store, place, kind, n_models):
    expected, models = passes_of(data().X, *SWEEPS[kind], n_models)
    with config_context(memory_budget=BUDGET):
        found, others = passes_of(PLACES[place](data().X, store), *SWEEPS[kind], n_models)
    assert found == expected > 0
    for k in range(n_models):
        assert_allclose(others.coefficient(k), models.coefficient(k), rtol=0, atol=1e-10)


@pytest.mark.parametrize("place", PLACES)
def test_samples_are_multiplied_with_each_other_where_they_are(store, place):
    share = data().weights / data().weights.sum()
    with config_context(memory_budget=BUDGET):
        engine = engine_of(as_source(PLACES[place](data().X, store)), scale=2.0)
        found, flat = engine.sample_products(share), engine.flattened()
    X = data().X.reshape(N_SAMPLES, -1) / 2
    assert_allclose(flat, X, rtol=1e-12)
    centred = X - share @ X
    assert_allclose(found, centred @ centred.T, rtol=0, atol=1e-10)
    assert engine.passes == 2
