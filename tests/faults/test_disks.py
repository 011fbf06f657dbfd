"""A full disk: it is told where, what was there stays, and nothing is left half-written."""

import errno
import os

import pytest

from pyfastr.cli.errors import exit_code_of
from pyfastr.experiments.store import Result, Store


@pytest.fixture(name="disk")
def small_disk(benchmarks):
    """A disk that is soon full."""
    if not benchmarks.faults.can_mount():
        pytest.skip("only root can mount a small disk")
    with benchmarks.faults.small_disk(1 << 18) as disk:
        yield disk


@pytest.mark.parametrize(
    "work",
    [
        "save_on_a_full_disk",
        "begin_a_fit_on_a_full_disk",
        "go_on_with_a_fit_on_a_full_disk",
        pytest.param("study_on_a_full_disk", marks=pytest.mark.slow),
    ],
)
def test_a_full_disk_is_told_and_harms_nothing(benchmarks, disk, work):
    assert getattr(benchmarks.faults, work)(disk) == []


def test_results_on_a_full_disk_name_their_file(benchmarks, disk):
    store = Store(disk / "out")
    results = [Result("table1", "5x5 (30)", trial, "lasso", "ok", 1.0, 9.0) for trial in range(2)]
    store.add(results[0])
    benchmarks.faults.fill(disk)

    def add_many():
        # The last page of the file may have room for some lines more.
        for _ in range(100):
            store.add(results[0])

    with pytest.raises(OSError, match=r"No space left on device: '.*results\.jsonl'"):
        add_many()
    (disk / "filler").unlink()
    store.add(results[1])
    assert [result.trial for result in store.results().values()] == [0, 1]


def test_the_command_line_says_what_to_do(capsys):
    def write(*place):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *place)

    assert exit_code_of(write) == 2
    assert exit_code_of(lambda: write("out/report.html")) == 2
    assert capsys.readouterr().err.splitlines() == [
        "Error: No space left on device. Make room, or write to another place.",
        "Error: out/report.html: No space left on device. Make room, or write to another place.",
    ]
