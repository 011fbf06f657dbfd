"""Work on blocks of samples or models in a few threads, each with a single-threaded BLAS."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from pyfastr.engines.solving import solve
from pyfastr.sources import Source

Item = TypeVar("Item")
Result = TypeVar("Result")
Array = NDArray[Any]

# Of a result, up to which numpy lets no other thread work.
LOCKED_ENTRIES = 500
# Items begun or done for each thread before the first of them is wanted.
AHEAD = 3
# Bytes of memory that a thread keeps for each use.
MOST_SCRATCH = 32 << 20
# X of so many bytes is multiplied sooner than threads of BLAS are woken and waited for.
SMALL_BYTES = 1 << 20


@cache
def _blas() -> list[Any]:
    """Find the loaded BLAS libraries once; the search takes milliseconds."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class SingleThreadedBlas:
    """A BLAS limit that one caller sets and lifts; others running side by side share it.

    Both must happen in one thread: to threadpoolctl OpenBLAS belongs to the thread that limits
    it, and what others ask for is silently ignored.

    Parameters
    ----------
    find : callable
        Returns the libraries, as threadpoolctl controls them.
    """

    def __init__(self, find: Callable[[], Sequence[Any]]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._holder: object | None = None
        self._threads = 1

    @property
    def is_set(self) -> bool:
        """Whether BLAS is limited now."""
        return self._holder is not None

    @contextmanager
    def __call__(self) -> Iterator[int]:
        """Limit BLAS to one thread; yield how many threads it had."""
        own, before = object(), list[int]()
        try:
            if self._take(own):
                # Ctrl-C may fall between any two calls: what was before is known before it changes.
                libraries = self._find()
                before += [library.num_threads for library in libraries]
                self._threads = max(before, default=1)
                # By the libraries themselves: a limit of threadpoolctl's own takes ten times as
                # long.
                for library in libraries:
                    library.set_num_threads(1)
            yield self._threads
        finally:
            if self._holder is own:
                try:
                    self._lift(before)
                except KeyboardInterrupt:
                    self._lift(before)
                    raise

    def _take(self, own: object) -> bool:
        """Become the one who limits, if nobody does."""
        with self._lock:
            if self._holder is None:
                self._holder = own
            return self._holder is own

    def renew_lock(self) -> None:
        """Begin with a lock of one's own; that of a parent process may be held for ever."""
        self._lock = threading.Lock()

    def _lift(self, before: list[int]) -> None:
        """Give the libraries their threads back; may be done twice."""
        for library, n_threads in zip(self._find(), before, strict=False):
            library.set_num_threads(n_threads)
            if hasattr(library, "clear_controlling_thread"):
                # Only one thread may limit OpenBLAS until it says that it is done.
                library.clear_controlling_thread()
        self._holder = None


_single_threaded_blas = SingleThreadedBlas(_blas)


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Keep the threads: a sweep asks for them many times."""
    return ThreadPoolExecutor(n_threads, "pyfastr-worker", initializer=_be_alone)


class _Alone(threading.local):
    """Whether a thread starts no others: waiting for these could be for ever."""

    is_so = False


_alone = _Alone()


def _be_alone() -> None:
    _alone.is_so = True


@contextmanager
def limited_blas() -> Iterator[None]:
    """Limit BLAS to one thread for many calls of `map_threads`, each of which would do so."""
    with _single_threaded_blas():
        yield


@contextmanager
def blas_for(source: Source) -> Iterator[None]:
    """Limit BLAS to one thread for all that is done with X, if that is small.

    Where other work has the cores, waiting for a second thread takes longer than all products.
    """
    is_small = prod(source.shape) * source.dtype.itemsize <= SMALL_BYTES
    with _single_threaded_blas() if is_small else nullcontext():
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep to this thread and to a single-threaded BLAS: others have work for the other cores."""
    errors = np.geterr()
    before, _alone.is_so = _alone.is_so, True
    try:
        with _single_threaded_blas():
            np.seterr(invalid="ignore")
            yield
    finally:
        np.seterr(**errors)
        _alone.is_so = before


# A forked process has none of its parent's threads and must start its own.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_single_threaded_blas.renew_lock)


class _Rooms(threading.local):
    """Memory that a thread uses again and again."""

    def __init__(self) -> None:
        self.of: dict[str, Array] = {}


_rooms = _Rooms()


def scratch(shape: tuple[int, ...], dtype: Any, use: str) -> Array:
    """Return an array to fill, which the thread's next call for the same use overwrites.

    The system hands out new memory no faster than a matrix product takes to use it. Only little is
    kept for that.
    """
    n_bytes = prod(shape) * np.dtype(dtype).itemsize
    if n_bytes > MOST_SCRATCH:
        return np.empty(shape, dtype)
    room = _rooms.of.get(use)
    if room is None or len(room) < n_bytes:
        room = _rooms.of[use] = np.empty(n_bytes, np.uint8)
    return room[:n_bytes].view(dtype).reshape(shape)


def solve_vectors(matrices: Array, vectors: Array) -> Array:
    """Solve a stack of equations for one vector ``(K, q)`` each, while other threads work."""
    rhs = np.repeat(vectors[:, :, None], unlocking_columns(vectors.size), axis=2)
    return solve(matrices, rhs)[..., 0]


def unlocking_columns(n_rows: int) -> int:
    """Return how many columns a result of so many rows in all needs for threads to share the work.

    numpy keeps the interpreter locked while it makes a result of up to 500 entries, however long
    that takes, and no other thread works meanwhile.
    """
    return LOCKED_ENTRIES // max(1, n_rows) + 1


def map_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply `work` to every item, with as many threads as BLAS would use."""
    if _alone.is_so:
        # Whoever called has seen to BLAS already.
        return [work(item) for item in items]
    if len(items) == 1 and _single_threaded_blas.is_set:
        with _quiet():
            return [work(items[0])]
    return list(in_order(work, items))


def _quiet() -> np.errstate:
    """Keep numpy from warning of what BLAS does.

    Its kernels now and then raise the flag of an invalid operation on finite numbers, with a right
    result (numpy issue 24067), and matmul warns of it. X has been checked.
    """
    return np.errstate(invalid="ignore")


def in_order(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Apply `work` to every item in a few threads; yield the results in the order of the items.

    Contractions of a block are many small BLAS calls that gain nothing from a threaded BLAS;
    whole blocks side by side do (about 2 x on two cores). A limit set by the user or by joblib
    is kept, because the number of threads is the one BLAS has.
    """

    def quietly(item: Item) -> Result:
        with _quiet():
            return work(item)

    with _single_threaded_blas() as n_threads:
        if n_threads < 2 or len(items) < 2 or _alone.is_so:
            yield from map(quietly, items)
        else:
            yield from _a_few_ahead(_pool(n_threads), quietly, items, AHEAD * n_threads)


def _a_few_ahead(
    pool: ThreadPoolExecutor, work: Callable[[Item], Result], items: Sequence[Item], most: int
) -> Iterator[Result]:
    """Yield results in order; no more than so many wait, as those of all blocks may be large."""
    pending: deque[Future[Result]] = deque()
    try:
        for item in items:
            if len(pending) == most:
                yield pending.popleft().result()
            pending.append(pool.submit(work, item))
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()
