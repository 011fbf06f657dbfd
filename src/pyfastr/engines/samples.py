"""What belongs to the samples beside X: responses, weights, and intercept and covariates."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.namespaces import take, to_device

Array = NDArray[Any]


@dataclass(frozen=True)
class Samples:
    """T tasks on the same samples: a response, weights and a nuisance of each.

    The arrays are of NumPy, or beside a block of X on its device.

    Attributes
    ----------
    response : ndarray of shape (T, n_samples)
        Without what the nuisance explains, of mean square one.
    nuisance : ndarray of shape (1 or T, n_samples, c)
        Orthonormal (in the weights) basis of intercept and covariates; columns beyond their rank
        are zero. One for all tasks where these have the same weights.
    weights : ndarray of shape (1 or T, n_samples) or None
        Of mean 1; None where all are equal.
    """

    response: Array
    nuisance: Array
    weights: Array | None = None

    @classmethod
    def alone(cls, n_samples: int) -> "Samples":
        """Return samples without any response."""
        return cls(np.zeros((1, n_samples)), np.empty((1, n_samples, 0)))

    def __len__(self) -> int:
        return self.response.shape[1]

    @cached_property
    def explained(self) -> Array:
        """Sums ``(T, c)`` of response and nuisance: none, but for a part of all samples."""
        weighed = self.response if self.weights is None else self.response * self.weights
        explained: Array = (weighed[:, None] @ self.nuisance)[:, 0]
        return explained

    @cached_property
    def total(self) -> Array:
        """Weighted sums ``(T,)`` of the squared response, without what the nuisance explains."""
        squares = self.response * self.response
        whole = np.sum(squares if self.weights is None else squares * self.weights, axis=1)
        return whole - np.sum(self.explained**2, axis=1)

    def rows(self, which: slice | Array) -> "Samples":
        """Return some of the samples, as they are."""
        weights = None if self.weights is None else self.weights[:, which]
        return Samples(self.response[:, which], self.nuisance[:, which], weights)

    def beside(self, values: Any) -> "Samples":
        """Return the same where a block of X is."""
        if isinstance(values, np.ndarray):
            return self
        weights = None if self.weights is None else to_device(self.weights, like=values)
        response, nuisance = (to_device(a, like=values) for a in (self.response, self.nuisance))
        return Samples(response, nuisance, weights)

    def task(self, which: int) -> "Samples":
        """Return one task."""
        part = slice(which, which + 1)
        return Samples(
            self.response[part],
            _own(self.nuisance, part),
            None if self.weights is None else _own(self.weights, part),
        )

    def response_of(self, task: Array) -> Array:
        """Response of each model ``(K or 1, n)``."""
        return rows_of(self.response, task)

    def nuisance_of(self, task: Array) -> Array:
        """Nuisance of each model ``(K or 1, n, c)``."""
        return rows_of(self.nuisance, task)

    def weights_of(self, task: Array, further: Array | None = None) -> Array | None:
        """Weights of each model's task ``(K or 1, n)``, times further ones of the models."""
        if self.weights is None:
            return further
        own = rows_of(self.weights, task)
        return own if further is None else own * further

    @property
    def has_intercept(self) -> bool:
        """Whether a constant is in the span of every nuisance, where samples count."""
        C = self.nuisance
        g = np.ones((1, len(self))) if self.weights is None else self.weights
        constant = (C @ (g[:, None, :] @ C).transpose(0, 2, 1))[..., 0]
        return bool(C.shape[2] and np.all((np.abs(constant - 1) < 1e-6) | (g == 0)))


def rows_of(values: Any, task: Array) -> Array:
    """Return each model's row of an array with one row a task, shared where there is one."""
    if values.shape[0] == 1:
        return values
    rows: Array = values[task] if isinstance(values, np.ndarray) else take(values, task, axis=0)
    return rows


def _own(values: Array, part: slice) -> Array:
    return values if len(values) == 1 else values[part]
