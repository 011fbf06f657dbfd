"""Numbers at the ends of their range, and more terms than there is room for."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
    fastr_path,
)

X = np.random.default_rng(0).normal(size=(30, 4, 3))
Y = X[:, 0, 0] + 0.1 * np.random.default_rng(1).normal(size=30)
SPREAD = 10.0 ** np.random.default_rng(2).uniform(-200, 200, 30)


@pytest.mark.parametrize("weights", [None, 1e200 * np.ones(30), 1e-200 * np.arange(30), SPREAD])
@pytest.mark.parametrize("size", [1e-249, 1e249])
def test_huge_and_tiny_responses_in_any_weights_have_an_intercept_and_a_score(weights, size):
    model = FasTRRegressor(0.0, 0.1, n_init=2, random_state=0).fit(X, size * Y, weights)
    plain = FasTRRegressor(0.0, 0.1, n_init=2, random_state=0).fit(X, Y, weights)
    assert model.intercept_ == pytest.approx(size * plain.intercept_, rel=1e-6)
    assert model.score(X, size * Y, weights) == pytest.approx(plain.score(X, Y, weights))


@pytest.mark.parametrize("size", [1e-200, 1e100, 1e200])
def test_a_choice_does_not_depend_on_the_units_of_y(size):
    grid = {"thresholds": (0.0, 0.2), "ridges": (0.1,), "cv": 3, "random_state": 0}
    plain = FasTRRegressorCV(**grid).fit(X, Y)
    model = FasTRRegressorCV(**grid).fit(X, size * Y)
    assert model.best_params_ == plain.best_params_
    assert model.best_score_ == pytest.approx(plain.best_score_)
    assert_allclose(model.coef_ / size, plain.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_a_choice_does_not_depend_on_the_units_of_weights(size):
    weights = np.arange(1.0, 31.0)
    grid = {"thresholds": (0.0,), "ridges": (0.1,), "n_terms": 1, "cv": 3, "random_state": 0}
    with warnings.catch_warnings():
        # So few samples are no matter here; RuntimeWarnings remain errors.
        warnings.simplefilter("ignore", UserWarning)
        for kind, y in ((FasTRRegressorCV, Y), (FasTRClassifierCV, Y > 0)):
            plain = kind(**grid).fit(X, y, sample_weight=weights)
            model = kind(**grid).fit(X, y, sample_weight=size * weights)
            assert model.best_score_ == pytest.approx(plain.best_score_)


def test_statistics_of_a_scaler_do_not_depend_on_the_units_of_weights():
    weights = np.arange(1.0, 31.0)
    plain = TensorScaler().fit(X, sample_weight=weights)
    for size in (1e-200, 1e200):
        scaler = TensorScaler().fit(X, sample_weight=size * weights)
        assert_allclose(scaler.scale_, plain.scale_)
        assert scaler.n_samples_seen_ == pytest.approx(size * plain.n_samples_seen_)


def test_an_intercept_too_large_for_float32_is_told():
    with pytest.raises(ValueError, match=r"intercept is of size 1e\+59, which float32 cannot hold"):
        FasTRRegressor().fit(X.astype(np.float32), np.full(30, 1e59))


@pytest.mark.parametrize("fit", [lambda *a, **k: FasTRRegressor().fit(*a, **k), fastr_path])
def test_a_coefficient_of_tiny_covariates_that_no_float_holds_is_told(fit):
    with pytest.raises(ValueError, match=r"covariates is of size .*Rescale one"):
        fit(X, 1e200 * Y, covariates=1e-150 * np.random.default_rng(3).normal(size=30))


def test_a_coefficient_of_zero_is_zero_in_units_that_no_float_holds():
    constant, y = np.full((30, 4, 3), 1e-150), 1e249 * Y
    with pytest.warns(ConvergenceWarning, match="coefficient is zero: X does not vary"):
        model = FasTRRegressor(random_state=0).fit(constant, y)
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(y.mean())
    path = fastr_path(constant, y, random_state=0)
    assert not path.scales.any()
    assert all(np.isfinite(own).all() for own in path.start)


def test_predictions_that_no_float_holds_are_told():
    model = FasTRRegressor(random_state=0).fit(X, 1e200 * Y)
    with pytest.raises(ValueError, match="prediction of sample 0 is larger than float64 can hold"):
        model.predict(1e150 * X)


def test_counts_that_are_out_of_range_are_refused():
    with pytest.raises(ValueError, match=r"y holds 1e\+240 at sample 0; expected counts up to 1e"):
        FasTRRegressor(loss="poisson").fit(X, np.full(30, 1e240))


def test_counts_that_differ_by_rounding_leave_nothing_to_explain():
    y = 1e26 * (1 + 1e-12 * np.arange(30))
    model = FasTRRegressor(loss="poisson", random_state=0).fit(X, np.arange(30.0))
    assert model.score(X, y) == 0.0


@pytest.mark.parametrize("kind", [FasTRRegressor, FasTRRegressorCV])
def test_evidence_of_a_constant_is_a_number(kind):
    asked = {"refit_support": "evidence"} if kind is FasTRRegressor else {"criterion": "evidence"}
    with pytest.warns(ConvergenceWarning, match="y is constant"):
        model = kind(random_state=0, **asked).fit(X, np.full(30, 3.0))
    value = model.evidence_ if kind is FasTRRegressor else model.best_score_
    assert np.isfinite(value)


@pytest.mark.parametrize("shape", [(3, 3, 3, 1, 1), (3, 1, 3, 2, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_huge_ridge_wipes_a_model_out_without_leaving_the_range_of_floats(shape, dtype):
    samples = np.random.default_rng(0).normal(size=(10, *shape)).astype(dtype)
    y = samples.reshape(10, -1).sum(axis=1).astype(float)
    with warnings.catch_warnings():
        # RuntimeWarnings remain errors.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for refit_support in (True, "evidence"):
            model = FasTRRegressor(0.0, 1e12, refit_support=refit_support, n_init=8, random_state=0)
            assert np.isfinite(model.fit(samples, y).coef_).all()


@pytest.mark.parametrize("sweep", ["cyclic", "simultaneous"])
@pytest.mark.parametrize("n_terms", [1, 3])
def test_samples_of_one_direction_are_no_singular_matrix(sweep, n_terms):
    strengths = np.random.default_rng(0).integers(-3, 4, size=40)
    pattern = np.array([[1.0, 2.0, 4.0], [2.0, 4.0, 8.0], [4.0, 8.0, 16.0], [8.0, 16.0, 32.0]])
    samples = np.multiply.outer(strengths.astype(float), pattern)
    y = strengths + np.random.default_rng(1).normal(size=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = FasTRRegressor(
            ridge=0.0, n_terms=n_terms, sweep=sweep, n_init=2, max_iter=200, random_state=0
        )
        model.fit(samples, y)
    assert model.converged_
    assert np.isfinite(model.coef_).all()
    line = np.polyval(np.polyfit(strengths, y, 1), strengths)
    assert_allclose(model.predict(samples), line, atol=1e-3)


@pytest.mark.parametrize(
    ("shape", "most"), [((4, 3), 3), ((2, 4, 3, 2), 12), ((1, 5), 1), ((2, 2, 2), 4)]
)
def test_more_terms_than_any_coefficient_needs_are_refused(shape, most):
    samples = np.random.default_rng(0).normal(size=(6, *shape))
    message = rf"n_terms is {most + 1}, but every coefficient of shape .* expected at most {most}\."
    for work in (
        lambda: FasTRRegressor(n_terms=most + 1).fit(samples, np.arange(6.0)),
        lambda: FasTRRegressorCV(n_terms=(1, most + 1)).fit(samples, np.arange(6.0)),
        lambda: FasTRClassifier(n_terms=most + 1).fit(samples, np.arange(6) % 2),
        lambda: fastr_path(samples, np.arange(6.0), n_terms=most + 1),
    ):
        with pytest.raises(ValueError, match=message):
            work()
