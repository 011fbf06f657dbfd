"""X that is read in this process: from memory, or from files."""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import pairwise
from math import ceil, prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.base import Coefficients, Engine, Kernel
from pyfastr.engines.centre import Centre
from pyfastr.engines.draws import Draw
from pyfastr.engines.equations import Equations, Fits
from pyfastr.engines.features import Block
from pyfastr.engines.moments import Moments, Subset, are_worth_making
from pyfastr.engines.parallel import in_order
from pyfastr.engines.samples import Samples
from pyfastr.engines.weighted import n_reads
from pyfastr.sources import RoundedSource, Source, is_in_memory, thin

Array = NDArray[Any]

# Blocks are joined until they have so many samples for each entry of all modes, or so many bytes as
# views or as copies: adding Gram matrices then costs little beside making them.
SAMPLES_PER_ENTRY, MOST_VIEWED, MOST_COPIED = 4, 256 << 20, 24 << 20
# For threads to share the work there are two blocks of so many bytes, and four of more.
TWO_BLOCKS, FOUR_BLOCKS = 4 << 20, 32 << 20
# Sums of samples take blocks of so many samples for each sum, and of so many bytes at most.
SAMPLES_PER_SUM, WIDE_BYTES = 4, 128 << 20


class LocalEngine(Engine):
    """Blocks of a source, each worked on by one of a few threads.

    Parameters
    ----------
    source : Source
    samples : Samples, optional
    scale : float
    centre : Centre, optional
    """

    def __init__(
        self,
        source: Source,
        samples: Samples | None = None,
        scale: float = 1.0,
        centre: Centre | None = None,
    ) -> None:
        super().__init__(source.shape, source.dtype, samples, scale, centre)
        self.source = source
        self._slices = self._joined()
        self._own = {rows.start: self.samples.rows(rows) for rows in self._slices}
        self._moments: Moments | None = None
        self._uses_moments = False

    def mode_equations(
        self, models: Coefficients, mode: int, draw: Draw | None = None, *, judged: bool = False
    ) -> Equations:
        """Return the normal equations of one mode's update, of moments where these serve."""
        moments = self._moments_for(models) if draw is None else None
        if moments is None:
            return super().mode_equations(models, mode, draw, judged=judged)
        found = moments.mode_equations(models, mode, judged=judged)
        again = found.needs_samples
        if again.any():
            some = super().mode_equations(Subset.of(models, again), mode, judged=judged)
            found.equations.overwrite(again, some)
        return found.equations

    def joint_equations(
        self, models: Coefficients, modes: Sequence[int] | None = None
    ) -> Equations:
        """Return those of a joint step of all modes, whose moments are of the residuals."""
        moments = self._moments_for(models)
        if moments is None:
            return super().joint_equations(models, modes)
        found = moments.joint_equations(models, modes)
        again = found.needs_samples
        if again.any():
            found.equations.overwrite(
                again, super().joint_equations(Subset.of(models, again), modes)
            )
        return found.equations

    def losses(self, models: Coefficients) -> Fits:
        """Return how well models fit the response."""
        moments = self._moments_for(models)
        if moments is None:
            return super().losses(models)
        found = moments.mode_equations(models, 0)
        again = found.needs_samples
        if again.any():
            found.equations.fits.overwrite(again, super().losses(Subset.of(models, again)))
        return found.equations.fits

    def memory(self) -> dict[str, Any]:
        """Return what earlier verbs left behind that decides how later ones are rounded."""
        return {**super().memory(), "moments": self._uses_moments}

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on as if these verbs had been asked of this engine; X is read when that is needed."""
        super().recall(memory)
        self._uses_moments = memory["moments"]

    def _moments_for(self, models: Coefficients) -> Moments | None:
        """Return the moments of X, made once a batch of models is worth them."""
        self._uses_moments = self._uses_moments or (
            self._is_at_hand() and are_worth_making(self.shape, self.samples, len(models.task))
        )
        if self._uses_moments and self._moments is None:
            self.passes += n_reads(self.shape, self.samples)
            self._moments = Moments.of(self._values, self.shape, self.samples, self.scale)
        return self._moments

    def _is_at_hand(self) -> bool:
        """Whether X is in the memory of this process."""
        return is_in_memory(self.source)

    def bind(self, samples: Samples, scale: float) -> Self:
        """Return an engine of the same X with other responses, weights and nuisance."""
        return type(self)(self.source, samples, scale)

    def subset(self, which: Array, samples: Samples) -> "LocalEngine":
        """Return an engine of some samples, by ascending number, and what belongs to them."""
        return type(self)(thin(self.source, which, self.budget.subset), samples, self.scale)

    def rounded(self) -> "LocalEngine":
        """Return the same with X in float32."""
        return type(self)(RoundedSource(self.source), self.samples, self.scale, self._centre)

    def _total(
        self, kernel: Kernel, *, kept: Any = None, along: Sequence[Array] = (), wide: int = 0
    ) -> tuple[Array, ...]:
        self.passes += kept is None
        work = self._work(kernel, kept, along)
        if wide:
            # One after another: these results are larger than the blocks.
            return reduce(add, map(work, self._wide_slices(wide)))
        return reduce(add, self._each(work))

    def _keep(self, kernel: Kernel, *, kept: Any = None) -> dict[int, Array]:
        self.passes += kept is None
        blocks = self._each(self._work(kernel, kept, ()))
        starts = [rows.start for rows in self._slices]
        return dict(zip(starts, blocks, strict=True))

    def _collect(self, kernel: Kernel, *, kept: Any = None) -> Array:
        return np.concatenate(list(self._keep(kernel, kept=kept).values()), axis=1)

    def _each(self, work: Callable[[slice], Any]) -> Iterable[Any]:
        """Apply work to every block, and return the results in order."""
        return in_order(work, self._slices)

    def _values(self, rows: slice) -> Any:
        """Return the block of these samples."""
        return self.source.read(rows)

    def _work(
        self, kernel: Kernel, kept: dict[int, Array] | None, along: Sequence[Array]
    ) -> Callable[[slice], Any]:
        """Return what is done with one block."""

        def work(rows: slice) -> Any:
            values = self._values(rows) if kept is None else kept[rows.start]
            own = self._own.get(rows.start)
            if own is None or len(own) != rows.stop - rows.start:
                own = self.samples.rows(rows)
            return kernel(Block(values, rows.start, own), *(a[:, rows] for a in along))

        return work

    def _joined(self) -> list[slice]:
        """Join neighbouring blocks of X in memory until they have samples enough."""
        slices = list(self.source.slices)
        if not is_in_memory(self.source):
            return slices
        most = MOST_VIEWED if getattr(self.source, "is_viewed", False) else MOST_COPIED
        wanted = max(
            1 + (self.n_bytes > TWO_BLOCKS) + 2 * (self.n_bytes > FOUR_BLOCKS),
            ceil(self.n_samples / (SAMPLES_PER_ENTRY * sum(self.shape))),
            ceil(self.n_bytes / min(most, self.budget.blocks)),
        )
        # As many for each thread.
        wanted = 4 * ceil(wanted / 4) if wanted > 2 else wanted
        edges = np.linspace(0, len(slices), min(len(slices), wanted) + 1).astype(int)
        return [slice(slices[i].start, slices[j - 1].stop) for i, j in pairwise(edges)]

    def _wide_slices(self, n_rows: int) -> list[slice]:
        """Join blocks until adding to so many sums costs little beside reading samples."""
        sample_bytes = prod(self.shape) * self.dtype.itemsize
        most = min(WIDE_BYTES, self.budget.blocks)
        wanted = min(most // sample_bytes, SAMPLES_PER_SUM * n_rows)
        joined: list[slice] = []
        for some in self.source.slices:
            if joined and some.stop - joined[-1].start <= wanted:
                joined[-1] = slice(joined[-1].start, some.stop)
            else:
                joined.append(some)
        return joined

    @property
    def _reads_columns(self) -> bool:
        return bool(getattr(self.source, "is_viewed", False))


def add(total: tuple[Array, ...], part: tuple[Array, ...]) -> tuple[Array, ...]:
    """Add the results of a block to those of the blocks before it."""
    for into, own in zip(total, part, strict=True):
        np.add(into, own, out=into)
    return total
