"""Who watches a fit sees how far it is; who does not is not bothered."""

import io
import multiprocessing
import sys
import threading
from contextlib import redirect_stderr
from importlib.util import find_spec

import joblib
import pytest
from sklearn.base import clone

from pyfastr import FasTRClassifier, FasTRRegressor, FasTRRegressorCV
from pyfastr.datasets import make_tensor_regression
from pyfastr.estimators.watching import Bar, _console, showing
from pyfastr.solver.progress import Event, tell, watched_by


@pytest.fixture
def data():
    return make_tensor_regression(60, (6, 5), random_state=0)


def test_lines_tell_of_every_round(data, capsys):
    model = FasTRRegressor(random_state=0, verbose=2).fit(*data)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.starts_.n_rounds
    assert lines[0].startswith("[FasTR] round 1")
    assert f"{model.starts_.n_starts} starts" in lines[-1]


@pytest.mark.parametrize("verbose", [0, 1])
def test_nothing_is_printed_where_nobody_watches(data, verbose, capfd):
    FasTRRegressorCV(random_state=0, verbose=verbose).fit(*data)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_has_a_bar_and_notes_and_is_left_without_the_bar():
    console = pytest.importorskip("rich.console").Console(
        file=io.StringIO(), force_terminal=True, width=100
    )
    with Bar(console) as show:
        show(Event("starts", 8, 64, "round 1: 8 starts"))
        show(Event("sweeps", 1, 15))
        show(Event("sweeps", 2, 15))
        show(Event("sweeps", 1, 30))
        drawn = console.file.getvalue()
    assert "/64" in drawn
    assert "0/30" in drawn
    assert "round 1: 8 starts" in drawn
    left = console.file.getvalue().rpartition("\x1b[2K")
    assert left[1]
    assert not left[2].strip()


class Terminal(io.StringIO):
    """Where a person sees all bars."""

    def isatty(self):
        return True


def test_of_fits_side_by_side_one_has_a_bar(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("TERM", "xterm")
    together = threading.Barrier(2)

    def work(number):
        with showing(verbose=1):
            together.wait()
            tell(f"work of {number}", 1, 2)
            together.wait()

    with redirect_stderr(Terminal()) as terminal:
        joblib.Parallel(2, backend="threading")(joblib.delayed(work)(i) for i in range(2))
        assert sys.stderr is terminal
        first = terminal.getvalue()
        with showing(verbose=1):
            tell("later work", 1, 2)
    assert ("work of 0" in first) != ("work of 1" in first)
    assert "later work" in terminal.getvalue()


def test_processes_that_share_a_terminal_draw_no_bar_on_it(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert _console() is not None
    with multiprocessing.get_context("spawn").Pool(1) as workers:
        assert workers.apply(_console) is None


def test_a_notebook_has_a_bar_if_it_has_widgets_and_fits_either_way(data, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert (_console() is None) == (find_spec("ipywidgets") is None)
    printed = sys.stdout
    FasTRRegressorCV(random_state=0, verbose=1).fit(*data)
    assert sys.stdout is printed


def test_a_watcher_that_is_there_already_is_not_joined_by_another(capsys):
    events = []
    with watched_by(events.append), showing(verbose=2):
        tell("work", 1, 2, "half way")
    assert events == [Event("work", 1, 2, "half way")]
    assert capsys.readouterr().out == ""


def test_stages_of_a_choice_reach_whoever_watches(data):
    events = []
    with watched_by(events.append):
        FasTRRegressorCV(n_terms=(1, 2), random_state=0).fit(*data)
    assert {"search", "sweeps", "starts", "numbers of terms", "choice"} <= {e.stage for e in events}
    assert [e.done for e in events if e.stage == "numbers of terms"] == [1, 2]
    assert all(1 <= event.done <= event.total for event in events)


class Recorder:
    """A callback of scikit-learn that keeps what it hears."""

    def __init__(self):
        self.heard = []

    def setup(self, estimator, context):
        self.heard.append(("setup", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.heard.append(("end", context.task_name))

    def teardown(self, estimator, context):
        self.heard.append(("teardown", context.task_name))


@pytest.mark.parametrize("estimator", [FasTRRegressor(), FasTRClassifier(), FasTRRegressorCV()])
def test_callbacks_of_scikit_learn_hear_of_every_step(estimator, data):
    pytest.importorskip("sklearn.callback")
    X, y = data
    recorder = Recorder()
    model = clone(estimator).set_params(random_state=0).set_callbacks(recorder)
    model.fit(X, y > 0 if isinstance(estimator, FasTRClassifier) else y)
    heard = recorder.heard
    assert heard[:2] == [("setup", "fit"), ("begin", "fit")]
    assert heard[-2:] == [("end", "fit"), ("teardown", "fit")]
    for stage in ("search", "sweeps", "step"):
        n_begun, n_ended = (heard.count((what, stage)) for what in ("begin", "end"))
        assert n_begun == n_ended > 0


def test_callbacks_take_nothing_away_from_who_watches(data, capsys):
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    FasTRRegressor(random_state=0, verbose=2).set_callbacks(recorder).fit(*data)
    assert "round 1" in capsys.readouterr().out
    assert ("begin", "sweeps") in recorder.heard


def test_a_fit_that_fails_still_lets_callbacks_go(data):
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    X, y = data
    with pytest.raises(ValueError, match="init has arrays of shapes"):
        FasTRRegressor(init=[X[0]]).set_callbacks(recorder).fit(X, y)
    assert recorder.heard[-1] == ("teardown", "fit")
