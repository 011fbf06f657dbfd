"""What the docstrings say that fits do not depend on, over shapes, units and weights.

Samples outnumber the free parameters and a ridge leaves one solution, so that two searches for it
end at the same.
"""

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from pyfastr import FasTRClassifier, FasTRRegressor, TensorScaler

SHAPES = st.sampled_from([(5,), (1,), (4, 3), (1, 4), (5, 1, 3), (3, 2, 3), (2, 3, 1, 2), (2,) * 5])
SEEDS = st.integers(0, 50)
POWERS = st.integers(-150, 150)
THRESHOLDS = st.sampled_from([0.0, 0.01, 0.2, 0.999])
RIDGES = st.sampled_from([0.0, 1e-5, 0.01])
OPTIONS = {"n_init": 4, "tol": 1e-7, "max_iter": 2000, "random_state": 0}


def draw(shape, seed, n_samples=60):
    """X and y of one strong term, so that all starts agree on it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, *shape)) + rng.normal(size=shape)
    W = np.ones(())
    for p in shape:
        W = np.multiply.outer(W, rng.choice([-1.0, 1.0], p) * rng.uniform(0.5, 1.5, p))
    signal = X.reshape(n_samples, -1) @ W.ravel()
    return X, 2 + signal + 0.05 * signal.std() * rng.normal(size=n_samples)


def assert_same(found, expected, share=1e-4):
    """Equal up to a share of the largest entry."""
    expected = np.asarray(expected)
    assert_allclose(found, expected, rtol=0, atol=share * max(np.abs(expected).max(), 1e-300))


@given(shape=SHAPES, seed=SEEDS, ridge=RIDGES, threshold=THRESHOLDS, x_power=POWERS, y_power=POWERS)
def test_units_of_x_and_y_are_those_of_the_coefficient(
    shape, seed, ridge, threshold, x_power, y_power
):
    X, y = draw(shape, seed)
    a, c = 10.0**x_power, 10.0**y_power
    plain = FasTRRegressor(threshold, ridge, **OPTIONS).fit(X, y)
    scaled = FasTRRegressor(threshold, ridge, **OPTIONS).fit(a * X, c * y)
    assert_same(scaled.coef_ * a / c, plain.coef_)
    assert_same(scaled.intercept_ / c, plain.intercept_)
    assert_same(scaled.predict(a * X) / c, plain.predict(X))


@given(shape=SHAPES, seed=SEEDS, ridge=RIDGES, far=st.sampled_from([1.0, -30.0, 1e3]))
def test_constants_added_to_x_and_y_move_only_the_intercept(shape, seed, ridge, far):
    X, y = draw(shape, seed)
    array = far * np.random.default_rng(seed + 1).normal(size=shape)
    plain = FasTRRegressor(ridge=ridge, **OPTIONS).fit(X, y)
    moved = FasTRRegressor(ridge=ridge, **OPTIONS).fit(X + array, y + far)
    assert_same(moved.coef_, plain.coef_)
    assert_same(moved.predict(X + array) - far, plain.predict(X))


@given(shape=SHAPES, seed=SEEDS, data=st.data())
def test_the_order_of_modes_and_of_samples_is_that_of_the_answer(shape, seed, data):
    X, y = draw(shape, seed)
    order = data.draw(st.permutations(range(len(shape))))
    rows = np.random.default_rng(seed).permutation(len(y))
    plain = FasTRRegressor(**OPTIONS).fit(X, y)
    turned = FasTRRegressor(**OPTIONS).fit(X.transpose(0, *(m + 1 for m in order))[rows], y[rows])
    assert_same(turned.coef_, plain.coef_.transpose(order))


@given(shape=SHAPES, seed=SEEDS, threshold=THRESHOLDS)
def test_whole_weights_are_repeated_samples_and_zero_is_none(shape, seed, threshold):
    X, y = draw(shape, seed)
    weights = np.random.default_rng(seed).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    # Nothing of a sample without weight counts, not even its size.
    beside = np.where(weights > 0, 1.0, 1e3).reshape(-1, *[1] * len(shape))
    weighted = FasTRRegressor(threshold, 0.01, **OPTIONS).fit(X * beside, y, sample_weight=weights)
    repeated = FasTRRegressor(threshold, 0.01, **OPTIONS).fit(X[rows], y[rows])
    assert_same(weighted.coef_, repeated.coef_, 1e-3)
    assert_same(weighted.intercept_, repeated.intercept_, 1e-3)


@given(shape=SHAPES, seed=SEEDS, power=st.integers(-280, 280))
def test_only_ratios_of_weights_count(shape, seed, power):
    X, y = draw(shape, seed)
    weights = np.random.default_rng(seed).exponential(size=len(y))
    plain = FasTRRegressor(**OPTIONS).fit(X, y, weights)
    other = FasTRRegressor(**OPTIONS).fit(X, y, weights * 10.0**power)
    assert_same(other.coef_, plain.coef_)
    assert_same(other.intercept_, plain.intercept_)


@given(
    shape=st.sampled_from([(4,), (3, 2), (2, 3, 2)]),
    seed=SEEDS,
    loss=st.sampled_from(["squared", "logistic"]),
)
def test_names_of_classes_turned_around_turn_the_decision_around(shape, seed, loss):
    X, y = draw(shape, seed)
    is_high = y > np.median(y)
    options = {"loss": loss, "n_init": 1, "max_iter": 4, "random_state": 0}
    with warnings.catch_warnings():
        # Every step is turned around, converged or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        one = FasTRClassifier(**options).fit(X, np.where(is_high, "b", "a"))
        other = FasTRClassifier(**options).fit(X, np.where(is_high, "a", "b"))
    assert_same(other.decision_function(X), -one.decision_function(X))


@given(shape=SHAPES, seed=SEEDS, per=st.sampled_from(["element", "global", 0]), power=POWERS)
def test_scaled_samples_have_no_units(shape, seed, per, power):
    X, _ = draw(shape, seed)
    plain = TensorScaler(per=per).fit_transform(X)
    assert_same(TensorScaler(per=per).fit_transform(7 + X) if per else plain, plain, 1e-9)
    # Squares of 1e150 are in range, those of many times that are refused.
    assert_same(TensorScaler(per=per).fit_transform(X * 10.0 ** (power / 1.1)), plain, 1e-9)
