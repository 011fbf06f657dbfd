"""Threads: order, errors, and a BLAS that is left as it was found."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from threadpoolctl import ThreadpoolController, threadpool_limits

from pyfastr.engines.parallel import (
    blas_for,
    in_order,
    map_threads,
    one_thread,
    scratch,
    solve_vectors,
)
from pyfastr.sources import as_source


def blas_threads():
    return [lib["num_threads"] for lib in ThreadpoolController().select(user_api="blas").info()]


@pytest.fixture(autouse=True)
def _blas_is_left_as_it_was():
    before = blas_threads()
    yield
    assert blas_threads() == before


def slow_first(i):
    time.sleep(0.01 if i == 0 else 0)
    return i * i


@pytest.mark.parametrize("n_items", [0, 1, 2, 50])
def test_results_come_in_the_order_of_the_items(n_items):
    assert map_threads(slow_first, range(n_items)) == [i * i for i in range(n_items)]


def test_matrix_products_are_the_same_in_threads():
    A = np.random.default_rng(0).normal(size=(20, 30, 30))
    found = map_threads(lambda i: A[i] @ A[i], range(20))
    np.testing.assert_allclose(found, A @ A, rtol=1e-12, atol=1e-12)


def test_few_results_wait_for_a_slow_consumer():
    begun = []
    with threadpool_limits(2, user_api="blas"):
        results = in_order(lambda i: begun.append(i) or i, range(100))
        first = next(results)
        # The pool works in order: it has ended whatever it had been given before this.
        map_threads(slow_first, range(4))
        assert len(begun) < 20
        assert [first, *results] == list(range(100))


@pytest.mark.parametrize("n_items", [1, 10])
def test_an_error_in_a_thread_reaches_the_caller(n_items):
    def fail(i):
        if i == n_items - 1:
            raise KeyError("told")
        return i

    with pytest.raises(KeyError, match="told"):
        map_threads(fail, range(n_items))
    assert map_threads(slow_first, range(3)) == [0, 1, 4]


def test_blas_has_one_thread_inside():
    inside = map_threads(lambda i: blas_threads(), range(4))
    assert all(set(threads) <= {1} for threads in inside)


def test_a_limit_of_the_user_is_kept():
    with threadpool_limits(1, user_api="blas"):
        names = map_threads(lambda i: threading.current_thread().name, range(8))
        assert blas_threads() == [1] * len(blas_threads())
    assert set(names) == {threading.current_thread().name}


def test_other_threads_may_limit_blas_afterwards():
    map_threads(slow_first, range(4))

    def limited():
        with threadpool_limits(1, user_api="blas"):
            return blas_threads()

    with ThreadPoolExecutor(1) as other:
        assert set(other.submit(limited).result()) <= {1}


def test_work_inside_of_work_ends():
    done = []

    def run():
        done.append(map_threads(lambda i: sum(map_threads(lambda j: i * j, range(4))), range(4)))

    # In a thread of its own, so that a deadlock fails the test and does not hang it.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(120)
    assert done == [[0, 6, 12, 18]]


def test_callers_side_by_side_share_the_limit():
    barrier = threading.Barrier(4)

    def call(k):
        barrier.wait()
        return [map_threads(lambda i: blas_threads() and i + k, range(3)) for _ in range(5)]

    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(call, range(4)))
    assert found == [[[k, k + 1, k + 2]] * 5 for k in range(4)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_threads_of_its_own():
    script = """
import os
import numpy
from pyfastr.engines.parallel import map_threads, one_thread, scratch, solve_vectors
assert map_threads(abs, range(-9, 0)) == list(range(9, 0, -1))
child = os.fork()
if child == 0:
    ok = map_threads(abs, range(-9, 0)) == list(range(9, 0, -1))
    os._exit(0 if ok else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert map_threads(abs, range(-9, 0)) == list(range(9, 0, -1))
"""
    # Python warns of forks in processes with threads, which is what is tried here.
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=300)


def test_a_worker_of_joblib_keeps_to_the_threads_that_it_is_given():
    def is_alone(_):
        # Functions of this module are unknown to the worker, which is given this one as it is.
        used = map_threads(lambda _: threading.get_ident(), range(8))
        return set(used) == {threading.get_ident()}

    try:
        with joblib.parallel_config("loky", inner_max_num_threads=1):
            found = joblib.Parallel(2)(joblib.delayed(is_alone)(i) for i in range(4))
    finally:
        get_reusable_executor().shutdown(wait=True)
    assert found == [True] * 4


@pytest.mark.parametrize("n_models", [1, 7, 300])
def test_stacked_equations_have_their_own_solutions(n_models):
    rng = np.random.default_rng(0)
    matrices, vectors = rng.normal(size=(n_models, 4, 4)), rng.normal(size=(n_models, 4))
    found = solve_vectors(matrices, vectors)
    expected = [np.linalg.solve(A, b) for A, b in zip(matrices, vectors, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_memory_is_used_again_by_its_thread_for_the_same_use_alone():
    first = scratch((3, 4), np.float64, "one")
    first[:] = 1
    with ThreadPoolExecutor(1) as other:
        theirs = other.submit(scratch, (3, 4), np.float64, "one").result()
    assert not np.shares_memory(first, theirs)
    assert not np.shares_memory(first, scratch((3, 4), np.float64, "other"))
    again = scratch((2, 5), np.float32, "one")
    assert np.shares_memory(first, again)
    assert again.shape == (2, 5)
    assert again.dtype == np.float32


def test_one_thread_starts_no_others_and_keeps_blas_to_one():
    def where(_):
        return threading.get_ident(), *blas_threads()

    with threadpool_limits(2, user_api="blas"):
        with one_thread():
            found = set(map_threads(where, range(8)))
        assert {n for _, *own in found for n in own} == {1}
        assert {thread for thread, *_ in found} == {threading.get_ident()}
        assert set(blas_threads()) == {2}


@pytest.mark.parametrize(("n_samples", "is_limited"), [(100, True), (100_000, False)])
def test_blas_keeps_to_one_thread_for_small_data_alone(n_samples, is_limited):
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with blas_for(as_source(np.zeros((n_samples, 4, 4)))):
            inside = blas_threads()
        assert inside == ([1] * len(before) if is_limited else before)
