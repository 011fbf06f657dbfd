"""Workers of a cluster that are killed for more memory than they may have."""

import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pyfastr import FasTRRegressor, config_context
from pyfastr.datasets import make_tensor_regression
from pyfastr.solver.progress import watched_by
from pyfastr.sources import ClusterSource
from pyfastr.sources.waiting import Terms

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]

# Bytes of a worker; Dask and NumPy themselves take less than half of them.
LIMIT = 500_000_000
# So little that X is not brought to the client.
BUDGET = "16MB"
QUICK = {"n_init": 2, "random_state": 0}
# How workers end that take too much, as Dask's nannies report it.
KILLED = "worker-restart-memory"
PATIENT = Terms(look=0.1, without_workers=120.0)


@pytest.fixture(name="client")
def one_worker_with_a_limit():
    """A worker whose nanny kills it beyond its limit, and starts it again."""
    options = {"n_workers": 1, "threads_per_worker": 1, "memory_limit": LIMIT}
    settings = {
        # A cluster gives up a worker whose process takes longer than this to start again,
        "distributed.deploy.lost-worker-timeout": "120s",
        # and a task with the second worker that dies of it.
        "distributed.scheduler.allowed-failures": 1,
    }
    with (
        config_context(memory_budget=BUDGET),
        dask.config.set(settings),
        distributed.LocalCluster(**options, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(name="data")
def more_than_fits_a_small_budget():
    return make_tensor_regression(250, (12, 10, 8), noise=0.1, random_state=0)


def greedy(X, is_modest):
    """X whose making takes more than a worker may have, and goes on until it is killed for it."""

    def take_too_much(chunk):
        if not is_modest():
            # Ones, as pages of zeros are no memory until they are written to.
            taken = np.ones(LIMIT // 8)
            while taken[0]:
                time.sleep(0.1)
        return chunk

    return da.from_array(X, X.shape).map_blocks(take_too_much, dtype=X.dtype, meta=X[:0])


@pytest.fixture(name="warned")
def file_of_those_who_were_killed(tmp_path):
    return tmp_path / "warned"


@pytest.fixture(name="once")
def greedy_until_warned(warned):
    """X that takes too much where there is no such file, and leaves one."""

    def is_modest():
        was_there = warned.exists()
        warned.touch()
        return was_there

    return lambda X: greedy(X, is_modest)


def test_a_worker_that_takes_too_much_once_changes_no_answer(client, data, once, soon):
    X, y = data
    found = FasTRRegressor(**QUICK).fit(ClusterSource(once(X), client, terms=PATIENT), y)
    assert soon(lambda: len(client.get_events(KILLED)) == 1)
    assert_allclose(found.coef_, FasTRRegressor(**QUICK).fit(X, y).coef_, rtol=1e-8, atol=1e-8)


def test_a_worker_that_takes_too_much_in_the_middle_of_a_fit_changes_no_answer(
    client, data, once, warned, soon
):
    X, y = data
    warned.touch()
    events = []

    def forget_once(event):
        if not events:
            warned.unlink()
        events.append(event)

    # Where workers have no room for all of X, it is made anew in every pass.
    source = ClusterSource(once(X), client, terms=replace(PATIENT, memory_share=0.0))
    with watched_by(forget_once):
        found = FasTRRegressor(**QUICK).fit(source, y)
    assert soon(lambda: len(client.get_events(KILLED)) == 1)
    assert_allclose(found.coef_, FasTRRegressor(**QUICK).fit(X, y).coef_, rtol=1e-8, atol=1e-8)


def test_workers_that_always_take_too_much_are_an_error_that_says_what_to_do(client, data, soon):
    X, y = data
    lazy = greedy(X, lambda: False)
    told = "died again and again .*, mostly for lack of memory. Give them more, or X smaller chunks"
    with pytest.raises(RuntimeError, match=told):
        FasTRRegressor(**QUICK).fit(ClusterSource(lazy, client, terms=PATIENT), y)
    assert soon(lambda: len(client.get_events(KILLED)) == 2)
