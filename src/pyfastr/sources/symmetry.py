"""In which two modes of equal size samples are symmetric."""

from itertools import combinations, pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.namespaces import is_floating, namespace_of

Array = NDArray[Any]
Pair = tuple[int, int]

# Entries that mirror each other may differ by this share of the range of their sample: that much is
# rounding in matrices that were computed in float32.
TOLERANCE = 1e-5
# Samples that are compared at one time stay in a core's cache.
COMPARED_BYTES = 1 << 20


def equal_modes(shape: tuple[int, ...]) -> tuple[Pair, ...]:
    """Return the pairs of modes of a sample that have one size, of more than one entry."""
    pairs = combinations(range(len(shape)), 2)
    return tuple((a, b) for a, b in pairs if shape[a] == shape[b] > 1)


def symmetric_in(block: Any, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Return those pairs of modes in which all samples of a block are symmetric.

    A pair in which the first sample is not takes no longer than that sample.
    """
    step = max(1, COMPARED_BYTES // (8 * prod(block.shape[1:])))
    for i, j in pairwise((0, *range(1, block.shape[0], step), block.shape[0])):
        pairs = tuple(pair for pair in pairs if _are_symmetric(block[i:j, ...], pair))
        if not pairs:
            break
    return pairs


def first_asymmetry(block: Array, pair: Pair) -> tuple[int, ...] | None:
    """Return the first sample and entry that differ from their mirror image; None if none do."""
    for number, sample in enumerate(block):
        mirrored = np.swapaxes(sample, *pair)
        apart = np.abs(sample - mirrored) > TOLERANCE * np.ptp(sample)
        if apart.any():
            return number, *map(int, np.argwhere(apart)[0])
    return None


def _are_symmetric(samples: Any, pair: Pair) -> bool:
    xp, axes = namespace_of(samples), list(range(samples.ndim))
    a, b = (mode + 1 for mode in pair)
    axes[a], axes[b] = b, a
    mirrored = samples.transpose(axes) if xp is np else xp.permute_dims(samples, tuple(axes))
    # Most are exactly symmetric, or far from it.
    if bool(xp.all(samples == mirrored)):
        return True
    # Only of floats may the rest be rounding.
    if not is_floating(samples):
        return False
    rest = tuple(range(1, samples.ndim))
    size = xp.max(samples, axis=rest) - xp.min(samples, axis=rest)
    apart = xp.max(xp.abs(samples - mirrored), axis=rest)
    return bool(xp.all(apart <= TOLERANCE * size))
