"""The coefficient of a low-rank model, kept as factors and built when it is asked for."""

from functools import reduce
from typing import Any

from numpy.typing import NDArray

from pyfastr.sources.namespaces import namespace_of

Array = NDArray[Any]


class LazyCoefficient:
    """``sum_r scales[r] * factors[0][:, r] o ... o factors[M-1][:, r]``, built once.

    Factors and scales of several outputs have a leading axis of outputs, and so has the array.

    A pickle holds the factors only: a 51 x 61 x 23 coefficient is 135 numbers.
    """

    def __init__(self, factors: list[Array], scales: Array) -> None:
        self._factors = factors
        self._scales = scales
        self._array: Array | None = None

    def __call__(self) -> Array:
        """Return the array of shape ``(p1, ..., pM)``, or ``(n_outputs, p1, ..., pM)``."""
        if self._array is None:
            self._array = self._built()
        return self._array

    def _built(self) -> Array:
        if self._scales.ndim == 1:
            return _sum_of_terms(self._factors, self._scales)
        outputs = [
            _sum_of_terms([f[t, ...] for f in self._factors], self._scales[t, ...])
            for t in range(self._scales.shape[0])
        ]
        stacked: Array = namespace_of(self._scales).stack(outputs)
        return stacked

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_array": None}


def _sum_of_terms(factors: list[Array], scales: Array) -> Array:
    terms = range(scales.shape[0])
    return sum((_term(factors, scales, r) for r in terms[1:]), start=_term(factors, scales, 0))


def _term(factors: list[Array], scales: Array, r: int) -> Array:
    vectors = [f[:, r] for f in factors]
    return reduce(_outer, vectors[1:], scales[r] * vectors[0])


def _outer(product: Array, vector: Array) -> Array:
    """Multiply every entry with a vector, in any library of arrays."""
    return product[..., None] * vector
