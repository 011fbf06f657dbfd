"""What is made of one block of samples: pure functions whose results are added over the blocks.

``K`` counts models, ``q`` the entries that an update solves for, ``c`` the columns of intercept and
covariates. Every kernel costs the products of its projections, and ``n q^2`` flops a model for Gram
matrices, made while the projections are in cache.
"""

from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.draws import Draw
from pyfastr.engines.parallel import map_threads, scratch, unlocking_columns
from pyfastr.engines.plan import CACHE_BYTES, Plan
from pyfastr.engines.samples import Samples

Array = NDArray[Any]

# Of features of a block that a thread makes at one time.
FEATURES_BYTES = 16 << 20
# Of parts of a batch that numpy works on at one time, and how many there should be for all threads.
WORK_BYTES, ENOUGH_PARTS = 8 << 20, 16


@dataclass(frozen=True)
class Block:
    """Some samples, neighbours: their part of X, or what was kept of it, and what belongs to them.

    Attributes
    ----------
    values : ndarray
    first : int
        Number of the first sample.
    samples : Samples
    """

    values: Array
    first: int
    samples: Samples


@dataclass(frozen=True)
class Features:
    """Features ``(K, n, q)`` of some models: projections of their terms side by side.

    Attributes
    ----------
    plan : Plan
    modes : tuple of int
        One, or several whose features stand side by side.
    dtype : numpy.dtype
        Of the features and all that is made of them.
    shift : ndarray of shape (K, q) or None
        What is subtracted from the features of every sample.
    """

    plan: Plan
    modes: tuple[int, ...]
    dtype: Any
    shift: Array | None = None

    @property
    def width(self) -> int:
        """Number of features q."""
        rows = self.plan.rows
        return rows.n_terms * sum(rows.shape[m] for m in self.modes)

    def parts(self, n_samples: int) -> list[slice]:
        """Cut the models into parts whose features of so many samples are made at one time."""
        n_models = len(self.plan.rows) // self.plan.rows.n_terms
        size = n_samples * self.width * self.dtype.itemsize
        step = max(1, FEATURES_BYTES // max(1, size))
        return [slice(i, min(i + step, n_models)) for i in range(0, n_models, step)]

    def take(self, part: slice) -> "Features":
        """Return the features of some models."""
        shift = None if self.shift is None else self.shift[part]
        return Features(self.plan.take(part), self.modes, self.dtype, shift)

    def beside(self, block: Block, part: slice) -> Block:
        """Return a block as it is for some models: kept products are of each model."""
        if not self.plan.kept:
            return block
        return replace(block, values=block.values[self.plan.rows.places(part)])

    def of(self, values: Array) -> Array:
        """Return the features of one block; they may stand in the thread's scratch memory."""
        found = self.plan.project(values)
        parts = [side_by_side(found[m], self.plan.rows.n_terms) for m in self.modes]
        if len(parts) == 1:
            return parts[0]
        shape = (*parts[0].shape[:2], sum(part.shape[2] for part in parts))
        return np.concatenate(parts, axis=2, out=scratch(shape, self.dtype, "joint"))

    def part(self, features: Array, part: slice) -> Array:
        """Return the features of some models in the type that is asked for, shifted."""
        some = features[part]
        if self.shift is None and some.dtype == self.dtype:
            return some
        room = scratch(some.shape, self.dtype, "part")
        if self.shift is None:
            np.copyto(room, some)
            return room
        return np.subtract(some, self.shift[part][:, None], out=room)


@dataclass(frozen=True)
class Stated:
    """What the products of features are to tell of K models.

    Attributes
    ----------
    task : ndarray of shape (K,)
    draw : Draw, optional
        Further weights of the samples, of each model.
    vectors : ndarray of shape (K, q), optional
        What the features are multiplied with for the models' fitted values as they are now.
    of_residuals : bool
        Whether moments are those of the residuals, not of the response.
    explained : ndarray of shape (K, c, q), optional
        Coefficients of the nuisance to be taken out of the features first.
    """

    task: Array
    draw: Draw | None = None
    vectors: Array | None = None
    of_residuals: bool = False
    explained: Array | None = None

    def take(self, part: slice) -> "Stated":
        """Return what is stated of some models."""
        return Stated(
            self.task[part],
            None if self.draw is None else self.draw.take(part),
            None if self.vectors is None else self.vectors[part],
            self.of_residuals,
            None if self.explained is None else self.explained[part],
        )


Products = tuple[Array, Array, Array, Array]


def products(block: Block, features: Features, stated: Stated) -> Products:
    """Return products of the features with themselves, the nuisance and the response.

    Returns
    -------
    gram : ndarray of shape (K, q, q)
    cross : ndarray of shape (K, q, c + 1)
        With the columns of the nuisance, and last the response or residuals.
    own : ndarray of shape (K, c + 1, c + 1)
        Of these columns with themselves.
    left : ndarray of shape (K, 2 + c) or (K, 0)
        Of residuals in the weights of the task: with themselves, the response and the nuisance.
    """
    K, q, c = len(stated.task), features.width, block.samples.nuisance.shape[2]
    gram = np.empty((K, q, q), features.dtype)
    cross, own = np.empty((K, q, c + 1), features.dtype), np.empty((K, c + 1, c + 1))
    left = np.empty((K, 0 if stated.vectors is None else 2 + c))
    parts = features.parts(len(block.samples))
    if len(parts) == 1:
        _write_products(block, features, stated, (gram, cross, own, left))
        return gram, cross, own, left
    for some in parts:
        found = gram[some], cross[some], own[some], left[some]
        _write_products(features.beside(block, some), features.take(some), stated.take(some), found)
    return gram, cross, own, left


def _write_products(block: Block, features: Features, stated: Stated, found: Products) -> None:
    """Write the products of models whose features are made at one time."""
    every = features.of(block.values)
    gram, cross, own, left = found

    def work(part: slice) -> None:
        some, now = features.part(every, part), stated.take(part)
        cross[part], own[part], left[part] = _products(block, some, now, gram[part])

    map_threads(work, work_parts(every))


def _products(
    block: Block, features: Array, stated: Stated, gram: Array
) -> tuple[Array, Array, Array]:
    """Return the products of a few models, and write their Gram matrices."""
    samples, task, dtype = block.samples, stated.task, features.dtype
    z, C = samples.response_of(task), samples.nuisance_of(task)
    further = None
    if stated.draw is not None:
        further = stated.draw.exponential(block.first, features.shape[1], dtype)
    if stated.explained is not None:
        features = features - C.astype(dtype, copy=False) @ stated.explained
    left = np.empty((len(features), 0))
    if stated.vectors is not None:
        residuals = z - (features @ stated.vectors[:, :, None].astype(dtype, copy=False))[..., 0]
        left = misfits(residuals, z, C, samples.weights_of(task))
        z = residuals if stated.of_residuals else z
    n_columns = unlocking_columns(features.shape[0] * features.shape[2])
    shape = np.broadcast_shapes(z.shape, C.shape[:2])
    columns = np.empty((*shape, C.shape[2] + n_columns), dtype)
    columns[..., : C.shape[2]], columns[..., C.shape[2] :] = C, z[..., None]
    weights = samples.weights_of(task, further)
    cross, own = weighted_products(features, columns, weights, gram)
    n_columns = C.shape[2] + 1
    return cross[:, :, :n_columns], own[:, :n_columns, :n_columns], left


def weighted_products(
    features: Array, columns: Array, weights: Array | None, gram: Array
) -> tuple[Array, Array]:
    """Return products of columns with features and themselves, and write those of features."""
    some, columns, factor = _weighted(features, columns, weights)
    transposed = some.transpose(0, 2, 1)
    np.matmul(transposed, some, out=gram)
    cross = transposed @ columns
    columns = columns.astype(float, copy=False)
    own = columns.transpose(0, 2, 1) @ columns
    if factor != 1:
        gram *= gram.dtype.type(factor)
    return cross * cross.dtype.type(factor), own * factor


def _weighted(features: Array, columns: Array, g: Array | None) -> tuple[Array, Array, float]:
    """Scale samples by the roots of their weights, and leave out those that no model weighs.

    Weights that are all the same come as one factor of all products, and spare a multiplication.
    What is returned for the features may stand in the thread's scratch memory.
    """
    if g is None:
        return features, columns, 1.0
    used = np.flatnonzero(g.any(axis=0))
    if len(used) < features.shape[1]:
        room = scratch((len(features), len(used), features.shape[2]), features.dtype, "used")
        # Without a mode that cannot fail numpy would fill memory of its own first.
        features = np.take(features, used, axis=1, out=room, mode="clip")
        columns, g = np.take(columns, used, axis=1), g[:, used]
    if not g.size or np.ptp(g) == 0:
        return features, columns, float(g.flat[0]) if g.size else 0.0
    root = np.sqrt(g).astype(features.dtype, copy=False)[:, :, None]
    room = scratch(features.shape, features.dtype, "weighted")
    return np.multiply(features, root, out=room), columns * root, 1.0


def misfits(residuals: Array, z: Array, C: Array, g: Array | None) -> Array:
    """Return sums ``(K, 2 + c)`` of residuals with themselves, the response and the nuisance."""
    weighted = residuals if g is None else residuals * g
    own = np.einsum("kn,kn->k", weighted, residuals)
    with_z = np.einsum("kn,kn->k", weighted, np.broadcast_to(z, weighted.shape))
    with_C = (weighted[:, None] @ C)[:, 0]
    return np.concatenate([own[:, None], with_z[:, None], with_C], axis=1).astype(float)


def losses(block: Block, features: Features, stated: Stated) -> tuple[Array]:
    """Return `misfits` of the models as they are."""
    assert stated.vectors is not None
    samples, task = block.samples, stated.task
    residuals = samples.response_of(task) - fitted(block, features, stated.vectors)
    C, z = samples.nuisance_of(task), samples.response_of(task)
    return (misfits(residuals, z, C, samples.weights_of(task)),)


def fitted(block: Block, features: Features, vectors: Array) -> Array:
    """Return features times vectors ``(K, q)``: ``(K, n)``."""
    found = []
    for some in features.parts(len(block.samples)):
        now, values = features.take(some), features.beside(block, some).values
        found += _times(now.of(values), now, vectors[some])
    return np.concatenate(found)


def _times(every: Array, features: Features, vectors: Array) -> list[Array]:
    """Return features that are made times vectors, part by part."""
    columns = vectors[:, :, None].astype(features.dtype, copy=False)

    def multiply(part: slice) -> Array:
        return (features.part(every, part) @ columns[part])[..., 0]

    return map_threads(multiply, work_parts(every))


def features_of(block: Block, features: Features) -> Array:
    """Return the features ``(K, n, q)`` in memory of their own."""
    return np.array(features.part(features.of(block.values), slice(None)))


def projected(block: Block, plan: Plan, mode: int) -> Array:
    """Return the projections ``(K * R, n, p)`` of every term, in memory of their own."""
    return np.array(plan.project(block.values)[mode])


def contracted(block: Block, plan: Plan) -> Array:
    """Return a block contracted with one mode, for later projections."""
    return plan.contract(block.values)


def curved_products(
    block: Block, further: Array, response: Array, task: Array, explained: Array | None
) -> tuple[Array, Array, Array]:
    """Return products of kept features in weights, and with a response, of each model and sample.

    Parameters
    ----------
    block : Block
        Of features ``(K, n, q)``.
    further, response : ndarray of shape (K, n)
    task : ndarray of shape (K,)
    explained : ndarray of shape (K, c, q), optional
        Coefficients of the nuisance to be taken out of the features first.
    """
    features, samples = block.values, block.samples
    C = np.broadcast_to(samples.nuisance_of(task), (*response.shape, samples.nuisance.shape[2]))
    if explained is not None:
        features = features - C.astype(features.dtype, copy=False) @ explained
    columns = np.concatenate([C, response[:, :, None]], axis=2).astype(features.dtype, copy=False)
    gram = np.empty((len(features), features.shape[2], features.shape[2]), features.dtype)
    weights = samples.weights_of(task, further)
    cross, own = weighted_products(features, columns, weights, gram)
    return gram, cross, own


def kept_times(block: Block, vectors: Array) -> Array:
    """Return kept features times vectors ``(K, q)``: ``(K, n)``."""
    return (block.values @ vectors[:, :, None])[..., 0]


def drawn_sums(
    block: Block, draw: Draw | None, task: Array, scale: float
) -> tuple[Array, Array, Array]:
    """Return sums of samples weighted by their response, and what takes the nuisance out of them.

    Returns
    -------
    sums : ndarray of shape (L, p1 * ... * pM)
    columns : ndarray of shape (1 or T, c, p1 * ... * pM)
        Sums of samples weighted by the nuisance.
    explained : ndarray of shape (L, c)
        Sums of the nuisance weighted as the samples are.
    """
    samples, n = block.samples, len(block.values)
    coefficients = np.broadcast_to(samples.response_of(task), (len(task), n))
    if draw is not None:
        coefficients = coefficients * draw.exponential(block.first, n)
    g = samples.weights_of(task)
    coefficients = coefficients if g is None else coefficients * g
    C = samples.nuisance
    weighted = C if samples.weights is None else C * samples.weights[:, :, None]
    explained = (coefficients[:, None] @ samples.nuisance_of(task))[:, 0]
    T, _, c = weighted.shape
    rows = np.concatenate([coefficients, weighted.transpose(0, 2, 1).reshape(T * c, n)])
    (sums,) = weighted_sums(block, rows, scale)
    return sums[: len(task)], sums[len(task) :].reshape(T, c, sums.shape[1]), explained


def weighted_sums(block: Block, coefficients: Array, scale: float) -> tuple[Array]:
    """Return ``sum_i c[l, i] X_i / scale`` for every row of coefficients."""
    rows = (coefficients / scale).astype(block.values.dtype, copy=False)
    return (rows @ block.values.reshape(len(block.values), -1),)


def side_by_side(projection: Array, n_terms: int) -> Array:
    """Put the projections ``(K * R, n, p)`` of a model's terms side by side: ``(K, n, R p)``."""
    L, n, p = projection.shape
    if n_terms == 1:
        return projection
    terms = projection.reshape(L // n_terms, n_terms, n, p)
    return terms.transpose(0, 2, 1, 3).reshape(L // n_terms, n, n_terms * p)


def cache_parts(array: Array) -> list[slice]:
    """Cut a batch along its first axis into parts that stay in a core's cache."""
    step = max(1, CACHE_BYTES // max(1, array[:1].nbytes))
    return [slice(i, i + step) for i in range(0, len(array), step)]


def work_parts(array: Array) -> list[slice]:
    """Cut a batch into parts on which numpy works much longer than it takes to be called.

    While it is called no other thread works; but there should be enough parts for all threads.
    """
    model = max(1, array[:1].nbytes)
    step = min(WORK_BYTES // model, ceil(len(array) / ENOUGH_PARTS))
    step = max(1, step, CACHE_BYTES // model)
    return [slice(i, i + step) for i in range(0, len(array), step)]
