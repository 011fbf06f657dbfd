"""A task in a process of its own, which can be ended and may crash."""

import ctypes
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import ceil
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

Task = Callable[[], dict[str, Any]]

# How often the parent looks up from waiting, in seconds.
_TICK = 0.2
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Outcome:
    """How a task ended: with a value, at the limit, or with a reason why not."""

    status: Literal["ok", "timeout", "failed"]
    seconds: float
    value: dict[str, Any]
    reason: str = ""


def run_isolated(task: Task, limit: float, on_tick: Callable[[], None]) -> Outcome:
    """Run a task in a forked process, which sees the memory of this one without a copy.

    Parameters
    ----------
    task : callable
        Without arguments; returns a dict that can be pickled.
    limit : float
        Seconds after which the process is killed.
    on_tick : callable
        Called a few times a second while the task runs.

    Returns
    -------
    Outcome
        An error, lack of memory and a crash of the process are outcomes like others.

    Examples
    --------
    >>> from pyfastr.experiments.isolation import run_isolated
    >>> run_isolated(lambda: {"answer": 6 * 7}, 10.0, lambda: None).value
    {'answer': 42}
    """
    begin = time.monotonic()
    with _ctrl_c_waits():
        process, near = _start(task, limit)
    try:
        return _wait(process, near, begin, limit, on_tick)
    finally:
        process.kill()
        process.join()
        near.close()


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Let Ctrl-C wait until the end of the context.

    A fork runs callbacks that would swallow it. A process that is started here never hears of it,
    so that only the parent decides what an interruption means.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _start(task: Task, limit: float) -> tuple[Any, Connection]:
    """Start the process; returns it and the end of a pipe that will tell the outcome."""
    context = multiprocessing.get_context("fork")
    near, far = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(task, far, os.getpid(), limit), daemon=True)
    process.start()
    far.close()
    return process, near


def _wait(
    process: Any, near: Connection, begin: float, limit: float, on_tick: Callable[[], None]
) -> Outcome:
    """Wait for the outcome until the limit."""
    while (left := begin + limit - time.monotonic()) > 0:
        if near.poll(min(_TICK, left)):
            try:
                return Outcome(*near.recv())
            except EOFError:
                process.join()
                return Outcome("failed", time.monotonic() - begin, {}, _how_it_died(process))
        on_tick()
    return Outcome("timeout", limit, {}, f"not done after {limit:g} s")


def _how_it_died(process: Any) -> str:
    """Say why there is no outcome."""
    if process.exitcode == -signal.SIGKILL:
        return "killed, most likely for want of memory"
    if process.exitcode < 0:
        return f"crashed: {signal.Signals(-process.exitcode).name}"
    return f"the process ended with code {process.exitcode}"


def _serve(task: Task, far: Connection, parent: int, limit: float) -> None:
    """Run the task and send what came of it."""
    _depend_on(parent, limit)
    # That a method did not converge shows in its results.
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    try:
        value = task()
    except Exception as error:
        seconds = time.perf_counter() - begin
        far.send(("failed", seconds, {}, _in_one_line(error)))
    else:
        far.send(("ok", time.perf_counter() - begin, value))


def _in_one_line(error: Exception) -> str:
    """Name the error; of a long message the last line, where searches quote what they met."""
    first, *others = str(error).strip().splitlines() or [""]
    return others[-1] if others else f"{type(error).__name__}: {first}"


def _depend_on(parent: int, limit: float) -> None:
    """Do not outlive the parent, and be the one to go if memory ends."""
    # Where the parent's death cannot be followed, the task ends soon after its limit.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ceil(limit) + 5)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if os.getppid() != parent:
        os._exit(1)
