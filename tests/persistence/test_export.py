"""The coefficient for tensorly and for MATLAB."""

import sys

import numpy as np
import pytest
from scipy.io import loadmat
from sklearn.exceptions import NotFittedError

from pyfastr import FasTRRegressor, TensorScaler
from pyfastr.persistence import to_mat, to_tensorly

WITH_FACTORS = [
    *("regressor", "regressor_of_terms_and_covariates", "regressor_of_named_columns"),
    *("classifier_of_truth_in_float32", "regressor_cv_mean", "classifier_cv", "pipeline_cv"),
    "image_regressor",
]


def linear(model):
    return model.steps[-1][1] if hasattr(model, "steps") else model


@pytest.mark.parametrize("name", WITH_FACTORS)
def test_a_cp_tensor_is_the_coefficient(kinds, name):
    cp = pytest.importorskip("tensorly.cp_tensor")
    model, _ = kinds.made[name]
    coef = linear(model).coef_
    tolerance = 1e-5 if coef.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(cp.cp_to_tensor(to_tensorly(model)), coef, atol=tolerance)


def test_a_cp_tensor_is_a_copy(model):
    pytest.importorskip("tensorly")
    weights, factors = to_tensorly(model)
    weights[:], factors[0][:] = 0, 0
    assert model.scales_.all()
    assert model.factors_[0].any()


def test_without_tensorly_the_error_says_what_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorly.cp_tensor", None)
    with pytest.raises(ImportError, match=r"needs tensorly, which is not installed\. Run: pip"):
        to_tensorly(model)


@pytest.mark.parametrize("name", WITH_FACTORS)
def test_a_matlab_file_holds_what_a_ktensor_is_made_of(kinds, name, tmp_path):
    model, _ = kinds.made[name]
    own = linear(model)
    held = loadmat(to_mat(model, tmp_path / "model.mat"))
    weights = held["lambda"]
    assert weights.shape == (len(own.scales_), 1)
    factors = [held["factors"][mode, 0] for mode in range(held["factors"].shape[0])]
    terms = "abcdef"[: len(factors)]
    subscripts = ",".join(f"{mode}z" for mode in terms)
    full = np.einsum(f"z,{subscripts}->{terms}", weights[:, 0], *factors)
    np.testing.assert_allclose(full.reshape(own.coef_.shape), own.coef_, atol=1e-5)
    np.testing.assert_array_equal(held["coef"].reshape(own.coef_.shape), own.coef_)
    assert held["intercept"].item() == own.intercept_


def test_a_matlab_file_holds_parameters_covariates_and_classes(kinds, tmp_path):
    model, _ = kinds.made["regressor_of_terms_and_covariates"]
    held = loadmat(to_mat(model, tmp_path / "model.mat"), simplify_cells=True)
    assert held["parameters"]["n_terms"] == 2
    assert held["parameters"]["init"] == "mixed"
    np.testing.assert_array_equal(held["covariate_coef"], model.covariate_coef_)
    model, _ = kinds.made["classifier_of_words"]
    held = loadmat(to_mat(model, tmp_path / "model.mat"), simplify_cells=True)
    assert held["classes"].tolist() == ["control", "patient"]
    assert "'patient': 2.0" in held["parameters"]["class_weight"]


@pytest.mark.parametrize("export", [to_tensorly, lambda model: to_mat(model, "model.mat")])
def test_what_has_no_coefficient_is_refused(export):
    with pytest.raises(TypeError, match="TensorScaler, which has no coefficient"):
        export(TensorScaler().fit(np.ones((3, 2))))
    with pytest.raises(NotFittedError):
        export(FasTRRegressor())
