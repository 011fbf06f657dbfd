"""How often entries are selected in subsamples."""

import warnings

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from pyfastr import FasTRClassifier, FasTRRegressor, FasTRRegressorCV
from pyfastr.datasets import make_tensor_regression
from pyfastr.estimators.validation import as_generator
from pyfastr.inference import StabilityResult, stability_selection
from pyfastr.inference.stability import subsample_counts

mpl.use("Agg")


def planted(n_samples=120, noise=0.5, seed=0):
    """A coefficient with three strong entries in each of two modes of 8."""
    rng = np.random.default_rng(seed)
    w = np.array([1.0, -1.0, 1.0, 0, 0, 0, 0, 0])
    X = rng.normal(size=(n_samples, 8, 8))
    return X, np.einsum("nij,i,j->n", X, w, w[::-1]) + noise * rng.normal(size=n_samples)


def test_strong_entries_are_always_selected_and_noise_seldom():
    X, y = planted()
    found = stability_selection(
        FasTRRegressor(0.3, 0.01), X, y, n_subsamples=40, random_state=0
    ).frequencies
    assert_array_equal(found[0][:3], 1)
    assert_array_equal(found[1][-3:], 1)
    assert max(found[0][3:].max(), found[1][:-3].max()) < 0.3


def test_classes_too():
    X, y = planted(n_samples=300)
    for loss in ("squared", "logistic"):
        model = FasTRClassifier(0.3, loss=loss, n_init=4)
        result = stability_selection(model, X, y > 0, n_subsamples=20, random_state=0)
        assert_array_equal(result.selected()[0], np.arange(8) < 3)


@pytest.mark.parametrize("options", [{}, {"refit_support": True}, {"n_terms": 2}], ids=str)
def test_frequencies_are_those_of_single_fits(options):
    X, y = planted(40)
    rng = np.random.default_rng(2)
    weights, Z = rng.integers(0, 3, 40).astype(float), rng.normal(size=(40, 1))
    start = [rng.normal(size=(8, options.get("n_terms", 1))) for _ in range(2)]
    model = FasTRRegressor(0.4, 0.1, init=start, max_iter=10, **options)
    found = stability_selection(
        model, X, y, n_subsamples=5, sample_weight=weights, covariates=Z, random_state=0
    )
    drawn = subsample_counts([np.flatnonzero(weights)], 40, 5, 0.5, as_generator(0))
    chosen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for row in drawn:
            factors = model.fit(X, y, row * weights, Z).factors_
            chosen.append([factor.any(axis=1) for factor in factors])
    for frequency, own in zip(found.frequencies, zip(*chosen, strict=True), strict=True):
        assert_array_equal(frequency, np.mean(own, axis=0))


def test_subsamples_have_the_share_asked_for_of_each_class():
    groups = [np.arange(10), np.arange(10, 16)]
    rows = subsample_counts(groups, 20, 7, 0.5, np.random.default_rng(0))
    assert set(np.unique(rows)) == {0, 1}
    assert_array_equal(rows[:, :10].sum(axis=1), 5)
    assert_array_equal(rows[:, 10:16].sum(axis=1), 3)
    assert not rows[:, 16:].any()


def test_vectors_and_tensors_and_many_subsamples():
    for shape in [(9,), (4, 3, 5)]:
        X, y = make_tensor_regression(60, shape, random_state=0)
        model = FasTRRegressor(0.2, n_init=2)
        found = stability_selection(model, X, y, n_subsamples=70, random_state=0)
        assert [len(f) for f in found.frequencies] == list(shape)
        assert all(f.max() == 1 for f in found.frequencies)


def test_a_seed_decides_all():
    X, y = planted(40, noise=3.0)
    model = FasTRRegressor(0.3, 0.1, n_init=2)
    first, again, other = (
        np.concatenate(
            stability_selection(model, X, y, n_subsamples=10, random_state=seed).frequencies
        )
        for seed in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert np.any(first != other)


def test_a_fitted_estimator_that_chooses_gives_its_choice():
    X, y = planted()
    chooser = FasTRRegressorCV([0.3], [0.1], random_state=0, n_init=2)
    with pytest.raises(ValueError, match="has not chosen threshold and ridge"):
        stability_selection(chooser, X, y)
    chooser.fit(X, y)
    options = {"n_subsamples": 5, "random_state": 0}
    found = stability_selection(chooser, X, y, **options).frequencies
    alike = FasTRRegressor(0.3, 0.1, n_init=2, refit_support=True)
    for a, b in zip(found, stability_selection(alike, X, y, **options).frequencies, strict=True):
        assert_array_equal(a, b)


def test_the_cutoff():
    result = StabilityResult([np.array([0.0, 0.6, 0.9])], 10, 0.5)
    assert_array_equal(result.selected()[0], [False, True, True])
    assert_array_equal(result.selected(0.7)[0], [False, False, True])
    with pytest.raises(ValueError, match=r"cutoff is 1\.5; expected"):
        result.selected(1.5)


def test_the_plot_shows_all_frequencies():
    frequencies = [np.array([0.0, 0.6, 0.9]), np.array([0.3, 1.0])]
    result = StabilityResult(frequencies, 10, 0.5)
    panels = result.plot()
    for panel, frequency in zip(panels, frequencies, strict=True):
        assert_array_equal([bar.get_height() for bar in panel.patches], frequency)
    assert result.plot(panels)[1] is panels[1]
    mpl.pyplot.close("all")


@pytest.mark.parametrize("bad", [0, 1, -0.5, 1.5, "half", True])
def test_bad_fractions_are_refused(bad):
    X, y = planted(20)
    with pytest.raises(ValueError, match=r"fraction is .*; expected a number above 0 and below 1"):
        stability_selection(FasTRRegressor(0.1), X, y, fraction=bad)


def test_other_bad_input_is_refused():
    X, y = planted(20)
    with pytest.raises(ValueError, match=r"estimator has threshold=0\.0"):
        stability_selection(FasTRRegressor(), X, y)
    with pytest.raises(ValueError, match="n_subsamples is 0"):
        stability_selection(FasTRRegressor(0.1), X, y, n_subsamples=0)
    with pytest.raises(ValueError, match=r"fraction is 0\.05, which leaves \[1\] of \[20\]"):
        stability_selection(FasTRRegressor(0.1), X, y, fraction=0.05)
    labels = np.arange(20) == 0
    with pytest.raises(ValueError, match=r"leaves \[9, 0\] of \[19, 1\]"):
        stability_selection(FasTRClassifier(0.1), X, labels)
