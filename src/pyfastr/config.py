"""Settings of the whole package: how much memory a fit may take beside an X that is in memory."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any

VARIABLE = "PYFASTR_MEMORY_BUDGET"
# The default leaves as much memory to X in memory, and to everybody else.
PHYSICAL_SHARE, UNKNOWN_MEMORY = 0.5, 8 << 30
# Below this, the parts of the budget are smaller than what Python itself comes and goes with.
SMALLEST = 16_000_000
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_BINARY = {"k": 2.0**10, "m": 2.0**20, "g": 2.0**30, "t": 2.0**40}
_TEXT = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:e[0-9]+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_CGROUP = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class MemoryBudget:
    """Bytes that a fit may take, and the part of each use; all but `whole` add up to the total.

    Parameters
    ----------
    total : int
    least_batch, batch_share : int, float
        A batch of models may take so many bytes, or that share of X if it is more: beyond, parts
        of it cost no more passes over X than they save memory.
    of_several_tasks : int
        How many times that if the batch serves several tasks.
    least_kept, kept_share : int, float
        The same of products of X that later updates begin with: beyond, X is read once more.

    Attributes
    ----------
    blocks : int
        Blocks of samples that are read, converted or worked on at one time.
    stored : int
        Blocks of stored data that stay in memory once they have been read.
    subset : int
        The same of a subset of the samples that a search works on.
    whole : int
        All of an X that is computed once and stays. It takes the place of the two before, and of
        half of the first, because its blocks are no copies.
    kept : int
        Products of X that later updates begin with.
    batch : int
        Projections of a batch of models.
    foresight : int
        Products and inverses of the linear problems that tell where sweeps will end.
    """

    total: int
    least_batch: int = 120 << 20
    batch_share: float = 0.06
    of_several_tasks: int = 2
    least_kept: int = 160 << 20
    kept_share: float = 0.13

    def batch_beside(self, n_bytes: int, *, several_tasks: bool) -> int:
        """Bytes of a batch of models beside an X of so many bytes."""
        wanted = max(self.least_batch, int(self.batch_share * n_bytes))
        return min(wanted * (self.of_several_tasks if several_tasks else 1), self.batch)

    def kept_beside(self, n_bytes: int) -> int:
        """Bytes of products that are kept beside an X of so many bytes."""
        return min(max(self.least_kept, int(self.kept_share * n_bytes)), self.kept)

    @property
    def blocks(self) -> int:
        return self.total // 5

    @property
    def stored(self) -> int:
        return self.total // 10

    @property
    def subset(self) -> int:
        return self.total // 10

    @property
    def whole(self) -> int:
        return self.stored + self.subset + self.blocks // 2

    @property
    def kept(self) -> int:
        return self.total // 4

    @property
    def batch(self) -> int:
        return self.total // 4

    @property
    def foresight(self) -> int:
        return self.total // 10


_everywhere: dict[str, int | None] = {"memory_budget": None}
_here: ContextVar[int | None] = ContextVar("memory_budget", default=None)


def get_config() -> dict[str, Any]:
    """Return the settings in force.

    Returns
    -------
    dict
        ``memory_budget`` in bytes.

    Examples
    --------
    >>> import pyfastr
    >>> with pyfastr.config_context(memory_budget="2GB"):
    ...     pyfastr.get_config()
    {'memory_budget': 2000000000}
    """
    return {"memory_budget": current_budget().total}


def set_config(*, memory_budget: float | str | None = None) -> None:
    """Change settings for the rest of the process.

    Parameters
    ----------
    memory_budget : int, float or str, default=None
        Bytes that a fit may take above an X that is in memory, or in all where X is stored: a
        number, or text such as "2GB" or "512 MiB". "auto" goes back to the environment variable
        PYFASTR_MEMORY_BUDGET or, without one, to half of the machine's memory. None changes
        nothing.

    Examples
    --------
    >>> import pyfastr
    >>> pyfastr.set_config(memory_budget="2GB")
    >>> pyfastr.get_config()
    {'memory_budget': 2000000000}
    >>> pyfastr.set_config(memory_budget="auto")
    """
    if memory_budget is not None:
        auto = memory_budget == "auto"
        _everywhere["memory_budget"] = None if auto else parse_bytes(memory_budget)


@contextmanager
def config_context(*, memory_budget: float | str | None = None) -> Iterator[None]:
    """Change settings inside of a ``with`` block, in this thread.

    Parameters
    ----------
    memory_budget : int, float or str, default=None
        As in `set_config`.

    Examples
    --------
    >>> import pyfastr
    >>> with pyfastr.config_context(memory_budget=5e8):
    ...     pyfastr.get_config()
    {'memory_budget': 500000000}
    """
    value = before = _here.get()
    if memory_budget is not None:
        value = _default() if memory_budget == "auto" else parse_bytes(memory_budget)
    try:
        _here.set(value)
        yield
    finally:
        _here.set(before)


def current_budget() -> MemoryBudget:
    """Return the budget in force: of the context, of the process, of the environment, or half."""
    here, everywhere = _here.get(), _everywhere["memory_budget"]
    return MemoryBudget(here or everywhere or _default())


def _default() -> int:
    """Read the environment, or take a share of the machine's memory."""
    text = os.environ.get(VARIABLE, "").strip()
    if text and text != "auto":
        return parse_bytes(text, VARIABLE)
    return max(SMALLEST, int(PHYSICAL_SHARE * (physical_memory() or UNKNOWN_MEMORY)))


def parse_bytes(value: Any, name: str = "memory_budget") -> int:
    """Return a number of bytes given as a number or as text.

    Parameters
    ----------
    value : int, float or str
    name : str
        What it was given as, for errors.

    Returns
    -------
    int

    Examples
    --------
    >>> from pyfastr.config import parse_bytes
    >>> parse_bytes("2GB"), parse_bytes("0.5 GiB")
    (2000000000, 536870912)
    """
    wanted = 'a number of bytes or text such as "2GB", "512MB" or "1.5GiB"'
    if isinstance(value, bool) or not isinstance(value, Real | str):
        raise TypeError(f"{name} is {value!r} of type {type(value).__name__}; expected {wanted}.")
    if isinstance(value, str):
        match = _TEXT.fullmatch(value.strip())
        if match is None:
            raise ValueError(f'{name} is {value!r}; expected {wanted}, or "auto".')
        digits, unit, binary = match.groups()
        found = float(digits) * (_BINARY if binary else _UNITS).get(unit.lower(), 1.0)
    else:
        found = float(value)
    if not isfinite(found) or found < SMALLEST:
        raise ValueError(
            f"{name} is {value!r}, {found:.0f} bytes; expected at least {SMALLEST // 10**6}MB: "
            "with less there is no room for blocks of samples and the products made of them."
        )
    return int(found)


@cache
def physical_memory() -> int | None:
    """Return the bytes of memory that this process may have, where the system tells."""
    sizes = []
    with suppress(AttributeError, OSError, ValueError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):
        # A container's limit; "max" where there is none.
        sizes.append(int(_CGROUP.read_text()))
    return min((size for size in sizes if size > 0), default=None)
