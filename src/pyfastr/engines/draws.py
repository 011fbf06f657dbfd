"""Random numbers that any engine can draw where the samples are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Of SplitMix64 (Steele, Lea, Flood 2014): the step between states, and the mixing of one.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))


@dataclass(frozen=True)
class Draw:
    """Weights from Exp(1) for K models, of which every sample's depends on its number alone.

    Number i of a key is the i-th output of SplitMix64, so neither the edges of blocks nor the
    order in which they are worked on changes any weight.

    Attributes
    ----------
    keys : ndarray of shape (K,) of uint64
    """

    keys: Array

    def take(self, which: Array | slice) -> "Draw":
        """Return the draws of some of the models."""
        return Draw(self.keys[which])

    def exponential(self, first: int, n_samples: int, dtype: Any = np.float64) -> Array:
        """Return the weights ``(K, n_samples)`` of samples from number `first` on."""
        numbers = np.arange(first + 1, first + 1 + n_samples, dtype=np.uint64) * _STEP
        bits = mix(self.keys[:, None] + numbers)
        kind, digits = np.dtype(dtype).type, np.finfo(dtype).nmant
        bits >>= np.uint64(64 - digits)
        uniform = bits.astype(dtype)
        # The middle of a cell: never 0, never 1.
        uniform += kind(0.5)
        uniform *= kind(2.0**-digits)
        np.log(uniform, out=uniform)
        return np.negative(uniform, out=uniform)


def mix(states: Array) -> Array:
    """Turn states into outputs of SplitMix64, in place."""
    for shift, factor in _MIX:
        states ^= states >> np.uint64(shift)
        states *= factor
    states ^= states >> np.uint64(31)
    return states
