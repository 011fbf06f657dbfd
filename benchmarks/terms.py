"""How many terms the default choice takes where the truth has one, or two.

Coefficients are drawn as in the paper's simulation, from 20 % zeros in each factor. The signal of a
term is as large as its norm, for the entries of X are standard normal. The noise is a multiple of
the signal, or of that of the weaker one of two terms: up to 1, both are above the noise. Samples
are at least twice as many as the free parameters of two terms.
"""

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _fits import Array
from _report import environment, print_table, size_name, verdict
from _results import Results
from threadpoolctl import threadpool_limits

from pyfastr import FasTRRegressorCV
from pyfastr.datasets import make_tensor_regression

# The shares of data sets in which the truth must be found.
REQUIRED = {1: 0.95, 2: 0.90}
SIZES = (((8, 8), 100), ((8, 8), 357), ((20, 20), 250), ((5, 5, 5), 100), ((10, 10, 10), 150))
NOISES = {1: (0.1, 1.0, 2.0), 2: (0.1, 0.5, 1.0)}
METHOD = "default"


@dataclass(frozen=True)
class Row:
    """One kind of data."""

    n_terms: int
    shape: tuple[int, ...]
    n_samples: int
    noise: float

    @property
    def key(self) -> str:
        """Name in the file of outcomes."""
        size = "x".join(map(str, self.shape))
        return f"{self.n_terms} in {size} ({self.n_samples}) noise={self.noise}"


@dataclass(frozen=True)
class Chosen:
    """Number of terms, and what the estimator says of it."""

    n_terms: int
    choice: str
    score: float


ROWS = tuple(
    Row(n_terms, shape, n_samples, noise)
    for n_terms, noises in NOISES.items()
    for shape, n_samples in SIZES
    for noise in noises
)


def draw(row: Row, seed: int) -> tuple[Array, Array]:
    """Draw samples and responses."""
    terms = [_draw_term(row.shape, [seed, number]) for number in range(row.n_terms)]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((row.n_samples, *row.shape))
    signal = X.reshape(len(X), -1) @ sum(terms).ravel()
    noise = row.noise * min(map(np.linalg.norm, terms))
    return X, signal + noise * rng.standard_normal(len(X))


def _draw_term(shape: Sequence[int], seed: Sequence[int]) -> Array:
    rng = np.random.default_rng(seed)
    return make_tensor_regression(1, shape, coef=True, random_state=rng)[2]


def choose(row: Row, seed: int) -> Chosen:
    """Let the estimator choose as it comes."""
    model = FasTRRegressorCV(random_state=0).fit(*draw(row, seed))
    return Chosen(model.n_terms_, model.choice_, model.best_score_)


def run(rows: Sequence[Row], results: Results, options: argparse.Namespace) -> None:
    """Do what is not known yet, a data set of every kind in turn."""
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for row in rows:
            if results.get(row, seed, METHOD) is None:
                chosen = choose(row, seed)
                results.add(row, seed, METHOD, chosen)
                print(f"{row.key} seed {seed}: {chosen.choice}", file=sys.stderr, flush=True)


def cells(row: Row, counts: Counter[int]) -> list[str]:
    """Describe a kind of data."""
    n = counts.total()
    others = ", ".join(f"{k}: {counts[k]}" for k in sorted(counts) if k != row.n_terms)
    size = size_name(row.shape, row.n_samples)
    return [size, f"{row.noise:g}", f"{counts[row.n_terms]} of {n}", others or "–"]


def counted(rows: Sequence[Row], results: Results) -> Iterator[tuple[Row, Counter[int]]]:
    """Count the numbers of terms chosen for each kind of data."""
    for row in rows:
        yield row, Counter(c.n_terms for c in results.of(row, METHOD).values())


def print_report(rows: Sequence[Row], results: Results) -> None:
    """Print a table for each true number of terms, and the shares."""
    for n_terms, required in REQUIRED.items():
        own = list(counted([row for row in rows if row.n_terms == n_terms], results))
        what = "the signal" if n_terms == 1 else "the weaker signal"
        header = ["size (N)", f"noise / {what}", "found", "other numbers: data sets"]
        print_table(f"True number of terms: {n_terms}", header, [cells(*pair) for pair in own])
        found = sum(counts[n_terms] for _, counts in own)
        share = found / max(1, sum(counts.total() for _, counts in own))
        print(f"{share:.1%} (required {required:.0%}): {verdict(share >= required)}")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--seeds", type=int, default=10, help="data sets of each kind (default: 10)")
    add("--first-seed", type=int, default=0)
    add("--threads", type=int, help="threads of BLAS and of pyfastr (default: all)")
    add("--jsonl", type=Path, help="keep outcomes here, and do not repeat those that are")
    add("--quick", action="store_true", help="two data sets of each kind, the smallest sizes")
    return parser.parse_args()


def main() -> None:
    """Run the benchmark and print its tables."""
    options = parse()
    rows = [row for row in ROWS if not options.quick or row.n_samples <= 100]
    options.seeds = min(options.seeds, 2) if options.quick else options.seeds
    results = Results(options.jsonl, [], Chosen)
    print(environment())
    with warnings.catch_warnings(), threadpool_limits(options.threads):
        # That a start did not converge does not matter here.
        warnings.simplefilter("ignore")
        run(rows, results, options)
    print_report(rows, results)


if __name__ == "__main__":
    main()
