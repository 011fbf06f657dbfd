"""What the benchmarks share: plain text tables, and a line about the machine."""

import platform
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from threadpoolctl import threadpool_info

PACKAGES = ("pyfastr", "numpy", "scipy", "scikit-learn", "celer", "tensorly")


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns of their own widths: the first to the left, numbers to the right."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    right = [i > 0 and all(_is_number(row[i]) for row in rows) for i in range(len(header))]
    print(f"\n{title}")
    for number, line in enumerate(lines):
        cells = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def _is_number(cell: str) -> bool:
    """Whether a cell holds a number, a bound or nothing."""
    return re.fullmatch(r"[<>≤≥ ]*\d[\d.e+-]*%?|inf|nan|–|", cell) is not None


def environment() -> str:
    """Name what the numbers depend on."""
    # Threads are counted where a BLAS is loaded; importing NumPy loads it.
    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    return f"Python {platform.python_version()}, {versions}; {threads} threads"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def verdict(passed: bool) -> str:
    """Tell whether a requirement is met."""
    return "pass" if passed else "MISS"


def size_name(shape: Sequence[int], n_samples: int) -> str:
    """Write a size as the paper does: ``20×20×20 (100)``."""
    return f"{'×'.join(map(str, shape))} ({n_samples})"
