"""How well models predict real tensors, chosen and tested by nested five-fold cross-validation.

``FasTRRegressorCV`` and ``FasTRClassifierCV`` with one term, fitted to all data in the end, and the
means of their folds' models, with one term and with a choice of several, stand beside ridge and
lasso (for classes: logistic regression with these penalties) on the flattened samples. The better
of the means, which are made to predict, is compared with the better of ridge and lasso. All methods
see the same outer and inner folds: those keep groups whole where there are any, otherwise they are
shuffled; for classes they are stratified. X is standardised by the outer training samples. The
score is the mean of R², or of the area under the ROC curve, over the outer folds. The data
directory holds one ``.npz`` for each set, with `X`, `y`, `groups` where rows belong together, and
`meta`, whose JSON names the task.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from _report import environment, print_table, verdict
from _results import Results
from numpy.typing import NDArray
from sklearn.linear_model import LassoCV, LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from threadpoolctl import threadpool_limits

from pyfastr import FasTRClassifierCV, FasTRRegressorCV, TensorScaler

Array = NDArray[Any]
Folds = list[tuple[Array, Array]]

SETS = (
    "sugar_fluorescence",
    "mixture_nir",
    "eeg_alcoholism",
    "haxby_slice_face_house",
    "haxby_25mm_face_house",
    "covid_serology_deceased",
)
N_FOLDS = 5
TERMS = (1, 2, 4, 8)
# The defaults of the options that scores depend on. The peers have the logistic loss, too.
LOGISTIC, ELEMENT = "logistic", "element"
# From hardly any penalty to hardly anything but the penalty; features are standardised.
RIDGE_ALPHAS = np.logspace(-3, 7, 21)
L2_STRENGTHS, L1_STRENGTHS = np.logspace(-7, 2, 19), np.logspace(-2.5, 2, 19)

# What is asked for.
CLOSE, N_CLOSE, N_AHEAD = 0.02, 5, 2


@dataclass(frozen=True)
class Tensors:
    """A labelled set, and in its key the options that scores depend on."""

    key: str
    X: Array
    y: Array
    groups: Array | None
    classify: bool

    @property
    def name(self) -> str:
        """Name and size in a table."""
        return f"{self.key} {'×'.join(map(str, self.X.shape))}"


@dataclass(frozen=True)
class Scores:
    """Scores of a method in the outer folds."""

    scores: list[float]
    seconds: float
    info: dict[str, Any] = field(default_factory=dict)


# What a method returns: a prediction or decision of new samples, and what was chosen.
Chosen = tuple[Callable[[Array], Array], dict[str, Any]]


def load(name: str, options: argparse.Namespace) -> Tensors:
    """Read a set."""
    with np.load(options.data / f"{name}.npz") as file:
        classify = json.loads(str(file["meta"]))["task"] != "regression"
        groups = file["groups"] if "groups" in file.files else None
        changes = [name, options.loss if classify else LOGISTIC, options.per]
        key = " ".join(word for word in changes if word not in (LOGISTIC, ELEMENT))
        return Tensors(key, file["X"].astype(float), file["y"], groups, classify)


def folds(y: Array, groups: Array | None, classify: bool, seed: int) -> Folds:
    """Shuffled folds, stratified for classes, that keep groups whole."""
    kinds = {
        (False, False): KFold,
        (False, True): GroupKFold,
        (True, False): StratifiedKFold,
        (True, True): StratifiedGroupKFold,
    }
    splitter = kinds[classify, groups is not None](N_FOLDS, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros((len(y), 1)), y, groups))


def fit_fastr(X: Array, y: Array, inner: Folds, *, classify: bool, loss: str, **own: Any) -> Chosen:
    """Let this library choose, by its default grids."""
    if classify:
        model = FasTRClassifierCV(loss=loss, cv=inner, random_state=0, **own).fit(X, y)
        predict = model.decision_function
    else:
        model = FasTRRegressorCV(cv=inner, random_state=0, **own).fit(X, y)
        predict = model.predict
    chosen = {"n_terms": model.n_terms_, "threshold": model.threshold_, "ridge": model.ridge_}
    return predict, chosen


def fit_ridge(X: Array, y: Array, inner: Folds, *, classify: bool, loss: str) -> Chosen:
    """Fit a ridge to the flattened samples."""
    if classify:
        model = LogisticRegression(max_iter=2000)
        return _search(model, {"C": L2_STRENGTHS}, X, y, inner, "roc_auc")
    return _search(Ridge(), {"alpha": RIDGE_ALPHAS}, X, y, inner, "r2")


def fit_lasso(X: Array, y: Array, inner: Folds, *, classify: bool, loss: str) -> Chosen:
    """Fit a lasso to the flattened samples."""
    if classify:
        model = LogisticRegression(solver="liblinear", random_state=0, **_l1_only())
        return _search(model, {"C": L1_STRENGTHS}, X, y, inner, "roc_auc")
    model = LassoCV(cv=inner, max_iter=5000).fit(_flat(X), y)
    return lambda X: model.predict(_flat(X)), {"alpha": float(model.alpha_)}


def _l1_only() -> dict[str, Any]:
    """Ask for the lasso's penalty, in the words of this scikit-learn."""
    deprecated = signature(LogisticRegression).parameters["penalty"].default == "deprecated"
    return {"l1_ratio": 1.0} if deprecated else {"penalty": "l1"}


def _search(
    model: Any, grid: dict[str, Array], X: Array, y: Array, inner: Folds, scoring: str
) -> Chosen:
    """Choose the strength of a penalty in the inner folds."""
    search = GridSearchCV(model, grid, cv=inner, scoring=scoring).fit(_flat(X), y)
    predict = search.predict if scoring == "r2" else search.decision_function
    return lambda X: predict(_flat(X)), {k: float(v) for k, v in search.best_params_.items()}


def _flat(X: Array) -> Array:
    return X.reshape(len(X), -1)


OURS, THEIRS = ("unit rank, mean", "several terms, mean"), ("ridge", "lasso")
METHODS: dict[str, Callable[..., Chosen]] = {
    "unit rank": partial(fit_fastr, n_terms=(1,)),
    OURS[0]: partial(fit_fastr, n_terms=(1,), refit=False),
    OURS[1]: partial(fit_fastr, n_terms=TERMS, refit=False),
    "ridge": fit_ridge,
    "lasso": fit_lasso,
}


def evaluate(data: Tensors, method: str, seed: int, options: argparse.Namespace) -> Scores:
    """Score a method in every outer fold."""
    begin, scores, chosen = time.perf_counter(), [], []
    for train, test in folds(data.y, data.groups, data.classify, seed):
        score, info = evaluate_fold(data, method, seed, options, train, test)
        scores.append(score)
        chosen.append(info)
    info = {name: [c[name] for c in chosen] for name in chosen[0]}
    return Scores(scores, time.perf_counter() - begin, info)


def evaluate_fold(
    data: Tensors,
    method: str,
    seed: int,
    options: argparse.Namespace,
    train: Array,
    test: Array,
) -> tuple[float, dict[str, Any]]:
    """Choose and fit on the training samples, score on the others."""
    scaler = TensorScaler(per=options.per).fit(data.X[train])
    groups = None if data.groups is None else data.groups[train]
    inner = folds(data.y[train], groups, data.classify, seed)
    predict, info = METHODS[method](
        scaler.transform(data.X[train]),
        data.y[train],
        inner,
        classify=data.classify,
        loss=options.loss,
    )
    score = roc_auc_score if data.classify else r2_score
    return float(score(data.y[test], predict(scaler.transform(data.X[test])))), info


def run(sets: Sequence[Tensors], results: Results, options: argparse.Namespace) -> None:
    """Do what is not known yet."""
    for data in sets:
        for seed in range(options.seeds):
            for method in options.methods:
                if results.get(data, seed, method) is not None:
                    continue
                scores = evaluate(data, method, seed, options)
                results.add(data, seed, method, scores)
                told = f"{mean(scores.scores):.4f}, {scores.seconds:.1f} s {scores.info}"
                print(f"{data.key} seed {seed} {method}: {told}", file=sys.stderr)


def mean_score(results: Results, data: Tensors, method: str, n_seeds: int) -> float | None:
    """Mean over seeds and outer folds, if the method was run."""
    found = seeds_of(results, data, method, n_seeds)
    return mean(mean(scores.scores) for scores in found) if found else None


def seeds_of(results: Results, data: Tensors, method: str, n_seeds: int) -> list[Scores]:
    """What the seeds of this run gave."""
    known = [results.get(data, seed, method) for seed in range(n_seeds)]
    return [scores for scores in known if scores is not None]


def difference(results: Results, data: Tensors, n_seeds: int) -> float | None:
    """Our better variant less the better of ridge and lasso."""
    sides = []
    for methods in (OURS, THEIRS):
        scores = [mean_score(results, data, method, n_seeds) for method in methods]
        known = [s for s in scores if s is not None]
        if not known:
            return None
        sides.append(max(known))
    return sides[0] - sides[1]


def spread(results: Results, data: Tensors, n_seeds: int) -> float | None:
    """Standard deviation over seeds of our better variant less the better of theirs."""
    by_seed = []
    for seed in range(n_seeds):
        known = {m: results.get(data, seed, m) for m in (*OURS, *THEIRS)}
        if all(known.values()):
            ours, theirs = (max(mean(known[m].scores) for m in ms) for ms in (OURS, THEIRS))
            by_seed.append(ours - theirs)
    return stdev(by_seed) if len(by_seed) > 1 else None


def cells(results: Results, data: Tensors, n_seeds: int) -> list[str]:
    """Describe a set."""
    gap = difference(results, data, n_seeds)
    several = seeds_of(results, data, OURS[1], n_seeds)
    terms = [n for scores in several for n in scores.info["n_terms"]]
    chosen = ", ".join(f"{n}: {terms.count(n)}" for n in sorted(set(terms)))
    return [
        data.name,
        "AUC" if data.classify else "R²",
        *(number(mean_score(results, data, method, n_seeds)) for method in METHODS),
        number(gap, "+.4f"),
        number(spread(results, data, n_seeds)),
        "–" if gap is None else verdict(gap >= -CLOSE),
        chosen or "–",
    ]


def number(value: float | None, form: str = ".4f") -> str:
    """Format a number, a dash where there is none."""
    return "–" if value is None else format(value, form)


def seconds_cells(results: Results, data: Tensors, n_seeds: int) -> list[str]:
    """Mean seconds of a nested cross-validation."""
    times = [[s.seconds for s in seeds_of(results, data, m, n_seeds)] for m in METHODS]
    return [data.name, *(number(mean(t) if t else None, ".1f") for t in times)]


def print_report(sets: Sequence[Tensors], results: Results, n_seeds: int) -> None:
    """Print the tables, and how many sets are as asked."""
    header = ["set", "score", *METHODS, "difference", "sd", f"≥ −{CLOSE:g}", "terms chosen: folds"]
    rows = [cells(results, data, n_seeds) for data in sets]
    print_table("Nested five-fold scores; our better less their better", header, rows)
    gaps = [difference(results, data, n_seeds) for data in sets]
    known = [gap for gap in gaps if gap is not None]
    n_close, n_ahead = sum(gap >= -CLOSE for gap in known), sum(gap > 0 for gap in known)
    enough = verdict(n_close >= N_CLOSE and n_ahead >= N_AHEAD)
    passed = enough if len(known) == len(SETS) else "not all sets were run"
    print(
        f"\nOf {len(known)} sets {n_close} are within {CLOSE:g} (required {N_CLOSE} of {len(SETS)})"
        f" and {n_ahead} ahead (required {N_AHEAD}): {passed}"
    )
    rows = [seconds_cells(results, data, n_seeds) for data in sets]
    print_table("Seconds of a nested cross-validation", ["set", *METHODS], rows)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--data", type=Path, required=True, help="directory of the .npz files")
    add("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET", help=", ".join(SETS))
    methods = list(METHODS)
    add("--methods", nargs="+", choices=methods, default=methods, metavar="METHOD")
    add("--seeds", type=int, default=1, help="shuffles of the folds (default: 1)")
    add("--loss", choices=(LOGISTIC, "squared"), default=LOGISTIC, help="of FasTRClassifierCV")
    add("--per", choices=(ELEMENT, "global"), default=ELEMENT, help="of TensorScaler, for all")
    add("--threads", type=int, help="threads of BLAS and of pyfastr (default: all)")
    add("--jsonl", type=Path, help="keep scores here, and do not repeat those that are")
    add("--redo", nargs="+", default=[], choices=methods, metavar="METHOD", help="repeat these")
    return parser.parse_args()


def main() -> None:
    """Run the benchmark and print its tables."""
    options = parse()
    warnings.simplefilter("ignore")  # that a method did not converge shows in its score
    results = Results(options.jsonl, options.redo, Scores)
    print(environment())
    if results.n_read:
        print(f"{results.n_read} scores are read from {options.jsonl}, from earlier runs.")
    sets = [load(name, options) for name in options.sets]
    with threadpool_limits(options.threads):
        run(sets, results, options)
    print_report(sets, results, options.seeds)


if __name__ == "__main__":
    main()
