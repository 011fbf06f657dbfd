"""The road from a problem to one fitted model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.models import Models, unit
from pyfastr.solver.problem import Problem
from pyfastr.solver.rounds import Found, Starts, search
from pyfastr.solver.starts import SMALL_SAMPLE, Kind
from pyfastr.solver.support import hop, refit, thin
from pyfastr.solver.sweep import History, Order, features_of, run_sweeps
from pyfastr.solver.update import Penalty
from pyfastr.solver.vector import (
    elementary_ridge,
    fitted_vector,
    most_evident_vector,
    refit_vector,
)

Array = NDArray[Any]
RefitSupport = bool | Literal["evidence"]

# Candidates for the evidence where the best solution is not sure, of small and large samples.
MANY_CANDIDATES, FEW_CANDIDATES = 256, 8


@dataclass(frozen=True)
class Settings:
    """What a user asks of the solver; the meaning of each is told in `FasTRRegressor`."""

    threshold: float
    ridge: float
    n_terms: int = 1
    init: Kind | Sequence[Array] = "mixed"
    n_init: int | Literal["auto"] = "auto"
    order: Order = "cyclic"
    max_iter: int = 1000
    tol: float = 1e-3
    refit_support: RefitSupport = False


@dataclass(frozen=True)
class Solution:
    """One fitted model, in the units of the problem.

    Attributes
    ----------
    models : Models
        A batch of one.
    fitted : ndarray of shape (n_samples,)
        ``<W, X_i>``, intercept and covariates left out.
    history : History
    converged : bool
    starts : Starts
    """

    models: Models
    fitted: Array
    history: History
    converged: bool
    starts: Starts


def solve(
    problem: Problem,
    settings: Settings,
    rng: np.random.Generator,
    report: Callable[[Starts], None] = lambda starts: None,
) -> Solution:
    """Search for the best start, sweep to a fixed point of the update, refit if asked to."""
    if not problem.response.any():
        return _nothing_to_fit(problem, settings)
    if len(problem.shape) == 1:
        return _solve_vector(problem, settings)
    found = _search(problem, settings, rng, report)
    models, history, converged = run_sweeps(
        problem,
        found.solutions.take(slice(0, 1)),
        Penalty(settings.ridge, settings.threshold),
        order=settings.order,
        max_iter=settings.max_iter,
        tol=settings.tol,
    )
    if settings.refit_support == "evidence":
        models = _most_evident(problem, found, models, settings.ridge, rng)
    elif settings.refit_support:
        models = refit(problem, models).models
    return Solution(
        models, fitted_values(problem, models), history, bool(converged[0]), found.starts
    )


def fitted_values(problem: Problem, models: Models) -> Array:
    """``<W, X_i>`` of the first model."""
    last = len(models.components) - 1
    features = features_of(problem.projector.project(models.components, last), float)[0]
    weights = models.components[last][0] * models.scales[0][:, None]
    return features @ weights.reshape(-1)


def _search(
    problem: Problem,
    settings: Settings,
    rng: np.random.Generator,
    report: Callable[[Starts], None],
) -> Found:
    """Search for the best solution; the user's own start is the only one."""
    if isinstance(settings.init, str):
        return search(
            problem,
            settings.n_terms,
            kind=settings.init,
            n_init=settings.n_init,
            ridge=settings.ridge,
            rng=rng,
            report=report,
        )[0]
    components = [unit(np.asarray(a, float).T[None])[0] for a in settings.init]
    models = Models(components, np.ones((1, settings.n_terms)))
    return Found(models, models, Starts(1, 1, 1, np.inf, False, 0))


def _most_evident(
    problem: Problem, found: Found, best: Models, ridge: float, rng: np.random.Generator
) -> Models:
    """Choose a support by its evidence: of the best model if there is no doubt, else of several.

    With about as many free parameters as samples, polished solutions all fit the data and have
    lost what the annealing knew, so small samples go on from there.
    """
    if found.starts.sure or not found.starts.n_rounds:
        return thin(problem, best, ridge).best()
    if np.prod(problem.shape) <= SMALL_SAMPLE:
        return hop(problem, found.survivors.take(slice(0, MANY_CANDIDATES)), ridge, rng).best()
    return thin(problem, found.solutions.take(slice(0, FEW_CANDIDATES)), ridge).best()


def _solve_vector(problem: Problem, settings: Settings) -> Solution:
    """Fit vectors in closed form: one convex problem, one update."""
    models = elementary_ridge(problem, settings.ridge, settings.threshold)
    if settings.refit_support == "evidence":
        models = most_evident_vector(problem, settings.ridge)
    elif settings.refit_support:
        models = refit_vector(problem, models)
    fitted = fitted_vector(problem, models)
    loss = problem.loss(fitted[None], models.task)
    history = History([loss], [np.zeros(1)])
    return Solution(models, fitted, history, True, Starts(1, 1, 1, np.inf, True, 0))


def _nothing_to_fit(problem: Problem, settings: Settings) -> Solution:
    """Return the zero coefficient: intercept and covariates explain the response."""
    R = settings.n_terms
    models = Models([np.zeros((1, R, p)) for p in problem.shape], np.zeros((1, R)))
    history = History([np.zeros(1)], [np.zeros(1)])
    fitted = np.zeros(problem.n_samples)
    return Solution(models, fitted, history, True, Starts(0, 0, 0, np.inf, True, 0))
