"""Starts: proposed in batches, shaken and raced while the ridge cools, then polished."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.parallel import limited_blas
from pyfastr.solver.agreement import settle
from pyfastr.solver.journal import Held, State, steps
from pyfastr.solver.models import Models, cosines, put
from pyfastr.solver.paces import Pace, SampleNeed
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import AnnealingPolicy, SearchPolicy
from pyfastr.solver.polish import Polished, Step, polish
from pyfastr.solver.problem import Problem
from pyfastr.solver.progress import tell
from pyfastr.solver.proposals import Kind, propose
from pyfastr.solver.streams import Streams
from pyfastr.solver.sweep import cyclic_sweep, judged_update, rest_of_sweep

Array = NDArray[Any]


def pace_of(
    problem: Problem, n_terms: int, ridge: float, policy: SearchPolicy, *, broad: bool = False
) -> Pace:
    """Return how long a run pays off, and whether a broad one does instead.

    No more samples than free parameters are fitted by any of many solutions, and a ridge as large
    as that of the hottest sweeps leaves few. Where samples are plenty, models find the right valley
    late no less than early, and a sweep of many costs the least for each: half the sweeps of four
    times the starts find it in less time.
    """
    determined = problem.n_effective > problem.degrees_of_freedom(n_terms)
    if not determined.any() or ridge >= policy.annealing.hot_ridge:
        return policy.race.short_run
    plenty = broad and _valleys_show(problem, n_terms, policy).all()
    return policy.race.broad_run if plenty else policy.race.long_run


@limited_blas()
def anneal(
    problem: Problem,
    models: Models,
    *,
    keep: int,
    ridge: float,
    streams: Streams,
    pace: Pace,
    policy: SearchPolicy,
) -> Models:
    """Sweep with fresh Bayesian-bootstrap weights in every update while the ridge cools.

    The noise shakes models out of bad minima. Models race on the smoothed, unweighted training
    loss, and `keep` of each task remain; where samples abound, a task whose best model is seen to
    be in the right valley ends at once. All tasks have as many models, one after another.
    """
    rounded, n_tasks = problem.rounded(), len(np.unique(models.task))
    first = len(models) if _is_small(problem, policy) else 0
    own, can_end = policy.annealing, _valleys_show(problem, models.n_terms, policy)
    field = _Field(models, keep, can_end, own)
    heats = _cooling(own.hot_ridge, own.cold_ridge, pace.n_sweeps, ridge)
    changed = (field, streams, problem.engine, rounded.engine)
    for sweep in steps("annealing", pace.n_sweeps, *changed, over=field.is_empty):
        # As if no task had ended: what one fold finds must not decide how X is rounded for another.
        n_models = max(first, field.each * n_tasks)
        now = rounded if n_models >= own.rounding_pays_from else problem
        field.models = field.models.astype(now.engine.dtype)
        penalty = Penalty(heats[sweep])
        begun = judged_update(now, field.models, 0, penalty, streams.weights(field.models.task))
        if sweep:
            # The update of the first mode tells how well the last sweep's models fit.
            begun = begun.take(field.judge(begun.loss, begun.misfit, sweep - 1 in pace.halvings))
        if not field.is_empty():
            field.models = rest_of_sweep(
                now, field.models, begun.solution, penalty, streams.weights
            )
            tell("search", sweep + 1, pace.n_sweeps)
    if not field.is_empty():
        field.end(problem.losses(field.models))
    return Models.concatenate([some.astype(float) for some in field.ended])


class _Field(State):
    """Models that race on their smoothed loss, as many of every task.

    Attributes
    ----------
    models : Models
        Those still in the race.
    ended : list of Models
        The best of tasks that have ended.
    """

    def __init__(self, models: Models, keep: int, can_end: Array, policy: AnnealingPolicy) -> None:
        self.models, self.ended = models, list[Models]()
        self._keep, self._can_end, self._policy = keep, can_end, policy
        self._smooth: Array | None = None

    def memory(self) -> dict[str, Any]:
        """Return what the race changes."""
        return {"models": self.models, "ended": self.ended, "_smooth": self._smooth}

    def is_empty(self) -> bool:
        """Whether no model is left in the race."""
        return not len(self.models)

    @property
    def each(self) -> int:
        """Models of each task that is still in the race."""
        return len(self.models) // max(1, len(np.unique(self.models.task)))

    def judge(self, loss: Array, misfit: Array, halve: bool) -> Array:
        """Let tasks end that have found their valley, and drop the worse half if it is time.

        Returns which of the models go on.
        """
        each, tasks = self.each, np.unique(self.models.task)
        losses = self._smoothed(loss).reshape(-1, each)
        best = misfit.reshape(-1, each).min(axis=1)
        end = (best <= self._policy.right_valley) & self._can_end[tasks]
        if end.any():
            self.ended.append(self.models.take(_best_of_each(losses, end, self._keep)))
        n_left = max(self._keep, each // 2) if halve else each
        which = np.arange(len(loss))
        if end.any() or n_left < each:
            which = _best_of_each(losses, ~end, n_left)
        self.models, self._smooth = self.models.take(which), losses.reshape(-1)[which]
        return which

    def end(self, loss: Array) -> None:
        """Keep the best of the tasks that are left."""
        losses = self._smoothed(loss).reshape(-1, self.each)
        every = np.ones(len(losses), bool)
        self.ended.append(self.models.take(_best_of_each(losses, every, self._keep)))

    def _smoothed(self, loss: Array) -> Array:
        if self._smooth is None:
            return loss
        share = self._policy.smoothing
        return share * self._smooth + (1 - share) * loss


def _is_small(problem: Problem, policy: SearchPolicy) -> bool:
    """Whether X is rounded to the end of an annealing that begins so."""
    return problem.engine.n_bytes <= policy.annealing.always_rounded_bytes


def _best_of_each(losses: Array, rows: Array, n_left: int) -> Array:
    """Flat indices of the lowest losses of each of some rows."""
    best = np.argsort(losses, axis=1, kind="stable")[:, :n_left]
    return (best + losses.shape[1] * np.arange(len(losses))[:, None])[rows].reshape(-1)


def shake(
    problem: Problem,
    models: Models,
    *,
    ridges: tuple[float, float],
    n_sweeps: int,
    ridge: float,
    streams: Streams,
    policy: SearchPolicy,
    threshold: float = 0.0,
) -> Models:
    """Sweep as `anneal` does, from one ridge to another, and keep all models."""
    pays = len(models) >= policy.annealing.rounding_pays_from
    rounded = problem.rounded() if pays else problem
    shaken = Held(models.astype(rounded.engine.dtype))
    heats = _cooling(*ridges, n_sweeps, ridge)
    for sweep in steps("shaking", n_sweeps, shaken, streams, rounded.engine):
        penalty = Penalty(heats[sweep], threshold)
        shaken.value, _ = cyclic_sweep(rounded, shaken.value, penalty, streams.weights)
    return shaken.value.astype(float)


def _cooling(hot: float, cold: float, n_sweeps: int, ridge: float) -> list[float]:
    """Ridges from hot to cold that never fall below the one that is asked for."""
    return np.geomspace(max(hot, ridge), max(cold, ridge), n_sweeps).tolist()


def race(
    problem: Problem,
    n_starts: int,
    n_terms: int,
    *,
    kind: Kind,
    ridge: float,
    streams: Streams,
    policy: SearchPolicy,
    tasks: Array | None = None,
    first: bool = True,
) -> tuple[Models, Polished]:
    """Run one round of starts; return the survivors as the annealing left them, and polished.

    The first is a few sprints if samples abound, on as many of them as that needs, and a long run
    on all of them for those tasks only that these leave open.
    """

    def run(some: Problem, tasks: Array | None, pace: Pace, kind: Kind) -> tuple[Models, Polished]:
        keep = _n_survivors(some, n_starts, policy)
        models = propose(some, n_starts, n_terms, kind, streams, policy, tasks)
        models = anneal(
            some, models, keep=keep, ridge=ridge, streams=streams, pace=pace, policy=policy
        )
        return models, _polished(some, models, ridge, pace, policy)

    if not first or not can_sprint(problem, n_terms, policy):
        broad = first and n_starts >= policy.race.broad_from
        return run(problem, tasks, pace_of(problem, n_terms, ridge, policy, broad=broad), kind)
    few = for_a_sprint(problem, n_terms, streams.common, policy)
    # Sums of so many samples point at a single term, and random starts fail more often.
    short: Kind = "spectral" if kind == "mixed" and n_terms == 1 else kind
    done: list[tuple[Models, Polished]] = []
    for _ in range(policy.race.n_sprints):
        models, found = run(few, tasks, policy.race.sprint, short)
        if few is not problem:
            found = on_all_samples(problem, found, ridge, few.n_samples, policy)
        # Each task for itself: the samples one fold holds out must not decide how it is searched.
        tasks = _unexplained(problem, found, policy)
        if few is problem:
            found, tasks = settle(problem, found, tasks, ridge, policy)
        settled = np.flatnonzero(~np.isin(models.task, tasks))
        done.append((models.take(settled), found.take(settled)))
        if not len(tasks):
            break
    else:
        done.append(run(problem, tasks, pace_of(problem, n_terms, ridge, policy), kind))
    survivors, polished = zip(*done, strict=True)
    return Models.concatenate(survivors), Polished.concatenate(list(polished))


def _polished(
    problem: Problem, models: Models, ridge: float, pace: Pace, policy: SearchPolicy
) -> Polished:
    """Polish survivors: where samples abound as after a sprint, at the pace where that fails."""

    def polished(some: Models, pace: Pace) -> Polished:
        return polish(problem, some, polish_schedule(ridge, pace, policy), policy)

    easy = np.flatnonzero(_valleys_show(problem, models.n_terms, policy)[models.task])
    if pace == policy.race.sprint or not len(easy):
        return polished(models, pace)
    found = polished(models.take(easy), policy.race.sprint)
    settled = ~np.isin(found.models.task, _unexplained(problem, found, policy))
    rest = np.setdiff1d(np.arange(len(models)), easy[settled])
    if not len(rest):
        return found
    slow = polished(models.take(rest), pace)
    order = np.argsort(np.concatenate([easy[settled], rest]))
    return Polished.concatenate([found.take(np.flatnonzero(settled)), slow]).take(order)


def on_all_samples(
    problem: Problem, found: Polished, ridge: float, n_few: int, policy: SearchPolicy
) -> Polished:
    """Polish the best model of each task, which few samples led to, on all of them.

    Models that are the same become the same; others are wrong, by residuals that show on few.
    """
    models, share = found.models, problem.n_samples / n_few
    _, at = np.unique(models.task, return_inverse=True)
    own = [np.flatnonzero(at == t) for t in range(at.max() + 1)]
    best = np.array([rows[np.argmin(found.objective[rows])] for rows in own])
    to_best = cosines(models)[np.arange(len(models)), best[at]]
    same = np.flatnonzero(to_best > policy.rounds.same_cosine)
    schedule = [Step(ridge)] * policy.race.sprint.n_final
    polished = polish(problem, models.take(best), schedule, policy).take(at[same])
    rss, objective = found.rss * share, found.objective * share
    rss[same], objective[same] = polished.rss, polished.objective
    return Polished(put(models, same, polished.models), rss, objective)


def can_sprint(problem: Problem, n_terms: int, policy: SearchPolicy) -> bool:
    """Whether every task has samples enough for a sprint."""
    return _plenty(problem, n_terms, policy.race.sprint_needs) >= 1


def for_a_sprint(
    problem: Problem, n_terms: int, rng: np.random.Generator, policy: SearchPolicy
) -> Problem:
    """Return the problem, or one of each few samples if they abound all the more."""
    plenty = _plenty(problem, n_terms, policy.race.sprint_looks_at)
    small = problem.engine.n_bytes < policy.race.thinned_from_bytes
    if small or plenty < policy.race.worth_thinning:
        return problem
    edges = np.linspace(0, problem.n_samples, int(problem.n_samples / plenty) + 1).astype(int)
    return problem.subset(rng.integers(edges[:-1], edges[1:]))


def _valleys_show(problem: Problem, n_terms: int, policy: SearchPolicy) -> Array:
    """Which tasks have so many samples that a model in the right valley is seen to be there."""
    needed = policy.race.sprint_needs.per_parameter
    return problem.n_effective >= needed * problem.degrees_of_freedom(n_terms)


def _plenty(problem: Problem, n_terms: int, needed: SampleNeed) -> float:
    """How many times the needed samples the task with the fewest has."""
    enough = np.maximum(
        needed.per_parameter * problem.degrees_of_freedom(n_terms),
        needed.per_root * n_terms * np.sqrt(np.prod(problem.shape)),
    )
    return float(np.min(problem.n_effective / enough))


def _unexplained(problem: Problem, found: Polished, policy: SearchPolicy) -> Array:
    """Tasks whose best model leaves more than a little unexplained."""
    tasks = np.unique(found.models.task)
    best = np.array([found.rss[found.models.task == task].min() for task in tasks])
    return tasks[best > policy.race.sprint_unexplained * problem.n_samples]


def _n_survivors(problem: Problem, n_starts: int, policy: SearchPolicy) -> int:
    """How many starts are polished: more where that is cheap, else a few."""
    own = policy.race
    if np.prod(problem.shape) <= own.small_sample:
        return max(1, n_starts // own.starts_per_polished_small)
    few = min(own.most_polished, n_starts // own.starts_per_polished)
    return max(1, few, n_starts // own.many_starts_per_polished)


def polish_schedule(ridge: float | Array, pace: Pace, policy: SearchPolicy) -> list[Step]:
    """Cool from a warm, sparsity-seeking penalty to the ridge alone."""
    own = policy.polish
    hot, cold = np.maximum(own.hot_ridge, ridge), np.maximum(ridge, own.least_ridge)
    cooling = np.geomspace(hot, cold, pace.n_cooling)
    sparse = [Step(heat, heat - ridge, own.sparsity_width) for heat in cooling]
    return sparse + [Step(ridge)] * pace.n_final
