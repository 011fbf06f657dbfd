"""Brain images in, coefficient images out."""

from pyfastr.imaging.estimators import NiftiClassifier, NiftiRegressor
from pyfastr.imaging.transformer import NiftiTransformer

__all__ = ["NiftiClassifier", "NiftiRegressor", "NiftiTransformer"]
