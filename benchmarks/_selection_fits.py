"""Cross-validations that `selection.py` times, each a method for the worker of `_fits.py`."""

import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy as np
from _fits import Array, Fit, Methods
from _grid import fit_grid
from sklearn.linear_model import ElasticNetCV, LassoCV
from sklearn.model_selection import KFold

from pyfastr import FasTRRegressor, FasTRRegressorCV
from pyfastr.estimators.choice_policy import PointsPolicy
from pyfastr.solver.policy import SearchPolicy

N_FOLDS = 5
# Ten, as is asked for; those of the estimator, but for one of next to nothing.
THRESHOLDS, GRIDS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.55, 0.9), PointsPolicy()
L1_RATIO = 0.5
# Of scikit-learn's paths.
N_ALPHAS, EPS = 100, 1e-3
# Fits that single ones are extrapolated from, as long as they take no longer than their share of
# the limit.
SHARE_OF_LIMIT = 0.5


def cv_fastr(X: Array, y: Array, W: Array) -> Fit:
    """All folds and grid points of one term in one batch, and the refit.

    The grids are named, as "auto" has other ridges where samples are few, and all methods must have
    the same.
    """
    return _choose(X, y, THRESHOLDS)


def cv_fastr_ridges(X: Array, y: Array, W: Array) -> Fit:
    """The folds and ridges alone, which are all that tensorly's method can choose from."""
    return _choose(X, y, (0.0,))


def _choose(X: Array, y: Array, thresholds: Sequence[float]) -> Fit:
    grid = (thresholds, GRIDS.ridges, (1,))
    model = FasTRRegressorCV(*grid, cv=N_FOLDS, refit=True, random_state=0).fit(X, y)
    chosen = {"threshold": model.threshold_, "ridge": model.ridge_, "score": model.best_score_}
    return model.coef_, chosen


def cv_one_by_one(X: Array, y: Array, W: Array, *, n_fits: int, limit: float) -> Fit:
    """The same fits by single estimators; the refit is not counted."""

    def fit(X_train: Array, y_train: Array, threshold: float, ridge: float) -> None:
        model = FasTRRegressor(threshold, ridge, refit_support=True, random_state=0)
        model.fit(X_train, y_train)

    return None, extrapolate(fit, X, y, [THRESHOLDS, GRIDS.ridges], n_fits, limit)


def cv_one_by_one_as_folds(X: Array, y: Array, W: Array, *, n_fits: int, limit: float) -> Fit:
    """The same with the fewer starts and sweeps that folds of enough samples are given."""

    def fit(X_train: Array, y_train: Array, threshold: float, ridge: float) -> None:
        fit_grid(X_train, y_train, [ridge], [threshold], SearchPolicy(), max_iter=GRIDS.sweeps)

    return None, extrapolate(fit, X, y, [THRESHOLDS, GRIDS.ridges], n_fits, limit)


def cv_tensorly(X: Array, y: Array, W: Array, *, n_fits: int, limit: float) -> Fit:
    """A loop of tensorly's rank-one ridge, defaults otherwise; it has no intercept: centred."""
    from tensorly.regression import CPRegressor

    def fit(X_train: Array, y_train: Array, ridge: float) -> None:
        model = CPRegressor(weight_rank=1, reg_W=ridge, random_state=0, verbose=0)
        model.fit(X_train, y_train)

    return None, extrapolate(fit, X, y, [GRIDS.ridges], n_fits, limit, centred=True)


def extrapolate(
    fit: Callable[..., None],
    X: Array,
    y: Array,
    grids: list[Sequence[float]],
    n_fits: int,
    limit: float,
    *,
    centred: bool = False,
) -> dict[str, Any]:
    """Time some fits of the grid of all folds, and say how long all would take.

    The copies of the training samples, and centring them, are outside the clock.
    """
    folds = list(KFold(N_FOLDS, shuffle=True, random_state=0).split(X))
    begin, times = time.perf_counter(), []
    for fold, *point in drawn(n_fits, N_FOLDS, *map(len, grids)):
        X_train, y_train = X[folds[fold][0]], y[folds[fold][0]]
        if centred:
            X_train -= X_train.mean(axis=0)
            y_train -= y_train.mean()
        params = [grid[i] for grid, i in zip(grids, point, strict=True)]
        times.append(seconds_of(fit, X_train, y_train, *params))
        if time.perf_counter() - begin > SHARE_OF_LIMIT * limit:
            break
    total = prod(map(len, grids)) * N_FOLDS
    each = {"each": float(np.mean(times)), "least": min(times), "most": max(times)}
    return {"seconds": total * each["each"], "total": total, "timed": len(times), **each}


def drawn(n_fits: int, *sizes: int) -> Iterator[tuple[int, ...]]:
    """Yield points of a grid: even along every axis, as in a Latin square, in random order."""
    rng = np.random.default_rng(0)
    axes = [rng.permutation(np.arange(n_fits) * size // n_fits) for size in sizes]
    yield from zip(*(axis.tolist() for axis in axes), strict=True)


def seconds_of(work: Callable[..., Any], *args: Any) -> float:
    """Time one call."""
    begin = time.perf_counter()
    work(*args)
    return time.perf_counter() - begin


def flat(X: Array) -> Array:
    """View samples as rows of a matrix."""
    return X.reshape(len(X), -1)


def cv_lasso(X: Array, y: Array, W: Array) -> Fit:
    """scikit-learn's lasso."""
    return LassoCV(cv=N_FOLDS).fit(flat(X), y).coef_.reshape(W.shape), {}


def cv_elastic_net(X: Array, y: Array, W: Array) -> Fit:
    """scikit-learn's elastic net, half of it lasso."""
    return ElasticNetCV(cv=N_FOLDS).fit(flat(X), y).coef_.reshape(W.shape), {}


def cv_celer_lasso(X: Array, y: Array, W: Array) -> Fit:
    """celer's lasso: its own class, or its path where the class does not run."""
    return _celer("LassoCV", X, y, W, 1.0)


def cv_celer_elastic_net(X: Array, y: Array, W: Array) -> Fit:
    """celer's elastic net, with scikit-learn's share of the lasso."""
    return _celer("ElasticNetCV", X, y, W, L1_RATIO)


def _celer(name: str, X: Array, y: Array, W: Array, l1_ratio: float) -> Fit:
    import celer

    params = {} if l1_ratio == 1 else {"l1_ratio": l1_ratio}
    try:
        model = getattr(celer, name)(cv=N_FOLDS, **params)
    except TypeError as error:  # from scikit-learn 1.9 on
        coef, info = _celer_folds(X, y, l1_ratio)
        return coef.reshape(W.shape), {"note": f"celer_path; {name}: {first_line(error)}", **info}
    return model.fit(flat(X), y).coef_.reshape(W.shape), {}


def _celer_folds(X: Array, y: Array, l1_ratio: float) -> tuple[Array, dict[str, Any]]:
    """Run celer's path in each fold, and on all data down to the penalty that predicts best."""
    alphas = _alphas(flat(X), y, l1_ratio)
    errors = np.zeros(len(alphas))
    for train, test in KFold(N_FOLDS).split(X):
        coefs, offsets = _celer_path(flat(X)[train], y[train], alphas, l1_ratio)
        predictions = flat(X)[test] @ coefs + offsets
        errors += np.square(y[test][:, None] - predictions).mean(axis=0)
    best = int(errors.argmin())
    coefs, _ = _celer_path(flat(X), y, alphas[: best + 1], l1_ratio)
    return coefs[:, -1], {"alpha": float(alphas[best])}


def _celer_path(X: Array, y: Array, alphas: Array, l1_ratio: float) -> tuple[Array, Array]:
    """Coefficients ``(p, A)`` and intercepts with the defaults of celer's CV classes."""
    from celer import celer_path

    mean = X.mean(axis=0)
    centred = np.asfortranarray(X - mean)
    options = {"max_iter": 100, "tol": 1e-4, "prune": True}
    coefs = celer_path(centred, y - y.mean(), "lasso", alphas=alphas, l1_ratio=l1_ratio, **options)[
        1
    ]
    return coefs, y.mean() - mean @ coefs


def _alphas(X: Array, y: Array, l1_ratio: float) -> Array:
    """The penalties of scikit-learn's path."""
    largest = np.abs((y - y.mean()) @ X).max() / (len(y) * l1_ratio)
    return np.geomspace(largest, EPS * largest, N_ALPHAS)


def cv_adelie(X: Array, y: Array, W: Array) -> Fit:
    """adelie's lasso, on a path as long as scikit-learn's."""
    if find_spec("adelie") is None:
        raise ImportError("not installed")
    import adelie

    path = {"lmda_path_size": N_ALPHAS, "min_ratio": EPS, "progress_bar": False}
    columns, glm = np.asfortranarray(flat(X)), adelie.glm.gaussian(y=y)
    found = adelie.cv_grpnet(X=columns, glm=glm, n_folds=N_FOLDS, **path)
    state = found.fit(X=columns, glm=glm, progress_bar=False)
    return np.asarray(state.betas[-1].todense()).reshape(W.shape), {}


def first_line(error: Exception) -> str:
    """Write an error in one line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0]}"


SELECTIONS: Methods = {
    "fastr": cv_fastr,
    "fastr, ridges alone": cv_fastr_ridges,
    "one by one": cv_one_by_one,
    "one by one, as folds": cv_one_by_one_as_folds,
    "tensorly": cv_tensorly,
    "LassoCV": cv_lasso,
    "ElasticNetCV": cv_elastic_net,
    "celer lasso": cv_celer_lasso,
    "celer elastic net": cv_celer_elastic_net,
    "adelie": cv_adelie,
}
EXTRAPOLATED = ("one by one", "one by one, as folds", "tensorly")
