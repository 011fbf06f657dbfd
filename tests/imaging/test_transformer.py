"""Images in, arrays out: what is accepted, masks, resampling, smoothing, types."""

import pickle

import nibabel as nib
import numpy as np
import pytest
from nilearn.image import mean_img, resample_img, smooth_img
from nilearn.maskers import MultiNiftiMasker, NiftiMasker
from nilearn.masking import compute_brain_mask
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from pyfastr import FasTRRegressor, TensorScaler
from pyfastr.imaging import NiftiTransformer

SHAPE = (7, 8, 6)


def with_background(study):
    """The study with zero outside its mask, as most preprocessed images are."""
    study.X[:, ~study.mask] = 0
    return study


@pytest.fixture
def expected(study):
    return (study.X * study.mask)[:, 1:6, 2:8, 1:5]


def test_every_way_to_name_images(study, paths, expected, tmp_path):
    ways = [
        paths,
        [str(path) for path in paths],
        tuple(study.images),
        np.array([str(path) for path in paths]),
        str(tmp_path / "sub-*.nii.gz"),
        tmp_path / "sub-??.nii.gz",
        study.image_4d,
        [nib.Nifti1Image(x[..., None], study.affine) for x in study.X],
    ]
    for imgs in ways:
        X = NiftiTransformer(study.mask_img).fit_transform(imgs)
        np.testing.assert_array_equal(X, expected)


def test_a_pattern_is_sorted_by_the_alphabet(study, tmp_path):
    for name, image in zip(["sub-2.nii", "sub-10.nii", "sub-1.nii"], study.images, strict=False):
        image.to_filename(tmp_path / name)
    X = NiftiTransformer(study.mask_img).fit_transform(tmp_path / "sub-*.nii")
    order = (study.X * study.mask)[[2, 1, 0], 1:6, 2:8, 1:5]
    np.testing.assert_array_equal(X, order)


def test_a_single_image_is_one_sample(study, paths, expected):
    transformer = NiftiTransformer(study.mask_img).fit(paths)
    np.testing.assert_array_equal(transformer.transform(paths[5]), expected[5:6])


def test_names_with_brackets_are_files_before_they_are_patterns(study, expected, tmp_path):
    path = tmp_path / "sub[1].nii"
    study.images[0].to_filename(path)
    X = NiftiTransformer(study.mask_img).fit_transform(path)
    np.testing.assert_array_equal(X, expected[:1])


def test_the_images_of_the_user_are_left_alone(study):
    images = study.images
    images[0].dataobj[0, 0, 0] = np.nan
    before = [image.dataobj.copy() for image in images]
    NiftiTransformer(study.mask_img, smoothing_fwhm=2.0).fit_transform(images)
    for image, data in zip(images, before, strict=True):
        np.testing.assert_array_equal(image.dataobj, data)


@pytest.mark.parametrize("strategy", ["background", "epi"])
def test_a_computed_mask_is_that_of_nilearn(strategy, draw_study):
    study = with_background(draw_study())
    study.X[:, study.mask] += 20
    args = {"opening": False}
    masker = NiftiMasker(mask_strategy=strategy, mask_args=args).fit(study.image_4d)
    ours = NiftiTransformer(NiftiMasker(mask_strategy=strategy, mask_args=args))
    ours.fit(study.images)
    np.testing.assert_array_equal(ours.mask_img_.get_fdata(), masker.mask_img_.get_fdata())


def test_by_default_the_mask_is_what_differs_from_the_background(draw_study):
    study = with_background(draw_study())
    transformer = NiftiTransformer().fit(study.images)
    np.testing.assert_array_equal(transformer.mask_img_.get_fdata(), study.mask)
    assert transformer.n_elements_ == study.mask.sum()


@pytest.mark.parametrize("size", [None, 0.7, 1.3])
@pytest.mark.parametrize("given", [True, False])
def test_background_of_nan_as_spm_writes_it(given, size, draw_study):
    study = draw_study()
    study.X[:, ~study.mask] = np.nan
    transformer = NiftiTransformer(study.mask_img if given else None, target_affine=size)
    transformer.fit(study.images)
    if size is None:
        np.testing.assert_array_equal(transformer.mask_img_.get_fdata(), study.mask)
    assert np.isfinite(transformer.transform(study.images)).all()


def test_a_template_mask_is_that_of_nilearn():
    affine = np.diag([8.0, 8.0, 8.0, 1.0])
    affine[:3, 3] = [-92, -130, -74]
    image = nib.Nifti1Image(np.ones((24, 28, 24), np.float32), affine)
    transformer = NiftiTransformer(mask_strategy="whole-brain-template").fit([image])
    expected = compute_brain_mask(image).get_fdata()
    np.testing.assert_array_equal(transformer.mask_img_.get_fdata(), expected)
    assert 2000 < transformer.n_elements_ < 4000


@pytest.mark.parametrize("kind", [NiftiMasker, MultiNiftiMasker])
@pytest.mark.parametrize("fitted", [True, False])
def test_a_masker_gives_mask_resampling_and_smoothing(kind, fitted, study):
    grid = {"target_affine": np.diag([1.5, 1.5, 1.5, 1.0]), "target_shape": (5, 5, 4)}
    masker = kind(mask_img=study.mask_img, **grid, smoothing_fwhm=3.0)
    if fitted:
        masker.fit()
    transformer = NiftiTransformer(masker).fit(study.images)
    reference = clone(masker).fit().mask_img_.get_fdata()
    np.testing.assert_array_equal(transformer.mask_img_.get_fdata(), reference)
    resampled = resample_img(study.image_4d, **grid, force_resample=True, copy_header=True)
    smooth = np.moveaxis(smooth_img(resampled, 3.0).get_fdata(), -1, 0)
    X = transformer.transform(study.images)
    np.testing.assert_allclose(X, (smooth * reference)[(slice(None), *transformer.slices_)])


def test_smoothing_is_that_of_nilearn(study):
    X = NiftiTransformer(study.mask_img, smoothing_fwhm=4.0).fit_transform(study.images)
    smooth = np.moveaxis(smooth_img(study.image_4d, 4.0).get_fdata(), -1, 0)
    np.testing.assert_allclose(X, (smooth * study.mask)[:, 1:6, 2:8, 1:5])


def test_images_of_mixed_grids_are_resampled_to_the_target(study):
    moved = resample_img(
        study.images[1], np.diag([2.0, 2, 2]), force_resample=True, copy_header=True
    )
    target = {"target_affine": np.diag([1.0, 1, 1, 1]), "target_shape": SHAPE}
    X = NiftiTransformer(study.mask_img, **target).fit_transform([study.images[0], moved])
    back = resample_img(moved, *target.values(), force_resample=True, copy_header=True)
    np.testing.assert_array_equal(X[0], (study.X[0] * study.mask)[1:6, 2:8, 1:5])
    np.testing.assert_allclose(X[1], (back.get_fdata() * study.mask)[1:6, 2:8, 1:5])


def test_a_voxel_size_keeps_the_directions_of_the_images(draw_study):
    study = draw_study("oblique")
    transformer = NiftiTransformer(target_affine=4.0).fit(study.images)
    steps = transformer.affine_[:3, :3]
    np.testing.assert_allclose(np.linalg.norm(steps, axis=0), 4.0)
    old = study.affine[:3, :3] / np.linalg.norm(study.affine[:3, :3], axis=0)
    np.testing.assert_allclose(steps / 4.0, old, atol=1e-12)


def test_a_mask_of_a_smaller_field_of_view_lands_where_it_belongs(study):
    part = study.mask_img.slicer[1:6, 1:, :5]
    with pytest.warns(UserWarning, match="was resampled to theirs by nearest neighbour"):
        transformer = NiftiTransformer(part).fit(study.images)
    np.testing.assert_array_equal(transformer.mask_img_.get_fdata(), study.mask)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [("uint8", "f4"), ("int16", "f4"), ("float32", "f4"), ("int32", "f8"), ("float64", "f8")],
)
def test_the_type_holds_what_is_stored(stored, expected, study):
    data = (100 * study.X).round().astype(stored) if stored != "uint8" else study.X > 0
    image = nib.Nifti1Image(np.moveaxis(data, 0, -1).astype(stored), study.affine)
    X = NiftiTransformer(study.mask_img).fit_transform(image)
    assert X.dtype == expected
    np.testing.assert_array_equal(X, (data * study.mask)[:, 1:6, 2:8, 1:5].astype(expected))


def test_the_type_is_that_of_the_fit(study):
    transformer = NiftiTransformer(study.mask_img, dtype="float32").fit(study.images)
    assert transformer.transform(study.images).dtype == np.float32
    auto = NiftiTransformer(study.mask_img).fit(study.images)
    single = [nib.Nifti1Image(x.astype(np.float32), study.affine) for x in study.X]
    assert auto.transform(single).dtype == np.float64


def test_scaled_integers_are_unscaled(study, tmp_path):
    image = study.images[0]
    image.set_data_dtype(np.int16)
    image.to_filename(tmp_path / "scaled.nii.gz")
    assert nib.load(tmp_path / "scaled.nii.gz").dataobj.slope != 1
    X = NiftiTransformer(study.mask_img).fit_transform(tmp_path / "scaled.nii.gz")
    np.testing.assert_allclose(X[0], (study.X[0] * study.mask)[1:6, 2:8, 1:5], atol=1e-3)


def test_affines_that_differ_by_the_rounding_of_a_header_are_one(study):
    shaken = study.affine + 1e-6 * np.random.default_rng(0).standard_normal((4, 4))
    shaken[3] = [0, 0, 0, 1]
    images = [study.images[0], nib.Nifti1Image(study.X[1], shaken)]
    assert len(NiftiTransformer(study.mask_img).fit_transform(images)) == 2


def test_in_a_pipeline_with_a_scaler(study, paths):
    pipeline = make_pipeline(
        NiftiTransformer(study.mask_img),
        TensorScaler(),
        FasTRRegressor(ridge=0.01, n_init=4, random_state=0),
    )
    assert pipeline.fit(paths, study.y).score(paths, study.y) > 0.99
    coef = pipeline[-1].coef_ / pipeline[1].scale_
    image = pipeline[0].inverse_transform(coef)
    assert np.unravel_index(np.abs(image.get_fdata()).argmax(), SHAPE) == study.voxel


def test_a_copy_by_pickle_reads_the_same(study, paths):
    transformer = NiftiTransformer(study.mask_img).fit(paths)
    copy = pickle.loads(pickle.dumps(transformer))
    np.testing.assert_array_equal(copy.transform(paths), transformer.transform(paths))
    assert copy.slices_ == transformer.slices_


def test_who_watches_is_told(study, paths, capsys):
    NiftiTransformer(study.mask_img).fit_transform(paths)
    assert capsys.readouterr().out == ""
    NiftiTransformer(study.mask_img, verbose=2).fit_transform(paths)
    out = capsys.readouterr().out
    assert out == "[FasTR] read 40 images as float64 of shape (40, 5, 6, 4)\n"


def test_the_mean_is_what_a_mask_is_computed_from(draw_study):
    study = with_background(draw_study(n_samples=5))
    mean = mean_img(study.image_4d, copy_header=True)
    by_mean = NiftiMasker().fit(mean).mask_img_.get_fdata()
    ours = NiftiTransformer().fit(study.images).mask_img_.get_fdata()
    np.testing.assert_array_equal(ours, by_mean)
