"""nilearn's own checks of estimators, and which of them ask for something else."""

import pytest

from pyfastr import FasTRClassifier, FasTRRegressor
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
    **{name: why for name, why in EXPECTED.items() if name != "check_img_estimator_n_elements"},
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


def checks():
    for model, expected in MODELS:
        for estimator, check, name in nilearn_check_estimator([model]):
            marks = [pytest.mark.xfail(reason=expected[name])] if name in expected else []
            label = f"{type(model).__name__}-{name}"
            yield pytest.param(estimator, check, marks=marks, id=label)


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_checks_of_nilearn(estimator, check):
    check(estimator)
