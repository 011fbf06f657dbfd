"""The road from a problem to a fitted model of each task."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.design import Design, designs
from pyfastr.solver.finish import Solution, finish
from pyfastr.solver.models import Models, unit
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.polish import Polished
from pyfastr.solver.problem import Problem
from pyfastr.solver.rounds import Found, Starts, search
from pyfastr.solver.settings import Settings
from pyfastr.solver.support import Supported, evidence, hop, ridge_of_refit, thin_supports
from pyfastr.solver.sweep import History
from pyfastr.solver.vector import most_evident_vector, ridge_starts

Array = NDArray[Any]


@dataclass(frozen=True)
class Fit(Solution):
    """One fitted model a task, how each was found, and its evidence if it was chosen by that.

    Attributes
    ----------
    starts : list of T Starts
    evidence : ndarray of shape (T,)
    designs : list of T Design or None
        Missing where all features would not fit the memory budget.
    """

    starts: list[Starts]
    evidence: Array
    designs: list[Design] | None = None


def solve(problem: Problem, settings: Settings, rng: np.random.Generator) -> Fit:
    """Search for the best start, sweep to a fixed point of the update, refit if asked to.

    The tasks are outputs, all of which share each pass over X.
    """
    if not problem.samples.response.any():
        return _nothing_to_fit(problem, settings)
    found = search_as_asked(problem, settings, rng)
    penalty = Penalty(settings.ridge, settings.threshold)
    apart = np.array([own.stands_apart for own in found])
    best = Models.concatenate([own.solutions.take(slice(0, 1)) for own in found])
    swept = finish(problem, best, penalty, settings, apart, keep_losses=True)
    starts, unknown = [own.starts for own in found], np.full(len(found), np.nan)
    if len(problem.shape) == 1:
        starts = [Starts.of_convex(bool(converged)) for converged in swept.converged]
    fit = Fit(swept.models, swept.fitted, swept.history, swept.converged, starts, unknown)
    if settings.refit_support != "evidence":
        return _with_designs(problem, fit, settings)
    chosen = _most_evident(problem, found, fit.models, settings, rng)
    fitted = problem.engine.fitted(chosen.models)
    fit = replace(fit, models=chosen.models, fitted=fitted, evidence=chosen.evidence)
    return _with_designs(problem, fit, settings)


def _with_designs(problem: Problem, fit: Fit, settings: Settings) -> Fit:
    """Add what the samples say of a fit."""
    return replace(fit, designs=designs_at_end(problem, fit.models, settings))


def designs_at_end(problem: Problem, models: Models, settings: Settings) -> list[Design] | None:
    """Return the design of every model at the ridge with which a fit by these settings ends."""
    ridge: float | Array = settings.ridge
    if settings.refit_support is True:
        ridge = ridge_of_refit(problem, models, ridge, settings.policy)
    elif settings.refit_support == "evidence":
        ridge = settings.policy.evidence.refit_ridge
    return designs(problem, models, ridge)


def search_as_asked(problem: Problem, settings: Settings, rng: np.random.Generator) -> list[Found]:
    """Search for the best solution of every task; the user's own start is the only one."""
    if len(problem.shape) == 1:
        starts = ridge_starts(problem, [settings.ridge])
        each = [starts.take(slice(task, task + 1)) for task in range(problem.n_tasks)]
        return [Found(own, own, Starts.of_convex(False), False) for own in each]
    if isinstance(settings.init, str):
        return search(
            problem.to_search(),
            settings.n_terms,
            kind=settings.init,
            n_init=settings.n_init,
            ridge=settings.ridge,
            rng=rng,
            policy=settings.policy,
            known=settings.known,
        )
    components, lengths = zip(*(unit(np.asarray(a, float).T) for a in settings.init), strict=True)
    found = []
    for task, y_scale in enumerate(problem.y_scale):
        scales = np.prod(lengths, axis=0) * (problem.x_scale / y_scale)
        models = Models([c[None] for c in components], scales[None], np.array([task]))
        models = problem.ties.nearest(models)
        found.append(Found(models, models, Starts(1, 1, 1, np.inf, False, 0), False))
    return found


def _most_evident(
    problem: Problem, found: list[Found], best: Models, settings: Settings, rng: np.random.Generator
) -> Supported:
    """Choose a support for each task by its evidence."""
    if problem.n_tasks == 1:
        return _most_evident_of_one(problem, found[0], best, settings, rng)
    chosen = []
    for t, own in enumerate(found):
        alone = replace(own, solutions=own.solutions.alone(), survivors=own.survivors.alone())
        some = best.take(slice(t, t + 1)).alone()
        # As in the search, an output draws the same numbers wherever it stands.
        one = _most_evident_of_one(problem.task(t), alone, some, settings, deepcopy(rng))
        chosen.append(replace(one, models=replace(one.models, task=np.array([t]))))
    return Supported.concatenate(chosen)


def _most_evident_of_one(
    problem: Problem, found: Found, best: Models, settings: Settings, rng: np.random.Generator
) -> Supported:
    """Choose a support by its evidence: of the best model if there is no doubt, else of several.

    With about as many free parameters as samples, polished solutions all fit the data and have
    lost what the annealing knew, so small samples go on from there.
    """
    ridge, policy = settings.ridge, settings.policy
    if len(problem.shape) == 1:
        return most_evident_vector(problem, ridge, policy)
    if found.stands_apart or not found.starts.n_rounds:
        return thin_supports(problem, best, ridge, policy).best()
    if np.prod(problem.shape) <= policy.race.small_sample:
        several = found.survivors.take(slice(0, policy.evidence.candidates_small))
        return hop(problem, several, ridge, rng, policy).best()
    few = found.solutions.take(slice(0, policy.evidence.candidates_large))
    return thin_supports(problem, few, ridge, policy).best()


def _nothing_to_fit(problem: Problem, settings: Settings) -> Fit:
    """Return the zero coefficient: intercept and covariates explain all responses."""
    T, R = problem.n_tasks, settings.n_terms
    components = [np.zeros((T, R, p)) for p in problem.shape]
    models = Models(components, np.zeros((T, R)), np.arange(T))
    fitted = np.zeros((T, problem.n_samples))
    history = History([problem.losses_of(fitted, models.task)], [np.zeros(T)])
    starts = [Starts(0, 0, 0, np.inf, True, 0, confidence=1.0)] * T
    merit = evidence(
        problem, Polished(models, np.zeros(T), np.zeros(T)), np.zeros(T), settings.policy
    )
    return Fit(models, fitted, history, np.ones(T, bool), starts, merit)
