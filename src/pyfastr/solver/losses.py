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
from scipy.special import expit, logsumexp, xlogy

from pyfastr.engines.solving import solve

Array = NDArray[Any]

# Newton steps of intercept and covariates, and the change of a predictor that ends them.
OFFSET_STEPS, SMALL_OFFSET_STEP = 25, 1e-9
# The quadratic model of the logistic loss is true only so far away.
LARGEST_OFFSET_STEP = 4.0
# Counts of a greater size, beside predictors of zero, make squares that are no floats.
LARGEST_COUNT = 1e100
# Samples that count nothing are taken to have counted so much, whose logarithm is finite.
SMALLEST_TOTAL = 1e-5


class Loss(ABC):
    """What sweeps lower, and what it asks of y. Another loss is another subclass.

    Attributes
    ----------
    is_quadratic : bool
        Whether one weighted least squares is the solution of an update, not a step towards it.
    smallest_curvature : float
        What a sample's share in the curvature is at least in Newton steps.
    """

    is_quadratic: ClassVar[bool] = False
    smallest_curvature: ClassVar[float] = 0.0

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

    def deviance(self, target: Array, predictor: Array) -> float:
        """Return the deviance of all samples."""
        return float(2 * np.sum(self.losses(target, predictor)))

    def flaw_of(self, y: Array, weights: Array | None) -> str:
        """Say why y of shape ``(n_samples,)`` cannot be fitted; nothing if it can."""
        return ""

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
        curvature = np.maximum(self.variance(mean), self.smallest_curvature)
        return curvature, predictor + (target - mean) / curvature

    def first_offset(self, target: Array, fitted: Array, C: Array, weights: Array | None) -> Array:
        """Return the offset ``(K, n_samples)`` in the span of C from which Newton steps begin."""
        return np.zeros_like(fitted)

    def is_worth_keeping(self, observed: "Observed", fitted: Array) -> Array:
        """Tell which fitted values ``(K, N)`` a Newton step may begin from, instead of zero."""
        return np.ones(len(fitted), bool)


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

    # That of a label does not vanish, however sure the model is of it.
    smallest_curvature: ClassVar[float] = 1e-5

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


class PoissonLoss(Loss):
    """Counts, the logarithms of whose means are predicted."""

    def mean(self, predictor: Array) -> Array:
        """Return the exponential, within a range whose squares are finite and not zero."""
        limit = np.log(np.finfo(predictor.dtype).max) / 2.1
        return np.exp(np.clip(predictor, -limit, limit))

    def variance(self, mean: Array) -> Array:
        """Return the mean."""
        return mean

    def losses(self, target: Array, predictor: Array) -> Array:
        """Return ``mean - y - y log(mean / y)``."""
        return xlogy(target, target) - target - target * predictor + self.mean(predictor)

    def curvature_at_rest(self, target: Array, weights: Array | None) -> float | Array:
        """Return the mean count, which is that of all samples without X."""
        return np.mean(target if weights is None else target * weights, axis=1)

    def flaw_of(self, y: Array, weights: Array | None) -> str:
        """Say so of negative numbers, and of zeros alone."""
        negative = np.flatnonzero(y < 0)
        if len(negative):
            return (
                f"y holds {y[negative[0]]:g} at sample {negative[0]}; expected counts of 0 or more "
                "for loss='poisson'. Use loss='squared' for such data."
            )
        if np.max(y) > LARGEST_COUNT:
            return (
                f"y holds {np.max(y):g} at sample {np.argmax(y)}; expected counts up to "
                f"{LARGEST_COUNT:g} for loss='poisson'. Rescale y, which moves only the intercept."
            )
        if np.any(y if weights is None else y[weights > 0]):
            return ""
        return (
            "y holds 0 for all samples that count; expected at least one count above 0 for "
            "loss='poisson'. Check y and sample_weight."
        )

    def start(self, y: Array, C: Array, weights: Array | None) -> Array:
        """Return the logarithm of means half-way between the null model's and the counts.

        Counts themselves are too skewed: their largest would decide which starts win.
        """
        ones = np.ones((len(y), 1))
        alone = Observed(self, y, C, weights, ones).offset(np.zeros(y.shape))
        return np.log((y / self.mean(alone) + 1) / 2)

    def predict(self, predictor: Array) -> Array:
        """Return mean counts."""
        return self.mean(predictor)

    def in_units_of_y(self, loss: Array, y_scale: float) -> Array:
        """Return mean deviances."""
        return 2 * loss

    def are_equal(self, counts: Array) -> bool:
        """Whether counts differ so little that their deviances, which are squares, are rounding."""
        return bool(np.ptp(counts) <= np.sqrt(np.finfo(float).eps) * np.max(counts))

    def trusted_share(self, size: Array) -> Array:
        """Share of a step with which the loss falls from anywhere, as its curvature is its slope.

        The damped Newton step of generalised self-concordant functions (Sun, Tran-Dinh 2019).
        """
        safe = np.maximum(size, 1e-300)
        return np.log1p(safe) / safe

    def first_offset(self, target: Array, fitted: Array, C: Array, weights: Array | None) -> Array:
        """Return the constant that makes the mean of the model that of the counts.

        It is all there is to an intercept alone. Without intercept steps begin at zero.
        """
        g = np.ones(target.shape) if weights is None else weights
        constant = (C @ (g[:, None, :] @ C).transpose(0, 2, 1))[..., 0]
        total = np.sum(g * target, axis=1, keepdims=True)
        level = np.log(np.where(total > 0, total, SMALLEST_TOTAL))
        level = level - logsumexp(fitted, axis=1, b=g, keepdims=True)
        has_intercept = np.all((np.abs(constant - 1) < 1e-6) | (g == 0), axis=1, keepdims=True)
        return np.where(has_intercept, np.broadcast_to(level, fitted.shape), 0.0)

    def is_worth_keeping(self, observed: "Observed", fitted: Array) -> Array:
        """Tell which are better than zero; means of others may be out of all range."""
        nothing = observed.mean_loss(observed.predictor(np.zeros_like(fitted)))
        return ~(nothing < observed.mean_loss(observed.predictor(fitted)))


SQUARED, LOGISTIC, POISSON = SquaredLoss(), LogisticLoss(), PoissonLoss()
LOSSES: dict[str, Loss] = {"squared": SQUARED, "logistic": LOGISTIC, "poisson": POISSON}


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
        if not C.shape[2]:
            return np.zeros_like(fitted)
        offset = self.loss.first_offset(self.target, fitted, C, weights)
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
    if C.shape[2] == 1:
        column = C[:, :, 0]
        weighted = g * column
        square = np.einsum("kn,kn->k", weighted, column)
        product = np.einsum("kn,kn->k", weighted, response)
        return column * (product / np.where(square == 0, 1, square))[:, None]
    weighted = (g[:, :, None] * C).transpose(0, 2, 1)
    gram = weighted @ C
    diagonal = np.arange(C.shape[2])
    gram[:, diagonal, diagonal] += gram[:, diagonal, diagonal] == 0
    return (C @ solve(gram, weighted @ response[:, :, None]))[..., 0]
