"""What is made of one block of samples: pure functions whose results are added over the blocks.

``K`` counts models, ``q`` the entries that an update solves for, ``c`` the columns of intercept and
covariates. Every kernel costs the products of its projections, and ``n q^2`` flops a model for Gram
matrices, made while the projections are in cache.

A block may be on a device, in the arrays of its library. What belongs to its samples is there, too;
what is told of models comes from NumPy and is small.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.arrays import (
    AnyArray,
    beside,
    broadcast,
    dtype_of,
    is_ours,
    join,
    map_parts,
    permuted,
    reshaped,
    row_products,
    times,
)
from pyfastr.engines.draws import Draw
from pyfastr.engines.features import Block, Features
from pyfastr.engines.parallel import scratch, unlocking_columns
from pyfastr.engines.plan import CACHE_BYTES, Plan
from pyfastr.sources.namespaces import cast, namespace_of, take

Array = NDArray[Any]

# Of parts of a batch that numpy works on at one time, and how many there should be for all threads.
WORK_BYTES, ENOUGH_PARTS = 8 << 20, 16


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
    K, q = len(stated.task), features.width
    # NumPy writes the largest result of all parts to one place.
    gram = np.empty((K, q, q), features.dtype) if is_ours(block.values) else None
    found: list[Products] = []
    for some in features.parts(block):
        now, out = features.beside(block, some), None if gram is None else gram[some]
        found += _products_at_once(now, features.take(some), stated.take(some), out)
    grams, cross, own, left = zip(*found, strict=True)
    return join(grams) if gram is None else gram, join(cross), join(own), join(left)


def _products_at_once(
    block: Block, features: Features, stated: Stated, gram: Array | None
) -> list[Products]:
    """Return the products of models whose features are made at one time, part by part."""
    every = features.of(block.values)

    def work(part: slice) -> Products:
        some, now = features.part(every, part), stated.take(part)
        return _products(block, some, now, None if gram is None else gram[part])

    return map_parts(work, every, work_parts)


def _products(block: Block, features: AnyArray, stated: Stated, gram: Array | None) -> Products:
    """Return the products of a few models, Gram matrices written to `gram` if that is given."""
    samples, task = block.samples, stated.task
    z, C = samples.response_of(task), samples.nuisance_of(task)
    further = None
    if stated.draw is not None:
        further = stated.draw.exponential(block.first, features.shape[1], dtype_of(features))
        further = beside(further, features)
    if stated.explained is not None:
        features = _without(features, C, stated.explained)
    left = broadcast(z[:1, :0], (len(task), 0))
    if stated.vectors is not None:
        residuals = z - times(features, beside(stated.vectors, features))
        left = misfits(residuals, z, C, samples.weights_of(task))
        z = residuals if stated.of_residuals else z
    n_columns = C.shape[2] + 1
    columns = _columns(C, z, features)
    weights = samples.weights_of(task, further)
    gram, cross, own = weighted_products(features, columns, weights, gram)
    # Of one row where all models share response, nuisance and weights.
    own = broadcast(own[:, :n_columns, :n_columns], (len(task), n_columns, n_columns))
    return gram, cross[:, :, :n_columns], own, left


def _columns(C: AnyArray, z: AnyArray, features: AnyArray) -> AnyArray:
    """Put nuisance and response side by side, in the type of the features.

    For NumPy the response may come several times, as `unlocking_columns` wants it.
    """
    shape = np.broadcast_shapes(z.shape, C.shape[:2])
    if not is_ours(features):
        sides = broadcast(C, (*shape, C.shape[2])), broadcast(z[..., None], (*shape, 1))
        return cast(join(sides, axis=2), dtype_of(features))
    n_columns = unlocking_columns(features.shape[0] * features.shape[2])
    columns = np.empty((*shape, C.shape[2] + n_columns), features.dtype)
    columns[..., : C.shape[2]], columns[..., C.shape[2] :] = C, z[..., None]
    return columns


def _without(features: AnyArray, C: AnyArray, explained: Array) -> AnyArray:
    """Take the nuisance out of features, given its coefficients ``(K, c, q)``."""
    return features - cast(C, dtype_of(features)) @ beside(explained, features)


def weighted_products(
    features: AnyArray, columns: AnyArray, weights: AnyArray | None, gram: Array | None
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return products of features with themselves, with columns, and of columns with themselves.

    The first are written to `gram` if that is given.
    """
    some, columns, factor = _weighted(features, columns, weights)
    transposed = permuted(some, (0, 2, 1))
    products = transposed @ some if gram is None else np.matmul(transposed, some, out=gram)
    cross = transposed @ columns
    columns = cast(columns, float)
    own = permuted(columns, (0, 2, 1)) @ columns
    if factor == 1:
        return products, cross, own
    products *= products.dtype.type(factor)
    return products, cross * cross.dtype.type(factor), own * factor


def _weighted(
    features: AnyArray, columns: AnyArray, g: AnyArray | None
) -> tuple[AnyArray, AnyArray, float]:
    """Scale samples by the roots of their weights, and leave out those that no model weighs.

    Weights that are all the same come as one factor of all products, and spare a multiplication.
    What is returned for the features may stand in the thread's scratch memory. A device is not
    asked about weights: its answer would have to be waited for.
    """
    if g is None:
        return features, columns, 1.0
    if not is_ours(features):
        root = cast(namespace_of(g).sqrt(g), dtype_of(features))[..., None]
        return features * root, columns * root, 1.0
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


def misfits(residuals: AnyArray, z: AnyArray, C: AnyArray, g: AnyArray | None) -> AnyArray:
    """Return sums ``(K, 2 + c)`` of residuals with themselves, the response and the nuisance."""
    weighted = residuals if g is None else residuals * g
    own, with_z = row_products(weighted, residuals), row_products(weighted, z)
    with_C = (weighted[:, None, :] @ C)[:, 0, :]
    return cast(join([own[:, None], with_z[:, None], with_C], axis=1), float)


def losses(block: Block, features: Features, stated: Stated) -> tuple[AnyArray]:
    """Return `misfits` of the models as they are."""
    assert stated.vectors is not None
    samples, task = block.samples, stated.task
    residuals = samples.response_of(task) - fitted(block, features, stated.vectors)
    C, z = samples.nuisance_of(task), samples.response_of(task)
    return (misfits(residuals, z, C, samples.weights_of(task)),)


def fitted(block: Block, features: Features, vectors: Array) -> AnyArray:
    """Return features times vectors ``(K, q)``: ``(K, n)``."""
    found = []
    for some in features.parts(block):
        now, values = features.take(some), features.beside(block, some).values
        found += _times(now.of(values), now, vectors[some])
    return join(found)


def _times(every: AnyArray, features: Features, vectors: Array) -> list[AnyArray]:
    """Return features that are made times vectors, part by part."""

    def multiply(part: slice) -> AnyArray:
        some = features.part(every, part)
        return times(some, beside(vectors[part], some))

    return map_parts(multiply, every, work_parts)


def features_of(block: Block, features: Features) -> AnyArray:
    """Return the features ``(K, n, q)`` in memory of their own."""
    return _owned(features.part(features.of(block.values), slice(None)))


def projected(block: Block, plan: Plan, mode: int) -> AnyArray:
    """Return the projections ``(K * R, n, p)`` of every term, in memory of their own."""
    return _owned(plan.project(block.values)[mode])


def _owned(x: AnyArray) -> AnyArray:
    """Copy what may stand in scratch memory, which other libraries do without."""
    return np.array(x) if is_ours(x) else x


def contracted(block: Block, plan: Plan) -> AnyArray:
    """Return a block contracted with one mode, for later projections."""
    return plan.contract(block.values)


def curved_products(
    block: Block, further: AnyArray, response: AnyArray, task: Array, explained: Array | None
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return products of kept features in weights, and with a response, of each model and sample.

    Parameters
    ----------
    block : Block
        Of features ``(K, n, q)``.
    further, response : array of shape (K, n)
        Where the block is.
    task : ndarray of shape (K,)
    explained : ndarray of shape (K, c, q), optional
        Coefficients of the nuisance to be taken out of the features first.
    """
    features, samples = block.values, block.samples
    C = broadcast(samples.nuisance_of(task), (*response.shape, samples.nuisance.shape[2]))
    if explained is not None:
        features = _without(features, C, explained)
    columns = cast(join([C, response[..., None]], axis=2), dtype_of(features))
    return weighted_products(features, columns, samples.weights_of(task, further), None)


def kept_times(block: Block, vectors: Array) -> AnyArray:
    """Return kept features times vectors ``(K, q)``: ``(K, n)``."""
    features = block.values
    return times(features, vectors if is_ours(features) else beside(vectors, features))


def drawn_sums(
    block: Block, draw: Draw | None, task: Array, tasks: Array, scale: float
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return sums of samples weighted by their response, and what takes the nuisance out of them.

    `tasks` are those that occur in `task`, once each.

    Returns
    -------
    sums : ndarray of shape (L, p1 * ... * pM)
    columns : ndarray of shape (1 or len(tasks), c, p1 * ... * pM)
        Sums of samples weighted by the nuisance of each of these tasks.
    explained : ndarray of shape (L, c)
        Sums of the nuisance weighted as the samples are.
    """
    samples, n = block.samples, len(block)
    coefficients = broadcast(samples.response_of(task), (len(task), n))
    if draw is not None:
        coefficients = coefficients * beside(draw.exponential(block.first, n), coefficients)
    g = samples.weights_of(task)
    coefficients = coefficients if g is None else coefficients * g
    C, g = samples.nuisance_of(tasks), samples.weights_of(tasks)
    weighted = C if g is None else C * g[..., None]
    explained = (coefficients[:, None, :] @ samples.nuisance_of(task))[:, 0, :]
    T, _, c = weighted.shape
    rows = join([coefficients, reshaped(permuted(weighted, (0, 2, 1)), (T * c, n))])
    (sums,) = weighted_sums(block, rows, scale)
    columns = reshaped(sums[len(task) :, ...], (T, c, sums.shape[1]))
    return sums[: len(task), ...], columns, explained


def weighted_sums(block: Block, coefficients: AnyArray, scale: float) -> tuple[AnyArray]:
    """Return ``sum_i c[l, i] X_i / scale`` for every row of coefficients."""
    rows = cast(coefficients / scale, dtype_of(block.values))
    return (rows @ reshaped(block.values, (len(block), -1)),)


def flattened(block: Block, columns: slice | Array, scale: float) -> AnyArray:
    """Return some entries of the samples as vectors ``(1, n, n_columns)``, in float64."""
    flat = reshaped(block.values, (len(block), -1))
    some = (
        flat[:, columns]
        if is_ours(flat) or isinstance(columns, slice)
        else take(flat, columns, axis=1)
    )
    some = cast(some, float)
    return (some if scale == 1 else some / scale)[None, ...]


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
