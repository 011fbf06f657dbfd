"""Ten thousand small fits and one very large grid: memory, threads and open files stay as they are.

What is measured at the end of the first tenth, when all that is loaded late is there, is held
against what is measured later.
"""

import argparse
import gc
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
from _memory import resident
from _report import environment, print_table, verdict

import pyfastr
from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
    config_context,
)
from pyfastr.baselines import ElementaryRidge
from pyfastr.datasets import make_tensor_regression
from pyfastr.inference import permutation_test
from pyfastr.solver.progress import watched_by

# Megabytes that memory may grow by from the first tenth to the end: allocators keep some.
GROWTH = 10.0
QUICK = {"n_init": 2, "max_iter": 10, "tol": 0.1, "random_state": 0}
BUDGET = "16MB"
# Points of the large grid: thresholds, ridges and folds.
GRID = 40, 50, 5


@dataclass(frozen=True)
class Reading:
    """What the process has at one time."""

    n_done: int
    megabytes: float
    n_threads: int
    n_files: int


def read(n_done: int) -> Reading:
    """Look at this process."""
    n_files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return Reading(n_done, resident() / 1e6, threading.active_count(), n_files)


def make_fits(folder: Path) -> list[Callable[[], object]]:
    """Return small fits of many kinds, over and over."""
    X, y = make_tensor_regression(20, (4, 3), noise=0.3, random_state=0)
    counts = np.random.default_rng(0).poisson(np.exp(0.1 * y))
    np.save(folder / "X.npy", X)
    for number, sample in enumerate(X):
        np.save(folder / f"{number:02d}.npy", sample)
    paths = sorted(folder.glob("??.npy"))
    grid = {"thresholds": [0.0, 0.1], "ridges": [0.1], "n_terms": 1, "cv": 2, **QUICK}

    def keep_and_load() -> object:
        path = FasTRRegressor(**QUICK).fit(X, y).save(folder / "model.fastr")
        return pyfastr.load(path).predict(X)

    def resume() -> object:
        return FasTRRegressor(checkpoint=folder / "checkpoint", **QUICK).fit(X, y)

    return [
        lambda: FasTRRegressor(**QUICK).fit(X, y).predict(X),
        lambda: FasTRRegressor(ridge=0.1, n_terms=2, **QUICK).fit(X, y),
        lambda: FasTRRegressor(ridge=0.1, loss="poisson", **QUICK).fit(X, counts),
        lambda: FasTRClassifier(0.1, 0.1, loss="logistic", **QUICK).fit(X, y > 0).predict_proba(X),
        lambda: FasTRRegressor(ridge=0.1, **QUICK).fit(np.load(folder / "X.npy", mmap_mode="r"), y),
        lambda: FasTRRegressor(ridge=0.1, **QUICK).fit(paths, y),
        lambda: FasTRRegressorCV(**grid).fit(X, y),
        lambda: FasTRClassifierCV(**grid).fit(X, y > 0),
        lambda: TensorScaler().fit(paths).transform(X),
        lambda: permutation_test(
            FasTRRegressor(ridge=0.1, **QUICK), X, y, n_permutations=4, random_state=0
        ),
        lambda: ElementaryRidge().fit(X, y),
        keep_and_load,
        resume,
    ]


def fit_often(n_fits: int, folder: Path) -> Iterator[Reading]:
    """Fit one kind after another; yield a reading for each hundredth."""
    fits = make_fits(folder)
    for number in range(1, n_fits + 1):
        fits[number % len(fits)]()
        if number % max(1, n_fits // 100) == 0:
            # Cycles are no leak; what is reached from somewhere is.
            gc.collect()
            yield read(number)


def fit_large_grid() -> list[Reading]:
    """Fit a grid of many thousand points; return a reading for each step."""
    X, y = make_tensor_regression(60, (8, 7, 6), noise=0.5, random_state=0)
    n_thresholds, n_ridges, n_folds = GRID
    model = FasTRRegressorCV(
        np.linspace(0, 0.9, n_thresholds), np.geomspace(1e-3, 1e2, n_ridges), 1, cv=n_folds, **QUICK
    )
    numbers, readings = count(1), list[Reading]()
    with watched_by(lambda event: readings.append(read(next(numbers)))):
        model.fit(X, y)
    del model
    gc.collect()
    return [*readings, read(next(numbers))]


def judge(readings: list[Reading]) -> list[str]:
    """Hold the end of a run against its first tenth."""
    settled = readings[len(readings) // 10 :]
    half = len(settled) // 2
    early, late = (
        np.median([r.megabytes for r in part]) for part in (settled[:half], settled[half:])
    )
    slope = np.polyfit([r.n_done for r in settled], [r.megabytes for r in settled], 1)[0]
    threads, files = ({getattr(r, n) for r in settled} for n in ("n_threads", "n_files"))
    sound = late - early < GROWTH and len(threads) == len(files) == 1
    sizes = f"{early:.1f}", f"{late:.1f}", f"{1e6 * slope:.0f}"
    return [*sizes, _range(threads), _range(files), verdict(sound)]


def judge_grid(when: str, readings: list[Reading]) -> list[str]:
    """Hold the end of a grid against its begin, by which all samples have been read once."""
    first, last = readings[0], readings[-1]
    peak = max(reading.megabytes for reading in readings)
    n_thresholds, n_ridges, n_folds = GRID
    # What a grid keeps of all its points is freed with the model; allocators keep it for the next.
    flat = when == "once" or peak - first.megabytes < GROWTH
    sound = flat and (first.n_threads, first.n_files) == (last.n_threads, last.n_files)
    sizes = (f"{size:.1f}" for size in (first.megabytes, peak, last.megabytes))
    counts = (f"{r.n_threads}, {r.n_files}" for r in (first, last))
    return [f"{n_thresholds * n_ridges * n_folds} fits, {when}", *sizes, *counts, verdict(sound)]


def _range(values: set[int]) -> str:
    return "–".join(map(str, sorted({min(values), max(values)})))


def main() -> None:
    """Soak and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=10_000)
    options = parser.parse_args()
    print(environment())
    began = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        config_context(memory_budget=BUDGET),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        readings = list(fit_often(options.fits, Path(folder)))
    rows = [[f"{options.fits} small fits", *judge(readings)]]
    with config_context(memory_budget=BUDGET), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows_of_grid = [judge_grid(when, fit_large_grid()) for when in ("once", "again")]
    header = ["", "early (MB)", "late (MB)", "bytes a fit", "threads", "open files", ""]
    print_table("Small fits, from the first tenth on", header, rows)
    header = ["", "before (MB)", "peak (MB)", "after (MB)", "threads, files before", "after", ""]
    print_table("A very large grid", header, rows_of_grid)
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
