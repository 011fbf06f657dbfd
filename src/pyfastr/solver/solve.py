"""The road from a problem to fitted models: one of each task, or a grid for each."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.design import Design, designs
from pyfastr.solver.growth import with_another_term
from pyfastr.solver.models import Models, unit
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import Pace, SearchPolicy
from pyfastr.solver.polish import Polished, polish
from pyfastr.solver.problem import Problem
from pyfastr.solver.rounds import Found, Starts, round_sizes, search
from pyfastr.solver.starts import (
    Kind,
    anneal,
    can_sprint,
    pace_of,
    polish_schedule,
    propose,
    sparse_starts,
)
from pyfastr.solver.streams import Streams
from pyfastr.solver.support import Supported, evidence, hop, refit, ridge_of_refit, thin_supports
from pyfastr.solver.sweep import History, Order, run_sweeps
from pyfastr.solver.tangent import foresee
from pyfastr.solver.vector import most_evident_vector, refit_vectors, ridge_starts, shrunk

Array = NDArray[Any]
RefitSupport = bool | Literal["evidence"]


@dataclass(frozen=True)
class Settings:
    """What a user asks of the solver; the meaning of each is told in `FasTRRegressor`.

    `may_start_sparse` says whether models of a high threshold may begin from a sparse start
    instead; `known` are solutions of nearly the same problem, which spare a search if they agree.
    `brief` says that the tasks of a grid are many and only compared with each other: a search is
    then one round, of few starts for a short time where samples abound. `policy` says how to
    search.
    """

    threshold: float
    ridge: float
    n_terms: int = 1
    init: Kind | Sequence[Array] = "mixed"
    n_init: int | Literal["auto"] = "auto"
    order: Order = "cyclic"
    max_iter: int = 1000
    tol: float = 1e-3
    refit_support: RefitSupport = False
    may_start_sparse: bool = True
    known: Models | None = None
    brief: bool = False
    policy: SearchPolicy = field(default_factory=SearchPolicy)


@dataclass(frozen=True)
class Solution:
    """Fitted models, in the units of the problem.

    Attributes
    ----------
    models : Models
    fitted : ndarray of shape (K, n_samples)
        ``<W, X_i>``, intercept and covariates left out.
    history : History
    converged : ndarray of shape (K,)
    """

    models: Models
    fitted: Array
    history: History
    converged: Array


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


@dataclass(frozen=True)
class GridFits(Solution):
    """Models of every task, ridge and threshold, in that order, and those they began from."""

    begun_from: Models


def solve(problem: Problem, settings: Settings, rng: np.random.Generator) -> Fit:
    """Search for the best start, sweep to a fixed point of the update, refit if asked to.

    The tasks are outputs, all of which share each pass over X.
    """
    if not problem.samples.response.any():
        return _nothing_to_fit(problem, settings)
    found = _search(problem, settings, rng)
    penalty = Penalty(settings.ridge, settings.threshold)
    sure = np.array([own.stands_apart for own in found])
    best = Models.concatenate([own.solutions.take(slice(0, 1)) for own in found])
    swept = finish(problem, best, penalty, settings, sure, keep_losses=True)
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


def solve_grid(
    problem: Problem,
    ridges: Sequence[float],
    thresholds: Sequence[float],
    settings: Settings,
    rng: np.random.Generator,
) -> GridFits:
    """Fit every ridge and threshold to every task, all models sharing each pass over X.

    The starts of a task serve all its ridges, and the solution of a ridge all thresholds.
    """
    starts, sure = _grid_starts(problem, ridges, settings, rng)
    each = np.repeat(np.arange(len(starts)), len(thresholds))
    ridge = np.tile(np.repeat(ridges, len(thresholds)), problem.n_tasks)
    threshold = np.tile(thresholds, len(starts))
    penalty = Penalty(ridge, threshold)
    return finish(problem, starts.take(each), penalty, settings, sure, keep_losses=False)


def grow_grid(problem: Problem, models: Models, penalty: Penalty, settings: Settings) -> GridFits:
    """Add a term to fitted models and fit all terms of each anew, with its own penalty."""
    starts = with_another_term(problem, models, settings.policy)
    sure = np.zeros(problem.n_tasks, bool)
    return finish(problem, starts, penalty, settings, sure, keep_losses=False)


def finish(
    problem: Problem,
    starts: Models,
    penalty: Penalty,
    settings: Settings,
    sure: Array,
    *,
    keep_losses: bool,
) -> GridFits:
    """Sweep from starts to fixed points of the update, and refit their supports if asked to.

    `sure` says of every task whether its starts are known to be the best solutions. The losses of
    last sweeps take a pass over X before a refit, and are in the history if they are to be kept.
    """
    if len(problem.shape) == 1 and problem.loss.is_quadratic:
        # One convex problem whose solutions the starts are: one update.
        models = shrunk(starts, penalty)
        if settings.refit_support is True:
            models = refit_vectors(problem, models, penalty.ridge)
        rest, converged = np.zeros(len(models)), np.ones(len(models), bool)
        swept = _Swept(starts, models, History([rest.copy()], [rest]), converged)
    else:
        swept = _swept(problem, starts, penalty, settings, sure, keep_losses=keep_losses)
    models, history = swept.models, swept.history
    fitted = problem.engine.fitted(models)
    if keep_losses and not swept.has_last_losses:
        history.end(problem.losses_of(fitted, models.task))
    return GridFits(models, fitted, history, swept.converged, swept.begun_from)


@dataclass(frozen=True)
class _Swept:
    """Models whose sweeps have ended, refitted if that was asked for.

    Attributes
    ----------
    begun_from : Models
    models : Models
    history : History
    converged : ndarray of shape (K,)
    has_last_losses : bool
        Whether the history knows how well the models fit after their last sweeps.
    """

    begun_from: Models
    models: Models
    history: History
    converged: Array
    has_last_losses: bool = False


def _swept(
    problem: Problem,
    starts: Models,
    penalty: Penalty,
    settings: Settings,
    sure: Array,
    *,
    keep_losses: bool,
) -> _Swept:
    """Sweep from starts, and from sparse ones where these may be better, and refit."""
    policy, max_iter = settings.policy, settings.max_iter
    second = _needs_sparse_start(problem, starts, penalty, settings, sure)
    batch, every = _with_sparse_starts(problem, starts, penalty, second, policy)
    foresight = foresee(problem, batch, every, policy)
    models, history, converged = run_sweeps(
        problem,
        foresight.move(batch, every),
        every,
        order=settings.order,
        max_iter=max_iter,
        tol=settings.tol,
        keep_losses=keep_losses,
    )
    is_refitted = settings.refit_support is True
    is_judged = len(second) > 0 or (is_refitted and keep_losses)
    if is_judged:
        losses = problem.losses(models)
        history.end(losses)
    if len(second):
        better = _better_of_two(losses, second, len(starts))
        starts, models = batch.take(better), models.take(better)
        history, converged = history.take(better), converged[better]
    if is_refitted:
        tol = policy.refit.tol_share * settings.tol
        models = refit(problem, models, penalty.ridge, max_iter, tol, policy, foresight)
    return _Swept(starts, models, history, converged, is_judged)


def _needs_sparse_start(
    problem: Problem, starts: Models, penalty: Penalty, settings: Settings, sure: Array
) -> Array:
    """Which models of a high threshold may be better off with a sparse start."""
    wanted = settings.may_start_sparse and isinstance(settings.init, str)
    if not wanted or settings.n_terms > 1 or len(problem.shape) == 1:
        return np.empty(0, int)
    threshold = np.broadcast_to(penalty.threshold, len(starts))
    high = threshold >= settings.policy.proposals.sparse_start_from
    return np.flatnonzero(high & ~sure[starts.task])


def _with_sparse_starts(
    problem: Problem, starts: Models, penalty: Penalty, second: Array, policy: SearchPolicy
) -> tuple[Models, Penalty]:
    """Add a sparse start of its own to some of the models, behind all others."""
    if not len(second):
        return starts, penalty
    sparse = sparse_starts(problem, policy).take(starts.task[second])
    rows = np.concatenate([np.arange(len(starts)), second])
    return Models.concatenate([starts, sparse]), penalty.take(rows)


def _better_of_two(loss: Array, second: Array, n_models: int) -> Array:
    """Where each model's better version stands: with its first start, or with a sparse one."""
    better = np.arange(n_models)
    behind = n_models + np.arange(len(second))
    wins = loss[behind] < loss[second]
    better[second[wins]] = behind[wins]
    return better


def _search(problem: Problem, settings: Settings, rng: np.random.Generator) -> list[Found]:
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


def _grid_starts(
    problem: Problem,
    ridges: Sequence[float],
    settings: Settings,
    rng: np.random.Generator,
) -> tuple[Models, Array]:
    """Return the best start of every task and ridge, and which tasks are sure of it."""
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
    found = _search(problem, least, rng)
    sure = np.array([f.stands_apart for f in found])
    best = [f.solutions.take(slice(0, 1)) for f in found]
    # The search has polished its starts at the least ridge already.
    settled = sure | (len(ridges) == 1 or not isinstance(settings.init, str))
    at_ridges = {t: [best[t]] * len(ridges) for t in tasks}
    if not settled.all():
        survivors = [f.survivors.take(slice(0, policy.grid.candidates)) for f in found]
        several = [*best, *survivors] if determined.any() else best
        candidates = Models.concatenate([m for m in several if not settled[m.task[0]]])
        pace = _pace_at_ridges(problem, n_terms, min(ridges), policy)
        at_ridges |= _best_at_each_ridge(problem.to_search(), candidates, ridges, pace, policy)
    return Models.concatenate([model for t in tasks for model in at_ridges[t]]), sure


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
