"""Dask arrays on the user's cluster: blocks that stay with its workers."""

import logging
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.manners import ArrayManners
from pyfastr.sources.memory import working_dtype

Array = NDArray[Any]

# Of the workers' memory that X may take for good: the rest is for what is made of it.
MEMORY_SHARE = 0.6
_log = logging.getLogger("pyfastr")


class ClusterSource(ArrayManners):
    """Chunks of a Dask array where the workers of a cluster hold them.

    They are computed once and stay in the workers' memory if they fit there. Reading a block brings
    it here; an engine works on it there.

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
    """

    in_memory = False

    def __init__(self, X: Any, client: Any, advice: str = "") -> None:
        self.shape: tuple[int, ...] = tuple(map(int, X.shape))
        self.stored_dtype, self.dtype = X.dtype, working_dtype(X.dtype)
        self.client, self.advice = client, advice
        edges = (0, *accumulate(map(int, X.chunks[0])))
        self.slices = tuple(slice(i, j) for i, j in pairwise(edges) if i < j)
        fits = X.nbytes <= MEMORY_SHARE * _memory_of(client)
        _log.info(
            "X, a Dask array of %.1f MB in %d chunks, %s",
            X.nbytes / 1e6,
            len(self.slices),
            "is computed once and stays with the workers."
            if fits
            else "exceeds the workers' memory: every pass computes its chunks anew.",
        )
        X = client.persist(X) if fits else X
        pairs = zip(X.to_delayed().ravel(), pairwise(edges), strict=True)
        chunks = [chunk for chunk, (i, j) in pairs if i < j]
        self.is_persisted = fits
        self.chunks = [client.compute(chunk) for chunk in chunks] if fits else chunks

    def read(self, rows: slice) -> Array:
        """Bring the C-contiguous block of these samples here."""
        touched = [
            (own, chunk)
            for own, chunk in zip(self.slices, self.chunks, strict=True)
            if own.start < rows.stop and own.stop > rows.start
        ]
        parts = [
            self.client.submit(
                _part,
                chunk if self.is_persisted else self.client.compute(chunk),
                slice(max(0, rows.start - own.start), rows.stop - own.start),
                self.dtype,
                pure=False,
            )
            for own, chunk in touched
        ]
        return np.concatenate(self.client.gather(parts))

    def place(self, sample: int) -> str:
        """Name the chunk of a sample."""
        number = next(i for i, own in enumerate(self.slices) if own.start <= sample < own.stop)
        return f"chunk {number} of the Dask array"


def _part(chunk: Array, rows: slice, dtype: Any) -> Array:
    return np.ascontiguousarray(chunk[rows], dtype=dtype)


def _memory_of(client: Any) -> float:
    """Bytes of memory that all workers have; infinite if they tell no limit."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limits = [worker.get("memory_limit") or np.inf for worker in workers]
    return float(sum(limits))
