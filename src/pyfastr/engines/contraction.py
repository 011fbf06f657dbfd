"""Products of one block of samples with components: BLAS calls on reshaped views.

``L`` counts rows of components (models times terms). A block has shape ``(n, p1, ..., pM)``;
contracting it with a group of neighbouring modes costs ``2 L`` flops and one read of every entry,
so one row runs at the speed of memory and many rows at that of arithmetic.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# BLAS takes rows of up to this length slowly; so many of them are better multiplied as one.
NARROW, FOLD = 8, 4
# From so many rows of components on a copy of the block, with the mode that is left beside the
# samples, costs less than one wide product gains over two whose sums are shorter than this (1.2 to
# 2 x; with longer sums it costs up to 4 x as much as two).
MANY_ROWS, SHORT = 128, 100


@dataclass(frozen=True)
class Route:
    """A group of modes that is contracted with X, neighbours or all but one, and whom it serves."""

    group: Sequence[int]
    modes: tuple[int, ...]


def route_to(shape: Sequence[int], mode: int, n_rows: int) -> Route:
    """Choose the group for one mode: wide, and leaving little behind.

    Of few rows a middle mode takes the larger of the groups beside it, and the last one keeps its
    neighbour for the second step, because a product that leaves a narrow mode alone is slow.
    """
    last = len(shape) - 1
    if mode == 0:
        group = range(1, last + 1)
    elif mode == last:
        group = range(max(1, last - 1))
    elif prod(shape[mode + 1 :]) >= prod(shape[:mode]):
        group = range(mode + 1, last + 1)
    else:
        group = range(mode)
    if n_rows >= MANY_ROWS and prod(shape[m] for m in group) < SHORT:
        return Route([m for m in range(last + 1) if m != mode], (mode,))
    return Route(group, (mode,))


def routes_to_all(n_modes: int) -> list[Route]:
    """Return two routes that serve all modes: the first alone, and all others."""
    return [Route(range(1, n_modes), (0,)), Route(range(1), tuple(range(1, n_modes)))]


def khatri_rao(factors: Sequence[Array]) -> Array:
    """Row-wise outer products of arrays ``(L, p)``, flattened to ``(L, prod p)``."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, :, None] * factor[:, None, :]).reshape(len(product), -1)
    return product


def contract_others(block: Array, vectors: Array, mode: int, out: Array) -> None:
    """Contract all modes but one with their Khatri-Rao product, into ``(L, n, p)``."""
    n, p = len(block), block.shape[mode + 1]
    if len(vectors) == 1:
        group = [m for m in range(block.ndim - 1) if m != mode]
        out[...] = contract_group(block, vectors, group)
    elif mode == 0 or len(vectors) >= MANY_ROWS:
        samples = np.moveaxis(block, mode + 1, 1).reshape(n * p, -1)
        # Rows of `out` may stand apart, but a row's entries stand together.
        flat = np.lib.stride_tricks.as_strided(
            out, (len(vectors), n * p), (out.strides[0], out.itemsize)
        )
        np.matmul(vectors, samples.T, out=flat)
    else:
        np.matmul(vectors, block.reshape(n, -1, p), out=out.transpose(1, 0, 2))


def contract_group(block: Array, vectors: Array, group: Sequence[int]) -> Array:
    """Contract neighbouring modes with their Khatri-Rao product: ``(L, n, the other modes)``."""
    n, shape = len(block), block.shape[1:]
    before, after = shape[: group[0]], shape[group[-1] + 1 :]
    others = before + after
    left, right = prod(before), prod(after)
    width = vectors.shape[1]
    if right > 1:
        # A matrix product for every sample (and entry of the modes to the left).
        product = np.matmul(vectors, block.reshape(n * left, width, right)).transpose(1, 0, 2)
    elif len(vectors) == 1:
        product = _contract_last(block.reshape(n * left, width), vectors[0])
    else:
        product = np.dot(vectors, block.reshape(n * left, width).T)
    return np.ascontiguousarray(product).reshape(len(vectors), n, *others)


def _contract_last(matrix: Array, vector: Array) -> Array:
    """``matrix @ vector``, a few rows at a time as one where they are short (1.3 to 1.7 x).

    By `numpy.dot`: `numpy.matmul` keeps the interpreter locked while a product has up to 500
    entries, however long its sums are, and no other thread would work on its block meanwhile.
    """
    fold = FOLD if len(vector) <= NARROW and len(matrix) % FOLD == 0 else 1
    if fold == 1:
        return np.dot(matrix, vector)
    folded = np.kron(np.eye(fold, dtype=vector.dtype), vector[:, None])
    return np.dot(matrix.reshape(-1, fold * len(vector)), folded)


def project_own(tensors: Array, factors: Sequence[Array], mode: int) -> Array:
    """Contract every mode of ``(L, n, q1, ..., qJ)`` but one, each row with its own tensor."""
    rows, n, *shape = tensors.shape
    left, right = prod(shape[:mode]), prod(shape[mode + 1 :])
    if mode + 1 < len(shape):
        after = khatri_rao(factors[mode + 1 :])[:, :, None]
        tensors = np.matmul(tensors.reshape(rows, n * left * shape[mode], right), after)
    if mode > 0:
        before = khatri_rao(factors[:mode])[:, None, None, :]
        tensors = np.matmul(before, tensors.reshape(rows, n, left, shape[mode]))
    return tensors.reshape(rows, n, shape[mode])


def outside(group: Sequence[int], items: Sequence[Any]) -> list[Any]:
    """Return the items of the modes that are not in the group."""
    return [item for mode, item in enumerate(items) if mode not in group]


def gather(block: Array, support: Sequence[Array], mode: int) -> Array:
    """Drop the slices of a block that zeros in the contracted components make needless."""
    for m, used in enumerate(support):
        if m != mode and len(used) < block.shape[m + 1]:
            block = np.take(block, used, axis=m + 1)
    return np.ascontiguousarray(block)
