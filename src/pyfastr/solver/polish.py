"""Joint Levenberg-Marquardt steps on all modes of many models.

Alternating updates crawl where the samples hardly outnumber the free parameters; a joint step
does not. Without ridge its fixed points are those of the alternating update without threshold.
With one they differ by less than the ridge: here the modes share a ridge, as they share the length
of W, and there each has its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.kernels import work_parts
from pyfastr.engines.parallel import map_threads, solve_vectors
from pyfastr.solver.models import Models, unit
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
    N, q = problem.n_samples, R * sum(problem.shape)
    parts = []
    for part in problem.engine.batches(K, 8.0 * (4 * min(N, q) * q + min(N, q) ** 2)):
        some = None if masks is None else [m[part] for m in masks]
        batch = _Batch(problem, models.take(part).astype(float), some)
        # Steps that are the same stay so: models may end once the last kind is reached.
        own = {id(step): step.of(part, K) for step in schedule}
        parts.append(batch.run([own[id(step)] for step in schedule], still, policy.polish))
    return Polished.concatenate(parts)


class _Linear(Protocol):
    """K linear problems at a point: residuals as functions of a step."""

    @property
    def rss(self) -> Array: ...

    @property
    def diagonal(self) -> Array: ...

    @property
    def moment(self) -> Array: ...

    def take(self, which: Array) -> "_Linear": ...

    def replaced(self, which: Array, new: Any) -> "_Linear": ...

    def rescaled(self, factors: Array) -> "_Linear": ...

    def solve(self, diagonal: Array, rhs: Array) -> Array: ...


@dataclass(frozen=True)
class _Equations:
    """Linear problems as normal equations.

    Attributes
    ----------
    gram : ndarray of shape (K, q, q)
        ``J'J`` of the Jacobian of the fitted values.
    moment : ndarray of shape (K, q)
        ``J'r`` of the residuals.
    rss : ndarray of shape (K,)
    """

    gram: Array
    moment: Array
    rss: Array

    @property
    def diagonal(self) -> Array:
        """Of the Gram matrices ``(K, q)``."""
        return np.einsum("kii->ki", self.gram)

    def take(self, which: Array) -> "_Equations":
        """Return some of the problems."""
        return _Equations(self.gram[which], self.moment[which], self.rss[which])

    def replaced(self, which: Array, new: "_Equations") -> "_Equations":
        """Return these with some of them replaced."""
        new.gram[~which] = self.gram[~which]
        return _Equations(
            new.gram,
            np.where(which[:, None], new.moment, self.moment),
            np.where(which, new.rss, self.rss),
        )

    def rescaled(self, factors: Array) -> "_Equations":
        """Return the problems of parameters ``(K, q)`` that are so many times as large."""

        def divide(part: slice) -> None:
            # In place: new memory would cost more than the division.
            own = factors[part]
            self.gram[part] /= own[:, :, None] * own[:, None, :]

        map_threads(divide, work_parts(self.gram))
        return _Equations(self.gram, self.moment / factors, self.rss)

    def solve(self, diagonal: Array, rhs: Array) -> Array:
        """Solve ``(J'J + D) x = rhs``."""
        entries = np.arange(rhs.shape[1])

        def solve(part: slice) -> Array:
            gram = self.gram[part].copy()
            gram[:, entries, entries] += diagonal[part]
            return solve_vectors(gram, rhs[part])

        return np.concatenate(map_threads(solve, work_parts(self.gram)))


@dataclass(frozen=True)
class _Samples:
    """Linear problems of fewer samples than entries, by their Jacobians.

    Attributes
    ----------
    J : ndarray of shape (K, n_samples, q)
    r : ndarray of shape (K, n_samples)
    """

    J: Array
    r: Array

    @property
    def rss(self) -> Array:
        """Sums of squared residuals."""
        return np.sum(self.r**2, axis=1)

    @property
    def diagonal(self) -> Array:
        """Of the Gram matrices ``(K, q)``."""
        return np.einsum("kni,kni->ki", self.J, self.J)

    @property
    def moment(self) -> Array:
        """Return ``J'r``."""
        return (self.r[:, None] @ self.J)[:, 0]

    def take(self, which: Array) -> "_Samples":
        """Return some of the problems."""
        return _Samples(self.J[which], self.r[which])

    def replaced(self, which: Array, new: "_Samples") -> "_Samples":
        """Return these with some of them replaced."""
        new.J[~which] = self.J[~which]
        return _Samples(new.J, np.where(which[:, None], new.r, self.r))

    def rescaled(self, factors: Array) -> "_Samples":
        """Return the problems of parameters ``(K, q)`` that are so many times as large."""
        return _Samples(self.J / factors[:, None], self.r)

    def solve(self, diagonal: Array, rhs: Array) -> Array:
        """Solve ``(J'J + D) x = rhs`` in the space of samples."""
        samples = np.arange(self.J.shape[1])

        def solve(part: slice) -> Array:
            J, D, b = self.J[part], diagonal[part], rhs[part]
            scaled = J / D[:, None, :]
            kernel = scaled @ J.transpose(0, 2, 1)
            kernel[:, samples, samples] += 1
            dual = solve_vectors(kernel, (scaled @ b[:, :, None])[..., 0])
            return b / D - (scaled.transpose(0, 2, 1) @ dual[:, :, None])[..., 0]

        return np.concatenate(map_threads(solve, work_parts(self.J)))


class _Batch:
    """Parameters of K models as rows ``theta``: the modes' components of balanced length."""

    def __init__(self, problem: Problem, models: Models, masks: list[Array] | None) -> None:
        self.problem, self.task = problem, models.task
        self.shapes = [c.shape[1:] for c in models.components]
        self.blocks = models.blocks()
        self.theta = models.flat()
        self.mask = None if masks is None else self._join(masks).astype(float)
        if self.mask is not None:
            self.theta = self.theta * self.mask

    def run(self, schedule: Sequence[Step], tol: float, policy: PolishPolicy) -> Polished:
        """Step, keep what lowers the objective, adapt the damping; who stands still leaves."""
        K = len(self.theta)
        ends = _Ends(np.empty_like(self.theta), np.empty(K), np.empty(K))
        rows, task = np.arange(K), self.task
        theta, damping = self.theta, np.full(K, policy.first_damping)
        linear = self._linearise(theta)
        for whole in schedule:
            now = whole.of(rows, K)
            penalty = self._penalty(theta, linear, now)
            step = self._step(linear, theta, penalty, damping)
            still = _still(step, theta, tol) & (whole is schedule[-1])
            if still.any():
                self._end(ends, rows[still], theta[still], linear.take(still), now.of(still))
                rows, theta, linear = rows[~still], theta[~still], linear.take(~still)
                step, penalty, damping = step[~still], penalty[~still], damping[~still]
                self._keep(~still)
                if not len(rows):
                    break
            trial = theta + step
            ahead = self._linearise(trial)
            better = _objective(ahead, trial, penalty) < _objective(linear, theta, penalty)
            theta = np.where(better[:, None], trial, theta)
            linear = linear.replaced(better, ahead)
            factor = np.where(better, policy.damping_after_success, policy.damping_after_failure)
            damping = np.clip(damping * factor, *policy.damping_range)
            theta, linear = self._balance(theta, linear)
        self._end(ends, rows, theta, linear, schedule[-1].of(rows, K))
        components, lengths = zip(*(unit(c) for c in self._split(ends.theta)), strict=True)
        models = Models(list(components), np.prod(lengths, axis=0), task)
        return Polished(models, ends.rss, ends.objective)

    def _keep(self, which: Array) -> None:
        """Go on with some of the models."""
        self.task = self.task[which]
        self.mask = None if self.mask is None else self.mask[which]

    def _end(self, ends: "_Ends", rows: Array, theta: Array, linear: _Linear, last: Step) -> None:
        """Note where models have ended."""
        penalty = self._penalty(theta, linear, Step(last.ridge, np.zeros(len(theta))))
        ends.theta[rows] = theta
        ends.rss[rows] = linear.rss
        # The modes share one penalty on W, counted once for each of them.
        total = np.sum(penalty * theta**2, axis=1)
        ends.objective[rows] = ends.rss[rows] + total / len(self.shapes)

    def _balance(self, theta: Array, linear: _Linear) -> tuple[Array, _Linear]:
        """Give the modes of each term one length, which leaves W as it is."""
        lengths = np.stack([np.linalg.norm(c, axis=2) for c in self._split(theta)])
        lengths = np.where(lengths.all(axis=0), lengths, 1)
        factors = np.exp(np.log(lengths).mean(axis=0)) / lengths
        each = [
            np.broadcast_to(f[..., None], (len(theta), *s))
            for f, s in zip(factors, self.shapes, strict=True)
        ]
        every = self._join(each)
        return theta * every, linear.rescaled(every)

    def _linearise(self, theta: Array) -> _Linear:
        """Return the linear problems at some parameters, intercept and covariates taken out."""
        components = self._split(theta)
        models = Models(components, np.ones((len(theta), self.shapes[0][0])), self.task)
        if theta.shape[1] > self.problem.n_samples:
            return self._by_samples(models, theta)
        found = self.problem.engine.joint_equations(models)
        gram, moment = found.gram, found.moment
        if self.mask is not None:
            gram *= self.mask[:, :, None] * self.mask[:, None, :]
            moment *= self.mask
        return _Equations(gram, moment, found.fits.rss)

    def _by_samples(self, models: Models, theta: Array) -> _Samples:
        J = self.problem.engine.project_all(models.components)
        fitted = (J[:, :, self.blocks[0]] @ theta[:, self.blocks[0], None])[..., 0]
        r = self.problem.samples.response_of(self.task) - fitted
        J, r = self.problem.whiten(J, r, self.task)
        return _Samples(J if self.mask is None else J * self.mask[:, None], r)

    def _penalty(self, theta: Array, linear: _Linear, now: Step) -> Array:
        """Diagonal of the quadratic that stands for ridge and sparsity at this point."""
        diagonal = linear.diagonal
        # One ridge for all modes: they share the length of W, and would pull it to and fro.
        means = np.mean([diagonal[:, b].mean(axis=1) for b in self.blocks], axis=0)
        penalty = np.repeat((means * now.ridge)[:, None], theta.shape[1], axis=1)
        if np.any(now.sparsity):
            size = np.mean(theta**2, axis=1, keepdims=True) + np.finfo(float).tiny
            weight = _column(now.sparsity) * diagonal.mean(axis=1, keepdims=True)
            penalty += weight / (theta**2 / size + now.width**2)
        return penalty

    def _step(self, linear: _Linear, theta: Array, penalty: Array, damping: Array) -> Array:
        """Solve the damped normal equations."""
        mean = linear.diagonal.mean(axis=1)
        damped = damping * np.where(mean > 0, mean, 1)
        step = linear.solve(penalty + damped[:, None], linear.moment - penalty * theta)
        return step if self.mask is None else step * self.mask

    def _join(self, components: list[Array]) -> Array:
        return np.concatenate([c.reshape(len(c), -1) for c in components], axis=1)

    def _split(self, theta: Array) -> list[Array]:
        return [theta[:, b].reshape(-1, *s) for b, s in zip(self.blocks, self.shapes, strict=True)]


@dataclass(frozen=True)
class _Ends:
    """Parameters, squared residuals and objective of every model, filled in as models end."""

    theta: Array
    rss: Array
    objective: Array


def _still(step: Array, theta: Array, tol: float) -> Array:
    """Tell which models would hardly move."""
    return np.linalg.norm(step, axis=1) <= tol * np.linalg.norm(theta, axis=1)


def _column(values: float | Array) -> Array:
    return np.asarray(values)[:, None]


def _objective(linear: _Linear, theta: Array, penalty: Array) -> Array:
    return linear.rss + np.sum(penalty * theta**2, axis=1)
