"""Least squares on a support: the one a fit found, or the one with the most evidence."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.models import Models, distinct, put
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.polish import Polished, Step, polish
from pyfastr.solver.problem import SMALLEST_SHARE, Problem
from pyfastr.solver.starts import shake
from pyfastr.solver.streams import Streams
from pyfastr.solver.sweep import run_sweeps
from pyfastr.solver.tangent import Foresight

Array = NDArray[Any]

REFIT_STEPS, REFIT_RIDGE = 25, 1e-9
# Sweeps crawl where there are fewer samples than so many times the degrees of freedom, unless a
# ridge as large as this makes up for them, or there is nothing to be found as anything fits.
FEW_SAMPLES, ENOUGH_RIDGE = 2.0, 0.01
# The power of the share of free entries by which a refit's ridge shrinks. With 1 the error of a
# single entry is half as large again as that of least squares: folds do not see so small a bias.
REFIT_SHRINKS = 2
# So many parameters are estimated no better by shrinking them (Stein 1956), so they have no ridge:
# folds choose a large one by chance where it hardly matters.
STEIN = 2
# Weights of the sparsity penalty that are tried, and steps taken with each.
SPARSITIES, SPARSE_STEPS = (0.0, 3e-6, 3e-5, 3e-4), 50
# The penalty's width narrows, from nearly a ridge to nearly a count of the entries.
WIDTHS = (0.3, 0.01)
# Entries below this share of a model's root mean square are zero.
ZERO = 0.01
# The search for a support: ridge and sweeps of shaking, first of all models, then of copies of
# the best in each hop. Settled on 80 data sets of 20 x 20 (40), where it finds what the first
# thinning misses in 2 of 80.
SETTLE, SETTLE_SWEEPS = (0.1, 0.02), 15
HOP, HOP_SWEEPS, HOP_THRESHOLD, HOP_SPARSITY = (0.3, 0.02), 20, 0.2, (3e-5,)
N_HOPS, HOPPERS, HOPPER_COPIES = 6, 32, 4
# A support that so many models lead to needs no hops.
ENOUGH_HITS = 64


def refit(
    problem: Problem,
    models: Models,
    ridge: float | Array,
    max_iter: int,
    tol: float,
    foresight: Foresight | None = None,
) -> Models:
    """Fit the non-zero entries of every model anew, without threshold.

    Fewer parameters need less of a ridge, so it shrinks with their number: a support of few entries
    is found with a large ridge, which would bias them. Where samples are few for a support joint
    steps come first, as sweeps alone crawl there.
    """
    masks = [c != 0 for c in models.components]
    n_free = _n_free(masks)
    ridges = np.broadcast_to(ridge, len(models)) * _share_of_ridge(problem, models, n_free)
    penalty = Penalty(ridges, 0.0, masks)
    if foresight is not None:
        models = foresight.move(models, penalty)
    n_fitted = n_free + problem.n_nuisance[models.task]
    n_samples = problem.n_effective[models.task]
    few = (n_fitted < n_samples) & (n_samples < FEW_SAMPLES * n_fitted)
    crawl = np.flatnonzero(few & (ridges < ENOUGH_RIDGE))
    if problem.loss.is_quadratic and len(crawl):
        now = penalty.take(crawl)
        steps = [Step(now.ridge)] * REFIT_STEPS
        joint = polish(problem, models.take(crawl), steps, now.masks, tol)
        models = put(models, crawl, joint.models)
    return run_sweeps(problem, models, penalty, max_iter=max_iter, tol=tol)[0]


def _share_of_ridge(problem: Problem, models: Models, n_free: Array) -> Array:
    """Share of the ridge that so many free entries of each model are refitted with."""
    n_all = _n_free([np.ones_like(c, bool) for c in models.components])
    if not problem.loss.is_quadratic:
        # Labels and counts are noisy, and a single entry may tell them apart, or zeros from others:
        # it has to stay finite.
        return n_free / n_all
    # Fewer samples than entries make an update in their space, where a few entries need a ridge to
    # be told from rounding.
    widest = max(c[0].size for c in models.components)
    n_spared = np.where(problem.n_effective[models.task] >= widest, STEIN, 0)
    share = np.maximum(n_free - n_spared, 0) / np.maximum(n_all - n_spared, 1)
    return share**REFIT_SHRINKS


@dataclass(frozen=True)
class Supported:
    """Models refitted on thinned supports, and ``(N - dof) log RSS`` of each."""

    models: Models
    evidence: Array

    def take(self, which: Array) -> "Supported":
        """Return some of the models."""
        return Supported(self.models.take(which), self.evidence[which])

    def best(self) -> "Supported":
        """Return the most evident model, a batch of one."""
        return self.take(np.array([np.argmin(self.evidence)]))

    def join(self, other: "Supported") -> "Supported":
        """Return the models of both."""
        return Supported(
            Models.concatenate([self.models, other.models]),
            np.concatenate([self.evidence, other.evidence]),
        )


def thin_supports(
    problem: Problem,
    candidates: Models,
    ridge: float,
    sparsities: tuple[float, ...] = SPARSITIES,
) -> Supported:
    """Thin every candidate by a logarithmic penalty of each weight, and refit what is left.

    The lowest ``(N - dof) log RSS`` is the evidence with the noise variance and the coefficients
    integrated out; unlike BIC and GCV it chooses well where N is close to the degrees of freedom.
    """
    batch = Models.concatenate([candidates] * len(sparsities))
    sparsity = np.repeat(sparsities, len(candidates))
    thinning = [Step(ridge, sparsity, width) for width in np.geomspace(*WIDTHS, SPARSE_STEPS)]
    thinned = polish(problem, batch, thinning).models
    masks = _masks(thinned, sparsity > 0)
    ridges = np.where(sparsity > 0, REFIT_RIDGE, ridge)
    refitted = polish(problem, thinned, [Step(ridges)] * REFIT_STEPS, masks)
    return Supported(refitted.models, evidence(problem, refitted, _n_free(masks)))


def hop(problem: Problem, models: Models, ridge: float, rng: np.random.Generator) -> Supported:
    """Search for the most evident support from models that an annealing left.

    With about as many free parameters as samples all supports of some size fit, and few starts
    come near the sparsest: copies of the best are shaken under a threshold, and thinned again.
    """
    streams = Streams(rng, problem.n_tasks)
    models = shake(
        problem, models, ridges=SETTLE, n_sweeps=SETTLE_SWEEPS, ridge=ridge, streams=streams
    )
    found = thin_supports(problem, models, ridge)
    for _ in range(N_HOPS):
        leaders, hits = distinct(found.models, found.evidence)
        if hits[0] >= ENOUGH_HITS:
            break
        found = found.take(leaders[:HOPPERS])
        copies = Models.concatenate([found.models] * HOPPER_COPIES)
        shaken = shake(
            problem,
            copies,
            ridges=HOP,
            n_sweeps=HOP_SWEEPS,
            ridge=ridge,
            streams=streams,
            threshold=HOP_THRESHOLD,
        )
        found = found.join(thin_supports(problem, shaken, ridge, HOP_SPARSITY))
    return found


def _masks(models: Models, thin: Array) -> list[Array]:
    """Mark the entries that count, in components of balanced length; all where not thinned."""
    size = np.abs(models.flat())
    cut = ZERO * np.sqrt(np.mean(size**2, axis=1, keepdims=True))
    kept = (size > cut) | ~thin[:, None]
    blocks = zip(models.blocks(), models.components, strict=True)
    return [kept[:, block].reshape(component.shape) for block, component in blocks]


def evidence(problem: Problem, fits: Polished, n_free: Array) -> Array:
    """``(N - dof) log RSS`` of fits with so many free entries; smaller is better."""
    left = (problem.n_effective - problem.n_nuisance)[fits.models.task] - n_free
    return np.maximum(left, 0.5) * np.log(fits.rss + SMALLEST_SHARE * problem.n_samples)


def _n_free(masks: list[Array]) -> Array:
    """Free entries of every model: a term's modes share one scale."""
    sizes = np.stack([m.sum(axis=2) for m in masks])
    return np.where(sizes.all(axis=0), sizes.sum(axis=0) - len(masks) + 1, 0).sum(axis=1)
