import os
import time

import numpy as np
import pytest

from pyfastr.experiments.isolation import run_isolated


def nothing():
    pass


def test_a_task_sees_the_memory_of_its_parent_and_returns_a_value():
    X = np.arange(6.0)
    outcome = run_isolated(lambda: {"sum": float(X.sum()), "pid": os.getpid()}, 120.0, nothing)
    assert outcome.status == "ok"
    assert outcome.value["sum"] == 15.0
    assert outcome.value["pid"] != os.getpid()


def test_a_task_is_ended_at_the_limit():
    ticks = []
    begin = time.monotonic()
    outcome = run_isolated(lambda: time.sleep(600), 1.5, lambda: ticks.append(1))
    assert (outcome.status, outcome.seconds) == ("timeout", 1.5)
    # Far from the end of the task, on a machine however busy.
    assert time.monotonic() - begin < 300
    assert ticks


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("greedy", "MemoryError: no room"),
        ("wordy", "ValueError: X has 3"),
        ("killed", "killed, most likely for want of memory"),
        ("crashed", "crashed: SIGTERM"),
        ("gone", "the process ended with code 3"),
    ],
)
def test_errors_and_crashes_are_outcomes(before, reason, lab):
    outcome = run_isolated(lab.misbehaviour[before], 120.0, nothing)
    assert (outcome.status, outcome.reason) == ("failed", reason)
