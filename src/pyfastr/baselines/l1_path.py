"""Paths of the lasso and the elastic net on matrices, by the solvers of others."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path

from pyfastr.baselines.samples import FlatSamples
from pyfastr.estimators.warning import warn

Array = NDArray[Any]

# celer's working sets pay where most features are never looked at: with many features, and at
# penalties that leave scikit-learn many sweeps to do. Set up on benchmarks/baselines.py. On other
# seeds, shapes and correlated columns the choice took 0.66 of scikit-learn's time in all and was
# slower than it by more than a tenth and a millisecond twice, by two and four milliseconds; rules
# by the number of features alone were slower than it in more places.
_CELER_MIN_FEATURES = 200
_CELER_MIN_FEATURES_PER_SAMPLE = 2
_CELER_MAX_ALPHA = 0.3


class PathSolver(NamedTuple):
    """How to solve for a coefficient: the solver's name, tolerance and limit."""

    name: str
    tol: float
    max_iter: int


def faster_solver(n_samples: int, n_features: int, alpha_share: float, ratio: float) -> str:
    """Name the faster solver for a size and a penalty.

    Parameters
    ----------
    n_samples, n_features : int
    alpha_share : float
        The penalty as a share of the smallest that gives zero; 0 for a path.
    ratio : float
        The share of the ℓ1 norm in the penalty.

    Returns
    -------
    {"celer", "sklearn"}
    """
    # The less of the ℓ1 norm, the sooner scikit-learn ends, and the more features are in use.
    sparsity = ratio**2
    wide = n_features >= _CELER_MIN_FEATURES_PER_SAMPLE * n_samples
    many = n_features * sparsity >= _CELER_MIN_FEATURES
    weak = alpha_share <= _CELER_MAX_ALPHA * sparsity
    return "celer" if wide and many and weak and has_celer() else "sklearn"


def held_out_errors(
    samples: FlatSamples,
    fold: tuple[Array, Array],
    alphas: Array,
    ratio: float,
    solver: PathSolver,
    fit_intercept: bool,
) -> Array:
    """Mean squared error on the samples left out, for every penalty."""
    train, test = fold
    own = own_copies(samples, train, fit_intercept)
    coefs, _ = l1_path(own.X, own.y, alphas, ratio, solver)
    predictions = samples.X[test] @ coefs - own.X_mean @ coefs + own.y_mean
    return ((samples.y[test, np.newaxis] - predictions) ** 2).mean(axis=0)


class OwnCopies(NamedTuple):
    """Samples in memory that is the solvers' own, and what was taken off them."""

    X: Array
    y: Array
    X_mean: Array
    y_mean: float


def own_copies(samples: FlatSamples, rows: Any, fit_intercept: bool) -> OwnCopies:
    """Copy samples column by column, centred if there is an intercept.

    The solvers work on columns, and celer takes no memory that it may not write.
    """
    X, y = np.array(samples.X[rows], order="F"), np.array(samples.y[rows])
    if not fit_intercept:
        return OwnCopies(X, y, np.zeros(X.shape[1]), 0.0)
    X_mean, y_mean = X.mean(axis=0), float(y.mean())
    X -= X_mean
    y -= y_mean
    return OwnCopies(X, y, X_mean, y_mean)


def l1_path(
    X: Array, y: Array, alphas: Any, ratio: float, solver: PathSolver
) -> tuple[Array, Array]:
    """Coefficients (p, n_alphas) and iterations along a path, from a Fortran-ordered X."""
    if not y.any():
        # With y = 0 the tolerance is 0, and scikit-learn 1.6 would never report convergence.
        return np.zeros((X.shape[1], len(alphas)), X.dtype), np.zeros(len(alphas), int)
    common: dict[str, Any] = {
        "l1_ratio": ratio,
        "alphas": np.asarray(alphas),
        "tol": solver.tol,
        "max_iter": solver.max_iter,
        "return_n_iter": True,
    }
    if solver.name == "sklearn":
        # As in scikit-learn's own estimators: a Gram matrix pays only for many penalties. It
        # is made here, as version 1.6 makes none of an input that it does not check.
        if len(alphas) > 1 and len(X) > X.shape[1]:
            common |= {"precompute": X.T @ X, "Xy": X.T @ y}
        else:
            common["precompute"] = False
        path = enet_path(X, y, copy_X=False, check_input=False, **common)
        _, coefs, _, n_iters = path
    else:
        # Sets that may shrink, from more features than celer's default: faster at all sizes.
        _, coefs, _, n_iters = _celer_path()(X, y, "lasso", prune=1, p0=100, **common)
    return coefs, np.asarray(n_iters)


def _celer_path() -> Any:
    """Import celer's path, or say how to get it."""
    try:
        from celer import celer_path
    except ImportError as error:
        raise ImportError(
            'solver="celer" needs celer: run `pip install pyfastr[baselines]`, or use '
            'solver="sklearn".'
        ) from error
    return celer_path


@cache
def has_celer() -> bool:
    """Whether celer is installed."""
    return find_spec("celer") is not None


@contextmanager
def one_warning(what: str) -> Iterator[None]:
    """Make one warning of those of all fits within."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    others = [w for w in caught if not issubclass(w.category, ConvergenceWarning)]
    for other in others:
        warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    n_fits = len(caught) - len(others)
    if n_fits:
        message = (
            f"{what} did not converge to `tol` in {n_fits} fits: raise `max_iter` or `tol`, or "
            "bring X and y to a scale near 1."
        )
        warn(message, ConvergenceWarning)
