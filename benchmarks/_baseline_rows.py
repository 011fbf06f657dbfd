"""The rows of ``accuracy.py --methods``: each baseline beside what its authors' code reached."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from statistics import median

from _baseline_fits import BASELINES
from _fits import Job, Outcome, Worker
from _report import print_table, size_name
from _results import Results

# CE and mean squared error of the authors' codes on one data set of each size, their parameters
# picked on fresh samples. What is missing was not run.
MEASURED: dict[str, dict[str, tuple[float, float]]] = {
    "gltrm": {
        "20x20": (2.10, 809),
        "5x5x5": (0.0081, 0.0120),
        "10x10x10": (0.0050, 0.0126),
        "100x100": (0.0007, 0.0129),
        "100x100x5": (0.0004, 0.0175),
    },
    "gltrm_sparse": {
        "20x20": (1.00, 188),
        "5x5x5": (0.0081, 0.0120),
        "10x10x10": (0.0047, 0.0124),
        "100x100": (0.0007, 0.0129),
    },
    "remurs_top6": {
        "20x20": (0.843, 136),
        "5x5x5": (0.019, 0.019),
        "10x10x10": (0.198, 3.5),
        "100x100": (0.0013, 0.019),
        "100x100x5": (0.503, 7271),
    },
    "sturm": {
        "20x20": (0.853, 140),
        "5x5x5": (0.030, 0.028),
        "10x10x10": (0.824, 63),
        "100x100": (0.0012, 0.018),
        "100x100x5": (0.974, 26000),
    },
    "surf": {
        "20x20": (1.09, 219),
        "5x5x5": (0.012, 0.014),
        "10x10x10": (0.291, 8.0),
        "100x100": (0.103, 52),
        "100x100x5": (1.05, 30900),
    },
    "published_tuned": {
        "20x20": (0.937, 164),
        "5x5x5": (0.0080, 0.0120),
        "10x10x10": (0.578, 29),
        "100x100": (0.0007, 0.0134),
        "100x100x5": (0.0015, 0.092),
    },
}

ROUNDING = 5e-5


@dataclass(frozen=True)
class BaselineRow:
    """One size of the paper's simulation."""

    shape: tuple[int, ...]
    n_samples: int
    n_seeds: int = 10

    @property
    def size_key(self) -> str:
        """Name on the command line."""
        return "x".join(map(str, self.shape))

    @property
    def key(self) -> str:
        """Name in the file of outcomes."""
        return f"{self.size_key} tuned"

    @property
    def name(self) -> str:
        """Name in a table."""
        return size_name(self.shape, self.n_samples)


BASELINE_ROWS = (
    BaselineRow((20, 20), 40),
    BaselineRow((5, 5, 5), 100),
    BaselineRow((10, 10, 10), 100),
    BaselineRow((100, 100), 1000),
    # Minutes for one choice of some: raise --limit.
    BaselineRow((100, 100, 5), 500),
)


def chosen_methods(options: argparse.Namespace) -> list[str]:
    """Methods that were asked for."""
    return list(BASELINES) if "all" in options.methods else list(options.methods)


def chosen_rows(keys: Sequence[str] | None) -> list[BaselineRow]:
    """Rows of the sizes that were asked for."""
    return [row for row in BASELINE_ROWS if keys is None or row.size_key in keys]


def run_baselines(results: Results, options: argparse.Namespace) -> None:
    """Do every choice that is not known yet; a method that hits the limit leaves the row."""
    worker = Worker(options.threads, BASELINES)
    for row in chosen_rows(options.rows):
        too_slow = set()
        for seed in range(options.seeds or row.n_seeds):
            for method in chosen_methods(options):
                outcome = results.get(row, seed, method)
                if outcome is None and method not in too_slow:
                    job = Job(method, row.shape, row.n_samples, seed)
                    outcome = worker.run(job, options.limit)
                    results.add(row, seed, method, outcome)
                    print(f"{row.name} seed {seed} {method}: {told(outcome)}", file=sys.stderr)
                if outcome is not None and outcome.ce is None:
                    too_slow.add(method)
    worker.close()


def told(outcome: Outcome) -> str:
    """Say in a few words what was chosen."""
    if outcome.ce is None:
        return f"ended after {outcome.seconds:g} s"
    info = [f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in outcome.info.items()]
    return ", ".join([f"CE {outcome.ce:.4f}", f"{outcome.seconds:.2f} s", *info])


def report_baselines(results: Results, options: argparse.Namespace) -> None:
    """Print a table for each size."""
    header = ["method", "seeds", "median CE", "least", "largest", "authors' CE", ""]
    header += ["median MSE", "authors' MSE", "seconds"]
    for row in chosen_rows(options.rows):
        cells = [method_cells(results, row, method) for method in chosen_methods(options)]
        print_table(f"{row.name}, parameters picked on fresh samples", header, cells)


def method_cells(results: Results, row: BaselineRow, method: str) -> list[str]:
    """Describe the errors of a method beside those of its authors' code."""
    outcomes = list(results.of(row, method).values())
    done = [o for o in outcomes if o.ce is not None and isfinite(o.ce)]
    reference = MEASURED.get(method, {}).get(row.size_key)
    theirs = [f"{value:.4g}" for value in reference] if reference else ["–", "–"]
    if not done:
        why = outcomes[0].info.get("error", "too slow") if outcomes else "not run"
        return [method, "0", "–", "–", "–", theirs[0], why, "–", theirs[1], "–"]
    errors = [o.ce for o in done]
    return [
        method,
        str(len(done)),
        f"{median(errors):.4f}",
        f"{min(errors):.4f}",
        f"{max(errors):.4f}",
        theirs[0],
        compared(errors, reference),
        f"{median(o.info.get('mse', inf) for o in done):.4g}",
        theirs[1],
        f"{median(o.seconds for o in done):.2f}",
    ]


def compared(errors: list[float], reference: tuple[float, float] | None) -> str:
    """Place the authors' error, printed with two digits or four decimals, among all seeds."""
    if reference is None:
        return ""
    theirs, rounding = reference[0], 0.05 * reference[0] + ROUNDING
    if theirs - rounding > max(errors):
        return "below"
    return "ABOVE" if theirs + rounding < min(errors) else "within"
