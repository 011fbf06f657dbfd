"""Dask arrays on the user's cluster: chunks that stay with its workers."""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.manners import ArrayManners
from pyfastr.sources.memory import ArraySource, working_dtype
from pyfastr.sources.symmetry import Pair, symmetric_in
from pyfastr.sources.waiting import (
    Terms,
    cancel,
    gathered,
    settle,
    wait_for_workers,
    workers_of,
    working,
)

Array = NDArray[Any]

_log = logging.getLogger("pyfastr")


def client_of(X: Any) -> Any:
    """Return the client of a cluster that would compute a Dask array; None for other schedulers."""
    if "distributed" not in sys.modules:
        return None
    scheduler = import_module("dask.base").get_scheduler(collections=[X])
    client = getattr(scheduler, "__self__", None)
    return client if isinstance(client, import_module("distributed").Client) else None


@dataclass(frozen=True, eq=False)
class Part:
    """Chunks that one thread of one worker works on.

    Attributes
    ----------
    worker : str or None
        Where they are; None where chunks are computed for every pass.
    numbers : tuple of int
        Of the chunks, ascending.
    held : object
        A future of all of them as `Arrays`, or a list of one that is not computed yet.
    """

    worker: str | None
    numbers: tuple[int, ...]
    held: Any


class Arrays:
    """Arrays of a part, in the memory of a worker.

    Parameters
    ----------
    arrays : sequence of ndarray
    n_bytes : int
        What the worker is to count them as: those that it counts elsewhere count nothing here.
    """

    def __init__(self, arrays: Sequence[Array], n_bytes: int) -> None:
        self._arrays, self._n_bytes = arrays, n_bytes

    def __iter__(self) -> Iterator[Array]:
        return iter(self._arrays)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._n_bytes


class ClusterSource(ArrayManners):
    """Chunks of a Dask array where the workers of a cluster hold them.

    They are computed once and stay in the workers' memory if they fit there. Reading samples brings
    them here; an engine works on the chunks where they are.

    Parameters
    ----------
    X : dask.array.Array
        Chunked along the samples only.
    client : distributed.Client
    advice : str
        What a person should know of the chunks; mostly nothing.
    terms : Terms

    Attributes
    ----------
    parts : list of Part
        All chunks; parts of workers that are gone are replaced.
    is_persisted : bool
        Whether the chunks stay with the workers.
    """

    in_memory = False

    def __init__(self, X: Any, client: Any, advice: str = "", terms: Terms | None = None) -> None:
        self.shape: tuple[int, ...] = tuple(map(int, X.shape))
        self.stored_dtype, self.dtype = X.dtype, working_dtype(X.dtype)
        self.client, self.advice, self.terms = client, advice, terms or Terms()
        self._X, self._looked = X, time.monotonic()
        edges = (0, *accumulate(map(int, X.chunks[0]))) if X.ndim else (0,)
        self.slices = tuple(slice(i, j) for i, j in pairwise(edges) if i < j)
        pairs = zip(X.to_delayed().ravel(), pairwise(edges), strict=True) if X.ndim else ()
        self._chunks = [chunk for chunk, (i, j) in pairs if i < j]
        room = self.terms.memory_share * _memory_of(wait_for_workers(client, self.terms))
        self._is_shared = _are_held(X, self._chunks)
        self.is_persisted = self._is_shared or X.nbytes <= room
        # Chunks of another type are converted once if that fits too.
        self._kept_dtype = self.dtype if prod(self.shape) * self.dtype.itemsize <= room else X.dtype
        _log.info(
            "X, a Dask array of %.1f MB in %d chunks, %s",
            X.nbytes / 1e6,
            len(self.slices),
            self._where(),
        )
        self.parts = self._all_parts()

    def _where(self) -> str:
        """Say what becomes of the chunks."""
        if self._is_shared:
            return "is with the workers already and stays there."
        if self.is_persisted:
            return "is computed once and stays with the workers."
        return "exceeds the workers' memory: every pass computes its chunks anew."

    @cached_property
    def here(self) -> ArraySource:
        """All samples, brought here once."""
        return ArraySource(self.read(slice(0, self.shape[0])))

    def read(self, rows: slice) -> Array:
        """Bring the C-contiguous block of these samples here."""

        def start(parts: Sequence[Part]) -> list[Any]:
            wanted = [part for part in parts if any(map(overlaps, part.numbers))]
            return self.work([partial(_rows_of, self._cuts(part, rows)) for part in wanted], wanted)

        def overlaps(number: int) -> bool:
            own = self.slices[number]
            return own.start < rows.stop and own.stop > rows.start

        found = sorted((pair for own in self.results(start) for pair in own), key=lambda p: p[0])
        return np.concatenate([values.astype(self.dtype, copy=False) for _, values in found])

    def _cuts(self, part: Part, rows: slice) -> list[tuple[int, slice]]:
        """Return the number of each chunk of a part, and which of its samples are among `rows`."""
        firsts = [self.slices[number].start for number in part.numbers]
        cuts = [slice(max(0, rows.start - i), max(0, rows.stop - i)) for i in firsts]
        return list(zip(part.numbers, cuts, strict=True))

    def looks(self, pairs: tuple[Pair, ...]) -> list[tuple[float, float, tuple[Pair, ...]]]:
        """Return the smallest and the largest entry of every chunk, found where it is.

        And those pairs of modes in which its samples are symmetric.
        """

        def start(parts: Sequence[Part]) -> list[Any]:
            return self.work([partial(_looks, part.numbers, pairs) for part in parts], parts)

        found = sorted(look for own in self.results(start) for look in own)
        return [(low, high, own) for _, low, high, own in found]

    def place(self, sample: int) -> str:
        """Name the chunk of a sample."""
        number = next(i for i, own in enumerate(self.slices) if own.start <= sample < own.stop)
        return f"chunk {number} of the Dask array"

    def take(self, which: Array) -> "ClusterSource":
        """Return some samples, by ascending number, which stay with the workers too."""
        return ClusterSource(self._X[which], self.client, terms=self.terms)

    def results(self, start: Callable[[Sequence[Part]], Sequence[Any]]) -> list[Any]:
        """Return the results of tasks that work on the parts.

        If the cluster has forgotten what the tasks need, all parts are made once more.

        Parameters
        ----------
        start : callable
            Given the parts, returns futures.
        """
        forgotten = import_module("distributed").CancelledError
        try:
            self._replace_lost_parts()
            return gathered(self.client, start(self.parts), self.terms)
        except forgotten:
            _log.info("The cluster has forgotten X, a Dask array: its chunks are computed again.")
        try:
            self.parts = self._all_parts()
            return gathered(self.client, start(self.parts), self.terms)
        except forgotten as error:
            raise RuntimeError(
                "X is a Dask array whose cluster has lost data that it cannot make again, such as "
                "those that were persisted before it was restarted. Load X anew and fit again."
            ) from error

    def work(
        self,
        functions: Sequence[Callable[..., Any]],
        parts: Sequence[Part],
        *beside: Sequence[Any],
    ) -> list[Any]:
        """Start functions of futures and of what a part holds, each where its part is."""
        columns = zip(*beside, [part.held for part in parts], strict=True)
        if self.is_persisted:
            return self.submit(functions, parts, columns)
        delayed = import_module("dask").delayed
        pairs = zip(functions, columns, strict=True)
        tasks = [delayed(function, pure=False)(*own) for function, own in pairs]
        with _without_advice_on_size():
            return list(self.client.compute(tasks))

    def submit(
        self,
        functions: Sequence[Callable[..., Any]],
        parts: Sequence[Part],
        arguments: Iterable[Sequence[Any]],
    ) -> list[Any]:
        """Start functions of futures, each where its part is."""
        with _without_advice_on_size():
            return [
                self.client.submit(function, *own, pure=False, **_at(part.worker))
                for function, part, own in zip(functions, parts, arguments, strict=True)
            ]

    def _all_parts(self) -> list[Part]:
        """Share all chunks out: to the threads of workers that hold them, or each by itself."""
        numbers = range(len(self._chunks))
        if self.is_persisted and numbers:
            return self._hold(numbers)
        delayed = import_module("dask").delayed
        check = [
            delayed(partial(_checked, self._expected(number)), pure=False) for number in numbers
        ]
        return [Part(None, (number,), [check[number](self._chunks[number])]) for number in numbers]

    def _hold(self, numbers: Sequence[int]) -> list[Part]:
        """Compute some chunks and have those of a thread held together."""
        chunks = dict(
            zip(numbers, self.client.compute([self._chunks[i] for i in numbers]), strict=True)
        )
        self._settle(chunks)
        parts = []
        for worker, own in _grouped(self.client, chunks):
            hold = partial(_held, list(map(self._expected, own)), self._kept_dtype, self._is_shared)
            several = [chunks[number] for number in own]
            held = self.client.submit(hold, several, pure=False, **_at(worker))
            parts.append(Part(worker, own, held))
        settle(self.client, [part.held for part in parts], self.terms)
        return parts

    def _expected(self, number: int) -> tuple[slice, tuple[int, ...]]:
        """Return which samples a chunk has, and the shape it was announced with."""
        rows = self.slices[number]
        return rows, (rows.stop - rows.start, *self.shape[1:])

    def _settle(self, chunks: dict[int, Any]) -> None:
        """Wait for chunks; an error of the user's own function says for which samples it failed."""
        try:
            settle(self.client, list(chunks.values()), self.terms)
        except BaseException as error:
            failed = [number for number, chunk in chunks.items() if chunk.status == "error"]
            if failed:
                rows = self.slices[failed[0]]
                error.add_note(
                    f"This happened as samples {rows.start} to {rows.stop - 1} of X, a Dask array, "
                    "were computed."
                )
            if not self._is_shared:
                cancel(self.client, list(chunks.values()))
            raise

    def _replace_lost_parts(self) -> None:
        """Share out anew what workers held that are gone; look for them now and then."""
        is_open = self.client.status == "running"
        if is_open and time.monotonic() - self._looked < self.terms.look:
            return
        workers = workers_of(self.client)
        lost = [part for part in self.parts if part.worker and part.worker not in workers]
        if lost and workers:
            numbers = sorted(number for part in lost for number in part.numbers)
            _log.info(
                "%d chunks of X were with workers that are gone; others take over.", len(numbers)
            )
            self.parts = [part for part in self.parts if part not in lost]
            self.parts += self._hold(numbers)
        self._looked = time.monotonic()


def _at(worker: str | None) -> dict[str, Any]:
    """Name the worker of a task; if it has died, another will do."""
    return {"workers": [worker], "allow_other_workers": True} if worker else {}


def _grouped(client: Any, chunks: dict[int, Any]) -> list[tuple[str | None, tuple[int, ...]]]:
    """Return chunks by number for every thread of the workers that hold them."""
    holders, workers = client.who_has(list(chunks.values())), working(client)
    of_worker: dict[str | None, list[int]] = {}
    for number, chunk in chunks.items():
        # Of a worker that has just died, the chunks are on their way to others.
        holding = [own for own in holders.get(chunk.key, ()) if own in workers] or list(workers)
        least = min(holding, key=lambda own: (len(of_worker.get(own, ())), own), default=None)
        of_worker.setdefault(least, []).append(number)
    groups = []
    for worker, numbers in of_worker.items():
        n_threads = workers[worker]["nthreads"] if worker else 1
        parts = np.array_split(numbers, min(n_threads, len(numbers)))
        groups += [(worker, tuple(part.tolist())) for part in parts]
    return groups


def _are_held(X: Any, chunks: Sequence[Any]) -> bool:
    """Whether workers have all chunks already, because the user has persisted X."""
    futures = import_module("distributed").futures_of(X)
    held = {future.key for future in futures if future.status in ("finished", "pending")}
    return bool(chunks) and all(chunk.key in held for chunk in chunks)


def _without_advice_on_size() -> Any:
    """Keep Dask from advising users to load data in another way that are not theirs to load."""
    config = import_module("dask").config
    return config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"})


def _held(
    expected: Sequence[tuple[slice, tuple[int, ...]]],
    dtype: np.dtype[Any],
    is_shared: bool,
    chunks: Sequence[Any],
) -> Arrays:
    """Hold chunks together in one type and order; those that have both are not copied."""
    pairs = zip(expected, chunks, strict=True)
    arrays = [np.ascontiguousarray(_checked(own, chunk), dtype=dtype) for own, chunk in pairs]
    copied = [a for a, chunk in zip(arrays, chunks, strict=True) if not is_shared or a is not chunk]
    return Arrays(arrays, sum(array.nbytes for array in copied))


def _checked(expected: tuple[slice, tuple[int, ...]], chunk: Any) -> Array:
    """Refuse what is not the chunk that was announced."""
    rows, shape = expected
    if not isinstance(chunk, np.ndarray) or chunk.shape != shape:
        raise ValueError(
            f"X is a Dask array whose samples {rows.start} to {rows.stop - 1} turned out to be "
            f"{type(chunk).__name__} of shape {np.shape(chunk)}; expected a NumPy array of shape "
            f"{shape}. Mend the function that makes its chunks, or give map_blocks their true "
            "shape."
        )
    return chunk


def _rows_of(cuts: Sequence[tuple[int, slice]], held: Iterable[Array]) -> list[tuple[int, Array]]:
    return [(number, chunk[cut]) for (number, cut), chunk in zip(cuts, held, strict=True)]


def _looks(
    numbers: Sequence[int], pairs: tuple[Pair, ...], held: Iterable[Array]
) -> list[tuple[int, float, float, tuple[Pair, ...]]]:
    return [
        (number, float(own.min()), float(own.max()), symmetric_in(own, pairs))
        for number, own in zip(numbers, held, strict=True)
    ]


def _memory_of(workers: dict[str, Any]) -> float:
    """Bytes of memory that workers have; infinite if they tell no limit."""
    return float(sum(worker.get("memory_limit") or np.inf for worker in workers.values()))
