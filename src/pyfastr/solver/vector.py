"""Samples that are vectors (M = 1): the update is the whole fit, and X is its own projection."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.equations import ROUNDING
from pyfastr.solver.journal import once
from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.polish import Polished
from pyfastr.solver.problem import Problem
from pyfastr.solver.support import Supported, evidence
from pyfastr.solver.update import solve_regularised

Array = NDArray[Any]


class VectorTask:
    """EE-Ridge (Yang, Lozano, Ravikumar 2014) of one task: all its ridges, thresholds and supports.

    What is made of X serves all ridges; thresholds need nothing of it.

    Parameters
    ----------
    problem : Problem
        Of one task.
    number : int
        That the task has elsewhere.
    """

    def __init__(self, problem: Problem, number: int = 0) -> None:
        self._problem, self._number = problem, number
        self._held: tuple[Array, Array] | None = None

    def solutions(self, ridges: Sequence[float], used: Array | None = None) -> Models:
        """Return the ridge solutions of all features, or of some, without threshold."""
        every = np.ones(self._problem.shape[0], bool) if used is None else used
        masks, eased = np.tile(every, (len(ridges), 1)), np.asarray(ridges, float)
        return self._models(once("vector", partial(self._fit, masks, eased), self._problem.engine))

    def refitted(self, models: Models, ridges: Array) -> Models:
        """Fit the non-zero entries of models anew, without threshold; fewer need less ridge."""
        used = models.components[0][:, 0] != 0
        make = partial(self._fit, used, ridges * used.mean(axis=1))
        return self._models(once("vector refits", make, self._problem.engine))

    def _models(self, vectors: Array) -> Models:
        task = np.full(len(vectors), self._number)
        return as_models(vectors, task)

    def _fit(self, used: Array, ridges: Array) -> Array:
        """Ridge solutions ``(K, p)`` of the features that each mask uses."""
        solution = np.zeros(used.shape)
        n_used = used.sum(axis=1)
        few = np.flatnonzero((n_used > 0) & (n_used <= self._problem.n_samples))
        if len(few):
            self._fit_by_features(used, ridges, few, solution)
        # Supports of one ridge lie in each other: the smallest first, so that sums can grow.
        many = np.lexsort((n_used, ridges))
        many = many[n_used[many] > self._problem.n_samples]
        if len(many):
            self._fit_by_samples(used, ridges, many, solution)
        return solution

    def _fit_by_features(self, used: Array, ridges: Array, which: Array, into: Array) -> None:
        """Solve in the space of features, from the Gram matrix of all that any mask uses."""
        among = np.flatnonzero(used[which].any(axis=0))
        gram, moment = self._equations(among)
        for k in which:
            own = np.flatnonzero(used[k, among])
            some = gram[np.ix_(own, own)][None]
            rhs, penalty = moment[None, own], Penalty(float(ridges[k]))
            into[k, among[own]] = solve_regularised(some, rhs, penalty, len(own))[0]

    def _equations(self, among: Array) -> tuple[Array, Array]:
        """Return the Gram matrix and moments of some features."""
        if self._problem.shape[0] <= self._problem.n_samples:
            gram, moment = self._all_equations
            return gram[np.ix_(among, among)], moment[among]
        # A Gram matrix of all features would be larger than X.
        features = self._problem.engine.flattened(among) - self._shift[among]
        z = self._problem.samples.response[:1]
        (Q,), (z,) = self._problem.whiten(features[None], z, np.zeros(1, int))
        return Q.T @ Q, z @ Q

    @cached_property
    def _all_equations(self) -> tuple[Array, Array]:
        nothing = as_models(np.zeros((1, *self._problem.shape)), np.zeros(1, int))
        found = self._problem.engine.mode_equations(nothing, 0)
        return found.gram[0], found.moment[0]

    def _fit_by_samples(self, used: Array, ridges: Array, which: Array, into: Array) -> None:
        """Solve in the space of samples, from the inner products of all pairs."""
        samples, root = self._problem.samples, np.sqrt(self._weights)
        C, fit = samples.nuisance[0], (samples.nuisance[0] * self._weights[:, None]).T
        z, rows = samples.response[:1] * root, []
        for k in which:
            kernel = self._kernel(used[k])
            dual = np.zeros_like(z)
            if kernel is not None:
                penalty = Penalty(float(ridges[k]))
                dual = solve_regularised(kernel[None], z, penalty, int(used[k].sum()))
            weighted = dual * root
            rows.append(weighted - (weighted @ C) @ fit)
        sums = self._problem.engine.weighted_sums(np.concatenate(rows))
        into[which] = np.where(used[which], sums, 0)

    def _kernel(self, used: Array) -> Array | None:
        """Inner products of weighted samples, nuisance taken out; None where only rounding is."""
        products, root = self._products(used), np.sqrt(self._weights)
        C = self._problem.samples.nuisance[0]
        fit = (C * self._weights[:, None]).T
        left = products - C @ (fit @ products)
        kernel = root[:, None] * (left - (left @ fit.T) @ C.T) * root
        size = np.sum(np.diag(products) * (self._weights > 0))
        rounding = (ROUNDING * np.finfo(float).eps) ** 2 * size
        return None if np.trace(kernel) <= rounding else np.asarray(kernel)

    def _products(self, used: Array) -> Array:
        """Inner products of samples; features are added to those of the mask before if they can."""
        engine, more = self._problem.engine, used
        products = np.zeros((self._problem.n_samples,) * 2)
        if self._held is not None and not np.any(self._held[0] & ~used):
            more, products = used & ~self._held[0], self._held[1]
        if more.any():
            products = products + engine.sample_products(self._share, more)
        self._held = used, products
        return products

    @cached_property
    def _weights(self) -> Array:
        weights = self._problem.samples.weights
        return np.ones(self._problem.n_samples) if weights is None else weights[0]

    @cached_property
    def _shift(self) -> Array:
        """Means of the features if there is an intercept to make up for them, else zeros."""
        return self._problem.engine.weighted_sums(self._share[None])[0].astype(float)

    @cached_property
    def _share(self) -> Array:
        """Weights of these means."""
        return self._weights / self._weights.sum() * self._problem.samples.has_intercept


def as_models(vectors: Array, task: Array) -> Models:
    """Return models whose coefficients are vectors ``(K, p)``."""
    ones = Models([np.ones((len(task), 1, 1))], np.ones((len(task), 1)), task)
    return ones.replace(0, vectors[:, None])


def ridge_starts(problem: Problem, ridges: Sequence[float]) -> Models:
    """Return the ridge solutions of every task and ridge, in that order."""
    tasks = range(problem.n_tasks)
    return Models.concatenate([VectorTask(problem.task(t), t).solutions(ridges) for t in tasks])


def shrunk(models: Models, penalty: Penalty) -> Models:
    """Return models of vectors with the threshold applied to them."""
    vectors = models.components[0][:, 0] * models.scales
    return as_models(penalty.shrink(vectors), models.task)


def refit_vectors(problem: Problem, models: Models, ridge: float | Array) -> Models:
    """Fit the non-zero entries of models of all tasks anew, as many models of each as there are."""
    ridges, parts = np.broadcast_to(ridge, len(models)), []
    order = np.argsort(models.task, kind="stable")
    for t in np.unique(models.task).tolist():
        own = order[models.task[order] == t]
        parts.append(VectorTask(problem.task(t), t).refitted(models.take(own), ridges[own]))
    return Models.concatenate(parts).take(np.argsort(order))


def most_evident_vector(problem: Problem, ridge: float, policy: SearchPolicy) -> Supported:
    """Choose the threshold whose support has the most evidence after a refit."""
    own, task = policy.evidence, VectorTask(problem)
    thresholds = np.array([0.0, *own.vector_thresholds])
    start = task.solutions([ridge]).take(np.zeros(len(thresholds), int))
    thinned = shrunk(start, Penalty(ridge, thresholds))
    models = task.refitted(thinned, np.full(len(thresholds), own.vector_ridge))
    rss = problem.engine.losses(models).rss
    n_free = np.count_nonzero(models.components[0], axis=(1, 2))
    merit = evidence(problem, Polished(models, rss, rss), n_free, policy)
    return Supported(models, merit).best()
