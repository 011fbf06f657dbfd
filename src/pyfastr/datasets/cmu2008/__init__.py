"""CMU2008, the functional MRI data of the paper's Table 3."""

from pyfastr.datasets.cmu2008.load import load_cmu2008

__all__ = ["load_cmu2008"]
