"""TensorScaler against StandardScaler and against the definitions."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyfastr.baselines import PublishedFasTR
from pyfastr.estimators import TensorScaler

PER = ["element", "global", 0, 1, -1, (0, 2), (0, 1, 2), ()]


@pytest.fixture(name="X")
def tensors():
    rng = np.random.default_rng(0)
    return rng.normal(rng.normal(size=(5, 4, 3)) * 10, 1 + rng.random((5, 4, 3)), (30, 5, 4, 3))


def axes_of(per):
    """Axes of X that the statistics of samples of order 3 are taken over."""
    if isinstance(per, str):
        return (0,) if per == "element" else (0, 1, 2, 3)
    own = {m % 3 for m in ((per,) if isinstance(per, int) else per)}
    return (0, *(m + 1 for m in range(3) if m not in own))


@pytest.mark.parametrize("with_mean", [True, False])
@pytest.mark.parametrize("with_std", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_per_element_equals_standard_scaler_on_flattened_data(X, with_mean, with_std, weighted):
    weights = np.random.default_rng(1).random(30) if weighted else None
    ours = TensorScaler(with_mean=with_mean, with_std=with_std).fit(X, sample_weight=weights)
    theirs = StandardScaler(with_mean=with_mean, with_std=with_std)
    theirs.fit(X.reshape(30, -1), sample_weight=weights)
    expected = theirs.transform(X.reshape(30, -1)).reshape(X.shape)
    assert_allclose(ours.transform(X), expected, rtol=0, atol=1e-12)
    if with_mean:
        assert_allclose(ours.mean_.ravel(), theirs.mean_, rtol=1e-12)
    if with_std:
        assert_allclose(ours.scale_.ravel(), theirs.scale_, rtol=1e-12)
        assert ours.n_samples_seen_ == pytest.approx(theirs.n_samples_seen_)


@pytest.mark.parametrize("per", PER)
def test_statistics_are_shared_over_samples_and_unnamed_modes(X, per):
    scaler = TensorScaler(per=per).fit(X)
    assert_allclose(scaler.mean_, X.mean(axis=axes_of(per), keepdims=True)[0], rtol=1e-12)
    assert_allclose(scaler.scale_, X.std(axis=axes_of(per), keepdims=True)[0], rtol=1e-12)


@pytest.mark.parametrize("per", PER)
def test_transformed_data_have_mean_zero_and_scale_one_and_come_back(X, per):
    scaler = TensorScaler(per=per)
    Z = scaler.fit_transform(X)
    assert_allclose(Z.mean(axis=axes_of(per)), 0, atol=1e-13)
    assert_allclose(Z.std(axis=axes_of(per)), 1, rtol=1e-12)
    assert_allclose(Z, (X - scaler.mean_) / scaler.scale_, rtol=1e-14)
    assert_allclose(scaler.inverse_transform(Z), X, rtol=1e-12)


def test_what_is_switched_off_is_none_and_left_alone(X):
    centred = TensorScaler(with_std=False).fit(X)
    assert centred.scale_ is None
    assert_allclose(centred.transform(X), X - X.mean(axis=0), atol=1e-13)
    assert_allclose(centred.inverse_transform(X), X + X.mean(axis=0), atol=1e-13)
    scaled = TensorScaler(with_mean=False).fit(X)
    assert scaled.mean_ is None
    assert_allclose(scaled.transform(X), X / X.std(axis=0), rtol=1e-12)
    neither = TensorScaler(with_mean=False, with_std=False).fit_transform(X)
    assert_array_equal(neither, X)
    assert not np.shares_memory(neither, X)


@pytest.mark.parametrize("per", ["element", "global", 1])
def test_weights_equal_repeated_samples(X, per):
    weights = np.random.default_rng(2).integers(0, 4, size=30)
    weighted = TensorScaler(per=per).fit(X, sample_weight=weights)
    repeated = TensorScaler(per=per).fit(np.repeat(X, weights, axis=0))
    assert_allclose(weighted.mean_, repeated.mean_, rtol=1e-12)
    assert_allclose(weighted.scale_, repeated.scale_, rtol=1e-12)
    assert weighted.n_samples_seen_ == repeated.n_samples_seen_


@pytest.mark.parametrize("per", ["element", "global", 0])
def test_several_blocks_equal_one_formula_even_far_from_zero(per):
    # 1.6 MB a sample, so several blocks; and one block whose weights are all zero.
    X = np.random.default_rng(3).normal(1e6, 1e-2, size=(23, 100, 2000))
    weights = np.arange(23.0)
    weights[5:12] = 0
    scaler = TensorScaler(per=per).fit(X, sample_weight=weights)
    axes = {"element": (), "global": (0, 1), 0: (1,)}[per]
    # The deviations are exact, so this reference loses nothing to the distance from zero.
    D = X - 1e6
    mean = np.average(D, axis=0, weights=weights).mean(axis=axes, keepdims=True)
    variance = np.average((D - mean) ** 2, axis=0, weights=weights).mean(axis=axes, keepdims=True)
    assert_allclose(scaler.mean_, 1e6 + mean, rtol=1e-14)
    assert_allclose(scaler.scale_, np.sqrt(variance), rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e8 / 3, 1e-30, -1e100])
@pytest.mark.parametrize("per", ["element", "global", 0])
def test_constant_entries_get_scale_one(value, per):
    X = np.full((101, 37, 41), value)
    scaler = TensorScaler(per=per).fit(X)
    assert_array_equal(scaler.scale_, 1.0)
    assert_allclose(scaler.transform(X), 0, atol=1e-14 * abs(value))


def test_one_sample_is_constant_per_element(X):
    scaler = TensorScaler().fit(X[:1])
    assert_array_equal(scaler.scale_, 1.0)
    assert_array_equal(scaler.transform(X[:1]), 0.0)


def test_float32_stays_float32_with_statistics_in_float64(X):
    X32 = (X + 1000).astype(np.float32)
    scaler = TensorScaler().fit(X32)
    Z = scaler.transform(X32)
    assert Z.dtype == scaler.inverse_transform(Z).dtype == np.float32
    exact = X32.astype(float)
    assert_allclose(scaler.mean_, exact.mean(axis=0), rtol=1e-13)
    assert_allclose(scaler.scale_, exact.std(axis=0), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.int32, np.float16, ">f8"])
def test_other_real_types_become_float64(X, dtype):
    given = X.astype(dtype)
    Z = TensorScaler().fit_transform(given)
    assert Z.dtype == np.float64
    assert_allclose(Z, TensorScaler().fit_transform(given.astype(float)), atol=1e-12)


def test_the_data_are_never_written(X):
    before = X.copy()
    X.setflags(write=False)
    scaler = TensorScaler()
    scaler.inverse_transform(scaler.fit_transform(X))
    assert_array_equal(X, before)


@pytest.mark.parametrize("method", ["fit", "transform", "inverse_transform"])
def test_nan_is_named_with_its_place(X, method):
    scaler = TensorScaler().fit(X)
    X[17, 3, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN: first at sample 17, element \(3, 2, 1\)"):
        getattr(scaler, method)(X)


@pytest.mark.parametrize("options", [{}, {"with_std": False}])
def test_overflow_is_told(options):
    with pytest.raises(ValueError, match="too large for their mean or variance"):
        TensorScaler(**options).fit(np.full((30, 4, 3), 1.7e308))


@pytest.mark.parametrize(
    ("per", "message"),
    [
        (3, r"per=3 names mode 3; expected ints from -3 to 2"),
        ((0, -4), r"per=\(0, -4\) names mode -4"),
        (("0",), r"names mode '0'; expected ints"),
        ("mode", "'per' parameter of TensorScaler must be"),
    ],
)
def test_modes_that_are_not_there_are_refused(X, per, message):
    with pytest.raises(ValueError, match=message):
        TensorScaler(per=per).fit(X)


@pytest.mark.parametrize("weights", [np.zeros(30), np.r_[-1.0, np.ones(29)]])
def test_weights_must_not_be_negative_or_all_zero(X, weights):
    with pytest.raises(ValueError, match=r"[Ss]ample weights|sample_weight"):
        TensorScaler().fit(X, sample_weight=weights)


def test_another_shape_is_refused(X):
    scaler = TensorScaler().fit(X)
    for method in (scaler.transform, scaler.inverse_transform):
        with pytest.raises(ValueError, match=r"shape \(5, 4\), but .* shape \(5, 4, 3\)"):
            method(X[..., 0])
    with pytest.raises(NotFittedError):
        TensorScaler().transform(X)


def test_data_frames_keep_their_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"left": [1.0, 2, 4], "right": [0.0, 1, 0]}, index=[7, 8, 9])
    scaler = TensorScaler().set_output(transform="pandas").fit(frame)
    out = scaler.transform(frame)
    assert list(out.columns) == list(scaler.get_feature_names_out()) == ["left", "right"]
    assert list(out.index) == [7, 8, 9]
    assert_allclose(scaler.inverse_transform(out), frame)


def test_tensors_have_no_names_of_columns(X):
    with pytest.raises(ValueError, match=r"samples of shape \(5, 4, 3\): only the columns"):
        TensorScaler().fit(X).get_feature_names_out()


def test_fit_needs_a_few_blocks_beside_the_data():
    X = np.random.default_rng(0).normal(size=(2000, 50, 50)).transpose(0, 2, 1)
    tracemalloc.start()
    try:
        TensorScaler().fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 40 MB of X, in blocks of 8 MB.
    assert peak < 0.7 * X.nbytes


def test_it_works_in_a_pipeline(X):
    y = X[:, 0, 0, 0] - X[0, 0, 0, 0]
    model = make_pipeline(TensorScaler(), PublishedFasTR(random_state=0, tol=0.1))
    assert model.fit(X, y).predict(X).shape == (30,)
