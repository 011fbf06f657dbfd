"""SURF against the authors' code, and the facts its path must satisfy."""

import warnings
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import loadmat
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold

from pyfastr.baselines import SURF, limits, surf, surf_path
from pyfastr.baselines.surf import stagewise_path
from pyfastr.datasets import make_tensor_regression
from pyfastr.metrics import coefficient_error

DATA = Path(__file__).parents[1] / "data"
SHAPES = ["8x7", "6x5x4"]


def reference(shape):
    """The authors' outputs, with samples on the first axis of X."""
    found = loadmat(DATA / f"surf_{shape}.mat")
    return found, np.moveaxis(found["X"], -1, 0), found["y"].ravel()


def fit_silently(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def released_path(found, X, y):
    n_train = round(0.8 * len(y))
    path = stagewise_path(X, y, range(n_train, len(y)), ridge=0.01, fit_intercept=False)
    return path, found["path_lambda"].ravel(), found["path_sigma"].ravel()


def term(model, r):
    return model.scales_[r] * reduce(np.multiply.outer, [f[:, r] for f in model.factors_])


class WithTheReleasedSlip(surf_path.UnitRankTerm):
    """Where a backward step stops at zero, the released code updates as for a full step."""

    def _update_features(self, step, old_norm):
        full = np.sign(step.change) * self._settings.step
        slip = surf_path.Step(step.mode, step.index, full, step.penalty)
        super()._update_features(slip, old_norm)


def assert_same_path(path, found, n_points, tol=1e-9):
    points = slice(n_points)
    assert_allclose(path.penalties[points], found["path_lambda"].ravel()[points], atol=tol)
    assert_allclose(path.norms[points], found["path_sigma"].ravel()[points], atol=tol)
    for ours, theirs in zip(path.factors, found["path_w"].ravel(), strict=True):
        assert_allclose(ours[points], theirs[points], atol=tol)


def test_the_path_is_that_of_the_released_code():
    found, X, y = reference("8x7")
    path, penalties, _ = released_path(found, X, y)
    assert len(path.penalties) == len(penalties) == 176
    assert_same_path(path, found, 176)
    assert_allclose(path.test_errors, found["path_testerr"].ravel(), rtol=1e-9)


def test_the_path_leaves_the_released_one_where_that_slips(monkeypatch):
    found, X, y = reference("6x5x4")
    path, penalties, norms = released_path(found, X, y)
    # The first norm that is no multiple of the step: an entry was stopped at zero.
    first = np.flatnonzero(np.abs(norms / 0.1 - np.round(norms / 0.1)) > 1e-6)[0]
    assert first == 45
    assert_same_path(path, found, first)
    assert_allclose(path.test_errors[:first], found["path_testerr"].ravel()[:first], rtol=1e-9)
    assert len(path.penalties) != len(penalties)
    monkeypatch.setattr(surf, "UnitRankTerm", WithTheReleasedSlip)
    path = released_path(found, X, y)[0]
    assert len(path.penalties) == len(penalties) == 583
    assert_same_path(path, found, 583)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("row", range(4))
def test_a_fixed_radius_gives_the_released_coefficient(shape, row):
    found, X, y = reference(shape)
    step, slack, ridge, radius = found["params"][row]
    theirs = found["W_hat"].ravel()[row]
    if abs(np.abs(theirs).sum() - radius) < 1e-9:
        # Their norm is at the radius and by rounding just below it, so they take one step more.
        radius += 1e-6
    model = SURF(
        ridge, step=step, slack=slack / step, radius=radius, max_terms=1, fit_intercept=False
    )
    fit_silently(model, X, y)
    assert_allclose(model.coef_, theirs, atol=1e-9)
    assert_allclose(y - model.predict(X), found["res"].ravel()[row].ravel(), atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_whole_method_is_the_released_one_with_its_slip(shape, monkeypatch):
    found, X, y = reference(shape)
    monkeypatch.setattr(surf, "UnitRankTerm", WithTheReleasedSlip)
    folds = found["folds"].ravel()
    cv = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in np.unique(folds)]
    model = SURF(0.01, cv=cv, max_terms=3, fit_intercept=False)
    fit_silently(model, X, y)
    # Theirs goes on to a third term of 8x7 that raises the residuals; ours stops before it.
    rises = np.flatnonzero(np.diff(found["resSD"].ravel()) > 0)
    n_terms = rises[0] + 1 if rises.size else 3
    assert model.n_terms_ == n_terms == {"8x7": 2, "6x5x4": 3}[shape]
    assert_allclose(model.radii_, found["absWs"].ravel()[:n_terms], atol=1e-6)
    assert_allclose(model.penalties_, found["optLam"].ravel()[:n_terms], atol=1e-6)
    for r in range(n_terms):
        theirs = found["optW"][r].reshape(X.shape[1:], order="F")
        assert_allclose(term(model, r), theirs, atol=1e-6)
    # The slip makes three residuals of one model: the path's, the predicted one, and a running
    # one by which theirs judges the folds. Without it they are the same.
    if shape == "8x7":
        assert_allclose(model.cv_rmse_, found["cvRSD"].ravel()[:n_terms], atol=1e-6)
    assert_allclose(model.residual_rms_, found["resSD"].ravel()[:n_terms], atol=1e-6)


def test_without_the_slip_the_fit_is_better():
    found, X, y = reference("6x5x4")
    model = fit_silently(SURF(0.01, max_terms=3, cv=KFold(5), fit_intercept=False), X, y)
    assert model.residual_rms_[-1] < 0.5 * found["resSD"].ravel()[-1]


@pytest.mark.parametrize("shape", [(6,), (6, 5), (4, 3, 5), (3, 2, 4, 2)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_points_of_a_path_are_what_they_say(shape, fit_intercept):
    X, y = make_tensor_regression(60, shape, random_state=1)
    test = np.arange(40, 60)
    path = stagewise_path(X, y, test, ridge=0.01, fit_intercept=fit_intercept)
    assert (np.diff(path.penalties) <= 0).all()
    assert (path.penalties >= 0).all()
    assert (np.abs(np.diff(path.norms)) < 0.1 + 1e-9).all()
    for factor in path.factors:
        assert_allclose(np.abs(factor).sum(axis=1), 1)
    W = path.norms[-1] * reduce(np.multiply.outer, [f[-1] for f in path.factors])
    left = y - np.tensordot(X, W, len(shape))
    left -= fit_intercept * left[:40].mean()
    assert_allclose(path.test_errors[-1], np.mean(left[test] ** 2), rtol=1e-8)


def test_no_step_raises_the_penalised_loss():
    X, y = make_tensor_regression(60, (5, 4, 3), random_state=1)
    path = stagewise_path(X, y, ridge=0.1, fit_intercept=False, max_iter=200)
    W = [n * reduce(np.multiply.outer, w) for n, *w in zip(path.norms, *path.factors, strict=True)]
    smooth = np.array([np.mean((y - np.tensordot(X, V, 3)) ** 2) + 0.1 * (V**2).sum() for V in W])
    # λ of a step is known after it.
    change = np.diff(smooth) + path.penalties[1:] * np.diff(path.norms)
    assert change.max() <= 1e-9


def test_a_sparse_coefficient_is_found():
    X, y, W = make_tensor_regression(200, (5, 5, 5), coef=True, sparsity=0.4, random_state=1)
    model = SURF(0.001, step=0.05, max_terms=3, max_iter=3000).fit(X, y)
    assert model.converged_
    assert coefficient_error(model.coef_, W) < 0.05
    assert (np.diff(model.residual_rms_) < 0).all()
    assert_allclose(model.coef_, sum(term(model, r) for r in range(model.n_terms_)), atol=1e-12)
    assert_allclose(model.residual_rms_[-1], np.sqrt(np.mean((y - model.predict(X)) ** 2)))


def test_an_intercept_takes_out_means():
    X, y = make_tensor_regression(60, (5, 4), random_state=0)
    expected = SURF(0.01, max_terms=2).fit(X, y)
    moved = SURF(0.01, max_terms=2).fit(X + 3, y - 7)
    assert_allclose(moved.coef_, expected.coef_, atol=1e-8)
    assert_allclose(moved.predict(X + 3), expected.predict(X) - 7, atol=1e-7)
    assert SURF(0.01, max_terms=1, fit_intercept=False).fit(X, y).intercept_ == 0.0


def test_the_order_of_the_modes_does_not_matter():
    X, y = make_tensor_regression(60, (5, 4, 3), random_state=0)
    expected = SURF(0.01, radius=5, max_terms=2).fit(X, y)
    turned = SURF(0.01, radius=5, max_terms=2).fit(X.transpose(0, 3, 1, 2), y)
    assert_allclose(turned.coef_, expected.coef_.transpose(2, 0, 1), atol=1e-10)


def test_slices_need_not_be_kept(monkeypatch):
    X, y = make_tensor_regression(60, (5, 4, 3), random_state=0)
    expected = SURF(0.01, radius=5, max_terms=1).fit(X, y)
    monkeypatch.setattr(surf_path, "MAX_KEPT_BYTES", 0)
    again = SURF(0.01, radius=5, max_terms=1).fit(X, y)
    assert_array_equal(again.coef_, expected.coef_)


@pytest.mark.parametrize("convert", [np.asfortranarray, lambda X: X.astype(">f8")])
def test_the_layout_of_the_data_does_not_matter_and_x_is_not_written(convert):
    X, y = make_tensor_regression(60, (5, 4, 3), random_state=0)
    expected = SURF(0.01, radius=5, max_terms=1).fit(X, y)
    X = convert(X)
    X.setflags(write=False)
    assert_allclose(SURF(0.01, radius=5, max_terms=1).fit(X, y).coef_, expected.coef_, atol=1e-10)


def test_float32_stays_float32():
    X, y = make_tensor_regression(60, (5, 4), dtype=np.float32, random_state=0)
    model = SURF(0.01, max_terms=1).fit(X, y)
    assert model.coef_.dtype == model.factors_[0].dtype == model.predict(X).dtype == np.float32


def test_folds_may_be_an_iterable_that_is_read_once():
    X, y = make_tensor_regression(60, (5, 4), random_state=0)
    expected = SURF(0.01, cv=KFold(3), max_terms=2).fit(X, y)
    once = SURF(0.01, cv=iter(list(KFold(3).split(X))), max_terms=2).fit(X, y)
    assert_array_equal(once.coef_, expected.coef_)


def test_the_grid_serves_a_search():
    X, y = make_tensor_regression(60, (4, 3), random_state=0)
    search = GridSearchCV(SURF(radius=5, max_terms=1), SURF.param_grid_, cv=2).fit(X, y)
    assert search.best_params_["ridge"] < 1


def test_paths_that_are_too_short_are_told():
    X, y = make_tensor_regression(60, (5, 4), random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=20 points.*raise `max_iter`") as caught:
        model = SURF(0.01, radius=50, max_iter=20, max_terms=1).fit(X, y)
    assert caught[0].filename == __file__
    assert not model.converged_
    with pytest.warns(ConvergenceWarning, match="max_iter=20"):
        SURF(0.01, max_iter=20, max_terms=1).fit(X, y)


@pytest.mark.parametrize("y_scale", [0.0, 1e-6])
def test_a_step_too_large_for_the_data_is_told(y_scale):
    X, y = make_tensor_regression(60, (5, 4), random_state=0)
    with pytest.warns(ConvergenceWarning, match="coefficient is zero.*lower `step`"):
        model = SURF().fit(X, y_scale * y)
    assert model.n_terms_ == 0
    assert not model.converged_
    assert [f.shape for f in model.factors_] == [(5, 0), (4, 0)]
    assert_array_equal(model.coef_, np.zeros((5, 4)))


def test_a_fit_beyond_memory_is_refused(monkeypatch):
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    monkeypatch.setattr(limits, "MAX_WORKING_BYTES", 0)
    with pytest.raises(ValueError, match=r"cv with 5 folds on X.*GiB of memory.*fewer folds"):
        SURF().fit(X, y)


def test_bad_input_is_told():
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    bad = X.copy()
    bad[7, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN: first at sample 7, element \(2, 1\)"):
        SURF().fit(bad, y)
    with pytest.raises(ValueError, match=r"X has entries up to 3.*e\+200.*Rescale X"):
        SURF().fit(1e200 * X, y)
    with pytest.raises(ValueError, match="cv leaves 1 training samples in a fold; expected"):
        SURF(cv=[([0], [1, 2])]).fit(X, y)
    with pytest.raises(ValueError, match="'step' parameter of SURF must be"):
        SURF(step=0.0).fit(X, y)
    with pytest.raises(ValueError, match="'slack' parameter of SURF must be"):
        stagewise_path(X, y, slack=-1.0)
