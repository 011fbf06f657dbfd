"""Least squares on a support: the one a fit found, or the one with the most evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.models import Models, distinct, put
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.polish import Polished, Step, polish
from pyfastr.solver.problem import SMALLEST_SHARE, Problem
from pyfastr.solver.starts import shake
from pyfastr.solver.streams import Streams
from pyfastr.solver.sweep import run_sweeps
from pyfastr.solver.tangent import Foresight

Array = NDArray[Any]


def refit(
    problem: Problem,
    models: Models,
    ridge: float | Array,
    max_iter: int,
    tol: float,
    policy: SearchPolicy,
    foresight: Foresight | None = None,
) -> Models:
    """Fit the non-zero entries of every model anew, without threshold.

    Fewer parameters need less of a ridge, so it shrinks with their number: a support of few entries
    is found with a large ridge, which would bias them. Where samples are few for a support joint
    steps come first, as sweeps alone crawl there.
    """
    masks = [c != 0 for c in models.components]
    n_free = count_free(masks, problem)
    ridges = ridge_of_refit(problem, models, ridge, policy)
    penalty = Penalty(ridges, 0.0, masks)
    if foresight is not None:
        models = foresight.move(models, penalty)
    n_fitted = n_free + problem.n_nuisance[models.task]
    n_samples = problem.n_effective[models.task]
    few = (n_fitted < n_samples) & (n_samples < policy.refit.crawl_below * n_fitted)
    crawl = np.flatnonzero(few & (ridges < policy.refit.crawl_below_ridge))
    if problem.loss.is_quadratic and len(crawl):
        now = penalty.take(crawl)
        steps = [Step(now.ridge)] * policy.refit.n_steps
        joint = polish(problem, models.take(crawl), steps, policy, now.masks, tol)
        models = put(models, crawl, joint.models)
    return run_sweeps(problem, models, penalty, max_iter=max_iter, tol=tol, keep_losses=False)[0]


def ridge_of_refit(
    problem: Problem, models: Models, ridge: float | Array, policy: SearchPolicy
) -> Array:
    """Return the ridge ``(K,)`` with which the non-zero entries of models are refitted."""
    n_free = count_free([c != 0 for c in models.components], problem)
    share = _share_of_ridge(problem, models, n_free, policy)
    return np.broadcast_to(ridge, len(models)) * share


def _share_of_ridge(problem: Problem, models: Models, n_free: Array, policy: SearchPolicy) -> Array:
    """Share of the ridge that so many free entries of each model are refitted with."""
    n_all = count_free([np.ones_like(c, bool) for c in models.components], problem)
    if not problem.loss.is_quadratic:
        # Labels and counts are noisy, and a single entry may tell them apart, or zeros from others:
        # it has to stay finite.
        return n_free / n_all
    # Fewer samples than entries make an update in their space, where a few entries need a ridge to
    # be told from rounding.
    widest = max(c[0].size for c in models.components)
    n_spared = np.where(problem.n_effective[models.task] >= widest, policy.refit.n_spared, 0)
    share = np.maximum(n_free - n_spared, 0) / np.maximum(n_all - n_spared, 1)
    return share**policy.refit.ridge_power


@dataclass(frozen=True)
class Supported:
    """Models refitted on thinned supports, and the evidence of each."""

    models: Models
    evidence: Array

    def take(self, which: Array) -> "Supported":
        """Return some of the models."""
        return Supported(self.models.take(which), self.evidence[which])

    def best(self) -> "Supported":
        """Return the most evident model, a batch of one."""
        return self.take(np.array([np.argmin(self.evidence)]))

    @staticmethod
    def concatenate(parts: "Sequence[Supported]") -> "Supported":
        """Return the models of all parts."""
        return Supported(
            Models.concatenate([part.models for part in parts]),
            np.concatenate([part.evidence for part in parts]),
        )


def thin_supports(
    problem: Problem,
    candidates: Models,
    ridge: float,
    policy: SearchPolicy,
    sparsities: tuple[float, ...] | None = None,
) -> Supported:
    """Thin every candidate by a logarithmic penalty of each weight, and refit what is left.

    The lowest ``(N - dof) log(RSS / (N - dof))`` has the most evidence, the noise variance and the
    coefficients integrated out; unlike BIC and GCV it chooses well where N is close to the degrees
    of freedom.
    """
    own = policy.evidence
    sparsities = own.sparsities if sparsities is None else sparsities
    batch = Models.concatenate([candidates] * len(sparsities))
    sparsity = np.repeat(sparsities, len(candidates))
    thinning = [Step(ridge, sparsity, width) for width in np.geomspace(*own.widths, own.n_steps)]
    thinned = polish(problem, batch, thinning, policy).models
    masks = _masks(thinned, sparsity > 0, own.zero)
    ridges = np.where(sparsity > 0, own.refit_ridge, ridge)
    refitted = polish(problem, thinned, [Step(ridges)] * policy.refit.n_steps, policy, masks)
    return Supported(
        refitted.models, evidence(problem, refitted, count_free(masks, problem), policy)
    )


def hop(
    problem: Problem,
    models: Models,
    ridge: float,
    rng: np.random.Generator,
    policy: SearchPolicy,
) -> Supported:
    """Search for the most evident support from models that an annealing left.

    With about as many free parameters as samples all supports of some size fit, and few starts
    come near the sparsest: copies of the best are shaken under a threshold, and thinned again.
    """
    own, streams = policy.evidence, Streams(rng, problem.n_tasks)
    shaken = partial(shake, problem, ridge=ridge, streams=streams, policy=policy)
    models = shaken(models, ridges=own.settle_ridges, n_sweeps=own.settle_sweeps)
    found = thin_supports(problem, models, ridge, policy)
    for _ in range(own.n_hops):
        leaders, hits = distinct(found.models, found.evidence, policy.rounds.same_cosine)
        if hits[0] >= own.enough_hits:
            break
        found = found.take(leaders[: own.hop_models])
        copies = shaken(
            Models.concatenate([found.models] * own.hop_copies),
            ridges=own.hop_ridges,
            n_sweeps=own.hop_sweeps,
            threshold=own.hop_threshold,
        )
        thinned = thin_supports(problem, copies, ridge, policy, own.hop_sparsities)
        found = Supported.concatenate([found, thinned])
    return found


def _masks(models: Models, thin: Array, zero: float) -> list[Array]:
    """Mark the entries that count, in components of balanced length; all where not thinned."""
    size = np.abs(models.flat())
    cut = zero * np.sqrt(np.mean(size**2, axis=1, keepdims=True))
    kept = (size > cut) | ~thin[:, None]
    blocks = zip(models.blocks(), models.components, strict=True)
    return [kept[:, block].reshape(component.shape) for block, component in blocks]


def evidence(problem: Problem, fits: Polished, n_free: Array, policy: SearchPolicy) -> Array:
    """``(N - dof) log(RSS / (N - dof))`` of fits with so many free entries; less is better."""
    left = (problem.n_effective - problem.n_nuisance)[fits.models.task] - n_free
    left = np.maximum(left, policy.evidence.least_spare)
    return left * np.log((fits.rss + SMALLEST_SHARE * problem.n_samples) / left)


def count_free(masks: list[Array], problem: Problem) -> Array:
    """Free entries of every model: a term's modes share one scale, and tied ones their entries."""
    sizes = np.stack([masks[m].sum(axis=2) for m in problem.ties.own(len(masks))])
    return np.where(sizes.all(axis=0), sizes.sum(axis=0) - len(sizes) + 1, 0).sum(axis=1)
