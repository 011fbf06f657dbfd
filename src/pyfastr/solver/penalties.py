"""What an update is penalised by: a ridge, a soft threshold, and supports to keep to."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# The smallest ridge is this power of the precision of floats: far above it, and far below any ridge
# that shrinks.
PRECISION = 0.75


@dataclass(frozen=True)
class Penalty:
    """A ridge and a soft threshold, the same for all models or one value for each.

    Attributes
    ----------
    ridge, threshold : float or ndarray of shape (K,)
        Relative, as `FasTRRegressor` defines them.
    masks : list of M arrays (K, R, p_m) of bool, optional
        Entries outside are zero.
    """

    ridge: float | Array
    threshold: float | Array = 0.0
    masks: list[Array] | None = None

    def take(self, which: Array | slice) -> "Penalty":
        """Return the penalty of some of the models."""
        ridge, threshold = (
            value[which] if isinstance(value, np.ndarray) else value
            for value in (self.ridge, self.threshold)
        )
        masks = None if self.masks is None else [m[which] for m in self.masks]
        return Penalty(ridge, threshold, masks)

    def eased(self, share: float | Array) -> "Penalty":
        """Return the same with a share of the ridge."""
        return replace(self, ridge=self.ridge * share)

    def mask(self, mode: int) -> Array | None:
        """Return the entries ``(K, R p_m)`` that may differ from zero; None if all may."""
        if self.masks is None:
            return None
        own = self.masks[mode]
        return own.reshape(len(own), -1)

    def curvature(self, gram: Array, n_features: int) -> Array:
        """Return what the ridge adds to the diagonal of Gram matrices ``(K, n, n)``: ``(K,)``.

        It is `ridge` times ``trace / n_features``. One that rounding would drown is raised, because
        it is all that decides where slices of X go together, and a zero matrix (nothing to fit)
        becomes the identity, whose solution is zero. So solutions are always finite.
        """
        entries = np.einsum("kii->ki", gram)
        trace, smallest = entries.sum(axis=1), np.finfo(gram.dtype).eps ** PRECISION
        share = np.asarray(self.ridge / n_features)
        if share.min(initial=smallest) < smallest:
            # Precision is that of the features there are: a mask may leave few.
            n_used = np.count_nonzero(entries, axis=1)
            share = np.maximum(share, smallest / np.maximum(n_used, 1))
        return np.where(trace > 0, share * trace, 1)

    def shrink(self, vectors: Array) -> Array:
        """Shrink every vector (last axis) by ``threshold * max|vector|``: the relative S_lambda."""
        if not np.any(self.threshold):
            return vectors
        size = np.abs(vectors)
        share = np.asarray(self.threshold)[..., None].astype(vectors.dtype)
        cut = share * size.max(axis=-1, keepdims=True)
        return np.sign(vectors) * np.maximum(size - cut, 0)
