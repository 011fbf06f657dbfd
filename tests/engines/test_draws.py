"""Weights of samples: drawn from Exp(1), the same wherever and in whatever order they are made."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest

from pyfastr.engines import Draw
from pyfastr.engines.draws import mix
from pyfastr.solver.streams import Streams

DTYPES = [np.float32, np.float64]
# Of SplitMix64, from the state of one sample to that of the next.
STEP = 0x9E3779B97F4A7C15


def keys_of(n_models, seed=0):
    """Keys as a search draws them."""
    return Streams(np.random.default_rng(seed), 1).weights(np.zeros(n_models, int)).keys


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", ["samples", "models"])
def test_weights_are_from_the_exponential_distribution(dtype, axis):
    shape = (20, 5000) if axis == "samples" else (5000, 20)
    weights = Draw(keys_of(shape[0])).exponential(0, shape[1], dtype)
    # 20 tests: all pass with a probability of 0.998 of any draw, and these are always the same.
    for row in weights if axis == "samples" else weights.T:
        assert kstest(row.astype(float), "expon").pvalue > 1e-4
    assert kstest(weights.ravel().astype(float), "expon").pvalue > 1e-3


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_are_positive_finite_and_of_their_type(dtype):
    weights = Draw(keys_of(50)).exponential(0, 20_000, dtype)
    assert weights.dtype == dtype
    assert weights.shape == (50, 20_000)
    assert (weights > 0).all()
    # A million numbers are at most log 1e6 + 14 with a probability of one in a million.
    assert weights.max() < 28


def test_float32_has_the_weights_of_float64_to_its_precision():
    draw = Draw(keys_of(5))
    single, double = (draw.exponential(0, 1000, dtype) for dtype in DTYPES)
    # A cell of the uniform number from which they are made is 2^-23 wide.
    assert_allclose(np.exp(-single.astype(float)), np.exp(-double), rtol=0, atol=2.0**-22)


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_do_not_depend_on_the_edges_of_blocks(dtype):
    draw = Draw(keys_of(4))
    whole = draw.exponential(0, 100, dtype)
    for edges in ([0, 100], [0, 1, 2, 50, 99, 100], range(101)):
        # Nor on the order in which blocks are worked on.
        for first, last in reversed(list(pairwise(edges))):
            found = draw.exponential(first, last - first, dtype)
            assert_array_equal(found, whole[:, first:last])


def test_weights_of_far_samples_need_no_others():
    draw = Draw(keys_of(2))
    assert_array_equal(draw.exponential(10**12, 9)[:, 4:], draw.exponential(10**12 + 4, 5))


def test_the_draw_of_some_models_is_theirs():
    draw = Draw(keys_of(6))
    whole = draw.exponential(3, 50)
    which = np.array([4, 0])
    assert_array_equal(draw.take(which).exponential(3, 50), whole[which])
    assert_array_equal(draw.take(slice(2, 5)).exponential(3, 50), whole[2:5])


def test_keys_that_differ_give_weights_that_have_nothing_in_common():
    # Of neighbours too.
    drawn = keys_of(20)
    keys = np.concatenate([drawn, drawn[0] + np.arange(1, 10, dtype=np.uint64)])
    weights = Draw(keys).exponential(0, 4000)
    correlation = np.corrcoef(weights)[~np.eye(len(keys), dtype=bool)]
    # Five standard errors.
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


def test_models_of_a_search_do_not_share_a_stretch_of_one_sequence():
    keys = keys_of(2000)
    # How many samples later one key's weights become those of another.
    steps = (keys[:, None] - keys) * np.uint64(pow(STEP, -1, 2**64))
    apart = np.minimum(steps, -steps)[~np.eye(2000, dtype=bool)]
    assert apart.min() > 10**9


def test_weights_of_one_model_are_uncorrelated_along_the_samples():
    weights = Draw(keys_of(1)).exponential(0, 40_000)[0] - 1
    for lag in (1, 2, 3, 7, 64, 1000):
        assert abs(np.mean(weights[lag:] * weights[:-lag])) < 5 / np.sqrt(40_000)


def test_the_same_seed_gives_the_same_weights_on_any_machine():
    assert_array_equal(keys_of(7), keys_of(7))
    assert not np.isin(keys_of(7), keys_of(7, seed=1)).any()
    # The first outputs of SplitMix64 from the state 1234567, as its authors' program prints them.
    steps = np.arange(1, 4, dtype=np.uint64) * np.uint64(STEP)
    found = mix(np.uint64(1234567) + steps)
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert_array_equal(found, np.array(published, np.uint64))
    uniform = (np.array(published, np.uint64) >> np.uint64(12)).astype(float) + 0.5
    expected = -np.log(uniform * 2.0**-52)
    assert_array_equal(Draw(np.array([1234567], np.uint64)).exponential(0, 3)[0], expected)
