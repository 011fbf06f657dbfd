"""The coefficient of a low-rank model, kept as factors and built when it is asked for."""

from functools import reduce
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


class LazyCoefficient:
    """``sum_r scales[r] * factors[0][:, r] o ... o factors[M-1][:, r]``, built once.

    A pickle holds the factors only: a 51 x 61 x 23 coefficient is 135 numbers.
    """

    def __init__(self, factors: list[Array], scales: Array) -> None:
        self._factors = factors
        self._scales = scales
        self._array: Array | None = None

    def __call__(self) -> Array:
        """Return the array of shape ``(p1, ..., pM)``."""
        if self._array is None:
            terms = range(self._scales.shape[0])
            self._array = sum((self._term(r) for r in terms[1:]), start=self._term(0))
        return self._array

    def _term(self, r: int) -> Array:
        vectors = [f[:, r] for f in self._factors]
        return reduce(_outer, vectors[1:], self._scales[r] * vectors[0])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_array": None}


def _outer(product: Array, vector: Array) -> Array:
    """Multiply every entry with a vector, in any library of arrays."""
    return product[..., None] * vector
