"""FasTRRegressor: what is wrong is told, and never answered with NaN."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from pyfastr import FasTRRegressor, FasTRRegressorCV

SHAPES = [(7,), (6, 5), (5, 4, 3), (3, 4, 2, 3)]


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"threshold": -0.1}, "threshold"),
        ({"threshold": 1.0}, "threshold"),
        ({"threshold": np.nan}, "threshold"),
        ({"ridge": -1e-9}, "ridge"),
        ({"ridge": "auto"}, "ridge"),
        ({"n_terms": 0}, "n_terms"),
        ({"n_terms": 1.5}, "n_terms"),
        ({"init": "zeros"}, "init"),
        ({"n_init": 0}, "n_init"),
        ({"n_init": "many"}, "n_init"),
        ({"sweep": "random"}, "sweep"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1e-3}, "tol"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
        ({"refit_support": "all"}, "refit_support"),
        ({"random_state": "seed"}, "random_state"),
        ({"verbose": -1}, "verbose"),
    ],
)
def test_parameters_out_of_range_are_named(draw, parameters, name):
    X, y, _ = draw((6, 5))
    with pytest.raises(ValueError, match=f"'{name}' parameter of FasTRRegressor"):
        FasTRRegressor(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ([np.ones(6)], r"init has arrays of shapes \[\(6, 1\)\]; expected \[\(6, 1\), \(5, 1\)\]"),
        ([np.ones(5), np.ones(6)], r"init has arrays of shapes \[\(5, 1\), \(6, 1\)\]"),
        ([np.ones((6, 2)), np.ones((5, 2))], "n_terms=1 terms"),
        ([np.zeros(6), np.ones(5)], r"init\[0\] has a column"),
        ([np.ones(6), np.full(5, np.nan)], r"init\[1\] has a column with NaN"),
        ([np.ones(6), ["a"] * 5], "init holds what is no array of numbers"),
        ([np.ones(6), [[1.0], [1.0, 2.0]]], "init holds what is no array of numbers"),
        ([np.ones((6, 1, 1)), np.ones(5)], "init has arrays of shapes"),
        ([1.0, 2.0], "init has arrays of shapes"),
        ([], "init has arrays of shapes"),
    ],
)
def test_starts_of_wrong_shape_are_named(draw, init, message):
    X, y, _ = draw((6, 5))
    with pytest.raises(ValueError, match=message):
        FasTRRegressor(init=init).fit(X, y)


def test_several_terms_of_vectors_are_refused(draw):
    X, y, _ = draw((7,))
    with pytest.raises(ValueError, match=r"n_terms is 2, but the samples are vectors"):
        FasTRRegressor(n_terms=2).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones(9), np.ones(9), r"X has shape \(9,\); expected \(n_samples, p1"),
        (np.ones((0, 3, 2)), np.ones(0), "0 sample"),
        (np.ones((1, 3, 2)), np.ones(1), "minimum of 2 is required"),
        (np.ones((5, 3, 0)), np.ones(5), "a mode of size 0"),
        (np.ones((5, 3, 2)), np.ones(4), "y has 4 values, but X has 5 samples"),
        (np.ones((5, 3, 2)), None, "requires y to be passed"),
        (np.ones((5, 3, 2)), [1, 2, np.inf, 4, 5], "Input y contains infinity.*sample 2"),
        (np.ones((5, 3, 2)), [1, 2, 3, 4, np.nan], "Input y contains NaN: first at sample 4"),
        (np.ones((5, 3, 2)), np.ones((5, 2, 1)), "y should be a 1d array"),
        (np.ones((5, 3, 2), complex), np.ones(5), "Complex data not supported"),
    ],
)
def test_data_that_cannot_be_fitted_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        FasTRRegressor().fit(X, y)


@pytest.mark.parametrize(("bad", "kind"), [(np.nan, "NaN"), (np.inf, "infinity")])
@pytest.mark.parametrize("shape", SHAPES)
def test_entries_that_are_not_finite_are_named_with_their_place(draw, shape, bad, kind):
    X, y, _ = draw(shape)
    model = FasTRRegressor(n_init=2, random_state=0).fit(X, y)
    place = tuple(p - 1 for p in shape)
    X[41][place] = bad
    message = rf"{kind}: first at sample 41, element \({', '.join(map(str, place))},?\)"
    for work in (lambda: FasTRRegressor().fit(X, y), lambda: model.predict(X)):
        with pytest.raises(ValueError, match=message):
            work()


def test_another_shape_at_predict_is_refused(draw):
    X, y, _ = draw((5, 4, 3))
    model = FasTRRegressor(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"samples of shape \(4, 5, 3\), but .* \(5, 4, 3\)"):
        model.predict(X.transpose(0, 2, 1, 3))
    with pytest.raises(ValueError, match=r"samples of shape \(60,\)"):
        model.predict(X.reshape(80, -1))


@pytest.mark.parametrize(
    ("covariates", "message"),
    [
        (np.ones((79, 2)), "covariates has 79 rows; expected one for each of the 80"),
        (np.full((80, 1), np.nan), "covariates contains NaN"),
        (np.full(80, np.inf), "covariates contains infinity"),
        (np.full((80, 1), "a"), "covariates, of type ndarray, is no array of real numbers"),
        (np.ones((80, 2, 2)), r"covariates has shape \(80, 2, 2\); expected \(80, n_covariates\)"),
    ],
)
def test_wrong_covariates_are_refused(draw, covariates, message):
    X, y, _ = draw((6, 5))
    with pytest.raises(ValueError, match=message):
        FasTRRegressor().fit(X, y, covariates=covariates)


def test_covariates_at_predict_are_those_of_the_fit(draw):
    X, y, _ = draw((6, 5))
    Z = np.random.default_rng(1).normal(size=(80, 2))
    plain = FasTRRegressor(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"covariates has 2 columns, but .* fitted with 0"):
        plain.predict(X, Z)
    model = FasTRRegressor(random_state=0).fit(X, y, covariates=Z)
    with pytest.raises(ValueError, match=r"covariates has 0 columns, but .* fitted with 2"):
        model.predict(X)
    with pytest.raises(ValueError, match="covariates has 1 columns"):
        model.score(X, y, covariates=Z[:, 0])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(80), "sample_weight is zero for all samples"),
        (np.r_[1.0, np.zeros(79)], "sample_weight has 1 positive entries"),
        (np.r_[-1.0, np.ones(79)], r"sample_weight is from -1.0 to 1.0; expected weights of 0"),
        (np.r_[np.nan, np.ones(79)], "sample_weight contains NaN"),
        (np.ones(79), r"sample_weight has shape \(79,\); expected \(80,\)"),
    ],
)
def test_wrong_weights_are_refused(draw, weights, message):
    X, y, _ = draw((6, 5))
    with pytest.raises(ValueError, match=message):
        FasTRRegressor().fit(X, y, sample_weight=weights)


def assert_finite(model, X):
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_)
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.history_["loss"]).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("value", [0.0, 7.0, 1e150, 0.1])
@pytest.mark.parametrize("refit_support", [False, True, "evidence"])
def test_a_constant_y_gives_its_mean_and_a_warning(draw, shape, value, refit_support):
    X, _, _ = draw(shape)
    model = FasTRRegressor(refit_support=refit_support, random_state=0)
    with pytest.warns(ConvergenceWarning, match="y is constant"):
        model.fit(X, np.full(80, value))
    assert_array_equal(model.coef_, 0)
    assert model.intercept_ == pytest.approx(value)
    assert_allclose(model.predict(X), value)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sample", ["zero", "constant", "any"])
@pytest.mark.parametrize("refit_support", [False, True, "evidence"])
def test_an_x_that_does_not_vary_gives_the_mean_and_a_warning(draw, shape, sample, refit_support):
    _, y, _ = draw(shape)
    array = {"zero": 0.0, "constant": 0.1, "any": np.random.default_rng(0).normal(size=shape)}
    X = np.broadcast_to(array[sample], (80, *shape))
    model = FasTRRegressor(n_init=4, refit_support=refit_support, random_state=0)
    with pytest.warns(ConvergenceWarning, match="The coefficient is zero: X does not vary"):
        model.fit(X, y)
    assert_array_equal(model.coef_, 0)
    assert_allclose(model.predict(X), y.mean())


def test_an_x_that_the_covariates_explain_gives_no_coefficient():
    age = np.random.default_rng(0).normal(50, 10, size=80)
    y = age + np.random.default_rng(1).normal(size=80)
    X = age[:, None, None] * np.random.default_rng(2).normal(size=(6, 5))
    with pytest.warns(ConvergenceWarning, match="The coefficient is zero: X does not vary"):
        model = FasTRRegressor(n_init=4, random_state=0).fit(X, y, covariates=age)
    assert_array_equal(model.coef_, 0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_slices_that_do_not_vary_get_no_coefficient(draw, shape, value):
    X, y, _ = draw(shape)
    X[:, 1] = value
    X[..., 0] = value
    model = FasTRRegressor(random_state=0, max_iter=5000).fit(X, y)
    assert_finite(model, X)
    assert_allclose(model.coef_[1], 0, atol=1e-10)
    assert_allclose(model.coef_[..., 0], 0, atol=1e-10)


def test_a_threshold_near_one_leaves_one_entry_a_mode(draw):
    X, y, _ = draw((6, 5))
    model = FasTRRegressor(threshold=0.999, random_state=0).fit(X, y)
    assert_finite(model, X)
    assert np.count_nonzero(model.coef_) == 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("refit_support", [False, True, "evidence"])
def test_two_samples_have_an_answer(draw, shape, refit_support):
    X, y, _ = draw(shape)
    model = FasTRRegressor(refit_support=refit_support, n_init=8, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:2], y[:2])
    assert_finite(model, X)


def test_running_out_of_sweeps_is_told(starts_of, draw):
    X, y, _ = draw((6, 5))
    model = FasTRRegressor(init=starts_of((6, 5)), max_iter=1)
    with pytest.warns(ConvergenceWarning, match="did not converge.*in sweep 1. Raise `max_iter`"):
        model.fit(X, y)
    assert model.n_iter_ == 1
    assert not model.converged_
    assert_finite(model, X)


def test_warnings_point_at_the_line_of_the_user(starts_of, draw):
    X, y, _ = draw((6, 5))
    with pytest.warns(ConvergenceWarning) as caught:
        FasTRRegressor(init=starts_of((6, 5)), max_iter=1).fit(X, y)
    assert caught[0].filename == __file__


def test_a_coefficient_too_large_for_float32_is_told(draw):
    X, y, _ = draw((6, 5))
    with pytest.raises(ValueError, match=r"which float32 cannot hold.*Rescale"):
        FasTRRegressor(random_state=0).fit((1e-30 * X).astype(np.float32), 1e30 * y)


def test_no_more_terms_than_samples_are_fitted():
    X = np.random.default_rng(0).normal(size=(5, 7, 4, 4, 3))
    with pytest.raises(ValueError, match=r"n_terms is 6, but 5 samples .*expected at most 5"):
        FasTRRegressor(n_terms=6).fit(X, np.arange(5.0))
    with pytest.raises(ValueError, match="n_terms is 6, but 5 samples"):
        FasTRRegressorCV(n_terms=(1, 6), cv=2).fit(X, np.arange(5.0))


def test_evidence_chooses_among_no_more_parameters_than_samples():
    X = np.random.default_rng(0).normal(size=(30, 6, 5))
    model = FasTRRegressor(n_terms=3, refit_support="evidence", random_state=0)
    with pytest.raises(ValueError, match="30 samples can choose the supports of 2 with 11 free"):
        model.fit(X, X[:, 0, 0])
    assert len(model.set_params(n_terms=2).fit(X, X[:, 0, 0]).scales_) == 2


def test_a_ridge_beyond_all_reason_is_refused():
    X = np.random.default_rng(0).normal(size=(30, 6, 5))
    with pytest.raises(ValueError, match="'ridge' parameter"):
        FasTRRegressor(ridge=1e31).fit(X, X[:, 0, 0])
    with pytest.raises(ValueError, match="ridges has 1e"):
        FasTRRegressorCV(ridges=[0.1, 1e31]).fit(X, X[:, 0, 0])
