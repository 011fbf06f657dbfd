"""Pipelines with a scaler: what is scaled inside folds and resamples, and by whom."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import (
    KFold,
    StratifiedKFold,
    cross_val_score,
    permutation_test_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
)
from pyfastr.estimators.validation import as_generator
from pyfastr.inference import bootstrap_factors, permutation_test, stability_selection
from pyfastr.inference.bootstrap import bootstrap_counts
from pyfastr.inference.stability import subsample_counts
from pyfastr.solver.progress import watched_by

N = 45


def draw(shape, seed=0):
    """Samples whose elements differ in scale, a response, labels, and one start for all fits."""
    rng = np.random.default_rng(seed)
    start = [rng.normal(size=p) for p in shape]
    X = rng.normal(size=(N, *shape)) * rng.uniform(0.1, 10, size=shape) + rng.normal(size=shape)
    W = start[0] if len(shape) == 1 else np.einsum("i,j->ij", *start)
    y = (X - X.mean(axis=0)).reshape(N, -1) / X.std(axis=0).ravel() @ W.ravel()
    y += 2 * rng.normal(size=N)
    return X, y, np.where(y > 0, "yes", "no"), start


def by_hand(scalers, model, X, y, splits, weights, Z):
    """Mean score of folds that scale and fit their own training samples."""
    scores = []
    for train, test in splits:
        inside, outside = X[train], X[test]
        for scaler in scalers:
            own = clone(scaler).fit(inside, sample_weight=weights[train])
            inside, outside = own.transform(inside), own.transform(outside)
        model.fit(inside, y[train], weights[train], Z[train])
        classify = isinstance(model, FasTRClassifier)
        predict = model.decision_function if classify else model.predict
        score = roc_auc_score if classify else r2_score
        scores.append(score(y[test], predict(outside, Z[test]), sample_weight=weights[test]))
    return np.mean(scores)


def test_it_is_the_test_of_scikit_learn():
    X, y, _, start = draw((4, 3))
    model = make_pipeline(TensorScaler(), FasTRRegressor(0.05, 0.5, init=start, tol=0.01))
    options = {"cv": KFold(3), "n_permutations": 20, "random_state": 3}
    found = permutation_test(model, X, y, **options)
    score, permutation_scores, p_value = permutation_test_score(model, X, y, **options)
    assert_allclose(found.score, score, atol=1e-8)
    assert_allclose(found.permutation_scores, permutation_scores, atol=1e-8)
    assert found.p_value == p_value


@pytest.mark.parametrize("loss", [None, "squared", "logistic"])
@pytest.mark.parametrize("n_scalers", [1, 2])
def test_weights_and_covariates_count_in_folds_that_scale(loss, n_scalers):
    X, y, labels, start = draw((4, 3))
    rng = np.random.default_rng(1)
    weights, Z = rng.integers(1, 4, N).astype(float), rng.normal(size=(N, 2))
    scalers = [TensorScaler(per=0), TensorScaler(per=1, with_mean=False)][:n_scalers]
    options = {"ridge": 0.5, "init": start, "max_iter": 6}
    model, cv = FasTRRegressor(0.05, **options), KFold(3)
    if loss is not None:
        model, cv, y = FasTRClassifier(0.05, loss=loss, **options), StratifiedKFold(3), labels
    found = permutation_test(
        make_pipeline(*scalers, model),
        X,
        y,
        n_permutations=1,
        cv=cv,
        sample_weight=weights,
        covariates=Z,
        random_state=0,
    )
    orders = [np.arange(N), np.random.RandomState(0).permutation(N)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = [
            by_hand(scalers, model, X, y[order], cv.split(X, y[order]), weights, Z)
            for order in orders
        ]
    assert_allclose([found.score, *found.permutation_scores], expected, atol=1e-8)


@pytest.mark.parametrize("kind", [FasTRRegressorCV, FasTRClassifierCV])
def test_a_choice_is_judged_on_folds_that_scale(kind):
    # Vectors are fitted in closed form, so that no start makes a difference.
    X, y, labels, _ = draw((8,))
    single, cv = FasTRRegressor, KFold(3)
    if kind is FasTRClassifierCV:
        single, cv, y = FasTRClassifier, StratifiedKFold(3), labels
    thresholds, ridges = [0.0, 0.1, 0.4], [0.1, 1.0]
    model = make_pipeline(TensorScaler(), kind(thresholds, ridges, cv=cv))
    found = permutation_test(model, X, y, n_permutations=1, cv=None, random_state=0)
    means = [
        cross_val_score(
            make_pipeline(TensorScaler(), single(t, r, refit_support=True)),
            X,
            y,
            cv=cv,
            scoring="r2" if single is FasTRRegressor else "roc_auc",
        ).mean()
        for t in thresholds
        for r in ridges
    ]
    assert_allclose(found.score, max(means), atol=1e-8)


@pytest.mark.parametrize(("classify", "n_scalings"), [(False, 3), (True, 3 * 5)])
def test_folds_are_scaled_once_for_all_permutations_unless_they_depend_on_y(
    classify, n_scalings, monkeypatch
):
    X, y, labels, start = draw((4, 3))
    calls = []
    original = TensorScaler._set_statistics

    def counting(self, source, weights):
        calls.append(weights)
        original(self, source, weights)

    monkeypatch.setattr(TensorScaler, "_set_statistics", counting)
    kind, target = (FasTRClassifier, labels) if classify else (FasTRRegressor, y)
    model = make_pipeline(TensorScaler(), kind(ridge=0.5, init=start, max_iter=3))
    permutation_test(model, X, target, n_permutations=4, cv=3, random_state=0)
    assert len(calls) == n_scalings


def test_scorers_of_the_user_are_given_the_pipeline():
    X, y, _, _ = draw((8,))
    frame = pd.DataFrame(X).rename(columns=str)
    model = make_pipeline(TensorScaler(), FasTRRegressor(ridge=0.5))
    options = {"n_permutations": 2, "random_state": 0}

    def score(estimator, X, y):
        assert list(X.columns) == list(frame.columns)
        return r2_score(y, estimator.predict(X))

    own = permutation_test(model, frame, y, scoring=score, **options)
    named = permutation_test(model, frame, y, **options)
    assert_allclose(own.permutation_scores, named.permutation_scores)


def test_subsamples_are_scaled_by_themselves():
    X, y, _, start = draw((4, 3))
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float)
    model = FasTRRegressor(0.4, 0.1, init=start, max_iter=10)
    found = stability_selection(
        make_pipeline(TensorScaler(), model),
        X,
        y,
        n_subsamples=4,
        sample_weight=weights,
        random_state=0,
    )
    chosen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for row in subsample_counts([np.flatnonzero(weights)], N, 4, 0.5, as_generator(0)):
            scaled = TensorScaler().fit(X, sample_weight=row * weights).transform(X)
            factors = model.fit(scaled, y, row * weights).factors_
            chosen.append([factor.any(axis=1) for factor in factors])
    for frequency, own in zip(found.frequencies, zip(*chosen, strict=True), strict=True):
        assert_array_equal(frequency, np.mean(own, axis=0))


def test_bootstrap_samples_are_scaled_by_themselves():
    X, y, _, _ = draw((4, 3))
    found = bootstrap_factors(
        make_pipeline(TensorScaler(per=1), FasTRRegressor(ridge=0.1)),
        X,
        y,
        n_bootstrap=3,
        random_state=0,
    )
    rng = as_generator(0)
    reference = FasTRRegressor(ridge=0.1, random_state=int(rng.integers(2**31)))
    reference.fit(TensorScaler(per=1).fit_transform(X), y)
    start = [reference.factors_[0] * reference.scales_, reference.factors_[1]]
    for k, counts in enumerate(bootstrap_counts([np.arange(N)], N, 3, rng)):
        scaled = TensorScaler(per=1).fit(X, sample_weight=counts).transform(X)
        model = FasTRRegressor(ridge=0.1, init=start).fit(scaled, y, counts)
        for factor, samples in zip(model.factors_, found.samples, strict=True):
            assert_allclose(np.abs(samples[k]), np.abs(factor), atol=1e-8)


@pytest.mark.filterwarnings("ignore:Ridge regression on the flattened:UserWarning")
def test_a_fitted_choice_in_a_pipeline_gives_its_choice():
    X, y, _, _ = draw((4, 3))
    pipeline = make_pipeline(TensorScaler(), FasTRRegressorCV([0.3], [0.1], 1, n_init=2))
    with pytest.raises(ValueError, match="has not chosen threshold and ridge"):
        stability_selection(pipeline, X, y)
    pipeline.fit(X, y)
    alike = make_pipeline(
        TensorScaler(), "passthrough", FasTRRegressor(0.3, 0.1, n_init=2, refit_support=True)
    )
    options = {"n_subsamples": 3, "random_state": 0}
    found, same = (stability_selection(m, X, y, **options) for m in (pipeline, alike))
    assert_array_equal(found.frequencies[0], same.frequencies[0])


@pytest.mark.parametrize("infer", [permutation_test, stability_selection, bootstrap_factors])
def test_other_steps_are_refused(infer):
    X, y, _, _ = draw((4, 3))
    with pytest.raises(TypeError, match=r"step 'standardscaler' is .*; expected TensorScaler"):
        infer(make_pipeline(StandardScaler(), FasTRRegressor(0.1)), X, y)
    with pytest.raises(TypeError, match=r"expected a FasTRRegressor.*or a Pipeline"):
        infer(make_pipeline(TensorScaler(), Ridge()), X, y)
    with pytest.raises(ValueError, match="'per' parameter"):
        infer(make_pipeline(TensorScaler(per=1.5), FasTRRegressor(0.1)), X, y)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("infer", [permutation_test, stability_selection, bootstrap_factors])
def test_progress_is_told_to_the_end(infer, scaled):
    X, y, _, start = draw((4, 3))
    model = FasTRRegressor(0.2, 0.5, init=start, max_iter=50)
    sizes = {permutation_test: "n_permutations", stability_selection: "n_subsamples"}
    events = []
    with watched_by(events.append):
        infer(
            make_pipeline(TensorScaler(), model) if scaled else model,
            X,
            y,
            random_state=0,
            # More than one batch.
            **{sizes.get(infer, "n_bootstrap"): 8 if scaled else 70},
        )
    stage = "folds" if infer is permutation_test else "resamples"
    ours = [event for event in events if event.stage == stage]
    done = [event.done for event in ours]
    assert len(done) > 1
    assert done == sorted(set(done))
    assert done[-1] == ours[-1].total
    # Steps of single fits would hide how far the whole has got.
    assert infer is bootstrap_factors or ours == events
    assert 1 <= sum(bool(event.note) for event in ours) <= 10


def test_lines_are_printed_if_asked_for(capsys):
    X, y, _, start = draw((4, 3))
    model = FasTRRegressor(0.2, 0.5, init=start)
    permutation_test(model, X, y, n_permutations=1, cv=2, random_state=0)
    assert capsys.readouterr().out == ""
    permutation_test(model, X, y, n_permutations=1, cv=2, random_state=0, verbose=2)
    assert "4 of 4 folds of permuted responses" in capsys.readouterr().out
