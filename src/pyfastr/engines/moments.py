"""Second moments of X, from which equations of models are made without its samples.

Where a sample has P entries, few beside the number of samples, the products of all entries with
each other say all that a squared loss asks of X. The equations of a mode then cost ``2 R P^2``
flops a model of R terms, however many samples there are; from N of these they cost
``2 N R (P + R p^2)``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.base import Coefficients
from pyfastr.engines.contraction import khatri_rao
from pyfastr.engines.equations import Equations, Fits
from pyfastr.engines.parallel import map_threads
from pyfastr.engines.plan import CACHE_BYTES
from pyfastr.engines.samples import Samples, rows_of
from pyfastr.engines.weighted import Read, Weighted, n_reads, n_weightings

Array = NDArray[Any]
Shape = tuple[int, ...]

# Entries of a sample at most, and samples for each of them at least.
MOST_ENTRIES, SAMPLES_PER_ENTRY = 256, 2
# So many multiplications take no longer than a few calls; more are worth a batch of one model for
# so many entries, and each set of weights.
FEW_PRODUCTS, ENTRIES_PER_MODEL = 10_000_000, 32
# Bytes of all moments at most.
MOST_BYTES = 64 << 20
# Bytes that are made between the two multiplications from which on threads share the work.
WORTH_THREADS = 4 << 20
# Batches whose parts are remembered: those of a sweep's modes, and of a few sweeps side by side.
N_PARTED = 32
# What a difference leaves is mostly rounding below this share of what it was taken of.
CANCELLATION = float(np.finfo(float).eps ** 0.5)


@dataclass(frozen=True)
class Subset:
    """Some of the models, in arrays of their own."""

    components: list[Array]
    scales: Array
    task: Array

    @classmethod
    def of(cls, models: Coefficients, which: Array) -> "Subset":
        """Take models by number, or where a mask is true."""
        components = [c[which] for c in models.components]
        return cls(components, models.scales[which], models.task[which])


@dataclass(frozen=True)
class FromMoments:
    """Equations made of moments.

    Attributes
    ----------
    equations : Equations
        With fits of the models that they were made at.
    needs_samples : ndarray of shape (K,)
        Where they are mostly rounding, because a model fits that well, or because X hardly varies
        along its components.
    """

    equations: Equations
    needs_samples: Array


@dataclass(frozen=True)
class Part:
    """Some of the models, and the pieces of them that have the same weights.

    Attributes
    ----------
    which : slice or ndarray of int
    pieces : list of (int, slice)
        The row of weights, and which of these models.
    """

    which: slice | Array
    pieces: list[tuple[int, slice]]


@dataclass(frozen=True)
class Moments:
    """Products of the entries of samples, in the weights of each task and without its nuisance.

    Attributes
    ----------
    gram : ndarray of shape (1 or T, P, P)
        One for all tasks where these have the same weights.
    moment : ndarray of shape (T, P)
        Products with the response.
    total : ndarray of shape (T,)
        Of the response with itself.
    shape : tuple of int
        Of one sample.
    """

    gram: Array
    moment: Array
    total: Array
    shape: Shape

    @classmethod
    def of(cls, read: Read, shape: Shape, samples: Samples, scale: float) -> "Moments":
        """Make them of all samples: ``2 N P^2`` flops for each set of weights.

        Parameters
        ----------
        read : callable
            Returns samples ``(n, *shape)`` by their numbers, a slice.
        shape : tuple of int
        samples : Samples
            What belongs to them.
        scale : float
            What X is divided by.
        """
        if n_reads(shape, samples) == 1:
            whole = read(slice(0, len(samples)))
            read = whole.__getitem__
        rows = range(n_weightings(samples))
        each = [Weighted(read, prod(shape), samples, row, scale).products() for row in rows]
        grams, moments = zip(*each, strict=True)
        return cls(np.stack(grams), np.concatenate(moments), samples.total, shape)

    def mode_equations(
        self, models: Coefficients, mode: int, *, judged: bool = True
    ) -> FromMoments:
        """Return the normal equations of one mode's update, with fits if these are asked for."""
        K, R, p = models.components[mode].shape
        gram = np.empty((K, R * p, R * p))

        def fill(part: Part) -> None:
            own = [c[part.which] for c in models.components]
            gram[part.which] = self._rest(self._half(part, own, mode), own, mode, mode)

        self._map(fill, models.task, R * p)
        moment = self._with_response(models, mode)
        fits, is_close = Fits(np.empty(0), np.empty(0)), np.zeros(K, bool)
        if judged:
            vectors = (models.components[mode] * models.scales[..., None]).reshape(K, -1)
            fits, is_close = self._fits(gram, moment, vectors, models.task)
        dtype = models.scales.dtype
        found = Equations(gram.astype(dtype, copy=False), moment.astype(dtype, copy=False), fits)
        return FromMoments(found, is_close | self._is_faint(gram, models, [mode]))

    def joint_equations(
        self, models: Coefficients, modes: Sequence[int] | None = None
    ) -> FromMoments:
        """Return those of a joint step of all modes, whose moments are of the residuals.

        Or of several modes with the first among them.
        """
        K = len(models.task)
        modes = range(len(self.shape)) if modes is None else modes
        sizes = [models.components[m][0].size for m in modes]
        ends = np.cumsum(sizes)
        blocks = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        gram = np.empty((K, ends[-1], ends[-1]))

        def fill(part: Part) -> None:
            which = part.which
            own = [c[which] for c in models.components]
            for number, (m, block) in enumerate(zip(modes, blocks, strict=True)):
                half = self._half(part, own, m)
                for n, other in zip(modes[number:], blocks[number:], strict=True):
                    product = self._rest(half, own, m, n)
                    gram[which, block, other] = product
                    gram[which, other, block] = product.transpose(0, 2, 1)

        self._map(fill, models.task, max(sizes))
        moment = np.concatenate([self._with_response(models, m) for m in modes], axis=1)
        vectors = (models.components[0] * models.scales[..., None]).reshape(K, -1)
        first = blocks[0]
        fits, is_close = self._fits(gram[:, first, first], moment[:, first], vectors, models.task)
        moment -= (gram[:, :, first] @ vectors[..., None])[..., 0]
        needs_samples = is_close | self._is_faint(gram, models, modes)
        return FromMoments(Equations(gram, moment, fits), needs_samples)

    @cached_property
    def _traces(self) -> Array:
        return np.einsum("tii->t", self.gram)

    @cached_property
    def _unfolded(self) -> list[Array]:
        """The Gram matrices ``(1 or T, Q, p P)`` of every mode, of whose entries Q are others'."""
        n_modes, found = len(self.shape), []
        for mode in range(n_modes):
            others = [m for m in range(n_modes) if m != mode]
            whole = self.gram.reshape(-1, *self.shape, *self.shape)
            left, right = ([1 + m for m in others], [1 + n_modes + m for m in (mode, *others)])
            whole = whole.transpose(0, *left, 1 + mode, *right)
            found.append(whole.reshape(len(self.gram), -1, self.shape[mode] * prod(self.shape)))
        return found

    def _map(self, work: Callable[[Part], None], task: Array, q: int) -> None:
        """Work on all models: in threads, if parts take longer than threads are asked."""
        parts = self._parts(task, q)
        if 8 * len(task) * q * prod(self.shape) >= WORTH_THREADS:
            map_threads(work, parts)
        else:
            for part in parts:
                work(part)

    def _parts(self, task: Array, width: int) -> list[Part]:
        """Cut models into parts that stay in cache with what is made of them."""
        step = max(1, CACHE_BYTES // (8 * width * prod(self.shape)))
        if len(self.gram) == 1:
            starts = range(0, len(task), step)
            return [Part(slice(i, i + step), [(0, slice(None))]) for i in starts]
        return _parts_of(task.tobytes(), task.dtype.str, step)

    def _half(self, part: Part, own: Sequence[Array], mode: int) -> Array:
        """Multiply with what the other modes make of each term, from the left: ``(K, R p, P)``.

        The entries P have that mode first.
        """
        others, unfolded = _others(own, range(len(own)), mode), self._unfolded[mode]
        K, R, Q = others.shape
        product = np.empty((K, R, unfolded.shape[2]))
        for row, which in part.pieces:
            left, into = others[which].reshape(-1, Q), product[which].reshape(-1, product.shape[2])
            np.matmul(left, unfolded[row], out=into)
        return product.reshape(K, R * self.shape[mode], -1)

    def _rest(self, half: Array, own: Sequence[Array], mode: int, to: int) -> Array:
        """Multiply from the right, and leave the entries of another mode: ``(K, R p, R p')``."""
        K, width, _ = half.shape
        order = [mode, *(m for m in range(len(self.shape)) if m != mode)]
        others, p = _others(own, order, to), self.shape[to]
        if to != mode:
            whole = half.reshape(K, width, *(self.shape[m] for m in order))
            half = np.moveaxis(whole, 2 + order.index(to), 2)
        product = half.reshape(K, width * p, -1) @ others.transpose(0, 2, 1)
        if others.shape[1] == 1:
            return product.reshape(K, width, p)
        return product.reshape(K, width, p, -1).transpose(0, 1, 3, 2).reshape(K, width, -1)

    def _with_response(self, models: Coefficients, mode: int) -> Array:
        """Products of one mode's features with the response: ``(K, R p)``."""
        K, p = len(models.task), self.shape[mode]
        others = _others(models.components, range(len(self.shape)), mode)
        whole = rows_of(self.moment, models.task).reshape(-1, *self.shape)
        unfolded = np.moveaxis(whole, 1 + mode, 1).reshape(len(whole), p, -1)
        return (others @ unfolded.transpose(0, 2, 1)).reshape(K, -1)

    def _is_faint(self, gram: Array, models: Coefficients, modes: Sequence[int]) -> Array:
        """Tell where X hardly varies along the components of the other modes than those asked."""
        needed = [m for m in range(len(self.shape)) if [m] != list(modes)]
        squares = {
            m: np.einsum("krp,krp->kr", c, c) for m in needed for c in [models.components[m]]
        }
        size = np.zeros(len(gram))
        for mode in modes:
            others: Array = np.prod([squares[m] for m in needed if m != mode], axis=0)
            size += others.sum(axis=1)
        trace = np.einsum("kii->k", gram)
        return (trace != 0) & (trace < CANCELLATION * size * rows_of(self._traces, models.task))

    def _fits(self, gram: Array, moment: Array, vectors: Array, task: Array) -> tuple[Fits, Array]:
        """Say how well features times vectors fit, and where too well for a difference to tell."""
        total = rows_of(self.total, task)
        aligned = np.einsum("kq,kq->k", vectors, moment)
        explained = np.einsum("kq,kq->k", vectors, (gram @ vectors[..., None])[..., 0])
        rss = np.maximum(total - 2 * aligned + explained, 0)
        size = total * explained
        misfit = 1 - aligned**2 / np.where(size > 0, size, 1)
        return Fits(rss, misfit), rss < CANCELLATION * (total + explained)


def are_worth_making(shape: tuple[int, ...], samples: Samples, n_models: int) -> bool:
    """Whether moments are small, and as many models are asked about as make up for making them."""
    n_entries, n_rows = prod(shape), n_weightings(samples)
    if len(shape) == 1 or n_entries > MOST_ENTRIES:
        return False
    if len(samples) < SAMPLES_PER_ENTRY * n_entries:
        return False
    soon = n_rows * len(samples) * n_entries**2 <= FEW_PRODUCTS
    many = n_models * ENTRIES_PER_MODEL >= n_rows * n_entries
    return (soon or many) and 8 * n_rows * n_entries**2 * (1 + len(shape)) <= MOST_BYTES


def parts_of_tasks(task: Array, step: int) -> list[Part]:
    """Cut models into parts of at most so many, of pieces that have one task each.

    A product is made of a piece: what other tasks there are must not decide how sums are rounded.
    """
    order = np.argsort(task, kind="stable")
    tasks, is_sorted = task[order], bool(np.all(order[1:] > order[:-1]))
    edges = [0, *(np.flatnonzero(np.diff(tasks)) + 1).tolist(), len(tasks)]
    pieces = [
        (int(tasks[start]), i, min(i + step, stop))
        for start, stop in pairwise(edges)
        for i in range(start, stop, step)
    ]
    parts, begin, own = list[Part](), 0, list[tuple[int, slice]]()
    for row, start, stop in pieces:
        if stop - begin > step and own:
            parts.append(Part(slice(begin, start) if is_sorted else order[begin:start], own))
            begin, own = start, []
        own.append((row, slice(start - begin, stop - begin)))
    parts.append(Part(slice(begin, None) if is_sorted else order[begin:], own))
    return parts


@lru_cache(maxsize=N_PARTED)
def _parts_of(task: bytes, dtype: str, step: int) -> list[Part]:
    """Return the parts of tasks that a sweep asks about again and again."""
    return parts_of_tasks(np.frombuffer(task, dtype), step)


def _others(components: Sequence[Array], order: Sequence[int], mode: int) -> Array:
    """Khatri-Rao products ``(K, R, Q)`` of all modes but one, in some order."""
    K, R, _ = components[0].shape
    rows = [components[m].reshape(K * R, -1) for m in order if m != mode]
    return np.asarray(khatri_rao(rows), float).reshape(K, R, -1)
