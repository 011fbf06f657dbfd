"""The one door to X: verbs whose answers are small, whatever X is and wherever it lives."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import ceil, prod
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pyfastr.config import MemoryBudget, current_budget
from pyfastr.engines import kernels
from pyfastr.engines.centre import Centre
from pyfastr.engines.draws import Draw
from pyfastr.engines.equations import Equations, Fits, Unfinished
from pyfastr.engines.features import Features
from pyfastr.engines.flat import FlatSamples
from pyfastr.engines.kernels import Stated
from pyfastr.engines.plan import (
    Kept,
    Plan,
    Rows,
    plan_from_kept,
    plan_of_kept,
    plan_to,
    plan_to_all,
    plan_to_keep,
)
from pyfastr.engines.samples import Samples

Array = NDArray[Any]
# What is made of a block, and of arrays with a column for each of its samples.
Kernel = Callable[..., Any]


class Coefficients(Protocol):
    """K models: components of R terms, scales ``(K, R)``, and the task of each."""

    @property
    def components(self) -> Sequence[Array]: ...

    @property
    def scales(self) -> Array: ...

    @property
    def task(self) -> Array: ...


class Engine(FlatSamples, ABC):
    """X in blocks of samples, with responses, weights and nuisance bound to them.

    A verb applies a pure kernel to every block, where the block is, and adds the small results.
    Another place for X to live is a subclass with the abstract methods that do this.

    Parameters
    ----------
    shape : tuple of int
        ``(n_samples, p1, ..., pM)``.
    dtype : numpy.dtype
        float32 or float64, of the blocks.
    samples : Samples
    scale : float
        Everything is made of ``X / scale``.
    centre : Centre, optional
        What is known of means of X already.

    Attributes
    ----------
    passes : float
        How many times X was read so far.
    budget : MemoryBudget
        In force when the engine was made.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        samples: Samples | None = None,
        scale: float = 1.0,
        centre: Centre | None = None,
    ) -> None:
        self.n_samples, self.shape, self.dtype = shape[0], tuple(shape[1:]), dtype
        self.samples = Samples.alone(self.n_samples) if samples is None else samples
        self.scale, self.passes = scale, 0.0
        self.budget: MemoryBudget = current_budget()
        self.n_bytes = prod(shape) * dtype.itemsize
        self._centre = Centre() if centre is None else centre
        self._kept: Kept | None = None

    # What a place for X has to offer.

    @abstractmethod
    def _total(
        self, kernel: Kernel, *, kept: Any = None, along: Sequence[Array] = (), wide: int = 0
    ) -> tuple[Array, ...]:
        """Add what a kernel makes of every block.

        Parameters
        ----------
        kernel : callable
            Given a `features.Block`, returns a tuple of arrays.
        kept : optional
            What `_keep` returned, to be worked on instead of X.
        along : sequence of ndarray of shape (K, n_samples)
            Further arguments of the kernel, which is given its samples' columns.
        wide : int
            If positive, the results are so many times as large as a sample, and larger blocks pay.
        """

    @abstractmethod
    def _keep(self, kernel: Kernel, *, kept: Any = None) -> Any:
        """Apply a kernel to every block and leave the results where the blocks are."""

    @abstractmethod
    def _collect(self, kernel: Kernel, *, kept: Any = None) -> Array:
        """Return what a kernel makes of every block, ``(K, n, ...)``, joined along the samples."""

    @abstractmethod
    def bind(self, samples: Samples, scale: float) -> Self:
        """Return an engine of the same X with other responses, weights and nuisance."""

    @abstractmethod
    def subset(self, which: Array, samples: Samples) -> "Engine":
        """Return an engine of some samples, by ascending number, and what belongs to them."""

    def nearby(self) -> "Engine":
        """Return the same in this process, if X is small and elsewhere: searches ask much of it."""
        return self

    @abstractmethod
    def rounded(self) -> "Engine":
        """Return the same with X in float32."""

    # What the solver asks.

    def mode_equations(
        self, models: Coefficients, mode: int, draw: Draw | None = None, *, judged: bool = False
    ) -> Equations:
        """Return the normal equations of one mode's update.

        If the models are to be judged, the equations come with how well these fit.
        """
        vectors = _vectors(models, mode) if judged else None
        plan, kept = self._serve(self._rows(models.components), mode)
        features = Features(plan, (mode,), models.scales.dtype)
        return self._equations(features, Stated(models.task, draw, vectors), kept)

    def joint_equations(
        self, models: Coefficients, modes: Sequence[int] | None = None
    ) -> Equations:
        """Return those of a joint step of all modes, whose moments are of the residuals.

        Or of several modes with the first among them. One pass over X.
        """
        self._kept = None
        modes = tuple(range(len(self.shape)) if modes is None else modes)
        plan = plan_to_all(self._rows(models.components), modes)
        vectors = np.zeros((len(models.task), sum(models.components[m][0].size for m in modes)))
        vectors[:, : models.components[0][0].size] = _vectors(models, 0)
        stated = Stated(models.task, None, vectors, of_residuals=True)
        return self._equations(Features(plan, modes, np.dtype(float)), stated, None)

    def losses(self, models: Coefficients) -> Fits:
        """Return how well models fit the response."""
        last = len(self.shape) - 1
        plan, kept = self._serve(self._rows(models.components), last)
        features = Features(plan, (last,), models.scales.dtype)
        stated = Stated(models.task, None, _vectors(models, last))
        left = self._left(features, stated, kept)
        is_doubtful = Fits.are_doubtful(left)
        if is_doubtful.any() and self._shift(models.task[is_doubtful]):
            left = self._left(features, stated, kept)
        return Fits.of(left, self.samples, models.task)

    def _left(self, features: Features, stated: Stated, kept: Any) -> Array:
        """Sum residuals over all blocks."""
        shifted = self._shifted(features, stated.task)
        kernel = partial(kernels.losses, features=shifted, stated=stated)
        (left,) = self._total(kernel, kept=kept)
        return left

    def fitted(self, models: Coefficients) -> Array:
        """Return fitted values ``(K, n_samples)``, intercept and covariates left out."""
        last, n_terms = len(self.shape) - 1, models.scales.shape[1]
        parts = []
        for part in self.batches(len(models.task), 16.0 * self.n_samples * n_terms):
            components = [c[part] for c in models.components]
            plan, kept = self._serve(self._rows(components), last)
            features = Features(plan, (last,), np.dtype(float))
            vectors = _vectors(models, last)[part]
            kernel = partial(kernels.fitted, features=features, vectors=vectors)
            parts.append(self._collect(kernel, kept=kept))
        return np.concatenate(parts)

    def project(self, models: Coefficients, mode: int) -> "Projected":
        """Make one mode's features of all samples and leave them where the samples are."""
        plan, kept = self._serve(self._rows(models.components), mode)
        return Projected(self, Features(plan, (mode,), models.scales.dtype), models.task, kept)

    def projections(self, components: Sequence[Array], mode: int) -> Array:
        """Return the projections ``(K, R, n_samples, p_mode)`` of every term, in the type of X."""
        K, R, p = components[mode].shape
        plan, kept = self._serve(self._rows(components), mode)
        kernel = partial(kernels.projected, plan=plan, mode=mode)
        return self._collect(kernel, kept=kept).reshape(K, R, self.n_samples, p)

    def project_all(self, components: Sequence[Array], modes: Sequence[int] | None = None) -> Array:
        """Return the features of all modes side by side ``(K, n_samples, q)``, in float64.

        Or of several modes.
        """
        self._kept = None
        modes = tuple(range(len(self.shape)) if modes is None else modes)
        plan = plan_to_all(self._rows(components), modes)
        features = Features(plan, modes, np.dtype(float))
        return self._collect(partial(kernels.features_of, features=features))

    def drawn_sums(self, task: Array, draw: Draw | None = None) -> Array:
        """Return ``sum_i g_i y_i X_i`` without nuisance ``(L, p1, ..., pM)``.

        Parameters
        ----------
        task : ndarray of shape (L,)
        draw : Draw, optional
            Weights g of each sum.
        """
        tasks, at = np.unique(task, return_inverse=True)
        kernel = partial(kernels.drawn_sums, draw=draw, task=task, tasks=tasks, scale=self.scale)
        sums, columns, explained = self._total(kernel, wide=len(task))
        explained = explained.astype(sums.dtype)
        for number, own in enumerate(columns):
            which = slice(None) if len(columns) == 1 else at == number
            sums[which] -= explained[which] @ own
        return sums.reshape(-1, *self.shape)

    def weighted_sums(self, coefficients: Array) -> Array:
        """Return ``sum_i c[l, i] X_i`` for every row of coefficients: ``(L, p1, ..., pM)``."""
        (sums,) = self._total(
            partial(kernels.weighted_sums, scale=self.scale),
            along=(coefficients,),
            wide=len(coefficients),
        )
        return sums.reshape(-1, *self.shape)

    def batches(self, n_models: int, bytes_per_model: float) -> list[slice]:
        """Cut a batch of models into parts of about one size, each within the memory limit."""
        several = len(self.samples.response) > 1
        limit = self.budget.batch_beside(self.n_bytes, several_tasks=several)
        n_parts = ceil(n_models / max(1, limit // bytes_per_model))
        if n_parts == 1:
            return [slice(0, n_models)]
        edges = np.linspace(0, n_models, n_parts + 1).astype(int).tolist()
        return [slice(i, j) for i, j in pairwise(edges)]

    def memory(self) -> dict[str, Any]:
        """Return what earlier verbs left behind that decides how later ones are rounded."""
        kept = self._kept and [self._kept.mode, self._kept.rows]
        return {"kept": kept, "centre": self._centre.memory()}

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on as if these verbs had been asked of this engine; X is read when that is needed."""
        self._kept = memory["kept"] and Kept(*memory["kept"])
        self._centre.recall(memory["centre"])

    def _rows(self, components: Sequence[Array]) -> Rows:
        return Rows.of(components, self.dtype, self.scale)

    def _serve(self, rows: Rows, mode: int) -> tuple[Plan, Any]:
        """Plan projections onto a mode: from what is kept, from what is kept now, or from X."""
        if self._kept is None or not self._kept.serves(rows, mode):
            self._kept = None
            plan = plan_to_keep(rows, mode)
            if plan is None or not self._has_room_for(plan):
                return plan_to(rows, mode), None
            farthest = plan.routes[0].group[0]
            self._kept = Kept(farthest, rows.factors[farthest].copy())
        if self._kept.blocks is None:
            contract = partial(kernels.contracted, plan=plan_of_kept(rows, self._kept.mode))
            self._kept = replace(self._kept, blocks=self._keep(contract))
        return plan_from_kept(rows, self._kept.mode, mode), self._kept.blocks

    def _has_room_for(self, plan: Plan) -> bool:
        """Whether blocks contracted with a mode may stay in memory."""
        size = self.n_bytes * len(plan.rows) // self.shape[plan.routes[0].group[0]]
        return size <= self.budget.kept_beside(self.n_bytes)

    def _equations(self, features: Features, stated: Stated, kept: Any) -> Equations:
        """Take the nuisance out of products; where little is left of them, out of features first.

        Features that hardly vary beside their mean are made anew without it, from then on at once.
        What is left beside covariates of hardly any effect else takes another pass.
        """
        shifted = self._shifted(features, stated.task)
        found = self._products(shifted, stated, kept)
        if found.is_doubtful.any() and self._shift(stated.task[found.is_doubtful]):
            shifted = self._shifted(features, stated.task)
            found = self._products(shifted, stated, kept)
        if found.is_doubtful.any():
            stated = replace(stated, explained=found.explained())
            found = self._products(shifted, stated, kept)
        return found.finish(self.samples, stated, shifted.shift)

    def _products(self, features: Features, stated: Stated, kept: Any) -> Unfinished:
        kernel = partial(kernels.products, features=features, stated=stated)
        return Unfinished.of(*self._total(kernel, kept=kept))

    def _shift(self, task: Array) -> bool:
        """Find the means of X of some tasks in one pass, if they help and are not known yet."""
        weights = self.samples.weights
        weights = np.ones((1, self.n_samples)) if weights is None else weights
        rows = np.unique(task) if len(weights) > 1 else np.zeros(1, int)
        if not self.samples.has_intercept or self._centre.knows(rows):
            return False
        # Of all tasks: how sums are rounded must not depend on what other tasks have need of.
        share = weights / weights.sum(axis=1, keepdims=True)
        self._centre.learn(rows, self.weighted_sums(share)[rows], len(weights))
        return True

    def _shifted(self, features: Features, task: Array) -> Features:
        """Have features made without their mean, of those tasks where it is known to matter."""
        if self._centre.means is None:
            return features
        rows = replace(features.plan.whole_rows(self.shape), scale=1.0)
        shift = self._centre.features(rows, features.modes, task)
        return replace(features, shift=shift.astype(features.dtype))


class Projected:
    """Features ``(K, n_samples, q)`` of one mode, beside their samples.

    They are made when they are first asked for, up to a constant that an intercept takes out.
    """

    def __init__(self, engine: Engine, features: Features, task: Array, kept: Any) -> None:
        self._engine, self._plain, self._task, self._from = engine, features, task, kept
        self._blocks: Any = None
        self._shift: Array | None = None

    @property
    def n_features(self) -> int:
        """Number of features q."""
        rows = self._plain.plan.rows
        return rows.n_terms * self._engine.shape[self._plain.modes[0]]

    def whole(self) -> Array:
        """Return the features of all samples in one array."""
        kernel = partial(kernels.features_of, features=self._features())
        return self._engine._collect(kernel, kept=self._from)

    def times(self, vectors: Array) -> Array:
        """Return the features times vectors ``(K, q)``: ``(K, n_samples)``."""
        kernel = partial(kernels.kept_times, vectors=vectors)
        return self._engine._collect(kernel, kept=self._made())

    def products(self, weights: Array, response: Array) -> tuple[Array, Array]:
        """Return Gram matrices and moments in weights ``(K, n_samples)`` times the tasks' own."""
        found, explained = self._products(weights, response, None), None
        if found.is_doubtful.any() and self._engine._shift(self._task[found.is_doubtful]):
            self._blocks = None
            found = self._products(weights, response, None)
        if found.is_doubtful.any():
            explained = found.explained()
            found = self._products(weights, response, explained)
        samples = self._engine.samples
        own = samples.weights_of(self._task)
        weight = np.mean(weights if own is None else weights * own, axis=1)
        return found.settled(len(samples), self._shift, explained, weight)

    def _products(self, weights: Array, response: Array, explained: Array | None) -> Unfinished:
        kernel = partial(kernels.curved_products, task=self._task, explained=explained)
        gram, cross, own = self._engine._total(kernel, kept=self._made(), along=(weights, response))
        return Unfinished.of(gram, cross, own, np.empty((len(self._task), 0)))

    def _features(self) -> Features:
        return self._engine._shifted(self._plain, self._task)

    def _made(self) -> Any:
        if self._blocks is None:
            features = self._features()
            kernel = partial(kernels.features_of, features=features)
            self._shift = features.shift
            self._blocks = self._engine._keep(kernel, kept=self._from)
        return self._blocks


def _vectors(models: Coefficients, mode: int) -> Array:
    """Return what the features of a mode are multiplied with for fitted values: ``(K, q)``."""
    scaled = models.components[mode] * models.scales[..., None]
    return scaled.reshape(len(scaled), -1)
