"""Every model of a grid is the one that a fit of its own would find from the same start."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold

from pyfastr import FasTRClassifier, FasTRRegressor
from pyfastr.datasets import make_tensor_regression
from pyfastr.estimators.data import Data
from pyfastr.estimators.folds import fit_folds
from pyfastr.solver.grid import solve_grid
from pyfastr.solver.losses import LOSSES

RIDGES, THRESHOLDS = (1e-3, 0.1, 1.0), (0.0, 0.05, 0.3)
N_SAMPLES = 70


def draw(shape, seed=0, n_terms=1):
    """Samples, a response, labels, weights, covariates and groups."""
    rng = np.random.default_rng(seed)
    X, y = make_tensor_regression(N_SAMPLES, shape, noise=1.0, n_terms=n_terms, random_state=seed)
    Z = rng.normal(size=(N_SAMPLES, 2))
    y = y + Z @ [1.0, -2.0] + 3
    labels = np.where(y > np.median(y) + rng.normal(size=N_SAMPLES), 1.0, -1.0)
    weights = rng.integers(1, 4, N_SAMPLES).astype(float)
    return X, y, labels, weights, Z, rng.integers(0, 9, N_SAMPLES)


def response_for(loss, y, labels):
    """The response as it is, labels, or counts that follow it."""
    counts = np.random.default_rng(0).poisson(np.exp((y - y.mean()) / y.std() + 1))
    return {"squared": y, "logistic": labels, "poisson": counts.astype(float)}[loss]


def settings_of(estimator, X):
    return estimator.set_params(ridge=min(RIDGES))._settings(X.shape)


def fold_fits(estimator, X, y, weights, Z, splits, *, loss="squared"):
    data = Data.check(FasTRRegressor(), X, y, weights, Z, fit_intercept=True, loss=LOSSES[loss])
    settings = settings_of(estimator, X)
    return fit_folds(data, splits, RIDGES, THRESHOLDS, settings, np.random.default_rng(0))


def begun_from(problem, settings):
    """What the sweeps of those fits begin from."""
    return solve_grid(problem, RIDGES, THRESHOLDS, settings, np.random.default_rng(0)).begun_from


def start_of(begun, which, x_scale_over_y_scale):
    """The start of one fold and ridge as arrays for `init`, whose product is the first W."""
    arrays = [c[which].T for c in begun.components]
    return [arrays[0] * begun.scales[which] / x_scale_over_y_scale, *arrays[1:]]


CASES = {
    "plain": {},
    "weights and covariates": {"weighted": True, "adjusted": True},
    "groups": {"grouped": True},
    "three terms": {"n_terms": 3},
    "refit": {"refit_support": True},
    "refit of two terms": {"refit_support": True, "n_terms": 2, "weighted": True},
    "logistic": {"loss": "logistic"},
    "logistic, adjusted and refit": {
        "loss": "logistic",
        "adjusted": True,
        "weighted": True,
        "refit_support": True,
    },
    "counts": {"loss": "poisson"},
    "counts, adjusted and refit": {
        "loss": "poisson",
        "adjusted": True,
        "weighted": True,
        "refit_support": True,
    },
    "simultaneous": {"sweep": "simultaneous"},
}


@pytest.mark.parametrize("shape", [(6, 5), (5, 4, 3), (12,)], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_a_grid_equals_single_fits_from_the_same_starts(shape, case):
    options = dict(CASES[case])
    weighted, adjusted = options.pop("weighted", False), options.pop("adjusted", False)
    grouped = options.pop("grouped", False)
    if len(shape) == 1 and options.get("n_terms", 1) > 1:
        pytest.skip("vectors have one term")
    X, y, labels, weights, Z, groups = draw(shape, n_terms=options.get("n_terms", 1))
    loss = options.get("loss", "squared")
    kind = FasTRClassifier if loss == "logistic" else FasTRRegressor
    y = response_for(loss, y, labels)
    weights, Z = weights if weighted else None, Z if adjusted else None
    cv = GroupKFold(3) if grouped else KFold(3, shuffle=True, random_state=0)
    splits = list(cv.split(X, y, groups if grouped else None))
    # Several terms under a high threshold may never settle, and triple a rounding error in each
    # sweep: more sweeps would compare that.
    n_sweeps = 8 if options.get("n_terms", 1) > 1 else 25
    options |= {"max_iter": n_sweeps, "random_state": 0, "n_init": 4}
    fits = fold_fits(kind(**options), X, y, weights, Z, splits, loss=loss)
    problem, k, n_compared = fits.data.problem, 0, 0
    begun = begun_from(problem, settings_of(kind(**options), X))
    for fold, (train, test) in enumerate(splits):
        for ridge in RIDGES:
            for threshold in THRESHOLDS:
                start = start_of(begun, k, problem.x_scale / problem.y_scale[fold])
                k += 1
                if not np.all(start[0].any(axis=0)):
                    # A large ridge made a term vanish, which no start of a user's may have.
                    continue
                model = kind(threshold, ridge, **{**options, "init": start})
                with warnings.catch_warnings():
                    # Sweeps that end before they stand still are compared all the same.
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    model.fit(
                        X[train],
                        y[train],
                        None if weights is None else weights[train],
                        None if Z is None else Z[train],
                    )
                expected = model._with_covariates(X[test], None if Z is None else Z[test])
                size = np.abs(expected).max()
                assert_allclose(fits.predictors[k - 1][test], expected, rtol=0, atol=1e-8 * size)
                n_compared += 1
    assert k == len(fits.models)
    assert n_compared >= k / 2


@pytest.mark.parametrize(
    "options", [{}, {"refit_support": True}, {"loss": "logistic"}, {"loss": "poisson"}], ids=str
)
@pytest.mark.parametrize("shape", [(6, 5), (5, 4, 3), (12,)], ids=str)
def test_held_out_samples_do_not_change_a_bit_of_a_fit(shape, options):
    X, y, labels, weights, Z, _ = draw(shape, seed=1)
    loss = options.get("loss", "squared")
    kind = FasTRClassifier if loss == "logistic" else FasTRRegressor
    y = response_for(loss, y, labels)
    splits = [next(KFold(3, shuffle=True, random_state=0).split(X))]
    rng = np.random.default_rng(2)
    found = []
    for _ in range(2):
        model = kind(**options, max_iter=25)
        fits = fold_fits(model, X, y, weights, Z, splits, loss=loss)
        found.append(fits)
        held_out = splits[0][1]
        X, y, Z, weights = X.copy(), y.copy(), Z.copy(), weights.copy()
        X[held_out] = 50 * rng.normal(size=X[held_out].shape)
        y[held_out] = 50 + y[held_out] if loss == "poisson" else -y[held_out]
        Z[held_out] = 1000 * rng.normal(size=Z[held_out].shape)
        weights[held_out] = 7.0
    for before, after in zip(found[0].models.components, found[1].models.components, strict=True):
        assert_array_equal(before, after)
    assert_array_equal(found[0].models.scales, found[1].models.scales)


@pytest.mark.parametrize("noise", [1e-3, 1.0])
def test_what_other_folds_find_in_held_out_samples_does_not_reach_a_fit(noise):
    # Without noise all folds are sure at once; those that train on wild samples search on, and
    # polish at every ridge.
    X, y, W = make_tensor_regression(90, (5, 4, 3), noise=0.0, coef=True, random_state=0)
    y = y / np.linalg.norm(W) + noise * np.random.default_rng(0).normal(size=90)
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    wild = y.copy()
    wild[splits[0][1]] = 5 * np.random.default_rng(1).normal(size=30)
    before, after = (
        fold_fits(FasTRRegressor(refit_support=True, max_iter=25), X, response, None, None, splits)
        for response in (y, wild)
    )
    own = before.models.task == 0
    assert own.any()
    for one, other in zip(before.models.components, after.models.components, strict=True):
        assert_allclose(one[own], other[own], rtol=0, atol=1e-9)
    assert not np.allclose(before.models.scales[~own], after.models.scales[~own], rtol=0.01)
