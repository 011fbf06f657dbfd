"""A whole grid fitted to all data, by the road that the folds of a cross-validation take."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from _fits import Array

from pyfastr import FasTRRegressor
from pyfastr.estimators.data import Data
from pyfastr.estimators.folds import fit_folds
from pyfastr.estimators.validation import as_generator
from pyfastr.solver.policy import SearchPolicy


@dataclass(frozen=True)
class GridFit:
    """Coefficients ``(G, p1, ..., pM)`` and intercepts of all ridges and thresholds, in order."""

    coefs: Array
    intercepts: Array


def fit_grid(
    X: Array,
    y: Array,
    ridges: Sequence[float],
    thresholds: Sequence[float],
    policy: SearchPolicy,
    *,
    max_iter: int = 1000,
) -> GridFit:
    """Fit every point to all samples, as if they were the training samples of one fold."""
    data = Data.check(FasTRRegressor(), X, y, None, None, fit_intercept=True)
    twin = FasTRRegressor(ridge=min(ridges), refit_support=True, max_iter=max_iter)
    everyone = np.arange(len(y))
    fits = fit_folds(
        data,
        [(everyone, everyone)],
        ridges,
        thresholds,
        replace(twin._settings(X.shape), policy=policy),
        as_generator(0),
    )
    coefs = []
    for which in range(len(fits.models)):
        twin._set_factors(fits.data, fits.models.take(slice(which, which + 1)))
        coefs.append(twin.coef_)
    return GridFit(np.stack(coefs), fits.nuisance[:, 0])
