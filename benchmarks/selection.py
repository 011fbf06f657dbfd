"""What cross-validation costs: 5 folds, 10 thresholds and 5 ridges beside other ways to choose.

``FasTRRegressorCV`` of one term makes the 250 fits in one batch, and the refit. Beside it stand its
25 fits without a threshold, which are those that tensorly can make, the 250 fits one by one
(without a refit; by ``FasTRRegressor`` with its defaults, and with no more starts and sweeps than
the folds make), tensorly's ``CPRegressor`` over the same folds and ridges, all extrapolated from
some of their fits, and the lasso and elastic net of scikit-learn, celer and adelie on the flattened
samples. Every method runs in a process of its own, and is ended at ``--limit`` seconds.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, prod
from pathlib import Path

from _fits import Array, Job, Outcome, Worker, make_data
from _memory import peak_above_data
from _report import environment, print_table, size_name, verdict
from _results import Results
from _selection_fits import EXTRAPOLATED, SELECTIONS
from threadpoolctl import threadpool_limits

from pyfastr import FasTRRegressorCV

# How many times as long as ours the others must take, at least.
REQUIRED = {"one by one": 6.0, "tensorly": 20.0, "LassoCV": 1.0, "ElasticNetCV": 1.0}
MEMORY_SHARE, MEMORY_BYTES = 0.20, 500e6
MEMORY = "memory"
SEED = 0


@dataclass(frozen=True)
class Size:
    """A size of the paper's simulation."""

    shape: tuple[int, ...]
    n_samples: int

    @property
    def key(self) -> str:
        """Name on the command line."""
        return "x".join(map(str, (self.n_samples, *self.shape)))

    @property
    def name(self) -> str:
        """Name in a table."""
        return size_name(self.shape, self.n_samples)

    @property
    def n_bytes(self) -> int:
        """Size of X."""
        return 8 * self.n_samples * prod(self.shape)


SIZES = (
    Size((100, 100), 1000),
    Size((30, 30, 30), 100),
    Size((51, 61, 23), 360),
)
QUICK_SIZES = (Size((10, 10), 100), Size((5, 5, 5), 60))


def run(sizes: Sequence[Size], results: Results, options: argparse.Namespace) -> None:
    """Do what is not known yet."""
    for size in sizes:
        for method in options.only:
            if results.get(size, SEED, method) is None:
                outcome = measure(size, method, options)
                results.add(size, SEED, method, outcome)
                print(f"{size.name} {method}: {describe(outcome, method)}", file=sys.stderr)


def measure(size: Size, method: str, options: argparse.Namespace) -> Outcome:
    """Time a method, or take our peak memory, in a process that is new."""
    if method == MEMORY:
        return Outcome(0.0, 0.0, {"peak": peak_above_data(draw, choose, size, options.threads)})
    params = {}
    if method in EXTRAPOLATED:
        params = {"n_fits": options.fits, "limit": options.limit}
    job = Job(method, size.shape, size.n_samples, SEED, params)
    worker = Worker(options.threads, SELECTIONS)
    try:
        return worker.run(job, options.limit)
    finally:
        worker.close()


def draw(size: Size, threads: int | None) -> tuple[Array, Array, int | None]:
    """Draw X and y."""
    X, y, _ = make_data(size.shape, size.n_samples, SEED)
    return X, y, threads


def choose(data: tuple[Array, Array, int | None]) -> None:
    """Choose and refit as a user does."""
    X, y, threads = data
    with threadpool_limits(threads):
        FasTRRegressorCV(random_state=0).fit(X, y)


def describe(outcome: Outcome, method: str) -> str:
    """Say in a few words what came of a method."""
    if method == MEMORY:
        return f"{outcome.info['peak'] / 1e6:.0f} MB above X"
    return f"{seconds_cell(outcome)} s {note(outcome)}".rstrip()


def seconds_cell(outcome: Outcome) -> str:
    """Format a time, or the limit that was hit."""
    if outcome.ce is None:
        return f"> {outcome.seconds:g}"
    return "–" if failed(outcome) else f"{outcome.seconds:.2f}"


def failed(outcome: Outcome) -> bool:
    """Whether there is an error in place of a time."""
    return "error" in outcome.info


def note(outcome: Outcome) -> str:
    """What else is worth a place in the table."""
    info = outcome.info
    if failed(outcome):
        error = info["error"]
        return "not installed" if "not installed" in error else error.splitlines()[0]
    if "timed" in info:
        span = f"{info['least']:.2f} to {info['most']:.2f} s"
        return f"{info['total']} fits extrapolated from {info['timed']}, {span} each"
    if "threshold" in info:
        return f"chose threshold {info['threshold']:g}, ridge {info['ridge']:g}"
    return info.get("note", "")


def ratio_cells(method: str, outcome: Outcome, ours: Outcome | None) -> list[str]:
    """Time over ours, what is asked of it, and whether it holds."""
    required = REQUIRED.get(method)
    asked = "" if required is None else f"≥ {required:g}"
    if ours is None or ours.ce is None or failed(ours) or failed(outcome):
        return ["–", asked, "" if required is None else "not measured"]
    ratio = outcome.seconds / ours.seconds
    sign = "> " if outcome.ce is None else ""
    return [f"{sign}{ratio:.1f}", asked, ratio_verdict(ratio, required, bound=bool(sign))]


def ratio_verdict(ratio: float, required: float | None, *, bound: bool) -> str:
    """Whether a ratio, or a bound below it, is as large as asked."""
    if required is None:
        return ""
    if bound and ratio < required:
        return "unknown: raise --limit"
    return verdict(ratio >= required)


def error_cell(outcome: Outcome) -> str:
    """CE of what was chosen, where all was fitted."""
    known = outcome.ce is not None and isfinite(outcome.ce)
    return f"{outcome.ce:.4f}" if known else "–"


def print_times(size: Size, results: Results, methods: Sequence[str]) -> None:
    """Print the table of one size."""
    ours = results.get(size, SEED, "fastr")
    rows = []
    for method in methods:
        outcome = results.get(size, SEED, method)
        if method == MEMORY or outcome is None:
            continue
        name = method.replace("fastr", "FasTRRegressorCV")
        cells = [name, seconds_cell(outcome), *ratio_cells(method, outcome, ours)]
        rows.append([*cells, error_cell(outcome), note(outcome)])
    if rows:
        header = ["method", "seconds", "ratio to ours", "required", "", "CE", "note"]
        print_table(f"{size.name}: seconds of a cross-validation", header, rows)


def print_memory(sizes: Sequence[Size], results: Results) -> None:
    """Print our peak memory above X."""
    rows = []
    for size in sizes:
        outcome = results.get(size, SEED, MEMORY)
        if outcome is None:
            continue
        peak, limit = outcome.info["peak"], max(MEMORY_SHARE * size.n_bytes, MEMORY_BYTES)
        cells = [f"{size.n_bytes / 1e6:.0f}", f"{peak / 1e6:.0f}", f"{peak / size.n_bytes:.0%}"]
        rows.append([size.name, *cells, f"≤ {limit / 1e6:.0f}", verdict(peak <= limit)])
    if rows:
        header = ["size (N)", "X MB", "MB above X", "of X", "required", ""]
        print_table("Peak memory of FasTRRegressorCV above X", header, rows)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    known = (*SELECTIONS, MEMORY)
    add("--only", nargs="+", choices=known, default=known, metavar="METHOD", help=", ".join(known))
    add("--sizes", nargs="+", metavar="SIZE", help="such as 1000x100x100 (default: all)")
    add("--limit", type=float, default=300, help="seconds a method may take (default: 300)")
    add("--fits", type=int, default=10, help="to extrapolate from (default: 10)")
    add("--threads", type=int, help="threads of BLAS and of pyfastr (default: all)")
    add("--jsonl", type=Path, help="keep outcomes here, and do not repeat those that are")
    add("--redo", nargs="+", default=[], choices=known, metavar="METHOD", help="repeat these")
    add("--quick", action="store_true", help="small sizes, to try the script")
    options = parser.parse_args()
    sizes = QUICK_SIZES if options.quick else SIZES
    unknown = set(options.sizes or ()) - {size.key for size in sizes}
    if unknown:
        expected = ", ".join(size.key for size in sizes)
        parser.error(f"--sizes is {', '.join(sorted(unknown))}; expected of {expected}.")
    options.sizes = [size for size in sizes if size.key in (options.sizes or [size.key])]
    return options


def main() -> None:
    """Run the benchmark and print its tables."""
    options = parse()
    results = Results(options.jsonl, options.redo)
    print(environment())
    if options.quick:
        print("Small sizes, to try the script: the requirements are not meant for them.")
    if results.n_read:
        print(f"{results.n_read} outcomes are read from {options.jsonl}, from earlier runs.")
    run(options.sizes, results, options)
    for size in options.sizes:
        print_times(size, results, options.only)
    print_memory(options.sizes, results)


if __name__ == "__main__":
    main()
