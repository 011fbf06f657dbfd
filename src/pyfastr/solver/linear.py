"""Linear problems of joint steps, as normal equations or by samples."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.kernels import work_parts
from pyfastr.engines.parallel import map_threads, solve_vectors
from pyfastr.solver.journal import remembered

Array = NDArray[Any]


class Linear(Protocol):
    """K linear problems at a point: residuals as functions of a step."""

    @property
    def rss(self) -> Array:
        """Sums of squared residuals ``(K,)``."""

    @property
    def diagonal(self) -> Array:
        """Of the Gram matrices ``(K, q)``."""

    @property
    def moment(self) -> Array:
        """``J'r``, of shape ``(K, q)``."""

    def take(self, which: Array) -> "Linear":
        """Return some of the problems."""

    def replaced(self, which: Array, new: Any) -> "Linear":
        """Return these with some of them replaced."""

    def rescaled(self, factors: Array) -> "Linear":
        """Return the problems of parameters ``(K, q)`` that are so many times as large."""

    def solve(self, diagonal: Array, rhs: Array) -> Array:
        """Solve ``(J'J + D) x = rhs``."""


@remembered
@dataclass(frozen=True)
class LinearEquations:
    """Linear problems as normal equations.

    Attributes
    ----------
    gram : ndarray of shape (K, q, q)
        ``J'J`` of the Jacobian of the fitted values.
    moment : ndarray of shape (K, q)
        ``J'r`` of the residuals.
    rss : ndarray of shape (K,)
    """

    gram: Array
    moment: Array
    rss: Array

    @property
    def diagonal(self) -> Array:
        """Of the Gram matrices ``(K, q)``."""
        return np.einsum("kii->ki", self.gram)

    def take(self, which: Array) -> "LinearEquations":
        """Return some of the problems."""
        return LinearEquations(self.gram[which], self.moment[which], self.rss[which])

    def replaced(self, which: Array, new: "LinearEquations") -> "LinearEquations":
        """Return these with some of them replaced."""
        new.gram[~which] = self.gram[~which]
        return LinearEquations(
            new.gram,
            np.where(which[:, None], new.moment, self.moment),
            np.where(which, new.rss, self.rss),
        )

    def rescaled(self, factors: Array) -> "LinearEquations":
        """Return the problems of parameters ``(K, q)`` that are so many times as large."""

        def divide(part: slice) -> None:
            # In place: new memory would cost more than the division. The matrices were made for
            # this step by `replaced`, and nobody else has them.
            own = factors[part]
            self.gram[part] /= own[:, :, None] * own[:, None, :]

        map_threads(divide, work_parts(self.gram))
        return LinearEquations(self.gram, self.moment / factors, self.rss)

    def solve(self, diagonal: Array, rhs: Array) -> Array:
        """Solve ``(J'J + D) x = rhs``."""
        entries = np.arange(rhs.shape[1])

        def solve(part: slice) -> Array:
            gram = self.gram[part].copy()
            gram[:, entries, entries] += diagonal[part]
            return solve_vectors(gram, rhs[part])

        return np.concatenate(map_threads(solve, work_parts(self.gram)))


@remembered
@dataclass(frozen=True)
class LinearSamples:
    """Linear problems of fewer samples than entries, by their Jacobians.

    Attributes
    ----------
    J : ndarray of shape (K, n_samples, q)
    r : ndarray of shape (K, n_samples)
    """

    J: Array
    r: Array

    @property
    def rss(self) -> Array:
        """Sums of squared residuals."""
        return np.sum(self.r**2, axis=1)

    @property
    def diagonal(self) -> Array:
        """Of the Gram matrices ``(K, q)``."""
        return np.einsum("kni,kni->ki", self.J, self.J)

    @property
    def moment(self) -> Array:
        """Return ``J'r``."""
        return (self.r[:, None] @ self.J)[:, 0]

    def take(self, which: Array) -> "LinearSamples":
        """Return some of the problems."""
        return LinearSamples(self.J[which], self.r[which])

    def replaced(self, which: Array, new: "LinearSamples") -> "LinearSamples":
        """Return these with some of them replaced."""
        new.J[~which] = self.J[~which]
        return LinearSamples(new.J, np.where(which[:, None], new.r, self.r))

    def rescaled(self, factors: Array) -> "LinearSamples":
        """Return the problems of parameters ``(K, q)`` that are so many times as large."""
        return LinearSamples(self.J / factors[:, None], self.r)

    def solve(self, diagonal: Array, rhs: Array) -> Array:
        """Solve ``(J'J + D) x = rhs`` in the space of samples."""
        samples = np.arange(self.J.shape[1])

        def solve(part: slice) -> Array:
            J, D, b = self.J[part], diagonal[part], rhs[part]
            scaled = J / D[:, None, :]
            kernel = scaled @ J.transpose(0, 2, 1)
            kernel[:, samples, samples] += 1
            dual = solve_vectors(kernel, (scaled @ b[:, :, None])[..., 0])
            return b / D - (scaled.transpose(0, 2, 1) @ dual[:, :, None])[..., 0]

        return np.concatenate(map_threads(solve, work_parts(self.J)))
