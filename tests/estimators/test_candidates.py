"""Points that are worth another term."""

from dataclasses import replace

import numpy as np
import pytest

from pyfastr.estimators.candidates import Candidates, gain
from pyfastr.estimators.choice_policy import TermsPolicy

POLICY = TermsPolicy()
POINTS = [(1, ridge, threshold) for ridge in (0.1, 1.0) for threshold in (0.0, 0.1, 0.2, 0.4)]


def candidates(means, error=1.0):
    """Points with these mean losses, which differ from the first's by so large an error."""
    n, means = 100, np.asarray(means, float)
    spread = np.tile([1.0, -1.0], n // 2)[:, None] * (np.arange(len(means)) > 0)
    losses = means + error * np.sqrt(n - 1) * spread
    scores = np.zeros((1, 5, len(means)))
    return Candidates(POINTS[: len(means)], None, scores, losses, (0.0, 0.0))


def test_the_best_threshold_of_every_ridge_and_its_neighbours_come_first():
    found = candidates([0.0, 0.1, 0.2, 0.3, 0.9, 0.8, 0.7, 0.8])
    assert found.promising(POLICY, first=True) == [0, 1, 5, 6, 7]


def test_few_of_the_best_points_gain_more_than_two_terms():
    found = candidates([0.0, 0.1, 0.2, 0.9, 0.8, 0.3, 0.7, 0.4])
    assert found.promising(POLICY, first=False) == [0, 1, 2, 5, 7]
    assert len(found.promising(POLICY, first=False)) == POLICY.best


def test_points_far_behind_the_best_gain_no_term():
    near, far = POLICY.far_behind - 0.1, POLICY.far_behind + 0.1
    found = candidates([0.0, far, near, 9.0, near, far, 9.0, 9.0])
    assert found.promising(POLICY, first=True) == [0, 4]
    assert found.promising(POLICY, first=False) == [0, 2, 4]


def test_points_without_a_score_are_not_judged():
    found = candidates([0.0, np.nan, 1.0, 9.0])
    assert found.promising(POLICY, first=False) == [0, 1, 2]


def test_folds_without_any_score_do_not_keep_terms_from_being_added():
    scores = np.array([[[0.1, 0.3], [np.nan, np.nan], [0.2, 0.4]]])
    before = Candidates(POINTS[:2], None, scores, None, (0.0, 0.0))
    after = replace(before, points=[(2, 0.1, 0.0), (2, 0.1, 0.1)], output_scores=scores + 0.2)
    assert before.promising(POLICY, first=False) == [1]
    found = gain(before, after, 1.0, POLICY)
    assert found.is_worth_it
    assert found.share == pytest.approx(0.2)


def test_a_sample_of_one_fold_does_not_show_a_gain_of_scores():
    scores = np.full((1, 5, 2), 0.9)
    before = Candidates(POINTS[:2], None, scores, None, (0.0, 0.0))
    one, several = scores.copy(), scores + np.reshape([0.02, 0.01, 0.01, 0.02, 0.01], (1, 5, 1))
    one[0, 3] += 0.02
    clear = [
        gain(before, replace(before, output_scores=after), 1.0, POLICY).is_worth_it
        for after in (one, several)
    ]
    assert clear == [False, True]
