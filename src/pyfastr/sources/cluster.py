"""Dask arrays on the user's cluster: chunks that stay with its workers."""

import logging
import sys
import time
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.manners import ArrayManners
from pyfastr.sources.memory import ArraySource, working_dtype

Array = NDArray[Any]

# Of the workers' memory that X may take for good: the rest is for what is made of it.
MEMORY_SHARE = 0.6
# Seconds between looks at the cluster, and how long it may be without any worker.
LOOK, WITHOUT_WORKERS = 2.0, 30.0
_log = logging.getLogger("pyfastr")


def client_of(X: Any) -> Any:
    """Return the client of a cluster that would compute a Dask array; None for other schedulers."""
    if "distributed" not in sys.modules:
        return None
    scheduler = import_module("dask.base").get_scheduler(collections=[X])
    client = getattr(scheduler, "__self__", None)
    return client if isinstance(client, import_module("distributed").Client) else None


def gather(client: Any, futures: Sequence[Any]) -> list[Any]:
    """Wait for results and bring them here, or say why they cannot come."""
    wait_for(client, futures)
    try:
        return list(client.gather(list(futures)))
    except import_module("distributed").KilledWorker as error:
        raise RuntimeError(
            "X is a Dask array whose workers died again and again while they worked on it, "
            "mostly for lack of memory. Give them more, or X smaller chunks."
        ) from error


def wait_for(
    client: Any, futures: Sequence[Any], *, look: float = LOOK, patience: float = WITHOUT_WORKERS
) -> None:
    """Wait until all have ended, but not for ever for workers that are gone.

    Parameters
    ----------
    client : distributed.Client
    futures : sequence of distributed.Future
    look, patience : float
        Seconds between looks at the cluster, and how long it may be without any worker.
    """
    since: float | None = None
    while futures:
        try:
            import_module("distributed").wait(futures, timeout=look)
            return
        except TimeoutError:
            has_workers = bool(client.scheduler_info(n_workers=-1)["workers"])
            since = None if has_workers else since or time.monotonic()
            if since is not None and time.monotonic() - since > patience:
                client.cancel(futures)
                raise RuntimeError(
                    f"X is a Dask array whose cluster has had no worker for {patience:.0f} s. "
                    "Start workers, or a new cluster, and fit again."
                ) from None


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

    Attributes
    ----------
    chunks : list
        A future of each chunk, or what computes it where X does not fit.
    is_persisted : bool
        Whether the chunks are futures.
    """

    in_memory = False

    def __init__(self, X: Any, client: Any, advice: str = "") -> None:
        self.shape: tuple[int, ...] = tuple(map(int, X.shape))
        self.stored_dtype, self.dtype = X.dtype, working_dtype(X.dtype)
        self.client, self.advice = client, advice
        edges = (0, *accumulate(map(int, X.chunks[0]))) if X.ndim else (0,)
        self.slices = tuple(slice(i, j) for i, j in pairwise(edges) if i < j)
        self.is_persisted = X.nbytes <= MEMORY_SHARE * _memory_of(client)
        _log.info(
            "X, a Dask array of %.1f MB in %d chunks, %s",
            X.nbytes / 1e6,
            len(self.slices),
            "is computed once and stays with the workers."
            if self.is_persisted
            else "exceeds the workers' memory: every pass computes its chunks anew.",
        )
        pairs = zip(X.to_delayed().ravel(), pairwise(edges), strict=True) if X.ndim else ()
        self.chunks: Sequence[Any] = [chunk for chunk, (i, j) in pairs if i < j]
        if self.is_persisted and self.chunks:
            self.chunks = client.compute(list(self.chunks))

    @cached_property
    def here(self) -> ArraySource:
        """All samples, brought here once."""
        return ArraySource(self.read(slice(0, self.shape[0])))

    def read(self, rows: slice) -> Array:
        """Bring the C-contiguous block of these samples here."""
        parts = []
        for own, chunk in zip(self.slices, self.chunks, strict=True):
            if own.start < rows.stop and own.stop > rows.start:
                part = slice(max(0, rows.start - own.start), rows.stop - own.start)
                future = chunk if self.is_persisted else self.client.compute(chunk)
                parts.append(self.client.submit(_part, future, part, self.dtype, pure=False))
        return np.concatenate(gather(self.client, parts))

    def extremes(self) -> list[tuple[float, float]]:
        """Return the smallest and the largest entry of every chunk, found where it is."""
        if self.is_persisted:
            tasks = [self.client.submit(_extremes, chunk, pure=False) for chunk in self.chunks]
        else:
            # Each in one task with its chunk: the workers have no memory for all chunks.
            extremes = import_module("dask").delayed(_extremes, pure=False)
            tasks = self.client.compute([extremes(chunk) for chunk in self.chunks])
        return gather(self.client, tasks)

    def place(self, sample: int) -> str:
        """Name the chunk of a sample."""
        number = next(i for i, own in enumerate(self.slices) if own.start <= sample < own.stop)
        return f"chunk {number} of the Dask array"


def _part(chunk: Array, rows: slice, dtype: Any) -> Array:
    return np.ascontiguousarray(chunk[rows], dtype=dtype)


def _extremes(chunk: Array) -> tuple[float, float]:
    return float(chunk.min()), float(chunk.max())


def _memory_of(client: Any) -> float:
    """Bytes of memory that all workers have; infinite if they tell no limit."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return float(sum(worker.get("memory_limit") or np.inf for worker in workers))
