"""Work on blocks of samples or models in a few threads, each with a single-threaded BLAS."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _blas() -> ThreadpoolController:
    """Find the loaded BLAS libraries once; the search takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


class _SingleThreadedBlas:
    """A BLAS limit that fits running side by side share, so that the last one restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limiter: Any = None
        self._threads = 1

    @contextmanager
    def __call__(self) -> Iterator[int]:
        """Limit BLAS to one thread; yield how many threads it had."""
        with self._lock:
            if self._users == 0:
                blas = _blas()
                self._threads = max((lib["num_threads"] for lib in blas.info()), default=1)
                self._limiter = blas.limit(limits=1)
            self._users += 1
        try:
            yield self._threads
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._limiter.restore_original_limits()


_single_threaded_blas = _SingleThreadedBlas()


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Keep the threads: a sweep asks for them many times."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="pyfastr")


# A forked process has none of its parent's threads and must start its own.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def map_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply `work` to every item, with as many threads as BLAS would use.

    Contractions of a block are many small BLAS calls that gain nothing from a threaded BLAS;
    whole blocks side by side do (about 2 x on two cores). A limit set by the user or by joblib
    is kept, because the number of threads is the one BLAS has.
    """
    if len(items) < 2:
        return [work(item) for item in items]
    with _single_threaded_blas() as n_threads:
        if n_threads < 2:
            return [work(item) for item in items]
        return list(_pool(n_threads).map(work, items))
