"""Small data, where calls and threads cost more than arithmetic: what a choice by folds takes.

The default choice stands beside that of unit rank (``n_terms=(1,)``), a single fit, and
scikit-learn's ``LassoCV`` and ``RidgeCV`` on the flattened samples: ``RidgeCV`` as it comes, with
three penalties and no folds, and with the 21 penalties of ``real_data.py`` in the five folds that
the others have. Methods take turns in one process, and the median of each counts. Real sets are
those of ``real_data.py``; of two classes, lasso and ridge are given the labels as numbers.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _real_fits import N_FOLDS, RIDGE_ALPHAS
from _real_sets import load_sets
from _report import environment, print_table, size_name, verdict
from _set_tools import Array
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold

from pyfastr import FasTRClassifier, FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV
from pyfastr.datasets import make_tensor_regression

# How many times the unit-rank choice and both of scikit-learn's the default choice may take.
MOST_OF_UNIT_RANK, MOST_OF_PEERS = 3.0, 1.5
REAL_SETS = ("digits_closest", "covid_serology_severe", "covid_serology_deceased")
PEER_SIZES = ((357, (8, 8)), (438, (6, 11)))
PEER_NOISES = (0.1, 1.0)
UNIT_RANK_SIZES = (
    *PEER_SIZES,
    (100, (5, 5, 5)),
    (100, (10, 10, 10)),
    (100, (20, 20, 20)),
    (1000, (100, 100)),
)
# Entries of X that ``--quick`` leaves it at.
MOST_QUICK = 200_000
METHODS = ("default", "unit rank", "one fit", "LassoCV", "RidgeCV", "RidgeCV, folds")


@dataclass(frozen=True)
class Data:
    """Samples and their response, or labels -1 and 1."""

    name: str
    X: Array
    y: Array
    classify: bool = False


def simulated(n_samples: int, shape: tuple[int, ...], noise: float = 0.1) -> Data:
    """Draw the paper's simulation; noise of 1 is as large as what X tells of y."""
    X, y = make_tensor_regression(n_samples, shape, noise=noise, random_state=0)
    return Data(f"{size_name(shape, n_samples)}, noise {noise:g}", X, y)


def real(directory: Path | None) -> list[Data]:
    """Load the real sets that are at hand."""
    sets, missing = load_sets(directory, REAL_SETS)
    for name, needed in missing.items():
        print(f"{name} is left out: it needs {needed}")
    return [Data(s.name, s.X, 2.0 * s.y - 1 if s.classify else s.y, s.classify) for s in sets]


def methods(data: Data) -> dict[str, Callable[[], Any]]:
    """Return what is timed, each a fit of its own."""
    choice = FasTRClassifierCV if data.classify else FasTRRegressorCV
    single = FasTRClassifier if data.classify else FasTRRegressor
    splitter = (StratifiedKFold if data.classify else KFold)(N_FOLDS, shuffle=True, random_state=0)
    folds = list(splitter.split(data.X, data.y))
    flat = data.X.reshape(len(data.X), -1)
    return {
        "default": lambda: choice(cv=folds, random_state=0).fit(data.X, data.y),
        "unit rank": lambda: choice(n_terms=(1,), cv=folds, random_state=0).fit(data.X, data.y),
        "one fit": lambda: single(random_state=0).fit(data.X, data.y),
        "LassoCV": lambda: LassoCV(cv=folds).fit(flat, data.y),
        "RidgeCV": lambda: RidgeCV().fit(flat, data.y),
        "RidgeCV, folds": lambda: RidgeCV(RIDGE_ALPHAS, cv=folds).fit(flat, data.y),
    }


def seconds(works: Mapping[str, Callable[[], Any]], n_rounds: int) -> dict[str, float]:
    """Return the median time of each, after a round that does not count; they take turns."""
    rounds = [{name: _time(work) for name, work in works.items()} for _ in range(n_rounds + 1)]
    return {name: median(times[name] for times in rounds[1:]) for name in works}


def _time(work: Callable[[], Any]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin


def print_peers(sets: Sequence[Data], n_rounds: int) -> None:
    """Print how long all methods take, and the default choice beside both of scikit-learn's."""
    rows = []
    for data in sets:
        own = seconds(methods(data), n_rounds)
        ridges = (own["RidgeCV"], own["RidgeCV, folds"])
        ratios = [own["default"] / (own["LassoCV"] + ridge) for ridge in ridges]
        cells = [f"{ratio:.2f} {verdict(ratio <= MOST_OF_PEERS)}" for ratio in ratios]
        rows.append([data.name, *(f"{1e3 * own[name]:.0f}" for name in METHODS), *cells])
    header = ["data", *METHODS, "/ (LassoCV + RidgeCV)", "/ (LassoCV + RidgeCV, folds)"]
    title = f"Milliseconds; the default may take {MOST_OF_PEERS:g} times both of scikit-learn's"
    print_table(title, header, rows)


def print_unit_rank(sizes: Sequence[tuple[int, tuple[int, ...]]], n_rounds: int) -> None:
    """Print the default choice beside that of unit rank, on data that are of unit rank."""
    rows = []
    for n_samples, shape in sizes:
        data = simulated(n_samples, shape)
        works = {name: work for name, work in methods(data).items() if name in METHODS[:2]}
        default, unit_rank = seconds(works, n_rounds).values()
        ratio = default / unit_rank
        cells = [f"{1e3 * default:.0f}", f"{1e3 * unit_rank:.0f}", f"{ratio:.2f}"]
        rows.append([data.name, *cells, verdict(ratio <= MOST_OF_UNIT_RANK)])
    title = f"Milliseconds on unit-rank data; the default may take {MOST_OF_UNIT_RANK:g} times"
    print_table(title, ["data", *METHODS[:2], "ratio", ""], rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="directory of the real sets that no package has")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each method")
    parser.add_argument("--quick", action="store_true", help="one run each, the largest left out")
    options = parser.parse_args()
    rounds, most = (1, MOST_QUICK) if options.quick else (options.rounds, np.inf)
    drawn = [simulated(*size, noise) for size in PEER_SIZES for noise in PEER_NOISES]
    print_peers([*real(options.data), *drawn], rounds)
    print_unit_rank([(n, shape) for n, shape in UNIT_RANK_SIZES if n * prod(shape) <= most], rounds)
    print(f"\n{environment()}")


if __name__ == "__main__":
    main()
