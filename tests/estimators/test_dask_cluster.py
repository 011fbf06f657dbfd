"""Fits with a cluster of the user's own: the answer of samples in memory, whatever workers do."""

import os
import signal
import sys
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose

from pyfastr import FasTRClassifier, FasTRRegressor, FasTRRegressorCV, config_context
from pyfastr.config import MemoryBudget
from pyfastr.sources.stored import block_limit

QUICK = {"n_init": 2, "random_state": 0}


@pytest.fixture(scope="module", name="client")
def two_processes():
    """Two workers of one thread each."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    # A cluster gives up a worker whose process takes longer than this to start again.
    patient = {"distributed.deploy.lost-worker-timeout": "120s"}
    with (
        dask.config.set(patient),
        LocalCluster(**options, silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(name="data")
def more_than_fits_a_small_budget(draw):
    X, y, _ = draw((20, 15, 10), n_samples=250)
    return X, y


def chunked(X):
    """Chunks that are no larger than a small budget has room for on this machine."""
    room = block_limit(MemoryBudget(16_000_000)) // X[0].nbytes
    return da.from_array(X, chunks=(min(10, max(1, room)), *X.shape[1:]))


@pytest.mark.parametrize("budget", ["16MB", "1GB"])
def test_a_cluster_gives_the_answer_of_memory(client, data, budget):
    X, y = data
    with config_context(memory_budget=budget):
        found = FasTRRegressor(**QUICK).fit(chunked(X), y)
        expected = FasTRRegressor(**QUICK).fit(X, y)
    assert_allclose(found.coef_, expected.coef_, rtol=1e-8, atol=1e-8)


def test_a_choice_on_a_cluster_is_that_of_memory(client, data):
    X, y = data
    grid = {"thresholds": [0.0, 0.1], "ridges": [1e-3], "cv": 3, "random_state": 0}
    found, expected = (FasTRRegressorCV(**grid).fit(Z, y) for Z in (chunked(X).persist(), X))
    assert found.best_params_ == expected.best_params_
    assert_allclose(found.coef_, expected.coef_, rtol=1e-8, atol=1e-8)


def test_workers_predict(client, data):
    X, y = data
    model = FasTRClassifier(**QUICK).fit(X, y > 2)
    lazy = model.predict_proba(chunked(X))
    assert_allclose(lazy.compute(), model.predict_proba(X), rtol=1e-12)


def test_errors_of_workers_arrive_as_they_are(client, data):
    X, y = data
    model = FasTRRegressor(**QUICK).fit(X, y)
    X[99, 0, 0, 0] = np.nan
    lazy = da.from_array(X, chunks=(10, *X.shape[1:]))
    with pytest.raises(ValueError, match="NaN: first at sample 9,") as caught:
        model.predict(lazy).compute()
    assert "The first sample of this chunk is sample 90 of X." in caught.value.__notes__


class DiesOnce:
    """Makes chunks, and takes its process down with it when it makes the first one."""

    def __init__(self, marker: Path):
        self._marker = marker

    def __call__(self, chunk):
        if not self._marker.exists():
            self._marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return chunk


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("budget", ["16MB", "1GB"])
def test_a_worker_that_is_killed_changes_no_answer(client, data, tmp_path, budget):
    X, y = data
    dies = DiesOnce(tmp_path / "died")
    lazy = chunked(X).map_blocks(dies, dtype=X.dtype, meta=X[:0])
    with config_context(memory_budget=budget):
        found = FasTRRegressor(**QUICK).fit(lazy, y)
        expected = FasTRRegressor(**QUICK).fit(X, y)
    assert (tmp_path / "died").exists()
    assert_allclose(found.coef_, expected.coef_, rtol=1e-8, atol=1e-8)
