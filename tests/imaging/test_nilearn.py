"""Beside nilearn: its plots, its arithmetic of images and its decoders."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from nilearn.decoding import SpaceNetRegressor
from nilearn.image import math_img
from nilearn.plotting import plot_stat_map, view_img

from pyfastr import FasTRRegressor
from pyfastr.datasets import make_nifti_study
from pyfastr.imaging import NiftiRegressor


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return make_nifti_study(tmp_path_factory.mktemp("study"), random_state=0)


@pytest.fixture(scope="module")
def model(study):
    model = NiftiRegressor(FasTRRegressor(ridge=0.1, threshold=0.2, n_init=8, random_state=0))
    return model.set_params(mask_img=study.mask).fit(study.images, study.scores)


# A warning of NumPy about what nilearn does with masked arrays.
@pytest.mark.filterwarnings("ignore:.*partition.*:UserWarning")
def test_plots_of_nilearn_take_the_coefficient(model, tmp_path):
    display = plot_stat_map(model.coef_img_, bg_img=model.mean_img_, threshold=1e-9)
    display.savefig(tmp_path / "map.png")
    display.close()
    plt.close("all")
    assert (tmp_path / "map.png").stat().st_size > 5000
    view = view_img(model.coef_img_, bg_img=model.mean_img_, threshold=1e-9)
    assert "<html" in view.get_standalone()


def test_images_can_be_reckoned_with(model, study):
    where = math_img("(coef != 0) & (mask == 0)", coef=model.coef_img_, mask=model.mask_img_)
    assert not np.asarray(where.dataobj).any()


@pytest.mark.filterwarnings("ignore")
def test_the_map_is_on_the_grid_of_space_net(model, study):
    peer = SpaceNetRegressor(mask=str(study.mask), max_iter=3, cv=2, l1_ratios=0.5, n_alphas=2)
    peer.fit([str(path) for path in study.images], study.scores)
    np.testing.assert_allclose(peer.coef_img_.affine, model.coef_img_.affine)
    assert peer.coef_img_.shape[:3] == model.coef_img_.shape
