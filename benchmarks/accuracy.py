"""How close fits with default parameters come to the true coefficient, and how long they take.

The data are the paper's simulation. CE is the relative error of the coefficient. Beside
``FasTRRegressor`` stand an oracle (least squares on the true support, started at the truth), the
paper's algorithm as published, tensorly's ``CPRegressor`` and scikit-learn's ``LassoCV``, all on
the same data in the same run. All rows take long, most of it in the peers: ``--jsonl`` keeps what
is done, and ``--help`` lists the other options.

With ``--cv`` it is ``FasTRRegressorCV`` whose choice is compared: with the oracle at several
sparsities, with the best of the grid where noise is as large as the signal.

With ``--methods all``, or the names of some, it is the baselines: each with parameters picked on
fresh samples, beside what the code of its authors reached.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf, isfinite, prod
from pathlib import Path
from statistics import mean, median
from typing import Any

from _baseline_fits import BASELINES
from _baseline_rows import report_baselines, run_baselines
from _fits import Job, Outcome, Worker
from _report import environment, print_table, size_name, verdict
from _results import Results
from _selection_rows import CHOICES, report_choices, run_choices

SUCCESS = 0.05
# The fits of rows from here on must not take longer than the lasso's.
TIMED_FROM = 900
# From here on the peers take minutes: they see fewer seeds.
LARGE = 40_000


@dataclass(frozen=True)
class Requirement:
    """What the errors of a row must keep to; None: not asked for."""

    every: float | None = None
    mean: float | None = None
    times_oracle: float | None = None
    success: float | None = None

    def __str__(self) -> str:
        parts = [
            ("every CE ≤ {:g}", self.every),
            ("mean CE ≤ {:g}", self.mean),
            ("median ≤ {:g} × oracle's", self.times_oracle),
            (f"CE < {SUCCESS:g} in {{:.0%}}", self.success),
        ]
        return ", ".join(text.format(value) for text, value in parts if value is not None)

    def holds(self, errors: list[float], oracle: list[float]) -> bool:
        """Whether the errors of all seeds keep to it."""
        checks = [
            self.every is None or max(errors) <= self.every,
            self.mean is None or mean(errors) <= self.mean,
            self.success is None or success(errors) >= self.success,
        ]
        if self.times_oracle is not None:
            checks.append(bool(oracle) and median(errors) <= self.times_oracle * median(oracle))
        return all(checks)


@dataclass(frozen=True)
class Row:
    """One size of the paper's simulation, and what is asked there."""

    shape: tuple[int, ...]
    n_samples: int
    paper: float | None
    required: Requirement | None
    n_seeds: int = 10
    # How many times as long as the lasso a fit may take.
    slower: float = 1.0
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Name on the command line."""
        return "x".join(map(str, self.shape))

    @property
    def name(self) -> str:
        """Name in a table."""
        return size_name(self.shape, self.n_samples)

    @property
    def n_elements(self) -> int:
        """Elements of a sample."""
        return prod(self.shape)


NEAR_ORACLE = Requirement(times_oracle=1.5, success=1.0)
ROWS = (
    Row((100, 100), 1000, 0.3436, Requirement(every=0.002)),
    Row((5, 5, 5), 100, 0.1205, NEAR_ORACLE),
    Row((10, 10, 10), 100, 0.1863, NEAR_ORACLE),
    Row((30, 30), 90, 0.3483, Requirement(success=0.95)),
    Row((15, 15, 15), 100, 0.6772, Requirement(success=0.95)),
    Row((20, 20, 20), 100, 0.8323, Requirement(success=0.95)),
    Row((25, 25, 25), 100, 0.8820, Requirement(success=0.95)),
    Row((30, 30, 30), 100, 0.8776, Requirement(success=0.90), slower=2.0),
    # The search was set up on the first 40 of these; the others show what that is worth.
    Row(
        *((20, 20), 40, 0.5284, Requirement(mean=0.10)),
        n_seeds=80,
        params={"refit_support": "evidence"},
    ),
    Row((100, 100, 5), 500, None, Requirement(every=0.01)),
    Row((200, 200, 5), 1000, 0.7334, Requirement(every=0.01)),
    # Fewer samples than free parameters even on the true support: nothing can be asked.
    Row((10, 10), 10, 0.7717, None),
)
QUICK = ("5x5x5", "10x10x10", "30x30", "20x20", "10x10")


def success(errors: list[float]) -> float:
    """Share of the fits that found the coefficient."""
    return mean(e < SUCCESS for e in errors)


def _given(value: int | None, default: int) -> int:
    """Return what was asked for; none at all is an answer too."""
    return default if value is None else value


def plan(row: Row, options: argparse.Namespace) -> Iterator[tuple[int, str, float]]:
    """Yield seed, method and time limit of every fit of a row, all methods of a seed together."""
    n_seeds = options.seeds or row.n_seeds
    large = row.n_elements >= LARGE
    n_peer = min(n_seeds, _given(options.peer_seeds, 2 if large else n_seeds))
    n_lasso = min(n_seeds, _given(options.lasso_seeds, 1 if large else 2))
    counts = {
        "fastr": (n_seeds, inf),
        "oracle": (n_seeds if row.required else 0, inf),
        "published": (n_peer, options.limit),
        "tensorly": (0 if options.no_tensorly else n_peer, options.limit),
        "lasso": (0 if options.no_lasso else n_lasso, options.lasso_limit),
    }
    for number in range(n_seeds):
        for method, (count, limit) in counts.items():
            if number < count:
                yield options.first_seed + number, method, limit


def run(rows: list[Row], results: Results, options: argparse.Namespace) -> None:
    """Do every fit that is not known yet; a method that hits its limit leaves the row."""
    worker = Worker(options.threads)
    for row in rows:
        too_slow = set()
        for seed, method, limit in plan(row, options):
            outcome = results.get(row, seed, method)
            if outcome is None and method not in too_slow:
                params = row.params if method == "fastr" else {}
                job = Job(method, row.shape, row.n_samples, seed, params)
                outcome = worker.run(job, None if limit == inf else limit)
                results.add(row, seed, method, outcome)
                print(f"{row.name} seed {seed} {method}: {describe(outcome)}", file=sys.stderr)
            if outcome is not None and outcome.ce is None:
                too_slow.add(method)
    worker.close()


def describe(outcome: Outcome) -> str:
    """Say in a few words what came of a fit."""
    if outcome.ce is None:
        return f"ended after {outcome.seconds:g} s"
    return f"CE {outcome.ce:.4f}, {outcome.seconds:.2f} s {outcome.info or ''}".rstrip()


def number(values: list[float], summary: Callable[[list[float]], float], form: str = ".4f") -> str:
    """Format a summary of values, a dash where there are none."""
    return format(summary(values), form) if values else "–"


def errors_of(results: Results, row: Row, method: str) -> list[float]:
    """Errors of all finished fits."""
    return [o.ce for o in results.of(row, method).values() if o.ce is not None]


def error_cells(results: Results, row: Row) -> list[str]:
    """Describe the errors of a row."""
    ours = errors_of(results, row, "fastr")
    oracle = errors_of(results, row, "oracle")
    if row.required is None:
        free = sum(round(0.8 * p) for p in row.shape) - len(row.shape) + 1
        required, passed = f"not identifiable: {row.n_samples} samples < {free} parameters", "–"
    else:
        required, passed = str(row.required), verdict(row.required.holds(ours, oracle))
    return [
        row.name,
        str(len(ours)),
        number(ours, median),
        number(ours, max),
        number(ours, mean),
        number(ours, success, ".0%"),
        number(oracle, median),
        *(number(errors_of(results, row, m), median, ".3f") for m in PEERS),
        "–" if row.paper is None else f"{row.paper:.3f}",
        required,
        passed,
    ]


PEERS = ("published", "tensorly", "lasso")


def seconds_cell(results: Results, row: Row, method: str) -> str:
    """Median time of a method, or the limit it did not meet."""
    outcomes = results.of(row, method).values()
    if any(o.ce is None for o in outcomes):
        return f"> {max(o.seconds for o in outcomes):g}"
    return number([o.seconds for o in outcomes], median, ".2f")


def ratios(results: Results, row: Row) -> list[float]:
    """Our time over the lasso's on the same seed, or on its median seed where it was not run."""
    lasso = {seed: o.seconds for seed, o in results.of(row, "lasso").items()}
    if not lasso:
        return []
    usual = median(lasso.values())
    return [o.seconds / lasso.get(seed, usual) for seed, o in results.of(row, "fastr").items()]


def speed_verdict(row: Row, times: list[float], bounds: bool) -> tuple[str, str]:
    """What is asked of the time, and whether the slowest fit or only the median keeps to it."""
    if row.required is None or row.n_elements < TIMED_FROM:
        return "–", "–"
    required = f"≤ {row.slower:g}"
    if not times:
        return required, "not measured"
    if max(times) > row.slower >= median(times):
        return required, "median only"
    if bounds and max(times) > row.slower:
        return required, "unknown: raise --lasso-limit"
    return required, verdict(max(times) <= row.slower)


def time_cells(results: Results, row: Row) -> list[str]:
    """Describe the times of a row."""
    ours = [o.seconds for o in results.of(row, "fastr").values()]
    times = ratios(results, row)
    # The lasso was ended: it takes longer, so the ratio is smaller.
    bounds = any(o.ce is None for o in results.of(row, "lasso").values())
    sign = "< " if bounds else ""
    return [
        row.name,
        number(ours, median, ".2f"),
        number(ours, max, ".2f"),
        *(seconds_cell(results, row, method) for method in PEERS),
        sign + number(times, median, ".3f"),
        sign + number(times, max, ".3f"),
        *speed_verdict(row, times, bounds),
    ]


def search_cells(results: Results, row: Row) -> list[str]:
    """Describe the search for the best start, and whether `starts_.sure` could be trusted."""
    outcomes = [
        o for o in results.of(row, "fastr").values() if o.ce is not None and "sure" in o.info
    ]
    starts = [o.info["n_starts"] for o in outcomes]
    found = [o.ce < SUCCESS for o in outcomes]
    sure = [o.info["sure"] for o in outcomes]
    pairs = list(zip(sure, found, strict=True))
    return [
        row.name,
        number(starts, median, ".0f"),
        number(starts, max, ".0f"),
        f"{sum(sure)} of {len(sure)}",
        str(pairs.count((True, False))),
        str(pairs.count((False, True))),
        ", ".join(f"{k}={v!r}" for k, v in row.params.items()) or "defaults",
    ]


def print_report(rows: list[Row], results: Results) -> None:
    """Print the three tables."""
    header = ["size (N)", "seeds", "median", "max", "mean", f"< {SUCCESS:g}", "oracle"]
    header += ["published", "tensorly", "LassoCV", "paper", "required", ""]
    cells = [error_cells(results, row) for row in rows]
    print_table("Coefficient error of FasTRRegressor, and the medians of others", header, cells)
    header = ["size (N)", "median", "slowest", "published", "tensorly", "LassoCV"]
    header += ["median/LassoCV", "slowest/LassoCV", "required", ""]
    cells = [time_cells(results, row) for row in rows]
    print_table("Seconds of one fit, FasTRRegressor first", header, cells)
    header = ["size (N)", "starts", "most", "sure", "sure and wrong", "right, not sure", "options"]
    cells = [search_cells(results, row) for row in rows]
    print_table("The search of FasTRRegressor(random_state=0)", header, cells)
    for row in rows:
        for seed, outcome in results.of(row, "fastr").items():
            if not isfinite(outcome.ce or 0.0):
                print(f"\n{row.name}, seed {seed} failed: {outcome.info['error']}")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--cv", action="store_true", help="measure FasTRRegressorCV's choice instead")
    choices = ["all", *BASELINES]
    add("--methods", nargs="+", choices=choices, metavar="METHOD", help="measure the baselines")
    add("--rows", nargs="+", metavar="ROW", choices=[r.key for r in ROWS], help="such as 20x20x20")
    add("--seeds", type=int, help="data sets a row (default: 10, and 80 at 20x20)")
    add("--first-seed", type=int, default=0, help="of the data sets, which follow one another")
    add("--peer-seeds", type=int, help="those published and tensorly see (default: all; large: 2)")
    add("--lasso-seeds", type=int, help="those LassoCV sees (default: 2; large rows: 1)")
    add("--limit", type=float, default=300, help="seconds a fit of published or tensorly may take")
    add("--lasso-limit", type=float, default=300, help="seconds a LassoCV may take")
    add("--no-lasso", action="store_true")
    add("--no-tensorly", action="store_true")
    add("--threads", type=int, help="threads of BLAS and of FasTRRegressor (default: all)")
    add("--jsonl", type=Path, help="keep outcomes here, and do not repeat those that are")
    known = [*CHOICES, *BASELINES]
    add("--redo", nargs="+", default=[], choices=known, metavar="METHOD", help="repeat these")
    add("--quick", action="store_true", help="small sizes, two seeds, limits of 20 s")
    options = parser.parse_args()
    if options.quick:
        options.rows = options.rows or QUICK
        options.seeds = options.seeds or 2
        options.limit, options.lasso_limit = min(options.limit, 20), min(options.lasso_limit, 20)
    return options


def main() -> None:
    """Run the benchmark and print its tables."""
    options = parse()
    rows = [row for row in ROWS if options.rows is None or row.key in options.rows]
    results = Results(options.jsonl, options.redo)
    print(environment())
    if results.n_read:
        print(f"{results.n_read} outcomes are read from {options.jsonl}, from earlier runs.")
    if options.cv:
        run_choices(results, options)
        report_choices(results, options)
    elif options.methods:
        run_baselines(results, options)
        report_baselines(results, options)
    else:
        run(rows, results, options)
        print_report(rows, results)


if __name__ == "__main__":
    main()
