"""Model files without pickle, and the coefficient for other packages."""

from pyfastr.persistence.errors import ModelFileError
from pyfastr.persistence.export import to_mat, to_tensorly
from pyfastr.persistence.files import load, read_header, save

__all__ = ["ModelFileError", "load", "read_header", "save", "to_mat", "to_tensorly"]
