"""A grid of ridges and thresholds for every task, all models sharing each pass over X."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.finish import Finished, finish
from pyfastr.solver.growth import with_another_term
from pyfastr.solver.models import Models
from pyfastr.solver.paces import Pace
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.polish import polish
from pyfastr.solver.problem import Problem
from pyfastr.solver.proposals import Kind, propose
from pyfastr.solver.rounds import round_sizes
from pyfastr.solver.settings import Settings
from pyfastr.solver.solve import search_as_asked
from pyfastr.solver.starts import anneal, can_sprint, pace_of, polish_schedule
from pyfastr.solver.streams import Streams
from pyfastr.solver.vector import ridge_starts

Array = NDArray[Any]


def solve_grid(
    problem: Problem,
    ridges: Sequence[float],
    thresholds: Sequence[float],
    settings: Settings,
    rng: np.random.Generator,
) -> Finished:
    """Fit every ridge and threshold to every task, all models sharing each pass over X.

    The starts of a task serve all its ridges, and the solution of a ridge all thresholds.
    """
    starts, apart = _grid_starts(problem, ridges, settings, rng)
    each = np.repeat(np.arange(len(starts)), len(thresholds))
    ridge = np.tile(np.repeat(ridges, len(thresholds)), problem.n_tasks)
    threshold = np.tile(thresholds, len(starts))
    penalty = Penalty(ridge, threshold)
    return finish(problem, starts.take(each), penalty, settings, apart, keep_losses=False)


def grow_grid(problem: Problem, models: Models, penalty: Penalty, settings: Settings) -> Finished:
    """Add a term to fitted models and fit all terms of each anew, with its own penalty."""
    starts = with_another_term(problem, models, settings.policy)
    n_ways = len(starts) // len(models)
    each = np.repeat(np.arange(len(models)), n_ways)
    apart = np.zeros(problem.n_tasks, bool)
    grown = finish(problem, starts, penalty.take(each), settings, apart, keep_losses=False)
    if n_ways == 1:
        return grown
    losses = problem.losses_of(grown.fitted, grown.models.task).reshape(-1, n_ways)
    return grown.take(n_ways * np.arange(len(models)) + losses.argmin(axis=1))


def _grid_starts(
    problem: Problem,
    ridges: Sequence[float],
    settings: Settings,
    rng: np.random.Generator,
) -> tuple[Models, Array]:
    """Return the best start of every task and ridge, and which of them stand apart."""
    policy, n_terms = settings.policy, settings.n_terms
    tasks = range(problem.n_tasks)
    if len(problem.shape) == 1:
        return ridge_starts(problem, ridges), np.ones(len(tasks), bool)
    determined = problem.n_effective > problem.degrees_of_freedom(n_terms)
    blind = min(policy.grid.budget, policy.grid.blind_budget)
    limited = policy.with_budget(policy.grid.budget if determined.any() else blind)
    if settings.brief and settings.n_init == "auto" and isinstance(settings.init, str):
        if can_sprint(problem, n_terms, policy):
            starts = _brief_starts(problem, ridges, settings, settings.init, rng)
            return starts, np.zeros(len(tasks), bool)
        limited = policy.with_budget(next(round_sizes(problem, n_terms, "auto", limited)))
    least = replace(settings, ridge=float(min(ridges)), policy=limited)
    found = search_as_asked(problem, least, rng)
    apart = np.array([f.stands_apart for f in found])
    best = [f.solutions.take(slice(0, 1)) for f in found]
    # The search has polished its starts at the least ridge already.
    settled = apart | (len(ridges) == 1 or not isinstance(settings.init, str))
    at_ridges = {t: [best[t]] * len(ridges) for t in tasks}
    if not settled.all():
        survivors = [f.survivors.take(slice(0, policy.grid.candidates)) for f in found]
        several = [*best, *survivors] if determined.any() else best
        candidates = Models.concatenate([m for m in several if not settled[m.task[0]]])
        pace = _pace_at_ridges(problem, n_terms, min(ridges), policy)
        at_ridges |= _best_at_each_ridge(problem.to_search(), candidates, ridges, pace, policy)
    return Models.concatenate([model for t in tasks for model in at_ridges[t]]), apart


def _pace_at_ridges(problem: Problem, n_terms: int, ridge: float, policy: SearchPolicy) -> Pace:
    """Return how survivors are polished at other ridges: briefly where a sprint led to them."""
    if can_sprint(problem, n_terms, policy):
        return policy.race.sprint
    return pace_of(problem, n_terms, ridge, policy)


def _brief_starts(
    problem: Problem,
    ridges: Sequence[float],
    settings: Settings,
    kind: Kind,
    rng: np.random.Generator,
) -> Models:
    """Return the best of a few starts for every task and ridge, where nearly any would do."""
    policy, problem = settings.policy, problem.to_search()
    streams = Streams(rng, problem.n_tasks, problem.n_outputs)
    models = anneal(
        problem,
        propose(problem, policy.grid.brief_starts, settings.n_terms, kind, streams, policy),
        keep=policy.grid.brief_candidates,
        ridge=float(min(ridges)),
        streams=streams,
        pace=policy.race.short_run,
        policy=policy,
    )
    best = _best_at_each_ridge(problem, models, ridges, policy.race.short_run, policy)
    return Models.concatenate([model for t in range(problem.n_tasks) for model in best[t]])


def _best_at_each_ridge(
    problem: Problem,
    candidates: Models,
    ridges: Sequence[float],
    pace: Pace,
    policy: SearchPolicy,
) -> dict[int, list[Models]]:
    """Polish candidates at every ridge; return the best of each ridge by task."""
    K = len(candidates)
    batch = candidates.take(np.tile(np.arange(K), len(ridges)))
    schedule = polish_schedule(np.repeat(ridges, K), pace, policy)
    polished = polish(problem, batch, schedule, policy)
    merit = polished.objective.reshape(len(ridges), K)
    best = {}
    for task in np.unique(candidates.task).tolist():
        own = np.flatnonzero(candidates.task == task)
        at = [r * K + own[np.argmin(merit[r, own])] for r in range(len(ridges))]
        best[task] = [polished.models.take(slice(k, k + 1)) for k in at]
    return best
