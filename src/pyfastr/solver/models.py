"""K models in lockstep: their components, their scales, and distances between them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.journal import remembered

Array = NDArray[Any]


def unit(vectors: Array) -> tuple[Array, Array]:
    """Return vectors of unit length along the last axis, and their lengths; zero stays zero."""
    # Dividing by the largest entry first keeps the squares of tiny and huge entries in range.
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    scaled = vectors / np.where(largest > 0, largest, 1)
    norms = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return scaled / np.where(norms > 0, norms, 1), (norms * largest)[..., 0]


@remembered
@dataclass
class Models:
    """Coefficients ``W_k = sum_r scales[k, r] * w1[k, r] o ... o wM[k, r]``.

    Attributes
    ----------
    components : list of M arrays of shape (K, R, p_m)
        Of unit length, or zero. Replaced when they change, never written to.
    scales : ndarray of shape (K, R)
    task : ndarray of shape (K,)
        Which of the problem's responses and weights each model is fitted to; all 0 by default.
    """

    components: list[Array]
    scales: Array
    task: Array = field(default_factory=lambda: np.zeros(0, int))

    def __post_init__(self) -> None:
        if len(self.task) != len(self.scales):
            self.task = np.zeros(len(self.scales), int)

    @classmethod
    def random(
        cls, n_models: int, n_terms: int, shape: Sequence[int], rng: np.random.Generator
    ) -> Self:
        """Draw independent components, uniform on the unit spheres."""
        draws = [rng.standard_normal((n_models, n_terms, p)) for p in shape]
        return cls([unit(d)[0] for d in draws], np.ones((n_models, n_terms)))

    @classmethod
    def concatenate(cls, parts: "Sequence[Models]") -> Self:
        """Join batches of models."""
        columns = zip(*(part.components for part in parts), strict=True)
        return cls(
            [np.concatenate(c) for c in columns],
            np.concatenate([p.scales for p in parts]),
            np.concatenate([p.task for p in parts]),
        )

    def __len__(self) -> int:
        return len(self.scales)

    @property
    def n_terms(self) -> int:
        """Number of unit-rank terms of each model."""
        return self.scales.shape[1]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return tuple(c.shape[-1] for c in self.components)

    def take(self, which: Array | slice) -> "Models":
        """Return some of the models."""
        return Models([c[which] for c in self.components], self.scales[which], self.task[which])

    def alone(self) -> "Models":
        """Return the models as those of the only task."""
        return Models(self.components, self.scales)

    def astype(self, dtype: Any) -> "Models":
        """Return the models with components of another type."""
        components = [c.astype(dtype, copy=False) for c in self.components]
        return Models(components, self.scales.astype(dtype, copy=False), self.task)

    def replace(self, mode: int, solution: Array) -> "Models":
        """Return the models with the ridge solution ``(K, R, p_mode)`` as that mode's component."""
        components = list(self.components)
        components[mode], scales = unit(solution)
        return Models(components, scales, self.task)

    def flat(self) -> Array:
        """Return all modes' components side by side, each of balanced length: ``(K, q)``."""
        return np.hstack([b.reshape(len(self), -1) for b in self.balanced()])

    def balanced(self) -> list[Array]:
        """Return the components, each as long as the others of its term, and no scale beside."""
        length = np.abs(self.scales) ** (1 / len(self.components))
        return [c * length[..., None] for c in self.components]

    def blocks(self) -> list[slice]:
        """Where each mode's entries stand in `flat`."""
        sizes = [self.n_terms * p for p in self.shape]
        ends = np.cumsum(sizes).tolist()
        return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def coefficient(self, which: int = 0) -> Array:
        """Build one model's coefficient array of shape ``(p1, ..., pM)``."""
        total = self.scales[which][:, None] * self.components[0][which]
        for component in self.components[1:]:
            total = total[..., None] * component[which].reshape(
                self.n_terms, *[1] * (total.ndim - 1), -1
            )
        return total.sum(axis=0)


def settle_signs(components: Sequence[Array]) -> list[Array]:
    """Turn components ``(K, R, p_m)`` so that in all modes but the first the largest is positive.

    Signs of two modes can change together without a change of W. Which of both a search ends with
    is up to its starts, and to rounding. Tied modes stay equal up to sign: the same if neither is
    the first, else by the sign of their term.
    """
    first, *others = components
    turned = []
    for component in others:
        largest = np.abs(component).argmax(axis=-1, keepdims=True)
        sign = np.where(np.take_along_axis(component, largest, axis=-1) < 0, -1.0, 1.0)
        sign = sign.astype(component.dtype)
        turned.append(component * sign)
        first = first * sign
    return [first, *turned]


def put(models: Models, which: Array, new: Models) -> Models:
    """Return the models with some of them replaced."""
    components = [c.copy() for c in models.components]
    scales, task = models.scales.copy(), models.task.copy()
    for component, other in zip(components, new.components, strict=True):
        component[which] = other
    scales[which], task[which] = new.scales, new.task
    return Models(components, scales, task)


def inner_products(first: Models, second: Models) -> Array:
    """``<W_k, V_k>`` of models side by side, in O(sum p) each."""
    return _contract(first, second, "kri,ksi->krs")


def pairwise_inner_products(models: Models) -> Array:
    """``<W_k, W_l>`` of all pairs: ``(K, K)``."""
    K, R, _ = models.components[0].shape
    gram = np.ones((K * R, K * R))
    for component in models.components:
        rows = component.reshape(K * R, -1).astype(float, copy=False)
        gram *= rows @ rows.T
    scales = models.scales.astype(float, copy=False).reshape(-1)
    gram *= scales[:, None] * scales
    return gram.reshape(K, R, K, R).sum(axis=(1, 3))


def cosines(models: Models) -> Array:
    """Cosine of the angle between all pairs of coefficients; zero coefficients are like none."""
    models = Models(models.components, unit(models.scales)[0])
    gram = pairwise_inner_products(models)
    norms = np.sqrt(np.maximum(np.diag(gram), 0))
    norms = np.where(norms > 0, norms, 1)
    return gram / (norms[:, None] * norms)


def distinct(models: Models, merit: Array, same_cosine: float) -> tuple[Array, Array]:
    """Group models by the angle between their coefficients, the lowest merit first.

    Those whose cosine exceeds `same_cosine` are the same. Returns the index of each group's best
    model, and the number of models in the group.
    """
    near = (cosines(models) > same_cosine) & (models.task[:, None] == models.task)
    left = np.ones(len(models), bool)
    leaders, sizes = [], []
    for i in np.argsort(merit, kind="stable"):
        if left[i]:
            same = left & near[i]
            same[i] = True
            left &= ~same
            leaders.append(i)
            sizes.append(int(same.sum()))
    return np.asarray(leaders), np.asarray(sizes)


def _contract(first: Models, second: Models, product: str) -> Array:
    """Multiply the modes' inner products and sum over terms."""
    gram = first.scales[:, :, None] * second.scales[:, None, :]
    for a, b in zip(first.components, second.components, strict=True):
        gram = gram * np.einsum(product, a, b)
    return gram.sum(axis=(1, 2))


def relative_change(new: Models, old: Models) -> Array:
    """``||W - V||_F / ||V||_F`` of each model, without forming W: O(sum p).

    ``||W - V||^2 = ||W||^2 + ||V||^2 - 2 <W, V>``, whose rounding hides changes below about 1e-7:
    they read as zero, so that sweeps always come to an end.
    """
    # In units of the old scale nothing overflows, whatever the units of X and y.
    size = np.abs(old.scales).max(axis=1, keepdims=True)
    safe = np.where(size > 0, size, 1)
    new, old = (Models(m.components, m.scales / safe) for m in (new, old))
    after, before = inner_products(new, new), inner_products(old, old)
    squared = after + before - 2 * inner_products(new, old)
    squared[squared <= 16 * np.finfo(squared.dtype).eps * (after + before)] = 0
    change = np.sqrt(squared / np.where(before > 0, before, 1))
    return np.where(before > 0, change, np.where(squared > 0, np.inf, 0.0))
