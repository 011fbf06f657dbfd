"""Joint Levenberg-Marquardt steps on all modes of many models.

Alternating updates crawl where the samples hardly outnumber the free parameters; a joint step
does not. Without ridge its fixed points are those of the alternating update without threshold.
With one they differ by less than the ridge: here the modes share a ridge, as they share the length
of W, and there each has its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.parallel import limited_blas
from pyfastr.solver.journal import State, remembered, steps
from pyfastr.solver.linear import Linear, LinearEquations, LinearSamples
from pyfastr.solver.models import Models, put, unit
from pyfastr.solver.policy import PolishPolicy, SearchPolicy
from pyfastr.solver.problem import Problem

Array = NDArray[Any]


@dataclass
class Polished:
    """Models after polishing.

    Attributes
    ----------
    models : Models
    rss : ndarray of shape (K,)
        Sum of squared weighted residuals, in units of the scaled response.
    objective : ndarray of shape (K,)
        `rss` and the ridge penalty.
    """

    models: Models
    rss: Array
    objective: Array

    def take(self, which: Array) -> "Polished":
        """Return some of the models."""
        return Polished(self.models.take(which), self.rss[which], self.objective[which])

    def put(self, which: Array, new: "Polished") -> "Polished":
        """Return these with some of them replaced."""
        rss, objective = self.rss.copy(), self.objective.copy()
        rss[which], objective[which] = new.rss, new.objective
        return Polished(put(self.models, which, new.models), rss, objective)

    @staticmethod
    def concatenate(parts: "list[Polished]") -> "Polished":
        """Join batches."""
        return Polished(
            Models.concatenate([p.models for p in parts]),
            np.concatenate([p.rss for p in parts]),
            np.concatenate([p.objective for p in parts]),
        )


@dataclass(frozen=True)
class Step:
    """What one step is penalised by, for all models or for each.

    Attributes
    ----------
    ridge : float or ndarray of shape (K,)
        Relative to the mean diagonal of J'J, averaged over the modes.
    sparsity : float or ndarray of shape (K,)
        Weight of ``sum log((w / rms)^2 + width^2)``, by reweighted ridge, relative to the mean
        diagonal of J'J.
    width : float
        Of no account without sparsity.
    """

    ridge: float | Array
    sparsity: float | Array = 0.0
    width: float = 1.0

    def of(self, part: slice | Array, n_models: int | None = None) -> "Step":
        """Return the step of some of so many models, as arrays."""
        values = (np.asarray(value, float) for value in (self.ridge, self.sparsity))
        if n_models is not None:
            values = (np.broadcast_to(value, n_models) for value in values)
        ridge, sparsity = (value[part] for value in values)
        return Step(ridge, sparsity, self.width)


@limited_blas()
def polish(
    problem: Problem,
    models: Models,
    schedule: Sequence[Step],
    policy: SearchPolicy,
    masks: list[Array] | None = None,
    still: float | None = None,
) -> Polished:
    """Take damped Gauss-Newton steps on the concatenated components of every model.

    Parameters
    ----------
    problem : Problem
    models : Models
    schedule : sequence of Step
        One for each step; the last one's ridge counts in the objective.
    policy : SearchPolicy
    masks : list of M arrays (K, R, p_m) of bool, optional
        Entries outside stay zero.
    still : float, optional
        A model whose step is this share of its parameters has ended; the policy's by default.
    """
    still = policy.polish.still if still is None else still
    K, R = models.scales.shape
    own_modes = problem.ties.own(len(problem.shape))
    N, q = problem.n_samples, R * sum(problem.shape[m] for m in own_modes)
    parts = []
    for part in problem.engine.batches(K, 8.0 * (4 * min(N, q) * q + min(N, q) ** 2)):
        some = None if masks is None else [m[part] for m in masks]
        batch = _Batch(problem, models.take(part).astype(float), some, policy.polish)
        # Steps that are the same stay so: models may end once the last kind is reached.
        own = {id(step): step.of(part, K) for step in schedule}
        parts.append(batch.run([own[id(step)] for step in schedule], still))
    return Polished.concatenate(parts)


class _Batch(State):
    """Parameters of K models as rows ``theta``: the modes' components of balanced length.

    Tied modes have their entries in common. With c modes to an entry, the Jacobian of the fitted
    values is c times that of one mode, and penalties count c times.
    """

    def __init__(
        self, problem: Problem, models: Models, masks: list[Array] | None, policy: PolishPolicy
    ) -> None:
        self.problem, self.policy, self.task = problem, policy, models.task
        self.ties = problem.ties
        self.shapes = [c.shape[1:] for c in models.components]
        self.own = self.ties.own(len(self.shapes))
        self.blocks, self.shares = self._layout()
        self.signs = self.ties.signs(models)
        self.theta = self._join(models.balanced())
        self.mask = None if masks is None else self._join(masks).astype(float)
        if self.mask is not None:
            self.theta = self.theta * self.mask
        K = len(models)
        self.rows, self.damping = np.arange(K), np.full(K, policy.first_damping)
        self.linear: Linear | None = None
        self.ends = _Ends(np.zeros_like(self.theta), np.zeros(K), np.zeros(K))

    def memory(self) -> dict[str, Any]:
        """Return what the steps change."""
        changed = ("theta", "rows", "task", "signs", "mask", "damping", "linear", "ends")
        return {name: getattr(self, name) for name in changed}

    def run(self, schedule: Sequence[Step], tol: float) -> Polished:
        """Take the steps; who stands still at the last kind of them leaves."""
        task, signs, K = self.task, self.signs, len(self.rows)
        for number in steps(
            "polish", len(schedule), self, self.problem.engine, over=lambda: not len(self.rows)
        ):
            now = schedule[number].of(self.rows, K)
            self._move(now, tol if schedule[number] is schedule[-1] else None)
            if number == len(schedule) - 1:
                self._end(np.ones(len(self.rows), bool), schedule[-1].of(self.rows, K))
        parts = self._split(self.ends.theta, signs)
        components, lengths = zip(*(unit(c) for c in parts), strict=True)
        models = Models(list(components), np.prod(lengths, axis=0), task)
        return Polished(models, self.ends.rss, self.ends.objective)

    def _move(self, now: Step, tol: float | None) -> None:
        """Step, keep what lowers the objective, adapt the damping; given `tol` models may end."""
        linear = self._linearise(self.theta) if self.linear is None else self.linear
        self.linear = linear
        penalty = self._penalty(self.theta, linear, now)
        step = self._step(linear, self.theta, penalty, self.damping)
        too_long = _too_long(step, self.theta, self.policy.longest)
        # Not to move is to fail: the damping rises.
        step = np.where(too_long[:, None], 0, step)
        if tol is not None:
            still = _still(step, self.theta, tol) & ~too_long
            self._end(still, now)
            step, penalty, linear = step[~still], penalty[~still], self.linear
        if not len(step):
            return
        theta, trial = self.theta, self.theta + step
        ahead = self._linearise(trial)
        better = _objective(ahead, trial, penalty) < _objective(linear, theta, penalty)
        theta = np.where(better[:, None], trial, theta)
        self.linear = linear = linear.replaced(better, ahead)
        own = self.policy
        factor = np.where(better, own.damping_after_success, own.damping_after_failure)
        self.damping = np.clip(self.damping * factor, *own.damping_range)
        self.theta, self.linear = self._balance(theta, linear)

    def _end(self, which: Array, last: Step) -> None:
        """Note where some models have ended, and go on with the others."""
        if self.linear is None or not which.any():
            return
        rows, theta = self.rows[which], self.theta[which]
        linear = self.linear if which.all() else self.linear.take(which)
        ridge = last.of(which).ridge
        penalty = self._penalty(theta, linear, Step(ridge, np.zeros(len(theta))))
        # The modes share one penalty on W, counted once for each of them.
        total = np.sum(penalty * theta**2, axis=1) / len(self.shapes)
        self.ends = self.ends.put(rows, _Ends(theta, linear.rss, linear.rss + total))
        self.rows, self.task = self.rows[~which], self.task[~which]
        self.signs = self.signs[~which]
        self.theta, self.damping = self.theta[~which], self.damping[~which]
        self.linear = self.linear.take(~which)
        self.mask = None if self.mask is None else self.mask[~which]

    def _balance(self, theta: Array, linear: Linear) -> tuple[Array, Linear]:
        """Give the modes of each term one length, which leaves W as it is."""
        parts = self._split(theta, self.signs)
        lengths = np.stack([np.linalg.norm(c, axis=2) for c in parts])
        lengths = np.where(lengths.all(axis=0), lengths, 1)
        factors = np.exp(np.log(lengths).mean(axis=0)) / lengths
        each = [
            np.broadcast_to(f[..., None], (len(theta), *s))
            for f, s in zip(factors, self.shapes, strict=True)
        ]
        every = self._join(each)
        return theta * every, linear.rescaled(every)

    def _linearise(self, theta: Array) -> Linear:
        """Return the linear problems at some parameters, intercept and covariates taken out."""
        components = self._split(theta, self.signs)
        models = Models(components, np.ones((len(theta), self.shapes[0][0])), self.task)
        if theta.shape[1] > self.problem.n_samples:
            return self._by_samples(models, theta)
        found = self.problem.engine.joint_equations(models, self.own)
        gram, moment = found.gram, found.moment
        if self.ties:
            gram *= self.shares[:, None] * self.shares
            moment *= self.shares
        if self.mask is not None:
            gram *= self.mask[:, :, None] * self.mask[:, None, :]
            moment *= self.mask
        return LinearEquations(gram, moment, found.fits.rss)

    def _by_samples(self, models: Models, theta: Array) -> LinearSamples:
        J = self.problem.engine.project_all(models.components, self.own)
        fitted = (J[:, :, self.blocks[0]] @ theta[:, self.blocks[0], None])[..., 0]
        r = self.problem.samples.response_of(self.task) - fitted
        J, r = self.problem.whiten(J, r, self.task)
        J = J * self.shares if self.ties else J
        return LinearSamples(J if self.mask is None else J * self.mask[:, None], r)

    def _penalty(self, theta: Array, linear: Linear, now: Step) -> Array:
        """Diagonal of the quadratic that stands for ridge and sparsity at this point."""
        diagonal = linear.diagonal / self.shares**2 if self.ties else linear.diagonal
        # One ridge for all modes: they share the length of W, and would pull it to and fro.
        means = np.mean([diagonal[:, b].mean(axis=1) for b in self.blocks], axis=0)
        penalty = np.repeat((means * now.ridge)[:, None], theta.shape[1], axis=1)
        if np.any(now.sparsity):
            size = np.mean(theta**2, axis=1, keepdims=True) + np.finfo(float).tiny
            weight = _column(now.sparsity) * diagonal.mean(axis=1, keepdims=True)
            penalty += weight / (theta**2 / size + now.width**2)
        return penalty * self.shares if self.ties else penalty

    def _step(self, linear: Linear, theta: Array, penalty: Array, damping: Array) -> Array:
        """Solve the damped normal equations."""
        mean = linear.diagonal.mean(axis=1)
        damped = damping * np.where(mean > 0, mean, 1)
        step = linear.solve(penalty + damped[:, None], linear.moment - penalty * theta)
        return step if self.mask is None else step * self.mask

    def _layout(self) -> tuple[list[slice], Array]:
        """Return where each mode's entries stand, and how many modes have each entry."""
        sizes = [prod(self.shapes[m]) for m in self.own]
        ends = np.cumsum(sizes).tolist()
        at = {m: slice(end - n, end) for m, end, n in zip(self.own, ends, sizes, strict=True)}
        shares = np.repeat([float(self.ties.multiplicity(m)) for m in self.own], sizes)
        return [at[self.ties.source(m)] for m in range(len(self.shapes))], shares

    def _join(self, components: list[Array]) -> Array:
        return np.concatenate([components[m].reshape(len(components[m]), -1) for m in self.own], 1)

    def _split(self, theta: Array, signs: Array) -> list[Array]:
        pairs = zip(self.blocks, self.shapes, strict=True)
        components = [theta[:, block].reshape(-1, *shape) for block, shape in pairs]
        if self.ties.modes is not None:
            second = self.ties.modes[1]
            components[second] = components[second] * signs[..., None]
        return components


@remembered
@dataclass(frozen=True)
class _Ends:
    """Parameters, squared residuals and objective of every model, filled in as models end."""

    theta: Array
    rss: Array
    objective: Array

    def put(self, rows: Array, new: "_Ends") -> "_Ends":
        """Return these with some of them replaced."""
        filled = _Ends(self.theta.copy(), self.rss.copy(), self.objective.copy())
        filled.theta[rows], filled.rss[rows], filled.objective[rows] = (
            new.theta,
            new.rss,
            new.objective,
        )
        return filled


def _still(step: Array, theta: Array, tol: float) -> Array:
    """Tell which models would hardly move."""
    return np.linalg.norm(step, axis=1) <= tol * np.linalg.norm(theta, axis=1)


def _too_long(step: Array, theta: Array, longest: float) -> Array:
    """Tell which steps are out of all proportion: those of models that a huge ridge wiped out."""
    return np.abs(step).max(axis=1) > longest * np.maximum(np.abs(theta).max(axis=1), 1)


def _column(values: float | Array) -> Array:
    return np.asarray(values)[:, None]


def _objective(linear: Linear, theta: Array, penalty: Array) -> Array:
    return linear.rss + np.sum(penalty * theta**2, axis=1)
