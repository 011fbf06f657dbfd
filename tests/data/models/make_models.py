"""Write a model file of every kind, and beside it what the model answers.

Files stay as they are: a test loads every one, for ever. Kinds that are new get theirs by
``python tests/data/models/make_models.py``.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from nibabel import Nifti1Image
from sklearn.pipeline import Pipeline, make_pipeline

from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
    save,
)
from pyfastr.datasets import make_tensor_regression
from pyfastr.estimators.selector import SliceSelector
from pyfastr.imaging import NiftiClassifier, NiftiRegressor, NiftiTransformer

METHODS = ("predict", "decision_function", "predict_proba", "transform")
GRID = {"thresholds": (0.0, 0.1), "ridges": (0.1, 1.0), "random_state": 0}
AFFINE = np.array([[-2.0, 0, 0, 9], [0, 2.5, 0, -7], [0, 0, 3, 4], [0, 0, 0, 1]])

Made = tuple[Any, dict[str, Any]]


def draw(shape: tuple[int, ...] = (6, 5)) -> tuple[Any, Any, Any]:
    """Return samples, responses and covariates."""
    X, y = make_tensor_regression(60, shape, noise=0.3, random_state=0)
    Z = np.random.default_rng(0).normal(size=(60, 2))
    return X, y, Z


def regressor() -> Made:
    X, y, _ = draw((4, 5, 3))
    return FasTRRegressor(0.05, random_state=0).fit(X, y), {"X": X[:5]}


def regressor_of_terms_and_covariates() -> Made:
    X, y, Z = draw()
    Z = pd.DataFrame(Z, columns=["age", "motion"])
    model = FasTRRegressor(n_terms=2, ridge=0.01, random_state=np.random.RandomState(3))
    return model.fit(X, y + Z["age"], covariates=Z), {"X": X[:5], "covariates": Z[:5]}


def regressor_from_arrays() -> Made:
    X, y, _ = draw()
    start = [np.ones(6), np.ones(5)]
    model = FasTRRegressor(np.float64(0.1), init=start, refit_support="evidence", max_iter=50)
    return model.fit(X, y), {"X": X[:5]}


def regressor_of_named_columns() -> Made:
    X, y, _ = draw((7,))
    X = pd.DataFrame(X, columns=[f"c{i}" for i in range(7)])
    return FasTRRegressor(ridge=0.1, random_state=0).fit(X, y), {"X": X[:5]}


def regressor_of_labelled_modes() -> Made:
    X, y, _ = draw()
    days = pd.date_range("2026-01-01", periods=6).to_numpy()
    X = xr.DataArray(X, dims=("sample", "day", "band"), coords={"day": days})
    return FasTRRegressor(ridge=0.1, random_state=0).fit(X, y), {"X": X[:5]}


def classifier_of_words() -> Made:
    X, y, _ = draw()
    labels = np.where(y > 0, "patient", "control")
    weights = {"patient": 2.0, "control": 1}
    model = FasTRClassifier(0.1, class_weight=weights, random_state=0)
    return model.fit(X, labels), {"X": X[:5]}


def classifier_of_truth_in_float32() -> Made:
    X, y, _ = draw()
    X = X.astype(np.float32)
    model = FasTRClassifier(loss="logistic", class_weight={True: 2.0, False: 1.0}, random_state=0)
    return model.fit(X, y > 0), {"X": X[:5]}


def regressor_cv() -> Made:
    X, y, Z = draw()
    model = FasTRRegressorCV(**GRID, n_terms=(1, 2)).fit(X, y, covariates=Z)
    return model, {"X": X[:5], "covariates": Z[:5]}


def regressor_cv_mean() -> Made:
    X, y, _ = draw()
    return FasTRRegressorCV(**GRID, refit=False).fit(X, y), {"X": X[:5]}


def regressor_cv_of_added_terms() -> Made:
    X, y = make_tensor_regression(90, (6, 5), n_terms=2, noise=0.3, random_state=0)
    return FasTRRegressorCV(**GRID).fit(X, y), {"X": X[:5]}


def regressor_cv_evidence() -> Made:
    X, y, _ = draw()
    return FasTRRegressorCV(criterion="evidence", random_state=0).fit(X, y), {"X": X[:5]}


def regressor_cv_of_counts() -> Made:
    X, y, _ = draw()
    counts = np.random.default_rng(0).poisson(np.exp(y / np.abs(y).max()))
    return FasTRRegressorCV(**GRID, loss="poisson").fit(X, counts), {"X": X[:5]}


def classifier_cv() -> Made:
    X, y, _ = draw()
    labels = np.array(["no", "yes"], dtype=object)[(y > 0).astype(int)]
    return FasTRClassifierCV(**GRID, loss="logistic").fit(X, labels), {"X": X[:5]}


def classifier_cv_of_numbers() -> Made:
    X, y, _ = draw()
    model = FasTRClassifierCV(**GRID, refit=False, scoring="accuracy", class_weight={3: 1, 7: 2})
    return model.fit(X, np.where(y > 0, 7, 3)), {"X": X[:5]}


def scaler() -> Made:
    X, _, _ = draw()
    return TensorScaler().fit(X), {"X": X[:5]}


def scaler_of_slices() -> Made:
    X, _, _ = draw()
    model = TensorScaler(per=(0, -1), with_mean=False)
    return model.fit(X, sample_weight=np.arange(60.0)), {"X": X[:5]}


def pipeline() -> Made:
    X, y, _ = draw()
    model = make_pipeline(TensorScaler(per=0), FasTRRegressor(ridge=0.1, random_state=0))
    return model.fit(X, y), {"X": X[:5]}


def pipeline_cv() -> Made:
    X, y, _ = draw()
    model = Pipeline([("first scale", TensorScaler()), ("then.choose", FasTRClassifierCV(**GRID))])
    return model.fit(X, y > 0), {"X": X[:5]}


def pipeline_of_slices() -> Made:
    X, y, _ = draw()
    selector = SliceSelector(FasTRRegressor(0.3, random_state=0))
    model = make_pipeline(selector, FasTRRegressor(ridge=0.1, random_state=0))
    return model.fit(X, y), {"X": X[:5]}


def draw_images() -> tuple[Any, Any, Any, Any]:
    """Return a 4-D image, a mask, responses and some of the volumes."""
    data = np.zeros((7, 6, 5, 60), np.float32)
    X, y, _ = draw((5, 4, 3))
    data[1:6, 1:5, 1:4] = np.moveaxis(X, 0, -1) + 5
    mask = np.zeros((7, 6, 5), np.uint8)
    mask[1:6, 1:5, 1:4] = 1
    mask[1, 1, 1] = 0
    return Nifti1Image(data, AFFINE), Nifti1Image(mask, AFFINE), y, data[..., :5]


def image_regressor() -> Made:
    image, mask, y, some = draw_images()
    model = NiftiRegressor(FasTRRegressorCV(**GRID), mask_img=mask)
    return model.fit(image, y), {"images": some, "affine": AFFINE}


def image_classifier() -> Made:
    image, mask, y, some = draw_images()
    model = NiftiClassifier(FasTRClassifier(random_state=0), mask_img=mask, dtype=np.float64)
    labels = np.where(y > 0, "patient", "control")
    return model.fit(image, labels), {"images": some, "affine": AFFINE}


def image_transformer() -> Made:
    image, mask, _, some = draw_images()
    model = NiftiTransformer(mask, smoothing_fwhm=4.0).fit(image)
    return model, {"images": some, "affine": AFFINE}


def image_pipeline() -> Made:
    image, mask, y, some = draw_images()
    steps = NiftiTransformer(mask), TensorScaler(), FasTRRegressor(ridge=0.1, random_state=0)
    return make_pipeline(*steps).fit(image, y), {"images": some, "affine": AFFINE}


MAKERS: tuple[Callable[[], Made], ...] = (
    *(regressor, regressor_of_terms_and_covariates, regressor_from_arrays),
    *(regressor_of_named_columns, regressor_of_labelled_modes),
    *(classifier_of_words, classifier_of_truth_in_float32),
    *(regressor_cv, regressor_cv_mean, regressor_cv_evidence, regressor_cv_of_counts),
    regressor_cv_of_added_terms,
    *(classifier_cv, classifier_cv_of_numbers, scaler, scaler_of_slices),
    *(pipeline, pipeline_cv, pipeline_of_slices),
    *(image_regressor, image_classifier, image_transformer, image_pipeline),
)


def answers(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return all that a model says of its inputs."""
    given = dict(inputs)
    if "images" in given:
        given = {"X": Nifti1Image(given["images"], given["affine"])}
    X = given.pop("X")
    return {name: getattr(model, name)(X, **given) for name in METHODS if hasattr(model, name)}


def main() -> None:
    """Write the files that are missing beside this script."""
    folder = Path(__file__).parent
    for make in MAKERS:
        if (folder / f"{make.__name__}.fastr").exists():
            continue
        model, inputs = make()
        save(model, folder / f"{make.__name__}.fastr")
        told = {f"answer_{name}": _plain(own) for name, own in answers(model, inputs).items()}
        np.savez_compressed(folder / make.__name__, **_arrays(inputs), **told)


def _plain(array: Any) -> Any:
    """Return labels that are objects as text: arrays of objects would need pickle."""
    return array.astype(str) if array.dtype == object else array


def _arrays(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return inputs as arrays, with the names of their columns."""
    arrays = {name: np.asarray(value) for name, value in inputs.items()}
    for name, value in inputs.items():
        if isinstance(value, pd.DataFrame):
            arrays[f"columns_{name}"] = value.columns.to_numpy(str)
    return arrays


if __name__ == "__main__":
    main()
