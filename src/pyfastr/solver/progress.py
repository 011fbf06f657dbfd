"""What long work tells whoever watches: the stage it is in, and how far it got."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """A step that is done.

    Attributes
    ----------
    stage : str
        What is being done.
    done, total : int
        Steps of the stage, which may end before all of them are needed.
    note : str
        A sentence worth a line of its own; often empty.
    """

    stage: str
    done: int
    total: int
    note: str = ""


Watcher = Callable[[Event], None]

_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())


def is_watched() -> bool:
    """Whether somebody watches already."""
    return bool(_watchers.get())


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Let a function hear of every event in the block, beside those that watch already.

    Parameters
    ----------
    watcher : callable
        Takes an `Event`.
    """
    before = _watchers.get()
    try:
        _watchers.set((*before, watcher))
        yield
    finally:
        _watchers.set(before)


@contextmanager
def unwatched() -> Iterator[None]:
    """Let nobody hear of steps in the block: those of a part would hide those of the whole."""
    before = _watchers.get()
    try:
        _watchers.set(())
        yield
    finally:
        _watchers.set(before)


def tell(stage: str, done: int, total: int, note: str = "") -> None:
    """Tell of a step, if anybody watches.

    Parameters
    ----------
    stage : str
    done, total : int
    note : str, default=""
    """
    for watcher in _watchers.get():
        watcher(Event(stage, done, total, note))
