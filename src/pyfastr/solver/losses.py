"""Losses: how far a prediction is from what was observed, and the least squares that lower it.

Each is half the deviance of a distribution with its canonical link. Its slope in the linear
predictor is ``mean - target`` and its curvature the variance, so that a Newton step is weighted
least squares with a response that every update renews (IRLS).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[Any]

# A sample's share in the curvature never vanishes, however sure the model is of it.
SMALLEST_CURVATURE = 1e-5
# Newton steps of intercept and covariates, and the change of a predictor that ends them.
OFFSET_STEPS, SMALL_OFFSET_STEP = 25, 1e-9
# The quadratic model of the logistic loss is true only so far away.
LARGEST_OFFSET_STEP = 4.0


class Loss(ABC):
    """What sweeps lower, and what it asks of y. Another loss is another subclass.

    Attributes
    ----------
    is_quadratic : bool
        Whether one weighted least squares is the solution of an update, not a step towards it.
    """

    is_quadratic: ClassVar[bool] = False

    @abstractmethod
    def mean(self, predictor: Array) -> Array:
        """Return the mean of the target at a linear predictor."""

    @abstractmethod
    def variance(self, mean: Array) -> Array:
        """Return the variance of a target of this mean, up to the dispersion."""

    @abstractmethod
    def losses(self, target: Array, predictor: Array) -> Array:
        """Return half the deviance of every sample."""

    @abstractmethod
    def curvature_at_rest(self, target: Array, weights: Array | None) -> float | Array:
        """Return the mean curvature ``(K,)`` where nothing is known; ridges are relative to it."""

    def target(self, y: Array) -> Array:
        """Bring y to the scale of the mean."""
        return y

    def start(self, y: Array, C: Array, weights: Array | None) -> Array:
        """Return the response ``(T, n_samples)`` from which starts are sought by least squares.

        Parameters
        ----------
        y : ndarray of shape (T, n_samples)
        C : ndarray of shape (T, n_samples, q)
            Orthonormal columns of intercept and covariates.
        weights : ndarray of shape (T, n_samples) or None
        """
        return y

    def rescaled(self, response: Array, y_scale: Array) -> tuple[Array, Array]:
        """Return the response of mean square one and its scale, or in units the loss prefers."""
        return response, y_scale

    def predict(self, predictor: Array) -> Array:
        """Return what estimators predict at a linear predictor."""
        return predictor

    def in_units_of_y(self, loss: Array, y_scale: float) -> Array:
        """Bring mean losses of models to the units in which a user reads them."""
        return loss

    def trusted_share(self, size: Array) -> Array:
        """Share of a step to take that changes predictors by up to `size`."""
        return np.minimum(1, LARGEST_OFFSET_STEP / np.maximum(size, 1e-300))

    def working(self, target: Array, predictor: Array) -> tuple[Array, Array]:
        """Weights and response of the least squares that a Newton step solves."""
        mean = self.mean(predictor)
        curvature = np.maximum(self.variance(mean), SMALLEST_CURVATURE)
        return curvature, predictor + (target - mean) / curvature


class SquaredLoss(Loss):
    """Real numbers with normal noise, or labels -1 and 1 taken for such."""

    is_quadratic: ClassVar[bool] = True

    def mean(self, predictor: Array) -> Array:
        """Return the predictor."""
        return predictor

    def variance(self, mean: Array) -> Array:
        """Return ones."""
        return np.ones_like(mean)

    def losses(self, target: Array, predictor: Array) -> Array:
        """Return half the squared residuals."""
        return np.square(target - predictor) / 2

    def curvature_at_rest(self, target: Array, weights: Array | None) -> float | Array:
        """Return the mean weight: the curvature is one everywhere."""
        return 1.0 if weights is None else np.mean(weights, axis=1)

    def in_units_of_y(self, loss: Array, y_scale: float) -> Array:
        """Return mean squared residuals."""
        # The square of a huge y is infinite, and nothing else suffers from it.
        with np.errstate(over="ignore"):
            return np.square(np.sqrt(loss) * y_scale)


class LogisticLoss(Loss):
    """Labels -1 and 1, whose log-odds are predicted; starts are sought for the labels."""

    def mean(self, predictor: Array) -> Array:
        """Return the probability of label 1."""
        return expit(predictor)

    def variance(self, mean: Array) -> Array:
        """Return ``p (1 - p)``."""
        return mean * (1 - mean)

    def losses(self, target: Array, predictor: Array) -> Array:
        """Return ``log(1 + exp(-label * predictor))``."""
        return np.logaddexp(0, (1 - 2 * target) * predictor)

    def curvature_at_rest(self, target: Array, weights: Array | None) -> float | Array:
        """Return 1/4, that of even odds: samples the model is sure of have none."""
        return 0.25 if weights is None else np.mean(weights, axis=1) / 4

    def target(self, y: Array) -> Array:
        """Return 0 and 1 for labels -1 and 1."""
        return (y + 1) / 2

    def rescaled(self, response: Array, y_scale: Array) -> tuple[Array, Array]:
        """Return the response in units of the labels."""
        return response * y_scale[:, None], np.ones(len(y_scale))


SQUARED, LOGISTIC = SquaredLoss(), LogisticLoss()
LOSSES: dict[str, Loss] = {"squared": SQUARED, "logistic": LOGISTIC}


@dataclass(frozen=True)
class Observed:
    """What K models are to predict, beside intercept and covariates that are profiled out.

    Attributes
    ----------
    loss : Loss
    target : ndarray of shape (K or 1, n_samples)
    nuisance : ndarray of shape (K or 1, n_samples, q)
        Orthonormal (in the sample weights) columns; zero beyond their rank.
    weights : ndarray of shape (K or 1, n_samples) or None
    scale : ndarray of shape (K or 1, 1)
        Of the linear predictor, in units of fitted values.
    """

    loss: Loss
    target: Array
    nuisance: Array
    weights: Array | None
    scale: Array

    def mean_loss(self, predictor: Array) -> Array:
        """Weighted mean ``(K,)`` of the loss."""
        losses = self.loss.losses(self.target, predictor)
        return np.mean(losses if self.weights is None else losses * self.weights, axis=-1)

    def predictor(self, fitted: Array) -> Array:
        """Linear predictor ``(K, N)``: fitted values, intercept and covariates."""
        scaled = fitted * self.scale
        return scaled + self._offset(scaled)

    def offset(self, fitted: Array) -> Array:
        """Best contribution ``C @ gamma`` of intercept and covariates beside fitted values."""
        return self._offset(fitted * self.scale)

    def _offset(self, fitted: Array) -> Array:
        """Take Newton steps of gamma, beside the predictor without them."""
        C, weights = self.nuisance, self.weights
        offset = np.zeros_like(fitted)
        if not C.shape[2]:
            return offset
        for _ in range(OFFSET_STEPS):
            curvature, response = self.loss.working(self.target, fitted + offset)
            g = curvature if weights is None else curvature * weights
            step = _weighted_fit(C, g, response - fitted) - offset
            moved = np.abs(step if weights is None else step * (weights > 0))
            size = moved.max(axis=1, keepdims=True)
            if np.all(size <= SMALL_OFFSET_STEP):
                break
            offset = offset + step * self.loss.trusted_share(size)
        return offset


def _weighted_fit(C: Array, g: Array, response: Array) -> Array:
    """Fit responses ``(K, N)`` by columns in the weights; those of zeros stay out."""
    weighted = (g[:, :, None] * C).transpose(0, 2, 1)
    gram = weighted @ C
    diagonal = np.arange(C.shape[2])
    gram[:, diagonal, diagonal] += gram[:, diagonal, diagonal] == 0
    return (C @ np.linalg.solve(gram, weighted @ response[:, :, None]))[..., 0]
