"""Peak memory of some work above its data, measured in a process of its own."""

import multiprocessing
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

PROC = Path("/proc/self")


def peak_above_data(prepare: Callable[..., Any], work: Callable[[Any], Any], *args: Any) -> float:
    """Call ``work(prepare(*args))`` in a new process; return the bytes it took above the data."""
    return measured_above_data(prepare, work, *args)[0]


def measured_above_data(
    prepare: Callable[..., Any], work: Callable[[Any], Any], *args: Any
) -> tuple[float, Any]:
    """Do so, and return what the work found as well."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measure, prepare, work, args).result()


def _measure(
    prepare: Callable[..., Any], work: Callable[[Any], Any], args: tuple[Any, ...]
) -> tuple[float, Any]:
    data = prepare(*args)
    forget_peak()
    with_data = resident()
    found = work(data)
    return peak() - with_data, found


def forget_peak() -> None:
    """Let the peak begin anew where the system can; elsewhere making the data is part of it."""
    if PROC.exists():
        try:
            (PROC / "clear_refs").write_text("5")
        except OSError:
            return


def resident() -> float:
    """Bytes in memory now, or the largest number so far where that is all one can learn."""
    return status("VmRSS") if PROC.exists() else peak()


def peak() -> float:
    """Largest number of bytes that were in memory at once."""
    if PROC.exists():
        return status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def status(field: str) -> float:
    """Read a field of the process's status, given in kB."""
    lines = (PROC / "status").read_text().splitlines()
    return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
