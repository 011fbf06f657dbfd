"""What cannot be used is refused with the name of the file and what to do."""

import re
import subprocess
import sys

import nibabel as nib
import numpy as np
import pytest
from nilearn.maskers import NiftiMasker

from pyfastr import FasTRClassifier, FasTRRegressor, FasTRRegressorCV, TensorScaler
from pyfastr.baselines import VectorizedLasso
from pyfastr.imaging import NiftiClassifier, NiftiRegressor, NiftiTransformer

SHAPE = (7, 8, 6)


FAST = FasTRRegressor(ridge=1.0, n_init=2, random_state=0)


def fit(study, imgs, **params):
    return NiftiTransformer(study.mask_img, **params).fit_transform(imgs)


def singular():
    image = nib.Nifti1Image(np.zeros(SHAPE), np.eye(4))
    image.affine[2, 2] = 0
    return image


def test_the_first_image_on_another_grid_is_named(study, paths):
    other = study.affine.copy()
    other[0, 3] = 1.0
    nib.Nifti1Image(study.X[7], other).to_filename(paths[7])
    nib.Nifti1Image(study.X[9], other).to_filename(paths[9])
    with pytest.raises(ValueError, match=r"sub-07.nii.gz has shape") as caught:
        fit(study, paths)
    message = str(caught.value)
    assert "sub-09" not in message
    assert f"as the first image, {paths[0]}, has" in message
    assert "[1.0, 0.0, 0.0, 1.0]" in message
    assert "target_affine" in message


def test_an_image_of_another_shape_is_named(study, paths):
    nib.Nifti1Image(study.X[3][:-1], study.affine).to_filename(paths[3])
    with pytest.raises(ValueError, match=r"sub-03.nii.gz has shape \(6, 8, 6\).*\(7, 8, 6\)"):
        fit(study, paths)


def test_new_images_must_be_on_the_grid_of_the_training(study, paths):
    transformer = NiftiTransformer(study.mask_img).fit(paths)
    nib.Nifti1Image(study.X[3], 2 * study.affine).to_filename(paths[3])
    with pytest.raises(ValueError, match=r"sub-03.nii.gz.*as the training images has"):
        transformer.transform(paths)


def test_an_image_elsewhere_in_space_is_named_rather_than_resampled_to_zeros(study, paths):
    far = study.affine.copy()
    far[:3, 3] = 500
    nib.Nifti1Image(study.X[3], far).to_filename(paths[3])
    for target in (2.0, np.diag([2.0, 2.0, 2.0])):
        with pytest.raises(ValueError, match=r"sub-03.nii.gz .* lies outside of the grid"):
            fit(study, paths, target_affine=target)
    transformer = NiftiTransformer(study.mask_img, target_affine=2.0).fit(paths[:3])
    with pytest.raises(ValueError, match=r"sub-03.nii.gz .* lies outside of the grid"):
        transformer.transform(paths)
    with pytest.raises(ValueError, match=r"target_affine is .*begins beyond the first image"):
        fit(study, paths[:3], target_affine=far)


def test_a_missing_file_is_named(study, paths):
    paths[4].unlink()
    with pytest.raises(FileNotFoundError, match=r"sub-04.nii.gz does not exist"):
        fit(study, paths)


def test_a_pattern_without_files_is_named(study, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No file matches .*nothing-\*.nii"):
        fit(study, tmp_path / "nothing-*.nii")


def test_a_folder_is_answered_with_a_pattern(study, tmp_path):
    with pytest.raises(ValueError, match=r"is a folder; expected .*/\*.nii.gz"):
        fit(study, tmp_path)


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("kept", [0.9, 0.5, 0.02])
def test_a_file_cut_short_is_named(study, tmp_path, suffix, kept):
    paths = study.write(tmp_path, suffix)
    whole = paths[6].read_bytes()
    paths[6].write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(ValueError, match=rf"sub-06{suffix} cannot be read"):
        fit(study, paths)


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_a_header_that_announces_too_much_is_refused_before_room_is_made(study, tmp_path, suffix):
    path = tmp_path / f"huge{suffix}"
    header = nib.Nifti1Header()
    header.set_data_shape((30000, 30000, 30000))
    header.set_data_dtype(np.float64)
    opener = nib.openers.Opener(path, "wb")
    with opener:
        header.write_to(opener)
        opener.write(bytes(1000))
    with pytest.raises(ValueError, match=rf"huge{suffix} cannot be read \(its header announces"):
        NiftiTransformer(study.mask_img).fit(path)


def test_a_4d_file_cut_short_is_named(study, tmp_path):
    path = tmp_path / "all.nii.gz"
    study.image_4d.to_filename(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"all.nii.gz \(volume \d+\) cannot be read"):
        fit(study, path)


@pytest.mark.parametrize("content", [b"", b"no image at all", bytes(400)])
def test_what_is_no_image_is_named(study, paths, content):
    for name in ("sub.nii", "sub.nii.gz", "sub.txt"):
        paths[2] = paths[2].parent / name
        paths[2].write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name} cannot be read as an image"):
            fit(study, paths)


@pytest.mark.parametrize("params", [{}, {"smoothing_fwhm": 2.0}, {"target_affine": 0.8}])
def test_nan_inside_the_mask_is_named_and_counted(study, paths, params):
    study.X[5, 3:5, 4, 3] = [np.nan, np.inf]
    study.images[5].to_filename(paths[5])
    with pytest.raises(ValueError, match=r"sub-05.nii.gz has NaN or infinity in \d+ voxels") as e:
        fit(study, paths, **params)
    if "target_affine" not in params:
        assert "in 2 voxels inside the mask" in str(e.value)


def test_nan_between_the_voxels_of_a_coarser_grid_is_seen_too(study):
    study.X[5, 3, 3, 2] = np.nan
    study.mask[...] = True
    with pytest.raises(ValueError, match=r"imgs\[5\] has NaN or infinity in 1 voxels inside"):
        fit(study, study.images, target_affine=np.diag([2, 2, 2, 1]), target_shape=(4, 4, 3))


@pytest.mark.parametrize("params", [{}, {"smoothing_fwhm": 2.0}, {"target_affine": 1.5}])
def test_nan_outside_the_mask_is_zero(study, params):
    study.X[:, 0, 0, 0] = 0.0
    expected = fit(study, study.images, **params)
    study.X[5, 0, 0, 0] = np.nan
    np.testing.assert_array_equal(fit(study, study.images, **params), expected)


@pytest.mark.parametrize(
    ("imgs", "error", "words"),
    [
        ([], ValueError, "imgs is empty"),
        (np.zeros((4, *SHAPE)), TypeError, "imgs is of type ndarray.*For arrays, use FasTR"),
        (3, TypeError, "imgs is of type int"),
        ([np.zeros(SHAPE)], TypeError, r"imgs\[0\] is of type ndarray"),
        (nib.Nifti1Image(np.zeros((4, 4)), np.eye(4)), ValueError, "expected a 3-D or a 4-D"),
        (nib.Nifti1Image(np.zeros((4, 4, 0)), np.eye(4)), ValueError, "imgs is empty: its shape"),
        (
            [nib.Nifti1Image(np.zeros((*SHAPE, 2)), np.eye(4))],
            ValueError,
            r"imgs\[0\] has shape .*expected 3-D images in a list",
        ),
        (nib.Nifti1Image(np.zeros(SHAPE, complex), np.eye(4)), ValueError, "real numbers"),
        (singular(), ValueError, "invertible"),
    ],
)
def test_what_is_no_list_of_images(study, imgs, error, words):
    with pytest.raises(error, match=words):
        fit(study, imgs)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"mask_strategy": "guess"}, "mask_strategy"),
        ({"dtype": "int16"}, "dtype is 'int16'; expected 'auto'"),
        ({"dtype": None}, "dtype is None"),
        ({"target_affine": 0}, "target_affine is .*expected a voxel size"),
        ({"target_affine": np.zeros((4, 4))}, "invertible"),
        ({"target_affine": [1, 2]}, "target_affine is"),
        ({"target_affine": "big"}, "target_affine is 'big'"),
        ({"target_shape": (3, 3, 3)}, "without a target_affine"),
        ({"target_affine": 2.0, "target_shape": (3, 3, 3)}, "is no 4×4 array"),
        ({"target_affine": np.eye(4), "target_shape": (3, 3)}, "expected three ints"),
        ({"smoothing_fwhm": -2.0}, "smoothing_fwhm is -2.0; expected"),
        ({"smoothing_fwhm": "much"}, "smoothing_fwhm is 'much'; expected"),
    ],
)
def test_parameters_that_say_nothing_sensible(study, params, words):
    with pytest.raises(ValueError, match=words):
        fit(study, study.images, **params)


def mask_of(values):
    return nib.Nifti1Image(np.asarray(values, np.float32), np.eye(4))


def test_masks_that_are_none(study, tmp_path):
    empty, levels = np.zeros(SHAPE), np.arange(np.prod(SHAPE)).reshape(SHAPE)
    far = nib.Nifti1Image(np.ones(SHAPE, np.uint8), study.affine + 0)
    far.affine[:3, 3] = 500
    path = tmp_path / "mask.nii"
    mask_of(levels).to_filename(path)
    for mask, error, words in [
        (mask_of(empty), ValueError, r"The mask \(mask_img\) is empty"),
        (path, ValueError, r"mask.nii\) has 335 different values"),
        (tmp_path / "none.nii", FileNotFoundError, "none.nii does not exist"),
        (study.mask, TypeError, "mask_img is of type ndarray"),
        (study.image_4d, ValueError, "mask_img holds 40 volumes"),
    ]:
        with pytest.raises(error, match=words):
            NiftiTransformer(mask).fit(study.images)
    with (
        pytest.warns(UserWarning, match="was resampled"),
        pytest.raises(ValueError, match="covers none of the images' voxels"),
    ):
        NiftiTransformer(far).fit(study.images)


def test_images_without_a_background_have_no_computed_mask():
    images = [nib.Nifti1Image(np.ones(SHAPE), np.eye(4))] * 2
    with pytest.raises(ValueError, match=r"No mask could be computed.*Give a mask_img"):
        NiftiTransformer().fit(images)


def test_a_masker_for_series_is_refused(study):
    masker = NiftiMasker(study.mask_img, detrend=True)
    with pytest.raises(ValueError, match="masker with detrend=True"):
        NiftiTransformer(masker).fit(study.images)
    masker = NiftiMasker(study.mask_img, smoothing_fwhm=2.0)
    with pytest.raises(ValueError, match="smoothing_fwhm is set, but mask_img is a NiftiMasker"):
        NiftiTransformer(masker, smoothing_fwhm=3.0).fit(study.images)


def test_arrays_of_another_shape_become_no_image(study):
    transformer = NiftiTransformer(study.mask_img).fit(study.images)
    with pytest.raises(ValueError, match=r"wrong shape: \(7, 8, 6\); expected \(5, 6, 4\)"):
        transformer.inverse_transform(np.zeros(SHAPE))


def test_a_response_is_checked_before_images_are_read(study, paths):
    paths[0].write_bytes(paths[0].read_bytes()[:-50])
    model = NiftiRegressor(FAST, mask_img=study.mask_img)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(paths, study.y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(paths, None)
    assert not hasattr(model, "estimator_")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (NiftiRegressor(FasTRClassifier()), "expected a regressor of pyfastr"),
        (NiftiClassifier(FasTRRegressor()), "expected a classifier of pyfastr"),
        (NiftiRegressor(TensorScaler()), "such as FasTRRegressorCV"),
    ],
)
def test_estimators_of_the_wrong_kind(study, model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(study.images, study.y > 0)


def test_what_the_estimator_does_not_take_is_refused(study):
    model = NiftiRegressor(FAST, mask_img=study.mask_img)
    with pytest.raises(ValueError, match="groups is given, but FasTRRegressor takes none"):
        model.fit(study.images, study.y, groups=study.y)
    model = NiftiRegressor(VectorizedLasso(), mask_img=study.mask_img)
    with pytest.raises(ValueError, match="confounds is given, but VectorizedLasso takes none"):
        model.fit(study.images, study.y, confounds=study.y)


def test_confounds_in_a_table_must_be_numbers(study, tmp_path):
    model = NiftiRegressor(FAST, mask_img=study.mask_img)
    table = tmp_path / "confounds.tsv"
    table.write_text("age\tsite\n" + "30\tnorth\n" * 40)
    with pytest.raises(ValueError, match=r"confounds.tsv has columns that are no numbers: site"):
        model.fit(study.images, study.y, confounds=table)
    with pytest.raises(FileNotFoundError, match=r"other.csv"):
        model.fit(study.images, study.y, confounds=tmp_path / "other.csv")
    with pytest.raises(ValueError, match=re.escape("expected a .csv or .tsv file")):
        model.fit(study.images, study.y, confounds="table.xlsx")


def test_confounds_are_needed_again_to_predict(study):
    age = np.arange(40.0)
    model = NiftiRegressor(FAST, mask_img=study.mask_img).fit(study.images, study.y, age)
    with pytest.raises(ValueError, match="0 columns, but the model was fitted with 1"):
        model.predict(study.images)


def test_a_fit_that_fails_leaves_the_old_one(study):
    model = NiftiRegressor(FAST, mask_img=study.mask_img).fit(study.images, study.y)
    before = model.predict(study.images)
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(study.images, np.full(40, np.nan))
    np.testing.assert_array_equal(model.predict(study.images), before)


def test_an_unfitted_model_says_so(study):
    for model in (NiftiRegressor(FasTRRegressorCV()), NiftiClassifier()):
        with pytest.raises(ValueError, match="is not fitted yet"):
            model.predict(study.images)
        with pytest.raises(ValueError, match="is not fitted yet"):
            model.generate_report()


def test_a_classifier_wants_two_classes_at_least(draw_study):
    study = draw_study()
    model = NiftiClassifier(FasTRClassifier(random_state=0), mask_img=study.mask_img)
    with pytest.raises(ValueError, match="class"):
        model.fit(study.images, np.zeros(40))


def test_without_nibabel_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "nibabel", None)
    with pytest.raises(ImportError, match=r"needs nibabel.*pip install 'pyfastr\[imaging\]'"):
        NiftiTransformer().fit(["a.nii"])


def test_importing_the_room_loads_neither_nibabel_nor_nilearn():
    script = """
import sys
import pyfastr.imaging
heavy = {name.partition(".")[0] for name in sys.modules} & {"nibabel", "nilearn", "matplotlib"}
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)
