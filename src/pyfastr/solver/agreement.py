"""Starts that agree: what tells in noise that a search has found its best solution."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.models import distinct
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.polish import Polished, Step, polish
from pyfastr.solver.problem import Problem

Array = NDArray[Any]


def agree(problem: Problem, found: Polished, task: int, policy: SearchPolicy) -> bool:
    """Whether most of a task's polished starts end in the best solution, given samples enough."""
    n_starts, own = np.count_nonzero(found.models.task == task), policy.race
    if not _abound(problem, found, task, policy):
        return False
    return _n_best(found, task, policy) >= max(own.agreeing, own.agreement * n_starts)


def settle(
    problem: Problem, found: Polished, tasks: Array, ridge: float, policy: SearchPolicy
) -> tuple[Polished, Array]:
    """Polish on what noise has kept apart; return that, and those of the tasks that disagree.

    Steps are shorter where residuals are large, so that models in one valley may stand apart.
    """
    models = found.models
    apart = [
        t
        for t in tasks
        if _abound(problem, found, t, policy)
        and _n_best(found, t, policy) < np.count_nonzero(models.task == t)
    ]
    if apart:
        rows = np.flatnonzero(np.isin(models.task, apart))
        schedule = [Step(ridge)] * policy.race.settling_steps
        found = found.put(rows, polish(problem, models.take(rows), schedule, policy))
    left = [t for t in tasks if not agree(problem, found, t, policy)]
    return found, np.array(left, int)


def _abound(problem: Problem, found: Polished, task: int, policy: SearchPolicy) -> bool:
    """Whether a task has samples enough for agreement to tell."""
    n_free = problem.degrees_of_freedom(found.models.n_terms)[task]
    return bool(problem.n_effective[task] >= policy.race.agreement_needs * n_free)


def _n_best(found: Polished, task: int, policy: SearchPolicy) -> int:
    """Count the models of a task that are the best one."""
    own = found.take(np.flatnonzero(found.models.task == task))
    _, sizes = distinct(own.models, own.objective, policy.rounds.same_cosine)
    return int(sizes[0])
