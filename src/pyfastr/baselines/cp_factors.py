"""Coefficients as sums of outer products whose factors have sizes of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines import LocalEngine
from pyfastr.solver.models import unit

Array = NDArray[Any]


@dataclass(frozen=True)
class CPFactors:
    """K models of R terms: ``u_mr = sizes[:, r, m] * components[m][:, r]``.

    The components have unit length (or are zero) and are replaced only by an update of their mode,
    so that the engine can keep what it contracted with them; the sizes, on which penalties of
    factors depend, may change at any time.

    Attributes
    ----------
    components : list of M arrays of shape (K, R, p_m)
    sizes : ndarray of shape (K, R, M)
    """

    components: list[Array]
    sizes: Array

    @classmethod
    def from_arrays(cls, factors: Sequence[Array]) -> Self:
        """Take factors of shape ``(K, R, p_m)`` apart."""
        pairs = [unit(np.asarray(f, dtype=np.float64)) for f in factors]
        return cls([c for c, _ in pairs], np.stack([s for _, s in pairs], axis=-1))

    @property
    def norms(self) -> Array:
        """Length of every term, the product of its sizes: ``(K, R)``."""
        return self.sizes.prod(axis=-1)

    def take(self, which: Array | slice) -> "CPFactors":
        """Return some of the models."""
        return CPFactors([c[which] for c in self.components], self.sizes[which])

    def factor(self, mode: int) -> Array:
        """Return u_m of all models: ``(K, R, p_m)``."""
        return self.sizes[..., mode, np.newaxis] * self.components[mode]

    def features(self, engine: LocalEngine, mode: int) -> Array:
        """Project every sample onto one mode: ``(K, n_samples, R * p_m)``, term after term."""
        projected = engine.projections(self.components, mode).astype(np.float64, copy=False)
        others = np.delete(self.sizes, mode, axis=-1).prod(axis=-1)
        scaled = (projected * others[..., np.newaxis, np.newaxis]).transpose(0, 2, 1, 3)
        return scaled.reshape(len(scaled), engine.n_samples, -1)

    def replace(self, mode: int, solution: Array) -> "CPFactors":
        """Return the models with ``(K, R * p_m)`` as factors of that mode."""
        K, R, p = self.components[mode].shape
        components, sizes = list(self.components), self.sizes.copy()
        components[mode], sizes[..., mode] = unit(solution.reshape(K, R, p))
        return CPFactors(components, sizes)

    def balanced(self, scale: Array | float = 1.0) -> "CPFactors":
        """Multiply every model by a scale >= 0 and give all factors of a term the same size.

        Of all factors with the same product, these have the least sum of squares.
        """
        M = len(self.components)
        norms = self.norms * np.reshape(scale, (-1, 1))
        return CPFactors(self.components, np.repeat(norms[..., np.newaxis] ** (1 / M), M, axis=-1))

    def negated(self, which: Array) -> "CPFactors":
        """Turn the sign of some models."""
        if not which.any():
            return self
        signs = np.where(which, -1.0, 1.0)[:, np.newaxis, np.newaxis]
        return CPFactors([signs * self.components[0], *self.components[1:]], self.sizes)

    def coefficient(self, which: int = 0) -> Array:
        """Build one model's coefficient array of shape ``(p1, ..., pM)``."""
        total: Array = self.factor(0)[which]
        for mode in range(1, len(self.components)):
            own = self.factor(mode)[which]
            total = total[..., np.newaxis] * own.reshape(len(own), *[1] * mode, -1)
        return total.sum(axis=0)
