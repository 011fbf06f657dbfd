"""Chunks on a cluster whose workers have no memory for all of them."""

import weakref

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr import FasTRClassifier, FasTRRegressor
from pyfastr.sources import as_source, largest_entry, look_over

N_CHUNKS = 12


@pytest.fixture(scope="module", name="client")
def little_memory():
    """A worker in this process that is said to have next to no memory, and goes on working."""
    watch = dict.fromkeys(("target", "spill", "pause", "terminate"), False)
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "memory_limit": "1kB"}
    with (
        dask.config.set({f"distributed.worker.memory.{name}": own for name, own in watch.items()}),
        LocalCluster(**options, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        yield client


class Alive:
    """How many chunks are in memory; of the class, as workers have copies of any object."""

    now = most = 0

    @classmethod
    def make(cls, chunk):
        made = chunk + 0.0
        cls.now += 1
        cls.most = max(cls.most, cls.now)
        weakref.finalize(made, cls.forget)
        return made

    @classmethod
    def forget(cls):
        cls.now -= 1


@pytest.fixture(name="X")
def samples():
    return np.random.default_rng(0).normal(size=(10 * N_CHUNKS, 6, 5, 4))


def chunked(X):
    lazy = da.from_array(X, chunks=(10, *X.shape[1:]))
    return lazy.map_blocks(Alive.make, dtype=X.dtype, meta=X[:0])


def test_the_look_for_nan_does_not_have_all_chunks_in_memory(client, X):
    Alive.most = 0
    source = as_source(chunked(X))
    assert not source.is_persisted
    assert largest_entry(source) == np.abs(X).max()
    assert 0 < Alive.most <= N_CHUNKS // 2


def test_samples_are_read(client, X):
    source = as_source(chunked(X))
    assert_array_equal(source.read(slice(5, 37)), X[5:37])


@pytest.mark.parametrize("kind", [FasTRRegressor, FasTRClassifier])
def test_fits_give_the_answer_of_memory(client, X, kind):
    y = X[:, 0, 0, 0] - X[:, 1, 2, 3] + np.random.default_rng(1).normal(size=len(X))
    options = {"n_init": 2, "random_state": 0}
    if kind is FasTRClassifier:
        y, options["loss"] = y > 0, "logistic"
    found, expected = (kind(**options).fit(samples, y) for samples in (chunked(X), X))
    assert_allclose(found.coef_, expected.coef_, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("entry", "left"), [(0.0, ((0, 1),)), (1.0, ())])
def test_workers_compare_samples_with_their_mirror_images(client, X, entry, left):
    X = X[:, :4, :4, 0] + X[:, :4, :4, 0].swapaxes(1, 2)
    X[-1, 0, 1] += entry
    source = as_source(chunked(X))
    assert look_over(source, ((0, 1),)) == (np.abs(X).max(), left)
