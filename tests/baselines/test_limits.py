"""Sizes that a method cannot handle are refused before anything of that size is made."""

import numpy as np
import pytest

from pyfastr.baselines import (
    GLTRM,
    SURF,
    DantzigSelector,
    ElementaryRidge,
    OrTRR,
    Remurs,
    Sturm,
    VectorizedElasticNet,
    VectorizedLasso,
    limits,
    ridge,
)
from pyfastr.datasets import make_tensor_regression

LIMITED = [DantzigSelector, ElementaryRidge, Remurs, Sturm, VectorizedElasticNet, VectorizedLasso]


def unreadable(shape):
    """An array of any size that takes no memory, until it is copied."""
    return np.broadcast_to(np.ones(1), shape)


@pytest.mark.parametrize("method", [Remurs, Sturm, ElementaryRidge])
def test_gram_matrices_beyond_the_limit_are_refused(method):
    n_samples = ridge.MAX_GRAM_SIDE + 1
    X = unreadable((n_samples, 400, 400, 5))
    with pytest.raises(ValueError, match=r"20001 × 20001, and its limit is 20000.*Use fewer"):
        method().fit(X, np.ones(n_samples))


def test_a_linear_program_beyond_the_limit_is_refused():
    with pytest.raises(ValueError, match=r"800000 elements.*at most 3000.*VectorizedLasso"):
        DantzigSelector().fit(unreadable((10_000, 400, 400, 5)), np.ones(10_000))


@pytest.mark.parametrize("method", [GLTRM, OrTRR])
def test_blocks_beyond_the_limit_are_refused(method, monkeypatch):
    X, y = make_tensor_regression(40, (8, 3), random_state=0)
    monkeypatch.setattr(limits, "MAX_WORKING_BYTES", 0)
    with pytest.raises(ValueError, match=r"n_init=5 starts.*the limit is .*or use FasTRRegressor"):
        method().fit(X, y)


def test_paths_beyond_the_limit_are_refused(monkeypatch):
    X, y = make_tensor_regression(6, (8, 3), random_state=0)
    monkeypatch.setattr(limits, "MAX_WORKING_BYTES", 0)
    with pytest.raises(ValueError, match=r"5 folds.*the limit is .*or use FasTRRegressor"):
        SURF().fit(X, y)


@pytest.mark.parametrize("method", LIMITED)
def test_copies_beyond_the_limit_are_refused(method, monkeypatch):
    X, y = make_tensor_regression(20, (4, 3), dtype=np.float32, random_state=0)
    monkeypatch.setattr(limits, "MAX_WORKING_BYTES", 0)
    with pytest.raises(ValueError, match=r"The float64 copy that .*the limit is .*Use fewer"):
        method().fit(X, y)
    method().fit(X.astype(float), y)


@pytest.mark.parametrize("method", [Remurs, ElementaryRidge])
def test_centring_does_not_write_to_the_users_data(method):
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    for given in (X + 1, np.asfortranarray(X + 1), (X + 1).astype(np.float32)):
        given.setflags(write=False)
        before = given.copy()
        method(fit_intercept=True).fit(given, y)
        np.testing.assert_array_equal(given, before)
