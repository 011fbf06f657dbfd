"""Products of all entries of X with each other, in one set of weights, made in parts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.equations import ROUNDING
from pyfastr.engines.samples import Samples

Array = NDArray[Any]
# Returns samples by their numbers.
Read = Callable[[slice], Array]

# Bytes of samples in float64 that are worked on at a time.
BLOCK_BYTES = 8 << 20


def n_weightings(samples: Samples) -> int:
    """How many sets of weights, or of a nuisance, the tasks have."""
    return max(len(samples.nuisance), 1 if samples.weights is None else len(samples.weights))


def n_reads(shape: Sequence[int], samples: Samples) -> int:
    """How many times moments read X: once if all samples are worked on at a time."""
    if len(samples) <= _samples_at_a_time(prod(shape)):
        return 1
    return 3 * n_weightings(samples)


def _samples_at_a_time(n_entries: int) -> int:
    return max(1, BLOCK_BYTES // (8 * n_entries))


@dataclass(frozen=True)
class Weighted:
    """Samples in one set of weights, of which a few are worked on at a time.

    Attributes
    ----------
    read : callable
        Returns samples by their numbers.
    n_entries : int
    samples : Samples
    row : int
        Of the weights.
    scale : float
    """

    read: Read
    n_entries: int
    samples: Samples
    row: int
    scale: float

    def products(self) -> tuple[Array, Array]:
        """Return the Gram matrix of all entries, and moments of the tasks."""
        raw, explained = np.zeros(self.n_entries), list[Array]()
        for _ in range(2):
            # Once leaves the rounding of large means, which a second time takes out.
            found = np.zeros((self.samples.nuisance.shape[2], self.n_entries))
            for left, basis, _ in self._blocks(explained):
                found += basis.T @ left
                if not explained:
                    raw += np.einsum("np,np->p", left, left)
            explained.append(found)
        gram = np.zeros((self.n_entries, self.n_entries))
        moment = np.zeros((self._n_responses, self.n_entries))
        for left, _, z in self._blocks(explained):
            gram += left.T @ left
            moment += z @ left
        varies = np.diag(gram) > (ROUNDING * np.finfo(float).eps) ** 2 * raw
        return gram * (varies[:, None] & varies), moment * varies

    @property
    def _n_responses(self) -> int:
        """How many tasks have these weights."""
        return len(self.samples.response) if n_weightings(self.samples) == 1 else 1

    def _blocks(self, explained: Sequence[Array]) -> Iterator[tuple[Array, Array, Array]]:
        """Yield weighted features without what is explained, nuisance, and responses."""
        step = _samples_at_a_time(self.n_entries)
        for start in range(0, len(self.samples), step):
            rows = slice(start, start + step)
            X = self.read(rows).reshape(-1, self.n_entries)
            left = (X / self.scale).astype(float, copy=False)
            left, basis, z = self._weighted(left, rows)
            for part in explained:
                left -= basis @ part
            yield left, basis, z

    def _weighted(self, features: Array, rows: slice) -> tuple[Array, Array, Array]:
        """Weigh some features, their nuisance and their responses; leave out what has no weight."""
        samples, row = self.samples, self.row
        basis = samples.nuisance[row if len(samples.nuisance) > 1 else 0, rows]
        z = samples.response[row : row + self._n_responses, rows]
        if samples.weights is None:
            return features, basis, z
        weights = samples.weights[row if len(samples.weights) > 1 else 0, rows]
        used = np.flatnonzero(weights)
        root = np.sqrt(weights[used])
        return features[used] * root[:, None], basis[used] * root[:, None], z[:, used] * root
