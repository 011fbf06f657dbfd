"""Fuzzing: damaged and forged input for every reader; each must take it or refuse it.

Batches run in forked processes, so that a crash of a library is told from an error, and is no end.
An execution may take 1 s of processor time and 200 MB. What breaks these rules is kept, by the
number of the execution, from which it can be made again. With --state a run goes on where it was.
"""

import argparse
import json
import multiprocessing
import resource
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _fuzz_targets import TARGETS, Target
from _memory import forget_peak, peak, resident, status
from _report import environment, print_table, verdict

SECONDS, MEGABYTES = 1.0, 200.0
# Of processor time, after which an execution that does not end is ended.
ENDLESS = 20.0
BATCH = 2000
# Findings of one kind that are kept.
MOST_KEPT = 20
MEMORY_FOLDER = Path("/dev/shm")


@dataclass
class Tally:
    """What came of the executions of one target."""

    n_done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    memory: float = 0.0
    findings: dict[str, list[int]] = field(default_factory=dict)

    def find(self, what: str, number: int) -> None:
        """Note a finding."""
        self.findings.setdefault(what, []).append(number)
        del self.findings[what][MOST_KEPT:]

    def add(self, other: "Tally") -> None:
        """Take over what a batch found."""
        self.n_done += other.n_done
        self.outcomes.update(other.outcomes)
        self.slowest = max(self.slowest, other.slowest)
        self.memory = max(self.memory, other.memory)
        for what, numbers in other.findings.items():
            for number in numbers:
                self.find(what, number)


def content_of(target: Target, corpus: list[bytes], seed: int, number: int) -> bytes:
    """Return the input of one execution, which depends on its number alone."""
    return target.change(corpus, np.random.default_rng([seed, number]))


def execute(target: Target, folder: Path, content: bytes) -> tuple[str, str]:
    """Read one input; return the outcome, and what there is to find about it."""
    try:
        target.attempt(folder, content)
    except target.refusals as refusal:
        asked = target.is_bounded and _lacked_memory(refusal)
        return "refused", "asks for too much memory" if asked else ""
    except MemoryError:
        return "failed", "MemoryError"
    except Exception as error:
        return "failed", f"{type(error).__name__}: {str(error)[:200]}"
    return "accepted", ""


def _lacked_memory(error: BaseException | None) -> bool:
    """Whether an error came of the limit of memory, which stands for a file that asks for more."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def run_numbers(
    target: Target,
    folder: Path,
    corpus: list[bytes],
    seed: int,
    numbers: range,
    at: Callable[[int], None],
) -> Tally:
    """Execute some numbers within the limits; `at` hears which is next."""
    tally = Tally()
    forget_peak()
    before = resident()
    limit = int(status("VmSize") + MEGABYTES * 1e6)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for number in numbers:
        content = content_of(target, corpus, seed, number)
        at(number)
        signal.setitimer(signal.ITIMER_PROF, ENDLESS)
        began = time.process_time()
        outcome, finding = execute(target, folder, content)
        seconds = time.process_time() - began
        tally.n_done += 1
        tally.outcomes[outcome] += 1
        tally.slowest = max(tally.slowest, seconds)
        if finding or seconds > SECONDS:
            tally.find(finding or f"slow: over {SECONDS:g} s", number)
    signal.setitimer(signal.ITIMER_PROF, 0)
    tally.memory = peak() - before
    return tally


def run_batch(
    target: Target, folder: Path, corpus: list[bytes], seed: int, numbers: range
) -> Tally:
    """Execute some numbers in a process that may crash; go on behind the one that did."""
    context = multiprocessing.get_context("fork")
    total = Tally()
    while numbers:
        current = context.Value("q", numbers.start, lock=False)
        near, far = context.Pipe(duplex=False)

        def work(left: range = numbers, current: Any = current, far: Any = far) -> None:
            far.send(run_numbers(target, folder, corpus, seed, left, lambda n: _set(current, n)))

        process = context.Process(target=work)
        process.start()
        far.close()
        with suppress(EOFError):
            total.add(near.recv())
            process.join()
            return total
        process.join()
        crashed = int(current.value)
        total.n_done += crashed + 1 - numbers.start
        total.outcomes["crashed"] += 1
        total.find(_death(process.exitcode), crashed)
        numbers = range(crashed + 1, numbers.stop)
    return total


def _set(current: Any, number: int) -> None:
    current.value = number


def _death(code: int | None) -> str:
    """Say how a process ended."""
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"did not end in {ENDLESS:g} s" if name == "SIGPROF" else f"killed by {name}"
    return f"ended with code {code}"


def fuzz(name: str, n_executions: int, deadline: float, seed: int, tally: Tally) -> Iterator[Tally]:
    """Execute one target until there are enough executions, or it is late; yield after each."""
    target = TARGETS[name]
    place = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        folder = Path(scratch)
        corpus = target.prepare(folder)
        for content in corpus:
            # All that reading imports is there then, and sound input is taken.
            target.attempt(folder, content)
        while tally.n_done < n_executions and time.monotonic() < deadline:
            stop = min(tally.n_done + BATCH, n_executions)
            tally.add(run_batch(target, folder, corpus, seed, range(tally.n_done, stop)))
            yield tally


def read_state(path: Path | None) -> dict[str, Tally]:
    """Return what earlier runs have found."""
    if path is None or not path.exists():
        return {}
    stored = json.loads(path.read_text())
    for own in stored.values():
        own["outcomes"] = Counter(own["outcomes"])
    return {name: Tally(**own) for name, own in stored.items()}


def write_state(path: Path | None, tallies: dict[str, Tally]) -> None:
    """Keep what has been found so far, whole at any time."""
    if path is not None:
        draft = path.with_name(f"{path.name}.tmp")
        draft.write_text(json.dumps({name: vars(own) for name, own in tallies.items()}))
        draft.replace(path)


def show(tallies: dict[str, Tally]) -> None:
    """Print the counts, and all findings."""
    header = ["target", "executions", "accepted", "refused", "slowest (s)", "memory (MB)", ""]
    rows = []
    for name, own in tallies.items():
        sound = not own.findings and own.memory < 1e6 * MEGABYTES
        counts = [str(own.outcomes[outcome]) for outcome in ("accepted", "refused")]
        measured = f"{own.slowest:.3f}", f"{own.memory / 1e6:.1f}"
        rows.append([name, str(own.n_done), *counts, *measured, verdict(sound)])
    print_table("Damaged and forged input", header, rows)
    for name, own in tallies.items():
        for what, numbers in own.findings.items():
            print(f"{name}: {what} (executions {', '.join(map(str, numbers))})")


def main() -> None:
    """Fuzz and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), help=", ".join(TARGETS))
    parser.add_argument("--executions", type=int, default=5000, help="of each target")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, help="file to go on from")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="write the input of one")
    options = parser.parse_args()
    if options.show is not None:
        with tempfile.TemporaryDirectory() as folder:
            target = TARGETS[options.targets[0]]
            corpus = target.prepare(Path(folder))
            print(content_of(target, corpus, options.seed, options.show))
        return
    print(environment())
    tallies = read_state(options.state)
    for name in options.targets:
        own = tallies.setdefault(name, Tally())
        deadline = time.monotonic() + options.seconds
        for _ in fuzz(name, options.executions, deadline, options.seed, own):
            write_state(options.state, tallies)
    show({name: tallies[name] for name in options.targets})


if __name__ == "__main__":
    main()
