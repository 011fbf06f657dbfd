"""What sweeps cost beside one read of X: time, passes and memory; and what the import costs.

One read is ``X.sum()`` in NumPy, on one thread; the product of X with a vector by BLAS, on all
threads, stands beside it. Reads and sweeps take turns, and the fastest of each counts.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from _memory import peak_above_data
from _report import environment, print_table, size_name, verdict
from numpy.typing import NDArray

from pyfastr import FasTRRegressor
from pyfastr.datasets import make_tensor_regression
from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.problem import Problem, make_problem
from pyfastr.solver.sweep import cyclic_sweep, simultaneous_sweep
from pyfastr.sources import as_source, largest_entry

Array = NDArray[Any]

SIZES = {
    "200x200x5": (1000, (200, 200, 5)),
    "51x61x23": (360, (51, 61, 23)),
    "24x24x24x24": (50, (24, 24, 24, 24)),
}
QUICK_SIZES = {
    "40x40x5": (100, (40, 40, 5)),
    "20x24x10": (60, (20, 24, 10)),
    "10x10x10x10": (20, (10, 10, 10, 10)),
}
COUNTED_SHAPES = ((60, 50), (20, 12, 10), (8, 7, 6, 5), (6, 5, 4, 4, 3))
DTYPES = ("float32", "float64")
N_LOCKSTEP = 128
RIDGE = 1e-5

# What is asked for.
SWEEP_LIMIT = 1.7
LOCKSTEP_LIMIT = 1 / 5
MEMORY_SHARE, MEMORY_BYTES = 0.10, 200e6
# "Close to" importing sklearn.base.
IMPORT_LIMIT = 1.25


def required_passes(n_modes: int, order: str) -> float:
    """Reads of X a sweep: the floor of the multi-sweep tree, or one for all modes."""
    return 1.0 if order == "simultaneous" else n_modes / (n_modes - 1)


@dataclass(frozen=True)
class Case:
    """A size and a type of X."""

    n_samples: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def cells(self) -> list[str]:
        """First cells of a table's row."""
        return [size_name(self.shape, self.n_samples), self.dtype]

    @property
    def n_bytes(self) -> int:
        """Size of X."""
        return self.n_samples * prod(self.shape) * np.dtype(self.dtype).itemsize

    def data(self) -> tuple[Array, Array]:
        """Draw X and y."""
        return make_tensor_regression(self.n_samples, self.shape, dtype=self.dtype, random_state=0)


class Sweeper:
    """A batch of models that goes on sweeping, each call from where the last one ended."""

    def __init__(self, X: Array, y: Array, n_models: int, order: str = "cyclic") -> None:
        self.problem = _problem(X, y)
        rng = np.random.default_rng(0)
        self.models = Models.random(n_models, 1, X.shape[1:], rng).astype(X.dtype)
        self._sweep = cyclic_sweep if order == "cyclic" else simultaneous_sweep

    def __call__(self, n_sweeps: int = 1) -> None:
        for _ in range(n_sweeps):
            self.models, _ = self._sweep(self.problem, self.models, Penalty(RIDGE))

    def count_passes(self, n_sweeps: int) -> float:
        """Reads of X a sweep."""
        before = self.problem.engine.passes
        self(n_sweeps)
        return (self.problem.engine.passes - before) / n_sweeps


def _problem(X: Array, y: Array) -> Problem:
    source = as_source(X)
    return make_problem(source, y.astype(float), x_scale=largest_entry(source), fit_intercept=True)


def fastest(works: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Seconds of each work, the least of some repeats in which they take turns."""
    least = dict.fromkeys(works, np.inf)
    for turn in range(repeats + 1):
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            if turn > 0:  # the first turn warms up
                least[name] = min(least[name], time.perf_counter() - begin)
    return least


@dataclass(frozen=True)
class Timing:
    """Seconds of one read by NumPy and by BLAS, of a sweep in each order, and of the lockstep."""

    read: float
    blas: float
    sweeps: dict[str, float]
    passes: dict[str, float]
    lockstep: float


def measure(case: Case, repeats: int) -> Timing:
    """Time reads and sweeps of one size."""
    X, y = case.data()
    flat, vector = X.reshape(len(X), -1), np.ones(prod(case.shape), case.dtype)
    # After so many sweeps of the multi-sweep tree its pattern repeats.
    period = len(case.shape) - 1
    orders = ("cyclic", "simultaneous")
    sweepers = {order: Sweeper(X, y, 1, order) for order in orders}
    least = fastest(
        {
            "read": X.sum,
            "blas": lambda: flat @ vector,
            **{order: partial(sweepers[order], period) for order in orders},
        },
        repeats,
    )
    passes = {order: sweepers[order].count_passes(period) for order in orders}
    lockstep = fastest({"all": Sweeper(X, y, N_LOCKSTEP)}, max(1, repeats // 3))["all"]
    sweeps = {order: least[order] / period for order in orders}
    return Timing(least["read"], least["blas"], sweeps, passes, lockstep)


def milliseconds(seconds: float) -> str:
    """Format a time with three digits that count."""
    value = 1e3 * seconds
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}"


def read_cells(case: Case, timing: Timing) -> list[str]:
    """Describe one read of X."""
    speed = case.n_bytes / timing.read / 1e9
    return [
        *case.cells,
        f"{case.n_bytes / 1e6:.0f}",
        milliseconds(timing.read),
        f"{speed:.1f}",
        milliseconds(timing.blas),
        f"{timing.blas / timing.read:.2f}",
    ]


def sweep_cells(case: Case, timing: Timing, order: str) -> list[str]:
    """Describe a sweep of one model."""
    passes, seconds = timing.passes[order], timing.sweeps[order]
    wanted = required_passes(len(case.shape), order)
    ratio = seconds / (passes * timing.read)
    return [
        *case.cells,
        order,
        f"{passes:.3g}",
        f"≤ {wanted:.3g}",
        milliseconds(seconds),
        f"{ratio:.2f}",
        f"≤ {SWEEP_LIMIT:g}",
        verdict(passes <= wanted + 1e-9 and ratio <= SWEEP_LIMIT),
        f"{seconds / (passes * timing.blas):.2f}",
    ]


def lockstep_cells(case: Case, timing: Timing) -> list[str]:
    """Compare a model in a batch with a model alone."""
    alone, each = timing.sweeps["cyclic"], timing.lockstep / N_LOCKSTEP
    return [
        *case.cells,
        milliseconds(alone),
        milliseconds(timing.lockstep),
        milliseconds(each),
        f"{each / alone:.3f}",
        f"≤ {LOCKSTEP_LIMIT:.3f}",
        verdict(each / alone <= LOCKSTEP_LIMIT),
    ]


def report_times(cases: list[Case], repeats: int) -> None:
    """Time all cases and print what they cost."""
    timings = [(case, measure(case, repeats)) for case in cases]
    header = ["size (N)", "type", "MB", "NumPy ms", "GB/s", "BLAS ms", "BLAS/NumPy"]
    print_table("One read of X", header, [read_cells(*pair) for pair in timings])
    header = ["size (N)", "type", "order", "passes", "required", "ms", "/ (passes × read)"]
    header += ["required", "", "/ (passes × BLAS read)"]
    rows = [sweep_cells(*pair, order) for pair in timings for order in pair[1].sweeps]
    print_table("One sweep of one model", header, rows)
    header = ["size (N)", "type", "alone ms", f"{N_LOCKSTEP} ms", "each ms", "each/alone"]
    rows = [lockstep_cells(*pair) for pair in timings]
    title = f"A sweep of {N_LOCKSTEP} models in lockstep, each beside one alone"
    print_table(title, [*header, "required", ""], rows)


def report_passes() -> None:
    """Count the reads of X a sweep for every order of the tensor."""
    rows = []
    for shape in COUNTED_SHAPES:
        X, y = make_tensor_regression(30, shape, random_state=0)
        for order in ("cyclic", "simultaneous"):
            passes = Sweeper(X, y, 1, order).count_passes(4 * (len(shape) - 1))
            wanted = required_passes(len(shape), order)
            cells = [f"{len(shape)}", order, f"{passes:.4g}", f"{wanted:.4g}"]
            rows.append([*cells, verdict(passes <= wanted + 1e-9)])
    print_table("Counted passes over X a sweep", ["modes", "order", "passes", "required", ""], rows)


def sweep_one(data: tuple[Array, Array]) -> None:
    """Sweep one model until every intermediate has been made."""
    Sweeper(*data, 1)(2 * data[0].ndim)


def sweep_many(data: tuple[Array, Array]) -> None:
    """Sweep the lockstep once."""
    Sweeper(*data, N_LOCKSTEP)()


def fit(n_init: int, data: tuple[Array, Array]) -> None:
    """Fit the regressor as a user does, with a given number of starts."""
    FasTRRegressor(n_init=n_init, random_state=0).fit(*data)


def report_memory(cases: list[Case], n_init: int) -> None:
    """Measure and print the peak memory above X."""
    works: dict[str, Callable[..., None]] = {
        "one model": sweep_one,
        f"{N_LOCKSTEP} models": sweep_many,
    }
    if n_init:
        works[f"fit, n_init={n_init}"] = partial(fit, n_init)
    rows = []
    for case in cases:
        limit = max(MEMORY_SHARE * case.n_bytes, MEMORY_BYTES)
        for name, work in works.items():
            peak = peak_above_data(Case.data, work, case)
            cells = [f"{peak / 1e6:.0f}", f"{peak / case.n_bytes:.1%}", f"≤ {limit / 1e6:.0f}"]
            rows.append([*case.cells, name, *cells, verdict(peak <= limit)])
    header = ["size (N)", "type", "work", "MB", "of X", "required", ""]
    print_table("Peak memory above X", header, rows)


def import_seconds(statement: str) -> float:
    """Time that a statement's imports take, by Python's own count, the least of five runs."""

    def total(code: str) -> float:
        command = [sys.executable, "-X", "importtime", "-c", code]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        own = re.findall(r"^import time: +(\d+)", run.stderr, re.MULTILINE)
        return sum(map(int, own)) / 1e6

    return min(total(statement) for _ in range(5)) - min(total("pass") for _ in range(5))


def report_imports() -> None:
    """Time the imports and print them beside scikit-learn's base."""
    unit = import_seconds("import sklearn.base")
    rows = [["import sklearn.base", milliseconds(unit), "1.00", "", ""]]
    for statement in ("import pyfastr", "from pyfastr import FasTRRegressor"):
        seconds = import_seconds(statement)
        ratio = seconds / unit
        cells = [f"{ratio:.2f}", f"≤ {IMPORT_LIMIT:g}", verdict(ratio <= IMPORT_LIMIT)]
        rows.append([statement, milliseconds(seconds), *cells])
    print_table("Imports", ["statement", "ms", "ratio", "required", ""], rows)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    parts = ("passes", "times", "memory", "imports")
    add("--parts", nargs="+", choices=parts, default=parts, help="what to measure (default: all)")
    add("--only", nargs="+", metavar="SIZE", help="sizes, such as 51x61x23")
    add("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    add("--repeats", type=int, default=9, help="of each timing")
    add("--fit-starts", type=int, default=8, help="n_init of the fit whose memory counts; 0: none")
    add("--quick", action="store_true", help="small sizes, to try the script")
    return parser.parse_args()


def main() -> None:
    """Run the benchmark and print its tables."""
    options = parse()
    sizes = QUICK_SIZES if options.quick else SIZES
    unknown = set(options.only or ()) - set(sizes)
    if unknown:
        raise SystemExit(f"--only is {', '.join(sorted(unknown))}; expected of {', '.join(sizes)}.")
    cases = [Case(*sizes[k], d) for k in options.only or sizes for d in options.dtypes]
    print(environment())
    if options.quick:
        print("Small sizes, to try the script: the requirements are not meant for them.")
    if "passes" in options.parts:
        report_passes()
    if "times" in options.parts:
        report_times(cases, options.repeats)
    if "memory" in options.parts:
        report_memory(cases, options.fit_starts)
    if "imports" in options.parts:
        report_imports()


if __name__ == "__main__":
    main()
