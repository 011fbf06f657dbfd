"""Least squares on a support: the one a fit found, or the one with the most evidence."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.models import Models
from pyfastr.solver.polish import Polished, Step, polish
from pyfastr.solver.problem import SMALLEST_SHARE, Problem

Array = NDArray[Any]

REFIT_STEPS, REFIT_RIDGE = 25, 1e-9
# Weights of the sparsity penalty that are tried beside none, and steps taken with each.
SPARSITIES, SPARSE_STEPS = (3e-7, 3e-6, 3e-5, 3e-4), 50
# The penalty's width narrows, from nearly a ridge to nearly a count of the entries.
WIDTHS = (0.3, 0.01)
# Entries below this share of a model's root mean square are zero.
ZERO = 0.01


def refit(problem: Problem, models: Models) -> Polished:
    """Fit the non-zero entries anew, without threshold and all but without ridge."""
    masks = [c != 0 for c in models.components]
    return polish(problem, models, [Step(REFIT_RIDGE)] * REFIT_STEPS, masks)


def most_evident(problem: Problem, candidates: Models, ridge: float) -> Models:
    """Choose candidate and support by the lowest ``(N - dof) log RSS`` after a refit.

    This is the evidence with the noise variance and the coefficients integrated out; unlike BIC
    and GCV it chooses well where N is close to the degrees of freedom. Every candidate is thinned
    by a logarithmic penalty of each weight, all in one batch.
    """
    n_weights, K = 1 + len(SPARSITIES), len(candidates)
    batch = Models.concatenate([candidates] * n_weights)
    sparsity = np.repeat((0.0, *SPARSITIES), K)
    thinning = [Step(ridge, sparsity, width) for width in np.geomspace(*WIDTHS, SPARSE_STEPS)]
    thinned = polish(problem, batch, thinning).models
    masks = _masks(thinned, sparsity > 0)
    ridges = np.where(sparsity > 0, REFIT_RIDGE, ridge)
    refitted = polish(problem, thinned, [Step(ridges)] * REFIT_STEPS, masks)
    best = int(np.argmin(evidence(problem, refitted.rss, _n_free(masks))))
    return refitted.models.take(slice(best, best + 1))


def _masks(models: Models, thin: Array) -> list[Array]:
    """Mark the entries that count, in components of balanced length; all where not thinned."""
    length = np.abs(models.scales) ** (1 / len(models.components))
    balanced = [np.abs(c) * length[..., None] for c in models.components]
    flat = np.concatenate([b.reshape(len(models), -1) for b in balanced], axis=1)
    cut = ZERO * np.sqrt(np.mean(flat**2, axis=1))
    return [(b > cut[:, None, None]) | ~thin[:, None, None] for b in balanced]


def evidence(problem: Problem, rss: Array, n_free: Array) -> Array:
    """``(N - dof) log RSS`` of fits with so many free entries; smaller is better."""
    left = problem.n_effective - n_free - problem.nuisance.shape[1]
    return np.maximum(left, 0.5) * np.log(rss + SMALLEST_SHARE * problem.n_samples)


def _n_free(masks: list[Array]) -> Array:
    """Free entries of every model: a term's modes share one scale."""
    sizes = np.stack([m.sum(axis=2) for m in masks])
    return np.where(sizes.all(axis=0), sizes.sum(axis=0) - len(masks) + 1, 0).sum(axis=1)
