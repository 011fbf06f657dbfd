"""Which fits a run consists of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyfastr.experiments.methods import ORACLE, OURS, Method
from pyfastr.experiments.problems import Problem, Simulation
from pyfastr.experiments.store import Key, Result
from pyfastr.experiments.studies import Study

# A method that was ended in so many trials of a problem is not tried again on it or a larger one.
PATIENCE = 2


@dataclass(frozen=True)
class Unit:
    """One trial of a problem: all methods see the same samples.

    Attributes
    ----------
    experiment : str
        The first that asks for it.
    problem : Problem
    trial : int
    """

    experiment: str
    problem: Problem
    trial: int

    @property
    def name(self) -> str:
        """What processes claim."""
        return f"{self.problem.key}-trial{self.trial}"


@dataclass(frozen=True)
class Plan:
    """What is to be fitted.

    Attributes
    ----------
    studies : sequence of Study
    methods : sequence of Method
    n_trials : int
    budget : float
        Seconds for one fit with all its tuning.
    scan_budget : float or None
        The same for scans, which cannot be made smaller; None: as for all others.
    """

    studies: Sequence[Study]
    methods: Sequence[Method]
    n_trials: int
    budget: float
    scan_budget: float | None = None

    def budget_of(self, problem: Problem) -> float:
        """Return the seconds for one fit to a problem.

        Parameters
        ----------
        problem : Problem

        Returns
        -------
        float
        """
        if self.scan_budget is None or isinstance(problem, Simulation):
            return self.budget
        return self.scan_budget

    @cached_property
    def units(self) -> list[Unit]:
        """All trials of all problems, each once: experiments share problems."""
        units: dict[str, Unit] = {}
        for study in self.studies:
            for problem in study.problems:
                for trial in range(self.n_trials):
                    unit = Unit(study.name, problem, trial)
                    units.setdefault(unit.name, unit)
        return list(units.values())

    def methods_for(self, problem: Problem) -> list[Method]:
        """Return the methods, and the oracle where there is a truth to tell it.

        Parameters
        ----------
        problem : Problem

        Returns
        -------
        list of Method
        """
        return [*self.methods, ORACLE] if isinstance(problem, Simulation) else [*self.methods]

    def missing(self, unit: Unit, known: Mapping[Key, Result]) -> list[Method]:
        """Return the methods whose answer in this trial is not known.

        Parameters
        ----------
        unit : Unit
        known : mapping of Result

        Returns
        -------
        list of Method
        """

        def is_answered(method: Method) -> bool:
            result = known.get((unit.problem.key, unit.trial, method.key))
            return result is not None and result.answers(self.budget_of(unit.problem))

        return [m for m in self.methods_for(unit.problem) if not is_answered(m)]

    def count(self, known: Mapping[Key, Result]) -> tuple[int, int]:
        """Return how many fits have an answer, and how many there are.

        Parameters
        ----------
        known : mapping of Result

        Returns
        -------
        n_answered, n_fits : int
        """
        n_fits = sum(len(self.methods_for(unit.problem)) for unit in self.units)
        return n_fits - sum(len(self.missing(unit, known)) for unit in self.units), n_fits

    def why_hopeless(self, unit: Unit, method: Method, known: Mapping[Key, Result]) -> str:
        """Say where the method was ended too often to try again here; "" if nowhere.

        Parameters
        ----------
        unit : Unit
        method : Method
        known : mapping of Result

        Returns
        -------
        str
        """
        candidates = [unit.problem]
        # Close to too few samples FasTR takes longest: what it does not manage there says nothing
        # about larger problems.
        if method.key != OURS:
            problems = {u.problem.key: u.problem for u in self.units}.values()
            candidates += [p for p in problems if _is_smaller(p, unit.problem)]
        for problem in candidates:
            n_ended = self._count_ended(problem, method, known)
            if n_ended >= min(PATIENCE, self.n_trials):
                return f"{n_ended} time-outs at {problem.title}"
        return ""

    def _count_ended(self, problem: Problem, method: Method, known: Mapping[Key, Result]) -> int:
        """Count the trials that ran into a budget at least as large as that of this plan."""
        budget = self.budget_of(problem)
        keys = ((problem.key, trial, method.key) for trial in range(self.n_trials))
        results = [known[key] for key in keys if key in known]
        return sum(r.status == "timeout" and r.budget >= budget for r in results)


def _is_smaller(one: Problem, other: Problem) -> bool:
    """Whether a problem of the same kind and as many modes has fewer entries."""
    alike = type(one) is type(other) and len(one.shape) == len(other.shape)
    return alike and one.n_entries < other.n_entries
