"""From files to a model: what `pyfastr fit` reads, says and writes."""

import json

import numpy as np
import pandas as pd
import pytest

import pyfastr
from pyfastr import FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV, TensorScaler
from pyfastr.cli.options import SamplesAxis
from pyfastr.cli.samples import read_samples
from pyfastr.cli.voice import Voice

FIT = ("fit", "X.npy", "people.csv:score", "-o", "model.fastr")


def fitted(invoke, *arguments):
    """Run a fit that must succeed; returns the model and the JSON document."""
    outcome = invoke(*arguments, "--json")
    assert outcome.exit_code == 0, outcome.output
    return pyfastr.load("model.fastr"), json.loads(outcome.stdout)


def test_the_model_is_that_of_the_same_call_in_python(invoke, data):
    X, y, age = data
    arguments = ["--covariates", "people.csv:age", "--groups", "people.csv:site", "--folds", 4]
    model, told = fitted(invoke, *FIT, *arguments, "--seed", 3, "--n-terms", "1,2")
    groups = np.arange(40) % 4
    same = FasTRRegressorCV(n_terms=(1, 2), cv=4, random_state=3)
    named = pd.DataFrame({"age": age})
    same.fit(X, y, covariates=named, groups=groups)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    np.testing.assert_array_equal(model.predict(X, named), same.predict(X, named))
    assert told["score"]["value"] == same.best_score_
    assert told["chosen"] == {
        "n_terms": same.n_terms_,
        "threshold": same.threshold_,
        "ridge": same.ridge_,
    }


def test_the_document_tells_what_was_fitted_and_written(invoke, data):
    _, told = fitted(invoke, *FIT, "--threshold", "0.1", "--ridge", "0.01")
    assert told["command"] == "fit"
    assert (told["n_samples"], told["sample_shape"]) == (40, [6, 5])
    assert (told["data"], told["target"]) == ("X.npy", "people.csv:score")
    assert told["chosen"] == {"n_terms": 1, "threshold": 0.1, "ridge": 0.01}
    assert told["choice"].startswith("1 term: a second ")
    assert told["score"]["folds"] == 5
    assert told["score"]["reference"]["score"] < told["score"]["value"]
    assert not told["score"]["reference"]["is_better"]
    assert told["starts"]["n_hits"] <= told["starts"]["n_polished"]
    assert told["files"] == {"model": "model.fastr"}


def test_one_fit_without_folds_says_so(invoke, data):
    arguments = ("--no-cv", "--threshold", "0.2", "--ridge", "0.1", "--n-terms", "2")
    model, told = fitted(invoke, *FIT, *arguments)
    assert isinstance(model, FasTRRegressor)
    assert (model.threshold, model.ridge, model.n_terms) == (0.2, 0.1, 2)
    assert told["score"]["folds"] == 0
    shown = invoke(*FIT, *arguments, "--force").stdout
    assert "training R²" in shown
    assert "held-out" not in shown


def test_counts_have_a_loss_and_a_score_of_their_own(invoke, here, data):
    X, y, _ = data
    counts = np.random.default_rng(0).poisson(np.exp(y / 10))
    np.save(here / "counts.npy", counts)
    arguments = ("fit", "X.npy", "counts.npy", "-o", "model.fastr", "--loss", "poisson")
    model, told = fitted(invoke, *arguments)
    assert model.loss == "poisson"
    assert (model.predict(X) > 0).all()
    assert told["score"]["name"] == "D²"
    assert "training D²" in invoke(*arguments, "--no-cv", "--force").stdout


@pytest.mark.parametrize(
    ("more", "advice"),
    [(["--loss", "logistic"], "add --classify"), (["--loss", "poisson", "--classify"], "leave")],
)
def test_a_loss_is_that_of_the_target(refused, data, more, advice):
    assert advice in refused(*FIT, *more)


def test_text_is_for_classes(invoke, data):
    X, *_ = data
    model, told = fitted(invoke, "fit", "X.npy", "people.csv:group", "--classify", *FIT[3:])
    assert isinstance(model, FasTRClassifierCV)
    assert model.classes_.tolist() == ["control", "patient"]
    assert told["score"]["name"] == "area under the ROC curve"
    assert model.predict(X).tolist().count("patient") > 5


@pytest.mark.parametrize("how", ["element", "global", "mode:0", "mode:0,1"])
def test_scaling_comes_before_the_model(invoke, data, how):
    X, y, age = data
    arguments = ("--scale", how, "--covariates", "people.csv:age", "--ridge", "0.01")
    model, told = fitted(invoke, *FIT, *arguments)
    assert told["score"]["scaled_before_folds"]
    per = how if ":" not in how else tuple(map(int, how.removeprefix("mode:").split(",")))
    Z = TensorScaler(per=per).fit_transform(X)
    same = FasTRRegressorCV(ridges=[0.01], random_state=0).fit(Z, y, covariates=age[:, None])
    np.testing.assert_allclose(model[-1].coef_, same.coef_)


@pytest.mark.parametrize(
    "place",
    [
        *("X.npy", "X.npz", "all.npz:X", "X.h5", "all.h5:deep/X", "X.zarr", "all.zarr:deep/X"),
        *("v5.mat:X", "v73.mat:X"),
    ],
)
def test_every_kind_of_file_gives_the_same_model(invoke, here, data, place):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    X, y, _ = data
    np.savez(here / "X.npz", X=X)
    np.savez(here / "all.npz", X=X, y=y)
    zarr.save_array(here / "X.zarr", X)
    group = zarr.open_group(here / "all.zarr", mode="w")
    for name, value in (("deep/X", X), ("y", y)):
        group.create_array(name, data=value)
    for file, arrays in (("X.h5", {"X": X}), ("all.h5", {"deep/X": X, "y": y})):
        with h5py.File(here / file, "w") as store:
            for name, value in arrays.items():
                store[name] = value
    write_mat(here / "v5.mat", here / "v73.mat", X=X)
    model, _ = fitted(invoke, "fit", place, *FIT[2:], "--no-cv")
    same = FasTRRegressor(random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, same.coef_)


def write_mat(v5, v73, **arrays):
    """Write MATLAB files; those of 7.3 are HDF5 with the axes in the opposite order."""
    from scipy.io import savemat

    h5py = pytest.importorskip("h5py")
    savemat(v5, arrays)
    with h5py.File(v73, "w", userblock_size=512) as store:
        for name, value in arrays.items():
            store[name] = value.T
    head = b"MATLAB 7.3 MAT-file".ljust(116) + bytes(8) + b"\x00\x02IM"
    with v73.open("r+b") as file:
        file.write(head)


def test_samples_on_the_last_axis_as_matlab_has_them(invoke, here, data):
    X, y, _ = data
    write_mat(here / "v5.mat", here / "v73.mat", X=np.moveaxis(X, 0, -1), y=y[:, None])
    for file in ("v5.mat", "v73.mat"):
        model, _ = fitted(
            invoke,
            "fit",
            f"{file}:X",
            "y",
            "--samples-axis",
            "last",
            "--no-cv",
            *FIT[3:],
            "--force",
        )
        np.testing.assert_allclose(model.coef_, FasTRRegressor(random_state=0).fit(X, y).coef_)


def test_what_is_assumed_of_matlab_files_is_said(invoke, here, data):
    write_mat(here / "v5.mat", here / "v73.mat", X=data[0])
    outcome = invoke("fit", "v5.mat:X", *FIT[2:], "--no-cv")
    assert outcome.exit_code == 0, outcome.output
    assert "the first axis is taken to count samples, 40 of shape 6×5" in outcome.stderr
    assert "add --samples-axis last" in outcome.stderr


def test_a_name_alone_is_sought_in_the_file_of_the_data(invoke, here, data):
    X, y, age = data
    np.savez(here / "all.npz", X=X, y=y, age=age)
    model, told = fitted(invoke, "fit", "all.npz:X", "y", *FIT[3:], "--covariates", "age")
    assert told["target"] == "all.npz:y"
    assert model.best_estimator_.covariate_coef_.shape == (1,)


def test_warnings_are_plain_lines(invoke, here, data):
    np.save("flat.npy", np.ones(40))
    outcome = invoke("fit", "X.npy", "flat.npy", *FIT[3:], "--no-cv", "--json")
    assert outcome.exit_code == 0, outcome.output
    line = "The coefficient is zero: y is constant, or intercept and covariates explain all of it."
    assert f"Warning: {line} Check y." in outcome.stderr.splitlines()
    assert ".py" not in outcome.stderr
    assert line in json.loads(outcome.stdout)["warnings"][0]


def test_long_numbers_of_people_stay_apart_as_groups(invoke, here, data):
    rows = [f"{10**25 + i // 10}" for i in range(40)]
    (here / "people.csv").write_text("\n".join(["person", *rows]) + "\n")
    grouped = ("fit", "X.npy", "y.npy", *FIT[3:], "--groups", "people.csv:person", "--folds", 4)
    model, _ = fitted(invoke, *grouped, "--ridge", "0.1", "--threshold", "0")
    same = FasTRRegressorCV(ridges=[0.1], thresholds=[0.0], cv=4, random_state=0)
    same.fit(data[0], data[1], groups=np.arange(40) // 10)
    np.testing.assert_array_equal(model.held_out_.folds, same.held_out_.folds)


def test_two_values_look_like_classes(invoke, here, data):
    np.save("two.npy", (data[1] > 0).astype(float))
    outcome = invoke("fit", "X.npy", "two.npy", *FIT[3:], "--no-cv")
    assert "has two values, 0 and 1. If they are classes, add --classify." in outcome.stderr
    outcome = invoke("fit", "X.npy", "two.npy", *FIT[3:], "--no-cv", "--quiet", "--force")
    assert (outcome.stdout, outcome.stderr) == ("", "")


def test_three_classes_have_a_coefficient_each(invoke, here, data):
    X, y, _ = data
    classes = np.array(["low", "middle", "high"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    pd.DataFrame({"class": classes}).to_csv("classes.csv", index=False)
    arguments = ("--classify", "--n-terms", "1", "--report", "report.html")
    model, told = fitted(invoke, "fit", "X.npy", "classes.csv:class", *FIT[3:], *arguments)
    assert sorted(model.classes_) == ["high", "low", "middle"]
    assert model.coef_.shape == (3, 6, 5)
    assert told["score"]["value"] == model.best_score_
    assert (here / "report.html").stat().st_size > 0
    outcome = invoke("predict", "model.fastr", "X.npy", "-o", "predictions.csv")
    assert outcome.exit_code == 0, outcome.output
    table = pd.read_csv("predictions.csv")
    np.testing.assert_array_equal(table["prediction"], model.predict(X))


def test_the_summary_has_what_matters(command, data):
    code, out, errors = command(*FIT, "--covariates", "people.csv:age")
    assert (code, errors) == (0, "")
    assert "FasTRRegressorCV on 40 samples of 6×5" in out
    for name in (
        "held-out R²",
        "flattened ridge",
        "chosen",
        "why",
        "coefficient",
        "starts",
        "model",
    ):
        assert f"  {name} " in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_summary_says_that_held_out_samples_were_scaled_by(invoke, data):
    words = "X was scaled by all samples, also by held-out ones"
    options = ("--ridge", "0.1", "--threshold", "0")
    assert words not in " ".join(invoke(*FIT, *options).stdout.split())
    scaled = invoke(*FIT, *options, "--scale", "element", "--force")
    assert words in " ".join(scaled.stdout.split())


def test_a_model_file_does_not_say_who_watched(here, data):
    from pyfastr.cli.fitted import silence

    X, y, _ = data
    model = FasTRRegressorCV(thresholds=[0.0], ridges=[0.1], random_state=0).fit(X, y)
    model.set_params(verbose=1)
    model.best_estimator_.set_params(verbose=1)
    silence(model)
    assert (model.verbose, model.best_estimator_.verbose) == (0, 0)


def test_samples_of_stores_stay_in_their_files(here, data):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    X, *_ = data
    zarr.save_array(here / "X.zarr", X)
    with h5py.File(here / "X.h5", "w") as store:
        store["X"] = X
    for place, kind in (("X.h5", h5py.Dataset), ("X.zarr", zarr.Array)):
        samples = read_samples(str(here / place), SamplesAxis.first, Voice())
        assert isinstance(samples.X, kind)
        assert (samples.n_samples, *samples.shape) == X.shape
    samples = read_samples(str(here / "X.h5"), SamplesAxis.last, Voice())
    assert isinstance(samples.X, np.ndarray)
