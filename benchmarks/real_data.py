"""How well the defaults predict real tensors, by nested five-fold cross-validation.

``FasTRRegressorCV`` and ``FasTRClassifierCV`` as they come, and with one term as in the paper,
stand beside tuned ridge and lasso on the flattened samples. The score is R², or the area under the
ROC curve. The default is compared with the better of ridge and lasso, fold by fold; the interval of
the mean difference allows for training sets that overlap. What the fits themselves say about their
reference stands beside it. Sets come from a directory of ``.npz`` files and from packages that
carry them; those that are not at hand are named with what they need.
"""

import argparse
import ast
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from statistics import mean
from typing import Any

from _real_fits import OURS, PEERS, Scores, evaluate
from _real_report import print_report, rows_of
from _real_sets import SETS, Tensors, load_set, load_sets
from _report import environment
from _results import Results
from threadpoolctl import threadpool_limits

# A set, where it is, a seed, a method and its arguments.
Task = tuple[str, Path | None, int, str, dict[str, Any]]

_load = lru_cache(maxsize=1)(load_set)


def tasks(
    sets: Sequence[Tensors],
    methods: dict[str, dict[str, Any]],
    results: Results,
    options: argparse.Namespace,
) -> list[Task]:
    """List what is not known yet."""
    return [
        (data.key, options.data, seed, method, own)
        for data in sets
        for seed in range(options.seeds)
        for method, own in methods.items()
        if results.get(data, seed, method) is None
    ]


def do(task: Task) -> Scores:
    """Evaluate a method on a set."""
    name, directory, seed, method, own = task
    return evaluate(_load(name, directory), seed, method, own)


def outcomes(todo: Sequence[Task], options: argparse.Namespace) -> Iterator[Scores]:
    """Do the tasks here, or in processes of one thread each."""
    if options.jobs == 1:
        with threadpool_limits(options.threads):
            yield from map(do, todo)
        return
    with ProcessPoolExecutor(options.jobs, initializer=_begin_worker) as pool:
        yield from pool.map(do, todo)


def _begin_worker() -> None:
    """Keep a worker to one thread, and quiet."""
    threadpool_limits(1)
    warnings.simplefilter("ignore")


def run(
    sets: Sequence[Tensors],
    methods: dict[str, dict[str, Any]],
    results: Results,
    options: argparse.Namespace,
) -> None:
    """Do what is not known yet, and keep it."""
    todo, by_name = tasks(sets, methods, results, options), {data.key: data for data in sets}
    for (name, _, seed, method, _), scores in zip(todo, outcomes(todo, options), strict=True):
        results.add(by_name[name], seed, method, scores)
        told = f"{mean(scores.scores):.4f}, {scores.seconds:.1f} s {scores.info}"
        print(f"{name} seed {seed} {method}: {told}", file=sys.stderr, flush=True)


def variants(given: Sequence[Sequence[str]]) -> dict[str, dict[str, Any]]:
    """Read names and arguments, such as ``"three terms" n_terms=(3,) refit=False``."""
    return {name: dict(map(_argument, arguments)) for name, *arguments in given}


def _argument(text: str) -> tuple[str, Any]:
    """Read ``name=value``; a value that is no Python literal is a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise SystemExit(f"--variant expects name=value after its name, got {text!r}.")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add, metavar = parser.add_argument, "METHOD"
    add("--data", type=Path, help="directory of .npz files (default: only sets of packages)")
    add("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET", help=", ".join(SETS))
    methods = [*OURS, *PEERS]
    add("--methods", nargs="*", choices=methods, default=methods, metavar=metavar)
    add(
        "--variant",
        nargs="+",
        action="append",
        default=[],
        metavar=("NAME", "ARGUMENT=VALUE"),
        help="this library with these arguments, too (sets of vectors take one term only)",
    )
    add("--seeds", type=int, default=5, help="shuffles of the folds (default: 5)")
    add("--threads", type=int, help="threads of BLAS and of pyfastr (default: all)")
    add("--jobs", type=int, default=1, help="processes, of one thread each if more than one")
    add("--jsonl", type=Path, help="keep scores here, and do not repeat those that are")
    add("--redo", nargs="+", default=[], metavar=metavar, help="repeat these")
    return parser.parse_args()


def main() -> None:
    """Run the benchmark and print its tables."""
    options = parse()
    warnings.simplefilter("ignore")  # that a method did not converge shows in its score
    results = Results(options.jsonl, options.redo, Scores)
    print(environment())
    if results.n_read:
        print(f"{results.n_read} scores are read from {options.jsonl}, from earlier runs.")
    sets, missing = load_sets(options.data, options.sets)
    for name, needed in missing.items():
        print(f"{name} is skipped; it needs: {needed}")
    methods = {m: OURS.get(m, {}) for m in options.methods} | variants(options.variant)
    run(sets, methods, results, options)
    print_report(rows_of(sets, results, list(methods), options.seeds), list(methods))


if __name__ == "__main__":
    main()
