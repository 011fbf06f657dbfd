"""Displays of models of brain images."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr import FasTRRegressorCV
from pyfastr.display import CoefficientDisplay, PredictionDisplay, SelectionDisplay, StartsDisplay

nibabel = pytest.importorskip("nibabel")
pytest.importorskip("nilearn")


@pytest.fixture(scope="module")
def samples():
    from pyfastr.imaging import NiftiRegressor

    rng = np.random.default_rng(0)
    affine = np.diag([-3.0, 3.0, 4.0, 1.0])
    affine[:3, 3] = (20, -30, -10)
    X = rng.normal(size=(40, 5, 6, 4))
    images = [nibabel.Nifti1Image(sample, affine) for sample in X]
    confounds = rng.normal(size=(40, 1))
    y = X[:, 1, 2, 3] + confounds[:, 0]
    inner = FasTRRegressorCV([0.0, 0.3], [0.1], n_init=2, random_state=0)
    mask = nibabel.Nifti1Image(np.ones((5, 6, 4), "uint8"), affine)
    model = NiftiRegressor(inner, mask_img=mask)
    return model.fit(images, y, confounds=confounds), images, y, confounds


def test_a_voxel_is_drawn_at_its_millimetres(samples):
    model = samples[0]
    display = CoefficientDisplay.from_estimator(model, at=(1, 2, 3))
    assert [panel.get_title() for panel in display.axes_] == ["z = 2 mm", "y = -24 mm", "x = 17 mm"]
    image = display.images_[0]
    assert_array_equal(np.ma.filled(image.get_array(), 0), model.coef_[:, :, 3].T)
    assert_allclose(image.get_extent(), (21.5, 6.5, -31.5, -13.5))


def test_the_choice_and_the_search_are_those_of_the_model_inside(samples):
    model = samples[0]
    display = SelectionDisplay.from_estimator(model)
    assert_array_equal(display.scores, model.estimator_.scores_path_)
    assert StartsDisplay.from_estimator(model).n_hits == model.estimator_.starts_.n_hits


def test_confounds_reach_the_model(samples):
    model, images, y, confounds = samples
    display = PredictionDisplay.from_estimator(model, images, y, covariates=confounds)
    assert_array_equal(display.prediction, model.predict(images, confounds=confounds))
    assert PredictionDisplay.from_estimator(model).folds is not None
