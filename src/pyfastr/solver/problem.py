"""What is fitted: X, and tasks of a response, sample weights and unpenalised covariates each."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.losses import SQUARED, Loss, Observed
from pyfastr.solver.parallel import scratch, unlocking_columns
from pyfastr.solver.projection import Projector
from pyfastr.sources import RoundedSource, Source, thin

Array = NDArray[Any]

# Entries of X between these sizes can be rounded to float32 without harm.
FLOAT32_RANGE = (1e-20, 1e20)
# X whose largest entry is between these sizes is taken as it is, so that samples of weight zero
# do not even change the rounding.
PLAIN_RANGE = (1e-6, 1e6)
# Squared residuals below this share of the response's are rounding, not a better fit.
SMALLEST_SHARE = 1e-9
# Taking the nuisance out leaves errors of about this many units in the last place.
ROUNDING = 32
# If the nuisance leaves less of a feature than this power of the precision, products are made from
# what is left itself.
CANCELLATION = 0.25


@dataclass
class Problem:
    """T weighted regressions on the same X, in units in which X and y are of order one.

    Folds, permuted responses and resampled data are tasks: other responses or other weights of
    the same samples. A model belongs to the task whose number it carries.

    Attributes
    ----------
    projector : Projector
        Projections of ``X / x_scale``.
    response : ndarray of shape (T, n_samples)
        ``(y - its fit by the nuisance) / y_scale``.
    nuisance : ndarray of shape (T, n_samples, q)
        Orthonormal (in the sample weights) basis of intercept and covariates; columns beyond
        their rank are zero. What it explains is taken out of the projections, which equals
        fitting it without penalty in every update.
    weights : ndarray of shape (T, n_samples) or None
        Of mean 1; None where all are equal.
    x_scale : float
        1, or a power of two for X that is tiny or huge: dividing by it rounds nothing.
    y_scale : ndarray of shape (T,)
        What a fitted value of one adds to the linear predictor.
    target : ndarray of shape (T, n_samples)
        y on the scale of its mean, where that is not the linear predictor.
    loss : Loss
        What sweeps lower. The search for starts works by least squares on the response.
    """

    projector: Projector
    response: Array
    nuisance: Array
    weights: Array | None
    x_scale: float
    y_scale: Array
    target: Array
    loss: Loss = SQUARED

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.response)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.response.shape[1]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return self.projector.shape

    @property
    def n_effective(self) -> Array:
        """Number of samples with a positive weight in each task."""
        if self.weights is None:
            return np.full(self.n_tasks, self.n_samples)
        return np.count_nonzero(self.weights, axis=1)

    @property
    def n_nuisance(self) -> Array:
        """Rank of intercept and covariates in each task."""
        return np.count_nonzero(self.nuisance.any(axis=1), axis=1)

    @cached_property
    def constant_nuisance(self) -> bool:
        """Whether there is no nuisance but an intercept."""
        return self.nuisance.shape[2] == 1 and bool(np.all(np.ptp(self.nuisance, axis=1) == 0))

    def degrees_of_freedom(self, n_terms: int) -> Array:
        """Free parameters of a sum of unit-rank terms, and of intercept and covariates."""
        return n_terms * (sum(self.shape) - len(self.shape) + 1) + self.n_nuisance

    def task(self, which: int) -> "Problem":
        """Return the problem of one task."""
        part = slice(which, which + 1)
        return replace(
            self,
            response=self.response[part],
            nuisance=self.nuisance[part],
            weights=None if self.weights is None else self.weights[part],
            y_scale=self.y_scale[part],
            target=self.target[part],
        )

    def of(self, values: Array, task: Array) -> Array:
        """Return each model's row of an array with one row a task, shared where there is one."""
        return values if len(values) == 1 else values[task]

    def whiten(
        self,
        features: Array,
        response: Array,
        task: Array,
        weights: Array | None = None,
        *,
        in_place: bool = False,
    ) -> tuple[Array, Array]:
        """Take the nuisance out of features ``(K, N, q)`` and response ``(K or 1, N)``, and weigh.

        Plain least squares on what is returned is weighted least squares with the nuisance.

        Parameters
        ----------
        features : ndarray of shape (K, n_samples, q)
        response : ndarray of shape (K or 1, n_samples)
        task : ndarray of shape (K,)
        weights : ndarray of shape (K, n_samples), optional
            Weights of each model, times the task's.
        in_place : bool
            Whether the features may be overwritten.
        """
        g = self.weights_of(task, weights)
        dtype = features.dtype
        C = self.of(self.nuisance, task).astype(dtype, copy=False)
        root = None if g is None else np.sqrt(g).astype(dtype, copy=False)
        size = None
        if C.shape[2]:
            fit = _nuisance_fit(C, features, g)
            # An intercept is the same for all samples: one row to subtract, not an array to build.
            explained = C[:, :1] @ fit if self.constant_nuisance else C @ fit
            features = np.subtract(features, explained, out=features if in_place else None)
            size = _sum_of_squares(fit)
            response = response - (C @ _nuisance_fit(C, response[:, :, None], g))[..., 0]
        if root is not None:
            # In place: the temporaries of a batch cost more than its arithmetic.
            out = features if C.shape[2] or in_place else np.empty_like(features)
            features = np.multiply(features, root[:, :, None], out=out)
            response = response * root
        if size is not None:
            # Where X does not vary beside the nuisance, what is left is rounding: no feature.
            rounding = (ROUNDING * np.finfo(dtype).eps) ** 2 * size
            features[_sum_of_squares(features) <= rounding] = 0
        return features, response

    def normal_equations(
        self, features: Array, response: Array, task: Array, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """Return ``Q'Q`` ``(K, q, q)`` and ``Q'z`` ``(K, q)`` of what `whiten` would return.

        Samples without weight are left out, and the nuisance is taken out of the products, not of
        the features: ``N q^2`` flops and at most one copy, where `whiten` passes over them thrice.
        """
        g = self.weights_of(task, weights)
        C = self.of(self.nuisance, task).astype(features.dtype, copy=False)
        n_columns = unlocking_columns(features.shape[0] * features.shape[2])
        z = np.repeat(np.broadcast_to(response, C.shape[:2])[:, :, None], n_columns, axis=2)
        columns = np.concatenate([C, z.astype(features.dtype, copy=False)], axis=2)
        some, columns, factor = _weighted(features, columns, g)
        transposed = some.transpose(0, 2, 1)
        gram, cross = transposed @ some, (transposed @ columns)[:, :, : C.shape[2] + 1]
        if C.shape[2]:
            columns = columns[:, :, : C.shape[2] + 1]
            own = columns.transpose(0, 2, 1) @ columns
            fit = _solve_nuisance(own[:, :-1, :-1], cross[:, :, :-1].transpose(0, 2, 1))
            explained = cross[:, :, :-1] @ fit
            # Where little is left beside the nuisance, a difference of products is mostly rounding.
            size, left = _diagonal(gram), _diagonal(gram) - _diagonal(explained)
            if np.any(left < np.finfo(features.dtype).eps ** CANCELLATION * size):
                Q, z = self.whiten(features, response, task, weights)
                return Q.transpose(0, 2, 1) @ Q, (z[:, None] @ Q)[:, 0]
            gram -= explained
            cross[:, :, -1:] -= fit.transpose(0, 2, 1) @ own[:, :-1, -1:]
        return gram * factor, cross[:, :, -1] * factor

    def residuals(self, fitted: Array, task: Array) -> Array:
        """Weighted residuals ``(K, N)`` of fits given without intercept and covariates."""
        dtype = fitted.dtype
        left = self.of(self.response, task).astype(dtype, copy=False) - fitted
        C = self.of(self.nuisance, task).astype(dtype, copy=False)
        g = self.weights_of(task, None)
        if C.shape[2]:
            left = left - (C @ _nuisance_fit(C, left[:, :, None], g))[..., 0]
        return left if g is None else left * np.sqrt(g).astype(dtype, copy=False)

    def observed(self, task: Array) -> Observed:
        """Return what models of these tasks are to predict."""
        return Observed(
            self.loss,
            self.of(self.target, task),
            self.of(self.nuisance, task),
            self.weights_of(task, None),
            self.of(self.y_scale, task)[:, None],
        )

    def losses(self, fitted: Array, task: Array) -> Array:
        """Weighted mean of squared residuals, or of another loss, of each model."""
        if self.loss.is_quadratic:
            return np.mean(self.residuals(fitted, task) ** 2, axis=1)
        observed = self.observed(task)
        return observed.mean_loss(observed.predictor(fitted))

    def misfit(self, fitted: Array, task: Array) -> Array:
        """Share of the response that each model leaves unexplained at the scale that fits best."""
        z = self.residuals(np.zeros_like(fitted), task)
        explained = z - self.residuals(fitted, task)
        aligned = np.einsum("kn,kn->k", z, explained) ** 2
        size = np.einsum("kn,kn->k", z, z) * np.einsum("kn,kn->k", explained, explained)
        return 1 - aligned / np.where(size > 0, size, 1)

    def linearised(self) -> "Problem":
        """Return the least squares on the response from which starts are sought."""
        return replace(self, loss=SQUARED)

    def rounded(self) -> "Problem":
        """Return the same problem with X in float32, if that can hold it."""
        source = self.projector.source
        low, high = FLOAT32_RANGE
        if source.dtype == np.float32 or not low < self.x_scale < high:
            return self
        return replace(self, projector=Projector(RoundedSource(source), self.x_scale))

    def thinned(self, which: Array) -> "Problem":
        """Return the same problems with some of the samples, in ascending order."""
        weights = None if self.weights is None else self.weights[:, which]
        roots = np.ones((self.n_tasks, len(which))) if weights is None else np.sqrt(weights)
        bases = zip(self.nuisance[:, which], roots, strict=True)
        return replace(
            self,
            projector=Projector(
                thin(self.projector.source, which, self.projector.budget.subset), self.x_scale
            ),
            response=self.response[:, which],
            nuisance=np.stack([_orthonormal(C, root) for C, root in bases]),
            weights=weights,
            target=self.target[:, which],
        )

    def weights_of(self, task: Array, weights: Array | None) -> Array | None:
        """Return the weights of models' tasks, times the models' own."""
        if self.weights is None:
            return weights
        own = self.of(self.weights, task)
        return own if weights is None else own * weights


def _nuisance_fit(C: Array, features: Array, g: Array | None) -> Array:
    """Coefficients ``(C'GC)^-1 C'G features`` of the nuisance columns ``(K or 1, N, q)``."""
    if g is None:
        return C.transpose(0, 2, 1) @ features  # C is orthonormal
    weighted = (g[:, :, None] * C).astype(C.dtype, copy=False).transpose(0, 2, 1)
    return _solve_nuisance(weighted @ C, weighted @ features)


def _solve_nuisance(gram: Array, rhs: Array) -> Array:
    """Solve for coefficients of the nuisance; those of zero columns are zero."""
    diagonal = np.arange(gram.shape[1])
    gram = gram.copy()
    gram[:, diagonal, diagonal] += gram[:, diagonal, diagonal] == 0
    return np.linalg.solve(gram, rhs)


def _weighted(features: Array, columns: Array, g: Array | None) -> tuple[Array, Array, float]:
    """Scale samples by the roots of their weights, and leave out those that no model weighs.

    Weights that are all the same come as one factor of all products, and spare a multiplication.
    What is returned for the features may stand in the thread's scratch memory.
    """
    if g is None:
        return features, columns, 1.0
    used = np.flatnonzero(g.any(axis=0))
    if len(used) < features.shape[1]:
        room = scratch((len(features), len(used), features.shape[2]), features.dtype)
        # Without a mode that cannot fail numpy would fill memory of its own first.
        features = np.take(features, used, axis=1, out=room, mode="clip")
        columns, g = np.take(columns, used, axis=1), g[:, used]
    if not g.size or np.ptp(g) == 0:
        return features, columns, float(g.flat[0]) if g.size else 0.0
    root = np.sqrt(g).astype(features.dtype, copy=False)[:, :, None]
    return (
        np.multiply(features, root, out=scratch(features.shape, features.dtype)),
        columns * root,
        1.0,
    )


def _diagonal(matrices: Array) -> Array:
    return np.diagonal(matrices, axis1=1, axis2=2)


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
    """
    y, weights = np.atleast_2d(y), None
    if sample_weight is not None:
        weights = np.atleast_2d(sample_weight)
        n_tasks = max(len(y), len(weights))
        y, weights = (np.broadcast_to(a, (n_tasks, y.shape[1])) for a in (y, weights))
        y = np.where(weights > 0, y, 0.0)
        weights = weights / weights.mean(axis=1, keepdims=True) if np.ptp(weights) > 0 else None
    low, high = PLAIN_RANGE
    x_scale = 1.0 if low < x_scale < high else float(power_of_two(np.array(x_scale)))
    nuisance = _nuisance_bases(y.shape, weights, fit_intercept, covariates)
    response = loss.start(y, nuisance, weights)
    largest = np.abs(response).max(axis=1, initial=0.0)
    largest = np.where(largest > 0, largest, 1.0)
    problem = Problem(
        Projector(source, x_scale),
        response / largest[:, None],
        nuisance,
        weights,
        x_scale,
        largest,
        loss.target(y),
        loss,
    )
    _centre(problem)
    problem.response, problem.y_scale = loss.rescaled(problem.response, problem.y_scale)
    return problem


def power_of_two(sizes: Array) -> Array:
    """Largest powers of two up to the sizes, by which one can divide without rounding; 1 for 0."""
    return 2.0 ** np.floor(np.log2(np.where(sizes > 0, sizes, 1.0)))


def _centre(problem: Problem) -> None:
    """Take the nuisance out of the response and give what is left a mean square of one."""
    tasks = np.arange(problem.n_tasks)
    centred = problem.residuals(np.zeros_like(problem.response), tasks)
    spread = np.sqrt(np.mean(centred**2, axis=1))
    # Rounding leaves a constant response not quite constant: below precision it is noise.
    varies = spread >= 8 * np.finfo(float).eps
    spread = np.where(varies, spread, 1.0)
    if problem.weights is not None:
        centred = centred / np.sqrt(np.where(problem.weights > 0, problem.weights, 1))
    problem.response = np.where(varies[:, None], centred / spread[:, None], 0.0)
    problem.y_scale = problem.y_scale * spread


def _nuisance_bases(
    shape: tuple[int, int],
    weights: Array | None,
    fit_intercept: bool,
    covariates: Array | None,
) -> Array:
    """Orthonormal columns, in the weights of each task, that span intercept and covariates."""
    n_tasks, n_samples = shape
    columns = [np.ones((n_samples, 1))] if fit_intercept else []
    if covariates is not None:
        columns.append(covariates)
    if not columns:
        return np.empty((n_tasks, n_samples, 0))
    C = np.hstack(columns)
    if weights is None:
        return np.broadcast_to(_orthonormal(C, np.ones(n_samples)), (n_tasks, *C.shape))
    return np.stack([_orthonormal(C, np.sqrt(g)) for g in weights])


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
