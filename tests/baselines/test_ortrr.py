"""OrTRR: its objective, its stationary points, and the ranks it chooses."""

import warnings
from functools import reduce

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from pyfastr.baselines import OrTRR
from pyfastr.baselines.cp_ridge import GroupRidge
from pyfastr.baselines.growth import leading_term
from pyfastr.datasets import make_tensor_regression
from pyfastr.engines import LocalEngine
from pyfastr.metrics import coefficient_error
from pyfastr.solver.models import Models
from pyfastr.sources import ArraySource

TIGHT = {"tol": 1e-12, "max_iter": 5000}
SHAPES = [(7,), (6, 5), (5, 4, 3), (3, 4, 2, 3)]


def fit_silently(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def contract(X, vectors, mode):
    """Contract every mode of X (samples first) but one, from the last to the first."""
    for m in reversed(range(len(vectors))):
        if m != mode:
            X = np.tensordot(X, vectors[m], (m + 1, 0))
    return X


def objective(model, X, y):
    """The formula of the docstring, from the attributes."""
    squares = sum((f**2).sum(axis=0) for f in model.factors_)
    loss = 0.5 * ((y - model.predict(X)) ** 2).sum()
    return loss + 0.5 * model.ridge * squares.sum() + model.group * np.sqrt(squares).sum()


def literal_cp_ridge(X, y, ridge, n_terms, n_sweeps):
    """Alternating ridge as an equation: one mode after another, no scaling, no intercept."""
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((p, n_terms)) for p in X.shape[1:]]
    for _ in range(n_sweeps):
        for mode, factor in enumerate(factors):
            terms = [contract(X, [f[:, r] for f in factors], mode) for r in range(n_terms)]
            P = np.hstack(terms)
            u = np.linalg.solve(P.T @ P + ridge * np.eye(P.shape[1]), P.T @ y)
            factors[mode] = u.reshape(n_terms, len(factor)).T
    return sum(reduce(np.multiply.outer, [f[:, r] for f in factors]) for r in range(n_terms)), sum(
        (f**2).sum() for f in factors
    )


@pytest.mark.parametrize("shape", [(6, 5), (5, 4, 3), (3, 4, 2, 3)])
@pytest.mark.parametrize("n_terms", [1, 2])
def test_without_the_group_norm_it_is_cp_ridge(shape, n_terms):
    X, y = make_tensor_regression(150, shape, n_terms=n_terms, random_state=0)
    model = OrTRR(0.0, 2.0, n_terms=n_terms, fit_intercept=False, random_state=0, **TIGHT)
    model.fit(X, y)
    W, squares = literal_cp_ridge(X, y, 2.0, n_terms, 500)
    expected = 0.5 * ((y - np.tensordot(X, W, len(shape))) ** 2).sum() + squares
    # The best of several starts is no worse, and where there is one minimum it is the same.
    assert model.objective_ <= expected * (1 + 1e-6)
    if n_terms == 1 and W.any():
        assert_allclose(model.coef_, W, atol=1e-4)


def test_it_ends_where_tensorly_ends():
    regression = pytest.importorskip("tensorly.regression")
    X, y = make_tensor_regression(200, (6, 5, 4), random_state=0)
    theirs = regression.CPRegressor(
        weight_rank=1, reg_W=2.0, tol=1e-12, n_iter_max=3000, random_state=0, verbose=0
    ).fit(X, y)
    model = OrTRR(0.0, 2.0, n_terms=1, fit_intercept=False, random_state=0, **TIGHT).fit(X, y)
    assert_allclose(model.coef_, theirs.weight_tensor_, atol=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_samples", [5, 40])
def test_vectors_without_the_group_norm_are_ridge(fit_intercept, n_samples):
    X, y = make_tensor_regression(n_samples, (7,), random_state=0)
    model = OrTRR(0.0, 3.0, fit_intercept=fit_intercept).fit(X, y + 2)
    ridge = Ridge(3.0, fit_intercept=fit_intercept).fit(X, y + 2)
    assert_allclose(model.coef_, ridge.coef_, atol=1e-10)
    assert_allclose(model.intercept_, ridge.intercept_, atol=1e-10)
    assert model.n_terms_ == 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_samples", [20, 120])
def test_the_objective_is_the_one_stated_and_never_rises(shape, n_samples):
    X, y = make_tensor_regression(n_samples, shape, random_state=0)
    model = OrTRR(3.0, 0.5, n_terms=3, tol=1e-9, max_iter=300, random_state=0)
    fit_silently(model, X, y + 1)
    values = model.history_["objective"]
    assert len(values) == model.n_iter_
    assert (np.diff(values) <= 1e-10 * values[:-1]).all()
    assert_allclose(objective(model, X, y + 1), model.objective_, rtol=1e-9)
    assert model.objective_ == values[-1]


@pytest.mark.parametrize("shape", SHAPES)
def test_all_derivatives_vanish_at_the_solution(shape):
    X, y = make_tensor_regression(120, shape, random_state=0)
    model = OrTRR(3.0, 0.5, n_terms=3, random_state=0, **TIGHT).fit(X, y + 1)
    assert model.converged_
    left = y + 1 - model.predict(X)
    assert_allclose(left.sum(), 0, atol=1e-8)
    lengths = np.sqrt(sum((f**2).sum(axis=0) for f in model.factors_))
    for r in range(model.n_terms_):
        vectors = [f[:, r] for f in model.factors_]
        for mode, u in enumerate(vectors):
            slope = contract(X, vectors, mode).T @ left
            assert_allclose(slope, (0.5 + 3.0 / lengths[r]) * u, atol=1e-3)


@pytest.mark.parametrize(
    ("shape", "n_samples", "rank"),
    [((10, 8), 150, 1), ((8, 6), 200, 2), ((6, 5, 4), 150, 1), ((6, 5, 4), 200, 2)],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_superfluous_terms_vanish(shape, n_samples, rank, seed):
    X, y, W = make_tensor_regression(n_samples, shape, n_terms=rank, coef=True, random_state=seed)
    model = fit_silently(OrTRR(n_terms=4, random_state=0, max_iter=500), X, y)
    assert model.n_terms_ == rank
    assert [f.shape for f in model.factors_] == [(p, rank) for p in shape]
    assert coefficient_error(model.coef_, W) < 0.05
    without = fit_silently(OrTRR(0.0, n_terms=4, max_iter=20, random_state=0), X, y)
    assert without.n_terms_ == 4


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_start_where_the_samples_point_to_finds_what_random_starts_miss(seed):
    X, y, W = make_tensor_regression(150, (40, 40, 3), coef=True, random_state=seed)
    model = OrTRR(n_terms=1, n_init=2, random_state=0).fit(X, y)
    assert coefficient_error(model.coef_, W) < 0.01
    alone = fit_silently(OrTRR(n_terms=1, n_init=1, random_state=0), X, y)
    assert model.objective_ <= alone.objective_ * (1 + 1e-6)


@pytest.mark.parametrize("shape", [(6, 5), (5, 4, 3)])
def test_the_leading_term_is_the_best_of_unit_rank(shape):
    rng = np.random.default_rng(0)
    X, response = rng.standard_normal((30, *shape)), rng.standard_normal(30)
    found = leading_term(LocalEngine(ArraySource(X)), response, rng)
    total = np.tensordot(response, X, 1)
    value = np.vdot(found.coefficient(), total)
    others = Models.random(1000, 1, shape, rng)
    assert value > max(np.vdot(others.coefficient(k), total) for k in range(1000))
    if len(shape) == 2:
        assert_allclose(value, np.linalg.norm(total, 2))


def test_factors_make_the_coefficient_largest_term_first():
    X, y = make_tensor_regression(300, (6, 5, 4), n_terms=3, random_state=2)
    model = fit_silently(OrTRR(1.0, random_state=0), X, y)
    terms = [
        reduce(np.multiply.outer, [f[:, r] for f in model.factors_]) for r in range(model.n_terms_)
    ]
    assert_allclose(sum(terms), model.coef_, atol=1e-12)
    assert (np.diff([np.linalg.norm(t) for t in terms]) <= 0).all()


def test_the_order_of_the_modes_does_not_matter_in_the_end():
    X, y = make_tensor_regression(120, (5, 4, 3), random_state=0)
    expected = OrTRR(random_state=0, **TIGHT).fit(X, y)
    turned = OrTRR(random_state=0, **TIGHT).fit(X.transpose(0, 3, 1, 2), y)
    assert_allclose(turned.coef_.transpose(1, 2, 0), expected.coef_, atol=1e-5)


@pytest.mark.parametrize("shape", [(7,), (5, 4), (5, 4, 3)])
def test_blocks_of_samples_do_not_matter(shape):
    X, y = make_tensor_regression(60, shape, random_state=0)
    starts = Models.random(1, 1, shape, np.random.default_rng(0))
    one, many = (
        GroupRidge(
            LocalEngine(ArraySource(X, block_bytes=size)), y, group=1.0, ridge=0.1, centre=False
        ).minimise(starts, max_iter=50, tol=1e-9)
        for size in (1 << 30, 500)
    )
    assert_allclose(many.models.coefficient(), one.models.coefficient(), atol=1e-9)


def test_the_starts_follow_the_random_state():
    X, y = make_tensor_regression(40, (6, 5, 4), random_state=0)
    one, again, other = (
        fit_silently(OrTRR(max_iter=2, random_state=s), X, y).coef_ for s in (0, 0, 1)
    )
    assert_array_equal(one, again)
    assert not np.allclose(one, other)


@pytest.mark.parametrize("convert", [np.asfortranarray, lambda X: X.astype(">f8")])
@pytest.mark.parametrize("n_terms", [1, 3])
def test_the_layout_of_the_data_does_not_matter_and_x_is_not_written(convert, n_terms):
    X, y = make_tensor_regression(60, (5, 4, 3), random_state=0)
    expected = OrTRR(n_terms=n_terms, random_state=0).fit(X, y)
    X = convert(X)
    X.setflags(write=False)
    given = OrTRR(n_terms=n_terms, random_state=0).fit(X, y)
    assert_allclose(given.coef_, expected.coef_, atol=1e-7)


@pytest.mark.parametrize("n_init", [1, 3])
def test_float32_stays_float32(n_init):
    X, y, W = make_tensor_regression(200, (6, 5), dtype=np.float32, coef=True, random_state=0)
    model = OrTRR(n_terms=1, n_init=n_init, random_state=0).fit(X, y)
    assert model.coef_.dtype == model.factors_[0].dtype == model.predict(X).dtype == np.float32
    assert coefficient_error(model.coef_, W) < 0.02


def test_the_grid_serves_a_search():
    X, y = make_tensor_regression(100, (4, 3), random_state=0)
    search = GridSearchCV(OrTRR(random_state=0, n_terms=2, n_init=1), OrTRR.param_grid_, cv=2)
    fit_silently(search, X, y)
    assert search.best_score_ > 0.9


def test_what_went_wrong_is_told():
    X, y = make_tensor_regression(40, (8, 8), random_state=0)
    with pytest.warns(ConvergenceWarning, match="after 2 sweeps; raise `max_iter`") as caught:
        model = OrTRR(max_iter=2, random_state=0).fit(X, y)
    assert caught[0].filename == __file__
    assert not model.converged_
    with pytest.warns(ConvergenceWarning, match="coefficient is zero.*lower `group`"):
        model = OrTRR(1e6, random_state=0).fit(X, y + 3)
    assert model.n_terms_ == 0
    assert not model.converged_
    assert_allclose(model.predict(X), np.mean(y + 3))


def test_a_vector_vanishes_exactly_where_it_should():
    X, y = make_tensor_regression(40, (7,), random_state=0)
    edge = np.linalg.norm(X.T @ y)
    with pytest.warns(ConvergenceWarning, match="coefficient is zero"):
        OrTRR(1.01 * edge, fit_intercept=False).fit(X, y)
    model = OrTRR(0.99 * edge, fit_intercept=False, **TIGHT).fit(X, y)
    assert model.n_terms_ == 1


@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_constant_data_give_a_constant(shape):
    with pytest.warns(ConvergenceWarning, match="coefficient is zero"):
        model = OrTRR(random_state=0).fit(np.zeros((12, *shape)), np.arange(12.0))
    assert_allclose(model.predict(np.ones((3, *shape))), 5.5)


def test_a_fit_beyond_memory_is_refused():
    X, y = np.zeros((2000, 1)), np.zeros(2000)
    with pytest.raises(ValueError, match=r"n_init=60000 starts.*GiB of memory.*Lower n_init"):
        OrTRR(n_init=60000, n_terms=4).fit(X[..., None], y)


def test_bad_input_is_told():
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    bad = X.copy()
    bad[7, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN: first at sample 7, element \(2, 1\)"):
        OrTRR().fit(bad, y)
    with pytest.raises(ValueError, match="'ridge' parameter of OrTRR must be"):
        OrTRR(ridge=0.0).fit(X, y)
    with pytest.raises(ValueError, match=r"X has entries up to .*Rescale X"):
        OrTRR().fit(1e100 * X, y)
