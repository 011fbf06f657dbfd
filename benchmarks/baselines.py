"""How long each baseline takes at the sizes of the paper, beside a reference where one exists.

The data are the paper's simulation. A fit and that of its reference take turns in a process of
their own, and the fastest of each counts; one that takes longer than ``--limit`` is ended. A
ratio below 1 says that this library is the faster one. Seconds are those of the processor, on one
thread: other work on the machine does not count.
"""

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from _report import environment, print_table, size_name, verdict
from numpy.typing import NDArray
from sklearn.linear_model import ElasticNet, ElasticNetCV, Lasso, LassoCV
from threadpoolctl import threadpool_limits

from pyfastr.baselines import (
    GLTRM,
    SURF,
    DantzigSelector,
    ElementaryRidge,
    OrTRR,
    PublishedFasTR,
    Remurs,
    Sturm,
    VectorizedElasticNet,
    VectorizedLasso,
    elementary_ridge_path,
    remurs_path,
    sturm_path,
)
from pyfastr.datasets import make_tensor_regression

Array = NDArray[Any]
Fit = Callable[[Array, Array], Any]

SIZES = {
    "20x20": ((20, 20), 40),
    "100x100": ((100, 100), 1000),
    "10x10x10": ((10, 10, 10), 100),
    "30x30x30": ((30, 30, 30), 100),
    "100x100x5": ((100, 100, 5), 500),
}

# A fit within this factor of its reference, and these seconds for the validation of tensors,
# counts as equally fast.
NOISE, VALIDATION = 1.1, 1e-3

# The four points around the middle of the authors' grid.
GRID = {"alphas": [0.5, 1.0, 5.0, 10.0], "betas": [0.5, 1.0, 5.0, 10.0]}


@dataclass(frozen=True)
class Method:
    """A fit of this library, and one of the same problem by others."""

    fit: Fit
    reference: Fit | None = None


def tensors(make: Callable[..., Any], **params: Any) -> Fit:
    """Fit an estimator to tensors."""
    return lambda X, y: make(**params).fit(X, y)


def vectors(make: Callable[..., Any], **params: Any) -> Fit:
    """Fit an estimator that knows matrices only."""
    return lambda X, y: make(**params).fit(X.reshape(len(X), -1), y)


def at_share(fit: Callable[..., Fit], make: Callable[..., Any], share: float) -> Fit:
    """Fit at a share of the smallest penalty that gives zero."""

    def run(X: Array, y: Array) -> Any:
        centred = y - y.mean()
        top = np.abs(np.tensordot(centred, X, 1)).max() / len(y)
        return fit(make, alpha=share * top)(X, y)

    return run


def one_by_one(make: Callable[..., Any], **grid: list[float]) -> Fit:
    """Fit the points of a grid one after another."""
    (first, second), values = grid, list(grid.values())
    return lambda X, y: [
        make(**{first: a, second: b}).fit(X, y) for a in values[0] for b in values[1]
    ]


def lasso_at(share: float) -> Method:
    """Fit the lasso at one penalty."""
    return Method(at_share(tensors, VectorizedLasso, share), at_share(vectors, Lasso, share))


# tensorly makes one start. It stops by the change of ‖W‖, this library by that of the objective,
# both at the same tolerance.
ONE_START = {"n_terms": 1, "n_init": 1, "tol": 1e-7, "max_iter": 100, "random_state": 0}


def tensorly_cp(X: Array, y: Array) -> Any:
    """Fit tensorly's ridge regression of rank one to centred data, as it has no intercept."""
    from tensorly.regression import CPRegressor

    model = CPRegressor(
        weight_rank=1, tol=1e-7, n_iter_max=100, reg_W=1.0, random_state=0, verbose=False
    )
    return model.fit(X - X.mean(axis=0), y - y.mean())


METHODS: dict[str, Method] = {
    "published": Method(tensors(PublishedFasTR, random_state=0)),
    "ridge": Method(tensors(ElementaryRidge)),
    "ridge_path": Method(
        lambda X, y: elementary_ridge_path(X, y, thresholds=[0.01, 0.1], ridges=[0.1, 1, 10, 100]),
        one_by_one(ElementaryRidge, threshold=[0.01, 0.1], ridge=[0.1, 1, 10, 100]),
    ),
    "dantzig": Method(tensors(DantzigSelector, alpha=10.0)),
    "lasso": Method(tensors(VectorizedLasso), vectors(LassoCV, cv=5)),
    "lasso_0.5": lasso_at(0.5),
    "lasso_0.1": lasso_at(0.1),
    "lasso_0.01": lasso_at(0.01),
    "enet": Method(tensors(VectorizedElasticNet), vectors(ElasticNetCV, cv=5)),
    "enet_0.1": Method(
        at_share(tensors, VectorizedElasticNet, 0.1), at_share(vectors, ElasticNet, 0.1)
    ),
    "remurs": Method(tensors(Remurs)),
    "remurs_path": Method(
        lambda X, y: remurs_path(X, y, **GRID),
        one_by_one(Remurs, alpha=GRID["alphas"], beta=GRID["betas"]),
    ),
    "sturm": Method(tensors(Sturm)),
    "sturm_path": Method(
        lambda X, y: sturm_path(X, y, **GRID),
        one_by_one(Sturm, alpha=GRID["alphas"], beta=GRID["betas"]),
    ),
    "surf": Method(tensors(SURF, max_terms=1)),
    "gltrm": Method(tensors(GLTRM, random_state=0)),
    "gltrm_sparse": Method(tensors(GLTRM, penalty=1.0, random_state=0)),
    "ortrr": Method(tensors(OrTRR, random_state=0)),
    "cp_ridge": Method(tensors(OrTRR, group=0.0, **ONE_START), tensorly_cp),
}


def measure(name: str, size: str, repeats: int, limit: float) -> tuple[str, list[float]]:
    """Time a method; returns why nothing was measured, or the seconds of fit and reference."""
    context = multiprocessing.get_context("spawn")
    pipe, far_end = context.Pipe()
    process = context.Process(target=serve, args=(far_end, name, size, repeats), daemon=True)
    process.start()
    far_end.close()
    best: dict[str, float] = {}
    try:
        pipe.recv()  # the data are there
        while pipe.poll(limit):
            side, seconds = pipe.recv()
            if side == "refused":
                return seconds, []
            best[side] = min(seconds, best.get(side, np.inf))
    except EOFError:
        pass  # all is measured
    finally:
        process.kill()
        process.join()
    return "", [best.get(side, np.inf) for side in ("fit", "reference")]


def serve(pipe: Any, name: str, size: str, repeats: int) -> None:
    """Fit and its reference in turns, and send what each takes."""
    warnings.simplefilter("ignore")  # that an iteration was ended early is part of the method
    method = METHODS[name]
    sides = {"fit": method.fit, "reference": method.reference}
    shape, n_samples = SIZES[size]
    X, y = make_tensor_regression(n_samples, shape, random_state=0)
    with threadpool_limits(1):
        for fit in filter(None, sides.values()):
            fit(*make_tensor_regression(20, (4, 3), random_state=0))
        pipe.send("ready")
        for side, fit in [s for s in sides.items() if s[1]] * repeats:
            begin = time.process_time()
            try:
                fit(X, y)
            except Exception as error:
                pipe.send(("refused", f"{type(error).__name__}: {error}"))
                return
            pipe.send((side, time.process_time() - begin))


def line(name: str, size: str, repeats: int, limit: float) -> list[str]:
    """One line of the table."""
    head = [name, size_name(*SIZES[size])]
    refusal, seconds = measure(name, size, repeats, limit)
    if refusal:
        return [*head, "–", "–", "–", refusal]
    ours, theirs = seconds
    cells = [f"{s:.4f}" if s < np.inf else f"> {limit:g}" for s in seconds]
    if METHODS[name].reference is None:
        return [*head, cells[0], "–", "–", ""]
    if ours == np.inf:
        return [*head, *cells, "–", "not measured"]
    bound = "< " if theirs == np.inf else ""
    theirs = min(theirs, limit)
    passed = ours <= NOISE * theirs + VALIDATION
    return [*head, *cells, f"{bound}{ours / theirs:.2f}", verdict(passed)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a fit may take")
    options = parser.parse_args()
    print(environment())
    header = ["method", "size", "seconds", "reference", "ratio", ""]
    for name in options.methods:
        rows = [line(name, size, options.repeats, options.limit) for size in options.sizes]
        print_table(name, header, rows)


if __name__ == "__main__":
    main()
