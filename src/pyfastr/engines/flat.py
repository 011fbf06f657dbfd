"""Samples as vectors: all of them, or the inner products of all pairs."""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.config import MemoryBudget
from pyfastr.engines import kernels

Array = NDArray[Any]

# X whose columns can be read alone is multiplied in parts of at most this size, in float64.
COLUMN_BYTES = 64 << 20


class FlatSamples:
    """What an engine tells of its samples as vectors of their entries."""

    n_samples: int
    shape: tuple[int, ...]
    scale: float
    passes: float
    budget: MemoryBudget
    _collect: Callable[..., Array]

    def flattened(self, entries: Array | None = None) -> Array:
        """Return samples as vectors ``(n_samples, n_entries)`` in float64, whole or some entries.

        It is a copy, for what is small.
        """
        columns = self._numbers(None) if entries is None else entries
        return self._collect(self._flattening(columns))[0]

    @property
    def n_product_passes(self) -> int:
        """How many times X is read for `sample_products`."""
        return 1 if self._reads_columns else len(self._column_parts(self._numbers(None)))

    def sample_products(self, share: Array, used: Array | None = None) -> Array:
        """Return inner products of all pairs of samples: ``(n_samples, n_samples)``.

        A few columns of all samples are brought together at a time and multiplied: N²P flops. X is
        read once where columns can be read alone, else once for each of these parts, which have as
        many bytes in float64 as the budget has for a batch.

        Parameters
        ----------
        share : ndarray of shape (n_samples,)
            Weights of the mean that is subtracted from all samples first; zeros leave them alone.
        used : ndarray of shape (p1, ..., pM) of bool, optional
            The entries that count; all of them by default.
        """
        before, products = self.passes, np.zeros((self.n_samples,) * 2)
        for columns in self._column_parts(self._numbers(used)):
            products += self._product(columns, share)
        if self._reads_columns:
            self.passes = before + 1
        return products

    @property
    def _reads_columns(self) -> bool:
        """Whether some columns of X can be read without the others."""
        return False

    def _product(self, columns: slice | Array, share: Array) -> Array:
        """Multiply some columns of all samples with themselves."""
        part = self._collect(self._flattening(columns))[0]
        part -= share @ part
        product: Array = part @ part.T
        return product

    def _flattening(self, columns: slice | Array) -> Callable[..., Any]:
        return partial(kernels.flattened, columns=columns, scale=self.scale)

    def _numbers(self, used: Array | None) -> slice | Array:
        """Return which columns of flattened samples count; a slice spares a copy."""
        if used is None or used.all():
            return slice(0, prod(self.shape))
        return np.flatnonzero(used)

    def _column_parts(self, columns: slice | Array) -> list[Any]:
        """Cut columns into parts that are small beside the budget, or beside a cache."""
        room = self.budget.batch
        if self._reads_columns:
            room = min(room, COLUMN_BYTES)
        n_columns = columns.stop if isinstance(columns, slice) else len(columns)
        # A part exists twice for a moment: in blocks, and joined.
        step = max(1, room // (2 * 8 * self.n_samples))
        if not isinstance(columns, slice):
            return [columns[i : i + step] for i in range(0, n_columns, step)]
        return [slice(i, min(i + step, n_columns)) for i in range(0, n_columns, step)]
