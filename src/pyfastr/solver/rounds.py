"""Rounds of starts until the best solution is sure, or the budget ends."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.models import Models, cosines, distinct
from pyfastr.solver.policy import RoundsPolicy, SearchPolicy
from pyfastr.solver.polish import Polished, Step, polish
from pyfastr.solver.problem import SMALLEST_SHARE, Problem
from pyfastr.solver.progress import tell
from pyfastr.solver.starts import Kind, can_sprint, race
from pyfastr.solver.streams import Streams

Array = NDArray[Any]


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
        Smallest sum of squared residuals of another solution over that of the returned one;
        infinite if no other was seen, below 1 if another fits closer at a larger penalty.
    sure : bool
        Whether gap, hits and number of samples say that this is the best solution of the fitting
        problem. That is a statement about the optimum, not about the truth: where samples hardly
        outnumber the free parameters the best fit can be far from the coefficient that made the
        data.
    n_rounds : int
    losses : ndarray of shape (n_polished,)
        Squared residuals of every polished solution over those of the returned one, ascending.
    """

    n_starts: int
    n_polished: int
    n_hits: int
    gap: float
    sure: bool
    n_rounds: int
    losses: Array = field(default_factory=lambda: np.empty(0), repr=False, compare=False)


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
    """

    solutions: Models
    survivors: Models
    starts: Starts


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
    """Run rounds of starts until every task's best solution is sure, or was found often enough.

    `known` are solutions of nearly the same problem of one task, such as its folds: if they lead to
    one solution there is no need of other starts.
    """
    policy = policy.with_budget(_budget(ridge, known, policy))
    streams = Streams(rng, problem.n_tasks)
    open_tasks = np.arange(problem.n_tasks)
    state = [_Searched(policy) for _ in open_tasks]
    if known is not None:
        state[0].add(problem, known, _polished(problem, known, ridge, policy), len(known))
        _tell_of_round(state, policy.rounds.budget)
        if state[0].done:
            return [state[0].found()]
    for number, size in enumerate(round_sizes(problem, n_terms, n_init, policy)):
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
        for t in open_tasks.tolist():
            own = survivors.task == t
            state[t].add(problem, survivors.take(own), new.take(own), size)
        _tell_of_round(state, policy.rounds.budget)
        open_tasks = np.array([t for t in open_tasks if not state[t].done], int)
        if not len(open_tasks):
            break
    return [s.found() for s in state]


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
    return polished.take(np.argmax(cosines(known)[:, leaders], axis=1))


def _tell_of_round(state: "list[_Searched]", budget: int) -> None:
    """Say how far a search is, and of a single task how it stands."""
    n_open = sum(not searched.done for searched in state)
    starts = state[0].starts
    note = (
        f"round {starts.n_rounds}: {starts.n_starts} starts so far, {starts.n_hits} of "
        f"{starts.n_polished} polished reached the best solution, the next best leaves "
        f"{starts.gap:.3g} x its squared residuals{': sure' if starts.sure else ''}"
    )
    if len(state) > 1:
        n_rounds = max(searched.starts.n_rounds for searched in state)
        note = f"round {n_rounds}: {n_open} of {len(state)} searches go on"
    n_starts = max(searched.starts.n_starts for searched in state)
    tell("starts", n_starts if n_open else budget, max(budget, n_starts), note)


class _Searched:
    """What the rounds of one task have found so far."""

    def __init__(self, policy: SearchPolicy) -> None:
        self.policy = policy.rounds
        self.starts = Starts(0, 0, 0, np.inf, False, 0)
        self.polished: Polished | None = None
        self.done = False

    def add(self, problem: Problem, survivors: Models, new: Polished, size: int) -> None:
        """Take in a round."""
        known = self.polished
        self.survivors = survivors
        self.polished = new if known is None else Polished.concatenate([known, new])
        self.leaders, hits = distinct(
            self.polished.models, self.polished.objective, self.policy.same_cosine
        )
        before = self.starts
        self.starts = _judge(problem, self.polished, self.leaders, hits, before, size, self.policy)
        nothing = not self.polished.models.scales.any()
        often = self.starts.n_hits >= self.policy.enough_hits
        self.done = self.starts.sure or often or nothing

    def found(self) -> Found:
        """Return the distinct solutions and the last survivors."""
        assert self.polished is not None
        return Found(self.polished.take(self.leaders).models, self.survivors, self.starts)


def _judge(
    problem: Problem,
    found: Polished,
    leaders: Array,
    hits: Array,
    before: Starts,
    size: int,
    policy: RoundsPolicy,
) -> Starts:
    """Say how sure the best solution of a task is."""
    rss = found.rss[leaders] + SMALLEST_SHARE * problem.n_samples
    gap = float(rss[1:].min() / rss[0]) if len(rss) > 1 else np.inf
    n_hits = int(hits[0])
    n_terms, task = found.models.n_terms, found.models.task[0]
    n_spare = int(problem.n_effective[task] - problem.degrees_of_freedom(n_terms)[task])
    # Where any data could be fitted exactly, a good fit says nothing.
    several = len(found.rss) > 1
    sure = n_spare > 0 and several and gap >= _needed_gap(n_hits, n_terms, n_spare, policy)
    losses = np.sort(found.rss + SMALLEST_SHARE * problem.n_samples) / rss[0]
    return Starts(
        before.n_starts + size,
        len(found.rss),
        n_hits,
        gap,
        bool(sure),
        before.n_rounds + 1,
        losses,
    )


def _needed_gap(n_hits: int, n_terms: int, n_spare: int, policy: RoundsPolicy) -> float:
    """How far ahead a solution must be, given the samples beyond the free parameters."""
    if n_hits < policy.several_hits:
        return policy.gap_of_one
    if n_terms > 1:
        return policy.gap_of_several
    return min(policy.gap_of_several, float(np.exp(policy.lead_of_several / n_spare)))
