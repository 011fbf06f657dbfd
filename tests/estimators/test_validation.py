"""What estimators accept as X and y, and how they say no."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils import get_tags

from pyfastr.estimators.linear import LinearTensorMixin
from pyfastr.estimators.validation import check_tensor, check_tensor_and_response


class Model(LinearTensorMixin, RegressorMixin, BaseEstimator):
    """Fitted with a given coefficient."""

    def fit(self, X, y=None, *, coef, intercept=0.0):
        check_tensor(self, X, reset=True)
        self.coef_, self.intercept_ = coef, intercept
        return self


@pytest.fixture(name="X")
def tensors():
    return np.random.default_rng(0).normal(size=(6, 4, 3, 2))


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.float16, ">f8", np.int16, np.uint8, bool]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_real_arrays_pass_without_a_copy(X, dtype, order):
    given = np.asarray(X, dtype=dtype, order=order)
    model = Model()
    assert check_tensor(model, given, reset=True) is given
    assert model.tensor_shape_in_ == (4, 3, 2)


def test_memory_maps_and_views_pass_without_a_copy(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(check_tensor(Model(), mapped, reset=True), mapped)
    assert np.shares_memory(check_tensor(Model(), X[::2, :, ::-1], reset=True), X)


def test_nested_lists_and_object_arrays_of_numbers_become_arrays(X):
    assert_array_equal(check_tensor(Model(), X.tolist(), reset=True), X)
    converted = check_tensor(Model(), X.astype(object), reset=True)
    assert converted.dtype == np.float64
    assert_array_equal(converted, X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones(3), r"X has shape \(3,\); expected \(n_samples, p1, ..., pM\).*Reshape your data"),
        (np.ones((3, 2, 2), dtype=complex), "Complex data not supported"),
        (np.ones((0, 2, 2)), "0 sample"),
        (np.ones((3, 0)), r"0 feature\(s\)"),
        (np.ones((3, 2, 0)), r"X has shape \(3, 2, 0\): a mode of size 0"),
        (np.array([["a", "b"]]), "X, of type ndarray, is no array of real numbers"),
        (np.zeros((3, 2), dtype="datetime64[s]"), r"X has dtype datetime64\[s\]"),
    ],
)
def test_what_is_no_real_tensor_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        check_tensor(Model(), given, reset=True)


def test_sparse_matrices_are_refused():
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        check_tensor(Model(), sparse.eye(3, format="csr"), reset=True)


def test_too_few_samples_are_refused(X):
    with pytest.raises(ValueError, match="minimum of 2 is required by Model"):
        check_tensor(Model(), X[:1], reset=True, min_samples=2)


@pytest.mark.parametrize("given", [(4, 2, 3), (4, 3), (24,), (3, 3, 2), (4, 3, 2, 1)])
def test_another_shape_than_fitted_names_both(X, given):
    model = Model()
    check_tensor(model, X, reset=True)
    with pytest.raises(ValueError, match=r"samples of shape \(.*fitted on samples of shape") as e:
        check_tensor(model, np.ones((5, *given)), reset=False)
    assert str(given) in str(e.value)
    assert "(4, 3, 2)" in str(e.value)


def test_a_fit_on_vectors_refuses_tensors_by_shape():
    model = Model()
    check_tensor(model, np.ones((5, 4)), reset=True)
    with pytest.raises(ValueError, match=r"shape \(4, 1\), but Model was fitted .* \(4,\)"):
        check_tensor(model, np.ones((5, 4, 1)), reset=False)


def test_matrices_keep_the_message_of_scikit_learn():
    model = Model()
    check_tensor(model, np.ones((5, 4)), reset=True)
    with pytest.raises(ValueError, match="X has 3 features, but Model is expecting 4 features"):
        check_tensor(model, np.ones((5, 3)), reset=False)


def test_names_of_columns_are_recorded_and_compared():
    pd = pytest.importorskip("pandas")
    model = Model()
    frame = pd.DataFrame(np.ones((5, 2)), columns=["left", "right"])
    check_tensor(model, frame, reset=True)
    assert_array_equal(model.feature_names_in_, ["left", "right"])
    with pytest.raises(ValueError, match="feature names should match"):
        check_tensor(model, frame[["right", "left"]], reset=False)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        check_tensor(model, frame.to_numpy(), reset=False)
    check_tensor(model, frame.to_numpy(), reset=False, feature_names=False)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (int, float),
        (bool, float),
        (object, float),
    ],
)
def test_the_response_becomes_a_float_vector(X, given, expected):
    y = np.array([0, 1, 0, 1, 1, 0], dtype=given)
    _, response = check_tensor_and_response(Model(), X, y)
    assert response.dtype == expected
    assert_array_equal(response, [0, 1, 0, 1, 1, 0])


def test_a_response_in_one_column_is_accepted_with_a_warning(X):
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        _, response = check_tensor_and_response(Model(), X, np.ones((6, 1)))
    assert response.shape == (6,)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "Model estimator requires y to be passed, but the target y is None"),
        ([1.0, 2, np.nan, 4, np.nan, 6], "Input y contains NaN: first at sample 2, 2 such values"),
        ([1.0, 2, 3, np.inf, 5, 6], "Input y contains infinity .* first at sample 3, 1 such"),
        ([1.0, 2, 3], "y has 3 values, but X has 6 samples; expected one for each"),
        (np.ones((6, 2)), r"y should be a 1d array, got an array of shape \(6, 2\)"),
        (np.ones(6, dtype=complex), "Complex data not supported"),
        (["a", "b", "c", "d", "e", "f"], "y, of type list, is no array of real numbers"),
        ([1.0, 2, 3, 4, 5, 1e301], r"y is of size 1e\+301; expected numbers up to 1e\+300"),
    ],
)
def test_what_is_no_response_is_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        check_tensor_and_response(Model(), X, y)


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 3, 2), (2, 3, 2, 2)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_predict_is_the_inner_product_with_the_coefficient(shape, order):
    rng = np.random.default_rng(1)
    X, coef = rng.normal(size=(7, *shape)), rng.normal(size=shape)
    model = Model().fit(X, coef=coef, intercept=2.5)
    expected = [(sample * coef).sum() + 2.5 for sample in X]
    assert_allclose(model.predict(np.asarray(X, order=order)), expected, rtol=1e-12)


def test_predict_over_several_blocks_equals_predict_sample_by_sample():
    # 1.6 MB a sample: more than one block of samples.
    X = np.random.default_rng(2).normal(size=(15, 100, 2000))
    model = Model().fit(X, coef=X[0], intercept=1.0)
    one_by_one = [model.predict(X[i : i + 1])[0] for i in range(15)]
    assert_allclose(model.predict(X), one_by_one, rtol=1e-10)
    X[13, 4, 5] = np.inf
    with pytest.raises(ValueError, match=r"infinity: first at sample 13, element \(4, 5\)"):
        model.predict(X)


@pytest.mark.parametrize(
    ("given", "expected"), [(np.float32, np.float32), (int, float), (">f8", float)]
)
def test_predictions_have_the_float_type_of_the_data(X, given, expected):
    model = Model().fit(X, coef=np.ones((4, 3, 2)))
    assert model.predict(X.astype(given)).dtype == expected


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_predict_refuses_nan_and_infinity_even_under_a_zero_coefficient(X, bad):
    model = Model().fit(X, coef=np.zeros((4, 3, 2)))
    X[3, 2, 1, 0] = bad
    with pytest.raises(ValueError, match=r"first at sample 3, element \(2, 1, 0\)"):
        model.predict(X)


def test_predict_before_fit_is_refused(X):
    with pytest.raises(NotFittedError):
        Model().predict(X)


def test_tensors_and_matrices_are_both_declared():
    tags = get_tags(Model()).input_tags
    assert tags.three_d_array
    assert tags.two_d_array
