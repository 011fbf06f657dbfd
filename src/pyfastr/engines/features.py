"""One block of samples, and the features that updates and losses are made of."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.arrays import AnyArray, beside, is_ours, join, permuted, reshaped, room_beside
from pyfastr.engines.parallel import scratch
from pyfastr.engines.plan import Plan
from pyfastr.engines.samples import Samples
from pyfastr.sources.namespaces import cast

Array = NDArray[Any]

# Of features of a block that a thread makes at one time.
FEATURES_BYTES = 16 << 20


@dataclass(frozen=True)
class Block:
    """Some samples, neighbours: their part of X, or what was kept of it, and what belongs to them.

    Attributes
    ----------
    values : array
        Of NumPy, or of another library and on its device.
    first : int
        Number of the first sample.
    samples : Samples
    """

    values: AnyArray
    first: int
    samples: Samples

    def __len__(self) -> int:
        return int(self.samples.response.shape[1])


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

    def parts(self, block: Block) -> list[slice]:
        """Cut the models into parts whose features of a block are made at one time."""
        n_models = len(self.plan.rows) // self.plan.rows.n_terms
        room = FEATURES_BYTES if is_ours(block.values) else room_beside(block.values)
        step = max(1, room // max(1, len(block.samples) * self.width * self.dtype.itemsize))
        return [slice(i, min(i + step, n_models)) for i in range(0, n_models, step)]

    def take(self, part: slice) -> "Features":
        """Return the features of some models."""
        if self.plan.rows.places(part) == slice(0, len(self.plan.rows)):
            return self
        shift = None if self.shift is None else self.shift[part]
        return Features(self.plan.take(part), self.modes, self.dtype, shift)

    def beside(self, block: Block, part: slice) -> Block:
        """Return a block as it is for some models: kept products are of each model."""
        if not self.plan.kept:
            return block
        return replace(block, values=block.values[self.plan.rows.places(part), ...])

    def of(self, values: AnyArray) -> AnyArray:
        """Return the features of one block; they may stand in the thread's scratch memory."""
        found = self.plan.project(values)
        parts = [side_by_side(found[m], self.plan.rows.n_terms) for m in self.modes]
        if len(parts) == 1:
            return parts[0]
        if not is_ours(values):
            return join(parts, axis=2)
        shape = (*parts[0].shape[:2], sum(part.shape[2] for part in parts))
        return np.concatenate(parts, axis=2, out=scratch(shape, self.dtype, "joint"))

    def part(self, features: AnyArray, part: slice) -> AnyArray:
        """Return the features of some models in the type that is asked for, shifted."""
        if not is_ours(features):
            some = cast(features[part, ...], self.dtype)
            return some if self.shift is None else some - beside(self.shift[part][:, None], some)
        some = features[part]
        if self.shift is None and some.dtype == self.dtype:
            return some
        room = scratch(some.shape, self.dtype, "part")
        if self.shift is None:
            np.copyto(room, some)
            return room
        return np.subtract(some, self.shift[part][:, None], out=room)


def side_by_side(projection: AnyArray, n_terms: int) -> AnyArray:
    """Put the projections ``(K * R, n, p)`` of a model's terms side by side: ``(K, n, R p)``."""
    L, n, p = projection.shape
    if n_terms == 1:
        return projection
    terms = permuted(reshaped(projection, (L // n_terms, n_terms, n, p)), (0, 2, 1, 3))
    return reshaped(terms, (L // n_terms, n, n_terms * p))
