"""How a fit shows its progress: a bar, lines, or the callbacks of scikit-learn."""

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import wraps
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self, TypeVar

from pyfastr.estimators.sklearn_private import all_or_nothing, only_checks_parameters
from pyfastr.solver.progress import Event, Watcher, is_watched, watched_by

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


Fit = TypeVar("Fit", bound=Callable[..., Any])
__all__ = ["Bar", "CallbackSupportMixin", "fit_method", "showing"]

# The least `verbose` for a bar where a person watches, and for lines wherever they go.
BAR, LINES = 1, 2
# Held by the fit whose bar is drawn: two at once would draw over each other.
_drawing = threading.Lock()


def fit_method(fit: Fit) -> Fit:
    """Let a `fit` check its parameters, show its progress, and change nothing if it fails."""
    whole = all_or_nothing(fit)

    @wraps(fit)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Callbacks keep attributes on the estimator by which they are released, so they stay
        # outside of what is undone.
        with _following(self):
            return whole(self, *args, **kwargs)

    checked: Any = with_callbacks(only_checks_parameters(watched))
    return checked


@contextmanager
def showing(verbose: int) -> Iterator[None]:
    """Show the progress of the block as `verbose` asks, unless somebody watches already.

    Parameters
    ----------
    verbose : int
        0 shows nothing. From 1 on a bar is drawn where a person watches: in a terminal, or in a
        notebook with ipywidgets. Of fits that run side by side one has a bar. From 2 on lines are
        printed instead, wherever they go.
    """
    with ExitStack() as stack:
        if not is_watched():
            watcher = stack.enter_context(_display(verbose))
            if watcher is not None:
                stack.enter_context(watched_by(watcher))
        yield


@contextmanager
def _following(estimator: Any) -> Iterator[None]:
    """Show the progress of a fit, and pass it on to callbacks of scikit-learn."""
    with showing(int(estimator.verbose)), ExitStack() as stack:
        if getattr(estimator, "_skl_callbacks", None):
            callbacks = stack.enter_context(_CallbackWatcher(estimator))
            stack.enter_context(watched_by(callbacks))
        yield


def _display(verbose: int) -> Any:
    """Return a context whose value hears of events, or is None."""
    if verbose >= LINES:
        return nullcontext(_print_note)
    console = _console() if verbose >= BAR else None
    return nullcontext(None) if console is None else _only_bar(console)


@contextmanager
def _only_bar(console: Any) -> Iterator[Watcher | None]:
    """Draw a bar unless the fit of another thread has one already."""
    if not _drawing.acquire(blocking=False):
        yield None
        return
    try:
        with Bar(console) as show:
            yield show
    finally:
        _drawing.release()


def _console() -> Any:
    """Return rich's console if a person sees it; without rich there is no bar."""
    if multiprocessing.parent_process() is not None:
        # Workers of joblib share one terminal.
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(file=sys.stderr)
    if console.is_jupyter:
        return console if find_spec("ipywidgets") is not None else None
    return console if console.is_terminal else None


def _print_note(event: Event) -> None:
    """Print what is worth a line."""
    if event.note:
        print(f"[FasTR] {event.note}", flush=True)  # noqa: T201


class Bar:
    """A bar of rich for the stage that is under way, with the time that the whole takes.

    Parameters
    ----------
    console : rich.console.Console
    """

    def __init__(self, console: Any) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        # What a notebook shows is printed: redirected, it would be shown anew without end.
        redirect = not console.is_jupyter
        options: dict[str, Any] = {"redirect_stdout": redirect, "redirect_stderr": redirect}
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("at most"),
            TimeRemainingColumn(),
            TextColumn("left of this stage;"),
            TimeElapsedColumn(),
            TextColumn("in all"),
        )
        self._progress = Progress(*columns, console=console, transient=True, **options)
        self._task = self._progress.add_task("starting", total=None)
        self._last = Event("", 0, 0)

    def __enter__(self) -> Watcher:
        self._progress.start()
        return self.show

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def show(self, event: Event) -> None:
        """Move the bar, or begin it anew for another stage; notes stand above it."""
        if event.note:
            self._progress.console.print(event.note, style="dim", highlight=False, markup=False)
        if event.stage != self._last.stage or event.done <= self._last.done:
            self._begin(event)
        self._last = event
        self._progress.update(self._task, completed=event.done)

    def _begin(self, event: Event) -> None:
        """Count a new stage from its start; the clock of the whole goes on."""
        task = self._progress.tasks[0]
        began = task.start_time
        self._progress.reset(self._task, total=event.total, description=event.stage)
        task.start_time = began


class _CallbackWatcher:
    """Turns events into tasks of scikit-learn's callbacks: a stage, and a task for each step."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._root: Any = None
        self._stage: Any = None
        self._done = 0

    def __enter__(self) -> Self:
        self._root = self._estimator._init_callback_context(max_subtasks=None)
        self._root.call_on_fit_task_begin(estimator=self._estimator)
        return self

    def __call__(self, event: Event) -> None:
        if self._stage is None or self._stage.task_name != event.stage or event.done <= self._done:
            self._end_stage()
            self._stage = self._root.subcontext(task_name=event.stage, max_subtasks=event.total)
            self._stage.call_on_fit_task_begin(estimator=self._estimator)
        self._done = event.done
        step = self._stage.subcontext(task_name="step")
        step.call_on_fit_task_begin(estimator=self._estimator)
        step.call_on_fit_task_end(estimator=self._estimator)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._end_stage()
            self._root.call_on_fit_task_end(estimator=self._estimator)

    def _end_stage(self) -> None:
        if self._stage is not None:
            self._stage.call_on_fit_task_end(estimator=self._estimator)
