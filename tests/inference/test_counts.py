"""Inference on counts: the fits are those of the Poisson loss, and the score is D²."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_tweedie_score
from sklearn.model_selection import KFold

from pyfastr import FasTRRegressor, FasTRRegressorCV
from pyfastr.estimators.validation import as_generator
from pyfastr.inference import bootstrap_factors, permutation_test, stability_selection
from pyfastr.inference.bootstrap import bootstrap_counts

N_SAMPLES = 60


def planted(n_samples=N_SAMPLES, level=1.0):
    """Samples, counts that three entries of each mode make, weights and a covariate."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 6, 5))
    predictor = X[:, :3, -3:].sum(axis=(1, 2)) / 3
    weights, Z = rng.integers(1, 4, n_samples).astype(float), rng.normal(size=(n_samples, 1))
    return X, rng.poisson(np.exp(level + predictor)).astype(float), weights, Z


@pytest.mark.parametrize("adjusted", [False, True], ids=["alone", "weights and covariates"])
def test_permutations_are_scored_by_d2_of_a_loop_of_fits(adjusted):
    X, y, weights, Z = planted()
    weights, Z = (weights, Z) if adjusted else (None, None)
    cv, start = KFold(3), [np.ones(6), np.ones(5)]
    model = FasTRRegressor(0.05, 0.5, init=start, loss="poisson", max_iter=6)
    found = permutation_test(
        model, X, y, n_permutations=2, cv=cv, sample_weight=weights, covariates=Z, random_state=0
    )
    expected = []
    for train, test in cv.split(X):
        g, held = (None, None) if weights is None else (weights[train], weights[test])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[train], y[train], g, None if Z is None else Z[train])
        prediction = model.predict(X[test], None if Z is None else Z[test])
        expected.append(d2_tweedie_score(y[test], prediction, sample_weight=held, power=1))
    assert_allclose(found.score, np.mean(expected), atol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        FasTRRegressor(0.1, 0.1, loss="poisson", n_init=2),
        FasTRRegressorCV((0.0, 0.2), (0.1, 1.0), loss="poisson", n_init=2),
    ],
    ids=["given", "chosen"],
)
def test_counts_that_follow_x_are_told_from_chance(model):
    X, y, _, _ = planted()
    assert permutation_test(model, X, y, n_permutations=19, random_state=0).p_value == 0.05
    other = np.random.default_rng(5).poisson(2.0, N_SAMPLES)
    assert permutation_test(model, X, other, n_permutations=19, random_state=0).p_value > 0.05


def test_entries_that_make_counts_are_selected():
    X, y, _, _ = planted(200)
    model = FasTRRegressor(0.3, 0.05, loss="poisson", n_init=4)
    found = stability_selection(model, X, y, n_subsamples=20, random_state=0)
    assert_array_equal(found.selected(0.9)[0], np.arange(6) < 3)
    assert_array_equal(found.selected(0.9)[1], np.arange(5) > 1)


def test_bootstrap_samples_are_fits_with_whole_number_weights():
    X, y, weights, Z = planted()
    options = {"ridge": 0.1, "loss": "poisson", "tol": 1e-6}
    found = bootstrap_factors(
        FasTRRegressor(**options),
        X,
        y,
        n_bootstrap=3,
        sample_weight=weights,
        covariates=Z,
        random_state=0,
    )
    rng = as_generator(0)
    reference = FasTRRegressor(**options, random_state=int(rng.integers(2**31)))
    reference.fit(X, y, weights, Z)
    start = [reference.factors_[0] * reference.scales_, reference.factors_[1]]
    for k, counts in enumerate(bootstrap_counts([np.arange(N_SAMPLES)], N_SAMPLES, 3, rng)):
        model = FasTRRegressor(**options, init=start).fit(X, y, counts * weights, Z)
        for factor, samples in zip(model.factors_, found.samples, strict=True):
            assert_allclose(np.abs(samples[k]), np.abs(factor), atol=1e-8)
