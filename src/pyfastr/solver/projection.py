"""The passes over X: projections of every sample onto one mode, for many models at once.

All products are BLAS calls on reshaped views of a block, so nothing of the size of X is copied.
``L`` counts the rows of the components (models times terms). A block has shape
``(n, p1, ..., pM)``; contracting it with a group of neighbouring modes costs ``2 L`` flops and one
read of every entry, so one row runs at the speed of memory and many rows at that of arithmetic.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.parallel import map_threads
from pyfastr.sources import Source

Array = NDArray[Any]

# A contraction that leaves two modes makes an intermediate; it should stay in a core's cache.
CACHE_BYTES = 1 << 21
# More rows than this make a matrix product no faster.
ENOUGH_ROWS = 128
# Intermediates kept between updates: beyond this, more of X is read instead.
MIN_KEPT_BYTES = 64 << 20
KEPT_SHARE = 0.1
# With more rows a pass is bound by arithmetic, and kept intermediates gain nothing.
MAX_KEPT_ROWS = 4
# Gathering a part of X costs about this many times a plain read of it.
GATHER_COST = 4.0


def khatri_rao(factors: Sequence[Array]) -> Array:
    """Row-wise outer products of arrays ``(L, p)``, flattened to ``(L, prod p)``."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, :, None] * factor[:, None, :]).reshape(len(product), -1)
    return product


def _root_right(block: Array, vectors: Array) -> Array:
    """``(n, a, b) x (L, b) -> (L, n, a)``: one matrix product, the block as its right side."""
    n, a, b = block.shape
    flat = block.reshape(n * a, b)
    if len(vectors) == 1:
        return (flat @ vectors[0]).reshape(1, n, a)
    return (vectors @ flat.T).reshape(-1, n, a)


def _root_left(block: Array, vectors: Array) -> Array:
    """``(n, a, b) x (L, a) -> (L, n, b)``: a matrix product for every sample."""
    return np.matmul(vectors, block).transpose(1, 0, 2)


def _inner_right(tensors: Array, vectors: Array) -> Array:
    """``(L, n, a, b) x (L, b) -> (L, n, a)``: each row has its own tensor."""
    rows, n, a, b = tensors.shape
    return np.matmul(tensors.reshape(rows, n * a, b), vectors[:, :, None]).reshape(rows, n, a)


def _inner_left(tensors: Array, vectors: Array) -> Array:
    """``(L, n, a, b) x (L, a) -> (L, n, b)``."""
    return np.matmul(vectors[:, None, None, :], tensors)[:, :, 0, :]


def _project_block(block: Array, factors: Sequence[Array], mode: int) -> Array:
    """Contract every mode of a block but one: ``(L, n, p_mode)``.

    The larger group of modes, left or right of `mode`, is contracted first and alone reads X.
    """
    n, shape = len(block), block.shape[1:]
    left, right = prod(shape[:mode]), prod(shape[mode + 1 :])
    if mode == 0:
        return _root_right(block.reshape(n, -1, right), khatri_rao(factors[1:]))
    if mode == len(shape) - 1:
        return _root_left(block.reshape(n, left, -1), khatri_rao(factors[:-1]))
    before, after = khatri_rao(factors[:mode]), khatri_rao(factors[mode + 1 :])
    p = shape[mode]
    if right >= left:
        partial = _root_right(block.reshape(n, left * p, right), after)
        return _inner_left(partial.reshape(-1, n, left, p), before)
    partial = np.ascontiguousarray(_root_left(block.reshape(n, left, p * right), before))
    return _inner_right(partial.reshape(-1, n, p, right), after)


def project_own(kept: Array, factors: Sequence[Array], mode: int) -> Array:
    """Contract every mode of ``(L, n, q1, ..., qJ)`` but one, each row with its own tensor."""
    rows, n, shape = len(kept), kept.shape[1], kept.shape[2:]
    left, right = prod(shape[:mode]), prod(shape[mode + 1 :])
    if mode + 1 < len(shape):
        after = khatri_rao(factors[mode + 1 :])
        kept = _inner_right(kept.reshape(rows, n, left * shape[mode], right), after)
    if mode > 0:
        before = khatri_rao(factors[:mode])
        kept = _inner_left(kept.reshape(rows, n, left, shape[mode]), before)
    return kept.reshape(rows, n, shape[mode])


def _contract_mode(block: Array, vectors: Array, mode: int) -> Array:
    """Contract one mode of a block: ``(L, n, the other modes)``."""
    n, shape = len(block), block.shape[1:]
    left, right = prod(shape[:mode]), prod(shape[mode + 1 :])
    others = shape[:mode] + shape[mode + 1 :]
    if right == 1:
        partial = _root_right(block.reshape(n, left, shape[mode]), vectors)
    else:
        partial = _root_left(block.reshape(n * left, shape[mode], right), vectors)
    return np.ascontiguousarray(partial).reshape(len(vectors), n, *others)


def _others(items: Sequence[Any], mode: int) -> list[Any]:
    """All items but the one of this mode."""
    return [*items[:mode], *items[mode + 1 :]]


@dataclass
class _Kept:
    """X contracted with one mode's components, block by block, and those components."""

    mode: int
    components: Array
    blocks: dict[int, Array]


class Projector:
    """Projections ``pr(X; m)`` of a source, with the fewest passes over it.

    Components come as M arrays ``(K, R, p_m)``: K models of R terms. One model at a time keeps X
    contracted with the mode whose update is farthest away, and all updates before that one are
    served from there (the multi-sweep dimension tree of Ma and Solomonik): M / (M - 1) passes a
    sweep. An intermediate is valid as long as that mode's array is the same object, so components
    must be replaced when they change, never written to.

    Parameters
    ----------
    source : Source
    scale : float
        Projections are those of ``X / scale``.

    Attributes
    ----------
    passes : float
        How many times X was read so far.
    """

    def __init__(self, source: Source, scale: float = 1.0) -> None:
        self.source = source
        self.scale = scale
        self.passes = 0.0
        self.shape = source.shape[1:]
        self._kept: _Kept | None = None
        n_bytes = prod(source.shape) * source.dtype.itemsize
        self._kept_bytes = max(MIN_KEPT_BYTES, KEPT_SHARE * n_bytes)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.source.shape[0]

    def project(self, components: Sequence[Array], mode: int) -> Array:
        """Return ``pr(X; mode)`` for every model: ``(K, R, n_samples, p_mode)``."""
        if self._kept is not None and not self._serves(components, mode):
            self._kept = None
        if self._kept is None:
            self._keep(components, mode)
        if self._kept is not None:
            return self._from_kept(components, mode)
        return self._direct(components, [mode])[0]

    def project_all(self, components: Sequence[Array]) -> list[Array]:
        """Return the projections onto all modes in one pass over X."""
        return self._direct(components, list(range(len(components))))

    def weighted_sums(self, coefficients: Array) -> Array:
        """Return ``sum_i c[l, i] X_i`` for every row of coefficients: ``(L, p1, ..., pM)``."""
        self.passes += 1
        rows = (coefficients / self.scale).astype(self.source.dtype, copy=False)
        total = np.zeros((len(rows), prod(self.shape)), self.source.dtype)
        for some in self.source.slices:
            total += rows[:, some] @ self.source.read(some).reshape(some.stop - some.start, -1)
        return total.reshape(-1, *self.shape)

    def _rows(self, components: Sequence[Array], scaled: int) -> list[Array]:
        """One row a model and term, in the type of X; those of mode `scaled` carry the scale.

        The scale goes in before the product with X, so that no entry of it can overflow.
        """
        rows = [c.reshape(-1, c.shape[-1]) for c in components]
        rows[scaled] = rows[scaled] / self.scale
        return [r.astype(self.source.dtype, copy=False) for r in rows]

    def _serves(self, components: Sequence[Array], mode: int) -> bool:
        """Whether the kept intermediate still holds for this update."""
        kept = self._kept
        return kept is not None and kept.mode != mode and components[kept.mode] is kept.components

    def _keep(self, components: Sequence[Array], mode: int) -> None:
        """Contract the mode that is updated last from now on, if that saves a pass."""
        n_modes = len(self.shape)
        farthest = (mode - 1) % n_modes
        n_rows = components[0].shape[0] * components[0].shape[1]
        entries = n_rows * prod(self.source.shape) // self.shape[farthest]
        too_large = entries * self.source.dtype.itemsize > self._kept_bytes
        if n_modes < 3 or n_rows > MAX_KEPT_ROWS or too_large:
            return
        if self._gather_pays(components, mode) is not None:
            return
        vectors = self._rows(components, farthest)[farthest]
        blocks = self._map(lambda block: _contract_mode(block, vectors, farthest))
        kept = {rows.start: part for rows, part in blocks}
        self._kept = _Kept(farthest, components[farthest], kept)

    def _from_kept(self, components: Sequence[Array], mode: int) -> Array:
        """Project from the kept intermediate, without reading X."""
        kept = self._kept
        assert kept is not None
        factors = _others(self._rows(components, kept.mode), kept.mode)
        inner = mode - (kept.mode < mode)
        parts = map_threads(
            lambda block: project_own(block, factors, inner), list(kept.blocks.values())
        )
        K, R = components[0].shape[:2]
        return np.concatenate(parts, axis=1).reshape(K, R, self.n_samples, -1)

    def _direct(self, components: Sequence[Array], modes: Sequence[int]) -> list[Array]:
        """Project onto each of `modes` while a block is at hand."""
        K, R = components[0].shape[:2]
        L, N, dtype = K * R, self.n_samples, self.source.dtype
        outputs = [np.empty((L, N, self.shape[m]), dtype) for m in modes]
        factors = [self._rows(components, 1 if m == 0 else 0) for m in modes]
        supports = [self._gather_pays(components, m) for m in modes]

        def fill(block: Array, rows: slice) -> None:
            for out, m, parts, support in zip(outputs, modes, factors, supports, strict=True):
                self._fill(out[:, rows], block, parts, m, support)

        self._map_rows(fill)
        return [out.reshape(K, R, N, -1) for out in outputs]

    def _fill(
        self,
        out: Array,
        block: Array,
        factors: Sequence[Array],
        mode: int,
        support: list[Array] | None,
    ) -> None:
        """Write one block's projection, a few rows at a time so that what lies between is small."""
        if support is not None:
            block, factors = _gather(block, factors, mode, support)
        n_rows, n_samples = self._steps(block, mode, len(out))
        for i in range(0, len(out), n_rows):
            some = [f[i : i + n_rows] for f in factors]
            for j in range(0, len(block), n_samples):
                part = block[j : j + n_samples]
                out[i : i + n_rows, j : j + n_samples] = _project_block(part, some, mode)

    def _steps(self, block: Array, mode: int, n_rows: int) -> tuple[int, int]:
        """Rows and samples of one product: all of them where no intermediate arises."""
        shape = block.shape[1:]
        left, right = prod(shape[:mode]), prod(shape[mode + 1 :])
        if left == 1 or right == 1:
            return n_rows, len(block)
        room = CACHE_BYTES // (shape[mode] * min(left, right) * self.source.dtype.itemsize)
        rows = min(n_rows, max(1, room), ENOUGH_ROWS)
        return rows, max(1, room // rows)

    def _gather_pays(self, components: Sequence[Array], mode: int) -> list[Array] | None:
        """Return the non-zero entries of each component if the zeros let most of X be skipped."""
        others = _others(list(range(len(self.shape))), mode)
        if not others:
            return None
        share = 1.0
        support = []
        for m, component in enumerate(components):
            used = np.arange(self.shape[m])
            if m in others:
                used = np.flatnonzero(component.any(axis=(0, 1)))
                share *= len(used) / self.shape[m]
            support.append(used)
        return support if 0 < share * GATHER_COST < 1 else None

    def _map(self, work: Any) -> list[tuple[slice, Array]]:
        """Read every block once and return what `work` makes of each."""
        self.passes += 1
        return map_threads(
            lambda rows: (rows, work(self.source.read(rows))), list(self.source.slices)
        )

    def _map_rows(self, work: Any) -> None:
        """Read every block once for a `work` that writes its result itself."""
        self.passes += 1
        map_threads(lambda rows: work(self.source.read(rows), rows), list(self.source.slices))


def _gather(
    block: Array, factors: Sequence[Array], mode: int, support: list[Array]
) -> tuple[Array, list[Array]]:
    """Drop the slices of a block that zeros in the contracted components make needless."""
    for m, used in enumerate(support):
        if m != mode and len(used) < block.shape[m + 1]:
            block = np.take(block, used, axis=m + 1)
    kept = [f if m == mode else f[:, support[m]] for m, f in enumerate(factors)]
    return np.ascontiguousarray(block), kept
