"""A coefficient is found at the place in space where it was planted."""

import numpy as np
import pytest
from nibabel.affines import apply_affine
from nilearn.image import resample_img

from pyfastr import FasTRRegressor
from pyfastr.imaging import NiftiRegressor, NiftiTransformer

SURE = FasTRRegressor(threshold=0.1, refit_support=True, n_init=16, random_state=0)


def value_at(image, place):
    """The value of an image at a place in millimetres, which must be the centre of a voxel."""
    index = apply_affine(np.linalg.inv(image.affine), place)
    np.testing.assert_allclose(index, index.round(), atol=1e-6)
    return image.get_fdata()[tuple(index.round().astype(int))]


@pytest.mark.parametrize("kind", ["files", "packed files", "4-D", "4-D file"])
def test_the_coefficient_is_where_it_was_planted(kind, tmp_path, draw_study, grid):
    study = draw_study(grid)
    if kind == "4-D file":
        imgs = tmp_path / "all.nii.gz"
        study.image_4d.to_filename(imgs)
    elif kind == "4-D":
        imgs = study.image_4d
    else:
        imgs = study.write(tmp_path, ".nii" if kind == "files" else ".nii.gz")
    model = NiftiRegressor(SURE, mask_img=study.mask_img).fit(imgs, study.y)

    coef = model.coef_img_
    np.testing.assert_allclose(coef.affine, study.affine, atol=1e-6)
    assert coef.shape == study.X.shape[1:]
    assert value_at(coef, apply_affine(study.affine, study.voxel)) == pytest.approx(3.0, rel=1e-3)
    assert np.abs(coef.get_fdata()[~study.mask]).max() == 0
    rest = coef.get_fdata()
    rest[study.voxel] = 0
    assert np.abs(rest).max() < 1e-3


def test_predictions_from_images_are_those_from_arrays(tmp_path, draw_study, grid):
    study = draw_study(grid)
    paths = study.write(tmp_path)
    y = study.y + np.random.default_rng(1).standard_normal(len(study.y))
    model = NiftiRegressor(FasTRRegressor(ridge=0.1, n_init=4, random_state=0))
    model.set_params(mask_img=study.mask_img).fit(paths, y)

    from_images = model.predict(paths)
    from_arrays = model.estimator_.predict(model.transformer_.transform(paths))
    np.testing.assert_allclose(from_images, from_arrays, rtol=1e-12, atol=1e-12)
    products = np.einsum("nijk,ijk->n", study.X, model.coef_img_.get_fdata())
    np.testing.assert_allclose(from_images, products + model.intercept_, rtol=1e-12, atol=1e-12)
    # As an outer product, the coefficient goes on outside the mask, where arrays are zero.
    assert np.abs(model.coef_[~study.mask[model.transformer_.slices_]]).max() > 0


def test_arrays_become_the_images_that_they_were(draw_study, grid):
    study = draw_study(grid)
    transformer = NiftiTransformer(study.mask_img)
    X = transformer.fit_transform(study.images)
    assert X.shape == (len(study.X), 5, 6, 4)
    back = transformer.inverse_transform(X)
    np.testing.assert_array_equal(np.moveaxis(back.get_fdata(), -1, 0), study.X * study.mask)
    np.testing.assert_array_equal(back.affine, study.affine)
    one = transformer.inverse_transform(X[3])
    np.testing.assert_array_equal(one.get_fdata(), study.X[3] * study.mask)


def test_the_affine_of_the_box_says_where_the_arrays_are(draw_study, grid):
    study = draw_study(grid)
    transformer = NiftiTransformer(study.mask_img).fit(study.images)
    starts = [s.start for s in transformer.slices_]
    np.testing.assert_allclose(
        apply_affine(transformer.affine_, [1, 2, 3]),
        apply_affine(study.affine, np.add(starts, [1, 2, 3])),
    )


@pytest.mark.parametrize("name", ["plain", "flipped", "anisotropic", "sagittal"])
def test_coordinates_are_those_of_space_where_axes_are_parallel_to_it(name, draw_study):
    study = draw_study(name)
    transformer = NiftiTransformer(study.mask_img).fit(study.images)
    for mode, (label, coords) in enumerate(
        zip(transformer.mode_names_, transformer.mode_coords_, strict=True)
    ):
        voxels = np.zeros((len(coords), 3))
        voxels[:, mode] = np.arange(len(coords))
        space = apply_affine(transformer.affine_, voxels)
        np.testing.assert_allclose(coords, space[:, "xyz".index(label[0])], atol=1e-12)
    assert sorted(transformer.mode_names_) == ["x (mm)", "y (mm)", "z (mm)"]


def test_a_sagittal_scan_names_its_axes_by_where_they_point(draw_study):
    study = draw_study("sagittal")
    model = NiftiRegressor(SURE, mask_img=study.mask_img).fit(study.images, study.y)
    assert model.mode_names_in_ == ("y (mm)", "z (mm)", "x (mm)")
    assert model.estimator_.mode_names_in_ == model.mode_names_in_
    sizes = [len(coords) for coords in model.estimator_.mode_coords_in_]
    assert sizes == [len(factor) for factor in model.factors_]
    # The planted voxel is at the coordinate of the largest entry of each factor.
    place = apply_affine(study.affine, study.voxel)
    for label, coords, factor in zip(
        model.mode_names_in_, model.mode_coords_in_, model.factors_, strict=True
    ):
        largest = coords[np.abs(factor[:, 0]).argmax()]
        assert largest == pytest.approx(place["xyz".index(label[0])])


def test_oblique_coordinates_are_positions_projected_on_the_axes(draw_study):
    study = draw_study("oblique")
    transformer = NiftiTransformer(study.mask_img).fit(study.images)
    turned = study.affine[:3, :3] / np.linalg.norm(study.affine[:3, :3], axis=0)
    corner = apply_affine(transformer.affine_, [4, 5, 3])
    last = [coords[-1] for coords in transformer.mode_coords_]
    np.testing.assert_allclose(last, turned.T @ corner, atol=1e-9)


@pytest.mark.parametrize("target", ["size", "sizes", "3x3", "4x4"])
def test_resampled_images_are_fitted_on_the_grid_asked_for(target, draw_study):
    study = draw_study("flipped")
    start = study.affine.copy()
    start[:3, :3] *= 1.5
    wanted = {
        "size": {"target_affine": 3.0},
        "sizes": {"target_affine": (3, 3, 3)},
        "3x3": {"target_affine": start[:3, :3]},
        "4x4": {"target_affine": start, "target_shape": (4, 5, 4)},
    }[target]
    given = wanted if target == "4x4" else {"target_affine": start[:3, :3]}
    resampled = resample_img(study.image_4d, **given, force_resample=True, copy_header=True)
    y = 2.0 * resampled.get_fdata()[2, 3, 1] - 1.0
    everywhere = resample_img(
        study.mask_img, **given, interpolation="nearest", force_resample=True, copy_header=True
    )
    everywhere = type(everywhere)(np.ones(everywhere.shape, np.uint8), everywhere.affine)

    model = NiftiRegressor(SURE, mask_img=everywhere, **wanted).fit(study.images, y)
    np.testing.assert_allclose(model.coef_img_.affine, resampled.affine)
    assert model.coef_img_.shape == resampled.shape[:3]
    place = apply_affine(resampled.affine, [2, 3, 1])
    assert value_at(model.coef_img_, place) == pytest.approx(2.0, rel=1e-2)
    np.testing.assert_allclose(
        model.transformer_.transform(study.images), np.moveaxis(resampled.get_fdata(), -1, 0)
    )
