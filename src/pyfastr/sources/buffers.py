"""Memory of blocks that nobody uses any more, for the next ones."""

import os
import sys
import threading
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# References to an array that only the pool knows: its own, and two while it is looked at.
_UNUSED = 3


class Buffers:
    """Arrays to fill, in memory that earlier ones have left.

    The system clears new memory before it hands it out, which takes longer than copying a block
    from the system's cache. Memory is used again once no array refers to it.

    Parameters
    ----------
    most : int
        How many buffers to remember.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._buffers: list[Array] = []
        self._renew_lock()
        # Without the lock of the interpreter references are not counted at once.
        self._can_count = getattr(sys, "_is_gil_enabled", lambda: True)()

    def _renew_lock(self) -> None:
        """Begin with a lock of this process; that of a parent may be held for ever."""
        self._process, self._lock = os.getpid(), threading.Lock()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array to fill."""
        n_bytes = prod(shape) * dtype.itemsize
        if not self._can_count or not n_bytes:
            return np.empty(shape, dtype)
        if self._process != os.getpid():
            self._renew_lock()
        with self._lock:
            return self._unused(n_bytes)[:n_bytes].view(dtype).reshape(shape)

    def _unused(self, n_bytes: int) -> Array:
        """Find a buffer that no array refers to and that is large enough, or make one."""
        for number in range(len(self._buffers)):
            buffer = self._buffers[number]
            if len(buffer) >= n_bytes and sys.getrefcount(buffer) <= _UNUSED:
                return buffer
        new = np.empty(n_bytes, np.uint8)
        # Those in use longest belong to blocks that stay, or are too small.
        self._buffers = [*self._buffers, new][-self._most :]
        return new
