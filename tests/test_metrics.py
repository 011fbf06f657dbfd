"""Coefficient error and support scores."""

import numpy as np
import pytest

from pyfastr.metrics import coefficient_error, support_precision, support_recall

ALL = [coefficient_error, support_precision, support_recall]


def test_error_is_the_ratio_of_frobenius_norms():
    rng = np.random.default_rng(0)
    estimate, truth = rng.normal(size=(2, 4, 3, 5))
    expected = np.sqrt(((estimate - truth) ** 2).sum() / (truth**2).sum())
    assert coefficient_error(estimate, truth) == pytest.approx(expected, rel=1e-14)


def test_the_truth_has_error_zero_and_all_zeros_have_error_one():
    truth = np.random.default_rng(0).normal(size=(4, 3))
    assert coefficient_error(truth, truth) == 0.0
    assert coefficient_error(np.zeros((4, 3)), truth) == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-5, 1e5, 1e200, 1e307])
def test_the_error_does_not_depend_on_the_unit(scale):
    estimate, truth = np.array([3.0, 0.0, 1.0]), np.array([3.0, 4.0, 1.0])
    expected = 4 / np.sqrt(26)
    # At 1e-320 the entries themselves keep only three digits.
    digits = 1e-3 if scale < 1e-300 else 1e-14
    assert coefficient_error(scale * estimate, scale * truth) == pytest.approx(expected, rel=digits)


def test_estimate_and_truth_may_lie_orders_of_magnitude_apart():
    assert coefficient_error([1e150], [1e-150]) == pytest.approx(1e300)
    assert coefficient_error([1e-200], [1e200]) == 1.0
    assert coefficient_error([1e308], [-1e308]) == pytest.approx(2.0)


def test_an_error_relative_to_zero_is_refused():
    with pytest.raises(ValueError, match="coef_true is zero everywhere"):
        coefficient_error([1.0, 2.0], [0.0, 0.0])


def test_precision_and_recall_count_entries_of_the_whole_coefficient():
    estimate = np.array([[1.0, -2.0, 0.0], [0.0, 1e-300, 0.0]])
    truth = np.array([[3.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert support_precision(estimate, truth) == 2 / 3
    assert support_recall(estimate, truth) == 2 / 4


def test_exchanging_estimate_and_truth_exchanges_precision_and_recall():
    rng = np.random.default_rng(1)
    estimate, truth = rng.integers(0, 2, size=(2, 5, 4))
    assert support_precision(estimate, truth) == support_recall(truth, estimate)


def test_an_empty_support_has_no_mistakes_in_it():
    zero, some = np.zeros(3), np.array([1.0, 0.0, 2.0])
    assert support_precision(zero, some) == 1.0
    assert support_recall(zero, some) == 0.0
    assert support_precision(some, zero) == 0.0
    assert support_recall(some, zero) == 1.0


@pytest.mark.parametrize("metric", ALL)
def test_different_shapes_are_refused(metric):
    with pytest.raises(ValueError, match=r"coef has shape \(2, 3\) and coef_true has shape \(3, 2"):
        metric(np.ones((2, 3)), np.ones((3, 2)))


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_refused(metric, bad):
    with pytest.raises(ValueError, match="coef contains NaN or infinity in 1 of 2 entries"):
        metric([1.0, bad], [1.0, 2.0])
    with pytest.raises(ValueError, match="coef_true contains NaN or infinity in 1 of 2 entries"):
        metric([1.0, 2.0], [bad, 1.0])


@pytest.mark.parametrize("metric", ALL)
def test_the_result_is_a_plain_float(metric):
    assert type(metric(np.ones(3, dtype=np.float32), np.ones(3))) is float
