"""kill -9: what was reported as done is there and whole, and the next process goes on."""

import os

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("work", ["kill_a_save", "kill_a_fit"])
def test_nothing_is_lost_or_corrupt(benchmarks, tmp_path, work, seed):
    assert getattr(benchmarks.faults, work)(tmp_path, np.random.default_rng(seed)) == []


@pytest.mark.slow
def test_a_study_loses_no_result(benchmarks, tmp_path):
    assert benchmarks.faults.kill_a_study(tmp_path, np.random.default_rng(0)) == []
