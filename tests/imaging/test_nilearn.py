"""Beside nilearn: its own checks of estimators, its plots and its decoders."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from nilearn.decoding import SpaceNetRegressor
from nilearn.image import math_img
from nilearn.plotting import plot_stat_map, view_img

from pyfastr import FasTRClassifier, FasTRRegressor
from pyfastr.datasets import make_nifti_study
from pyfastr.imaging import NiftiClassifier, NiftiRegressor, NiftiTransformer

# nilearn's checks import these, which it does not itself need.
pytest.importorskip("polars")
pytest.importorskip("numpydoc")
from nilearn._utils.estimator_checks import nilearn_check_estimator

EXPECTED = {
    "check_doc_attributes": "what can be derived is a property, so that it is not stored twice",
    "check_tags": "asks for the tags of scikit-learn before 1.6",
    "check_doc_link": "asks for a page of nilearn's own documentation",
    "check_img_estimator_dtypes": "asks for arrays of integers, which no estimator here takes",
    "check_img_estimator_dtype_bool": "asks for arrays of booleans",
    "check_img_estimator_n_elements": "gives matrices to predict, where images are expected",
    "check_img_estimator_verbose": "verbose=1 draws a bar, and only where a person watches",
    "check_decoder_empty_data_messages": "gives surfaces, which are not read",
    "check_decoder_compatibility_mask_image": "sets a parameter `mask`, which is mask_img here",
    "check_decoder_with_surface_data": "gives surfaces, which are not read",
    "check_decoder_with_arrays": "gives matrices to predict, where images are expected",
    "check_decoder_estimator_args": "asks for estimator_args; estimator= has its own parameters",
    "check_verbosity_embedded_masker": "asks for messages of nilearn's maskers",
}
EXPECTED_OF_TRANSFORMER = {
    **EXPECTED,
    "check_set_output": "tables hold matrices, and samples are not flattened here",
    "check_img_estimator_dtypes_transform": "asks for arrays of integers",
    "check_img_estimator_pickle": "gives matrices to inverse_transform",
    "check_img_estimator_dtypes_inverse_transform": "gives matrices to inverse_transform",
}
MODELS = [
    (NiftiRegressor(FasTRRegressor(ridge=1.0, n_init=2, random_state=0)), EXPECTED),
    (NiftiClassifier(FasTRClassifier(ridge=1.0, n_init=2, random_state=0)), EXPECTED),
    (NiftiTransformer(), EXPECTED_OF_TRANSFORMER),
]
PASSED_BY_TRANSFORMER = {"check_img_estimator_n_elements"}


def checks():
    for model, expected in MODELS:
        for estimator, check, name in nilearn_check_estimator([model]):
            fails = name in expected
            if isinstance(model, NiftiTransformer) and name in PASSED_BY_TRANSFORMER:
                fails = False
            marks = [pytest.mark.xfail(reason=expected[name])] if fails else []
            label = f"{type(model).__name__}-{name}"
            yield pytest.param(estimator, check, marks=marks, id=label)


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_checks_of_nilearn(estimator, check):
    check(estimator)


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
