"""The protocol of a source, and what can be said of X in one pass over it."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources.memory import ArraySource

Array = NDArray[Any]


@runtime_checkable
class Source(Protocol):
    """X of shape ``(n_samples, p1, ..., pM)``, read block by block along the samples.

    Attributes
    ----------
    shape : tuple of int
        ``(n_samples, p1, ..., pM)``.
    dtype : numpy.dtype
        float32 or float64: the type of the blocks, and so of all work on them.
    slices : sequence of slice
        The blocks, in order; together they cover the samples once.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def slices(self) -> tuple[slice, ...]: ...

    def read(self, rows: slice) -> Array:
        """Return the C-contiguous block of these samples, to be read and never written."""
        ...


def as_source(X: Any) -> Source:
    """Wrap `X` without a copy; a source passes through."""
    if isinstance(X, Source):
        return X
    return ArraySource(np.asarray(X))


def largest_entry(source: Source) -> float:
    """Return max|X| in one pass; NaN or infinity is an error that says where it stands."""
    largest = 0.0
    for rows in source.slices:
        block = source.read(rows)
        # Minimum and maximum let NaN through, so no second scan or mask is needed.
        low, high = float(block.min()), float(block.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            _raise_not_finite(block, rows.start)
        largest = max(largest, -low, high)
    return largest


def _raise_not_finite(block: Array, first_sample: int) -> None:
    """Name the first entry that is NaN or infinite."""
    bad = np.argwhere(~np.isfinite(block))
    sample, *element = (int(i) for i in bad[0])
    kind = "NaN" if np.isnan(block[tuple(bad[0])]) else "infinity"
    raise ValueError(
        f"Input X contains {kind}: first at sample {first_sample + sample}, "
        f"element {tuple(element)}, and {len(bad)} such values in the block of samples "
        f"read with it. Impute or drop them before fitting or predicting."
    )
