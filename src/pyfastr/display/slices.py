"""Which slices of a coefficient a picture shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Modes of which all pairs are drawn unasked: six have fifteen.
MOST_MODES = 6


@dataclass(frozen=True)
class Slice:
    """Two modes of a coefficient, the others held at one entry.

    Attributes
    ----------
    pair : tuple of two int
        The modes, in ascending order.
    at : tuple of M int
        Entries of all modes; those of the pair are where a cross is drawn.
    """

    pair: tuple[int, int]
    at: tuple[int, ...]

    def of(self, coef: Array) -> Array:
        """Return the slice, ``(p_a, p_b)``."""
        index = tuple(slice(None) if m in self.pair else i for m, i in enumerate(self.at))
        return coef[index]


def peak(coef: Array) -> tuple[int, ...]:
    """Return where a coefficient is largest in size."""
    return tuple(int(i) for i in np.unravel_index(np.argmax(np.abs(coef)), coef.shape))


def checked_at(at: Sequence[int] | None, coef: Array) -> tuple[int, ...]:
    """Return an entry of each mode: the user's, or the largest of the coefficient."""
    if at is None:
        return peak(coef)
    found = np.asarray(at)
    whole = found.dtype.kind in "iu" and found.shape == (coef.ndim,)
    if not whole or (found < 0).any() or (found >= coef.shape).any():
        raise ValueError(
            f"at is {at!r}; expected {coef.ndim} whole numbers, the entry of each mode, each of at "
            f"least 0 and below {coef.shape}."
        )
    return tuple(int(i) for i in found)


def checked_pairs(pairs: Sequence[Sequence[int]] | None, n_modes: int) -> list[tuple[int, int]]:
    """Return pairs of modes: the user's, or all."""
    if pairs is None:
        if n_modes > MOST_MODES:
            raise ValueError(
                f"The coefficient has {n_modes} modes and so {n_modes * (n_modes - 1) // 2} pairs "
                "of them, too many for one picture; expected pairs, such as pairs=[(0, 1)]."
            )
        return list(combinations(range(n_modes), 2))
    found = [(int(pair[0]), int(pair[1])) if len(pair) == 2 else (0, 0) for pair in pairs]
    if not found or not all(a != b and 0 <= min(a, b) <= max(a, b) < n_modes for a, b in found):
        raise ValueError(
            f"pairs is {pairs!r}; expected one or more pairs of different modes, numbers from 0 to "
            f"{n_modes - 1}, such as [(0, 1)]."
        )
    return [(min(pair), max(pair)) for pair in found]


def slices_of_pairs(coef: Array, at: tuple[int, ...], pairs: Any) -> list[Slice]:
    """Return one slice for each pair of modes."""
    return [Slice(pair, at) for pair in checked_pairs(pairs, coef.ndim)]


def montage(coef: Array, at: tuple[int, ...], mode: int, pairs: Any, n_slices: int) -> list[Slice]:
    """Return slices of one pair of modes along another mode, those that are not all zero."""
    if not 0 <= mode < coef.ndim:
        raise ValueError(f"mode is {mode!r}; expected a mode from 0 to {coef.ndim - 1}.")
    pair = _montage_pair(coef.ndim, mode, pairs)
    all_ = [Slice(pair, (*at[:mode], i, *at[mode + 1 :])) for i in range(coef.shape[mode])]
    some = [own for own in all_ if own.of(coef).any()] or all_[at[mode] : at[mode] + 1]
    if len(some) <= n_slices:
        return some
    return [some[i] for i in np.linspace(0, len(some) - 1, n_slices).round().astype(int)]


def _montage_pair(n_modes: int, mode: int, pairs: Any) -> tuple[int, int]:
    """Return the modes that a montage shows: the other two, or those that the user names."""
    if pairs is None and n_modes == 3:
        first, second = (m for m in range(3) if m != mode)
        return first, second
    if pairs is None:
        raise ValueError(
            f"mode is {mode!r}, but the coefficient has {n_modes} modes; expected also pairs, such "
            "as pairs=[(0, 1)], to say which two are drawn."
        )
    found = checked_pairs(pairs, n_modes)
    if len(found) != 1 or mode in found[0]:
        raise ValueError(
            f"pairs is {pairs!r} with mode={mode}; expected one pair of other modes, whose slices "
            "are drawn along that mode."
        )
    return found[0]
