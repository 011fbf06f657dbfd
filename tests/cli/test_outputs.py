"""Files that commands write: refused before the work, whole or not there, and never in the way."""

import errno
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pyfastr.cli import main
from pyfastr.cli.outputs import Outputs

FIT = ("fit", "X.npy", "y.npy", "-o", "m.fastr", "--report", "r.html", "--no-cv")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def no_work(monkeypatch):
    """Let no command come to its work."""

    def fail(*_args, **_kwargs):
        raise AssertionError("the work has begun")

    for work in ("make_tensor_regression", "make_nifti_study"):
        monkeypatch.setattr(f"pyfastr.cli.run_simulate.{work}", fail)
    monkeypatch.setattr("pyfastr.experiments.demo.run_demo", fail)
    monkeypatch.setattr("pyfastr.cli.run_reproduce.run", fail)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder that takes no file of root")
@pytest.mark.parametrize(
    ("arguments", "option", "place"),
    [
        (["fit", "X.npy", "y.npy", "-o"], "--output", "/proc/m.fastr"),
        (["fit", "X.npy", "y.npy", "-o", "m.fastr", "--report"], "--report", "/proc/r.html"),
        (["fit", "X.npy", "y.npy", "-o", "m.fastr", "--coef-img"], "--coef-img", "/proc/c.nii"),
        (["predict", "m.fastr", "X.npy", "-o"], "--output", "/proc/p.csv"),
        (["report", "m.fastr", "-o"], "--output", "/proc/r.html"),
        (["simulate", "-o"], "--output", "/proc/s.npz"),
        (["simulate", "--nifti"], "--nifti", "/proc/study"),
        (["demo", "--out"], "--out", "/proc/demo"),
        (["reproduce", "table1", "--out"], "--out", "/proc/study"),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_a_place_that_takes_no_file_is_refused_before_the_work(refused, arguments, option, place):
    # No input is there either: nobody has looked for it yet.
    line = refused(*arguments, place)
    assert line.startswith(f"Error: {option} is {place}, which cannot be written to (")
    assert line.endswith("). Give another one.")


@pytest.mark.usefixtures("no_work")
def test_a_name_that_is_too_long_is_refused_before_the_work(refused):
    line = refused("simulate", "-o", f"{'n' * 252}.npz")
    assert line.endswith(".npz, which cannot be written to (File name too long). Give another one.")


def test_a_name_may_be_as_long_as_the_system_allows(invoke, here):
    name = f"{'n' * 251}.npz"
    assert invoke("simulate", "-o", name, "--shape", "3x3").exit_code == 0
    assert names(here) == [name]


@pytest.mark.parametrize("place", ["file/study", "file/new/study"])
@pytest.mark.usefixtures("no_work")
def test_a_file_among_the_folders_of_a_study(refused, here, place):
    (here / "file").touch()
    told = f"is {place}, which cannot be written to (Not a directory). Give another one."
    assert f"--nifti {told}" in refused("simulate", "--nifti", place)
    assert f"--out {told}" in refused("reproduce", "table1", "--quick", "--out", place)


@pytest.mark.parametrize("command", [["reproduce", "table1"], ["demo", "--force"]])
@pytest.mark.usefixtures("no_work")
def test_a_folder_without_a_name_is_not_the_one_we_are_in(refused, command):
    line = refused(*command, "--out", "")
    assert "'--out': it is empty; expected the name of a folder." in line


def test_the_folder_we_are_in_gets_files_beside_its_own(here):
    (here / "mine.txt").touch()
    place, outputs = Path(), Outputs(force=True)
    outputs.claim("--out", place)
    with outputs, outputs.draft(place) as folder:
        folder.mkdir()
        (folder / "report.html").touch()
    assert names(here) == ["mine.txt", "report.html"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (FIT, "--output is m.fastr"),
        (["report", "old.fastr", "-o", "r.html"], "--output is r.html"),
    ],
)
def test_a_disk_that_is_full_at_the_end_is_told_of_the_option(
    refused, invoke, data, monkeypatch, arguments, told
):
    assert invoke("fit", "X.npy", "y.npy", "-o", "old.fastr", "--no-cv").exit_code == 0

    def fail(_file_number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    advice = "which cannot be written to (No space left on device). Make room, or give another"
    assert f"Error: {told}, {advice} place." in refused(*arguments)


def test_errors_of_our_own_keep_their_words(here):
    outputs = Outputs(force=False)
    outputs.claim("--out", here / "a.csv", [".csv"])

    def write():
        with outputs, outputs.draft(here / "a.csv") as draft:
            draft.touch()
            raise ValueError("no error of the system")

    with pytest.raises(ValueError, match=r"^no error of the system$"):
        write()
    assert names(here) == []


def test_what_killed_commands_left_goes_with_a_later_one(invoke, here):
    killed = here / ".pyfastr-0123.tmp"
    killed.mkdir()
    (killed / "report.html").touch()
    for name in (".pyfastr-4567.tmp.npz", ".pyfastr-89ab.tmp.nii.gz", ".pyfastr-cdef.tmp.csv"):
        (here / name).touch()
    yesterday = time.time() - 25 * 3600
    for path in list(here.iterdir()):
        if path.suffix != ".csv":
            os.utime(path, (yesterday, yesterday))
    assert invoke("simulate", "-o", "s.npz", "--shape", "3x3").exit_code == 0
    # For all that others know, somebody still writes to it.
    assert names(here) == [".pyfastr-cdef.tmp.csv", "s.npz"]


def test_what_a_killed_command_leaves_has_a_name_that_a_later_one_knows(invoke, here, monkeypatch):
    def die(path, **_arrays):
        path.touch()
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("pyfastr.cli.run_simulate.np.savez", die)
        patched.setattr("pyfastr.cli.outputs._remove", lambda _draft: None)
        assert invoke("simulate", "-o", "s.npz", "--shape", "3x3").exit_code == 1
    (left,) = here.iterdir()
    yesterday = time.time() - 25 * 3600
    os.utime(left, (yesterday, yesterday))
    assert invoke("simulate", "-o", "s.npz", "--shape", "3x3").exit_code == 0
    assert names(here) == ["s.npz"]


def test_ctrl_c_while_files_are_written_leaves_none_of_them(invoke, here, data, monkeypatch):
    def interrupt(*_args, **_kwargs):
        assert list(here.glob(".pyfastr-*.fastr")), "the model is written before the report"
        raise KeyboardInterrupt

    monkeypatch.setattr("pyfastr.cli.run_fit.make_report", interrupt)
    before = sorted(here.iterdir())
    outcome = invoke(*FIT)
    assert outcome.exit_code == 130
    assert sorted(here.iterdir()) == before
    (here / "m.fastr").write_text("older")
    assert invoke(*FIT, "--force").exit_code == 130
    assert (here / "m.fastr").read_text() == "older"


@pytest.fixture
def signals():
    """Give signals their handlers back, after a test in which they have those of the system."""
    numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    handlers = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    yield
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.usefixtures("data", "signals")
def test_a_signal_while_files_are_written_leaves_none_of_them(here, monkeypatch, name):
    number = getattr(signal, name)

    def end(*_args, **_kwargs):
        assert list(here.glob(".pyfastr-*.fastr"))
        os.kill(os.getpid(), number)

    monkeypatch.setattr("pyfastr.cli.run_fit.make_report", end)
    monkeypatch.setattr(sys, "argv", ["pyfastr", *FIT])
    before = sorted(here.iterdir())
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 128 + number
    assert sorted(here.iterdir()) == before


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no terminals that hang up")
@pytest.mark.usefixtures("signals")
def test_what_nohup_starts_outlives_its_terminal(here, monkeypatch):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    monkeypatch.setattr(sys, "argv", ["pyfastr", "simulate", "-o", "s.npz", "--shape", "3x3"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert np.load(here / "s.npz")["X"].shape == (100, 3, 3)
