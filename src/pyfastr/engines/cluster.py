"""X on the workers of a Dask cluster: kernels go there, small sums come back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.base import Engine, Kernel
from pyfastr.engines.centre import Centre
from pyfastr.engines.features import Block
from pyfastr.engines.local import LocalEngine, add
from pyfastr.engines.samples import Samples
from pyfastr.sources import ArraySource, ClusterSource
from pyfastr.sources.cluster import gather, wait_for

Array = NDArray[Any]

# Sums of more tasks than this are added by workers first, so many at a time.
FAN_IN = 8


@dataclass(frozen=True)
class _Group:
    """Chunks that one thread of one worker works on.

    Attributes
    ----------
    worker : str or None
        Where they are; None where nothing is persisted.
    numbers : list of int
        Of the chunks, ascending.
    """

    worker: str | None
    numbers: list[int]


class ClusterEngine(Engine):
    """Chunks of a Dask array, each worked on by a worker that holds it.

    A verb is one task for each thread of each worker, so what travels does not depend on the number
    of samples: components out, sums back. Responses, weights and nuisance are sent once and stay
    beside the chunks. Whatever a dead worker held is made again from what the scheduler knows.

    Parameters
    ----------
    source : ClusterSource
    samples : Samples, optional
    scale : float
    centre : Centre, optional
    dtype : numpy.dtype, optional
        Chunks are rounded to it as they are worked on.
    """

    def __init__(
        self,
        source: ClusterSource,
        samples: Samples | None = None,
        scale: float = 1.0,
        centre: Centre | None = None,
        dtype: np.dtype[Any] | None = None,
    ) -> None:
        super().__init__(source.shape, dtype or source.dtype, samples, scale, centre)
        self.source, self._client = source, source.client
        self._groups = _grouped(source)
        self._bound = [self._bind(group) for group in self._groups]

    def bind(self, samples: Samples, scale: float) -> Self:
        """Return an engine of the same X with other responses, weights and nuisance."""
        return type(self)(self.source, samples, scale)

    def subset(self, which: Array, samples: Samples) -> Engine:
        """Return some samples, brought here: searches need few, but make many passes."""
        engine = ClusterEngine(self.source, None, self.scale)
        some = engine._collect(partial(_some_samples, numbers=which))[0]
        self.passes += 1
        return LocalEngine(ArraySource(some), samples, self.scale)

    def nearby(self) -> Engine:
        """Return the same in this process, if X is small beside the memory budget."""
        if self.n_bytes > self.budget.subset:
            return self
        return LocalEngine(self.source.here, self.samples, self.scale)

    def rounded(self) -> "ClusterEngine":
        """Return the same with X in float32."""
        single = np.dtype(np.float32)
        return ClusterEngine(self.source, self.samples, self.scale, self._centre, single)

    def _total(
        self, kernel: Kernel, *, kept: Any = None, along: Sequence[Array] = (), wide: int = 0
    ) -> tuple[Array, ...]:
        self.passes += kept is None
        parts = self._submit(partial(_sum_of, kernel), kept, along)
        while len(parts) > FAN_IN:
            several = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            parts = [self._client.submit(_added, some, pure=False) for some in several]
        return _added(gather(self._client, parts))

    def _keep(self, kernel: Kernel, *, kept: Any = None) -> list[Any]:
        self.passes += kept is None
        return self._submit(partial(_each_of, kernel), kept, ())

    def _collect(self, kernel: Kernel, *, kept: Any = None) -> Array:
        self.passes += kept is None
        tasks = self._submit(partial(_values_of, kernel), kept, ())
        found = gather(self._client, tasks)
        chunks = sorted((pair for group in found for pair in group), key=lambda pair: pair[0])
        return np.concatenate([values for _, values in chunks], axis=1)

    def sample_products(self, used: Array, shift: Array) -> Array:
        """Return inner products of all pairs of samples; chunks travel between the workers."""
        kernel = partial(_features_of, used=used, shift=shift, scale=self.scale)
        kept = self._submit(partial(_each_of, kernel), None, ())
        self.passes += 1
        pairs = [(a, b) for i, a in enumerate(kept) for b in kept[: i + 1]]
        tasks = [self._client.submit(_pairs_of, a, b, pure=False) for a, b in pairs]
        products = np.empty((self.n_samples,) * 2)
        for found in gather(self._client, tasks):
            for rows, others, own in found:
                products[rows, others], products[others, rows] = own, own.T
        return products

    def _bind(self, group: _Group) -> Any:
        """Send what belongs to the samples of a group to where its chunks are."""
        own = [self.samples.rows(self.source.slices[number]) for number in group.numbers]
        # A task whose argument is the data: should the worker die, the scheduler has it still.
        return self._client.submit(_itself, own, pure=False, **_at(group))

    def _submit(
        self, function: Callable[..., Any], kept: Sequence[Any] | None, along: Sequence[Array]
    ) -> list[Any]:
        """Have a function work on every group, where its chunks are."""
        tasks = []
        for number, group in enumerate(self._groups):
            slices = [self.source.slices[chunk] for chunk in group.numbers]
            columns = [[values[:, rows] for values in along] for rows in slices]
            if kept is None:
                chunks = [self.source.chunks[chunk] for chunk in group.numbers]
                blocks = partial(_blocks, [rows.start for rows in slices], self.dtype)
                task = self._start(group, _on_chunks, function, blocks, columns)
                tasks.append(task(self._bound[number], chunks))
            else:
                task = self._start(group, _on_blocks, function, columns)
                tasks.append(task(kept[number]))
        return tasks

    def _start(self, group: _Group, function: Callable[..., Any], *args: Any) -> Callable[..., Any]:
        """Return what starts a task; chunks that are not held are computed for it."""

        def start(*held: Any) -> Any:
            if group.worker is not None:
                work = partial(function, *args)
                return self._client.submit(work, *held, pure=False, **_at(group))
            work = import_module("dask").delayed(partial(function, *args), pure=False)
            return self._client.compute(work(*held))

        return start


def _grouped(source: ClusterSource) -> list[_Group]:
    """Share the chunks out: to the threads of workers that hold them, or each by itself."""
    if not source.is_persisted:
        return [_Group(None, [number]) for number in range(len(source.chunks))]
    wait_for(source.client, source.chunks)
    holders = source.client.who_has(source.chunks)
    of_worker: dict[str, list[int]] = {}
    for number, chunk in enumerate(source.chunks):
        holding = holders.get(chunk.key) or ("",)
        # Of several holders the one with the least to do.
        worker = min(holding, key=lambda address: (len(of_worker.get(address, ())), address))
        of_worker.setdefault(worker, []).append(number)
    workers = source.client.scheduler_info(n_workers=-1)["workers"]
    groups = []
    for worker, numbers in of_worker.items():
        n_threads = workers.get(worker, {}).get("nthreads", 1)
        parts = np.array_split(numbers, min(n_threads, len(numbers)))
        groups += [_Group(worker, part.tolist()) for part in parts]
    return sorted(groups, key=lambda group: group.numbers)


def _at(group: _Group) -> dict[str, Any]:
    """Name the worker of a group; if it has died, another will do."""
    if not group.worker:
        return {}
    return {"workers": [group.worker], "allow_other_workers": True}


def _itself(value: Any) -> Any:
    return value


def _blocks(
    firsts: Sequence[int], dtype: Any, samples: Sequence[Samples], chunks: Sequence[Array]
) -> list[Block]:
    """Put chunks and what belongs to their samples together."""
    triples = zip(chunks, firsts, samples, strict=True)
    return [Block(np.ascontiguousarray(c, dtype=dtype), first, own) for c, first, own in triples]


def _on_chunks(
    function: Callable[..., Any],
    blocks: Callable[..., list[Block]],
    columns: Sequence[Sequence[Array]],
    samples: Sequence[Samples],
    chunks: Sequence[Array],
) -> Any:
    return function(blocks(samples, chunks), columns)


def _on_blocks(
    function: Callable[..., Any], columns: Sequence[Sequence[Array]], blocks: Sequence[Block]
) -> Any:
    return function(blocks, columns)


def _sum_of(
    kernel: Kernel, blocks: Sequence[Block], columns: Sequence[Sequence[Array]]
) -> tuple[Array, ...]:
    """Add what a kernel makes of blocks."""
    pairs = zip(blocks, columns, strict=True)
    return reduce(add, (kernel(block, *own) for block, own in pairs))


def _each_of(
    kernel: Kernel, blocks: Sequence[Block], columns: Sequence[Sequence[Array]]
) -> list[Block]:
    """Return what a kernel makes of blocks, beside what belongs to their samples."""
    return [Block(kernel(block), block.first, block.samples) for block in blocks]


def _values_of(
    kernel: Kernel, blocks: Sequence[Block], columns: Sequence[Sequence[Array]]
) -> list[tuple[int, Array]]:
    """Return what a kernel makes of blocks, and the number of their first samples."""
    return [(block.first, kernel(block)) for block in blocks]


def _added(parts: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Add sums; those of others are not written to."""
    first = tuple(np.array(own) for own in parts[0])
    return reduce(add, parts[1:], first)


def _some_samples(block: Block, numbers: Array) -> Array:
    """Return those samples of a block that have certain numbers, as a batch of one."""
    own = numbers[(numbers >= block.first) & (numbers < block.first + len(block.values))]
    return block.values[own - block.first][None]


def _features_of(block: Block, used: Array, shift: Array, scale: float) -> Array:
    """Return some features of a block of vectors, shifted."""
    some = block.values if used.all() else block.values[:, used]
    return (some / scale).astype(float, copy=False) - shift[used]


def _pairs_of(blocks: Sequence[Block], others: Sequence[Block]) -> list[tuple[slice, slice, Array]]:
    """Inner products of the samples of two groups, and where they belong."""

    def rows(block: Block) -> slice:
        return slice(block.first, block.first + len(block.values))

    return [(rows(a), rows(b), a.values @ b.values.T) for a in blocks for b in others]
