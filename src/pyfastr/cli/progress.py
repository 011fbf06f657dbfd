"""What a run tells while it goes on: a display for a terminal, lines for a file."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pyfastr.experiments.plan import Unit
from pyfastr.experiments.store import Result

_A_DAY = 86_400.0


class LiveDisplay:
    """A line that says what runs, how far it is, and how long it may take yet.

    Parameters
    ----------
    console : Console
        Of a terminal.
    """

    def __init__(self, console: Console) -> None:
        # A thread that refreshes it would not survive the forks of the runner, and might hold a
        # lock while one is made: the runner calls `tick` instead.
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("rest about"),
            TimeRemainingColumn(),
            console=console,
            auto_refresh=False,
            # One fit may take minutes: the rest is guessed by all of them.
            speed_estimate_period=_A_DAY,
        )
        self._task = self._progress.add_task("starting", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def progress(self, n_answered: int, n_fits: int) -> None:
        """Show how far it is."""
        self._progress.update(self._task, completed=n_answered, total=n_fits)
        self._progress.refresh()

    def doing(self, unit: Unit, what: str) -> None:
        """Show what runs."""
        text = f"{unit.problem.title}, trial {unit.trial + 1}: {what}"
        self._progress.update(self._task, description=text)
        self._progress.refresh()

    def tick(self) -> None:
        """Move the spinner."""
        self._progress.refresh()

    def found(self, unit: Unit, result: Result) -> None:
        """Move on by one fit."""
        self._progress.advance(self._task)
        self._progress.refresh()


class LineDisplay:
    """A line for every result.

    Parameters
    ----------
    console : Console
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave nothing behind."""

    def progress(self, n_answered: int, n_fits: int) -> None:
        """Keep silent: each result has a line."""

    def doing(self, unit: Unit, what: str) -> None:
        """Keep silent: its result will have a line."""

    def tick(self) -> None:
        """Keep silent."""

    def found(self, unit: Unit, result: Result) -> None:
        """Print the result."""
        metrics = ", ".join(f"{name} {value:.4g}" for name, value in result.metrics.items())
        self._console.print(
            f"{unit.problem.title} trial {unit.trial + 1} {result.method}: {result.status}, "
            f"{result.seconds:.2f} s, {metrics or result.reason}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def display_for(console: Console) -> LiveDisplay | LineDisplay:
    """Return the display that suits who watches.

    Parameters
    ----------
    console : Console

    Returns
    -------
    LiveDisplay or LineDisplay
    """
    return LiveDisplay(console) if console.is_terminal else LineDisplay(console)
