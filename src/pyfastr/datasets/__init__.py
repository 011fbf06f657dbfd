"""Data to try the estimators on."""

from pyfastr.datasets.cmu2008 import fetch_cmu2008, load_cmu2008, make_cmu2008_like
from pyfastr.datasets.nifti import NiftiStudy, make_nifti_study
from pyfastr.datasets.simulation import make_tensor_regression

__all__ = [
    "NiftiStudy",
    "fetch_cmu2008",
    "load_cmu2008",
    "make_cmu2008_like",
    "make_nifti_study",
    "make_tensor_regression",
]
