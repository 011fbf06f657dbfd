"""X on the workers of a Dask cluster: what travels, what stays, and what is lost with a worker."""

import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.utils.fixes import parse_version

from pyfastr import FasTRRegressor, FasTRRegressorCV, config_context
from pyfastr.datasets import make_tensor_regression
from pyfastr.engines import engine_of
from pyfastr.engines.cluster import ClusterEngine
from pyfastr.engines.samples import Samples
from pyfastr.inference import bootstrap_factors, permutation_test
from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.problem import make_problem
from pyfastr.solver.progress import watched_by
from pyfastr.solver.sweep import cyclic_sweep, simultaneous_sweep
from pyfastr.sources import ClusterSource, as_source
from pyfastr.sources.waiting import Terms, gathered, wait_for

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

# So little that no X of these tests is brought to the client.
BUDGET = "16MB"
SHAPE, N_SAMPLES, CHUNK = (12, 10, 8), 250, 40
QUICK = {"n_init": 2, "random_state": 0}
# Workers that are gone are seen soon. For those that come back, which takes long where others have
# work for the cores, a fit waits; but not where it is tested that it does so for a while only.
SOON = Terms(look=0.1, without_workers=120.0)
IMPATIENT = Terms(look=0.1, without_workers=1.0)
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def cluster_of(**options):
    plain = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    return distributed.LocalCluster(**(plain | options), silence_logs=logging.CRITICAL)


@pytest.fixture(scope="module", name="cluster")
def two_processes():
    with cluster_of() as cluster:
        yield cluster


@pytest.fixture(name="client")
def client_in_force(_settings, cluster):
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture(name="own")
def cluster_of_ones_own(_settings):
    """Two workers that a test may kill."""
    with cluster_of() as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def _settings():
    """Leave no trace of clients that are closed before their time."""
    # A cluster gives up a worker whose process takes longer than this to start again.
    patient = {"distributed.deploy.lost-worker-timeout": "120s"}
    with config_context(memory_budget=BUDGET), dask.config.set(patient, scheduler=None):
        yield


@pytest.fixture(name="data")
def more_than_fits_a_small_budget():
    return make_tensor_regression(N_SAMPLES, SHAPE, noise=0.1, random_state=0)


def chunked(X, chunk=CHUNK):
    return da.from_array(X, (chunk, *X.shape[1:]))


def coefficient(X, y, **options):
    return FasTRRegressor(**(QUICK | options)).fit(X, y).coef_


def assert_same(found, expected):
    assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


# What travels.


def bytes_sent(cluster, client):
    """Bytes that scheduler, workers and client have sent each other so far."""
    outgoing = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    scheduler = cluster.scheduler
    streams = [comm.byte_count for comm in scheduler.stream_comms.values()]
    return {
        "by workers": sum(outgoing.values()),
        "by scheduler": sum(streams),
        "by client": client.scheduler_comm.byte_count,
    }


def bytes_of_sweeps(cluster, client, n_samples, chunk, sweep, n_sweeps=6):
    """Bytes that sweeps of ten models cost, once everything is in its place."""
    rng = np.random.default_rng(0)
    lazy = da.random.default_rng(0).normal(size=(n_samples, *SHAPE), chunks=(chunk, *SHAPE))
    source, y = as_source(lazy), rng.normal(size=n_samples)
    problem = make_problem(source, y, x_scale=1.0, fit_intercept=True)
    assert isinstance(problem.engine.nearby(), ClusterEngine)
    models = sweep(problem, Models.random(10, 1, SHAPE, rng), Penalty(0.1))[0]
    before = bytes_sent(cluster, client)
    for _ in range(n_sweeps):
        models = sweep(problem, models, Penalty(0.1))[0]
    after = bytes_sent(cluster, client)
    return {name: after[name] - before[name] for name in before}


@pytest.mark.parametrize("sweep", [cyclic_sweep, simultaneous_sweep])
@pytest.mark.parametrize("chunks", [(200, 1600), (200, 200)], ids=["larger", "more"])
def test_what_travels_does_not_depend_on_the_number_of_samples(cluster, client, sweep, chunks):
    n_few, n_many = 800, 6400
    few = bytes_of_sweeps(cluster, client, n_few, chunks[0], sweep)
    many = bytes_of_sweeps(cluster, client, n_many, chunks[1], sweep)
    for name in few:
        assert few[name] > 0
        # Not a byte for each further sample in all sweeps together. Some bytes more or less are
        # those of messages, which are put together as they come and tell seconds in digits.
        assert abs(many[name] - few[name]) < n_many - n_few, name


def test_more_samples_than_fit_the_budget_stay_with_the_workers(client, data):
    X, _ = data
    which = np.arange(1, N_SAMPLES)
    source = as_source(chunked(X))
    some = engine_of(source).subset(which, Samples.alone(len(which)))
    assert isinstance(some, ClusterEngine)
    rng = np.random.default_rng(0)
    coefficients = rng.normal(size=(2, len(which)))
    expected = np.tensordot(coefficients, X[1:], 1)
    assert_same(some.weighted_sums(coefficients), expected)


# Where X is.


@pytest.fixture(name="computed")
def counter_of_computed_chunks(tmp_path):
    """Let chunks leave a file each time they are computed, by whatever process."""

    def counted(chunk):
        (tmp_path / f"{time.monotonic_ns()}-{os.getpid()}").touch()
        return chunk

    def lazy(X, chunk=CHUNK):
        return chunked(X, chunk).map_blocks(counted, dtype=X.dtype, meta=X[:0])

    lazy.n = lambda: len(list(tmp_path.iterdir()))
    return lazy


N_CHUNKS = -(-N_SAMPLES // CHUNK)


def test_chunks_are_computed_once(client, data, computed, caplog):
    X, y = data
    with caplog.at_level("INFO", "pyfastr"):
        found = coefficient(computed(X), y)
    assert computed.n() == N_CHUNKS
    assert f"MB in {N_CHUNKS} chunks, is computed once and stays with the workers" in caplog.text
    assert_same(found, coefficient(X, y))


def test_chunks_that_the_user_persisted_are_not_computed_again(client, data, computed, caplog):
    X, y = data
    lazy = computed(X).persist()
    with caplog.at_level("INFO", "pyfastr"):
        coefficient(lazy, y)
    assert computed.n() == N_CHUNKS
    assert "is with the workers already" in caplog.text


def test_chunks_beyond_the_workers_memory_are_computed_in_every_pass(
    client, data, computed, caplog
):
    X, y = data
    with caplog.at_level("INFO", "pyfastr"):
        source = ClusterSource(computed(X), client, terms=Terms(memory_share=0.0))
    assert "exceeds the workers' memory" in caplog.text
    assert not source.is_persisted
    assert computed.n() == 0
    assert_same(coefficient(source, y), coefficient(X, y))
    assert computed.n() > 2 * N_CHUNKS


def test_poisson_fits_beyond_the_workers_memory(client, data):
    X, y = data
    counts = np.random.default_rng(0).poisson(np.exp((y - y.mean()) / y.std() / 2))
    source = ClusterSource(chunked(X, 125), client, terms=Terms(memory_share=0.0))
    # From a start of one's own there is no search, whose many passes take long this way.
    options = {
        "loss": "poisson",
        "ridge": 1.0,
        "tol": 0.01,
        "init": [np.ones((p, 1)) for p in SHAPE],
    }
    assert_same(coefficient(source, counts, **options), coefficient(X, counts, **options))


def test_the_search_takes_some_samples_only(client, computed):
    """Where samples abound, all of X is read for the last sweeps alone."""
    X, y = make_tensor_regression(2000, (8, 7, 6), noise=0.01, random_state=0)
    source = ClusterSource(computed(X, 500), client, terms=Terms(memory_share=0.0))
    model = FasTRRegressor(random_state=0).fit(source, y)
    assert model.starts_.sure
    assert computed.n() / 4 < 15


@pytest.mark.parametrize("dtype", ["int16", ">f8", "float16"])
@pytest.mark.parametrize("share", [0.5, 0.0])
def test_other_types_are_converted(client, data, dtype, share):
    X, y = data
    X = (10 * X).astype(dtype)
    source = ClusterSource(chunked(X), client, terms=Terms(memory_share=share))
    assert_allclose(coefficient(source, y), coefficient(X, y), rtol=1e-4, atol=1e-5)


def test_other_types_are_converted_by_the_workers_once(client, data):
    X, _ = data
    source = as_source(chunked((10 * X).astype("int16")))
    held = client.submit(lambda arrays: {a.dtype.name for a in arrays}, source.parts[0].held)
    assert held.result() == {source.dtype.name}


def test_vectors_with_more_features_than_samples(client):
    X, y = make_tensor_regression(60, (5000,), noise=0.1, random_state=0)
    assert_same(coefficient(chunked(X, 7), y, ridge=0.1), coefficient(X, y, ridge=0.1))


def in_use(client):
    """Keys that workers have in memory."""
    return {key for key, workers in client.who_has().items() if workers}


def test_workers_keep_nothing_after_a_fit(client, data, soon):
    X, y = data
    gc.disable()
    try:
        model = FasTRRegressorCV(ridges=[1e-3], thresholds=[0.0, 0.1], cv=3).fit(chunked(X), y)
        assert soon(lambda: not in_use(client))
    finally:
        gc.enable()
    assert model.coef_.shape == SHAPE


def test_what_the_user_persisted_stays(client, data, soon):
    X, y = data
    lazy = chunked(X).persist()
    coefficient(lazy, y)
    assert soon(lambda: len(in_use(client)) == N_CHUNKS)


# What is wrong with X.


@pytest.mark.parametrize("share", [0.5, 0.0])
def test_nan_is_found_in_its_chunk(client, data, share):
    X, y = data
    X[99, 0, 0, 0] = np.nan
    source = ClusterSource(chunked(X), client, terms=Terms(memory_share=share))
    where = r"NaN: first at sample 99 \(chunk 2 of the Dask array\), element \(0, 0, 0\)"
    with pytest.raises(ValueError, match=where):
        FasTRRegressor().fit(source, y)


@pytest.mark.parametrize("share", [0.5, 0.0])
def test_chunks_of_another_shape_than_announced_are_refused(client, data, share):
    X, y = data
    lazy = chunked(X).map_blocks(lambda chunk: chunk[1:], dtype=X.dtype, meta=X[:0])
    with pytest.raises(ValueError, match=r"samples 0 to 39 turned out.*\(39, 12, 10, 8\)"):
        coefficient(ClusterSource(lazy, client, terms=Terms(memory_share=share)), y)


def test_errors_of_the_users_own_chunks_say_which(client, data):
    X, y = data

    def failing(chunk):
        raise LookupError("the scanner is off")

    lazy = chunked(X).map_blocks(failing, dtype=X.dtype, meta=X[:0])
    with pytest.raises(LookupError, match="scanner") as caught:
        coefficient(lazy, y)
    assert any("of X, a Dask array, were computed" in note for note in caught.value.__notes__)


# Which cluster.


def test_no_cluster_is_started(data):
    X, y = data
    with pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()
    assert not isinstance(as_source(chunked(X)), ClusterSource)
    coefficient(chunked(X), y)
    with pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()


def test_a_scheduler_that_the_user_names_goes_before_the_client(client, data):
    with dask.config.set(scheduler="threads"):
        assert not isinstance(as_source(chunked(data[0])), ClusterSource)


def test_asynchronous_clients_are_refused(cluster, data):
    X, y = data

    async def fit():
        async with distributed.Client(cluster, asynchronous=True):
            FasTRRegressor(**QUICK).fit(chunked(X), y)

    with pytest.raises(RuntimeError, match="asynchronous Client"):
        cluster.sync(fit)


def test_a_task_of_the_cluster_can_fit(client, data):
    """A task that waits leaves its thread to the tasks that it waits for."""
    X, y = data

    def fit(y):
        with config_context(memory_budget=BUDGET):
            return coefficient(chunked(X), y)

    found = client.map(fit, [y, -y], pure=False)
    expected = coefficient(X, y)
    for sign, own in zip((1, -1), client.gather(found), strict=True):
        assert_same(own, sign * expected)


def test_threads_of_one_process(data):
    X, y = data
    one = cluster_of(n_workers=1, threads_per_worker=3, processes=False)
    with one as cluster, distributed.Client(cluster):
        assert len(as_source(chunked(X)).parts) == 3
        assert_same(coefficient(chunked(X), y), coefficient(X, y))


# Inference.


def test_a_permutation_test_is_that_of_memory(client, data):
    X, y = data
    model = FasTRRegressorCV(ridges=[1e-3], thresholds=[0.0], cv=3, random_state=0)
    options = {"n_permutations": 8, "random_state": 0}
    found, expected = (permutation_test(model, Z, y, **options) for Z in (chunked(X), X))
    assert found.p_value == expected.p_value
    assert_allclose(found.score, expected.score, rtol=1e-8)


def test_a_bootstrap_is_that_of_memory(client, data):
    X, y = data
    options = {"n_bootstrap": 5, "random_state": 0}
    model = FasTRRegressor(**QUICK)
    found, expected = (bootstrap_factors(model, Z, y, **options) for Z in (chunked(X), X))
    for a, b in zip(found.samples, expected.samples, strict=True):
        assert_allclose(a, b, atol=1e-6)


# Workers that come and go.


class Once:
    """Does something at the first event of a fit."""

    def __init__(self, do):
        self._do, self.is_done = do, False

    def __call__(self, event):
        if not self.is_done:
            self.is_done = True
            self._do()


def kill(client, n_workers=1):
    """Take processes of workers down."""
    for pid in list(client.run(os.getpid).values())[:n_workers]:
        os.kill(pid, signal.SIGKILL)


@posix
@pytest.mark.parametrize("terms", [SOON, Terms()], ids=["seen soon", "seen late"])
def test_a_worker_that_dies_is_replaced(own, data, terms):
    X, y = data
    source = ClusterSource(chunked(X), own, terms=terms)
    watcher = Once(lambda: kill(own))
    with watched_by(watcher):
        found = coefficient(source, y, tol=1e-9)
    assert watcher.is_done
    assert_same(found, coefficient(X, y, tol=1e-9))


def n_workers(client):
    """Workers that the scheduler has now."""
    return len(client.cluster.scheduler.workers)


@posix
def test_a_worker_without_a_nanny_may_die(data, soon):
    X, y = data
    with (
        cluster_of(n_workers=0) as cluster,
        distributed.Client(cluster) as client,
        worker_without_nanny(cluster) as dies,
        worker_without_nanny(cluster),
    ):
        assert soon(lambda: n_workers(client) == 2)
        source = ClusterSource(chunked(X), client, terms=SOON)
        watcher = Once(dies.kill)
        with watched_by(watcher):
            found = coefficient(source, y, tol=1e-9)
        assert watcher.is_done
        assert soon(lambda: n_workers(client) == 1)
    assert_same(found, coefficient(X, y, tol=1e-9))


@contextmanager
def worker_without_nanny(cluster):
    """Start a worker that nobody starts again, and end it."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
    options = ["--no-nanny", "--nthreads", "1", "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*command, *options], **quiet) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_worker_that_joins_late_changes_no_answer(own, data, soon):
    X, y = data

    def join():
        own.cluster.scale(3)
        assert soon(lambda: n_workers(own) == 3)

    with watched_by(Once(join)):
        found = coefficient(ClusterSource(chunked(X), own, terms=SOON), y, tol=1e-9)
    assert_same(found, coefficient(X, y, tol=1e-9))


def test_a_worker_that_retires_changes_no_answer(own, data):
    X, y = data
    with watched_by(Once(lambda: own.retire_workers(list(own.run(os.getpid))[:1]))):
        found = coefficient(ClusterSource(chunked(X), own, terms=SOON), y, tol=1e-9)
    assert_same(found, coefficient(X, y, tol=1e-9))


@pytest.mark.parametrize("share", [0.5, 0.0])
def test_a_cluster_without_workers_is_an_error_before_long(own, data, leave, share):
    X, y = data
    terms = replace(IMPATIENT, memory_share=share)
    source = ClusterSource(chunked(X), own, terms=terms)
    with watched_by(Once(lambda: leave(own))), pytest.raises(RuntimeError, match="no worker that"):
        coefficient(source, y)
    with pytest.raises(RuntimeError, match="no worker that works for 1 s"):
        ClusterSource(chunked(X), own, terms=IMPATIENT)


@pytest.fixture(name="leave")
def end_of_all_workers(soon):
    """Send all workers home for good."""

    def leave(client):
        client.cluster.scale(0)
        assert soon(lambda: n_workers(client) == 0)

    return leave


def test_workers_may_come_while_they_are_waited_for(own, data, leave):
    X, y = data
    leave(own)
    own.cluster.scale(1)
    source = ClusterSource(chunked(X), own, terms=SOON)
    assert_same(coefficient(source, y), coefficient(X, y))


def test_a_cluster_that_forgets_everything_computes_x_again(own, data):
    X, y = data
    with watched_by(Once(own.restart)):
        found = coefficient(ClusterSource(chunked(X), own, terms=SOON), y, tol=1e-9)
    assert_same(found, coefficient(X, y, tol=1e-9))


def test_data_that_cannot_be_made_again_are_an_error(own, data):
    X, y = data
    lazy = chunked(X).persist()
    with watched_by(Once(own.restart)), pytest.raises(RuntimeError, match="cannot make again"):
        coefficient(ClusterSource(lazy, own, terms=SOON), y)


@posix
def test_scattered_data_are_an_error_once_their_worker_is_gone(own, data):
    X, y = data
    parts = own.scatter([X[:125], X[125:]])
    lazy = da.concatenate([da.from_delayed(part, (125, *SHAPE), X.dtype) for part in parts])
    assert_same(coefficient(lazy, y), coefficient(X, y))
    source = ClusterSource(lazy, own, terms=SOON)
    with (
        watched_by(Once(lambda: kill(own, 2))),
        pytest.raises(RuntimeError, match="cannot make again"),
    ):
        coefficient(source, y)


@pytest.mark.parametrize("what", ["client", "cluster"])
def test_a_connection_that_is_closed_is_an_error(own, data, what):
    X, y = data
    close = {"client": own.close, "cluster": own.cluster.close}[what]
    source = ClusterSource(chunked(X), own, terms=SOON)
    with (
        watched_by(Once(close)),
        pytest.raises(RuntimeError, match="client of its cluster is clos"),
    ):
        coefficient(source, y)


@pytest.mark.skipif(
    parse_version(distributed.__version__) < parse_version("2026.8"),
    reason="a cluster of older Dask would not end after this",
)
def test_workers_that_die_of_every_task_are_an_error(own, data):
    X, y = data

    def deadly(chunk):
        os._exit(1)

    lazy = chunked(X).map_blocks(deadly, dtype=X.dtype, meta=X[:0])
    with pytest.raises(RuntimeError, match="workers died again and again"):
        coefficient(ClusterSource(lazy, own, terms=SOON), y)


def test_nothing_runs_on_after_an_interrupt(client, data, soon):
    X, y = data

    def interrupt():
        raise KeyboardInterrupt

    source = ClusterSource(chunked(X), client, terms=SOON)
    with watched_by(Once(interrupt)), pytest.raises(KeyboardInterrupt):
        coefficient(source, y)
    assert soon(lambda: not any(client.processing().values()))


@pytest.fixture(name="gate")
def file_that_tasks_wait_for(tmp_path):
    """Tasks that wait for this file end with the test, if not before."""
    path = tmp_path / "gate"
    yield path
    path.touch()


@pytest.fixture(name="interrupted")
def ctrl_c_during_a_wait(soon):
    """Press Ctrl-C once this thread waits for workers."""

    def waits(thread):
        frame = sys._current_frames()[thread]
        while frame and frame.f_code is not wait_for.__code__:
            frame = frame.f_back
        return frame is not None

    def press(thread):
        if soon(lambda: waits(thread)):
            os.kill(os.getpid(), signal.SIGINT)

    @contextmanager
    def interrupted():
        other = threading.Thread(target=press, args=(threading.get_ident(),))
        # A suite that is run in the background ignores Ctrl-C.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            other.start()
            yield
        finally:
            other.join()
            signal.signal(signal.SIGINT, before)

    return interrupted


@posix
def test_an_interrupt_ends_the_tasks_that_are_waited_for(client, gate, interrupted, soon):
    def wait_at_gate():
        while not gate.exists():
            time.sleep(0.02)

    slow = [client.submit(wait_at_gate, pure=False) for _ in range(8)]
    with pytest.raises(KeyboardInterrupt), interrupted():
        gathered(client, slow, SOON)
    assert all(future.cancelled() for future in slow)
    assert soon(lambda: not any(client.processing().values()))


@posix
def test_an_interrupt_leaves_alone_what_the_user_persisted(client, data, gate, interrupted):
    X, y = data

    def wait_at_gate(chunk):
        while not gate.exists():
            time.sleep(0.02)
        return chunk

    lazy = chunked(X).map_blocks(wait_at_gate, dtype=X.dtype, meta=X[:0]).persist()
    with pytest.raises(KeyboardInterrupt), interrupted():
        coefficient(lazy, y)
    gate.touch()
    assert_same(lazy.compute(), X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(9), r"X has shape \(9,\); expected \(n_"),
        (np.zeros(()), r"X has shape \(\); expected \(n_"),
        (np.zeros((0, 3, 2)), "0 sample.*minimum of 2"),
        (np.zeros((9, 3), complex), "complex128; expected real"),
        (np.zeros((9, 0, 2)), "a mode of size 0"),
    ],
    ids=["one axis", "no axis", "no samples", "complex", "empty samples"],
)
def test_arrays_that_cannot_be_fitted_are_refused(client, X, message):
    with pytest.raises(ValueError, match=message):
        FasTRRegressor().fit(da.from_array(X), np.arange(9))
