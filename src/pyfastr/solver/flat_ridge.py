"""Ridge regression on samples as vectors, for a whole grid of penalties."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class FlatTask:
    """What one fold is to predict, of one output.

    Attributes
    ----------
    y : ndarray of shape (n_samples,)
        Also of samples that are held out, which is not looked at.
    weights : ndarray of shape (n_samples,)
        Zero where samples are held out.
    nuisance : ndarray of shape (n_samples, c)
        Intercept and covariates as columns that are orthonormal in the weights, or zero.
    """

    y: Array
    weights: Array
    nuisance: Array

    @cached_property
    def train(self) -> Array:
        """Numbers of the samples that count."""
        return np.flatnonzero(self.weights)

    @cached_property
    def test(self) -> Array:
        """Numbers of the others."""
        return np.flatnonzero(self.weights == 0)

    @cached_property
    def explaining(self) -> Array:
        """What training responses are multiplied with for coefficients of the nuisance."""
        own: Array = (self.nuisance[self.train] * self.weights[self.train, None]).T
        return own

    def without_nuisance(self, values: Array) -> Array:
        """Take out of values ``(n_samples, q)`` what the nuisance explains of training samples."""
        return values - self.nuisance @ (self.explaining @ values[self.train])

    @cached_property
    def explained(self) -> Array:
        """What intercept and covariates alone predict ``(n_samples,)``."""
        own: Array = self.nuisance @ (self.explaining @ self.y[self.train])
        return own

    @cached_property
    def response(self) -> Array:
        """What is left of the training responses."""
        left: Array = (self.y - self.explained)[self.train]
        return left


@dataclass(frozen=True)
class Spectrum:
    """Weighted samples in the basis in which all ridge regressions are diagonal.

    Attributes
    ----------
    values : ndarray of shape (q,)
        Squared singular values.
    moments : ndarray of shape (q,)
    basis : ndarray of shape (n_samples, q)
        What is fitted is ``basis @ (moments / (values + penalty))``.
    """

    values: Array
    moments: Array
    basis: Array


def by_features(X: Array, outputs: Sequence[FlatTask]) -> list[Spectrum]:
    """Decompose the Gram matrix of features, which all outputs share: N P² + 10 P³ flops."""
    task = outputs[0]
    left = task.without_nuisance(X)
    own, g = left[task.train], task.weights[task.train]
    values, vectors = np.linalg.eigh((own * g[:, None]).T @ own)
    values, basis = np.maximum(values, 0), left @ vectors
    return [Spectrum(values, ((g * o.response) @ own) @ vectors, basis) for o in outputs]


def by_samples(products: Array, outputs: Sequence[FlatTask]) -> list[Spectrum]:
    """Decompose the inner products of the training samples, for all outputs: 10 N³ flops."""
    task = outputs[0]
    train, test, root = task.train, task.test, np.sqrt(task.weights[task.train])
    left = task.without_nuisance(products[:, train])
    left -= (left @ task.explaining.T) @ task.nuisance[train].T
    values, vectors = np.linalg.eigh(root[:, None] * left[train] * root)
    values = np.maximum(values, 0)
    basis = np.empty(left.shape)
    basis[train] = vectors * values / root[:, None]
    basis[test] = (left[test] * root) @ vectors
    return [Spectrum(values, (root * o.response) @ vectors, basis) for o in outputs]


def ridge_predictors(found: Spectrum, task: FlatTask, alphas: Array) -> tuple[Array, Array]:
    """Return penalties ``(A,)`` and what they lead to for all samples ``(A, n_samples)``."""
    penalties = alphas * size_of(found.values.sum(), task)
    shrunk = found.moments[:, None] / (found.values[:, None] + penalties)
    return penalties, (found.basis @ shrunk).T + task.explained


def size_of(total: float, task: FlatTask) -> float:
    """Mean squared length of a sample, to which penalties are relative; 1 if X does not vary."""
    return float(total) / len(task.train) or 1.0
