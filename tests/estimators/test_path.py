"""The coefficients along thresholds."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from pyfastr import FasTRRegressor, fastr_path

mpl.use("Agg")

THRESHOLDS = [0.0, 0.05, 0.2, 0.6]


def weights_and_covariates(n_samples):
    rng = np.random.default_rng(4)
    return rng.integers(1, 4, n_samples).astype(float), rng.normal(size=(n_samples, 2))


CASES = {
    "plain": {},
    "no intercept": {"fit_intercept": False},
    "refit": {"refit_support": True},
    "two terms": {"n_terms": 2, "ridge": 0.1},
    "few sweeps": {"max_iter": 4, "tol": 0.3},
}


@pytest.mark.parametrize("shape", [(12,), (6, 5), (5, 4, 3)], ids=str)
@pytest.mark.parametrize("adjusted", [False, True], ids=["alone", "weights and covariates"])
@pytest.mark.parametrize("case", CASES)
def test_every_point_is_the_fit_from_the_same_start(draw, shape, adjusted, case):
    options = CASES[case]
    if len(shape) == 1 and options.get("n_terms", 1) > 1:
        pytest.skip("vectors have one term")
    X, y, _ = draw(shape, noise=0.3)
    if options.get("n_terms", 1) > 1:
        second = draw(shape, seed=1)[2]
        y = y + X.reshape(len(y), -1) @ second.ravel()
    weights, Z = weights_and_covariates(len(y)) if adjusted else (None, None)
    data = {"sample_weight": weights, "covariates": Z}
    path = fastr_path(X, y, thresholds=THRESHOLDS, n_init=8, random_state=0, **data, **options)
    for i, threshold in enumerate(THRESHOLDS):
        model = FasTRRegressor(threshold, init=path.start, **options).fit(X, y, **data)
        size = np.abs(model.coef_).max()
        assert_allclose(path.coef(i), model.coef_, rtol=0, atol=1e-8 * size)
        assert_allclose(path.intercepts[i], model.intercept_, atol=1e-8)
        if adjusted:
            assert_allclose(path.covariate_coefs[i], model.covariate_coef_, atol=1e-8)
        assert path.converged[i] == model.converged_


def test_without_threshold_it_is_the_regressor(draw):
    X, y, _ = draw((6, 5))
    path = fastr_path(X, y, thresholds=[0.0], random_state=0)
    assert_allclose(path.coef(0), FasTRRegressor(random_state=0).fit(X, y).coef_, rtol=1e-6)


def test_terms_keep_one_order_that_descends_without_threshold(draw):
    X, y, _ = draw((6, 5), noise=1.0)
    path = fastr_path(X, y, n_terms=3, ridge=0.1, n_init=8, random_state=1, tol=0.1)
    assert np.all(np.diff(path.scales[0]) <= 0)
    first = [f[:, :, 0] for f in path.factors]
    for factor in first:
        near = np.einsum("tp,tp->t", factor[:5], factor[1:6])
        assert np.all(near > 0.9)


def test_shapes_and_numbers_of_entries(draw):
    X, y, _ = draw((6, 5, 4))
    path = fastr_path(X, y, random_state=0)
    assert path.thresholds[0] == 0
    assert [f.shape for f in path.factors] == [(31, 6, 1), (31, 5, 1), (31, 4, 1)]
    assert path.scales.shape == (31, 1)
    assert path.covariate_coefs.shape == (31, 0)
    assert_array_equal(path.n_nonzero[0], [6, 5, 4])
    assert np.all(path.n_nonzero[-1] < [6, 5, 4])
    assert_array_equal(path.n_nonzero[7, 1], np.count_nonzero(path.coef(7).any(axis=(0, 2))))


def test_scaling_x_and_y_scales_the_path(draw):
    X, y, _ = draw((6, 5))
    options = {"thresholds": THRESHOLDS, "random_state": 0, "n_init": 4}
    small, large = fastr_path(X, y, **options), fastr_path(1e9 * X, 1e3 * y, **options)
    assert_allclose(large.scales, 1e-6 * small.scales, rtol=1e-6)
    assert_allclose(large.intercepts, 1e3 * small.intercepts, rtol=1e-6)
    # Starts that reach one solution with other signs are equally good.
    starts = [path.start[0] @ path.start[1].T for path in (large, small)]
    assert_allclose(starts[0], 1e-6 * starts[1], rtol=1e-5, atol=1e-12)


def test_a_constant_response_has_a_zero_path(draw):
    X, _, _ = draw((6, 5))
    path = fastr_path(X, np.full(len(X), 3.0), thresholds=THRESHOLDS)
    assert not any(path.coef(i).any() for i in range(len(THRESHOLDS)))
    assert_allclose(path.intercepts, 3)


def test_the_plot_shows_every_entry(draw):
    X, y, _ = draw((4, 3))
    path = fastr_path(X, y, thresholds=[0.3, 0.0, 0.1], n_init=2, random_state=0)
    panels = path.plot()
    assert len(panels) == 2
    for panel, factor in zip(panels, path.factors, strict=True):
        lines = panel.get_lines()
        assert len(lines) == factor.shape[1]
        for line, entry in zip(lines, factor[:, :, 0].T, strict=True):
            assert_array_equal(line.get_xdata(), [0.0, 0.1, 0.3])
            assert_array_equal(line.get_ydata(), entry[[1, 2, 0]])
    assert path.plot(panels)[0] is panels[0]
    with pytest.raises(ValueError, match="axes has 1 matplotlib axes; expected 2"):
        path.plot(panels[:1])
    mpl.pyplot.close("all")


def test_without_matplotlib_the_error_names_the_extra():
    script = """
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
from pyfastr.display.axes import axes_for
try:
    axes_for(None, 1)
except ImportError as error:
    assert "pip install 'pyfastr[plot]'" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


@pytest.mark.parametrize("bad", [[], [1.0], [-0.1], [[0.1]], ["much"], "all", [np.nan], 0.1])
def test_bad_thresholds_are_refused(draw, bad):
    X, y, _ = draw((4, 3))
    with pytest.raises(ValueError, match=r"thresholds is .*; expected 'auto' or a sequence"):
        fastr_path(X, y, thresholds=bad)


def test_other_bad_input_is_refused(draw):
    X, y, _ = draw((4, 3))
    with pytest.raises(ValueError, match="refit_support is 'evidence'"):
        fastr_path(X, y, refit_support="evidence")
    with pytest.raises(ValueError, match="'ridge' parameter"):
        fastr_path(X, y, ridge=-1)
    with pytest.raises(ValueError, match=r"y has \d+ values, but X has \d+ samples"):
        fastr_path(X, y[:-1])


def test_points_that_do_not_converge_are_told(draw):
    X, y, _ = draw((4, 3), noise=1.0)
    with pytest.warns(ConvergenceWarning, match="did not converge at 2 of 2 thresholds"):
        path = fastr_path(X, y, thresholds=[0.1, 0.3], max_iter=1, tol=0, random_state=0)
    assert not path.converged.any()
