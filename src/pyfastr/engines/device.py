"""X on a device, in the arrays of torch, CuPy or another library of the array API standard."""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.arrays import AnyArray, beside, join, room_beside
from pyfastr.engines.base import Kernel
from pyfastr.engines.features import Block
from pyfastr.engines.local import LocalEngine
from pyfastr.sources import block_where_it_is
from pyfastr.sources.namespaces import to_device, to_host

Array = NDArray[Any]

# Samples of a block for each entry of all modes: features of a batch of models then fit beside X,
# and starting work on a block costs little beside the work.
SAMPLES_PER_ENTRY = 64


class DeviceEngine(LocalEngine):
    """Blocks of a source that are on a device, worked on there one after another.

    Components, and weights that are drawn, go to the device; sums over all samples and fitted
    values come back. What belongs to the samples goes there once.

    Parameters
    ----------
    source : Source
        One with blocks on a device.
    samples : Samples, optional
    scale : float
    centre : Centre, optional
    """

    def _total(
        self, kernel: Kernel, *, kept: Any = None, along: Sequence[Array] = (), wide: int = 0
    ) -> tuple[Array, ...]:
        self.passes += kept is None
        total = reduce(_add, self._each(self._work(kernel, kept, along)))
        return tuple(_writable(to_host(own)) for own in total)

    def _collect(self, kernel: Kernel, *, kept: Any = None) -> Array:
        blocks = self._keep(kernel, kept=kept).values()
        return np.concatenate([to_host(block) for block in blocks], axis=1)

    def _is_at_hand(self) -> bool:
        return False

    def _each(self, work: Callable[[slice], Any]) -> Iterable[Any]:
        # The library of X has threads of its own.
        return map(work, self._slices)

    def _values(self, rows: slice) -> AnyArray:
        return block_where_it_is(self.source, rows)

    def _work(
        self, kernel: Kernel, kept: dict[int, Any] | None, along: Sequence[Array]
    ) -> Callable[[slice], Any]:
        def work(rows: slice) -> Any:
            values = self._values(rows) if kept is None else kept[rows.start]
            # What belongs to the samples stays where they are from the first time on.
            self._own[rows.start] = own = self._own[rows.start].beside(values)
            there = (to_device(a[:, rows], like=values) for a in along)
            return kernel(Block(values, rows.start, own), *there)

        return work

    def _joined(self) -> list[slice]:
        """Cut X into few blocks; those that are made anew in every pass are limited in size."""
        n_blocks = self.n_samples / (SAMPLES_PER_ENTRY * sum(self.shape))
        if not getattr(self.source, "is_viewed", False):
            n_blocks = max(n_blocks, self.n_bytes / self._room())
        return self._cut(n_blocks)

    def _product(self, columns: slice | Array, share: Array) -> Array:
        """Multiply on the device, and bring back the product alone."""
        blocks = list(self._keep(self._flattening(columns)).values())
        part = join(blocks, axis=1)[0, ...]
        part = part - beside(share, part) @ part
        return to_host(part @ part.T)

    def _room(self) -> int:
        """Bytes of a block that is a copy."""
        return min(room_beside(self._values(slice(0, 1))), self.budget.blocks)

    def _cut(self, n_blocks: float) -> list[slice]:
        """Cut the samples into at least so many blocks of about one size."""
        count = min(self.n_samples, max(1, ceil(n_blocks)))
        edges = np.linspace(0, self.n_samples, count + 1).astype(int).tolist()
        return [slice(i, j) for i, j in pairwise(edges)]


def _add(total: tuple[AnyArray, ...], part: tuple[AnyArray, ...]) -> tuple[AnyArray, ...]:
    """Add the results of a block to those of the blocks before it, where they are."""
    return tuple(before + own for before, own in zip(total, part, strict=True))


def _writable(array: Array) -> Array:
    """Return an array that the solver may write to; some libraries give theirs out to be read."""
    return np.require(array, requirements=["C", "W"])
