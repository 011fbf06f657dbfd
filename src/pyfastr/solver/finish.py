"""From starts to fixed points of the update, and to refitted supports."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.problem import Problem
from pyfastr.solver.proposals import sparse_starts
from pyfastr.solver.settings import Settings
from pyfastr.solver.support import refit
from pyfastr.solver.sweep import History, run_sweeps
from pyfastr.solver.tangent import foresee
from pyfastr.solver.vector import refit_vectors, shrunk

Array = NDArray[Any]


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
class Finished(Solution):
    """Models in the order of their starts, and what the sweeps of each began from."""

    begun_from: Models

    def take(self, which: Array) -> "Finished":
        """Return some of them."""
        return Finished(
            self.models.take(which),
            self.fitted[which],
            self.history.take(which),
            self.converged[which],
            self.begun_from.take(which),
        )


def finish(
    problem: Problem,
    starts: Models,
    penalty: Penalty,
    settings: Settings,
    apart: Array,
    *,
    keep_losses: bool,
) -> Finished:
    """Sweep from starts to fixed points of the update, and refit their supports if asked to.

    `apart` says of every task whether its starts stand apart from all others. The losses of last
    sweeps take a pass over X before a refit, and are in the history if they are to be kept.
    """
    if len(problem.shape) == 1 and problem.loss.is_quadratic:
        # One convex problem whose solutions the starts are: one update.
        models = shrunk(starts, penalty)
        if settings.refit_support is True:
            models = refit_vectors(problem, models, penalty.ridge)
        rest, converged = np.zeros(len(models)), np.ones(len(models), bool)
        swept = _Swept(starts, models, History([rest.copy()], [rest]), converged)
    else:
        swept = _swept(problem, starts, penalty, settings, apart, keep_losses=keep_losses)
    models, history = swept.models, swept.history
    fitted = problem.engine.fitted(models)
    if keep_losses and not swept.has_last_losses:
        history.end(problem.losses_of(fitted, models.task))
    return Finished(models, fitted, history, swept.converged, swept.begun_from)


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
    apart: Array,
    *,
    keep_losses: bool,
) -> _Swept:
    """Sweep from starts, and from sparse ones where these may be better, and refit."""
    policy, max_iter = settings.policy, settings.max_iter
    second = _needs_sparse_start(problem, starts, penalty, settings, apart)
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
    problem: Problem, starts: Models, penalty: Penalty, settings: Settings, apart: Array
) -> Array:
    """Which models of a high threshold may be better off with a sparse start."""
    wanted = settings.may_start_sparse and isinstance(settings.init, str)
    if not wanted or settings.n_terms > 1 or len(problem.shape) == 1:
        return np.empty(0, int)
    threshold = np.broadcast_to(penalty.threshold, len(starts))
    high = threshold >= settings.policy.proposals.sparse_start_from
    return np.flatnonzero(high & ~apart[starts.task])


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
