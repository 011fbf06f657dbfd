"""`pyfastr reproduce` as a user meets it: in a process, interrupted, shared, misused."""

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager

import pytest

from pyfastr.experiments.claims import Claims
from pyfastr.experiments.plan import Unit
from pyfastr.experiments.problems import Simulation

N_TRIALS = 3
TINY = ["table1", "--quick", "--max-size", "125", "--methods", "lasso,eeridge"]
TINY += ["--trials", str(N_TRIALS)]
# Two problems, with the oracle three results in each trial.
N_RESULTS = 6 * N_TRIALS
LAST = Unit("table1", Simulation((5, 5, 5), 100), N_TRIALS - 1)


# As `python -m pyfastr.cli`; and Ctrl-C is heard, which a suite run in the background ignores and
# would leave to its children.
COMMAND = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("pyfastr.cli", run_name="__main__", alter_sys=True)
"""


def command(*arguments):
    return [sys.executable, "-c", COMMAND, "reproduce", *map(str, arguments)]


@contextmanager
def started(*arguments):
    """Start the command with one thread, as the fits are tiny."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command(*arguments), **pipes, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def finish(process):
    """Wait for the end; returns the code and all that was printed."""
    out, errors = process.communicate(timeout=300)
    return process.returncode, out + errors


def run(*arguments):
    """Run the command; returns the code and all that was printed."""
    with started(*arguments) as process:
        return finish(process)


def results(folder):
    """Whole lines of the file, as they are."""
    file = folder / "results.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    entries = []
    for line in lines:
        try:
            entries.append(json.loads(line))
        except ValueError:
            continue
    return [entry for entry in entries if "method" in entry]


def key(entry):
    return entry["problem"], entry["trial"], entry["method"]


def table(folder):
    """The tables without that of the times, which no two runs share."""
    text = (folder / "table1.md").read_text(encoding="utf-8")
    assert "### Seconds of a fit" in text
    return re.sub(r"### Seconds of a fit.*?(?=###|\Z)", "", text, flags=re.DOTALL)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "whole"
    code, printed = run(*TINY, "--out", folder)
    assert code == 0, printed
    assert f"Report: {folder / 'report.html'}" in printed
    return folder


def test_a_study_runs_end_to_end(uninterrupted):
    found = results(uninterrupted)
    assert len(found) == N_RESULTS
    assert {entry["status"] for entry in found} == {"ok"}
    errors = [e["metrics"]["ce"] for e in found if "5x5x5" in key(e)[0] and key(e)[2] == "lasso"]
    row = re.search(r"\| 5×5×5 \(100\) \| ([\d.*]+) \|", table(uninterrupted))
    assert float(row[1].strip("*")) == pytest.approx(sum(errors) / N_TRIALS, abs=5e-4)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_study_goes_on_and_gives_the_same_table(uninterrupted, tmp_path, soon, how):
    arguments = [*TINY, "--out", tmp_path / "out"]
    # It cannot be over before it is interrupted, as the last trial is claimed here.
    with Claims(tmp_path / "out" / "claims").claim(LAST.name), started(*arguments) as process:
        assert soon(lambda: len(results(tmp_path / "out")) >= 3)
        process.send_signal(how)
        code, printed = finish(process)
    before = results(tmp_path / "out")
    assert 3 <= len(before) < N_RESULTS
    if how == signal.SIGINT:
        assert code == 130
        assert f"Interrupted: {len(before)} of {N_RESULTS} results are kept" in printed
        assert f"pyfastr reproduce {' '.join(map(str, arguments))} --resume" in printed
    code, printed = run(*arguments, "--resume")
    assert code == 0, printed
    after = results(tmp_path / "out")
    assert after[: len(before)] == before
    assert set(Counter(map(key, after)).values()) == {1}
    assert table(tmp_path / "out") == table(uninterrupted)


def test_two_processes_share_the_work(uninterrupted, tmp_path):
    arguments = [*TINY, "--out", tmp_path, "--resume"]
    with started(*arguments) as one, started(*arguments) as other:
        for process in (one, other):
            code, printed = finish(process)
            assert code == 0, printed
    counts = Counter(map(key, results(tmp_path)))
    assert len(counts) == N_RESULTS
    assert set(counts.values()) == {1}
    assert table(tmp_path) == table(uninterrupted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table9"], "there is no experiment 'table9'; choose one of table1, table2"),
        (["table1", "--methods", "lasso,ols"], "methods has ols; expected some of fastr, publi"),
        (["table1", "--methods", ","], "methods has no method; expected some of fastr"),
        (["table1", "--trials", "0"], "--trials"),
        (["table1", "--budget", "0"], "--budget"),
        (["table1", "--max-size", "5"], "no problem of table1 has 5 entries or fewer"),
        (["table1", "--out", "{file}"], "file, a file; give the name of a folder"),
        (["table1", "--out", "{used}"], "Add --resume to go on with them"),
        (["table1", "--out", "{impossible}"], "cannot be written to"),
    ],
)
def test_arguments_that_make_no_sense_are_told_why(invoke, tmp_path, arguments, message):
    (tmp_path / "file").touch()
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "results.jsonl").touch()
    places = {name: str(tmp_path / name) for name in ("file", "used")}
    places["impossible"] = str(tmp_path / ("name" * 100))
    outcome = invoke(["reproduce", *(a.format(**places) for a in arguments)])
    assert outcome.exit_code == 2
    assert message in " ".join(outcome.output.split())


@pytest.fixture
def invoke(monkeypatch, tmp_path):
    """Run the command in this process, in a folder of its own."""
    from typer.testing import CliRunner

    from pyfastr.cli.app import app

    monkeypatch.chdir(tmp_path)
    return lambda arguments: CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)


def test_figures_without_matplotlib_are_refused_before_the_work(invoke, monkeypatch):
    monkeypatch.setattr("pyfastr.cli.run_reproduce.find_spec", lambda name: None)
    outcome = invoke(["reproduce", "figure1"])
    assert outcome.exit_code == 2
    assert "pip install 'pyfastr[plot]'" in outcome.output


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_the_command_without_its_packages_names_the_extra(package):
    script = f"""
import sys
sys.modules[{package!r}] = None
from pyfastr.cli import main
main()
"""
    with pytest.raises(subprocess.CalledProcessError) as caught:
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert caught.value.returncode == 2
    assert "which is not installed. Run: pip install 'pyfastr[cli]'" in caught.value.stderr


def test_a_terminal_sees_what_runs_how_far_and_the_rest():
    import io

    from rich.console import Console

    from pyfastr.cli.progress import LiveDisplay, display_for
    from pyfastr.experiments.plan import Unit
    from pyfastr.experiments.problems import Simulation

    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    unit = Unit("table1", Simulation((5, 4), 30), 2)
    with display_for(console) as display:
        assert isinstance(display, LiveDisplay)
        display.progress(3, 12)
        display.doing(unit, "Lasso")
        display.tick()
    shown = console.file.getvalue()
    assert "5×4 (30), trial 3: Lasso" in shown
    assert "3/12" in shown
    assert "rest about" in shown


def test_the_rest_is_guessed_by_fits_of_minutes():
    import io

    from rich.console import Console

    from pyfastr.cli.progress import LiveDisplay

    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    display, now = LiveDisplay(console), [0.0]
    display._progress.get_time = lambda: now[0]
    for n_answered in range(4):
        now[0] = 100.0 * n_answered
        display.progress(n_answered, 6)
    assert display._progress.tasks[0].time_remaining == 300


def test_a_file_sees_lines():
    import io

    from rich.console import Console

    from pyfastr.cli.progress import LineDisplay, display_for

    assert isinstance(display_for(Console(file=io.StringIO())), LineDisplay)
