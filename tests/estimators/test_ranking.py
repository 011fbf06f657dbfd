"""Tests of how a point of a grid is chosen by the scores of folds."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from pyfastr.estimators import ranking
from pyfastr.estimators.choice_policy import RankingPolicy
from pyfastr.estimators.data import Data
from pyfastr.estimators.ranking import choose
from pyfastr.estimators.scoring import Scoring
from pyfastr.sources import as_source

POLICY = RankingPolicy()
leading = partial(ranking.leading, policy=POLICY)


def choice(points, columns, **options):
    options = {"one_standard_error": False, "policy": POLICY} | options
    return choose(points, np.column_stack(columns), **options)


def test_a_lucky_point_does_not_choose_the_number_of_terms():
    points = [(n, 0.1, t / 10) for n in (2, 1) for t in range(6)]
    lucky, steady = [0.9, 0.5, 0.5, 0.5, 0.5, 0.0], [0.6, 0.6, 0.7, 0.6, 0.6, 0.0]
    assert choice(points, [[s, s + 0.1] for s in lucky + steady]) == 8
    assert choice(points, [[s, s + 0.1] for s in steady + lucky]) == 2
    assert choice(points, [[s, s + 0.1] for s in steady + steady]) == 8, "of equals the fewest"


def test_terms_without_a_score_are_passed_over():
    with pytest.warns(UserWarning, match="non-finite"):
        assert choice([(1, 0.1, 0.0), (2, 0.1, 0.0)], [[np.nan, 0.5], [0.1, 0.2]]) == 1


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


def test_losses_of_samples_decide_where_they_are_known():
    points = [(1, 0.1, 0.0), (1, 0.1, 0.2), (1, 0.1, 0.4)]
    scores = [[0.5, 0.6], [0.4, 0.5], [0.3, 0.4]]
    best = np.array([1.0, 2.0, 3.0, 2.0])
    by_chance, worse = best + np.array([0.5, -0.4, 0.5, -0.4]), best + 0.1
    assert choice(points, scores) == 0
    assert choice(points, scores, losses=np.column_stack([best, by_chance, worse])) == 1
    assert choice(points, scores, losses=np.column_stack([worse, worse, best])) == 2


def test_leading_points_fall_short_of_the_best_by_chance():
    best = np.array([0.9, 0.8, 0.9, 0.8])
    shaken, lower = best + np.array([0.01, -0.02, 0.02, -0.02]), best - 0.01
    scores = np.column_stack([lower, shaken, best])
    assert leading(scores) == [2, 1]
    assert leading(np.column_stack([best] * (POLICY.averaged + 1))) == list(range(POLICY.averaged))
    assert leading(scores, losses=np.column_stack([best, best + 0.1, shaken])) == [2, 0]
    assert leading(np.array([[0.5, 0.6, 0.6]])) == [1, 2], "one split has no standard error"


def test_points_without_a_score_do_not_lead():
    with pytest.warns(UserWarning, match="non-finite"):
        assert leading(np.array([[np.nan, 0.2, 0.1], [0.3, 0.2, 0.3]])) == [1, 2]
    with pytest.raises(ValueError, match="finite score in every fold"):
        leading(np.full((2, 3), np.nan))


def test_losses_are_the_errors_of_every_sample_where_it_was_held_out():
    y, weights = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 1.0, 0.0])
    source = as_source(np.ones((4, 2)))
    data = Data(source, 1.0, y, weights, covariates=None, fit_intercept=True)
    scoring = Scoring(None, None, y, data, None, "squared", None)
    # Two models in each of three folds; the first sample is held out twice, the third never.
    splits = [(np.array([1, 2, 3]), np.array([0])), (np.array([2]), np.array([0, 1]))]
    splits.append((np.array([0, 2]), np.array([1, 3])))
    predictors = np.zeros((6, 4))
    predictors[2] = [3.0, 2.0, 9.0, 9.0]
    fits = SimpleNamespace(models=range(6), predictors=predictors)
    # Errors 1 and (1 - 3)^2 of the first sample by the first model, 1 and 1 by the second; weights
    # are relative to their mean, 1.5.
    expected = [[2.5 / 1.5, 1.0 / 1.5], [2.0 * 2.0 / 1.5, 4.0 * 2.0 / 1.5]]
    np.testing.assert_allclose(scoring.losses(fits, splits), expected)
