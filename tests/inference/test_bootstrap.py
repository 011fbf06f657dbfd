"""Intervals of factors by the bootstrap."""

import warnings

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from pyfastr import FasTRClassifier, FasTRRegressor
from pyfastr.datasets import make_tensor_regression
from pyfastr.estimators.validation import as_generator
from pyfastr.inference import BootstrapResult, bootstrap_factors
from pyfastr.inference.bootstrap import align_terms, bootstrap_counts
from pyfastr.solver.models import Models

mpl.use("Agg")


def planted(n_samples, shape, noise, seed, n_terms=1):
    """Samples, a response, and the components of unit length that made it."""
    rng = np.random.default_rng(seed)
    components = [rng.normal(size=(p, n_terms)) for p in shape]
    components = [c / np.linalg.norm(c, axis=0) for c in components]
    scales = 2.0 ** -np.arange(n_terms)
    letters = "ijkl"[: len(shape)]
    W = np.einsum(",".join(f"{a}r" for a in letters) + f",r->{letters}", *components, scales)
    X = rng.normal(size=(n_samples, *shape))
    y = X.reshape(n_samples, -1) @ W.ravel() + noise * rng.normal(size=n_samples)
    return X, y, components


def test_intervals_cover_the_truth_as_often_as_they_say():
    confidence = 0.8
    covered = []
    for seed in range(15):
        X, y, truth = planted(150, (4, 5), 0.5, seed)
        found = bootstrap_factors(
            FasTRRegressor(tol=1e-4),
            X,
            y,
            n_bootstrap=100,
            confidence=confidence,
            random_state=seed,
        )
        for w, reference, low, high in zip(
            truth, found.factors, found.lower, found.upper, strict=True
        ):
            turned = w * np.sign(np.sum(w * reference))
            covered.append(((low <= turned) & (turned <= high)).ravel())
    # 135 entries.
    assert abs(np.mean(np.concatenate(covered)) - confidence) < 0.1


def test_samples_have_the_signs_and_terms_of_the_fit():
    X, y, _ = planted(200, (6, 5, 4), 0.1, 0, n_terms=2)
    found = bootstrap_factors(
        FasTRRegressor(n_terms=2), X, y, n_bootstrap=70, confidence=0.9, random_state=0
    )
    for factor, samples, p in zip(found.factors, found.samples, (6, 5, 4), strict=True):
        assert samples.shape == (70, p, 2)
        assert_allclose(np.linalg.norm(samples, axis=1), 1)
        assert np.einsum("pr,kpr->kr", factor, samples).min() > 0.9
    for low, factor, high in zip(found.lower, found.factors, found.upper, strict=True):
        assert low.shape == factor.shape == high.shape
        assert np.mean((low <= factor) & (factor <= high)) > 0.9


def test_alignment_undoes_any_order_and_any_pair_of_signs():
    rng = np.random.default_rng(0)
    reference = Models.random(1, 3, (7, 6, 5), rng)
    order, flips = np.array([2, 0, 1]), np.array([[1, -1, -1], [-1, -1, 1], [1, 1, 1]])
    shuffled = [(c[0] * flips[:, [m]])[order][None] for m, c in enumerate(reference.components)]
    aligned = align_terms(Models(shuffled, np.ones((1, 3))), [c[0].T for c in reference.components])
    for found, c in zip(aligned, reference.components, strict=True):
        assert_allclose(found[0], c[0].T)


def test_a_term_that_is_reversed_stays_reversed():
    first, second = np.array([[1.0], [0.0]]), np.array([[0.8], [0.6]])
    models = Models([-first.T[None], np.array([[[1.0, 0.0]]])], np.ones((1, 1)))
    found = align_terms(models, [first, second])
    product = found[0][0] @ found[1][0].T
    assert_allclose(product, -first @ np.array([[1.0, 0.0]]))


@pytest.mark.parametrize("options", [{}, {"threshold": 0.2}, {"loss": "logistic"}], ids=str)
def test_samples_are_fits_with_whole_number_weights(options):
    X, y, _ = planted(60, (4, 3), 0.5, 0)
    rng = np.random.default_rng(1)
    weights, Z = rng.integers(1, 3, 60).astype(float), rng.normal(size=(60, 1))
    kind, groups = FasTRRegressor, [np.arange(60)]
    if "loss" in options:
        kind, y = FasTRClassifier, y > 0
        groups = [np.flatnonzero(~y), np.flatnonzero(y)]
    found = bootstrap_factors(
        kind(**options), X, y, n_bootstrap=4, sample_weight=weights, covariates=Z, random_state=0
    )
    rng = as_generator(0)
    reference = kind(**options, random_state=int(rng.integers(2**31)))
    reference.fit(X, y, weights, Z)
    start = [reference.factors_[0] * reference.scales_, reference.factors_[1]]
    for k, counts in enumerate(bootstrap_counts(groups, 60, 4, rng)):
        model = kind(**options, init=start)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y, counts * weights, Z)
        for factor, samples in zip(model.factors_, found.samples, strict=True):
            assert_allclose(np.abs(samples[k]), np.abs(factor), atol=1e-8)


def test_bootstrap_samples_are_as_large_as_their_classes():
    counts = bootstrap_counts([np.arange(5), np.arange(5, 8)], 10, 6, np.random.default_rng(0))
    assert_array_equal(counts[:, :5].sum(axis=1), 5)
    assert_array_equal(counts[:, 5:8].sum(axis=1), 3)
    assert not counts[:, 8:].any()


def test_a_seed_decides_all():
    X, y = make_tensor_regression(40, (4, 3), noise=1.0, random_state=0)
    first, again, other = (
        bootstrap_factors(FasTRRegressor(), X, y, n_bootstrap=5, random_state=seed).samples[0]
        for seed in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert not np.allclose(np.abs(first), np.abs(other))


def test_vectors_have_intervals_too():
    X, y, truth = planted(100, (5,), 0.1, 0)
    found = bootstrap_factors(FasTRRegressor(), X, y, n_bootstrap=20, random_state=0)
    assert_allclose(found.factors[0], truth[0], atol=0.1)
    assert np.all(found.upper[0] - found.lower[0] < 0.2)


def test_the_plot_shows_points_and_intervals():
    rng = np.random.default_rng(0)
    factors = [rng.normal(size=(p, 2)) for p in (3, 4)]
    lower, upper = [f - 0.1 for f in factors], [f + 0.2 for f in factors]
    result = BootstrapResult(factors, lower, upper, [], 0.95)
    panels = result.plot()
    for panel, factor in zip(panels, factors, strict=True):
        points = [line for line in panel.get_lines() if line.get_label().startswith("term")]
        for r, (line, bars) in enumerate(zip(points, panel.collections, strict=True)):
            assert_array_equal(line.get_ydata(), factor[:, r])
            ends = np.array([bar[:, 1] for bar in bars.get_segments()])
            assert_allclose(ends, factor[:, [r]] + [-0.1, 0.2])
    assert result.plot(panels)[0] is panels[0]
    mpl.pyplot.close("all")


@pytest.mark.parametrize("bad", [0.0, 1.0, 95, "high"])
def test_bad_confidence_is_refused(bad):
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    with pytest.raises(ValueError, match=r"confidence is .*; expected a number above 0 and below"):
        bootstrap_factors(FasTRRegressor(), X, y, confidence=bad)


def test_other_bad_input_is_refused():
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    with pytest.raises(ValueError, match="n_bootstrap is 0"):
        bootstrap_factors(FasTRRegressor(), X, y, n_bootstrap=0)
    with pytest.raises(TypeError, match="estimator is 3"):
        bootstrap_factors(3, X, y)
    with pytest.raises(ValueError, match="by evidence"):
        bootstrap_factors(FasTRRegressor(refit_support="evidence"), X, y)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        bootstrap_factors(FasTRRegressor(), X[:1], y[:1])
