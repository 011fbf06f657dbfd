"""Sizes of X and y whose products floating-point numbers can hold."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources import Source, largest_entry

Array = NDArray[Any]

# Products of a few such numbers, and sums of their squares, neither overflow nor vanish.
SMALLEST, LARGEST = 1e-40, 1e40
FLOAT32_SMALLEST, FLOAT32_LARGEST = 1e-15, 1e15


def check_scales(source: Source, y: Array) -> None:
    """Refuse NaN and infinity in X, and an X or y of which products would overflow."""
    single = source.dtype == np.float32
    low, high = (FLOAT32_SMALLEST, FLOAT32_LARGEST) if single else (SMALLEST, LARGEST)
    sizes = {"X": largest_entry(source), "y": float(np.abs(y).max())}
    for name, size in sizes.items():
        if size > 0 and not low < size < high:
            raise ValueError(
                f"{name} has entries up to {size:.3g}; expected them between {low:.0g} and "
                f"{high:.0g} in {source.dtype}. Rescale {name} to about 1."
            )


def check_finite_result(*results: Array) -> None:
    """Refuse to hand out NaN or infinity."""
    if not all(np.isfinite(result).all() for result in results):
        raise ValueError(
            "The coefficient overflowed: bring X and y to a scale near 1, or regularise more."
        )
