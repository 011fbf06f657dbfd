"""The passes over X: projections of every sample onto one mode, for many models at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyfastr.config import current_budget
from pyfastr.solver.contraction import (
    Route,
    contract_group,
    contract_others,
    gather,
    khatri_rao,
    outside,
    project_own,
    route_to,
    routes_to_all,
)
from pyfastr.solver.parallel import map_threads
from pyfastr.sources import Source

Array = NDArray[Any]
Result = TypeVar("Result")

# A contraction that leaves several modes makes an intermediate; it should stay in a core's cache.
CACHE_BYTES = 1 << 21
# More rows than this make a matrix product no faster.
ENOUGH_ROWS = 128
# Intermediates kept between updates: beyond this, more of X is read instead.
MIN_KEPT_BYTES = 160 << 20
KEPT_SHARE = 0.13
# So few rows are bound by memory: any mode may be contracted alone, if that saves a pass.
FEW_ROWS = 2
# Sums of samples take blocks of so many samples for each sum, and of so many bytes at most.
SAMPLES_PER_SUM, WIDE_BYTES = 4, 128 << 20
# Gathering a part of X costs about this many times a plain read of it.
GATHER_COST = 4.0


@dataclass
class _Kept:
    """X contracted with one mode's components, block by block, and those components."""

    mode: int
    components: Array
    blocks: list[Array]


class Projector:
    """Projections ``pr(X; m)`` of a source, with the fewest passes over it.

    Components come as M arrays ``(K, R, p_m)``: K models of R terms. One model at a time keeps X
    contracted with the mode whose update is farthest away, and all updates before that one are
    served from there (the multi-sweep dimension tree of Ma and Solomonik): M / (M - 1) passes a
    sweep. Many models keep X contracted with the first mode, where their updates of the others
    begin with that product: two passes a sweep. An intermediate is valid as long as that mode's
    array is the same object, so components must be replaced when they change, never written to.

    Parameters
    ----------
    source : Source
    scale : float
        Projections are those of ``X / scale``.

    Attributes
    ----------
    passes : float
        How many times X was read so far.
    budget : MemoryBudget
        In force when the projector was made.
    """

    def __init__(self, source: Source, scale: float = 1.0) -> None:
        self.source = source
        self.scale = scale
        self.passes = 0.0
        self.shape = source.shape[1:]
        self._kept: _Kept | None = None
        self._room = np.empty(0, source.dtype)
        self.budget = current_budget()
        n_bytes = prod(source.shape) * source.dtype.itemsize
        self._kept_bytes = min(max(MIN_KEPT_BYTES, KEPT_SHARE * n_bytes), self.budget.kept)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.source.shape[0]

    def project(self, components: Sequence[Array], mode: int, *, reuse: bool = False) -> Array:
        """Return ``pr(X; mode)`` for every model: ``(K, R, n_samples, p_mode)``.

        With `reuse` it may stand where the last such result stood, which is lost then: new memory
        for every projection of a large batch costs as much as the products.
        """
        if len(self.shape) == 1:
            return self._samples(*components[0].shape[:2])
        if not self._kept_serves(components, mode):
            self._kept = None
            support = self._worth_gathering(components, mode)
            if support is not None:
                return self._gathered(components, mode, support, reuse=reuse)
            self._keep(components, mode)
        if self._kept is not None:
            return self._from_kept(self._kept, components, mode, reuse=reuse)
        route = route_to(self.shape, mode, _n_rows(components))
        return self._pass(components, [route], reuse=reuse)[mode]

    def project_all(self, components: Sequence[Array]) -> list[Array]:
        """Return the projections onto all modes in one pass over X."""
        self._kept = None
        found = self._pass(components, routes_to_all(len(self.shape)))
        return [found[mode] for mode in range(len(self.shape))]

    def weighted_sums(self, coefficients: Array) -> Array:
        """Return ``sum_i c[l, i] X_i`` for every row of coefficients: ``(L, p1, ..., pM)``."""
        self.passes += 1
        rows = (coefficients / self.scale).astype(self.source.dtype, copy=False)
        total = np.zeros((len(rows), prod(self.shape)), self.source.dtype)
        for some in self._wide_slices(len(rows)):
            total += rows[:, some] @ self.source.read(some).reshape(some.stop - some.start, -1)
        return total.reshape(-1, *self.shape)

    def _wide_slices(self, n_rows: int) -> list[slice]:
        """Join blocks until adding to so many sums costs little beside reading samples."""
        sample_bytes = prod(self.shape) * self.source.dtype.itemsize
        most = min(WIDE_BYTES, self.budget.blocks)
        wanted = min(most // sample_bytes, SAMPLES_PER_SUM * n_rows)
        joined: list[slice] = []
        for some in self.source.slices:
            if joined and some.stop - joined[-1].start <= wanted:
                joined[-1] = slice(joined[-1].start, some.stop)
            else:
                joined.append(some)
        return joined

    def _samples(self, n_models: int, n_terms: int) -> Array:
        """Return X itself, which is the projection of vectors, for every model and term."""
        self.passes += 1
        blocks = [self.source.read(some) / self.scale for some in self.source.slices]
        X = np.concatenate(blocks).astype(self.source.dtype, copy=False)
        return np.broadcast_to(X, (n_models, n_terms, *X.shape))

    def _rows(self, components: Sequence[Array]) -> list[Array]:
        """One row a model and term, in the type of X."""
        return [
            c.reshape(-1, c.shape[-1]).astype(self.source.dtype, copy=False) for c in components
        ]

    def _vectors(self, factors: Sequence[Array], group: Sequence[int]) -> Array:
        """Khatri-Rao product of a group; it carries the scale, so that no product overflows."""
        product = khatri_rao([factors[m] for m in group])
        return product if self.scale == 1 else (product / self.scale).astype(product.dtype)

    def _kept_serves(self, components: Sequence[Array], mode: int) -> bool:
        """Whether the kept intermediate still holds for this update."""
        kept = self._kept
        return kept is not None and kept.mode != mode and components[kept.mode] is kept.components

    def _keep(self, components: Sequence[Array], mode: int) -> None:
        """Contract the mode that is updated last from now on, if that saves a pass."""
        n_modes, n_rows = len(self.shape), _n_rows(components)
        farthest = (mode - 1) % n_modes
        n_entries = n_rows * prod(self.source.shape) // self.shape[farthest]
        too_large = n_entries * self.source.dtype.itemsize > self._kept_bytes
        if n_modes < 3 or too_large or not (n_rows <= FEW_ROWS or self._begins_alone(n_rows, mode)):
            return
        group = range(farthest, farthest + 1)
        vectors = self._vectors(self._rows(components), group)
        blocks = self._map(lambda block, rows: contract_group(block, vectors, group))
        self._kept = _Kept(farthest, components[farthest], blocks)

    def _begins_alone(self, n_rows: int, mode: int) -> bool:
        """Whether products with the first mode alone serve this update and all later ones as well.

        Many rows are bound by arithmetic: other products are better of several modes at once.
        """
        return mode == 1 and len(route_to(self.shape, mode, n_rows).group) == 1

    def _from_kept(
        self, kept: _Kept, components: Sequence[Array], mode: int, *, reuse: bool
    ) -> Array:
        """Project from the kept intermediate, without reading X."""
        factors = outside(range(kept.mode, kept.mode + 1), self._rows(components))
        inner = mode - (kept.mode < mode)
        out = self._empty(components, mode, reuse=reuse)

        def work(item: tuple[slice, Array]) -> None:
            rows, block = item
            out[:, rows] = project_own(block, factors, inner)

        map_threads(work, list(zip(self.source.slices, kept.blocks, strict=True)))
        K, R = components[0].shape[:2]
        return out.reshape(K, R, self.n_samples, -1)

    def _pass(
        self, components: Sequence[Array], routes: Sequence[Route], *, reuse: bool = False
    ) -> dict[int, Array]:
        """Follow the routes while a block is at hand; return the projections by mode."""
        factors = self._rows(components)
        vectors = [self._vectors(factors, route.group) for route in routes]
        modes = [m for route in routes for m in route.modes]
        outputs = {m: self._empty(components, m, reuse=reuse) for m in modes}

        def work(block: Array, rows: slice) -> None:
            for route, product in zip(routes, vectors, strict=True):
                outs = {m: outputs[m][:, rows] for m in route.modes}
                _follow(route, block, product, factors, outs)

        self._map(work)
        K, R = components[0].shape[:2]
        return {m: out.reshape(K, R, self.n_samples, -1) for m, out in outputs.items()}

    def _empty(self, components: Sequence[Array], mode: int, *, reuse: bool) -> Array:
        """Make room for one projection of every row, where the last one stood if that may go."""
        shape = (_n_rows(components), self.n_samples, self.shape[mode])
        if not reuse:
            return np.empty(shape, self.source.dtype)
        if len(self._room) < prod(shape):
            self._room = np.empty(prod(shape), self.source.dtype)
        return self._room[: prod(shape)].reshape(shape)

    def _worth_gathering(self, components: Sequence[Array], mode: int) -> list[Array] | None:
        """Return the entries each component uses, if its zeros let most of X be skipped."""
        support = [np.flatnonzero(c.any(axis=(0, 1))) for c in components]
        support[mode] = np.arange(self.shape[mode])
        share = prod(len(used) for used in support) / prod(self.shape)
        return support if 0 < share * GATHER_COST < 1 else None

    def _gathered(
        self, components: Sequence[Array], mode: int, support: list[Array], *, reuse: bool
    ) -> Array:
        """Project from the slices of X that no zero makes needless."""
        factors = [f[:, used] for f, used in zip(self._rows(components), support, strict=True)]
        route = route_to([len(used) for used in support], mode, _n_rows(components))
        vectors = self._vectors(factors, route.group)
        out = self._empty(components, mode, reuse=reuse)

        def work(block: Array, rows: slice) -> None:
            _follow(route, gather(block, support, mode), vectors, factors, {mode: out[:, rows]})

        self._map(work)
        K, R = components[0].shape[:2]
        return out.reshape(K, R, self.n_samples, -1)

    def _map(self, work: Callable[[Array, slice], Result]) -> list[Result]:
        """Read every block once and return what `work` makes of each."""
        self.passes += 1
        return map_threads(
            lambda rows: work(self.source.read(rows), rows), list(self.source.slices)
        )


def _follow(
    route: Route, block: Array, vectors: Array, factors: Sequence[Array], outs: dict[int, Array]
) -> None:
    """Write one block's projections, in parts whose intermediate stays in cache."""
    others = outside(route.group, range(len(factors)))
    if len(others) == 1:
        contract_others(block, vectors, others[0], outs[others[0]])
        return
    n_rows, n_samples = _part_size(block, route, len(vectors))
    for i in range(0, len(vectors), n_rows):
        rows = slice(i, i + n_rows)
        inner = [factors[m][rows] for m in others]
        for j in range(0, len(block), n_samples):
            samples = slice(j, j + n_samples)
            partial = contract_group(block[samples], vectors[rows], route.group)
            for mode, out in outs.items():
                out[rows, samples] = project_own(partial, inner, others.index(mode))


def _n_rows(components: Sequence[Array]) -> int:
    """Models times terms."""
    return components[0].shape[0] * components[0].shape[1]


def _part_size(block: Array, route: Route, n_rows: int) -> tuple[int, int]:
    """Rows and samples of one product that leaves several modes."""
    left = outside(route.group, block.shape[1:])
    room = CACHE_BYTES // (prod(left) * block.itemsize)
    rows = min(n_rows, max(1, room), ENOUGH_ROWS)
    return rows, max(1, room // rows)
