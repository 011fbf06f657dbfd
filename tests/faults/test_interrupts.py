"""Ctrl-C: whatever a fit was at, nothing of it stays."""

from itertools import count
from pathlib import Path

import numpy as np
import pytest

from pyfastr import FasTRRegressor
from pyfastr.datasets import make_tensor_regression
from pyfastr.engines.parallel import SingleThreadedBlas
from pyfastr.solver.progress import is_watched, watched_by
from pyfastr.sources import ArraySource


class Library:
    """A BLAS that is interrupted in the nth of all calls, before or after it did its work."""

    def __init__(self, n_threads, fail):
        self.n_threads, self._fail = n_threads, fail

    @property
    def num_threads(self):
        self._fail()
        return self.n_threads

    def set_num_threads(self, n_threads):
        self._fail()
        self.n_threads = n_threads
        self._fail()

    def clear_controlling_thread(self):
        self._fail()


def fail_at(n_call):
    calls = count()

    def fail():
        if next(calls) == n_call:
            raise KeyboardInterrupt

    return fail


def test_blas_gets_its_threads_back_wherever_ctrl_c_falls():
    n_calls = 0
    while True:
        fail = fail_at(n_calls)
        libraries = [Library(2, fail), Library(3, fail)]
        limited = SingleThreadedBlas(lambda found=libraries: found)
        try:
            with limited() as n_threads:
                assert n_threads == 3
                assert [library.n_threads for library in libraries] == [1, 1]
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
        assert [library.n_threads for library in libraries] == [2, 3]
        assert not limited.is_set
        if not interrupted:
            break
        n_calls += 1
    # Each library is read once, set and freed: with those before and after a call, 12.
    assert n_calls == 12


def test_what_a_fit_sets_for_its_context_goes_with_it():
    X, y = make_tensor_regression(30, (4, 3), random_state=0)

    class Careless(ArraySource):
        def read(self, rows):
            # As a `with` that Ctrl-C has kept from ending.
            np.seterr(invalid="ignore")
            watched_by(print).__enter__()
            raise KeyboardInterrupt

    before = np.geterr()
    with pytest.raises(KeyboardInterrupt):
        FasTRRegressor().fit(Careless(X), y)
    assert np.geterr() == before
    assert not is_watched()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are seen in /proc")
def test_ctrl_c_at_random_points_leaves_nothing_behind(benchmarks, tmp_path):
    interrupts = benchmarks.interrupts
    found = list(interrupts.interrupt_often(interrupts.make_cases(tmp_path), 16, 0, tmp_path))
    assert [line for own in found for line in own.left] == []
    # On a busy machine some fits are over before their interrupt falls.
    hits = [own for own in found if own.hit]
    assert len(hits) >= len(found) // 2
    # Of processor time. Fits that went on to their ends would do about half of their work.
    assert sum(own.work for own in hits) < sum(own.whole for own in hits) / 4
