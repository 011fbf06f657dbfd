"""What is saved comes back, to the last bit."""

import json
import pickle
import runpy
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from pyfastr import FasTRRegressor, FasTRRegressorCV, TensorScaler, load, save
from pyfastr.datasets import make_tensor_regression
from pyfastr.persistence import container, read_header

NAMES = [
    *("regressor", "regressor_of_terms_and_covariates", "regressor_from_arrays"),
    *("regressor_of_named_columns", "regressor_of_labelled_modes"),
    *("classifier_of_words", "classifier_of_truth_in_float32"),
    *("regressor_cv", "regressor_cv_mean", "regressor_cv_evidence", "regressor_cv_of_counts"),
    "regressor_cv_of_added_terms",
    *("classifier_cv", "classifier_cv_of_numbers", "scaler", "scaler_of_slices"),
    *("pipeline", "pipeline_cv", "pipeline_of_slices"),
    *("image_regressor", "image_classifier", "image_transformer", "image_pipeline"),
]
every_kind = pytest.mark.parametrize("name", NAMES)


def test_every_kind_is_tried(kinds):
    assert list(kinds.made) == NAMES


@every_kind
def test_a_loaded_model_answers_with_the_same_bits(kinds, name, same, tmp_path):
    model, inputs = kinds.made[name]
    loaded = load(save(model, tmp_path / "model.fastr"))
    assert same(kinds.answers(loaded, inputs), kinds.answers(model, inputs))


@every_kind
def test_parameters_and_fitted_attributes_come_back(kinds, name, same, tmp_path):
    model, _ = kinds.made[name]
    loaded = load(save(model, tmp_path / "model.fastr"))
    assert loaded is not model
    assert same(loaded, model)


@every_kind
def test_a_loaded_model_is_saved_as_the_same_bytes(kinds, name, tmp_path):
    model, _ = kinds.made[name]
    first = save(model, tmp_path / "first.fastr")
    second = save(load(first), tmp_path / "second.fastr")
    assert first.read_bytes() == second.read_bytes()


@every_kind
def test_the_safetensors_package_reads_the_file(kinds, name, same, tmp_path):
    safetensors = pytest.importorskip("safetensors")
    model, _ = kinds.made[name]
    path = save(model, tmp_path / "model.fastr")
    with safetensors.safe_open(path, "numpy") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        document = json.loads(file.metadata()["pyfastr"])
    assert document["format_version"] == 1
    with path.open("rb") as file:
        own = container.read_tensors(file, container.read_header(file))
    assert tensors
    assert same(dict(sorted(tensors.items())), dict(sorted(own.items())))


@every_kind
def test_the_header_is_plain_json(kinds, name, tmp_path):
    model, _ = kinds.made[name]
    header = read_header(save(model, tmp_path / "model.fastr"))
    assert header["class"] == type(model).__name__
    assert json.loads(json.dumps(header)) == header
    assert '"@"' not in json.dumps(header)


@every_kind
def test_a_loaded_model_can_be_cloned_and_pickled(kinds, name, same, tmp_path):
    model, inputs = kinds.made[name]
    loaded = load(save(model, tmp_path / "model.fastr"))
    clone(loaded)
    again = pickle.loads(pickle.dumps(loaded))
    assert same(kinds.answers(again, inputs), kinds.answers(model, inputs))


def test_the_coefficient_is_kept_as_factors(tmp_path):
    X, y = make_tensor_regression(60, (16, 16, 16), random_state=0)
    model = FasTRRegressor(random_state=0).fit(X, y)
    path = model.save(tmp_path / "model.fastr")
    assert path.stat().st_size < 5000 < model.coef_.nbytes
    np.testing.assert_array_equal(load(path).coef_, model.coef_)


def test_a_choice_and_its_best_estimator_share_their_arrays(kinds, tmp_path):
    model, _ = kinds.made["regressor_cv"]
    loaded = load(save(model, tmp_path / "model.fastr"))
    for own, of_best in zip(loaded.factors_, loaded.best_estimator_.factors_, strict=True):
        assert own is of_best


def test_loaded_arrays_can_be_written_to(saved):
    for factor in load(saved).factors_:
        assert factor.flags.writeable
        assert factor.flags.aligned


def test_a_loaded_model_can_be_fitted_again(kinds, same, tmp_path):
    X, y = make_tensor_regression(50, (5, 4), noise=0.1, random_state=1)
    model = FasTRRegressorCV(thresholds=(0.0, 0.1), ridges=(0.1,), random_state=0).fit(X, y)
    loaded = load(model.save(tmp_path / "model.fastr"))
    assert same(loaded.fit(X, y).coef_, model.coef_)


def test_what_a_transformer_is_set_to_give_is_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = np.arange(12.0).reshape(4, 3)
    scaler = TensorScaler().set_output(transform="pandas").fit(X)
    assert isinstance(load(save(scaler, tmp_path / "s.fastr")).transform(X), pandas.DataFrame)


def test_a_header_tells_what_was_fitted_and_how_it_was_found(kinds, tmp_path):
    model, _ = kinds.made["regressor_cv"]
    header = read_header(save(model, tmp_path / "model.fastr"))
    assert header["sample_shape"] == [6, 5]
    assert header["n_samples"] == 60
    assert header["fingerprint"] == model.fingerprint_
    assert header["search"]["best_score"] == model.best_score_
    assert header["search"]["best_params"] == model.best_params_
    assert header["parameters"]["ridges"] == [0.1, 1.0]
    assert header["unrestored"] == {}


def test_a_file_may_be_named_by_a_string(model, tmp_path):
    path = save(model, str(tmp_path / "model.fastr"))
    assert isinstance(path, Path)
    assert load(str(path)).intercept_ == model.intercept_


KEPT = sorted((Path(__file__).parents[1] / "data" / "models").glob("*.fastr"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_files_of_earlier_versions_load_and_answer_as_they_did(path):
    pytest.importorskip("nibabel")
    ask = runpy.run_path(str(path.parent / "make_models.py"))["answers"]
    told = dict(np.load(path.with_suffix(".npz")))
    expected = {n.removeprefix("answer_"): told.pop(n) for n in list(told) if "answer_" in n}
    found = ask(load(path), _named(told))
    assert set(found) == set(expected)
    for name, value in expected.items():
        if value.dtype.kind != "f":
            np.testing.assert_array_equal(found[name], value)
        else:
            tolerance = 1e-4 if value.dtype == np.float32 else 1e-10
            np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance)


def _named(inputs):
    """Give tables their columns back."""
    columns = {n.removeprefix("columns_"): inputs.pop(n) for n in list(inputs) if "columns_" in n}
    for name, own in columns.items():
        pandas = pytest.importorskip("pandas")
        inputs[name] = pandas.DataFrame(inputs[name], columns=own.tolist())
    return inputs


def test_a_file_of_every_kind_is_kept():
    assert {path.stem for path in KEPT} >= set(NAMES)
