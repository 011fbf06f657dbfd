"""FasTRRegressor with all kinds of arrays, little memory, and the tools of scikit-learn."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from pyfastr import FasTRRegressor, FasTRRegressorCV, TensorScaler, theory_threshold
from pyfastr.datasets import make_tensor_regression
from pyfastr.metrics import coefficient_error

SHAPES = [(7,), (6, 5), (5, 4, 3), (3, 4, 2, 3)]


def assert_close(found, expected, tolerance=1e-6):
    """Equal up to a share of the largest entry."""
    assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("refit_support", [False, True, "evidence"])
def test_float32_stays_float32(draw, shape, refit_support):
    X, y, W = draw(shape)
    X, y = X.astype(np.float32), y.astype(np.float32)
    model = FasTRRegressor(refit_support=refit_support, random_state=0).fit(X, y)
    assert model.coef_.dtype == model.scales_.dtype == model.predict(X).dtype == np.float32
    assert {f.dtype for f in model.factors_} == {np.dtype(np.float32)}
    double = FasTRRegressor(refit_support=refit_support, random_state=0).fit(X.astype(float), y)
    assert double.coef_.dtype == np.float64
    assert coefficient_error(model.coef_, W) < 0.2
    if not refit_support:
        assert_close(model.coef_, double.coef_, 1e-2)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "convert",
    [
        np.asfortranarray,
        lambda X: X.astype(">f8"),
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X.tolist(),
    ],
    ids=["fortran", "big-endian", "strided", "list"],
)
def test_the_layout_of_x_does_not_matter(draw, shape, convert):
    X, y, _ = draw(shape)
    expected = FasTRRegressor(random_state=0).fit(X, y)
    model = FasTRRegressor(random_state=0).fit(convert(X), y)
    assert_close(model.coef_, expected.coef_, 1e-10)
    assert_close(model.predict(convert(X)), expected.predict(X), 1e-10)


def test_whole_numbers_are_numbers(draw):
    X, y, _ = draw((6, 5))
    X = np.rint(10 * X)
    expected = FasTRRegressor(random_state=0).fit(X, y)
    model = FasTRRegressor(random_state=0).fit(X.astype(np.int16), y)
    assert_array_equal(model.coef_, expected.coef_)


def test_a_read_only_map_of_a_file_is_fitted_in_place(draw, tmp_path):
    X, y, _ = draw((5, 4, 3))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    y.setflags(write=False)
    model = FasTRRegressor(random_state=0).fit(mapped, y)
    assert_array_equal(model.coef_, FasTRRegressor(random_state=0).fit(X, y).coef_)


@pytest.mark.parametrize("order", ["C", "F"])
def test_nothing_that_is_given_is_changed(starts_of, draw, order):
    X, y, _ = draw((5, 4, 3))
    X = np.asarray(X, order=order)
    Z, weights, init = np.arange(80.0)[:, None], np.arange(80.0), starts_of((5, 4, 3))
    given = [X, y, Z, weights, *init]
    before = [a.tobytes() for a in given]
    layouts = [(a.flags.c_contiguous, a.flags.f_contiguous, a.flags.writeable) for a in given]
    model = FasTRRegressor(init=init, ridge=0.1, max_iter=5000)
    model.fit(X, y, sample_weight=weights, covariates=Z).predict(X, Z)
    assert [a.tobytes() for a in given] == before
    assert layouts == [
        (a.flags.c_contiguous, a.flags.f_contiguous, a.flags.writeable) for a in given
    ]


def peak_of(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(name="large", scope="module")
def sixty_megabytes():
    X = np.random.default_rng(0).normal(size=(400, 40, 40, 12))
    assert 6e7 < X.nbytes < 6.5e7
    return X, X[:, 0, 0, 0] + X[:, 1, 2, 3]


def test_a_search_needs_at_most_200_megabytes_beside_x(large):
    model = FasTRRegressor(n_init=16, max_iter=3, tol=1.0, random_state=0)
    assert peak_of(lambda: model.fit(*large)) < 200e6


@pytest.mark.parametrize("sweep", ["cyclic", "simultaneous"])
def test_one_model_needs_a_tenth_of_x_and_a_few_blocks(starts_of, large, sweep):
    X, y = large
    init = starts_of(X.shape[1:])
    model = FasTRRegressor(init=init, ridge=1.0, sweep=sweep, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # A block is 4 MB.
        assert peak_of(lambda: model.fit(X, y)) < 0.1 * X.nbytes + 8e6
    assert peak_of(lambda: model.predict(X)) < 0.1 * X.nbytes


def test_the_coefficient_is_built_once_and_not_pickled(starts_of):
    shape = (40, 40, 40)
    X, y = make_tensor_regression(20, shape, random_state=0)
    model = FasTRRegressor(init=starts_of(shape), ridge=1.0, tol=1.0).fit(X, y)
    assert model.coef_ is model.coef_
    stored = pickle.dumps(model)
    assert len(stored) < 10_000 < model.coef_.nbytes
    loaded = pickle.loads(stored)
    assert_array_equal(loaded.coef_, model.coef_)
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.starts_ == model.starts_


def test_clones_are_unfitted_and_equal(starts_of, draw):
    X, y, _ = draw((6, 5))
    model = FasTRRegressor(0.1, 0.2, init=starts_of((6, 5)), max_iter=77).fit(X, y)
    fresh = clone(model)
    assert fresh.get_params().keys() == model.get_params().keys()
    assert (fresh.threshold, fresh.ridge, fresh.max_iter) == (0.1, 0.2, 77)
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    with pytest.raises(AttributeError):
        _ = fresh.coef_
    assert_array_equal(fresh.fit(X, y).coef_, model.coef_)


def test_a_second_fit_forgets_the_first(draw):
    X, y, _ = draw((6, 5))
    Z = np.arange(80.0)[:, None]
    model = FasTRRegressor(random_state=0).fit(X, y, covariates=Z)
    X2, y2, _ = draw((5, 4, 3))
    model.fit(X2, y2)
    assert not hasattr(model, "covariate_coef_")
    assert_array_equal(model.coef_, FasTRRegressor(random_state=0).fit(X2, y2).coef_)


def test_a_pipeline_with_the_scaler_takes_tensors(draw):
    X, y, _ = draw((5, 4, 3))
    X = X * np.array([1e3, 1.0, 1e-3])
    model = make_pipeline(TensorScaler(per=-1), FasTRRegressor(random_state=0)).fit(X, y)
    scaled = TensorScaler(per=-1).fit_transform(X)
    expected = FasTRRegressor(random_state=0).fit(scaled, y).predict(scaled)
    assert_allclose(model.predict(X), expected, rtol=1e-10)


def test_a_grid_search_chooses_the_smaller_ridge_where_noise_is_small(draw):
    X, y, _ = draw((6, 5))
    grid = {"ridge": [1e-5, 10.0], "threshold": [0.0, 0.9]}
    search = GridSearchCV(FasTRRegressor(n_init=4, random_state=0), grid, cv=3).fit(X, y)
    assert search.best_params_ == {"ridge": 1e-5, "threshold": 0.0}
    assert search.predict(X).shape == (80,)


def test_cross_validation_respects_groups(draw):
    X, y, _ = draw((5, 4, 3))
    scores = cross_val_score(
        FasTRRegressor(n_init=4, random_state=0),
        X,
        y,
        groups=np.repeat(np.arange(16), 5),
        cv=GroupKFold(4),
    )
    assert (scores > 0.8).all()


def test_weights_and_covariates_are_routed(draw):
    X, y, _ = draw((6, 5))
    Z = np.random.default_rng(1).normal(size=(80, 1))
    y = y + 5 * Z[:, 0]
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            FasTRRegressor(n_init=4, random_state=0)
            .set_fit_request(sample_weight=True, covariates=True)
            .set_score_request(sample_weight=True, covariates=True)
        )
        params = {"sample_weight": np.ones(80), "covariates": Z}
        scores = cross_val_score(model, X, y, cv=3, params=params)
        blind = cross_val_score(FasTRRegressor(n_init=4, random_state=0), X, y, cv=3)
    assert (scores > 0.9).all()
    assert (blind < 0.8).all()


@pytest.mark.parametrize("kind", [FasTRRegressor, FasTRRegressorCV])
def test_a_zero_names_the_thresholds_of_every_estimator(kind):
    y = np.random.default_rng(0).normal(size=20)
    with pytest.warns(ConvergenceWarning, match="coefficient is zero: X does not vary") as caught:
        model = kind(random_state=0).fit(np.ones((20, 4, 3)), y)
    (advised,) = {n for n in ("threshold", "thresholds") if n in model.get_params()}
    assert f"`{advised}`" in str(caught[0].message)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_folds_that_see_nothing_name_evidence_where_it_is_taken(loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 6, 5)), rng.permutation(20)
    model = FasTRRegressorCV([0.0], [0.1], n_terms=1, loss=loss, cv=2, random_state=0)
    with pytest.warns(UserWarning, match="No model predicts held-out samples better") as caught:
        model.fit(X, y)
    assert ("evidence" in str(caught[0].message)) == (loss == "squared")
    # The message names these parameters.
    model.set_params(criterion="evidence", refit="auto", n_terms="auto")
    if loss == "squared":
        model.fit(X, y)
    else:
        with pytest.raises(ValueError, match="evidence"):
            model.fit(X, y)


def test_the_threshold_of_the_theory_is_a_number_of_the_order_of_the_bound(draw):
    X, y, _ = draw((6, 5))
    threshold = theory_threshold(80, (6, 5))
    assert threshold == pytest.approx(0.1 * (np.sqrt(6) * np.log(6) / 80) ** (1 / 3))
    by_name = FasTRRegressor("theory", n_init=4, random_state=0).fit(X, y)
    by_number = FasTRRegressor(threshold, n_init=4, random_state=0).fit(X, y)
    assert_array_equal(by_name.coef_, by_number.coef_)
