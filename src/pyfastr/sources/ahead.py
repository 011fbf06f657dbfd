"""Blocks that a thread reads before they are wanted, and blocks that stay."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

# Blocks read ahead: one for a thread that is about to end its work, one in the making.
DEPTH = 2
# Blocks that were read ahead for a pass that ended early; more are given up.
STRAY = 2


class ReadAhead:
    """Blocks by number, for passes that want them in order; several threads may ask.

    Parameters
    ----------
    load : callable
        Makes the block of a slice of samples; one thread calls it.
    slices : sequence of slice
    room : int
        Bytes of blocks to keep for later passes: the first ones that are read.
    at_hand : callable, optional
        Makes a block if there is nothing to wait for, and else returns None; any thread calls it.
        What need not be waited for is best copied where it is worked on, into that core's cache.
    """

    def __init__(
        self,
        load: Callable[[slice], Array],
        slices: Sequence[slice],
        room: int,
        at_hand: Callable[[slice], Array | None] | None = None,
    ) -> None:
        self._load, self._slices, self._room = load, slices, room
        self._at_hand = at_hand
        self._kept: dict[int, Array] = {}
        self._begin()

    def _begin(self) -> None:
        """Start without a thread; a forked process has none of its parent's."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._reader: ThreadPoolExecutor | None = None
        self._pending: dict[int, Future[Array]] = {}

    def read(self, number: int) -> Array:
        """Return one block; unless it is at hand, have the next ones read meanwhile."""
        if self._process != os.getpid():
            self._begin()
        with self._lock:
            block = self._kept.get(number)
            future = self._pending.pop(number, None)
        if self._at_hand is not None and future is None:
            block = self._at_hand(self._slices[number]) if block is None else block
            if block is not None:
                self._keep(number, block)
                return block
        with self._lock:
            if block is None and future is None:
                # Another thread may have asked for it while this one looked.
                future = self._pending.pop(number, None) or self._submit(number)
            self._read_next(number)
        if block is None:
            assert future is not None
            try:
                block = future.result()
            finally:
                # An error would refer to it, and it to the error: the thread would stay with both.
                del future
            self._keep(number, block)
        return block

    def peek(self, number: int) -> Array | None:
        """Return a block that has stayed in memory."""
        return self._kept.get(number)

    def _submit(self, number: int) -> "Future[Array]":
        if self._reader is None:
            self._reader = ThreadPoolExecutor(1, thread_name_prefix="pyfastr-reader")
        return self._reader.submit(self._load, self._slices[number])

    def _read_next(self, number: int) -> None:
        """Ask for the blocks that follow in this pass."""
        if len(self._kept) == len(self._slices):
            return
        following = (i for i in range(number + 1, len(self._slices)) if i not in self._kept)
        for _, i in zip(range(DEPTH), following, strict=False):
            if i not in self._pending:
                self._pending[i] = self._submit(i)
        while len(self._pending) > DEPTH + STRAY:
            self._pending.pop(next(iter(self._pending))).cancel()

    def _keep(self, number: int, block: Array) -> None:
        """Let a block stay if there is room."""
        with self._lock:
            if number not in self._kept and block.nbytes <= self._room:
                self._kept[number] = block
                self._room -= block.nbytes
