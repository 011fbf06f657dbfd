"""What folds choose, and what they would choose without one of them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr import FasTRRegressorCV
from pyfastr.datasets import make_tensor_regression
from pyfastr.estimators.candidates import Candidates, Gain
from pyfastr.estimators.choice_policy import RankingPolicy
from pyfastr.estimators.tried import Tried

POINTS = [(1, 0.1, 0.0), (1, 1.0, 0.0), (1, 10.0, 0.0)]
# The first point is the best by far in the first fold, the second one in all others.
SCORES = np.array([[9.0, 1.0, 0.0], [0.1, 0.5, 0.0], [0.2, 0.6, 0.0], [0.1, 0.5, 0.0]])
SPLITS = [(np.delete(np.arange(8), [i, i + 1]), np.array([i, i + 1])) for i in range(0, 8, 2)]


@pytest.fixture(name="tried")
def made_of_scores():
    """Points whose predictions are their own numbers and those of the fold."""
    fold, point = np.divmod(np.arange(len(SCORES) * len(POINTS)), len(POINTS))
    predictors = np.repeat((10.0 * fold + point)[:, None], 8, axis=1)
    fits = SimpleNamespace(predictors=predictors, data=SimpleNamespace(n_outputs=None))
    scoring = SimpleNamespace(is_of_samples=False, data=SimpleNamespace(n_outputs=None))
    found = Candidates(POINTS, fits, SCORES[None], None, (0.0, 0.0))
    return Tried([found], [], scoring, SPLITS, simplest=False, policy=RankingPolicy())


def test_the_best_in_all_folds_may_be_that_of_one(tried):
    assert tried.leaders()[0] == 0
    assert tried.leaders(without=0) == [1]
    assert tried.leaders(without=1)[0] == 0


def test_each_fold_is_predicted_by_what_the_others_prefer(tried):
    found = tried.unseen(alone=True).predictors
    assert_array_equal(found[:, 0], [1.0, 10.0, 20.0, 30.0])
    leaders = [tried.leaders(without=fold) for fold in range(4)]
    means = [10 * fold + np.mean(own) for fold, own in enumerate(leaders)]
    assert_allclose(tried.unseen(alone=False).predictors[:, 5], means)


def test_what_all_folds_have_chosen_is_the_same_in_each(tried):
    found = tried.seen(alone=True).predictors
    assert_array_equal(found[:, 0], [0.0, 10.0, 20.0, 30.0])
    means = 10 * np.arange(4) + np.mean(tried.leaders())
    assert_allclose(tried.seen(alone=False).predictors[:, 5], means)


def test_a_mean_takes_in_other_numbers_of_terms_but_the_choice_has_those_that_pay(tried):
    second = Candidates(
        [(2, *point[1:]) for point in POINTS],
        tried.candidates[0].fits,
        tried.candidates[0].output_scores + 0.01,
        None,
        (0.0, 0.0),
    )
    too_little = Gain(2, 0.01, is_clear=False, is_worth_it=False, is_of_loss=False)
    both = replace(tried, candidates=[*tried.candidates, second], gains=[too_little])
    assert both.leaders()[0] == tried.leaders()[0]
    assert both.leaders()[1] == tried.leaders()[0] + len(POINTS)
    assert both.simplest_of_best() == tried.simplest_of_best()
    paid = replace(both, gains=[replace(too_little, is_worth_it=True)])
    assert paid.leaders()[0] == tried.leaders()[0] + len(POINTS)


def test_a_single_fold_has_no_others():
    X, y = make_tensor_regression(60, (5, 4), noise=0.5, random_state=0)
    options = {"thresholds": (0.0, 0.3), "ridges": (0.01, 1.0), "random_state": 0}
    model = FasTRRegressorCV(**options, cv=[(np.arange(40), np.arange(40, 60))]).fit(X, y)
    assert model.reference_.unseen_score_of_choice == pytest.approx(model.best_score_)


@pytest.mark.filterwarnings("ignore:Ridge regression on the flattened:UserWarning")
def test_chance_makes_the_best_score_too_good_but_not_the_unseen_one():
    best, unseen = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 5, 4)), rng.normal(size=60)
        model = FasTRRegressorCV(random_state=0, n_init=2).fit(X, y)
        best.append(model.best_score_)
        unseen.append(model.reference_.unseen_score_of_choice)
    assert np.mean(unseen) < np.mean(best)
    assert np.mean(unseen) < 0
