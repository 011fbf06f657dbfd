"""What the defaults chose can be tested, whether they took terms or a mean of folds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pyfastr import FasTRRegressorCV
from pyfastr.datasets import make_tensor_regression
from pyfastr.inference import (
    bootstrap_factors,
    permutation_test,
    slice_importance,
    stability_selection,
)

SHAPE = (6, 5)
GRID = {"thresholds": (0.05, 0.2), "ridges": (1e-3, 0.3), "n_init": 2, "random_state": 0}


@pytest.fixture(scope="module", params=[True, False], ids=["two terms", "mean of folds"])
def chosen(request):
    options = {"n_terms": 2, "noise": 0.5} if request.param else {"noise": 8.0}
    X, y = make_tensor_regression(120 if request.param else 60, SHAPE, random_state=3, **options)
    model = FasTRRegressorCV(**GRID).fit(X, y)
    assert model.refitted_ == request.param
    return model, X, y


def test_slices_of_a_choice_are_worth_what_the_score_loses_without_their_order(chosen):
    model, X, y = chosen
    found = slice_importance(model, X, y, n_repeats=5, random_state=0)
    assert_allclose(found.score, model.score(X, y), rtol=1e-10)
    assert [own.shape for own in found.importances] == [(p, 5) for p in SHAPE]
    largest = np.abs(model.coef_).sum(axis=1).argmax()
    assert found.importances[0][largest].mean() > 0


def test_resamples_fit_as_many_terms_as_were_chosen(chosen):
    model, X, y = chosen
    bootstrap = bootstrap_factors(model, X, y, n_bootstrap=5, random_state=0)
    for factor, p in zip(bootstrap.factors, SHAPE, strict=True):
        assert factor.shape == (p, model.n_terms_)
    stable = stability_selection(model, X, y, n_subsamples=6, random_state=0)
    assert [len(own) for own in stable.frequencies] == list(SHAPE)


def test_choices_are_scored_beside_permuted_responses(chosen):
    model, X, y = chosen
    result = permutation_test(model, X, y, n_permutations=19, random_state=0)
    assert np.isfinite(result.permutation_scores).all()
    if model.refitted_:
        assert result.p_value == 0.05
