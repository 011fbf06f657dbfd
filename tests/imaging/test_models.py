"""Regression and classification of images, in scikit-learn's hands and by themselves."""

import pickle

import nibabel as nib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils import estimator_checks

import pyfastr
from pyfastr import FasTRClassifier, FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV
from pyfastr.baselines import ElementaryRidge
from pyfastr.datasets import make_nifti_study
from pyfastr.imaging import NiftiClassifier, NiftiRegressor, NiftiTransformer

FAST = FasTRRegressor(ridge=0.1, n_init=4, random_state=0)
FAST_CLASSES = FasTRClassifier(ridge=0.1, n_init=4, random_state=0)
SMALL_CV = {"thresholds": (0.0, 0.2), "ridges": (0.1, 1.0), "cv": 3, "n_init": 4, "random_state": 0}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_nifti_study(tmp_path_factory.mktemp("study"), 36, random_state=0)


@pytest.fixture(scope="module")
def arrays(files):
    return NiftiTransformer(files.mask).fit_transform(files.images)


@pytest.fixture(scope="module")
def model(files):
    return NiftiRegressor(FAST, mask_img=files.mask).fit(files.images, files.scores, files.ages)


def test_confounds_groups_and_weights_reach_the_folds(files, arrays):
    rng = np.random.default_rng(0)
    groups, weights = np.arange(36) // 3, rng.uniform(0.5, 2.0, 36)
    estimator = FasTRRegressorCV(**SMALL_CV, n_terms=1)
    model = NiftiRegressor(estimator, mask_img=files.mask)
    model.fit(files.images, files.scores, files.ages, groups=groups, sample_weight=weights)
    by_hand = clone(estimator).fit(
        arrays, files.scores, sample_weight=weights, covariates=files.ages, groups=groups
    )
    np.testing.assert_array_equal(model.estimator_.scores_path_, by_hand.scores_path_)
    np.testing.assert_array_equal(model.coef_, by_hand.coef_)
    np.testing.assert_array_equal(model.estimator_.covariate_coef_, by_hand.covariate_coef_)
    # Without any of the three the scores of the folds are others.
    for left_out in ("covariates", "groups", "sample_weight"):
        given = {"covariates": files.ages, "groups": groups, "sample_weight": weights}
        del given[left_out]
        other = clone(estimator).fit(arrays, files.scores, **given)
        assert np.abs(other.scores_path_ - by_hand.scores_path_).max() > 1e-6


def test_classes_with_confounds_and_groups(files, arrays):
    groups = np.arange(36) // 3
    estimator = FasTRClassifierCV(**SMALL_CV)
    model = NiftiClassifier(estimator, mask_img=files.mask)
    model.fit(files.images, files.groups, files.ages, groups)
    by_hand = clone(estimator).fit(arrays, files.groups, covariates=files.ages, groups=groups)
    asked = {"covariates": files.ages}
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(
            getattr(model, method)(files.images, files.ages),
            getattr(by_hand, method)(arrays, **asked),
        )
    assert model.classes_.tolist() == ["control", "patient"]
    prediction = model.predict(files.images, files.ages)
    score = model.score(files.images, files.groups, files.ages)
    assert score == accuracy_score(files.groups, prediction)


def test_without_an_estimator_the_model_chooses_for_itself(files):
    model = NiftiRegressor(mask_img=files.mask).fit(files.images, files.scores, files.ages)
    assert type(model.estimator_) is FasTRRegressorCV
    assert model.estimator_.best_score_ > 0.7
    assert type(NiftiClassifier()._fresh_estimator()) is FasTRClassifierCV


def test_confounds_as_array_frame_and_table_are_one(files, model, tmp_path):
    frame = pd.DataFrame({"age": files.ages})
    frame.to_csv(tmp_path / "age.csv", index=False)
    frame.to_csv(tmp_path / "age.tsv", index=False, sep="\t")
    expected = model.predict(files.images, files.ages)
    for table in (frame, tmp_path / "age.csv", str(tmp_path / "age.tsv")):
        other = clone(model).fit(files.images, files.scores, confounds=table)
        np.testing.assert_allclose(other.predict(files.images, table), expected, rtol=1e-6)
    assert other.estimator_.covariate_names_in_.tolist() == ["age"]


def test_score_is_r2_of_the_prediction(files, model):
    weights = np.arange(36.0)
    prediction = model.predict(files.images, files.ages)
    score = model.score(files.images, files.scores, files.ages, weights)
    assert score == r2_score(files.scores, prediction, sample_weight=weights)


def test_baselines_fit_images_too(files):
    model = NiftiRegressor(ElementaryRidge(), mask_img=files.mask).fit(files.images, files.scores)
    assert model.coef_img_.shape == (12, 14, 10)
    assert model.predict(files.images).shape == (36,)


@pytest.mark.parametrize(("stored", "kept"), [("float32", "f4"), ("int16", "f4"), ("int32", "f8")])
def test_the_image_of_the_coefficient_is_the_coefficient_inside_the_mask(
    files, tmp_path, stored, kept
):
    images = [nib.load(path) for path in files.images]
    images = [nib.Nifti1Image(i.get_fdata().astype(stored), i.affine) for i in images]
    model = NiftiRegressor(FAST, mask_img=files.mask).fit(images, files.scores)
    inside = nib.load(files.mask).get_fdata() != 0
    box = model.transformer_.slices_
    model.coef_img_.to_filename(tmp_path / "coef.nii.gz")
    for image in (model.coef_img_, nib.load(tmp_path / "coef.nii.gz")):
        coef = np.asarray(image.dataobj)
        assert image.get_data_dtype() == coef.dtype == model.coef_.dtype == kept
        np.testing.assert_array_equal(coef[box], np.where(inside[box], model.coef_, 0))
        assert np.count_nonzero(coef) == np.count_nonzero(coef[inside])


def test_the_mean_of_the_images_is_kept(files, model, arrays):
    mean = model.transformer_.inverse_transform(arrays.mean(axis=0, dtype=float))
    np.testing.assert_allclose(model.mean_img_.get_fdata(), mean.get_fdata(), rtol=1e-6)


def test_cross_validation_over_a_list_of_paths(files):
    model = NiftiRegressor(FAST, mask_img=files.mask)
    scores = cross_val_score(model, files.images, files.scores, cv=3, error_score="raise")
    assert scores.shape == (3,)
    X = NiftiTransformer(files.mask).fit_transform(files.images)
    np.testing.assert_allclose(scores, cross_val_score(FAST, X, files.scores, cv=3), rtol=1e-6)


def test_cross_validation_with_confounds_in_fit_and_score(files, arrays):
    with config_context(enable_metadata_routing=True):
        model = NiftiRegressor(FAST, mask_img=files.mask)
        model.set_fit_request(confounds=True).set_score_request(confounds=True)
        scores = cross_val_score(
            model, files.images, files.scores, cv=3, params={"confounds": files.ages}
        )
        plain = clone(FAST).set_fit_request(covariates=True).set_score_request(covariates=True)
        expected = cross_val_score(
            plain, arrays, files.scores, cv=3, params={"covariates": files.ages}
        )
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_decisions_for_roc_curves(files):
    model = NiftiClassifier(FAST_CLASSES, mask_img=files.mask)
    decisions = cross_val_predict(
        model, files.images, files.groups, cv=3, method="decision_function"
    )
    assert decisions.shape == (36,)


def test_a_grid_search_reaches_the_estimator_within(files):
    search = GridSearchCV(
        NiftiRegressor(FAST, mask_img=files.mask),
        {"estimator__ridge": [0.1, 1000.0]},
        cv=2,
    )
    search.fit(files.images, files.scores)
    assert search.best_params_["estimator__ridge"] == 0.1
    assert search.best_estimator_.estimator_.ridge == 0.1


def test_pickles_and_clones(files, model):
    copy = pickle.loads(pickle.dumps(model))
    expected = model.predict(files.images, files.ages)
    np.testing.assert_array_equal(copy.predict(files.images, files.ages), expected)
    fresh = clone(model)
    assert not hasattr(fresh, "estimator_")
    assert fresh.estimator is not model.estimator


def test_files_of_models(files, model, tmp_path):
    path = model.save(tmp_path / "model.fastr")
    loaded = pyfastr.load(path)
    expected = model.predict(files.images, files.ages)
    np.testing.assert_array_equal(loaded.predict(files.images, files.ages), expected)
    np.testing.assert_array_equal(loaded.coef_img_.get_fdata(), model.coef_img_.get_fdata())
    np.testing.assert_array_equal(loaded.coef_img_.affine, model.coef_img_.affine)


def test_the_report_names_axes_grid_and_mask(files, model):
    report = model.generate_report(files.images, files.scores, confounds=files.ages)
    page = report.get_standalone()
    assert "<h1>NiftiRegressor (FasTRRegressor), 520 voxels</h1>" in page
    for words in ("x (mm)", "12 × 14 × 10 voxels of 4 × 4 × 4 mm", "left, front, up"):
        assert words in page
    assert "520 voxels of the 960 in its box" in page
    assert "from pyfastr.imaging import NiftiRegressor" in page
    assert "model.fit(imgs, y, confounds=confounds)" in page


@pytest.mark.parametrize("background", ["mean", "MNI152", "file"])
def test_the_background_lies_on_the_box_of_the_coefficient(files, model, background):
    given = files.images[0] if background == "file" else background
    image = model._background(given)
    assert image.shape == model.coef_.shape
    if background == "file":
        np.testing.assert_array_equal(
            image, nib.load(given).get_fdata()[model.transformer_.slices_]
        )
    assert image.max() > 0


def test_a_background_is_one_image(files, model):
    assert model._background(None) is None
    with pytest.raises(ValueError, match="background_img holds 36 volumes"):
        model._background(files.images)


def test_the_kinds_that_scikit_learn_sees():
    assert is_regressor(NiftiRegressor())
    assert not hasattr(NiftiRegressor(), "decision_function")
    assert is_classifier(NiftiClassifier())
    tags = NiftiClassifier().__sklearn_tags__()
    assert tags.classifier_tags.multi_class
    assert not tags.classifier_tags.multi_label
    assert tags.target_tags.required
    assert tags.input_tags.niimg_like
    assert not tags.input_tags.two_d_array


# Images are no matrices, so scikit-learn runs none but these of its own accord.
@pytest.mark.parametrize("model", [NiftiRegressor(), NiftiClassifier(), NiftiTransformer()])
@pytest.mark.parametrize(
    "name",
    [
        "check_estimator_cloneable",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_valid_tag_types",
        "check_estimator_repr",
        "check_mixin_order",
    ],
)
def test_checks_of_scikit_learn_that_need_no_data(model, name):
    getattr(estimator_checks, name)(type(model).__name__, model)


def test_three_groups_have_a_volume_of_the_coefficient_each(files, arrays, tmp_path):
    groups = np.array(["a", "b", "c"])[
        np.digitize(files.scores, np.quantile(files.scores, [0.3, 0.6]))
    ]
    model = NiftiClassifier(FAST_CLASSES, mask_img=files.mask).fit(files.images, groups)
    by_hand = clone(FAST_CLASSES).fit(arrays, groups)
    assert model.classes_.tolist() == ["a", "b", "c"]
    volumes = np.asarray(model.coef_img_.dataobj)
    assert volumes.shape == (*nib.load(files.mask).shape, 3)
    for t in range(3):
        alone = model.transformer_.inverse_transform(by_hand.coef_[t])
        np.testing.assert_array_equal(volumes[..., t], np.asarray(alone.dataobj))
    np.testing.assert_allclose(model.predict_proba(files.images).sum(axis=1), 1, rtol=1e-6)
    model.save(tmp_path / "model.fastr")
    again = pyfastr.load(tmp_path / "model.fastr")
    np.testing.assert_array_equal(again.predict(files.images), model.predict(files.images))
