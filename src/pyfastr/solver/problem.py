"""What is fitted: X, the response, sample weights and unpenalised covariates."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.projection import Projector
from pyfastr.sources import RoundedSource, Source

Array = NDArray[Any]

# Entries of X between these sizes can be rounded to float32 without harm.
FLOAT32_RANGE = (1e-20, 1e20)
# Squared residuals below this share of the response's are rounding, not a better fit.
SMALLEST_SHARE = 1e-9
# Taking the nuisance out leaves errors of about this many units in the last place.
ROUNDING = 32


@dataclass
class Problem:
    """A weighted least-squares problem in units in which X and y are of order one.

    Attributes
    ----------
    projector : Projector
        Projections of ``X / x_scale``.
    response : ndarray of shape (n_samples,)
        ``(y - its fit by the nuisance) / y_scale``.
    nuisance : ndarray of shape (n_samples, q)
        Orthonormal (in the sample weights) basis of intercept and covariates. What it explains
        is taken out of the projections, which equals fitting it without penalty in every update.
    weights : ndarray of shape (n_samples,) or None
        Of mean 1; None where all are equal.
    x_scale, y_scale : float
    """

    projector: Projector
    response: Array
    nuisance: Array
    weights: Array | None
    x_scale: float
    y_scale: float

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.response)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return self.projector.shape

    @property
    def n_effective(self) -> int:
        """Number of samples with a positive weight."""
        return self.n_samples if self.weights is None else int(np.count_nonzero(self.weights))

    def degrees_of_freedom(self, n_terms: int) -> int:
        """Free parameters of a sum of unit-rank terms, and of intercept and covariates."""
        return n_terms * (sum(self.shape) - len(self.shape) + 1) + self.nuisance.shape[1]

    def whiten(
        self, features: Array, response: Array, weights: Array | None
    ) -> tuple[Array, Array]:
        """Take the nuisance out of features ``(K, N, q)`` and response ``(K or 1, N)``, and weigh.

        Plain least squares on what is returned is weighted least squares with the nuisance.

        Parameters
        ----------
        features : ndarray of shape (K, n_samples, q)
        response : ndarray of shape (K or 1, n_samples)
        weights : ndarray of shape (K, n_samples) or None
            Weights of each model in place of the problem's.
        """
        g = self._weights(weights)
        dtype = features.dtype
        C = self.nuisance.astype(dtype, copy=False)
        if C.shape[1]:
            fit = self._nuisance_fit(C, features, g)
            explained = C @ fit
            # In place: the temporaries of a batch cost more than its arithmetic.
            features = np.subtract(features, explained, out=explained)
            # Where X does not vary beside the nuisance, what is left is rounding: no feature.
            rounding = (ROUNDING * np.finfo(dtype).eps) ** 2 * _sum_of_squares(fit)
            features[_sum_of_squares(features) <= rounding] = 0
            response = response - (C @ self._nuisance_fit(C, response[:, :, None], g))[..., 0]
        if g is None:
            return features, response
        root = np.sqrt(g).astype(dtype, copy=False)
        out = features if C.shape[1] else np.empty_like(features)
        return np.multiply(features, root[:, :, None], out=out), response * root

    def residuals(self, fitted: Array) -> Array:
        """Weighted residuals ``(K, N)`` of fits given without intercept and covariates."""
        dtype = fitted.dtype
        left = self.response.astype(dtype, copy=False) - fitted
        C = self.nuisance.astype(dtype, copy=False)
        g = self._weights(None)
        if C.shape[1]:
            left = left - (C @ self._nuisance_fit(C, left[:, :, None], g))[..., 0]
        return left if g is None else left * np.sqrt(g).astype(dtype, copy=False)

    def rounded(self) -> "Problem":
        """Return the same problem with X in float32, if that can hold it."""
        source = self.projector.source
        low, high = FLOAT32_RANGE
        if source.dtype == np.float32 or not low < self.x_scale < high:
            return self
        return replace(self, projector=Projector(RoundedSource(source), self.x_scale))

    def _weights(self, weights: Array | None) -> Array | None:
        if weights is not None:
            return weights if self.weights is None else weights * self.weights
        return None if self.weights is None else self.weights[None]

    def _nuisance_fit(self, C: Array, features: Array, g: Array | None) -> Array:
        """Coefficients ``(C'GC)^-1 C'G features`` of the nuisance columns."""
        if g is None:
            return C.T @ features  # C is orthonormal
        weighted = (g[:, :, None] * C).astype(C.dtype, copy=False).transpose(0, 2, 1)
        return np.linalg.solve(weighted @ C, weighted @ features)


def _sum_of_squares(arrays: Array) -> Array:
    """Sum over all axes but the first."""
    flat = arrays.reshape(len(arrays), 1, -1)
    return (flat @ flat.transpose(0, 2, 1))[:, 0, 0]


def make_problem(
    source: Source,
    y: Array,
    *,
    x_scale: float,
    fit_intercept: bool,
    sample_weight: Array | None = None,
    covariates: Array | None = None,
) -> Problem:
    """Scale the response and orthonormalise intercept and covariates; X is left alone."""
    weights = None
    if sample_weight is not None and np.ptp(sample_weight) > 0:
        weights = sample_weight / sample_weight.mean()
        y = np.where(weights > 0, y, 0.0)
    nuisance = _nuisance_basis(len(y), weights, fit_intercept, covariates)
    x_scale = x_scale if x_scale > 0 else 1.0
    largest = float(np.abs(y).max(initial=0.0)) or 1.0
    problem = Problem(Projector(source, x_scale), y / largest, nuisance, weights, x_scale, 1.0)
    centred = problem.residuals(np.zeros((1, len(y))))[0]
    # Rounding leaves a constant response not quite constant: below precision it is noise.
    spread = float(np.sqrt(np.mean(centred**2)))
    if spread < 8 * np.finfo(float).eps:
        spread = 1.0
        problem.response = np.zeros(len(y))
    else:
        root = 1.0 if weights is None else np.sqrt(np.where(weights > 0, weights, 1))
        problem.response = centred / root / spread
    problem.y_scale = largest * spread
    return problem


def _nuisance_basis(
    n_samples: int, weights: Array | None, fit_intercept: bool, covariates: Array | None
) -> Array:
    """Orthonormal columns, in the weights, that span intercept and covariates."""
    columns = [np.ones((n_samples, 1))] if fit_intercept else []
    if covariates is not None:
        size = np.abs(covariates).max(axis=0, initial=0.0)
        columns.append(covariates / np.where(size > 0, size, 1))
    if not columns:
        return np.empty((n_samples, 0))
    root = np.ones(n_samples) if weights is None else np.sqrt(weights)
    C = np.hstack(columns)
    _, s, Vt = np.linalg.svd(C * root[:, None], full_matrices=False)
    rank = int(np.sum(s > s.max(initial=0.0) * n_samples * np.finfo(float).eps))
    return C @ (Vt[:rank].T / s[:rank])
