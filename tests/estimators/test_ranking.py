"""Tests of how a point of a grid is chosen by the scores of folds."""

import numpy as np
import pytest

from pyfastr.estimators.ranking import choose

ONE_TERM, TWO_TERMS = [(1, 0.1, 0.0)], [(2, 0.1, 0.0)]


def choice(points, columns, **options):
    options = {"one_standard_error": False} | options
    return choose(points, np.column_stack(columns), **options)


def test_further_terms_must_gain_more_than_a_standard_error():
    one = np.array([0.5, 0.6, 0.7, 0.6])
    by_chance, in_every_fold = np.array([0.2, -0.2, 0.15, -0.1]), np.full(4, 0.01)
    assert by_chance.mean() > in_every_fold.mean()
    assert choice(ONE_TERM + TWO_TERMS, [one, one + by_chance]) == 0
    assert choice(ONE_TERM + TWO_TERMS, [one, one + in_every_fold]) == 1
    assert choice(TWO_TERMS + ONE_TERM, [one + by_chance, one]) == 1


def test_terms_without_a_score_are_passed_over():
    with pytest.warns(UserWarning, match="non-finite"):
        assert choice(ONE_TERM + TWO_TERMS, [[np.nan, 0.5], [0.1, 0.2]]) == 1


def test_the_highest_threshold_is_chosen_of_those_that_fall_short_by_chance():
    points = [(1, ridge, threshold) for ridge in (0.1, 1.0) for threshold in (0.0, 0.1, 0.2)]
    best = np.array([0.9, 0.8, 0.9, 0.8])
    shaken, lower = best + np.array([0.01, -0.02, 0.02, -0.02]), best - 0.01
    # The higher ridge is as good at its highest threshold, but the ridge is that of the best.
    assert choice(points, [best, shaken, lower, lower, lower, shaken]) == 1


@pytest.mark.parametrize("one_standard_error", [False, True])
def test_one_split_has_no_standard_error(one_standard_error):
    points = [(1, 0.1, 0.0), (1, 0.1, 0.2), (2, 0.1, 0.0)]
    scores = [[0.5], [0.4], [0.6]]
    assert choice(points, scores, one_standard_error=one_standard_error) == 2
