"""Products of one block of samples with components: BLAS calls on reshaped views.

Block and vectors may be arrays of any library, if both are of the same and on one device.

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

from pyfastr.engines.arrays import AnyArray, permuted, reshaped
from pyfastr.sources.namespaces import namespace_of, take

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


def khatri_rao(factors: Sequence[AnyArray]) -> AnyArray:
    """Row-wise outer products of arrays ``(L, p)``, flattened to ``(L, prod p)``."""
    product = factors[0]
    for factor in factors[1:]:
        pairs = product[:, :, None] * factor[:, None, :]
        product = reshaped(pairs, (pairs.shape[0], -1))
    return product


def contract_others(block: Array, vectors: Array, mode: int, out: Array) -> None:
    """Contract all modes but one with their Khatri-Rao product, into ``(L, n, p)`` of NumPy."""
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


def contracted_others(block: AnyArray, vectors: AnyArray, mode: int) -> AnyArray:
    """Return what `contract_others` writes, for arrays of any library."""
    shape = (vectors.shape[0], block.shape[0], block.shape[mode + 1])
    if isinstance(block, np.ndarray):
        out = np.empty(shape, block.dtype)
        contract_others(block, vectors, mode, out)
        return out
    xp, (rows, n, p) = namespace_of(block), shape
    if mode == 0 or rows >= MANY_ROWS:
        samples = reshaped(xp.moveaxis(block, mode + 1, 1), (n * p, -1))
        return reshaped(xp.matmul(vectors, samples.T), shape)
    return permuted(xp.matmul(vectors, reshaped(block, (n, -1, p))), (1, 0, 2))


def contract_group(block: AnyArray, vectors: AnyArray, group: Sequence[int]) -> AnyArray:
    """Contract neighbouring modes with their Khatri-Rao product: ``(L, n, the other modes)``."""
    n, *shape = block.shape
    before, after = shape[: group[0]], shape[group[-1] + 1 :]
    rows, width = vectors.shape
    xp, left, right = namespace_of(block), n * prod(before), prod(after)
    if right > 1:
        # A matrix product for every sample (and entry of the modes to the left).
        product = _swapped(xp.matmul(vectors, reshaped(block, (left, width, right))))
    else:
        product = _contract_last(reshaped(block, (left, width)), vectors)
    return reshaped(product, (rows, n, *before, *after))


def _swapped(product: AnyArray) -> AnyArray:
    """Put rows before samples, C-contiguous: several products begin with what is returned."""
    if isinstance(product, np.ndarray):
        return np.ascontiguousarray(product.transpose(1, 0, 2))
    # Other libraries have no word for it, but what is flattened is in order.
    samples, rows, right = product.shape
    return reshaped(reshaped(permuted(product, (1, 0, 2)), (-1,)), (rows, samples, right))


def _contract_last(matrix: AnyArray, vectors: AnyArray) -> AnyArray:
    """``vectors @ matrix.T``, a few samples at a time as one where they are short (1.3 to 1.7 x).

    By `numpy.dot`: `numpy.matmul` keeps the interpreter locked while a product has up to 500
    entries, however long its sums are, and no other thread would work on its block meanwhile.
    """
    if not isinstance(matrix, np.ndarray):
        return namespace_of(matrix).matmul(vectors, matrix.T)
    if len(vectors) > 1:
        return np.dot(vectors, matrix.T)
    width = matrix.shape[1]
    if width > NARROW or len(matrix) % FOLD:
        return np.dot(matrix, vectors[0])
    folded = np.kron(np.eye(FOLD, dtype=vectors.dtype), vectors[0][:, None])
    return np.dot(matrix.reshape(-1, FOLD * width), folded)


def project_own(tensors: AnyArray, factors: Sequence[AnyArray], mode: int) -> AnyArray:
    """Contract every mode of ``(L, n, q1, ..., qJ)`` but one, each row with its own tensor."""
    xp = namespace_of(tensors)
    rows, n, *shape = tensors.shape
    left, right = prod(shape[:mode]), prod(shape[mode + 1 :])
    if mode + 1 < len(shape):
        after = khatri_rao(factors[mode + 1 :])[:, :, None]
        tensors = xp.matmul(reshaped(tensors, (rows, n * left * shape[mode], right)), after)
    if mode > 0:
        before = khatri_rao(factors[:mode])[:, None, None, :]
        tensors = xp.matmul(before, reshaped(tensors, (rows, n, left, shape[mode])))
    return reshaped(tensors, (rows, n, shape[mode]))


def outside(group: Sequence[int], items: Sequence[Any]) -> list[Any]:
    """Return the items of the modes that are not in the group."""
    return [item for mode, item in enumerate(items) if mode not in group]


def gather(block: AnyArray, support: Sequence[Array], mode: int) -> AnyArray:
    """Drop the slices of a block that zeros in the contracted components make needless."""
    for m, used in enumerate(support):
        if m != mode and len(used) < block.shape[m + 1]:
            block = take(block, used, axis=m + 1)
    return np.ascontiguousarray(block) if isinstance(block, np.ndarray) else block
