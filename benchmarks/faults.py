"""Faults: interrupts, kills, full disks, reads that fail; what is left behind by each, if anything.

Disks need root, who can mount small ones; without, they are left out. Time to stop is that of the
processor, which other programs do not lengthen, beside that of the clock.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import _faults as faults
import numpy as np
from _interrupts import interrupt_often, make_cases
from _report import environment, print_table, verdict

SECONDS = 2.0
# Bytes of a disk on which a study has room to begin.
ROOM = 1 << 18


@dataclass
class Row:
    """What came of many faults of one kind."""

    name: str
    n_done: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, left: list[str], seconds: float) -> None:
        """Count one."""
        self.n_done += 1
        self.wrong += left[:3]
        self.seconds.append(seconds)


def interrupts(n_times: int, seed: int) -> Iterator[Row]:
    """Interrupt fits so often; a row for each kind of fit, and one that counts those under way."""
    rows: dict[str, Row] = {}
    works, n_hit = [0.0], 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for own in interrupt_often(make_cases(place), n_times, seed, place):
            row = rows.setdefault(own.case, Row(f"interrupt: {own.case}"))
            row.add(own.left, own.seconds)
            works.append(own.work)
            n_hit += own.hit
    yield from rows.values()
    slow = [f"{max(works):.2f} s of work until it stopped"] if max(works) > SECONDS else []
    yield Row("interrupts of fits under way, processor's time", n_hit, slow, works)


def repeated(
    name: str, n_times: int, work: Callable[[Path], list[str]], place: Callable[[], object]
) -> Row:
    """Do some work in a fresh place many times."""
    row = Row(name)
    for _ in range(n_times):
        began = time.perf_counter()
        with place() as folder:  # type: ignore[attr-defined]
            left = work(Path(folder))
        row.add(left, time.perf_counter() - began)
    return row


def kills(n_times: int, rng: np.random.Generator) -> Iterator[Row]:
    """Kill saves, fits and studies; studies cost most and are fewest."""
    n_studies = max(1, n_times // 5)
    n_saves = (n_times - n_studies) // 2
    counts = {
        faults.kill_a_save: n_saves,
        faults.kill_a_fit: n_times - n_studies - n_saves,
        faults.kill_a_study: n_studies,
    }
    for work, count in counts.items():
        name = f"kill: {work.__name__.removeprefix('kill_a_')}"
        yield repeated(
            name, count, lambda folder, work=work: work(folder, rng), tempfile.TemporaryDirectory
        )


def disks(n_times: int) -> Iterator[Row]:
    """Fill disks under saves, fits and studies."""
    works = (
        faults.save_on_a_full_disk,
        faults.begin_a_fit_on_a_full_disk,
        faults.go_on_with_a_fit_on_a_full_disk,
        faults.study_on_a_full_disk,
    )
    for number, work in enumerate(works):
        count = len(range(number, n_times, len(works)))
        name = f"full disk: {work.__name__.removesuffix('_on_a_full_disk').replace('_', ' ')}"
        yield repeated(name, count, work, lambda: faults.small_disk(ROOM))


def reads(n_times: int, rng: np.random.Generator) -> Iterator[Row]:
    """Damage a file of samples before it is read."""
    for name in faults.ESTIMATORS:
        yield repeated(
            f"read: {name}",
            n_times,
            lambda folder, name=name: faults.break_a_read(name, folder, rng),
            tempfile.TemporaryDirectory,
        )


def main() -> None:
    """Try all and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interrupts", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--disks", type=int, default=10)
    parser.add_argument("--reads", type=int, default=4, help="of each estimator")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(environment())
    rng = np.random.default_rng(options.seed)
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # First what forks, while there are few threads.
        rows += kills(options.kills, rng) if options.kills else []
        rows += disks(options.disks) if options.disks and faults.can_mount() else []
        rows += reads(options.reads, rng) if options.reads else []
        rows += interrupts(options.interrupts, options.seed) if options.interrupts else []
    table = [
        [row.name, str(row.n_done), f"{max(row.seconds):.2f}", str(len(row.wrong)), ""]
        for row in rows
        if row.n_done
    ]
    for line, row in zip(table, (row for row in rows if row.n_done), strict=True):
        line[-1] = verdict(not row.wrong)
    print_table("Faults", ["fault", "times", "longest (s)", "left, lost or corrupt", ""], table)
    for row in rows:
        for what in row.wrong:
            print(f"{row.name}: {what}")


if __name__ == "__main__":
    main()
