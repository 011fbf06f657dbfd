"""What samples say of a fitted model: how much each one decides, and which slices look alike.

Both are read off the features of all modes side by side, the derivatives of fitted values: where
other modes' components stay as they are, a slice is a feature.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.models import Models
from pyfastr.solver.problem import Problem

Array = NDArray[Any]

# A smaller ridge is taken for this one, so that eigenvectors of a mode's free scale stay apart
# from the others' by more than rounding.
LEAST_RIDGE = 1e-10
# Arrays of the size of all features that are made at one time.
N_COPIES = 4
# A feature whose length is a smaller share of its mode's longest does not vary.
CONSTANT = 1e-7
# Slices that are compared with all others at one time, and the most that a mode may have for that:
# of more only neighbours are compared, which are the likeliest to be alike.
AT_ONE_TIME, MOST_COMPARED = 512, 5000


@dataclass(frozen=True, eq=False)
class Design:
    """How samples and slices bear on one fit.

    Attributes
    ----------
    leverage : ndarray of shape (n_samples,)
        How much of its own fitted value each sample decides, from 0 to 1.
    n_effective : float
        Their sum: the free parameters that the ridge leaves, intercept and covariates among them.
    alike : ndarray of shape (M, 2)
        Numbers of the two slices of each mode that are hardest to tell apart, or -1 where no two
        vary. Of more than 5000 slices only neighbours are compared.
    correlation : ndarray of shape (M,)
        Of the features of these two, without its sign.
    """

    leverage: Array
    n_effective: float
    alike: Array
    correlation: Array

    @staticmethod
    def mean_of(several: "Sequence[Design]") -> "Design":
        """Return the mean of designs of the same samples, and the most alike slices of any."""
        correlation = np.stack([own.correlation for own in several])
        which = np.argmax(correlation, axis=0)
        alike = np.stack([own.alike for own in several])
        modes = np.arange(len(which))
        return Design(
            leverage=np.mean([own.leverage for own in several], axis=0),
            n_effective=float(np.mean([own.n_effective for own in several])),
            alike=alike[which, modes],
            correlation=correlation[which, modes],
        )


def designs(problem: Problem, models: Models, ridge: float | Array) -> list[Design] | None:
    """Return the design of every model; None where all features would not fit the memory budget.

    Parameters
    ----------
    problem : Problem
    models : Models
        Fitted to it.
    ridge : float or ndarray of shape (K,)
        With which they were fitted at the end.
    """
    n_features = models.n_terms * sum(models.shape)
    n_bytes = 8 * N_COPIES * len(models) * problem.n_samples * n_features
    if n_bytes > problem.engine.budget.batch:
        return None
    ridges = np.broadcast_to(np.maximum(ridge, LEAST_RIDGE), len(models))
    rows, roots = _weighed_features(problem, models)
    return [
        _design(rows[k], models.take(slice(k, k + 1)), float(ridges[k]), nuisance)
        for k, nuisance in enumerate(_nuisance(problem, models, roots))
    ]


def _weighed_features(problem: Problem, models: Models) -> tuple[Array, Array]:
    """Features ``(K, N, q)`` beside the nuisance, and roots ``(K, N)`` of what samples weigh."""
    J, task = problem.engine.project_all(models.components), models.task
    further = None
    if not problem.loss.is_quadratic:
        first = models.blocks()[0]
        own = (models.components[0] * models.scales[..., None]).reshape(len(models), -1, 1)
        observed = problem.observed(task)
        predictor = observed.predictor((J[:, :, first] @ own)[..., 0])
        further = problem.loss.variance(problem.loss.mean(predictor))
    weights = problem.samples.weights_of(task, further)
    shape = (len(models), problem.n_samples)
    roots = np.ones(shape) if weights is None else np.sqrt(np.broadcast_to(weights, shape))
    return problem.whiten(J, np.zeros((1, problem.n_samples)), task, further)[0], roots


def _nuisance(problem: Problem, models: Models, roots: Array) -> Iterator[Array]:
    """Yield, for every model, orthonormal columns that intercept and covariates span."""
    columns = problem.samples.nuisance_of(models.task)
    for k, root in enumerate(roots):
        own = columns[min(k, len(columns) - 1)]
        yield np.linalg.qr(own[:, own.any(axis=0)] * root[:, None])[0]


def _design(rows: Array, model: Models, ridge: float, nuisance: Array) -> Design:
    blocks = model.blocks()
    pairs = [_most_alike(rows[:, block].reshape(len(rows), model.n_terms, -1)) for block in blocks]
    support = np.concatenate([c.reshape(-1) != 0 for c in model.components])
    scaled = np.hstack([_in_units_of_ridge(rows[:, block], ridge) for block in blocks])
    leverage = _leverage(scaled[:, support]) + np.sum(nuisance**2, axis=1)
    return Design(
        leverage=np.minimum(leverage, 1.0),
        n_effective=float(leverage.sum()),
        alike=np.array([pair[:2] for pair in pairs], int),
        correlation=np.array([pair[2] for pair in pairs]),
    )


def _in_units_of_ridge(features: Array, ridge: float) -> Array:
    """Scale features so that the ridge on them is one."""
    penalty = ridge * np.sum(features**2) / features.shape[1]
    return features / np.sqrt(penalty) if penalty > 0 else features


def _leverage(features: Array) -> Array:
    """Diagonal of ``A (A'A + I)^-1 A'``, in the smaller of the spaces of features and samples."""
    n, q = features.shape
    if q == 0:
        return np.zeros(n)
    sides = features if n < q else features.T
    lengths, vectors = np.linalg.eigh(sides @ sides.T)
    lengths = np.maximum(lengths, 0.0)
    if n < q:
        return vectors**2 @ (lengths / (lengths + 1))
    return (features @ vectors) ** 2 @ (1 / (lengths + 1))


def _most_alike(features: Array) -> tuple[int, int, float]:
    """Two slices of features ``(N, R, p)`` that correlate most within a term, and how much."""
    best = (-1, -1, 0.0)
    for term in features.transpose(1, 0, 2):
        length = np.linalg.norm(term, axis=0)
        varies = np.flatnonzero(length > CONSTANT * length.max(initial=0.0))
        if len(varies) < 2:
            continue
        i, j, correlation = _largest_product(term[:, varies] / length[varies])
        if correlation > best[2]:
            best = (int(varies[i]), int(varies[j]), min(correlation, 1.0))
    return best


def _largest_product(columns: Array) -> tuple[int, int, float]:
    """Two of the columns with the largest inner product, and its size."""
    if columns.shape[1] > MOST_COMPARED:
        beside = np.abs(np.einsum("np,np->p", columns[:, :-1], columns[:, 1:]))
        first = int(np.argmax(beside))
        return first, first + 1, float(beside[first])
    best = (-1, -1, 0.0)
    for start in range(0, columns.shape[1] - 1, AT_ONE_TIME):
        products = np.abs(columns[:, start : start + AT_ONE_TIME].T @ columns[:, start:])
        np.fill_diagonal(products, -1.0)
        i, j = np.unravel_index(np.argmax(products), products.shape)
        if products[i, j] > best[2]:
            best = (start + int(i), start + int(j), float(products[i, j]))
    return best
