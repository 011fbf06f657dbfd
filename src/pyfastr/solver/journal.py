"""A journal of the solver's long loops, from which an interrupted fit goes on.

Given data, settings and seed, a fit is one sequence of loops, each a sequence of steps. The journal
numbers the loops as they begin, and knows of each where it stands, or how it ended. Told of the
same loops again, it puts them where they stood: those that had ended take no step, the open one
goes on, and all that follows is the same to the last bit.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

Value = TypeVar("Value")
Kind = TypeVar("Kind", bound=type)
# Arrays, numbers, text and None, and lists and dictionaries of these.
Tree = Any
# Where a tree says which class a dictionary was made of.
KIND = "kind"

_kinds: dict[str, type] = {}


def remembered(kind: Kind) -> Kind:
    """Let dataclasses of this kind be part of what a loop remembers."""
    _kinds[kind.__name__] = kind
    return kind


class Remembers(Protocol):
    """What a loop changes: its own state, streams of random numbers, what an engine keeps."""

    def memory(self) -> dict[str, Any]:
        """Return where it stands; arrays in there are never written to."""

    def recall(self, memory: dict[str, Any]) -> None:
        """Stand there again."""


class State:
    """The state of a loop, all of it in attributes whose arrays are replaced, never written to."""

    def memory(self) -> dict[str, Any]:
        """Return the attributes."""
        return dict(vars(self))

    def recall(self, memory: dict[str, Any]) -> None:
        """Set the attributes."""
        vars(self).update(memory)


class Held(State, Generic[Value]):
    """The state of a loop that changes one value.

    Attributes
    ----------
    value : object
    """

    def __init__(self, value: Value) -> None:
        self.value = value


@dataclass(frozen=True)
class Entry:
    """Where a loop stands.

    Attributes
    ----------
    name : str
    n_steps : int
        Steps that it has at most.
    shapes : list of list of int
        Of the arrays in the state that it began from.
    n_done : int
    ended : bool
    memories : list
        What each of its parts remembers, as trees.
    """

    name: str
    n_steps: int
    shapes: list[list[int]]
    n_done: int
    ended: bool
    memories: list[Tree]

    def is_like(self, other: "Entry") -> bool:
        """Whether both are of a loop that began alike."""
        own, its = ((e.name, e.n_steps, e.shapes) for e in (self, other))
        return own == its


class Journal:
    """Where the loops of a fit stand, written down now and then.

    Parameters
    ----------
    write : callable
        Given the entries of all loops so far, writes them.
    known : sequence of Entry
        What an earlier, interrupted fit wrote.
    interval : float
        Seconds between two writings at least.
    clock : callable
        Says how late it is, in seconds.
    """

    def __init__(
        self,
        write: Callable[[list[Entry]], None],
        known: Sequence[Entry] = (),
        interval: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write, self._interval, self._clock = write, interval, clock
        self._known, self._entries = list(known), list[Entry]()
        self._written_at, self._is_written = clock(), True

    def steps(
        self, name: str, n_steps: int, parts: Sequence[Remembers], over: Callable[[], bool]
    ) -> Iterator[int]:
        """Yield the numbers of the steps that are left to do."""
        now = Entry(name, n_steps, _shapes(parts[0].memory()), 0, False, [])
        now = self._find(now) or now
        if now.memories:
            for part, memory in zip(parts, now.memories, strict=True):
                part.recall(_unpacked(memory))
        self._entries.append(now)
        if now.ended:
            return
        while now.n_done < n_steps and not over():
            yield now.n_done
            memories = [_packed(part.memory()) for part in parts]
            now = replace(now, n_done=now.n_done + 1, memories=memories)
            self._note(now)
        self._note(replace(now, ended=True, memories=[_packed(part.memory()) for part in parts]))

    def write(self) -> None:
        """Write how all loops stand, if that is news."""
        if not self._is_written:
            self._write(self._entries)
            self._is_written, self._written_at = True, self._clock()

    def _find(self, begun: Entry) -> Entry | None:
        """Return where the next loop stood; what does not fit it has no use any more."""
        number = len(self._entries)
        if number < len(self._known) and self._known[number].is_like(begun):
            return self._known[number]
        self._known.clear()
        return None

    def _note(self, now: Entry) -> None:
        """Take note of the newest loop, and write if it is time."""
        self._entries[-1], self._is_written = now, False
        if self._clock() - self._written_at >= self._interval:
            self.write()


_journal: ContextVar[Journal | None] = ContextVar("journal", default=None)


@contextmanager
def journaling(journal: Journal | None) -> Iterator[None]:
    """Let a journal follow the loops in the block, or none."""
    before = _journal.get()
    try:
        _journal.set(journal)
        yield
    finally:
        _journal.set(before)


def steps(
    name: str, n_steps: int, *parts: Remembers, over: Callable[[], bool] = lambda: False
) -> Iterator[int]:
    """Yield the numbers of a loop's steps, less those that a journal has done already.

    Parameters
    ----------
    name : str
    n_steps : int
    *parts : Remembers
        All that the steps change, the loop's own state first.
    over : callable
        Says before each step whether the loop ends early. It must not end in any other way.
    """
    journal = _journal.get()
    if journal is not None:
        yield from journal.steps(name, n_steps, parts, over)
        return
    for number in range(n_steps):
        if over():
            return
        yield number


def once(name: str, make: Callable[[], Value], *parts: Remembers) -> Value:
    """Return what a function makes, or what it had made by a journal.

    Parameters
    ----------
    name : str
    make : callable
    *parts : Remembers
        What it changes.
    """
    made: Held[Any] = Held(None)
    for _ in steps(name, 1, made, *parts):
        made.value = make()
    result: Value = made.value
    return result


def _packed(value: Any) -> Tree:
    """Return a value as a tree, whose arrays are those of the value."""
    if isinstance(value, list | tuple):
        return [_packed(item) for item in value]
    if isinstance(value, dict):
        return {name: _packed(item) for name, item in value.items()}
    if is_dataclass(value):
        own = {f.name: _packed(getattr(value, f.name)) for f in fields(value)}
        return {KIND: type(value).__name__, **own}
    return value


def _unpacked(tree: Tree) -> Any:
    """Return the value that a tree was made of; tuples are lists."""
    if isinstance(tree, list):
        return [_unpacked(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    own = {name: _unpacked(item) for name, item in tree.items()}
    kind = own.pop(KIND, None)
    return own if kind is None else _kinds[kind](**own)


def _shapes(value: Any) -> list[list[int]]:
    """Return the shapes of all arrays in a value."""
    if isinstance(value, np.ndarray):
        return [list(value.shape)]
    tree = _packed(value)
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return [shape for part in parts for shape in _shapes(part)]
