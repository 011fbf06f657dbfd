"""FasTRRegressor: the answer, and what is said of it."""

from functools import reduce

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr import FasTRRegressor
from pyfastr.datasets import make_tensor_regression
from pyfastr.estimators import data
from pyfastr.metrics import coefficient_error, support_precision, support_recall
from pyfastr.sources import ArraySource

SHAPES = [(7,), (6, 5), (5, 4, 3), (3, 4, 2, 3)]
TENSORS = SHAPES[1:]
# Sweeps go on until only rounding is left, so that equal problems have equal answers.
EXACT = {"tol": 1e-7, "random_state": 0}


def outer_sum(model):
    """The coefficient from factors and scales."""
    terms = [
        s * reduce(np.multiply.outer, [f[:, r] for f in model.factors_])
        for r, s in enumerate(model.scales_)
    ]
    return np.sum(terms, axis=0)


def assert_close(found, expected, tolerance=1e-6):
    """Equal up to a share of the largest entry."""
    assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("shape", TENSORS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_true_coefficient_is_found_with_the_defaults(draw, shape, seed):
    X, y, W = draw(shape, seed=seed, noise=0.02)
    model = FasTRRegressor(random_state=0).fit(X, y)
    assert coefficient_error(model.coef_, W) < 0.05
    assert model.intercept_ == pytest.approx(2, abs=0.05)
    assert model.converged_
    assert model.starts_.sure


def test_two_terms_are_found():
    X, y, W = make_tensor_regression(200, (8, 7), n_terms=2, coef=True, random_state=0)
    model = FasTRRegressor(n_terms=2, random_state=0).fit(X, y)
    assert coefficient_error(model.coef_, W) < 0.05
    assert [f.shape for f in model.factors_] == [(8, 2), (7, 2)]
    assert model.scales_[0] >= model.scales_[1] > 0
    one = FasTRRegressor(random_state=0).fit(X, y)
    assert coefficient_error(one.coef_, W) > 0.1


def test_simultaneous_sweeps_end_at_the_same_coefficient(draw):
    X, y, _ = draw((5, 4, 3))
    cyclic = FasTRRegressor(**EXACT).fit(X, y)
    simultaneous = FasTRRegressor(sweep="simultaneous", **EXACT).fit(X, y)
    assert_close(simultaneous.coef_, cyclic.coef_, 1e-4)


@pytest.mark.parametrize(("shape", "n_terms"), [*((s, 1) for s in SHAPES), ((6, 5), 2)])
def test_attributes_describe_one_coefficient(draw, shape, n_terms):
    X, y, _ = draw(shape)
    model = FasTRRegressor(n_terms=n_terms, n_init=4, max_iter=5000, random_state=0).fit(X, y)
    assert model.coef_.shape == model.tensor_shape_in_ == shape
    assert [f.shape for f in model.factors_] == [(p, n_terms) for p in shape]
    for factor in model.factors_:
        assert_allclose(np.linalg.norm(factor, axis=0), 1)
    assert_allclose(model.coef_, outer_sum(model), rtol=1e-12, atol=1e-15)
    expected = X.reshape(80, -1) @ model.coef_.ravel() + model.intercept_
    assert_allclose(model.predict(X), expected, rtol=1e-12)
    residual = y - expected
    assert model.score(X, y) == pytest.approx(1 - residual @ residual / (80 * y.var()))
    assert model.n_features_in_ == shape[0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [True, False])
def test_the_history_ends_with_the_loss_of_the_answer_and_a_small_change(draw, shape, weighted):
    X, y, _ = draw(shape)
    weights = np.arange(80.0) if weighted else None
    model = FasTRRegressor(ridge=0.1, init="random", n_init=2, tol=1e-4, random_state=0)
    model.fit(X, y, sample_weight=weights)
    loss, change = model.history_["loss"], model.history_["change"]
    assert len(loss) == len(change) == model.n_iter_
    expected = np.average((y - model.predict(X)) ** 2, weights=weights)
    assert loss[-1] == pytest.approx(expected, rel=1e-8)
    assert change[-1] <= 1e-4
    assert (change[:-1] > 1e-4).all()


@pytest.mark.parametrize("n_init", [1, 5])
def test_starts_say_how_many_ran(draw, n_init):
    X, y, _ = draw((5, 4, 3))
    starts = FasTRRegressor(n_init=n_init, random_state=0).fit(X, y).starts_
    assert starts.n_starts == n_init
    assert 1 <= starts.n_hits <= n_init
    assert starts.gap > 0


@pytest.mark.parametrize("shape", TENSORS)
@pytest.mark.parametrize("n_terms", [1, 2])
def test_a_start_of_the_user_is_the_only_one(starts_of, draw, shape, n_terms):
    X, y, _ = draw(shape)
    init = starts_of(shape, n_terms)
    options = {"n_terms": n_terms, "ridge": 0.1, "max_iter": 5000}
    first = FasTRRegressor(init=init, random_state=0, **options).fit(X, y)
    other = FasTRRegressor(init=tuple(3 * a for a in init), random_state=1, **options).fit(X, y)
    assert_close(first.coef_, other.coef_, 1e-10)
    assert first.starts_.n_starts == 1
    assert not first.starts_.sure
    if n_terms == 1:
        flat = FasTRRegressor(init=[a[:, 0] for a in init], **options).fit(X, y)
        assert_array_equal(flat.coef_, first.coef_)


@pytest.mark.parametrize("shape", SHAPES)
def test_refitting_the_support_keeps_it_and_takes_the_shrinkage_away(draw, shape):
    X, y, _ = draw(shape)
    shrunk = FasTRRegressor(0.2, random_state=0).fit(X, y)
    refitted = FasTRRegressor(0.2, refit_support=True, random_state=0).fit(X, y)
    assert np.count_nonzero(shrunk.coef_) < shrunk.coef_.size
    assert_array_equal(refitted.coef_ != 0, shrunk.coef_ != 0)
    residual = y - refitted.predict(X)
    assert residual @ residual < np.sum((y - shrunk.predict(X)) ** 2)
    # Least squares: in each mode the residuals are orthogonal to what the support can fit.
    for mode, factor in enumerate(refitted.factors_):
        others = [f[:, 0] for m, f in enumerate(refitted.factors_) if m != mode]
        P = np.moveaxis(X - X.mean(axis=0), mode + 1, 1).reshape(80, len(factor), -1)
        P = (P @ reduce(np.multiply.outer, others, np.ones(())).ravel())[:, factor[:, 0] != 0]
        assert_allclose(P.T @ residual, 0, atol=1e-5 * np.linalg.norm(P.T @ (y - y.mean())))


@pytest.mark.parametrize("shape", [(12,), (9, 8), (6, 5, 5)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_evidence_finds_the_support_without_a_threshold(draw, shape, seed):
    X, y, W = draw(shape, seed=seed, noise=0.01)
    model = FasTRRegressor(refit_support="evidence", random_state=0).fit(X, y)
    assert support_recall(model.coef_, np.where(np.abs(W) > 0.02, W, 0)) == 1
    assert support_precision(model.coef_, W) > 0.7
    assert np.count_nonzero(model.coef_) < W.size
    assert coefficient_error(model.coef_, W) < 0.03


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_seed_gives_the_same_answer(draw, shape):
    X, y, _ = draw(shape)
    first, again = (FasTRRegressor(random_state=3).fit(X, y) for _ in range(2))
    assert_array_equal(first.coef_, again.coef_)
    assert first.intercept_ == again.intercept_
    assert first.starts_ == again.starts_
    state = FasTRRegressor(random_state=np.random.RandomState(3)).fit(X, y)
    assert_array_equal(state.coef_, first.coef_)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("block_bytes", [1, 3000])
def test_the_size_of_blocks_does_not_matter(draw, shape, block_bytes, monkeypatch):
    X, y, _ = draw(shape)
    whole = FasTRRegressor(**EXACT).fit(X, y)
    monkeypatch.setattr(data, "as_source", lambda X: ArraySource(X, block_bytes=block_bytes))
    cut = FasTRRegressor(**EXACT).fit(X, y)
    # The search shakes models, and rounding with them: only where it ends is the same.
    assert_close(cut.coef_, whole.coef_)
    assert cut.starts_.n_starts == whole.starts_.n_starts
