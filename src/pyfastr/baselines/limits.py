"""What floating-point numbers and memory can hold."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.sources import Source, largest_entry

Array = NDArray[Any]

# Products of a few such numbers, and sums of their squares, neither overflow nor vanish.
SMALLEST, LARGEST = 1e-40, 1e40
FLOAT32_SMALLEST, FLOAT32_LARGEST = 1e-15, 1e15

# Memory above X that a fit may take, if X itself is smaller.
MAX_WORKING_BYTES = 4 << 30


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


def check_block_memory(source: Source, n_models: int, n_terms: int) -> None:
    """Refuse a fit whose blocks (features of a mode, equations for it) would exhaust memory."""
    n_samples, *shape = source.shape
    unknowns = n_terms * max(shape)
    # The features are there twice: as projected, and side by side.
    needed = 8 * (2 * n_models * n_samples * unknowns + min(n_samples, unknowns) ** 2)
    _refuse_beyond_limit(
        needed,
        source,
        f"n_terms={n_terms} terms from n_init={n_models} starts",
        "Lower n_init or n_terms",
    )


def check_copy_memory(source: Source, method: str) -> None:
    """Refuse a method that needs all samples at once in float64, where the copy is too large."""
    _refuse_beyond_limit(
        8 * prod(source.shape),
        source,
        f"The float64 copy that {method} makes",
        "Use fewer samples, or average neighbouring elements of X",
    )


def check_path_memory(source: Source, n_paths: int) -> None:
    """Refuse paths whose starts (four arrays of the size of a sample each) exhaust memory."""
    needed = 4 * 8 * n_paths * prod(source.shape[1:])
    _refuse_beyond_limit(
        needed, source, f"cv with {n_paths - 1} folds", "Use fewer folds, or give `radius`"
    )


def _refuse_beyond_limit(needed: int, source: Source, what: str, remedy: str) -> None:
    """Raise an error that says what would take how much, and what to do."""
    limit = max(MAX_WORKING_BYTES, prod(source.shape) * source.dtype.itemsize)
    if needed > limit:
        raise ValueError(
            f"{what} on X of shape {source.shape} would take {needed / 2**30:.1f} GiB of memory; "
            f"the limit is {limit / 2**30:.1f} GiB. {remedy}, or use FasTRRegressor, which works "
            "in parts."
        )
