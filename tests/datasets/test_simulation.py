"""The paper's simulation: what is drawn, in which type, and with how much memory."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.datasets import make_tensor_regression, simulation

SHAPES = [(7,), (6, 5), (4, 3, 5), (3, 2, 4, 2)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_noise_the_response_is_the_inner_product(shape, dtype):
    X, y, W = make_tensor_regression(20, shape, noise=0, coef=True, dtype=dtype, random_state=0)
    assert X.shape == (20, *shape)
    assert y.shape == (20,)
    assert W.shape == shape
    assert X.dtype == y.dtype == W.dtype == dtype
    expected = (X.astype(float) * W).reshape(20, -1).sum(axis=1)
    assert_allclose(y, expected, rtol=0, atol=100 * np.finfo(dtype).eps)


def test_without_coef_only_the_data_are_returned():
    X, y = make_tensor_regression(5, (3, 2), random_state=0)
    X_too, y_too, _ = make_tensor_regression(5, (3, 2), coef=True, random_state=0)
    assert_array_equal(X, X_too)
    assert_array_equal(y, y_too)


def test_entries_and_noise_are_standard_normal():
    X, y, W = make_tensor_regression(4000, (10, 5), noise=0.3, coef=True, random_state=0)
    residual = y - X.reshape(4000, -1) @ W.ravel()
    # Standard errors: 0.002 for the mean of 200,000 draws, 0.0034 for the noise.
    assert abs(X.mean()) < 0.01
    assert abs(X.std() - 1) < 0.01
    assert abs(residual.std() - 0.3) < 0.02


@pytest.mark.parametrize(
    ("size", "sparsity", "n_nonzero"), [(10, 0.2, 8), (10, 0.0, 10), (7, 0.5, 3), (3, 0.99, 1)]
)
def test_each_component_has_its_share_of_zeros_and_is_never_empty(size, sparsity, n_nonzero):
    _, _, W = make_tensor_regression(2, (size, size), sparsity=sparsity, coef=True, random_state=3)
    assert np.count_nonzero(W.any(axis=1)) == n_nonzero
    assert np.count_nonzero(W.any(axis=0)) == n_nonzero


@pytest.mark.parametrize("n_terms", [1, 2, 3])
def test_the_rank_of_a_matrix_coefficient_is_the_number_of_terms(n_terms):
    _, _, W = make_tensor_regression(2, (9, 8), n_terms=n_terms, coef=True, random_state=0)
    assert np.linalg.matrix_rank(W) == n_terms


def test_an_int_gives_the_same_data_each_time_and_another_int_others():
    first, again, other = (make_tensor_regression(6, (4, 3), random_state=s) for s in (1, 1, 2))
    assert_array_equal(first[0], again[0])
    assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


def test_an_int_and_its_random_state_agree():
    X, y = make_tensor_regression(6, (4, 3), random_state=7)
    X_too, y_too = make_tensor_regression(6, (4, 3), random_state=np.random.RandomState(7))
    assert_array_equal(X, X_too)
    assert_array_equal(y, y_too)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_is_advanced_from_call_to_call(make):
    rng = make(0)
    first, second = (make_tensor_regression(6, (4, 3), random_state=rng)[0] for _ in range(2))
    assert not np.array_equal(first, second)
    assert_array_equal(first, make_tensor_regression(6, (4, 3), random_state=make(0))[0])


def test_more_samples_of_the_same_seed_continue_the_same_problem():
    X, _, W = make_tensor_regression(6, (4, 3), coef=True, random_state=0)
    X_more, _, W_more = make_tensor_regression(9, (4, 3), coef=True, random_state=0)
    assert_array_equal(W, W_more)
    assert_array_equal(X, X_more[:6])


def test_large_data_are_drawn_in_pieces_of_their_own_and_continue_too(monkeypatch):
    whole, _ = make_tensor_regression(9, (4, 3), random_state=0)
    monkeypatch.setattr(simulation, "PIECE", 30)
    X, _ = make_tensor_regression(9, (4, 3), random_state=0)
    # The first piece is what it would be alone, the others are no repetition of it.
    assert_array_equal(X.ravel()[:30], whole.ravel()[:30])
    assert len(np.unique(X)) == X.size
    fewer, _ = make_tensor_regression(6, (4, 3), random_state=0)
    assert_array_equal(fewer, X[:6])


def test_none_draws_new_data():
    X, _ = make_tensor_regression(6, (4, 3))
    X_too, _ = make_tensor_regression(6, (4, 3))
    assert not np.array_equal(X, X_too)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_second_array_of_the_size_of_the_data_is_made(dtype):
    n_samples = 40_000_000 // (20 * 25 * np.dtype(dtype).itemsize)
    tracemalloc.start()
    try:
        X, _, _ = make_tensor_regression(
            n_samples, (20, 25), coef=True, dtype=dtype, random_state=0
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert X.nbytes == 40_000_000
    assert peak < 1.15 * X.nbytes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples is 0; expected an int of at least 1"),
        ({"n_samples": 2.5}, r"n_samples is 2\.5; expected an int"),
        ({"shape": ()}, r"shape is \(\); expected a sequence"),
        ({"shape": 4}, "shape is 4; expected a sequence"),
        ({"shape": "44"}, "shape is '44'; expected a sequence"),
        ({"shape": (4, 0)}, r"shape\[1\] is 0; expected an int of at least 1"),
        ({"shape": (4, 1.5)}, r"shape\[1\] is 1\.5; expected an int"),
        ({"sparsity": 1.0}, r"sparsity is 1\.0; expected a number in \[0, 1\.0\)"),
        ({"sparsity": -0.1}, r"sparsity is -0\.1; expected"),
        ({"sparsity": "half"}, "sparsity is 'half'; expected a number"),
        ({"noise": -1}, "noise is -1; expected"),
        ({"noise": float("nan")}, "noise is nan; expected"),
        ({"noise": 1.7e308, "n_samples": 99}, r"noise is 1\.7e\+308, which makes y infinite in"),
        ({"noise": 1e39, "dtype": "f4"}, r"noise is 1e\+39, which makes y infinite in float32"),
        ({"n_terms": 0}, "n_terms is 0; expected an int of at least 1"),
        ({"dtype": int}, "dtype is <class 'int'>; expected float64 or float32"),
        ({"dtype": "real"}, "dtype is 'real'; expected float64 or float32"),
        ({"random_state": "seed"}, "random_state is 'seed'; expected an int"),
    ],
)
def test_errors_name_the_argument_what_was_given_and_what_is_expected(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_tensor_regression(**({"n_samples": 5, "shape": (3, 2)} | arguments))


def test_sizes_may_be_numpy_integers():
    X, _ = make_tensor_regression(np.int64(5), np.array([3, 2]), random_state=0)
    assert X.shape == (5, 3, 2)
