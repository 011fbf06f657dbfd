"""How projections of a block are made: which modes are contracted first, and what that serves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import ceil, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.arrays import (
    AnyArray,
    broadcast,
    dtype_of,
    is_ours,
    join,
    parts_of,
    size_of_rows,
)
from pyfastr.engines.contraction import (
    Route,
    contract_group,
    contract_others,
    contracted_others,
    gather,
    khatri_rao,
    outside,
    project_own,
    route_to,
    routes_to_all,
)
from pyfastr.engines.parallel import scratch
from pyfastr.sources.namespaces import cast, to_device

Array = NDArray[Any]

# A contraction that leaves several modes makes an intermediate; it should stay in a core's cache.
CACHE_BYTES = 1 << 21
# Of a block that is contracted at one time.
CONTRACTED_BYTES = 8 << 20
# More rows than this make a matrix product no faster.
ENOUGH_ROWS = 128
# So few rows are bound by memory: any mode may be contracted alone, if that saves a pass.
FEW_ROWS = 2
# Gathering a part of X costs about this many times a plain read of it.
GATHER_COST = 4.0


@dataclass(frozen=True)
class Rows:
    """Components of K models of R terms, one row a model and term, in the type of X.

    Attributes
    ----------
    factors : list of M arrays of shape (K * R, p_m)
    n_terms : int
    scale : float
        Projections are those of ``X / scale``.
    """

    factors: list[Array]
    n_terms: int
    scale: float = 1.0

    @classmethod
    def of(cls, components: Sequence[Array], dtype: Any, scale: float = 1.0) -> "Rows":
        """Take components as M arrays ``(K, R, p_m)``."""
        rows = [c.reshape(-1, c.shape[-1]).astype(dtype, copy=False) for c in components]
        return cls(rows, components[0].shape[1], scale)

    def __len__(self) -> int:
        return int(self.factors[0].shape[0])

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return tuple(f.shape[1] for f in self.factors)

    def places(self, models: slice) -> slice:
        """Where the rows of some models are."""
        return slice(models.start * self.n_terms, models.stop * self.n_terms)

    def take(self, models: slice) -> "Rows":
        """Return the rows of some models."""
        rows = self.places(models)
        return Rows([f[rows] for f in self.factors], self.n_terms, self.scale)

    def product(self, group: Sequence[int]) -> Array:
        """Khatri-Rao product of a group; it carries the scale, so that no product overflows."""
        product = khatri_rao([self.factors[m] for m in group])
        return product if self.scale == 1 else cast(product / self.scale, self.dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the components, which is that of X."""
        return dtype_of(self.factors[0])

    def beside(self, values: AnyArray) -> "Rows":
        """Return the same where a block on a device is."""
        return replace(self, factors=[to_device(f, like=values) for f in self.factors])


@dataclass(frozen=True)
class Plan:
    """The way from a block to projections of every row onto some modes.

    Attributes
    ----------
    rows : Rows
    routes : tuple of Route
        What is contracted with the block, and which modes that serves.
    support : list of ndarray, optional
        Entries of each mode that are not all zero, if only these are to be read.
    kept : bool
        Whether blocks come contracted with the route's group already.
    """

    rows: Rows
    routes: tuple[Route, ...]
    support: list[Array] | None = None
    kept: bool = False

    @cached_property
    def vectors(self) -> tuple[Array, ...]:
        """Khatri-Rao products of the routes' groups."""
        return tuple(self.rows.product(route.group) for route in self.routes)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the products out: they are made of the components wherever these arrive."""
        return {name: value for name, value in vars(self).items() if name != "vectors"}

    def take(self, models: slice) -> "Plan":
        """Return the same for some of the models."""
        return replace(self, rows=self.rows.take(models))

    def whole_rows(self, shape: Sequence[int]) -> Rows:
        """Return the rows for whole samples, with zeros for entries that are not read."""
        if self.support is None:
            return self.rows
        factors = []
        for factor, used, p in zip(self.rows.factors, self.support, shape, strict=True):
            factors.append(np.zeros((len(self.rows), p), factor.dtype))
            factors[-1][:, used] = factor
        return replace(self.rows, factors=factors)

    def project(self, values: AnyArray) -> dict[int, AnyArray]:
        """Return the projections ``(K * R, n, p_m)`` of a block by mode.

        They may stand in the thread's scratch memory.
        """
        if len(self.rows.shape) == 1:
            samples = values if self.rows.scale == 1 else values / self.rows.scale
            return {0: broadcast(samples, (len(self.rows), *samples.shape))}
        if self.kept:
            return self._from_kept(values)
        if not is_ours(values):
            return self._made_there(values)
        modes = [m for route in self.routes for m in route.modes]
        sizes = {m: self.rows.shape[m] for m in modes}
        outs = _rooms(len(self.rows), len(values), sizes, values.dtype)
        for part in _contracted_parts(values):
            self._write(values[part], {m: out[:, part] for m, out in outs.items()})
        return outs

    def _write(self, values: Array, outs: dict[int, Array]) -> None:
        """Write the projections of some samples."""
        if self.support is not None:
            values = gather(values, self.support, self.routes[0].modes[0])
        for route, vectors in zip(self.routes, self.vectors, strict=True):
            own = {m: outs[m] for m in route.modes}
            _follow(route, values, vectors, self.rows.factors, own)

    def _made_there(self, values: AnyArray) -> dict[int, AnyArray]:
        """Return the projections of a block on a device, a few samples at a time."""
        plan = self._beside(values)
        largest = max(prod(outside(r.group, self.rows.shape)) for r in self.routes)
        made = largest * len(self.rows) * self.rows.dtype.itemsize
        cuts = parts_of(values, max(size_of_rows(values), made))
        parts = [plan._follow_all(values[part, ...]) for part in cuts]
        return {m: join([part[m] for part in parts], axis=1) for m in parts[0]}

    def _follow_all(self, values: AnyArray) -> dict[int, AnyArray]:
        """Return the projections of some samples beside the components."""
        if self.support is not None:
            values = gather(values, self.support, self.routes[0].modes[0])
        found: dict[int, AnyArray] = {}
        for route, vectors in zip(self.routes, self.vectors, strict=True):
            others = outside(route.group, range(len(self.rows.factors)))
            if len(others) == 1:
                found[others[0]] = contracted_others(values, vectors, others[0])
            else:
                partial = contract_group(values, vectors, route.group)
                found |= self._contract_rest(partial, route)
        return found

    def _from_kept(self, values: AnyArray) -> dict[int, AnyArray]:
        """Contract what the first product left."""
        return self._beside(values)._contract_rest(values, self.routes[0])

    def _contract_rest(self, partial: AnyArray, route: Route) -> dict[int, AnyArray]:
        """Contract what the product with a route's group has left, for each mode it serves."""
        others = outside(route.group, range(len(self.rows.factors)))
        inner = [self.rows.factors[m] for m in others]
        return {m: project_own(partial, inner, others.index(m)) for m in route.modes}

    def contract(self, values: AnyArray) -> AnyArray:
        """Return a block contracted with the route's group alone, to be kept."""
        vectors = self._beside(values).vectors[0]
        return contract_group(values, vectors, self.routes[0].group)

    def _beside(self, values: AnyArray) -> "Plan":
        """Return the same with its components where a block is."""
        return self if is_ours(values) else replace(self, rows=self.rows.beside(values))


@dataclass(frozen=True)
class Kept:
    """Blocks of X contracted with one mode's rows, for updates of the other modes.

    Blocks that are only remembered are None until they are needed.
    """

    mode: int
    rows: Array
    blocks: Any = None

    def serves(self, rows: Rows, mode: int) -> bool:
        """Whether that mode's rows are still those that were contracted."""
        return self.mode != mode and np.array_equal(self.rows, rows.factors[self.mode])


def plan_to(rows: Rows, mode: int) -> Plan:
    """Plan projections onto one mode in one pass over X, as little of it as zeros allow."""
    if len(rows.shape) == 1:
        return Plan(rows, ())
    support = _worth_gathering(rows, mode)
    if support is not None:
        factors = [f[:, used] for f, used in zip(rows.factors, support, strict=True)]
        rows = Rows(factors, rows.n_terms, rows.scale)
    route = route_to(rows.shape, mode, len(rows))
    return Plan(rows, (route,), support)


def plan_to_all(rows: Rows, modes: Sequence[int]) -> Plan:
    """Plan projections onto all modes, or several, in one pass over X."""
    if len(rows.shape) == 1:
        return plan_to(rows, 0)
    every = routes_to_all(len(rows.shape))
    routes = [replace(own, modes=tuple(m for m in own.modes if m in modes)) for own in every]
    return Plan(rows, tuple(own for own in routes if own.modes))


def plan_to_keep(rows: Rows, mode: int) -> Plan | None:
    """Plan to contract the mode that is updated last from now on, if that saves a pass.

    One model at a time is served from there in all updates before that one (the multi-sweep
    dimension tree of Ma and Solomonik): M / (M - 1) passes a sweep. Many models are bound by
    arithmetic, and keep products with the first mode where other updates begin with these alone:
    two passes a sweep.
    """
    n_modes, n_rows = len(rows.shape), len(rows)
    first_alone = mode == 1 and n_modes > 1 and len(route_to(rows.shape, 1, n_rows).group) == 1
    if n_modes < 3 or not (n_rows <= FEW_ROWS or first_alone):
        return None
    if _worth_gathering(rows, mode) is not None:
        return None
    return plan_of_kept(rows, (mode - 1) % n_modes)


def plan_of_kept(rows: Rows, kept_mode: int) -> Plan:
    """Plan to contract blocks with one mode, for projections onto all others."""
    group = range(kept_mode, kept_mode + 1)
    modes = tuple(m for m in range(len(rows.shape)) if m != kept_mode)
    return Plan(rows, (Route(group, modes),))


def plan_from_kept(rows: Rows, kept_mode: int, mode: int) -> Plan:
    """Plan projections from blocks that are contracted with one mode."""
    return Plan(rows, (Route(range(kept_mode, kept_mode + 1), (mode,)),), kept=True)


def _worth_gathering(rows: Rows, mode: int) -> list[Array] | None:
    """Return the entries each component uses, if its zeros let most of X be skipped."""
    support = [np.flatnonzero(f.any(axis=0)) for f in rows.factors]
    support[mode] = np.arange(rows.shape[mode])
    share = prod(len(used) for used in support) / prod(rows.shape)
    return support if 0 < share * GATHER_COST < 1 else None


def _contracted_parts(values: Array) -> list[slice]:
    """Cut a block into parts of about one size that are contracted at one time."""
    n_parts = max(1, min(ceil(values.nbytes / CONTRACTED_BYTES), len(values)))
    edges = [number * len(values) // n_parts for number in range(n_parts + 1)]
    return [slice(i, j) for i, j in pairwise(edges)]


def _rooms(n_rows: int, n_samples: int, sizes: dict[int, int], dtype: Any) -> dict[int, Array]:
    """Make room for the projections of a block, beside each other in the thread's memory.

    New memory for every projection of a large batch would cost as much as the products.
    """
    room = scratch((n_rows * n_samples * sum(sizes.values()),), dtype, "projections")
    outs, begin = {}, 0
    for mode, p in sizes.items():
        n_entries = n_rows * n_samples * p
        outs[mode] = room[begin : begin + n_entries].reshape(n_rows, n_samples, p)
        begin += n_entries
    return outs


def _follow(
    route: Route, block: Array, vectors: Array, factors: Sequence[Array], outs: dict[int, Array]
) -> None:
    """Write one block's projections, in parts whose intermediate stays in cache."""
    others = outside(route.group, range(len(factors)))
    if len(others) == 1:
        contract_others(block, vectors, others[0], outs[others[0]])
        return
    n_rows, n_samples = _part_size(block, route, len(vectors))
    for i in range(0, len(vectors), n_rows):
        rows = slice(i, i + n_rows)
        inner = [factors[m][rows] for m in others]
        for j in range(0, len(block), n_samples):
            samples = slice(j, j + n_samples)
            partial = contract_group(block[samples], vectors[rows], route.group)
            for mode, out in outs.items():
                out[rows, samples] = project_own(partial, inner, others.index(mode))


def _part_size(block: Array, route: Route, n_rows: int) -> tuple[int, int]:
    """Rows and samples of one product that leaves several modes."""
    left = outside(route.group, block.shape[1:])
    room = CACHE_BYTES // (prod(left) * block.itemsize)
    rows = min(n_rows, max(1, room), ENOUGH_ROWS)
    return rows, max(1, room // rows)
