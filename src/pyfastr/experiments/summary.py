"""Results of all trials in one number or one word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from pyfastr.experiments.methods import ORACLE, OURS, Method
from pyfastr.experiments.plan import Plan
from pyfastr.experiments.problems import Problem
from pyfastr.experiments.store import Key, Result

# A method with a larger error of the coefficient has not found it, however fast it was.
USEFUL_CE = 0.5


@dataclass(frozen=True)
class Outcomes:
    """The results of one method on one problem, one for every trial."""

    results: Sequence[Result]

    def values(self, metric: str) -> list[float]:
        """Return a metric, or the seconds, of all trials that have one.

        Parameters
        ----------
        metric : str
            Of the problem, or "seconds".

        Returns
        -------
        list of float
        """
        done = [result for result in self.results if result.status == "ok"]
        return [r.seconds if metric == "seconds" else r.metrics[metric] for r in done]

    @property
    def is_complete(self) -> bool:
        """Whether every trial came to an end."""
        return bool(self.results) and all(result.status == "ok" for result in self.results)

    def mean(self, metric: str) -> float | None:
        """Average a metric over the trials that have one.

        Parameters
        ----------
        metric : str

        Returns
        -------
        float or None
            None if there is no such trial.
        """
        values = self.values(metric)
        return mean(values) if values else None

    def cell(self, metric: str) -> str:
        """Write the mean, or why there is none.

        Parameters
        ----------
        metric : str

        Returns
        -------
        str
            With the share of the trials behind the mean, if not all.
        """
        value = self.mean(metric)
        if value is None:
            return self._why_none()
        share = "" if self.is_complete else f" ({len(self.values(metric))}/{len(self.results)})"
        return format_number(value) + share

    def _why_none(self) -> str:
        ended = [result for result in self.results if result.status == "timeout"]
        if ended:
            return f"> {max(result.budget for result in ended):g} s"
        statuses = {result.status for result in self.results}
        return "failed" if "failed" in statuses else "skipped" if statuses else "–"


class Summary:
    """The results of a plan.

    Parameters
    ----------
    plan : Plan
    known : mapping of Result
    """

    def __init__(self, plan: Plan, known: Mapping[Key, Result]) -> None:
        self.plan = plan
        self._known = known

    def of(self, problem: Problem, method: Method) -> Outcomes:
        """Return the results of a method on a problem.

        Parameters
        ----------
        problem : Problem
        method : Method

        Returns
        -------
        Outcomes
        """
        keys = [(problem.key, trial, method.key) for trial in range(self.plan.n_trials)]
        return Outcomes([self._known[key] for key in keys if key in self._known])

    def means(self, problem: Problem, metric: str) -> dict[str, float]:
        """Return the means of a metric by method, of those that came to an end in every trial.

        Means over different trials are not comparable: some samples are easier than others.

        Parameters
        ----------
        problem : Problem
        metric : str

        Returns
        -------
        dict of float
            By key of the method; the oracle is not among them.
        """
        found = {m.key: self.of(problem, m) for m in self.plan.methods}
        return {key: mean(o.values(metric)) for key, o in found.items() if o.is_complete}

    def fastest(self, problem: Problem) -> Method | None:
        """Return the fastest of the methods that found the coefficient in every trial.

        Parameters
        ----------
        problem : Problem

        Returns
        -------
        Method or None
            None if there is none.
        """
        errors, seconds = self.means(problem, "ce"), self.means(problem, "seconds")
        useful = [m for m in self.plan.methods if errors.get(m.key, USEFUL_CE) < USEFUL_CE]
        return min(useful, key=lambda method: seconds[method.key], default=None)

    def without_metrics(self) -> list[tuple[Problem, Method, Result]]:
        """Return the first result of each kind without metrics, for every problem and method.

        Returns
        -------
        list of (Problem, Method, Result)
        """
        found = []
        for problem in {unit.problem.key: unit.problem for unit in self.plan.units}.values():
            for method in (*self.plan.methods, ORACLE):
                first: dict[str, Result] = {}
                for result in self.of(problem, method).results:
                    if result.status != "ok":
                        first.setdefault(result.status, result)
                found += [(problem, method, result) for result in first.values()]
        return found

    @property
    def ours(self) -> Method | None:
        """The method of this library, if it is in the plan."""
        return next((m for m in self.plan.methods if m.key == OURS), None)


def format_number(value: float) -> str:
    """Write a number with two to four digits that count.

    Parameters
    ----------
    value : float

    Returns
    -------
    str

    Examples
    --------
    >>> from pyfastr.experiments.summary import format_number
    >>> [format_number(value) for value in (8.13e-5, 0.00412, 0.1234, 5.678, 91.23, 30912.4)]
    ['8.1e-05', '0.0041', '0.123', '5.68', '91.2', '30912']
    """
    if 0 < abs(value) < 0.001:
        return f"{value:.1e}"
    for limit, digits in ((0.1, 4), (1.0, 3), (10.0, 2), (1000.0, 1)):
        if abs(value) < limit:
            return f"{value:.{digits}f}"
    return f"{value:.0f}"
