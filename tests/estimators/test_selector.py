"""Slices that a model uses, as a step of a pipeline."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso, Ridge
from sklearn.pipeline import make_pipeline

from pyfastr import FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV
from pyfastr.baselines import VectorizedLasso
from pyfastr.datasets import make_tensor_regression
from pyfastr.estimators.selector import SliceSelector


class Known(FasTRRegressor):
    """Finds the coefficient that it is told."""

    def __init__(self, entries=(), *, zero=False):
        super().__init__()
        self.entries = entries
        self.zero = zero

    def fit(self, X, y=None, sample_weight=None, covariates=None):
        self.given_ = (sample_weight, covariates)
        self.factors_ = [np.zeros((p, 1)) for p in X.shape[1:]]
        for factor, entries in zip(self.factors_, self.entries, strict=True):
            factor[list(entries)] = 1.0
        self.scales_ = np.array([0.0 if self.zero else 1.0])
        self.tensor_shape_in_ = X.shape[1:]
        return self

    def __sklearn_is_fitted__(self):
        return hasattr(self, "factors_")


@pytest.fixture(name="X")
def tensors():
    return np.random.default_rng(0).normal(size=(7, 5, 4, 3))


def test_slices_that_some_term_uses_are_kept(X):
    selector = SliceSelector(Known([[1, 4], [0, 1, 3], [2]])).fit(X)
    cropped = selector.transform(X)
    assert_array_equal(cropped, X[:, [1, 4]][:, :, [0, 1, 3]][..., [2]])
    assert [own.tolist() for own in selector.get_support(indices=True)] == [[1, 4], [0, 1, 3], [2]]
    assert_array_equal(selector.get_support()[0], [False, True, False, False, True])
    restored = selector.inverse_transform(cropped)
    assert restored.shape == X.shape
    assert_array_equal(selector.transform(restored), cropped)
    assert np.count_nonzero(restored) == cropped.size


@pytest.mark.parametrize("order", ["C", "F"])
def test_neighbours_are_a_view(X, order):
    X = np.asarray(X, order=order)
    cropped = SliceSelector(Known([[1, 2], [3], [0, 1, 2]])).fit(X).transform(X)
    assert np.shares_memory(cropped, X)
    assert_array_equal(cropped, X[:, 1:3, 3:4])
    apart = SliceSelector(Known([[1, 3], [3], [0, 1, 2]])).fit(X).transform(X)
    assert not np.shares_memory(apart, X)
    assert_array_equal(apart, X[:, [1, 3], 3:4])


@pytest.mark.parametrize(
    ("modes", "shape"), [(None, (2, 1, 1)), (0, (2, 4, 3)), (-1, (5, 4, 1)), ([1, -1], (5, 1, 1))]
)
def test_only_some_modes_are_cropped(X, modes, shape):
    selector = SliceSelector(Known([[1, 4], [2], [0]]), modes=modes)
    assert selector.fit(X).transform(X).shape == (7, *shape)


def test_a_fitted_estimator_is_used_as_it_is(X):
    with pytest.raises(NotFittedError):
        SliceSelector(Known(), prefit=True).fit(X)
    model = Known([[1], [2], [0]]).fit(X)
    selector = SliceSelector(model, prefit=True).fit(X)
    assert selector.estimator_ is model
    assert selector.transform(X).shape == (7, 1, 1, 1)
    assert SliceSelector(model).fit(X).estimator_ is not model


def test_a_fitted_estimator_of_other_samples_is_refused(X):
    model = Known([[1], [2], [0]]).fit(X)
    with pytest.raises(ValueError, match=r"shape \(3, 4, 3\) of a sample.*prefit"):
        SliceSelector(model, prefit=True).fit(X[:, :3])


def test_a_zero_coefficient_keeps_nothing_and_says_so(X):
    selector = SliceSelector(Known([[0], [0], [0]], zero=True)).fit(X)
    with pytest.warns(UserWarning, match="No slice is kept"):
        assert selector.transform(X).shape == (7, 0, 0, 0)


def test_it_finds_the_support_of_real_fits():
    X, y, W = make_tensor_regression(150, (8, 6), sparsity=0.5, coef=True, random_state=0)
    truth = [W.any(axis=1), W.any(axis=0)]
    for model in (
        FasTRRegressor(0.1, random_state=0),
        FasTRRegressorCV([0.1], [1e-3], random_state=0),
        VectorizedLasso(),
    ):
        support = SliceSelector(model).fit(X, y).get_support()
        for own, true in zip(support, truth, strict=True):
            assert own[true].all()
    assert_array_equal(SliceSelector(FasTRRegressor(0.1, n_init=4)).fit(X, y).support_[0], truth[0])


def test_it_is_a_step_of_a_pipeline():
    X, y, _ = make_tensor_regression(150, (8, 6), sparsity=0.5, coef=True, random_state=0)
    pipeline = make_pipeline(
        SliceSelector(FasTRRegressor(0.1, random_state=0)), FasTRRegressor(random_state=0)
    )
    pipeline.fit(X[:100], y[:100])
    assert pipeline[-1].tensor_shape_in_ < X.shape[1:]
    assert pipeline.score(X[100:], y[100:]) > 0.9
    assert clone(pipeline).get_params()["sliceselector__estimator__threshold"] == 0.1
    labels = np.where(y > 0, "yes", "no")
    chooser = FasTRClassifierCV([0.1], [1.0], n_init=2, random_state=0)
    assert SliceSelector(chooser).fit(X, labels).transform(X[:3]).shape[0] == 3


def test_weights_and_covariates_reach_the_estimator(X):
    weights, Z = np.ones(7), np.zeros((7, 1))
    model = Known([[1], [2], [0]])
    selector = SliceSelector(model).fit(X, sample_weight=weights, covariates=Z)
    assert selector.estimator_.given_ == (weights, Z)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = Known([[1], [2], [0]]).set_fit_request(sample_weight=True, covariates=False)
        routed = SliceSelector(asked).fit(X, sample_weight=weights)
    assert routed.estimator_.given_ == (weights, None)


def test_names_of_columns():
    X, y = make_tensor_regression(60, (5,), noise=0.0, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    selector = SliceSelector(Lasso(0.3)).set_output(transform="pandas").fit(frame, y)
    names = selector.get_feature_names_out()
    assert list(selector.transform(frame).columns) == list(names)
    assert_array_equal(names, np.array(list("abcde"))[selector.estimator_.coef_ != 0])
    tensors = X.reshape(60, 5, 1)
    with pytest.raises(ValueError, match=r"only the columns of a two-dimensional X have names"):
        SliceSelector(Known([[0], [0]])).fit(tensors).get_feature_names_out()


def test_bad_input_is_refused(X):
    with pytest.raises(ValueError, match=r"modes has 3; expected ints from -3 to 2"):
        SliceSelector(Known([[0], [0], [0]]), modes=3).fit(X)
    selector = SliceSelector(Known([[0], [0, 1], [0]])).fit(X)
    with pytest.raises(ValueError, match=r"samples of shape \(4, 3\)"):
        selector.transform(X[:, 0])
    with pytest.raises(ValueError, match=r"shape \(5, 4, 3\); expected \(1, 2, 1\)"):
        selector.inverse_transform(X)
    with pytest.raises(ValueError, match=r"neither `factors_` nor a `coef_` of the shape \(3,\)"):
        SliceSelector(Ridge()).fit(X[:, 0, 0], X[:, :2, 0, 0])
    X[2, 0, 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"NaN: first at sample 2"):
        selector.transform(X)
