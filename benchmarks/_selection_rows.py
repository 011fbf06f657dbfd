"""The rows of ``accuracy.py --cv``: how good a model the choice is, beside oracle and grid."""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from statistics import mean, median
from typing import Any

import numpy as np
from _fits import METHODS, Array, Fit, Job, Outcome, Worker, signal_size
from _grid import GridFit, fit_grid
from _report import print_table, size_name, verdict
from _results import Results

from pyfastr import FasTRRegressorCV
from pyfastr.estimators.choice_policy import PointsPolicy
from pyfastr.metrics import coefficient_error, support_precision, support_recall
from pyfastr.solver.policy import SearchPolicy

TIMES_ORACLE, SUPPORT = 1.15, 0.95
EVIDENCE_MEAN = 0.06
TIMES_BEST = 1.10
N_TEST = 2000


@dataclass(frozen=True)
class ChoiceRow:
    """One kind of data, and what is chosen how."""

    shape: tuple[int, ...]
    n_samples: int
    methods: tuple[str, ...]
    data: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    n_seeds: int = 10

    @property
    def size_key(self) -> str:
        """Name on the command line."""
        return "x".join(map(str, self.shape))

    @property
    def key(self) -> str:
        """Name in the file of outcomes."""
        options = (self.data | self.params).items()
        return " ".join([f"{self.size_key} ({self.n_samples})", *(f"{k}={v}" for k, v in options)])

    @property
    def name(self) -> str:
        """Name in a table."""
        return size_name(self.shape, self.n_samples)


# More samples than twice the degrees of freedom.
SIZES = (
    ((100, 100), 1000),
    ((5, 5, 5), 100),
    ((10, 10, 10), 100),
    ((15, 15, 15), 100),
    ((100, 100, 5), 500),
    ((200, 200, 5), 1000),
)
# Medians of few data sets say little, and those of small samples are cheap. Of 90 % zeros often a
# single entry is left, whose product of normal factors can drown in the noise; and errors of data
# sets differ a hundredfold, so that the middle one of few falls anywhere.
SPARSITIES = (0.2, 0.5, 0.9)
FEW_SEEDS, MANY_SEEDS, CHEAP, CHEAP_IF_SPARSE = 10, 40, 4000, 50_000


def seeds_of(shape: tuple[int, ...], sparsity: float) -> int:
    """How many data sets a row has."""
    cheap = CHEAP_IF_SPARSE if sparsity == max(SPARSITIES) else CHEAP
    return MANY_SEEDS if prod(shape) <= cheap else FEW_SEEDS


SPARSE = tuple(
    ChoiceRow(
        shape,
        n_samples,
        ("fastr_cv", "oracle"),
        {"sparsity": sparsity},
        n_seeds=seeds_of(shape, sparsity),
    )
    for shape, n_samples in SIZES
    for sparsity in SPARSITIES
)
EVIDENCE = (
    ChoiceRow((20, 20), 40, ("fastr_cv", "oracle"), {}, {"criterion": "evidence"}, n_seeds=40),
)
NOISY = tuple(
    ChoiceRow(shape, 300, ("fastr_cv_grid",), {"noise": "signal"}, n_seeds=MANY_SEEDS)
    for shape in ((15, 15, 15), (30, 30))
)


def fit_fastr_cv(X: Array, y: Array, W: Array, **params: Any) -> Fit:
    """Let this library's regressor choose, by its default grids."""
    model = FasTRRegressorCV(random_state=0, **params).fit(X, y)
    return model.coef_, describe_choice(model, W)


def describe_choice(model: FasTRRegressorCV, W: Array) -> dict[str, Any]:
    """What was chosen, and how well its support fits the true one."""
    return {
        "threshold": model.threshold_,
        "ridge": model.ridge_,
        "score": model.best_score_,
        "precision": support_precision(model.coef_, W),
        "recall": support_recall(model.coef_, W),
    }


def fit_fastr_cv_grid(X: Array, y: Array, W: Array) -> Fit:
    """Let it choose, and compare with every point of the grid on all data, from as many starts."""
    begin = time.perf_counter()
    model = FasTRRegressorCV(random_state=0).fit(X, y)
    seconds = time.perf_counter() - begin
    chosen = GridFit(model.coef_[None], np.array([model.intercept_]))
    policy = SearchPolicy()
    grids = PointsPolicy()
    grid = fit_grid(X, y, grids.ridges, grids.thresholds, policy.with_budget(policy.rounds.budget))
    errors = [coefficient_error(c, W) for c in grid.coefs]
    best = {"best_ce": min(errors), "best_mse": float(held_out_errors(grid, W).min())}
    own = {"seconds": seconds, "mse": float(held_out_errors(chosen, W)[0])}
    return model.coef_, {**describe_choice(model, W), **own, **best}


def held_out_errors(grid: GridFit, W: Array) -> Array:
    """Mean squared errors on fresh samples with noise as large as the signal."""
    rng = np.random.default_rng([N_TEST, W.size])
    X = rng.standard_normal((N_TEST, W.size))
    y = X @ W.ravel() + signal_size(W) * rng.standard_normal(N_TEST)
    predictions = grid.coefs.reshape(len(grid.coefs), -1) @ X.T + grid.intercepts[:, None]
    return np.square(y - predictions).mean(axis=1)


CHOICES = {**METHODS, "fastr_cv": fit_fastr_cv, "fastr_cv_grid": fit_fastr_cv_grid}


def chosen_rows(rows: Sequence[ChoiceRow], keys: Sequence[str] | None) -> list[ChoiceRow]:
    """Rows of the sizes that were asked for."""
    return [row for row in rows if keys is None or row.size_key in keys]


def run_choices(results: Results, options: argparse.Namespace) -> None:
    """Do every choice that is not known yet."""
    worker = Worker(options.threads, CHOICES)
    for row in chosen_rows((*SPARSE, *EVIDENCE, *NOISY), options.rows):
        first = options.first_seed
        for seed in range(first, first + (options.seeds or row.n_seeds)):
            for method in row.methods:
                if results.get(row, seed, method) is not None:
                    continue
                params = {} if method == "oracle" else row.params
                job = Job(method, row.shape, row.n_samples, seed, params, row.data)
                outcome = worker.run(job, None)
                results.add(row, seed, method, outcome)
                print(f"{row.key} seed {seed} {method}: {told(outcome)}", file=sys.stderr)
    worker.close()


def told(outcome: Outcome) -> str:
    """Say in a few words what was chosen."""
    info = [f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in outcome.info.items()]
    return ", ".join([f"CE {outcome.ce:.4f}", f"{outcome.seconds:.2f} s", *info])


def outcomes_of(results: Results, row: ChoiceRow, method: str) -> list[Outcome]:
    """Outcomes of all seeds; a failure has an infinite error."""
    return list(results.of(row, method).values())


def infos(outcomes: list[Outcome], name: str, failed: float) -> list[float]:
    """A number of every outcome, or what it is where the fit failed."""
    return [o.info.get(name, failed) for o in outcomes]


def sparse_cells(results: Results, row: ChoiceRow) -> list[str]:
    """Describe a choice beside the oracle."""
    ours = outcomes_of(results, row, "fastr_cv")
    error = median(o.ce for o in ours)
    oracles = [o.ce for o in outcomes_of(results, row, "oracle")]
    oracle = median(oracles)
    supports = [infos(ours, name, 0.0) for name in ("precision", "recall")]
    return [
        row.name,
        f"{row.data['sparsity']:.0%}",
        str(len(ours)),
        f"{error:.5f}",
        f"{oracle:.5f}",
        f"{error / oracle:.3f}",
        verdict(error <= TIMES_ORACLE * oracle),
        *(f"{summary(values):.3f}" for values in supports for summary in (median, min)),
        support_verdict(supports),
        f"{max(o.ce for o in ours):.5f}",
        f"{max(oracles):.5f}",
        f"{median(o.seconds for o in ours):.2f}",
    ]


def support_verdict(supports: list[list[float]]) -> str:
    """Whether precision and recall are high in every data set, or in the median."""
    if all(min(values) >= SUPPORT for values in supports):
        return "pass"
    return "median only" if all(median(values) >= SUPPORT for values in supports) else "MISS"


def evidence_cells(results: Results, row: ChoiceRow) -> list[str]:
    """Describe a choice without held-out data."""
    ours = [o.ce for o in outcomes_of(results, row, "fastr_cv")]
    oracle = [o.ce for o in outcomes_of(results, row, "oracle")]
    return [
        row.name,
        str(len(ours)),
        f"{mean(ours):.4f}",
        f"≤ {EVIDENCE_MEAN:g}",
        verdict(mean(ours) <= EVIDENCE_MEAN),
        f"{median(ours):.4f}",
        f"{max(ours):.4f}",
        f"{mean(oracle):.4f}",
    ]


def noisy_cells(results: Results, row: ChoiceRow) -> list[str]:
    """Describe a choice beside the best of the grid."""
    ours = outcomes_of(results, row, "fastr_cv_grid")
    pairs = {
        "ce": ([o.ce for o in ours], infos(ours, "best_ce", 1.0)),
        "mse": (infos(ours, "mse", np.inf), infos(ours, "best_mse", 1.0)),
    }
    cells, ratios = [], []
    for chosen, best in pairs.values():
        each = [c / b for c, b in zip(chosen, best, strict=True)]
        ratios.append(median(each))
        numbers = (median(chosen), median(best), median(each), max(each))
        cells += [f"{number:#.4g}" for number in numbers]
    passed = verdict(max(ratios) <= TIMES_BEST)
    return [row.name, str(len(ours)), *cells, f"≤ {TIMES_BEST:g}", passed]


def report_choices(results: Results, options: argparse.Namespace) -> None:
    """Print the three tables."""
    header = ["size (N)", "zeros", "seeds", "median CE", "oracle", "ratio", f"≤ {TIMES_ORACLE:g}"]
    header += [
        "precision",
        "least",
        "recall",
        "least",
        f"≥ {SUPPORT:g}",
        "max CE",
        "oracle max",
        "seconds",
    ]
    title = "FasTRRegressorCV(random_state=0) beside the oracle; medians, and the least of all"
    report(title, header, results, chosen_rows(SPARSE, options.rows), sparse_cells)
    header = ["size (N)", "seeds", "mean CE", "required", "", "median", "max", "oracle's mean"]
    title = 'FasTRRegressorCV(criterion="evidence", random_state=0)'
    report(title, header, results, chosen_rows(EVIDENCE, options.rows), evidence_cells)
    header = ["size (N)", "seeds", "CE", "best", "ratio", "worst", "MSE", "best", "ratio", "worst"]
    title = "Noise as large as the signal: the choice beside the best of the grid on all data"
    header += ["required", ""]
    report(title, header, results, chosen_rows(NOISY, options.rows), noisy_cells)
    report_failures(results, options)


def report(
    title: str, header: list[str], results: Results, rows: list[ChoiceRow], cells: Any
) -> None:
    """Print a table if it has rows."""
    if rows:
        print_table(title, header, [cells(results, row) for row in rows])


def report_failures(results: Results, options: argparse.Namespace) -> None:
    """Name the errors."""
    for row in chosen_rows((*SPARSE, *EVIDENCE, *NOISY), options.rows):
        for method in row.methods:
            for seed, outcome in results.of(row, method).items():
                if "error" in outcome.info:
                    print(f"\n{row.key}, seed {seed}, {method} failed: {outcome.info['error']}")
