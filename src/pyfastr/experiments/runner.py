"""Do the fits of a plan that are not known yet, alone or beside other processes."""

import time
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from math import isfinite
from typing import Any, Protocol

from pyfastr.baselines.l1_path import has_celer
from pyfastr.experiments.claims import Claims
from pyfastr.experiments.environment import environment, environment_name
from pyfastr.experiments.isolation import run_isolated
from pyfastr.experiments.methods import Method
from pyfastr.experiments.plan import Plan, Unit
from pyfastr.experiments.problems import Problem, TrialData
from pyfastr.experiments.store import Result, Store


class Watcher(Protocol):
    """Who is told how a run goes."""

    def progress(self, n_answered: int, n_fits: int) -> None:
        """Hear how far it is, the work of other processes included."""

    def doing(self, unit: Unit, what: str) -> None:
        """Hear what is done now."""

    def tick(self) -> None:
        """Hear that time passes."""

    def found(self, unit: Unit, result: Result) -> None:
        """Hear of a result of this process."""


def run(plan: Plan, store: Store, claims: Claims, watcher: Watcher) -> None:
    """Fit until every answer of a plan is known.

    Parameters
    ----------
    plan : Plan
    store : Store
        What it knows is not repeated.
    claims : Claims
        Trials that another process has claimed are left to it.
    watcher : Watcher
    """
    _import_before_the_clock_runs()
    runner = _Runner(plan, store, watcher)
    claimed_by_others = []
    for unit in runner.open_units():
        with claims.claim(unit.name) as mine:
            if mine:
                runner.run_unit(unit)
            else:
                claimed_by_others.append(unit)
    for unit in claimed_by_others:
        # The other process has done the trial, or has ended before it could.
        watcher.doing(unit, "waiting for another process")
        with claims.claim(unit.name, wait=True):
            runner.run_unit(unit)


def _import_before_the_clock_runs() -> None:
    """Import what fits import late: every fork would import it again, as a part of its time."""
    if has_celer():
        import_module("celer")


class _Runner:
    """The fits of one process."""

    def __init__(self, plan: Plan, store: Store, watcher: Watcher) -> None:
        self._facts = environment()
        self._environment = environment_name(self._facts)
        self._plan, self._store, self._watcher = plan, store, watcher

    def open_units(self) -> list[Unit]:
        """Return the trials with methods whose answer is not known."""
        known = self._store.results()
        self._watcher.progress(*self._plan.count(known))
        return [unit for unit in self._plan.units if self._plan.missing(unit, known)]

    def run_unit(self, unit: Unit) -> None:
        """Fit what is missing in one trial."""
        known = self._store.results()
        self._watcher.progress(*self._plan.count(known))
        hopeful = []
        for method in self._plan.missing(unit, known):
            if reason := self._plan.why_hopeless(unit, method, known):
                self._keep(unit, method, status="skipped", seconds=0.0, reason=reason)
            else:
                hopeful.append(method)
        if hopeful:
            self._fit_all(unit, hopeful)
            self._watcher.progress(*self._plan.count(self._store.results()))

    def _fit_all(self, unit: Unit, methods: Sequence[Method]) -> None:
        """Draw the samples once, and fit every method to them in a process of its own."""
        self._watcher.doing(unit, "drawing samples")
        try:
            data = unit.problem.draw(unit.trial)
        except Exception as error:
            reason = f"no samples: {type(error).__name__}: {error}"
            for method in methods:
                self._keep(unit, method, status="failed", seconds=0.0, reason=reason)
            return
        for method in methods:
            self._watcher.doing(unit, method.title)
            task = partial(fit_and_score, unit.problem, method, data)
            outcome = run_isolated(task, self._plan.budget_of(unit.problem), self._watcher.tick)
            self._keep(
                unit,
                method,
                status=outcome.status,
                # A task that has an end knows the time of its fit alone.
                seconds=outcome.value.pop("seconds", outcome.seconds),
                reason=outcome.reason,
                dtype=str(data.X.dtype),
                **outcome.value,
            )

    def _keep(self, unit: Unit, method: Method, **outcome: Any) -> None:
        """Write a result down and tell of it."""
        result = Result(
            experiment=unit.experiment,
            problem=unit.problem.key,
            trial=unit.trial,
            method=method.key,
            budget=self._plan.budget_of(unit.problem),
            environment=self._environment,
            **outcome,
        )
        self._store.add_environment(self._environment, self._facts)
        self._store.add(result)
        self._watcher.found(unit, result)


def fit_and_score(problem: Problem, method: Method, data: TrialData) -> dict[str, Any]:
    """Fit a method, tuning included, and measure it.

    Parameters
    ----------
    problem : Problem
    method : Method
    data : TrialData

    Returns
    -------
    dict
        ``seconds`` of the fit, ``metrics`` and the ``params`` that were chosen.
    """
    model = method.make(data)
    begin = time.perf_counter()
    model.fit(data.X, data.y)
    seconds = time.perf_counter() - begin
    metrics = problem.score(model, data)
    if not all(map(isfinite, metrics.values())):
        raise ValueError(f"the fit is not finite: {metrics}")
    return {"seconds": seconds, "metrics": metrics, "params": _chosen(model)}


def _chosen(model: Any) -> dict[str, Any]:
    """Return what a fitted model tells of its choice."""
    if hasattr(model, "best_params_"):
        return {**model.best_params_, **_named(model, "criterion")}
    return {**_named(model, "alpha_"), **_named(model, "l1_ratio_")}


def _named(model: Any, attribute: str) -> dict[str, Any]:
    """Return an attribute under its name, if there is one."""
    found = hasattr(model, attribute)
    return {attribute.rstrip("_"): getattr(model, attribute)} if found else {}
