"""Factors with sizes of their own, against dense definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pyfastr.baselines.cp_factors import CPFactors
from pyfastr.engines import LocalEngine
from pyfastr.sources import ArraySource

SHAPES = [(7,), (6, 5), (5, 4, 3)]


def drawn(shape, n_models=2, n_terms=3, seed=0):
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal((n_models, n_terms, p)) for p in shape]
    return arrays, CPFactors.from_arrays(arrays)


def dense(arrays, which):
    letters = "abc"[: len(arrays)]
    spec = ",".join("r" + a for a in letters) + "->" + letters
    return np.einsum(spec, *(a[which] for a in arrays))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_coefficient_is_the_sum_of_outer_products(shape):
    arrays, factors = drawn(shape)
    for k in range(2):
        assert_allclose(factors.coefficient(k), dense(arrays, k), atol=1e-12)
        assert_allclose(factors.take(slice(k, k + 1)).coefficient(), dense(arrays, k), atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("block_bytes", [1 << 20, 300])
def test_features_times_a_factor_give_the_inner_products(shape, block_bytes):
    X = np.random.default_rng(1).standard_normal((11, *shape))
    engine = LocalEngine(ArraySource(X, block_bytes=block_bytes))
    arrays, factors = drawn(shape)
    for mode in range(len(shape)):
        features = factors.features(engine, mode)
        for k in range(2):
            expected = np.tensordot(X, dense(arrays, k), len(shape))
            assert_allclose(features[k] @ arrays[mode][k].ravel(), expected, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_balance_and_sign_change_what_they_say(shape):
    arrays, factors = drawn(shape)
    changed = factors.balanced(np.array([2.0, 3.0])).negated(np.array([False, True]))
    assert_allclose(changed.coefficient(0), 2 * dense(arrays, 0), atol=1e-12)
    assert_allclose(changed.coefficient(1), -3 * dense(arrays, 1), atol=1e-12)
    assert_allclose(changed.sizes, changed.sizes[..., :1] * np.ones(len(shape)))


def test_replacing_a_mode_leaves_the_others():
    arrays, factors = drawn((6, 5))
    arrays[1] = np.random.default_rng(2).standard_normal((2, 3, 5))
    replaced = factors.replace(1, arrays[1].reshape(2, -1))
    assert replaced.components[0] is factors.components[0]
    assert_allclose(replaced.coefficient(1), dense(arrays, 1), atol=1e-12)
