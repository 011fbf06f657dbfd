"""Names and coordinates that come with the data stay with the model."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pyfastr import FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV, TensorScaler
from pyfastr.datasets import make_tensor_regression

xarray = pytest.importorskip("xarray")
pandas = pytest.importorskip("pandas")


@pytest.fixture
def recordings():
    X, y = make_tensor_regression(60, (4, 6), random_state=0)
    coords = {"channel": ["Fz", "Cz", "Pz", "Oz"], "time": np.linspace(0, 0.5, 6)}
    return xarray.DataArray(X, dims=("trial", "channel", "time"), coords=coords), y


@pytest.mark.parametrize("kind", [FasTRRegressor, FasTRRegressorCV])
def test_a_coefficient_has_the_names_and_coordinates_of_the_samples(kind, recordings):
    X, y = recordings
    model = kind(random_state=0).fit(X, y)
    assert_array_equal(model.coef_, kind(random_state=0).fit(X.values, y).coef_)
    coef = model.to_xarray()
    assert coef.dims == ("channel", "time")
    assert_array_equal(coef.coords["time"], X.coords["time"])
    assert_array_equal(coef.sel(channel="Pz"), model.coef_[2])
    assert_array_equal(model.predict(X), model.predict(X.values))


def test_modes_without_names_are_numbered():
    X, y = make_tensor_regression(40, (3, 4), random_state=0)
    coef = FasTRRegressor(random_state=0).fit(X, y).to_xarray()
    assert coef.dims == ("mode_0", "mode_1")
    assert not coef.coords


def test_a_second_fit_forgets_the_names_of_the_first(recordings):
    X, y = recordings
    model = FasTRRegressor(random_state=0).fit(X, y).fit(X.values, y)
    assert not hasattr(model, "mode_names_in_")


def test_other_dimensions_are_refused(recordings):
    X, y = recordings
    model = FasTRRegressor(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"dimensions \('time', 'channel'\).*X.transpose"):
        model.predict(X.transpose("trial", "time", "channel"))


def test_other_coordinates_are_refused(recordings):
    X = recordings[0]
    scaler = TensorScaler().fit(X)
    with pytest.raises(ValueError, match="other coordinates along 'time'"):
        scaler.transform(X.assign_coords(time=np.linspace(0, 1, 6)))


def test_coordinates_that_are_missing_in_both_are_the_same(recordings):
    X, y = recordings
    X = X.assign_coords(time=[0.0, 0.1, np.nan, 0.3, 0.4, 0.5])
    model = FasTRRegressor(random_state=0).fit(X, y)
    assert_array_equal(model.predict(X), model.predict(X.values))


@pytest.fixture
def study():
    X, y = make_tensor_regression(60, (4, 5), random_state=0)
    age = np.random.default_rng(0).normal(size=60)
    frame = pandas.DataFrame({"age": age, "site": np.arange(60) % 2})
    return X, y + age, frame


@pytest.mark.parametrize("kind", [FasTRRegressor, FasTRRegressorCV, FasTRClassifierCV])
def test_covariates_keep_their_names_and_are_checked(kind, study):
    X, y, frame = study
    y = y > 0 if kind is FasTRClassifierCV else y
    model = kind(random_state=0).fit(X, y, covariates=frame)
    assert model.covariate_names_in_.tolist() == ["age", "site"]
    model.predict(X, covariates=frame)
    with pytest.raises(ValueError, match=r"columns \['site', 'age'\].*\['age', 'site'\]"):
        model.predict(X, covariates=frame[["site", "age"]])
    with pytest.warns(UserWarning, match="covariates has no names"):
        model.predict(X, covariates=frame.to_numpy())


def test_numbered_columns_have_no_names(study):
    X, y, frame = study
    numbered = pandas.DataFrame(frame.to_numpy())
    model = FasTRRegressor(random_state=0).fit(X, y, covariates=numbered)
    assert not hasattr(model, "covariate_names_in_")
    assert_array_equal(model.predict(X, frame.to_numpy()), model.predict(X, numbered))


def test_a_series_is_one_named_covariate(study):
    X, y, frame = study
    model = FasTRRegressor(random_state=0).fit(X, y, covariates=frame["age"])
    assert model.covariate_names_in_.tolist() == ["age"]
    with pytest.raises(ValueError, match=r"columns \['site'\]"):
        model.predict(X, covariates=frame["site"])
