"""Small data as files, and two ways to run the command: in this process, and in one of its own."""

import os
import subprocess
import sys
from contextlib import ExitStack

import numpy as np
import pytest

# As `python -m pyfastr.cli`; and Ctrl-C is heard, which a suite run in the background ignores and
# would leave to its children.
COMMAND = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("pyfastr.cli", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of its own, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def invoke(here):
    """Run the command in this process."""
    from typer.testing import CliRunner

    from pyfastr.cli.app import app

    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def refused(invoke, here):
    """Run a command that must fail with one line and leave nothing behind."""

    def run(*arguments):
        before = everything(here)
        outcome = invoke(*arguments)
        assert outcome.exit_code == 2, outcome.output
        assert outcome.stdout == ""
        (line,) = outcome.stderr.splitlines()
        assert line.startswith("Error: ")
        assert everything(here) == before
        return line

    return run


@pytest.fixture
def start(here):
    """Start the command in a process of its own, which does not outlive the test."""
    with ExitStack() as processes:

        def run(*arguments, **environment):
            process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, *map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=here,
                env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80", **environment},
            )
            processes.enter_context(process)
            processes.callback(process.kill)
            return process

        yield run


@pytest.fixture
def command(start):
    """Run the command in a process of its own; returns code, standard output and error."""

    def run(*arguments, **environment):
        process = start(*arguments, **environment)
        out, errors = process.communicate(timeout=300)
        return process.returncode, out, errors

    return run


@pytest.fixture
def data(here):
    """40 samples of 6×5 and a table of them: X.npy, y.npy, people.csv."""
    rng = np.random.default_rng(0)
    w1, w2 = np.array([1, -2, 0, 0, 1.5, 0]), np.array([0, 2, 0, -1, 1])
    X = rng.standard_normal((40, 6, 5))
    age = rng.uniform(20, 60, 40).round(1)
    y = X.reshape(40, -1) @ np.outer(w1, w2).ravel() + 0.05 * age + 0.05 * rng.standard_normal(40)
    np.save(here / "X.npy", X)
    np.save(here / "y.npy", y)
    group = np.where(y > np.median(y), "patient", "control")
    rows = [
        f"p{i},{y[i]!r},{age[i]},{group[i]},site{i % 4}".replace("np.float64(", "").replace(")", "")
        for i in range(40)
    ]
    write_lines(here / "people.csv", "id,score,age,group,site", *rows)
    return X, y, age


def write_lines(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def everything(folder):
    """All files of a folder with the times of their last change."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
