"""kill -9: what was reported as done is there and whole, and the next process goes on."""

import os
import signal
import time

import numpy as np
import pytest

from pyfastr.estimators.atomic import replacing

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("work", ["kill_a_save", "kill_a_fit"])
def test_nothing_is_lost_or_corrupt(benchmarks, tmp_path, work, seed):
    assert getattr(benchmarks.faults, work)(tmp_path, np.random.default_rng(seed)) == []


@pytest.mark.slow
def test_a_study_loses_no_result(benchmarks, tmp_path):
    assert benchmarks.faults.kill_a_study(tmp_path, np.random.default_rng(0)) == []


def test_what_a_killed_process_left_unfinished_goes_with_a_later_save(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"whole")
    ended = child(lambda: write_half_and_die(path))
    assert ended == -signal.SIGKILL
    (left,) = set(tmp_path.iterdir()) - {path}
    save(path, b"next")
    # For all that others know, somebody is about to end it.
    assert left.read_bytes() == b"half"
    yesterday = time.time() - 25 * 3600
    os.utime(left, (yesterday, yesterday))
    save(path, b"last")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"last"


def save(path, content):
    with replacing(path) as file:
        file.write(content)


def write_half_and_die(path):
    with replacing(path) as file:
        file.write(b"half")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)


def child(work):
    """Do some work in a forked process; returns how it ended."""
    process = os.fork()
    if process == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
