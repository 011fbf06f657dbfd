"""Stacks of symmetric equations of which some are singular."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.engines.solving import inverse, solve


@pytest.fixture(name="stack")
def regular_and_singular():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3, 6, 4))
    matrices = features.transpose(0, 2, 1) @ features
    # Of rank one, with entries whose products are exact: elimination ends in a zero.
    matrices[1] = np.outer([1, 2, 4, 8], [1, 2, 4, 8])
    return matrices, rng.normal(size=(3, 4, 2))


def test_regular_matrices_beside_a_singular_one_are_solved_as_if_alone(stack):
    matrices, rhs = stack
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.solve(matrices, rhs)
    found = solve(matrices, rhs)
    for k in (0, 2):
        assert_array_equal(found[k], np.linalg.solve(matrices[k], rhs[k]))


def test_a_singular_matrix_gets_the_least_of_the_nearest_solutions(stack):
    matrices, rhs = stack
    expected = np.linalg.lstsq(matrices[1], rhs[1], rcond=1e-12)[0]
    assert_allclose(solve(matrices, rhs)[1], expected, atol=1e-12)


def test_a_zero_matrix_has_the_solution_zero(stack):
    _, rhs = stack
    assert_array_equal(solve(np.zeros((3, 4, 4)), rhs), 0)


def test_one_matrix_serves_many_right_hand_sides(stack):
    matrices, rhs = stack
    assert_allclose(solve(matrices[1:2], rhs), np.linalg.pinv(matrices[1]) @ rhs, atol=1e-12)


def test_inverses_solve_alike(stack):
    matrices, rhs = stack
    assert_allclose(inverse(matrices) @ rhs, solve(matrices, rhs), atol=1e-10)
