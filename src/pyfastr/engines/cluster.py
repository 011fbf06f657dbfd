"""X on the workers of a Dask cluster: kernels go there, small sums come back."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.base import Engine, Kernel
from pyfastr.engines.centre import Centre
from pyfastr.engines.features import Block
from pyfastr.engines.local import LocalEngine, add
from pyfastr.engines.parallel import in_order, map_threads, one_thread
from pyfastr.engines.samples import Samples
from pyfastr.sources import ArraySource, ClusterSource
from pyfastr.sources.cluster import Arrays, Part

Array = NDArray[Any]
# Done with the blocks of a part, of which each comes with its columns of further arguments.
Work = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Any]

# Sums of more tasks than this are added by workers first, so many at a time.
FAN_IN = 8
# Samples are brought here up to so many bytes. Beyond, a pass where they are takes longer than the
# round trip to there, and bringing them longer than many passes.
NEARBY_BYTES = 256 << 20


class _PerPart:
    """Futures of something that each part has; parts that took the place of others get it anew."""

    def __init__(self) -> None:
        self._made: dict[Part, Any] = {}

    def of(
        self, parts: Sequence[Part], make: Callable[[Sequence[Part]], Sequence[Any]]
    ) -> list[Any]:
        """Return the futures of parts, made where they are missing; others are let go."""
        missing = [part for part in parts if part not in self._made]
        if missing:
            made = self._made | dict(zip(missing, make(missing), strict=True))
            self._made = {part: made[part] for part in parts}
        return [self._made[part] for part in parts]


@dataclass(frozen=True)
class _Kept:
    """What a kernel made of all parts, and how to make it again.

    Attributes
    ----------
    kernel : callable
    of : _Kept or None
        What the kernel was given; None if that was X.
    futures : _PerPart
    """

    kernel: Kernel
    of: "_Kept | None"
    futures: _PerPart = field(default_factory=_PerPart)


class ClusterEngine(Engine):
    """Chunks of a Dask array, each worked on by a worker that holds it.

    A verb is one task for each thread of each worker, so what travels does not depend on the number
    of samples: components out, sums back. Responses, weights and nuisance are sent once and stay
    beside the chunks. Whatever a dead worker held is made again.

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
        self.source = source
        self._bound = _PerPart()

    def bind(self, samples: Samples, scale: float) -> Self:
        """Return an engine of the same X with other responses, weights and nuisance."""
        return type(self)(self.source, samples, scale)

    def subset(self, which: Array, samples: Samples) -> Engine:
        """Return some samples, brought here if they fit: searches make many passes."""
        if self.n_bytes / self.n_samples * len(which) > self._room_here:
            return ClusterEngine(self.source.take(which), samples, self.scale, None, self.dtype)
        some = self._collect(partial(_some_samples, numbers=which))[0]
        return LocalEngine(ArraySource(some), samples, self.scale)

    def nearby(self) -> Engine:
        """Return the same in this process, if X is small."""
        if self.n_bytes > self._room_here:
            return self
        return LocalEngine(self.source.here, self.samples, self.scale)

    @property
    def _room_here(self) -> int:
        return min(NEARBY_BYTES, self.budget.subset)

    def rounded(self) -> "ClusterEngine":
        """Return the same with X in float32."""
        single = np.dtype(np.float32)
        return ClusterEngine(self.source, self.samples, self.scale, self._centre, single)

    def _total(
        self, kernel: Kernel, *, kept: Any = None, along: Sequence[Array] = (), wide: int = 0
    ) -> tuple[Array, ...]:
        def start(parts: Sequence[Part]) -> list[Any]:
            return self._added(self._start(parts, _sum, kernel, kept, along))

        self.passes += kept is None
        return _added(self.source.results(start))

    def _added(self, sums: list[Any]) -> list[Any]:
        """Have workers add sums until few are left."""
        while len(sums) > FAN_IN:
            several = [sums[i : i + FAN_IN] for i in range(0, len(sums), FAN_IN)]
            sums = [self.source.client.submit(_added, some, pure=False) for some in several]
        return sums

    def _keep(self, kernel: Kernel, *, kept: Any = None) -> _Kept:
        self.passes += kept is None
        return _Kept(kernel, kept)

    def _collect(self, kernel: Kernel, *, kept: Any = None) -> Array:
        self.passes += kept is None
        found = self.source.results(lambda parts: self._start(parts, _values, kernel, kept))
        chunks = sorted((pair for group in found for pair in group), key=lambda pair: pair[0])
        return np.concatenate([values for _, values in chunks], axis=1)

    @property
    def _reads_columns(self) -> bool:
        return True

    def _bind(self, parts: Sequence[Part]) -> list[Any]:
        """Send what belongs to the samples of parts to where their chunks are."""
        own = [[(i.start, self.samples.rows(i)) for i in self._slices(part)] for part in parts]
        # Tasks that contain the data: should a worker die, the scheduler has them still.
        return self.source.submit([partial(_itself, some) for some in own], parts, [()] * len(own))

    def _start(
        self,
        parts: Sequence[Part],
        work: Work,
        kernel: Kernel,
        kept: _Kept | None = None,
        along: Sequence[Array] = (),
    ) -> list[Any]:
        """Have a kernel work on every chunk, or on what was kept of it, where it is."""
        dtype = self.dtype if kept is None else None
        tasks = []
        for part in parts:
            columns = [[values[:, i] for i in self._slices(part)] for values in along]
            tasks.append(partial(_on_part, work, kernel, dtype, columns))
        bound = self._bound.of(parts, self._bind)
        if kept is None:
            return self.source.work(tasks, parts, bound)
        again = partial(self._start, work=_arrays, kernel=kept.kernel, kept=kept.of)
        made = kept.futures.of(parts, again)
        return self.source.submit(tasks, parts, zip(bound, made, strict=True))

    def _slices(self, part: Part) -> list[slice]:
        return [self.source.slices[number] for number in part.numbers]


def _itself(value: Any) -> Any:
    return value


def _on_part(
    work: Work,
    kernel: Kernel,
    dtype: np.dtype[Any] | None,
    columns: Sequence[Sequence[Array]],
    bound: Sequence[tuple[int, Samples]],
    held: Iterable[Array],
) -> Any:
    """Work on a part in one thread; chunks of another type are converted one at a time."""

    def on_block(item: tuple[tuple[int, Samples], Array, *tuple[Array, ...]]) -> Any:
        (first, samples), values, *further = item
        values = values if dtype is None else np.ascontiguousarray(values, dtype=dtype)
        return kernel(Block(values, first, samples), *further)

    with one_thread():
        return work(on_block, list(zip(bound, held, *columns, strict=True)))


def _sum(on_block: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> tuple[Array, ...]:
    """Add what a kernel makes of blocks."""
    return reduce(add, in_order(on_block, items))


def _arrays(on_block: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> Arrays:
    """Return what a kernel makes of blocks, to be kept."""
    made = map_threads(on_block, items)
    return Arrays(made, sum(array.nbytes for array in made))


def _values(
    on_block: Callable[..., Any], items: Sequence[tuple[Any, ...]]
) -> list[tuple[int, Array]]:
    """Return what a kernel makes of blocks, and the number of their first samples."""
    firsts = [first for (first, _), *_ in items]
    return list(zip(firsts, map_threads(on_block, items), strict=True))


def _added(parts: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Add sums; those of others are not written to."""
    first = tuple(np.array(own) for own in parts[0])
    return reduce(add, parts[1:], first)


def _some_samples(block: Block, numbers: Array) -> Array:
    """Return those samples of a block that have certain numbers, as a batch of one."""
    own = numbers[(numbers >= block.first) & (numbers < block.first + len(block.values))]
    return block.values[own - block.first][None]
