"""Rounds of starts until one solution stands apart or is found often, or the budget ends."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.agreement import agree
from pyfastr.solver.confidence import SURE, SearchFacts, confidence
from pyfastr.solver.models import Models, cosines, distinct
from pyfastr.solver.policy import RoundsPolicy, SearchPolicy
from pyfastr.solver.polish import Polished, Step, polish
from pyfastr.solver.problem import SMALLEST_SHARE, Problem
from pyfastr.solver.progress import tell
from pyfastr.solver.proposals import Kind
from pyfastr.solver.starts import can_sprint, race
from pyfastr.solver.streams import Streams

Array = NDArray[Any]

# Terms of this size explain nothing: the response is of order one, and so are entries of X, give or
# take the range in which they are taken as they are.
NOTHING = 1e-12


@dataclass(frozen=True)
class Starts:
    """How the search for the best solution went.

    Attributes
    ----------
    n_starts : int
        Starts that ran, and solutions of folds that a final fit began from.
    n_polished : int
        Those that survived the race and were polished; all solutions of folds.
    n_hits : int
        Polished starts that ended in the returned solution.
    gap : float
        Smallest objective, squared residuals and the penalty of the ridge, of another solution over
        that of the returned one: at least 1, and infinite if no other was seen.
    sure : bool
        Whether `confidence` is at least 0.98.
    n_rounds : int
    losses : ndarray of shape (n_polished,)
        Objective of every polished solution over that of the returned one, ascending from 1.
    confidence : float or None
        Probability that 4,096 starts would find no better solution of the fitting problem. That is
        a statement about the optimum, not about the truth: where samples hardly outnumber the free
        parameters the best fit can be far from the coefficient that made the data. None if there
        was no search: with a start of one's own, and in files of versions that did not say.
    """

    n_starts: int
    n_polished: int
    n_hits: int
    gap: float
    sure: bool
    n_rounds: int
    losses: Array = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    confidence: float | None = None

    @staticmethod
    def of_convex(converged: bool) -> "Starts":
        """Say that a problem has one solution, and whether that was reached."""
        return Starts(1, 1, 1, np.inf, converged, 0, confidence=float(converged))


@dataclass(frozen=True)
class Found:
    """What a search returns.

    Attributes
    ----------
    solutions : Models
        The distinct ones, best first.
    survivors : Models
        Of the last race, as the annealing left them.
    starts : Starts
    stands_apart : bool
        Whether all other solutions fit so much worse that nothing is gained by going on.
    facts : SearchFacts, optional
        What the confidence in the solution rests on, if there was a search.
    """

    solutions: Models
    survivors: Models
    starts: Starts
    stands_apart: bool
    facts: SearchFacts | None = None


def round_sizes(
    problem: Problem, n_terms: int, n_init: int | str, policy: SearchPolicy
) -> Iterator[int]:
    """Yield the number of starts of each round, for every task."""
    own = policy.rounds
    if n_init != "auto":
        yield int(n_init)
        return
    ratio = np.min(problem.n_effective / problem.degrees_of_freedom(n_terms))
    size = next(first for least, first in own.first_round if ratio >= least)
    if can_sprint(problem, n_terms, policy):
        size = own.sprinters
    total = 0
    while total < own.budget:
        yield min(size, own.budget - total)
        total += size
        size *= 2


def search(
    problem: Problem,
    n_terms: int,
    *,
    kind: Kind,
    n_init: int | str,
    ridge: float,
    rng: np.random.Generator,
    policy: SearchPolicy,
    known: Models | None = None,
) -> list[Found]:
    """Run rounds of starts until every task's best solution stands apart, or was found often.

    `known` are solutions of nearly the same problem of every task, such as its folds: if they lead
    to one solution there is no need of other starts.
    """
    policy = policy.with_budget(_budget(ridge, known, policy))
    streams = Streams(rng, problem.n_tasks, problem.n_outputs)
    open_tasks = np.arange(problem.n_tasks)
    state = [_Searched(policy) for _ in open_tasks]
    if known is not None:
        polished = _polished(problem, known, ridge, policy)
        open_tasks = _take_in(state, problem, known, polished, open_tasks)
    for number, size in enumerate(round_sizes(problem, n_terms, n_init, policy)):
        if not len(open_tasks):
            break
        survivors, new = race(
            problem,
            size,
            n_terms,
            kind=kind,
            ridge=ridge,
            streams=streams,
            policy=policy,
            tasks=open_tasks,
            # What a sprint left open is mostly noise, and the next would as well.
            first=number == 0,
        )
        open_tasks = _take_in(state, problem, survivors, new, open_tasks, size)
    return _judged(problem, state, ridge, policy)


def _budget(ridge: float, known: Models | None, policy: SearchPolicy) -> int:
    """How many starts there may be, given the ridge and whether solutions are known."""
    own = policy.rounds
    if ridge < own.large_ridge:
        return own.budget
    return min(own.budget, own.budget_of_large_ridge if known is None else own.budget_beside_known)


def _polished(problem: Problem, known: Models, ridge: float, policy: SearchPolicy) -> Polished:
    """Polish solutions of nearly the same problem; of those that are the same, one for all."""
    leaders, _ = distinct(known, np.zeros(len(known)), policy.rounds.same_cosine)
    steps = [Step(ridge)] * policy.rounds.known_steps
    polished = polish(problem, known.take(leaders), steps, policy)
    alike = np.where(known.task[:, None] == known.task[leaders], cosines(known)[:, leaders], -2.0)
    return polished.take(np.argmax(alike, axis=1))


def _take_in(
    state: "list[_Searched]",
    problem: Problem,
    models: Models,
    polished: Polished,
    open_tasks: NDArray[np.intp],
    n_starts: int | None = None,
) -> NDArray[np.intp]:
    """Add a round to what each task has found; return the tasks that need another.

    `n_starts` each had a part in the models; None if these are all.
    """
    for t in open_tasks.tolist():
        own = models.task == t
        if own.any():
            size = int(own.sum()) if n_starts is None else n_starts
            state[t].add(problem, models.take(own), polished.take(own), size)
    _tell_of_round(state)
    return np.array([t for t in open_tasks if not state[t].done], int)


def _tell_of_round(state: "list[_Searched]") -> None:
    """Say how far a search is, and of a single task how it stands."""
    n_open = sum(not searched.done for searched in state)
    starts, budget = state[0].starts, state[0].policy.rounds.budget
    note = (
        f"round {starts.n_rounds}: {starts.n_starts} starts so far, {starts.n_hits} of "
        f"{starts.n_polished} polished reached the best solution, the next best leaves "
        f"{starts.gap:.3g} x its objective"
    )
    if len(state) > 1:
        n_rounds = max(searched.starts.n_rounds for searched in state)
        note = f"round {n_rounds}: {n_open} of {len(state)} searches go on"
    n_starts = max(searched.starts.n_starts for searched in state)
    tell("starts", n_starts if n_open else budget, max(budget, n_starts), note)


class _Searched:
    """What the rounds of one task have found so far."""

    def __init__(self, policy: SearchPolicy) -> None:
        self.policy = policy
        self.starts = Starts(0, 0, 0, np.inf, False, 0)
        self.polished: Polished | None = None
        self.done = False

    def add(self, problem: Problem, survivors: Models, new: Polished, size: int) -> None:
        """Take in a round."""
        known, rounds = self.polished, self.policy.rounds
        self.survivors = survivors
        self.polished = new if known is None else Polished.concatenate([known, new])
        self.leaders, hits = distinct(
            self.polished.models, self.polished.objective, rounds.same_cosine
        )
        self.starts = _counted(problem, self.polished, self.leaders, hits, self.starts, size)
        self.stands_apart = _stands_apart(problem, self.polished, self.leaders, hits, rounds)
        nothing = not self.polished.models.scales.any()
        often = self.starts.n_hits >= rounds.enough_hits
        task = int(self.polished.models.task[0])
        settled = often or agree(problem, self.polished, task, self.policy)
        self.done = self.stands_apart or settled or nothing

    @property
    def solutions(self) -> Polished:
        """The distinct ones, best first."""
        assert self.polished is not None
        return self.polished.take(self.leaders)


def _judged(
    problem: Problem, state: list[_Searched], ridge: float, policy: SearchPolicy
) -> list[Found]:
    """Return what was found for every task, and say how sure it is."""
    solutions = [searched.solutions for searched in state]
    best = Models.concatenate([own.models.take(slice(0, 1)) for own in solutions])
    unexplained = np.array([own.rss[0] for own in solutions]) / problem.n_samples
    without = _without_terms(problem, best, ridge, policy)
    n_free = problem.degrees_of_freedom(best.n_terms)
    found = []
    for t, (own, searched) in enumerate(zip(solutions, state, strict=True)):
        facts = SearchFacts(
            n_hits=searched.starts.n_hits,
            n_polished=searched.starts.n_polished,
            unexplained=float(unexplained[t]) + SMALLEST_SHARE,
            without_term=(without[t] + SMALLEST_SHARE).tolist(),
            n_samples=int(problem.n_effective[t]),
            n_free=int(n_free[t]),
            shape=problem.shape,
            ridge=ridge,
        )
        chance, apart = confidence(facts), searched.stands_apart
        starts = replace(searched.starts, confidence=chance, sure=chance >= SURE)
        found.append(Found(own.models, searched.survivors, starts, apart, facts))
    return found


def _without_terms(problem: Problem, models: Models, ridge: float, policy: SearchPolicy) -> Array:
    """Share of the response ``(K, R)`` that models leave unexplained without one of their terms.

    The other terms are fitted anew, because they may each have a part in what the one explains.
    """
    K, R = models.scales.shape
    without = np.ones(K * R)
    if R > 1:
        others = Models.concatenate([_without(models, term) for term in range(R)])
        # Steps from terms that a large ridge has shrunk to nothing can overflow.
        rows = np.flatnonzero(np.abs(others.scales).max(axis=1) > NOTHING)
        schedule = [Step(ridge)] * policy.race.settling_steps
        if len(rows):
            left = polish(problem, others.take(rows), schedule, policy).rss
            without[rows] = left / problem.n_samples
    return without.reshape(R, K).T


def _without(models: Models, term: int) -> Models:
    """Return models without one of their terms."""
    components = [np.delete(component, term, axis=1) for component in models.components]
    return Models(components, np.delete(models.scales, term, axis=1), models.task)


def _counted(
    problem: Problem, found: Polished, leaders: Array, hits: Array, before: Starts, size: int
) -> Starts:
    """Count what the search of a task has found, after another round or solutions that are known.

    The leaders of what was found are its distinct solutions, the best first.
    """
    left = found.objective + SMALLEST_SHARE * problem.n_samples
    losses = left / left[leaders[0]]
    return Starts(
        n_starts=before.n_starts + size,
        n_polished=len(losses),
        n_hits=int(hits[0]),
        gap=float(losses[leaders[1]]) if len(leaders) > 1 else np.inf,
        sure=False,
        n_rounds=before.n_rounds + 1,
        losses=np.sort(losses),
    )


def _stands_apart(
    problem: Problem, found: Polished, leaders: Array, hits: Array, policy: RoundsPolicy
) -> bool:
    """Whether the best solution of a task is so far ahead of all others that no search goes on."""
    rss = found.rss[leaders] + SMALLEST_SHARE * problem.n_samples
    lead = float(rss[1:].min() / rss[0]) if len(rss) > 1 else np.inf
    n_terms, task = found.models.n_terms, found.models.task[0]
    n_spare = int(problem.n_effective[task] - problem.degrees_of_freedom(n_terms)[task])
    # Where any data could be fitted exactly, a good fit says nothing.
    if n_spare <= 0 or len(found.rss) == 1:
        return False
    return lead >= needed_gap(int(hits[0]), n_terms, n_spare, policy)


def needed_gap(n_hits: int, n_terms: int, n_spare: int, policy: RoundsPolicy) -> float:
    """How far ahead a solution must be, given the samples beyond the free parameters."""
    if n_hits < policy.several_hits:
        return policy.gap_of_one
    if n_terms > 1:
        return policy.gap_of_several
    return min(policy.gap_of_several, float(np.exp(policy.lead_of_several / n_spare)))
