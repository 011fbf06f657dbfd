"""The methods that the paper compares, as ``accuracy.py --methods`` runs them.

Parameters are chosen on fresh samples, as many as there are to fit to. Each method has the grid of
its authors where they name one; what is not tuned has its default.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial, reduce
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from _fits import Array, Fit, Methods

from pyfastr.baselines import (
    GLTRM,
    DantzigSelector,
    ElementaryRidge,
    OrTRR,
    PublishedFasTR,
    Remurs,
    VectorizedElasticNet,
    VectorizedLasso,
    elementary_ridge_path,
    remurs_path,
    sturm_path,
)
from pyfastr.baselines.surf import SURF, stagewise_path

NOISE = 0.1
PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
# Of SURF, whose default of 0.1 cannot reach coefficients of an ℓ1 norm beyond 100. That alone makes
# it better at 10x10x10 than the authors' code was measured: with 0.1 it is as far off.
STEPS = (0.1, 1.0, 5.0)
# Where the walk over the grid of Remurs and Sturm begins, and its strides.
MIDDLE, STRIDES = (6, 6), (2, 1)
# From here on a walk from the middle takes half an hour: it begins where that of the first data set
# of 100x100x5 ended, and has short strides only.
LARGE = 20_000
REMURS_END, STURM_END = (7, 0), (11, 0)


class Candidate(NamedTuple):
    """A coefficient, its intercept, and the parameters it was fitted with."""

    coef: Array
    intercept: float
    params: dict[str, Any]


class Fresh:
    """Samples that no candidate was fitted to, from the same coefficient."""

    def __init__(self, n_samples: int, W: Array) -> None:
        rng = np.random.default_rng([n_samples, *W.shape])
        self.X = rng.standard_normal((n_samples, *W.shape))
        self.y = np.tensordot(self.X, W, W.ndim) + NOISE * rng.standard_normal(n_samples)

    def error(self, candidate: Candidate) -> float:
        """Mean squared error; infinite where a fit ran away."""
        prediction = np.tensordot(self.X, candidate.coef, candidate.coef.ndim)
        error = float(np.mean(np.square(self.y - prediction - candidate.intercept)))
        return error if np.isfinite(error) else np.inf

    def best(self, candidates: Iterable[Candidate]) -> Candidate:
        """Return the candidate of the least error."""
        return min(candidates, key=self.error)


def held_out_mse(candidate: Candidate, W: Array) -> float:
    """Expected squared error of one more sample: entries of X are N(0, 1), so none is drawn."""
    return float(np.sum(np.square(candidate.coef - W)) + candidate.intercept**2 + NOISE**2)


def of_model(model: Any, **params: Any) -> Candidate:
    """Read a candidate off a fitted estimator."""
    return Candidate(model.coef_, model.intercept_, params)


def fit_gltrm(X: Array, y: Array, fresh: Fresh) -> Iterator[Candidate]:
    """Fit rank one from five starts; there is nothing to choose."""
    yield of_model(GLTRM(random_state=0).fit(X, y))


def fit_gltrm_sparse(X: Array, y: Array, fresh: Fresh) -> Iterator[Candidate]:
    """Fit every penalty from the dense solution, which is one of the candidates."""
    dense = GLTRM(random_state=0).fit(X, y)
    yield of_model(dense, penalty=0.0)
    for penalty in PENALTIES:
        yield of_model(GLTRM(penalty=penalty, init=dense.factors_).fit(X, y), penalty=penalty)


def walk(
    path: Callable[..., Any], known_end: tuple[int, int], X: Array, y: Array, fresh: Fresh
) -> Iterator[Candidate]:
    """Walk over the authors' grid to the best of its neighbours, in wide strides and then in short.

    All 156 points would take hours at the larger sizes.
    """
    alphas, betas = Remurs.param_grid_["alpha"], Remurs.param_grid_["beta"]
    errors: dict[tuple[int, int], float] = {}
    large = X[0].size >= LARGE
    here = known_end if large else MIDDLE
    for stride in STRIDES[1:] if large else STRIDES:
        best = None
        while best != here:
            here = best or here
            for rows, columns in unknown_blocks(here, stride, errors):
                values = {"alphas": [alphas[r] for r in rows], "betas": [betas[c] for c in columns]}
                coefs = path(X, y, **values).coefs
                for i, j in product(range(len(rows)), range(len(columns))):
                    params = {"alpha": alphas[rows[i]], "beta": betas[columns[j]]}
                    candidate = Candidate(coefs[i, j], 0.0, params)
                    errors[rows[i], columns[j]] = fresh.error(candidate)
                    yield candidate
            best = min(errors, key=lambda at: errors[at])


def unknown_blocks(
    centre: tuple[int, int], stride: int, known: Container[tuple[int, int]]
) -> Iterator[tuple[list[int], list[int]]]:
    """Rows and columns of neighbours on the grid that are not known: blocks share a path."""
    sizes = (len(Remurs.param_grid_["alpha"]), len(Remurs.param_grid_["beta"]))
    rows, columns = (
        [i for i in (at - stride, at, at + stride) if 0 <= i < size]
        for at, size in zip(centre, sizes, strict=True)
    )
    missing = [[c for c in columns if (row, c) not in known] for row in rows]
    for some in filter(None, {tuple(each): each for each in missing}.values()):
        yield [row for row, each in zip(rows, missing, strict=True) if each == some], some


def fit_surf(X: Array, y: Array, fresh: Fresh) -> Iterator[Candidate]:
    """Follow the path of one term for every ridge and step, and take its best point."""
    both, responses = np.concatenate([X, fresh.X]), np.concatenate([y, fresh.y])
    for step in STEPS:
        for ridge in SURF.param_grid_["ridge"]:
            path = stagewise_path(
                both,
                responses,
                range(len(y), len(both)),
                ridge=ridge,
                step=step,
                fit_intercept=False,
            )
            at = int(path.test_errors.argmin())
            coef = path.norms[at] * reduce(np.multiply.outer, [w[at] for w in path.factors])
            yield Candidate(coef, 0.0, {"ridge": ridge, "step": step})


def fit_ridge(X: Array, y: Array, fresh: Fresh) -> Iterator[Candidate]:
    """Fit EE-Ridge on its grid from one decomposition."""
    grid = ElementaryRidge.param_grid_
    coefs = elementary_ridge_path(X, y, thresholds=grid["threshold"], ridges=grid["ridge"])
    for threshold, row in zip(grid["threshold"], coefs, strict=True):
        for ridge, coef in zip(grid["ridge"], row, strict=True):
            yield Candidate(coef, 0.0, {"threshold": threshold, "ridge": ridge})


def fit_grid(
    make: Callable[..., Any], grid: dict[str, list[Any]], X: Array, y: Array, fresh: Fresh
) -> Iterator[Candidate]:
    """Fit every point of a grid of up to two parameters."""
    points: list[dict[str, Any]] = [{}]
    for name, values in grid.items():
        points = [{**point, name: value} for point in points for value in values]
    for point in points:
        yield of_model(make(**point).fit(X, y), **point)


def choosing(candidates: Callable[..., Iterable[Candidate]]) -> Callable[..., Fit]:
    """Make a method of the worker out of candidates: the best on fresh samples."""
    return partial(_choose, candidates)


def _choose(candidates: Callable[..., Iterable[Candidate]], X: Array, y: Array, W: Array) -> Fit:
    fresh = Fresh(len(y), W)
    best = fresh.best(candidates(X, y, fresh))
    return best.coef, {"mse": held_out_mse(best, W), **best.params}


BASELINES: Methods = {
    "gltrm": choosing(fit_gltrm),
    "gltrm_sparse": choosing(fit_gltrm_sparse),
    "remurs_top6": choosing(partial(walk, partial(remurs_path, n_singular=6), REMURS_END)),
    "remurs": choosing(partial(walk, remurs_path, REMURS_END)),
    "sturm": choosing(partial(walk, sturm_path, STURM_END)),
    "surf": choosing(fit_surf),
    "published_tuned": choosing(
        partial(fit_grid, partial(PublishedFasTR, random_state=0), PublishedFasTR.param_grid_)
    ),
    "ortrr": choosing(partial(fit_grid, partial(OrTRR, random_state=0), OrTRR.param_grid_)),
    "ee_ridge": choosing(fit_ridge),
    "dantzig": choosing(partial(fit_grid, DantzigSelector, {"alpha": [1.0, 10.0, 100.0]})),
    "lasso_cv": choosing(partial(fit_grid, VectorizedLasso, {})),
    "enet_cv": choosing(partial(fit_grid, VectorizedElasticNet, {"l1_ratio": [0.1, 0.5, 0.9]})),
}
