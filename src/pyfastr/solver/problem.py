"""What is fitted: X, and tasks of a response, sample weights and unpenalised covariates each."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines import Engine, Fits, Samples, engine_of
from pyfastr.engines.equations import ROUNDING, solve_nuisance
from pyfastr.engines.kernels import misfits
from pyfastr.engines.samples import rows_of
from pyfastr.solver.losses import SQUARED, Loss, Observed
from pyfastr.solver.models import Models
from pyfastr.solver.ties import UNTIED, Ties
from pyfastr.sources import Source

Array = NDArray[Any]

# Entries of X between these sizes can be rounded to float32 without harm.
FLOAT32_RANGE = (1e-20, 1e20)
# X whose largest entry is between these sizes is taken as it is, so that samples of weight zero
# do not even change the rounding.
PLAIN_RANGE = (1e-6, 1e6)
# Squared residuals below this share of the response's are rounding, not a better fit.
SMALLEST_SHARE = 1e-9


@dataclass
class Problem:
    """T weighted regressions on the same X, in units in which X and y are of order one.

    Folds, permuted responses and resampled data are tasks: other responses or other weights of
    the same samples. A model belongs to the task whose number it carries.

    Attributes
    ----------
    engine : Engine
        ``X / x_scale``, with responses, weights and nuisance of all tasks bound to its samples. A
        response is ``(y - its fit by the nuisance) / y_scale``. What the nuisance (intercept and
        covariates) explains is taken out of the features, which equals fitting it without penalty
        in every update.
    x_scale : float
        1, or a power of two for X that is tiny or huge: dividing by it rounds nothing.
    y_scale : ndarray of shape (T,)
        What a fitted value of one adds to the linear predictor.
    target : ndarray of shape (T, n_samples)
        y on the scale of its mean, where that is not the linear predictor.
    loss : Loss
        What sweeps lower. The search for starts works by least squares on the response.
    n_outputs : int
        So many tasks in a row have the same weights, and differ by their responses alone.
    ties : Ties
        Modes whose components are the same up to sign.
    """

    engine: Engine
    x_scale: float
    y_scale: Array
    target: Array
    loss: Loss = SQUARED
    n_outputs: int = 1
    ties: Ties = UNTIED

    @property
    def samples(self) -> Samples:
        """Responses, weights and nuisance of all tasks."""
        return self.engine.samples

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.samples.response)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.engine.n_samples

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return self.engine.shape

    @cached_property
    def n_effective(self) -> Array:
        """Number of samples with a positive weight in each task."""
        weights = self.samples.weights
        counts = self.n_samples if weights is None else np.count_nonzero(weights, axis=1)
        return np.broadcast_to(counts, self.n_tasks)

    @cached_property
    def n_nuisance(self) -> Array:
        """Rank of intercept and covariates in each task."""
        ranks = np.count_nonzero(self.samples.nuisance.any(axis=1), axis=1)
        return np.broadcast_to(ranks, self.n_tasks)

    def degrees_of_freedom(self, n_terms: int) -> Array:
        """Free parameters of a sum of unit-rank terms, and of intercept and covariates."""
        sizes = [self.shape[m] for m in self.ties.own(len(self.shape))]
        return n_terms * (sum(sizes) - len(sizes) + 1) + self.n_nuisance

    def task(self, which: int) -> "Problem":
        """Return the problem of one task."""
        part = slice(which, which + 1)
        return replace(
            self,
            engine=self.engine.bind(self.samples.task(which), self.x_scale),
            y_scale=self.y_scale[part],
            target=self.target[part],
            n_outputs=1,
        )

    def whiten(
        self, features: Array, response: Array, task: Array, further: Array | None = None
    ) -> tuple[Array, Array]:
        """Take the nuisance out of features ``(K, N, q)`` and response ``(K or 1, N)``, and weigh.

        Plain least squares on what is returned is weighted least squares with the nuisance, in
        further weights ``(K, N)`` of each model times the task's.
        """
        g = self.samples.weights_of(task, further)
        dtype = features.dtype
        C = self.samples.nuisance_of(task).astype(dtype, copy=False)
        if C.shape[2]:
            fit = _nuisance_fit(C, features, g)
            features = features - C @ fit
            response = response - (C @ _nuisance_fit(C, response[:, :, None], g))[..., 0]
        if g is not None:
            root = np.sqrt(g).astype(dtype, copy=False)
            features, response = features * root[:, :, None], response * root
        if C.shape[2]:
            # Where X does not vary beside the nuisance, what is left is rounding: no feature.
            rounding = (ROUNDING * np.finfo(dtype).eps) ** 2 * _sum_of_squares(fit)
            features[_sum_of_squares(features) <= rounding] = 0
        return features, response

    def residuals(self, fitted: Array, task: Array) -> Array:
        """Weighted residuals ``(K, N)`` of fits given without intercept and covariates."""
        dtype = fitted.dtype
        left = self.samples.response_of(task).astype(dtype, copy=False) - fitted
        C = self.samples.nuisance_of(task).astype(dtype, copy=False)
        g = self.samples.weights_of(task)
        if C.shape[2]:
            left = left - (C @ _nuisance_fit(C, left[:, :, None], g))[..., 0]
        return left if g is None else left * np.sqrt(g).astype(dtype, copy=False)

    def slopes(self, fitted: Array, task: Array) -> Array:
        """Weighted ``target - mean`` ``(K, N)``: how fast the loss falls with each fitted value."""
        g = self.samples.weights_of(task)
        if self.loss.is_quadratic:
            left = self.residuals(fitted, task)
            return left if g is None else left * np.sqrt(g)
        observed = self.observed(task)
        left = observed.target - self.loss.mean(observed.predictor(fitted))
        return left if g is None else left * g

    def observed(self, task: Array) -> Observed:
        """Return what models of these tasks are to predict."""
        return Observed(
            self.loss,
            rows_of(self.target, task),
            self.samples.nuisance_of(task),
            self.samples.weights_of(task),
            rows_of(self.y_scale, task)[:, None],
        )

    def losses(self, models: Models) -> Array:
        """Weighted mean of squared residuals, or of another loss, of each model."""
        if self.loss.is_quadratic:
            return self.engine.losses(models).rss / self.n_samples
        return self.losses_of(self.engine.fitted(models), models.task)

    def losses_of(self, fitted: Array, task: Array) -> Array:
        """Return the same of fitted values ``(K, N)``."""
        if self.loss.is_quadratic:
            return np.mean(self.residuals(fitted, task) ** 2, axis=1)
        observed = self.observed(task)
        return observed.mean_loss(observed.predictor(fitted))

    def misfits_of(self, fitted: Array, task: Array) -> Array:
        """Share of the response that fits leave unexplained at the scale that fits best."""
        z = self.samples.response_of(task)
        C, g = self.samples.nuisance_of(task), self.samples.weights_of(task)
        return Fits.of(misfits(z - fitted, z, C, g), self.samples, task).misfit

    def to_search(self) -> "Problem":
        """Return the least squares on the response from which starts are sought.

        X that is elsewhere and small is brought here, where many passes cost little.
        """
        return replace(self, loss=SQUARED, engine=self.engine.nearby())

    def rounded(self) -> "Problem":
        """Return the same problem with X in float32, if that can hold it."""
        low, high = FLOAT32_RANGE
        if self.engine.dtype == np.float32 or not low < self.x_scale < high:
            return self
        return replace(self, engine=self.engine.rounded())

    def subset(self, which: Array) -> "Problem":
        """Return the same problems with some of the samples, in ascending order."""
        some = self.samples.rows(which)
        weights = np.ones((1, len(which))) if some.weights is None else some.weights
        bases = np.broadcast_to(some.nuisance, (len(weights), *some.nuisance.shape[1:]))
        pairs = zip(bases, np.sqrt(weights), strict=True)
        nuisance = np.stack([_orthonormal(C, root) for C, root in pairs])
        return replace(
            self,
            engine=self.engine.subset(which, replace(some, nuisance=nuisance)),
            target=self.target[:, which],
        )


def _nuisance_fit(C: Array, features: Array, g: Array | None) -> Array:
    """Coefficients ``(C'GC)^-1 C'G features`` of the nuisance columns ``(K or 1, N, q)``."""
    if g is None:
        return C.transpose(0, 2, 1) @ features  # C is orthonormal
    weighted = (g[:, :, None] * C).astype(C.dtype, copy=False).transpose(0, 2, 1)
    return solve_nuisance(weighted @ C, weighted @ features)


def _sum_of_squares(arrays: Array) -> Array:
    """Sum over all axes but the first."""
    flat = arrays.reshape(len(arrays), -1)
    return np.einsum("ki,ki->k", flat, flat)


def make_problem(
    source: Source,
    y: Array,
    *,
    x_scale: float,
    fit_intercept: bool,
    sample_weight: Array | None = None,
    covariates: Array | None = None,
    loss: Loss = SQUARED,
    n_outputs: int = 1,
    ties: Ties = UNTIED,
) -> Problem:
    """Scale the responses and orthonormalise intercept and covariates; X is left alone.

    Parameters
    ----------
    source : Source
    y : ndarray of shape (n_samples,) or (T, n_samples)
        What the loss takes.
    x_scale : float
        Size of the largest entry of X.
    fit_intercept : bool
    sample_weight : ndarray of shape (n_samples,) or (T, n_samples), optional
        One row for all tasks, or one for each.
    covariates : ndarray of shape (n_samples, n_covariates), optional
    loss : Loss
    n_outputs : int
        So many rows of y in a row, one for each output, have the same weights.
    ties : Ties
    """
    y, weights = np.atleast_2d(y), None
    if sample_weight is not None:
        weights = np.atleast_2d(sample_weight)
        y = np.where(weights > 0, y, 0.0)
        weights = weights / weights.mean(axis=1, keepdims=True) if np.ptp(weights) > 0 else None
    low, high = PLAIN_RANGE
    x_scale = 1.0 if low < x_scale < high else float(power_of_two(np.array(x_scale)))
    own = weights if weights is None or len(weights) == 1 else weights[::n_outputs]
    nuisance = _nuisance_bases(y.shape[1], own, fit_intercept, covariates)
    if len(nuisance) > 1:
        nuisance = np.repeat(nuisance, n_outputs, axis=0)
    response = loss.start(y, nuisance, weights)
    response, y_scale = _centred(response, nuisance, weights)
    response, y_scale = loss.rescaled(response, y_scale)
    engine = engine_of(source, Samples(response, nuisance, weights), x_scale)
    return Problem(engine, x_scale, y_scale, loss.target(y), loss, n_outputs, ties)


def power_of_two(sizes: Array) -> Array:
    """Largest powers of two up to the sizes, by which one can divide without rounding; 1 for 0."""
    return 2.0 ** np.floor(np.log2(np.where(sizes > 0, sizes, 1.0)))


def _centred(response: Array, nuisance: Array, weights: Array | None) -> tuple[Array, Array]:
    """Take the nuisance out of responses, give what is left a mean square of one; say its size."""
    largest = np.abs(response).max(axis=1, initial=0.0)
    largest = np.where(largest > 0, largest, 1.0)
    left = response / largest[:, None]
    if nuisance.shape[2]:
        left = left - (nuisance @ _nuisance_fit(nuisance, left[:, :, None], weights))[..., 0]
    root = 1.0 if weights is None else np.sqrt(weights)
    spread = np.sqrt(np.mean((left * root) ** 2, axis=1))
    # Rounding leaves a constant response not quite constant: below precision it is noise.
    varies = spread >= 8 * np.finfo(float).eps
    spread = np.where(varies, spread, 1.0)
    if weights is not None:
        left = np.where(weights > 0, left, 0.0)
    return np.where(varies[:, None], left / spread[:, None], 0.0), largest * spread


def _nuisance_bases(
    n_samples: int,
    weights: Array | None,
    fit_intercept: bool,
    covariates: Array | None,
) -> Array:
    """Orthonormal columns, in each row of weights, that span intercept and covariates."""
    columns = [np.ones((n_samples, 1))] if fit_intercept else []
    if covariates is not None:
        columns.append(covariates)
    C = np.hstack(columns) if columns else np.empty((n_samples, 0))
    rows = np.ones((1, n_samples)) if weights is None else weights
    return np.stack([_orthonormal(C, np.sqrt(g)) for g in rows])


def _orthonormal(C: Array, root: Array) -> Array:
    """Combine columns into ones that are orthonormal in the weights; zero beyond their rank.

    Rows without weight have no say, not even in the scale of a column.
    """
    C = C / power_of_two(np.abs(C[root > 0]).max(axis=0, initial=0.0))
    _, s, Vt = np.linalg.svd(C * root[:, None], full_matrices=False)
    kept = s > s.max(initial=0.0) * len(C) * np.finfo(float).eps
    basis = C @ (Vt.T / np.where(kept, s, 1))
    basis[:, ~kept] = 0
    return basis
