"""DantzigSelector: feasible, optimal by duality, and refused where it cannot be solved."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from pyfastr.baselines import DantzigSelector, dantzig
from pyfastr.datasets import make_tensor_regression


def dual_value(X, y, alpha):
    """The dual program: the largest ``b'u − alpha·‖u‖₁`` with ``‖X'Xu‖_∞ ≤ 1``, b = X'y."""
    gram, b = X.T @ X, X.T @ y
    both = np.hstack([gram, -gram])
    return -linprog(
        np.concatenate([alpha - b, alpha + b]),
        A_ub=np.vstack([both, -both]),
        b_ub=np.ones(2 * len(b)),
        bounds=(0, None),
    ).fun


# Many samples, few, and very few: both forms of the program.
@pytest.mark.parametrize(
    ("shape", "n_samples"), [((9,), 30), ((6, 5), 60), ((6, 5), 20), ((6, 5), 8), ((4, 3, 5), 12)]
)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3])
def test_it_is_feasible_and_optimal(shape, n_samples, share):
    X, y = make_tensor_regression(n_samples, shape, random_state=0)
    flat = X.reshape(n_samples, -1)
    alpha = share * np.abs(flat.T @ y).max()
    model = DantzigSelector(alpha).fit(X, y)
    correlation = flat.T @ (y - flat @ model.coef_.ravel())
    scale = np.linalg.norm(flat, axis=0).max() * np.linalg.norm(y)
    assert np.abs(correlation).max() <= alpha + 1e-8 * scale
    assert_allclose(np.abs(model.coef_).sum(), dual_value(flat, y, alpha), rtol=1e-6)
    assert model.n_iter_ > 0
    assert model.tensor_shape_in_ == shape


def test_the_coefficient_is_sparse_and_recovers_the_truth():
    X, y, W = make_tensor_regression(100, (6, 5), noise=0.01, coef=True, random_state=0)
    model = DantzigSelector(0.1).fit(X, y)
    assert_allclose(model.coef_, W, atol=0.02)
    assert np.count_nonzero(model.coef_) < W.size


def test_a_bound_that_zero_keeps_gives_zero():
    X, y = make_tensor_regression(20, (6, 5), random_state=0)
    bound = np.abs(np.tensordot(y, X, 1)).max()
    model = DantzigSelector(bound).fit(X, y)
    assert_array_equal(model.coef_, np.zeros((6, 5)))
    assert model.n_iter_ == 0
    assert np.any(DantzigSelector(0.99 * bound).fit(X, y).coef_)


@pytest.mark.parametrize("n_samples", [8, 60])
@pytest.mark.parametrize(("x_scale", "y_scale"), [(1e-6, 1.0), (1e5, 1e-4)])
def test_scaling_scales_the_coefficient(n_samples, x_scale, y_scale):
    X, y = make_tensor_regression(n_samples, (6, 5), random_state=0)
    one = DantzigSelector(1.0).fit(X, y).coef_
    scaled = DantzigSelector(x_scale * y_scale).fit(x_scale * X, y_scale * y).coef_
    assert_allclose(scaled * x_scale / y_scale, one, atol=1e-7)


def test_the_intercept_takes_up_shifts():
    X, y = make_tensor_regression(60, (4, 3), random_state=0)
    model = DantzigSelector(fit_intercept=True).fit(X, y)
    shifted = DantzigSelector(fit_intercept=True).fit(X + 3.0, y - 7.0)
    assert_allclose(shifted.coef_, model.coef_, atol=1e-8)
    assert_allclose(shifted.predict(X + 3.0), model.predict(X) - 7.0, atol=1e-6)


def test_too_many_features_are_refused_before_any_work():
    X = np.broadcast_to(np.float32(1.0), (4, 60, 60))
    with pytest.raises(
        ValueError, match=r"samples of 3600 elements.*at most 3000.*VectorizedLasso"
    ):
        DantzigSelector().fit(X, np.arange(4.0))


@pytest.fixture
def unwell(monkeypatch):
    """Make the linear program end in numerical difficulties."""

    def end(found):
        def solve(**program):
            result = linprog(**program)
            result.update(status=4, message="Difficulties.", x=result.x if found else None)
            return result

        monkeypatch.setattr(dantzig, "linprog", solve)

    return end


def test_numerical_difficulties_are_told(unwell):
    X, y = make_tensor_regression(30, (6, 5), random_state=0)
    unwell(found=True)
    with pytest.warns(ConvergenceWarning, match=r"Difficulties\. Raise `alpha`") as caught:
        DantzigSelector().fit(X, y)
    assert caught[0].filename == __file__


def test_no_solution_is_an_error(unwell):
    X, y = make_tensor_regression(30, (6, 5), random_state=0)
    unwell(found=False)
    with pytest.raises(ValueError, match=r"found no solution for alpha=1\.0: Difficulties"):
        DantzigSelector().fit(X, y)


@pytest.mark.parametrize("alpha", [-1.0, None, "1"])
def test_bad_parameters_are_named(alpha):
    X, y = make_tensor_regression(30, (6, 5), random_state=0)
    with pytest.raises(ValueError, match="'alpha' parameter of DantzigSelector"):
        DantzigSelector(alpha).fit(X, y)
