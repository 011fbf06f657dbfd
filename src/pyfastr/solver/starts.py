"""Starts: proposed in batches, shaken and raced while the ridge cools, then polished."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.contraction import project_own
from pyfastr.engines.kernels import cache_parts
from pyfastr.engines.parallel import map_threads
from pyfastr.solver.models import SAME, Models, cosines, put, unit
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.polish import Polished, Step, polish
from pyfastr.solver.problem import Problem
from pyfastr.solver.progress import tell
from pyfastr.solver.streams import Streams
from pyfastr.solver.sweep import cyclic_sweep, judged_update, rest_of_sweep

Array = NDArray[Any]
Kind = Literal["mixed", "spectral", "random"]

POWER_SWEEPS, POWER_THRESHOLD = 15, 0.5
# Ridge of the annealing, from hot to cold; it never ends below the one that is asked for.
HOT_RIDGE, COLD_RIDGE = 1.2, 0.1
# Of the loss by which models leave the race.
SMOOTHING = 0.7
# From this many models on, products in float32 gain more than rounding X costs.
ROUNDING_PAYS = 32
# X of up to so many bytes is rounded to the end, however few models are left, as it was when the
# search at 30 x 30 x 30 was set up: where that hangs by a thread, other rounding finds others.
SMALL_DATA = 32 << 20
# The polish begins with this ridge, and as much sparsity, and cools to the ridge asked for: a
# jump there, or cooling without sparsity, loses models that stand in the right valley.
POLISH_HEAT, SMALLEST_RIDGE = 0.3, 1e-9
# Below this many elements a sample polishing costs as little as annealing: more reach it.
SMALL_SAMPLE = 1000
# A race begins as a sprint where there are so many samples for each degree of freedom, and so many
# times the root of the number of entries of a sample: with fewer, not even half of the sprints
# found the right valley. It looks at no more samples than are enough for nearly all (34 of 35 at
# 200 x 200 x 5), if there are so many times as many.
SPRINT_SAMPLES, ENOUGH_SAMPLES, WORTH_THINNING = (2.0, 1.5), (2.5, 2.0), 1.5
# With as many samples for a parameter as a sprint needs, models fall from 0.4 unexplained at their
# best scale to 0.1 in two or three sweeps when they find the right valley, however hot the ridge,
# and stay above 0.33 in others (six searches of one data set of 51 x 61 x 23).
RIGHT_VALLEY = 0.15
# A sprint's result holds if no larger share of the response is left unexplained, as noise moves the
# valleys: wrong ones of so many samples left 0.15 and more in hundreds of sprints, and the best of
# 128 starts 0.06 and more.
LITTLE_NOISE = 0.05
# A sprint that ends in a wrong valley is run again: so many cost a fraction of one long run.
N_SPRINTS = 3


@dataclass(frozen=True)
class Pace:
    """How much time a race takes.

    Attributes
    ----------
    n_sweeps : int
        Of the annealing.
    halvings : tuple of int
        Sweeps after which the half with the larger smoothed loss leaves.
    n_cooling, n_final : int
        Steps of the polish, while it cools and after that.
    """

    n_sweeps: int
    halvings: tuple[int, ...]
    n_cooling: int
    n_final: int


SPRINT = Pace(7, (2, 4), 4, 2)
LONG_RUN = Pace(60, (10, 20, 32), 24, 6)
# Of at least so many starts, where samples are plenty, yet too few for a sprint.
BROAD_RUN, N_BROAD = Pace(30, (5, 10, 15), 24, 6), 32
# Where there is nothing to find, or nothing cools.
SHORT_RUN = Pace(20, (4, 8), 8, 4)


def pace_of(problem: Problem, n_terms: int, ridge: float, *, broad: bool = False) -> Pace:
    """Return how long a run pays off, and whether a broad one does instead.

    No more samples than free parameters are fitted by any of many solutions, and a ridge as large
    as that of the hottest sweeps leaves few. Where samples are plenty, models find the right valley
    late no less than early (one in 200 in each sweep at 51 x 61 x 23, however hot), and a sweep of
    many costs the least for each: half the sweeps of four times the starts find it in less time.
    """
    determined = problem.n_effective > problem.degrees_of_freedom(n_terms)
    if not determined.any() or ridge >= HOT_RIDGE:
        return SHORT_RUN
    return BROAD_RUN if broad and _valleys_show(problem, n_terms).all() else LONG_RUN


def propose(
    problem: Problem,
    n_models: int,
    n_terms: int,
    kind: Kind,
    streams: Streams,
    tasks: Array | None = None,
) -> Models:
    """Draw so many starts for each task: random, spectral, or half of each."""
    tasks = np.arange(problem.n_tasks) if tasks is None else tasks
    task = np.repeat(tasks, n_models)
    draws = [streams.normal(task, (n_terms, p)) for p in problem.shape]
    models = Models([unit(d)[0] for d in draws], np.ones((len(task), n_terms)), task)
    n_random = {"random": n_models, "spectral": 0, "mixed": n_models // 2}[kind]
    spectral = np.flatnonzero(np.arange(len(models)) % n_models >= n_random)
    if not len(spectral):
        return models
    return put(models, spectral, _power_sweeps(problem, models.take(spectral), streams))


def _power_sweeps(problem: Problem, models: Models, streams: Streams) -> Models:
    """Rank-one approximations of ``sum_i g_i y_i X_i``, g drawn from Exp(1) for each start.

    The sums take one pass over X; the power sweeps then work on one array a start.
    """
    K, R = models.scales.shape
    task = np.repeat(models.task, R)
    draw = streams.weights(task)
    rows = [c.reshape(K * R, -1) for c in models.components]
    done = []
    for part in problem.engine.batches(K * R, 24.0 * np.prod(problem.shape)):
        sums = problem.engine.drawn_sums(task[part], draw.take(part))[:, None]
        power = partial(_power_sweep, sums, [r[part].astype(sums.dtype) for r in rows])
        done += map_threads(power, cache_parts(sums))
    components = [np.concatenate(c).reshape(K, R, -1) for c in zip(*done, strict=True)]
    return Models(components, models.scales, models.task).astype(float)


def _power_sweep(sums: Array, rows: list[Array], part: slice) -> list[Array]:
    """Rank-one approximations of some of the sums, from their rows of components."""
    own = [r[part] for r in rows]
    for _ in range(POWER_SWEEPS):
        for m in range(len(own)):
            own[m] = unit(project_own(sums[part], own, m)[:, 0])[0]
    return own


def sparse_starts(problem: Problem) -> Models:
    """One start a task: a sparse rank-one approximation of ``sum_i y_i X_i``.

    Beginning at the largest entry, power sweeps with a threshold stay where few entries stand out
    of the noise; those of dense starts, and the annealing, are led away by the noise of all.
    """
    tasks, sparse = np.arange(problem.n_tasks), Penalty(0.0, POWER_THRESHOLD)
    found = []
    for part in problem.engine.batches(len(tasks), 24.0 * np.prod(problem.shape)):
        sums = problem.engine.drawn_sums(tasks[part])[:, None].astype(float, copy=False)
        largest = np.abs(sums).reshape(len(sums), -1).argmax(axis=1)
        at = np.unravel_index(largest, problem.shape)
        rows = [np.eye(p)[i] for p, i in zip(problem.shape, at, strict=True)]
        for _ in range(POWER_SWEEPS):
            for m in range(len(rows)):
                rows[m] = unit(sparse.shrink(project_own(sums, rows, m)[:, 0]))[0]
        found.append(Models([r[:, None] for r in rows], np.ones((len(sums), 1)), tasks[part]))
    return Models.concatenate(found)


def anneal(
    problem: Problem,
    models: Models,
    *,
    keep: int,
    ridge: float,
    streams: Streams,
    pace: Pace = LONG_RUN,
) -> Models:
    """Sweep with fresh Bayesian-bootstrap weights in every update while the ridge cools.

    The noise shakes models out of bad minima. Models race on the smoothed, unweighted training
    loss, and `keep` of each task remain; where samples abound, a task whose best model is seen to
    be in the right valley ends at once. All tasks have as many models, one after another.
    """
    rounded, n_tasks = problem.rounded(), len(np.unique(models.task))
    first = len(models) if _is_small(problem) else 0
    race = _Race(models, keep, _valleys_show(problem, models.n_terms))
    for sweep, heat in enumerate(_cooling(HOT_RIDGE, COLD_RIDGE, pace.n_sweeps, ridge)):
        # As if no task had ended: what one fold finds must not decide how X is rounded for another.
        each = race.each * n_tasks
        now = rounded if max(first, each) >= ROUNDING_PAYS else problem
        race.models = race.models.astype(now.engine.dtype)
        penalty = Penalty(heat)
        begun = judged_update(now, race.models, 0, penalty, streams.weights(race.models.task))
        if sweep:
            # The update of the first mode tells how well the last sweep's models fit.
            begun = begun.take(race.judge(begun.loss, begun.misfit, sweep - 1 in pace.halvings))
        if not len(race.models):
            break
        race.models = rest_of_sweep(
            now, race.models, begun, penalty, lambda some: streams.weights(some.task)
        )
        tell("search", sweep + 1, pace.n_sweeps)
    if len(race.models):
        race.end(problem.losses(race.models))
    return Models.concatenate([some.astype(float) for some in race.ended])


class _Race:
    """Models that race on their smoothed loss, as many of every task.

    Attributes
    ----------
    models : Models
        Those still in the race.
    ended : list of Models
        The best of tasks that have ended.
    """

    def __init__(self, models: Models, keep: int, can_end: Array) -> None:
        self.models, self.ended = models, list[Models]()
        self._keep, self._can_end = keep, can_end
        self._smooth: Array | None = None

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
        end = (best <= RIGHT_VALLEY) & self._can_end[tasks]
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
        return SMOOTHING * self._smooth + (1 - SMOOTHING) * loss


def _is_small(problem: Problem) -> bool:
    """Whether X is rounded to the end of an annealing that begins so."""
    return problem.engine.n_bytes <= SMALL_DATA


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
    threshold: float = 0.0,
) -> Models:
    """Sweep as `anneal` does, from one ridge to another, and keep all models."""
    rounded = problem.rounded() if len(models) >= ROUNDING_PAYS else problem
    models = models.astype(rounded.engine.dtype)
    for heat in _cooling(*ridges, n_sweeps, ridge):
        penalty = Penalty(heat, threshold)
        models, _ = cyclic_sweep(rounded, models, penalty, lambda some: streams.weights(some.task))
    return models.astype(float)


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
    tasks: Array | None = None,
    first: bool = True,
) -> tuple[Models, Polished]:
    """Run one round of starts; return the survivors as the annealing left them, and polished.

    The first is a few sprints if samples abound, on as many of them as that needs, and a long run
    on all of them for those tasks only that these leave open.
    """

    def run(some: Problem, tasks: Array | None, pace: Pace, kind: Kind) -> tuple[Models, Polished]:
        keep = _n_survivors(some, n_starts)
        models = propose(some, n_starts, n_terms, kind, streams, tasks)
        models = anneal(some, models, keep=keep, ridge=ridge, streams=streams, pace=pace)
        return models, _polished(some, models, ridge, pace)

    if not first or not can_sprint(problem, n_terms):
        broad = first and n_starts >= N_BROAD
        return run(problem, tasks, pace_of(problem, n_terms, ridge, broad=broad), kind)
    few = _for_a_sprint(problem, n_terms, streams.common)
    # Sums of so many samples point at a single term; with half of the starts random four of 40
    # sprints at 200 x 200 x 5 failed, though they had ten sweeps.
    short: Kind = "spectral" if kind == "mixed" and n_terms == 1 else kind
    done: list[tuple[Models, Polished]] = []
    for _ in range(N_SPRINTS):
        models, found = run(few, tasks, SPRINT, short)
        if few is not problem:
            found = _on_all_samples(problem, found, ridge, few.n_samples)
        # Each task for itself: the samples one fold holds out must not decide how it is searched.
        tasks = _unexplained(problem, found)
        settled = np.flatnonzero(~np.isin(models.task, tasks))
        done.append((models.take(settled), found.take(settled)))
        if not len(tasks):
            break
    else:
        done.append(run(problem, tasks, pace_of(problem, n_terms, ridge), kind))
    survivors, polished = zip(*done, strict=True)
    return Models.concatenate(survivors), Polished.concatenate(list(polished))


def _polished(problem: Problem, models: Models, ridge: float, pace: Pace) -> Polished:
    """Polish survivors: where samples abound as after a sprint, at the pace where that fails."""
    easy = np.flatnonzero(_valleys_show(problem, models.n_terms)[models.task])
    if pace is SPRINT or not len(easy):
        return polish(problem, models, polish_schedule(ridge, pace))
    found = polish(problem, models.take(easy), polish_schedule(ridge, SPRINT))
    settled = ~np.isin(found.models.task, _unexplained(problem, found))
    rest = np.setdiff1d(np.arange(len(models)), easy[settled])
    if not len(rest):
        return found
    slow = polish(problem, models.take(rest), polish_schedule(ridge, pace))
    order = np.argsort(np.concatenate([easy[settled], rest]))
    return Polished.concatenate([found.take(np.flatnonzero(settled)), slow]).take(order)


def _on_all_samples(problem: Problem, found: Polished, ridge: float, n_few: int) -> Polished:
    """Polish the best model of each task, which few samples led to, on all of them.

    Models that are the same become the same; others are wrong, by residuals that show on few.
    """
    models, share = found.models, problem.n_samples / n_few
    _, at = np.unique(models.task, return_inverse=True)
    own = [np.flatnonzero(at == t) for t in range(at.max() + 1)]
    best = np.array([rows[np.argmin(found.objective[rows])] for rows in own])
    same = np.flatnonzero(cosines(models)[np.arange(len(models)), best[at]] > SAME)
    polished = polish(problem, models.take(best), [Step(ridge)] * SPRINT.n_final).take(at[same])
    rss, objective = found.rss * share, found.objective * share
    rss[same], objective[same] = polished.rss, polished.objective
    return Polished(put(models, same, polished.models), rss, objective)


def can_sprint(problem: Problem, n_terms: int) -> bool:
    """Whether every task has samples enough for a sprint."""
    return _plenty(problem, n_terms, SPRINT_SAMPLES) >= 1


def _for_a_sprint(problem: Problem, n_terms: int, rng: np.random.Generator) -> Problem:
    """Return the problem, or one of each few samples if they abound all the more."""
    plenty = _plenty(problem, n_terms, ENOUGH_SAMPLES)
    if plenty < WORTH_THINNING:
        return problem
    edges = np.linspace(0, problem.n_samples, int(problem.n_samples / plenty) + 1).astype(int)
    return problem.subset(rng.integers(edges[:-1], edges[1:]))


def _valleys_show(problem: Problem, n_terms: int) -> Array:
    """Which tasks have so many samples that a model in the right valley is seen to be there."""
    return problem.n_effective >= SPRINT_SAMPLES[0] * problem.degrees_of_freedom(n_terms)


def _plenty(problem: Problem, n_terms: int, needed: tuple[float, float]) -> float:
    """How many times the needed samples the task with the fewest has."""
    per_parameter, per_root = needed
    enough = np.maximum(
        per_parameter * problem.degrees_of_freedom(n_terms),
        per_root * n_terms * np.sqrt(np.prod(problem.shape)),
    )
    return float(np.min(problem.n_effective / enough))


def _unexplained(problem: Problem, found: Polished) -> Array:
    """Tasks whose best model leaves more than a little unexplained."""
    tasks = np.unique(found.models.task)
    best = np.array([found.rss[found.models.task == task].min() for task in tasks])
    return tasks[best > LITTLE_NOISE * problem.n_samples]


def _n_survivors(problem: Problem, n_starts: int) -> int:
    """How many starts are polished: half where that is cheap, else a few."""
    if np.prod(problem.shape) <= SMALL_SAMPLE:
        return max(1, n_starts // 2)
    return max(1, min(8, n_starts // 4), n_starts // 24)


def polish_schedule(ridge: float | Array, pace: Pace = LONG_RUN) -> list[Step]:
    """Cool from a warm, sparsity-seeking penalty to the ridge alone."""
    hot, cold = np.maximum(POLISH_HEAT, ridge), np.maximum(ridge, SMALLEST_RIDGE)
    cooling = np.geomspace(hot, cold, pace.n_cooling)
    return [Step(heat, heat - ridge) for heat in cooling] + [Step(ridge)] * pace.n_final
