"""What tied components are worth where samples are symmetric in two modes.

Simulated samples are symmetric Gaussian matrices, their coefficient a sum of terms of either sign.
Real ones are connectomes, and logarithms of the covariances of what several sensors recorded. The
same estimator is fitted with ``symmetry="auto"`` and ``symmetry=None``. Of a coefficient without
ties only the symmetric part counts, which is all that such samples can tell.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import _package_sets as packages
import numpy as np
from _real_fits import evaluate
from _real_sets import Tensors, load_set
from _report import environment, print_table
from _set_tools import Array, MissingDataError

from pyfastr import FasTRRegressor
from pyfastr.metrics import coefficient_error

WAYS = {"tied": "auto", "untied": None}
# Of the noise: little ridge where there is hardly any.
RIDGES = {0.1: 1e-5, 1.0: 0.1}
# Share of the mean variance that is added to covariances, so that they have a logarithm.
SHRINKAGE = 1e-3


@dataclass(frozen=True)
class Row:
    """A size of simulated data; `ratio` is samples for each free parameter of the tied model."""

    p: int
    n_terms: int
    noise: float
    ratio: float

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return round(self.ratio * (self.p * self.n_terms + 1))

    def draw(self, seed: int) -> tuple[Array, Array, Array]:
        """Draw samples, responses and the coefficient."""
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((self.n_samples, self.p, self.p))
        X = (A + A.swapaxes(1, 2)) / np.sqrt(2)
        vectors, signs = rng.standard_normal((self.n_terms, self.p)), rng.choice([-1, 1], 8)
        W = sum(s * np.outer(w, w) for s, w in zip(signs, vectors, strict=False))
        y = np.tensordot(X, W, axes=2)
        return X, y + self.noise * y.std() * rng.standard_normal(len(y)), W


def simulated(sizes: list[int]) -> list[Row]:
    """Return the rows of the first table."""
    return [
        Row(p, n_terms, noise, ratio)
        for p in sizes
        for n_terms in (1, 2)
        for noise, ratios in ((0.1, (1.5, 2.0, 4.0)), (1.0, (4.0, 16.0)))
        for ratio in ratios
    ]


def fit(row: Row, seed: int, way: str) -> tuple[float, float, bool]:
    """Return error of the coefficient, seconds, and whether the fit is sure of its optimum."""
    X, y, W = row.draw(seed)
    model = FasTRRegressor(
        ridge=RIDGES[row.noise], n_terms=row.n_terms, symmetry=WAYS[way], random_state=0
    )
    begin = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - begin
    found = (model.coef_ + model.coef_.T) / 2
    return coefficient_error(found, W), seconds, model.starts_.sure


def of_simulation(rows: list[Row], n_seeds: int) -> list[list[str]]:
    """Return the lines of the first table."""
    lines = []
    for row in rows:
        line = [f"{row.p}×{row.p} ({row.n_samples})", f"{row.n_terms}", f"{row.noise:g}"]
        for way in WAYS:
            errors, seconds, sure = zip(*(fit(row, s, way) for s in range(n_seeds)), strict=True)
            line += [f"{np.median(errors):.3f}", f"{np.mean(seconds):.2f}", f"{sum(sure)}"]
        lines.append(line)
        print(*line, flush=True)
    return lines


def log_covariances(series: Array) -> Array:
    """Return the logarithms of covariances ``(n, p, p)`` between the rows of every sample."""
    centred = series - series.mean(axis=2, keepdims=True)
    covariances = centred @ centred.swapaxes(1, 2) / series.shape[2]
    variances, axes = np.linalg.eigh(covariances)
    variances += SHRINKAGE * variances.mean(axis=1, keepdims=True)
    X = (axes * np.log(variances)[:, None]) @ axes.swapaxes(1, 2)
    return (X + X.swapaxes(1, 2)) / 2


def _of_series(name: str, load: Callable[[], packages.Loaded]) -> Tensors:
    X, y, groups = load()
    return Tensors(f"{name}_covariance", log_covariances(X), y, groups, True, len(y))


def _eeg(directory: Path | None) -> Tensors:
    data = load_set("eeg_alcoholism", directory)
    return _of_series("eeg", lambda: (data.X, data.y, data.groups))


def real_sets(directory: Path | None) -> tuple[list[Tensors], list[str]]:
    """Load what is at hand, and tell what the others need."""
    loaders: dict[str, Callable[[], Tensors]] = {
        "motions": lambda: _of_series("motions", packages.motions),
        "vowels": lambda: _of_series("vowels", packages.vowels),
        "eeg": lambda: _eeg(directory),
        "mouse_connectomes": lambda: load_set("mouse_connectomes"),
    }
    found, missing = [], []
    for name, load in loaders.items():
        try:
            found.append(load())
        except MissingDataError as error:
            missing.append(f"{name}: needs {error}")
    return found, missing


def of_real_sets(sets: list[Tensors], n_seeds: int) -> list[list[str]]:
    """Return the lines of the second table: held-out scores, and paired differences."""
    lines = []
    for data in sets:
        scores, seconds, n_terms = {}, {}, {}
        for way, symmetry in WAYS.items():
            runs = [
                evaluate(data, seed, "default", {"symmetry": symmetry}) for seed in range(n_seeds)
            ]
            scores[way] = np.array([np.mean(run.scores) for run in runs])
            seconds[way] = np.mean([run.seconds for run in runs]) / 5
            n_terms[way] = np.mean([run.info["n_terms"] for run in runs])
        ridge = np.mean([evaluate(data, seed, "ridge", {}).scores for seed in range(n_seeds)])
        lead = scores["tied"] - scores["untied"]
        line = [data.name]
        for way in WAYS:
            line += [f"{scores[way].mean():.3f}", f"{n_terms[way]:.1f}", f"{seconds[way]:.1f}"]
        line += [f"{lead.mean():+.3f}", f"{lead.min():+.3f}", f"{lead.max():+.3f}", f"{ridge:.3f}"]
        lines.append(line)
        print(*line, flush=True)
    return lines


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 40])
    parser.add_argument("--seeds", type=int, default=5, help="data sets, and shuffles of real ones")
    parser.add_argument("--data", type=Path, help="directory with eeg_alcoholism.npz")
    parser.add_argument("--parts", nargs="+", default=["simulated", "real"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if "simulated" in args.parts:
        lines = of_simulation(simulated(args.sizes), args.seeds)
        columns = [f"{what}, {way}" for way in WAYS for what in ("error", "seconds", "sure")]
        print_table(
            "Median error of the coefficient", ["size (N)", "terms", "noise", *columns], lines
        )
    if "real" in args.parts:
        sets, missing = real_sets(args.data)
        lines = of_real_sets(sets, args.seeds)
        columns = [f"{what}, {way}" for way in WAYS for what in ("AUC", "terms", "s/fit")]
        head = ["set", *columns, "tied ahead", "least", "most", "ridge"]
        print_table("Held-out area under the ROC curve, five folds", head, lines)
        print(*missing, sep="\n")
    print(f"\n{environment()}")


if __name__ == "__main__":
    main()
