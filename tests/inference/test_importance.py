"""Importance of slices: what brute force on copies of X finds, in one pass over X."""

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.metrics import get_scorer, make_scorer, mean_absolute_error
from sklearn.pipeline import make_pipeline

from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
)
from pyfastr.datasets import make_tensor_regression
from pyfastr.estimators.validation import as_generator
from pyfastr.inference import SliceImportance, slice_importance
from pyfastr.sources import ArraySource

mpl.use("Agg")

N = 40
OPTIONS = {"n_repeats": 3, "random_state": 0}


def draw(shape, seed=0):
    X, y = make_tensor_regression(2 * N, shape, noise=1.0, random_state=seed)
    return X, y + 1, np.where(y > 0, "yes", "no")


def brute_force(model, X, y, scorer, n_repeats, modes=None, **options):
    """Losses of every slice and mode, each by a copy of X that is scored."""
    rng = as_generator(0)
    orders = [rng.permutation(len(X)) for _ in range(n_repeats)]
    observed = scorer(model, X, y, **options)
    modes = range(X.ndim - 1) if modes is None else modes
    slices, whole = [], []
    for mode in modes:
        losses = np.empty((X.shape[mode + 1], n_repeats))
        for j in range(X.shape[mode + 1]):
            for repeat, order in enumerate(orders):
                permuted = np.moveaxis(X.copy(), mode + 1, 1)
                permuted[:, j] = permuted[order, j]
                permuted = np.moveaxis(permuted, 1, mode + 1)
                losses[j, repeat] = observed - scorer(model, permuted, y, **options)
        slices.append(losses)
    for mode in modes:
        row = []
        for _ in range(n_repeats):
            moved = np.moveaxis(X, mode + 1, 1)
            numbers = np.tile(np.arange(moved.shape[1]), (len(X), 1))
            order = rng.permuted(numbers, axis=1)
            moved = np.stack([sample[own] for sample, own in zip(moved, order, strict=True)])
            shuffled = np.moveaxis(moved, 1, mode + 1)
            row.append(observed - scorer(model, shuffled, y, **options))
        whole.append(row)
    return slices, np.array(whole)


def assert_same(found, expected, atol=1e-10):
    slices, whole = expected
    for own, other in zip(found.importances, slices, strict=True):
        assert_allclose(own, other, atol=atol)
    assert_allclose(found.mode_importances, whole, atol=atol)


def test_of_counts_it_is_brute_force_by_the_explained_deviance():
    X, y, _ = draw((5, 4))
    counts = np.random.default_rng(0).poisson(np.exp(y / np.abs(y).max()))
    model = FasTRRegressor(ridge=0.1, loss="poisson", random_state=0).fit(X[:N], counts[:N])
    found = slice_importance(model, X[N:], counts[N:], **OPTIONS)
    expected = brute_force(model, X[N:], counts[N:], lambda m, X, y: m.score(X, y), 3)
    assert_same(found, expected)
    by_name = slice_importance(model, X[N:], counts[N:], scoring="r2", **OPTIONS)
    assert_same(by_name, brute_force(model, X[N:], counts[N:], get_scorer("r2"), 3))


@pytest.mark.parametrize("shape", [(6,), (5, 4), (4, 3, 3)], ids=str)
@pytest.mark.parametrize("classify", [False, True], ids=["regression", "classes"])
def test_it_is_brute_force(shape, classify):
    X, y, labels = draw(shape)
    y = labels if classify else y
    model = (FasTRClassifier if classify else FasTRRegressor)(0.2, n_init=2, random_state=0)
    model.fit(X[:N], y[:N])
    found = slice_importance(model, X[N:], y[N:], **OPTIONS)
    scorer = get_scorer("roc_auc" if classify else "r2")
    assert found.score == pytest.approx(scorer(model, X[N:], y[N:]))
    assert_same(found, brute_force(model, X[N:], y[N:], scorer, 3))


def test_several_terms_and_one_mode():
    X, y, _ = draw((5, 4))
    model = FasTRRegressor(ridge=0.1, n_terms=2, n_init=2, random_state=0).fit(X[:N], y[:N])
    found = slice_importance(model, X[N:], y[N:], modes=-1, **OPTIONS)
    assert found.modes == (1,)
    assert_same(found, brute_force(model, X[N:], y[N:], get_scorer("r2"), 3, modes=[1]))


@pytest.mark.parametrize("refit", [False, True])
def test_choices(refit):
    X, y, labels = draw((5, 4))
    for kind, target in ((FasTRRegressorCV, y), (FasTRClassifierCV, labels)):
        model = kind([0.0, 0.2], [0.1, 1.0], refit=refit, n_init=2, random_state=0)
        model.fit(X[:N], target[:N])
        scorer = get_scorer("r2" if target is y else "neg_log_loss")
        scoring = None if target is y else "neg_log_loss"
        found = slice_importance(model, X[N:], target[N:], scoring=scoring, **OPTIONS)
        assert_same(found, brute_force(model, X[N:], target[N:], scorer, 3))


def test_pipelines_permute_what_the_estimator_sees():
    X, y, _ = draw((5, 4))
    X = X * np.arange(1, 6)[:, None] + 3
    pipeline = make_pipeline(TensorScaler(per=0), TensorScaler(per=1), FasTRRegressor(ridge=0.1))
    pipeline.fit(X[:N], y[:N])
    found = slice_importance(pipeline, X[N:], y[N:], **OPTIONS)
    scaled = pipeline[:-1].transform(X[N:])
    assert_same(found, brute_force(pipeline[-1], scaled, y[N:], get_scorer("r2"), 3))
    # A slice that is permuted and then scaled is one that is scaled and then permuted.
    slices, _ = brute_force(pipeline, X[N:], y[N:], get_scorer("r2"), 3)
    assert_allclose(found.importances[0], slices[0], atol=1e-10)


def test_covariates_and_weights():
    X, y, _ = draw((5, 4))
    rng = np.random.default_rng(1)
    Z, weights = rng.normal(size=(2 * N, 2)), rng.uniform(0.5, 2, 2 * N)
    y = y + Z @ [3.0, -2.0]
    model = FasTRRegressor(ridge=0.1, random_state=0).fit(X[:N], y[:N], covariates=Z[:N])

    def scorer(model, X, y):
        return model.score(X, y, weights[N:], Z[N:])

    found = slice_importance(
        model, X[N:], y[N:], covariates=Z[N:], sample_weight=weights[N:], **OPTIONS
    )
    assert_same(found, brute_force(model, X[N:], y[N:], scorer, 3))
    with pytest.raises(ValueError, match="covariates has 0 columns"):
        slice_importance(model, X[N:], y[N:])


@pytest.mark.parametrize("name", ["neg_mean_squared_error", "accuracy", "r2"])
def test_scores_by_name(name):
    X, y, labels = draw((5, 4))
    y = labels if name == "accuracy" else y
    model = (FasTRClassifier if name == "accuracy" else FasTRRegressor)(ridge=0.5, n_init=2)
    model.fit(X[:N], y[:N])
    found = slice_importance(model, X[N:], y[N:], scoring=name, **OPTIONS)
    assert_same(found, brute_force(model, X[N:], y[N:], get_scorer(name), 3))


def test_scorers_that_were_made():
    X, y, _ = draw((5, 4))
    model = FasTRRegressor(ridge=0.5, n_init=2).fit(X[:N], y[:N])
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    weights = np.arange(1.0, N + 1)
    found = slice_importance(model, X[N:], y[N:], scoring=scorer, sample_weight=weights, **OPTIONS)
    expected = brute_force(model, X[N:], y[N:], scorer, 3, sample_weight=weights)
    assert_same(found, expected)


def test_matrices_have_the_importances_of_scikit_learn():
    X, y, _ = draw((6,))
    model = FasTRRegressor(0.2, 0.1).fit(X[:N], y[:N])
    ours = slice_importance(model, X[N:], y[N:], n_repeats=200, random_state=0)
    theirs = permutation_importance(model, X[N:], y[N:], n_repeats=200, random_state=0)
    error = (ours.importances_std[0] + theirs.importances_std) / np.sqrt(200)
    assert np.all(np.abs(ours.importances_mean[0] - theirs.importances_mean) <= 4 * error)


def test_x_is_read_once_and_left_alone(monkeypatch):
    X, y, _ = draw((5, 4, 3))
    model = FasTRRegressor(ridge=0.1, n_init=2).fit(X[:N], y[:N])
    before, rows_read = X.copy(), []
    original = ArraySource.read

    def counting(self, rows):
        rows_read.append(rows.stop - rows.start)
        return original(self, rows)

    monkeypatch.setattr(ArraySource, "read", counting)
    slice_importance(model, X[N:], y[N:], n_repeats=20)
    assert sum(rows_read) == N
    assert_array_equal(X, before)


def test_slices_without_coefficient_do_not_matter():
    X, y, W = make_tensor_regression(200, (8, 6), sparsity=0.5, coef=True, random_state=0)
    model = FasTRRegressor(0.1, random_state=0).fit(X[:100], y[:100])
    found = slice_importance(model, X[100:], y[100:], random_state=0)
    for mode, (mean, std) in enumerate(
        zip(found.importances_mean, found.importances_std, strict=True)
    ):
        used = model.factors_[mode].any(axis=1)
        assert_array_equal(mean[~used], 0)
        assert_array_equal(std[~used], 0)
        assert mean[W.any(axis=1 - mode)].min() > 0


def test_a_mode_whose_slices_count_alike_does_not_matter():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(60, 4, 5)), rng.normal(size=4)
    y = np.einsum("nij,i->n", X, w)
    model = FasTRRegressor(random_state=0).fit(X, y)
    losses = slice_importance(model, X, y, random_state=0).mode_importances.mean(axis=1)
    assert losses[0] > 0.5
    assert abs(losses[1]) < 1e-4


def test_float32_and_a_seed():
    X, y, _ = draw((5, 4))
    model = FasTRRegressor(ridge=0.1, random_state=0).fit(X[:N].astype(np.float32), y[:N])
    first, again = (
        slice_importance(model, X[N:].astype(np.float32), y[N:], **OPTIONS) for _ in range(2)
    )
    assert_array_equal(first.importances[0], again.importances[0])
    wide = slice_importance(model, X[N:], y[N:], **OPTIONS)
    assert_allclose(first.importances[1], wide.importances[1], atol=1e-4)


def test_the_plot_shows_means():
    importances = [np.array([[0.1, 0.3], [0.0, 0.0]]), np.array([[0.2, 0.4]])]
    result = SliceImportance(importances, np.zeros((2, 2)), 0.9, (2, 0))
    panels = result.plot()
    for panel, own in zip(panels, importances, strict=True):
        assert_allclose([bar.get_height() for bar in panel.patches], own.mean(axis=1))
    assert [panel.get_xlabel() for panel in panels] == ["mode 2", "mode 0"]
    mpl.pyplot.close("all")


def test_bad_input_is_refused():
    X, y, labels = draw((5, 4))
    model = FasTRRegressor(ridge=0.1, n_init=2).fit(X, y)
    with pytest.raises(TypeError, match=r"model is Ridge\(\); expected a fitted FasTRRegressor"):
        slice_importance(Ridge(), X, y)
    with pytest.raises(ValueError, match="n_repeats is 0"):
        slice_importance(model, X, y, n_repeats=0)
    with pytest.raises(ValueError, match=r"modes has 2; expected ints from -2 to 1"):
        slice_importance(model, X, y, modes=[0, 2])
    with pytest.raises(ValueError, match="modes is empty"):
        slice_importance(model, X, y, modes=[])
    with pytest.raises(ValueError, match="X with a permuted slice is never made"):
        slice_importance(model, X, y, scoring=lambda model, X, y: 0.0)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        slice_importance(model, X, y[:-1])
    with pytest.raises(ValueError, match=r"sample_weight is from -1.0 to -1.0; expected"):
        slice_importance(model, X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="score of the samples given is nan"):
        slice_importance(model, X, np.full(len(y), np.nan))
    X[3, 1, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN: first at sample 3, element \(1, 2\)"):
        slice_importance(model, X, y)
    classifier = FasTRClassifier(n_init=2).fit(X[N:], labels[N:])
    with pytest.raises(ValueError, match=r"labels \['maybe'\]"):
        slice_importance(classifier, X[N:], np.where(labels[N:] == "yes", "yes", "maybe"))
    one_class = labels[N:] == "yes"
    with (
        pytest.warns(UndefinedMetricWarning),
        pytest.raises(ValueError, match="samples of both classes"),
    ):
        slice_importance(classifier, X[N:][one_class], labels[N:][one_class])
