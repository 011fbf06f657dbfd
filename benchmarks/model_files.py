"""Model files: what saving and loading cost, and how damaged and forged files are met.

Every mutated file must load or be refused with ModelFileError within a second and 200 MB, and
whatever loads must answer. The memory is the peak of the process above what it had before.
"""

import argparse
import runpy
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _memory import peak_above_data
from _mutations import ask, mutate
from _report import environment, print_table, verdict

from pyfastr import load, save
from pyfastr.persistence import ModelFileError

MODELS = Path(__file__).parents[1] / "tests" / "data" / "models"
SECONDS, MEGABYTES = 1.0, 200.0
REPEATS = 20


def make_models() -> dict[str, Any]:
    """Return a fitted model of every kind."""
    script = runpy.run_path(str(MODELS / "make_models.py"))
    return {make.__name__: make()[0] for make in script["MAKERS"]}


def measure_kinds(models: dict[str, Any], folder: Path) -> None:
    """Print size and times of a file of every kind."""
    rows = []
    for name, model in models.items():
        path = folder / f"{name}.fastr"
        saving, loading = best_time(save, model, path), best_time(load, path)
        sizes = f"{path.stat().st_size / 1e3:.1f}", f"{1e3 * saving:.1f}", f"{1e3 * loading:.1f}"
        rows.append([name, *sizes])
    print_table("Files of every kind", ["kind", "size (kB)", "save (ms)", "load (ms)"], rows)


def best_time(work: Callable[..., Any], *args: Any) -> float:
    """Return the seconds of the fastest of several calls."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work(*args)
        times.append(time.perf_counter() - began)
    return min(times)


def try_mutants(corpus: list[bytes], n_mutants: int, seed: int) -> tuple[Counter[str], float]:
    """Return how many files loaded or were refused, and the seconds of the slowest."""
    rng, counts, slowest = np.random.default_rng(seed), Counter[str](), 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant.fastr"
        for _ in range(n_mutants):
            path.write_bytes(mutate(corpus, rng))
            began = time.perf_counter()
            model, outcome = attempt(path)
            slowest = max(slowest, time.perf_counter() - began)
            if model is not None:
                ask(model)
            counts[outcome] += 1
    return counts, slowest


def attempt(path: Path) -> tuple[Any, str]:
    """Load a file; any error but ours ends the benchmark."""
    try:
        return load(path), "loaded, and answered"
    except ModelFileError as error:
        told_apart = error.__cause__ is None
        return None, "refused, with the reason" if told_apart else "refused, by contradiction"


def read_corpus(folder: str, n_mutants: int, seed: int) -> tuple[list[bytes], int, int]:
    """Return sound files, and warm up all that loading imports."""
    paths = sorted(Path(folder).glob("*.fastr"))
    for path in paths:
        ask(load(path))
    return [path.read_bytes() for path in paths], n_mutants, seed


def work_on_mutants(task: tuple[list[bytes], int, int]) -> None:
    """Try the mutants again in a process whose memory is watched."""
    try_mutants(*task)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=10_000, help="number of damaged files")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(environment())
    with tempfile.TemporaryDirectory() as folder:
        measure_kinds(make_models(), Path(folder))
        task = read_corpus(folder, options.mutations, options.seed)
        counts, slowest = try_mutants(*task)
        peak = peak_above_data(read_corpus, work_on_mutants, folder, *task[1:]) / 1e6
    rows = [[outcome, str(count)] for outcome, count in counts.most_common()]
    print_table(f"{options.mutations} mutated files", ["outcome", "number"], rows)
    limits = [
        ["slowest (s)", f"{slowest:.3f}", f"{SECONDS:g}", verdict(slowest < SECONDS)],
        ["memory (MB)", f"{peak:.1f}", f"{MEGABYTES:g}", verdict(peak < MEGABYTES)],
    ]
    print_table("Limits", ["measure", "worst", "limit", ""], limits)


if __name__ == "__main__":
    main()
