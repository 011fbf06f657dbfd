"""What a fitted model can become: a file, a report, an object of another package.

These belong to rooms above the estimators, which load them by name when they are asked for.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.extras import require
from pyfastr.sources.namespaces import to_host


class SavedMixin:
    """Model files."""

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to a file that `pyfastr.load` reads.

        The file holds parameters and fitted attributes, no code: it is safe to load from others.
        After a choice by folds it also holds the targets of the training samples (`held_out_`).

        Parameters
        ----------
        path : str or Path
            An existing file is replaced, at once and only when the new one is complete.

        Returns
        -------
        Path
        """
        saved: Path = import_module("pyfastr.persistence").save(self, path)
        return saved


class OutletMixin(SavedMixin):
    """Files, reports and objects of other packages, for estimators with factors."""

    coef_: Any
    tensor_shape_in_: tuple[int, ...]

    def generate_report(
        self, X: Any = None, y: Any = None, *, covariates: Any = None, title: str | None = None
    ) -> Any:
        """Describe the fitted model in one page of HTML with an interactive view of `coef_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM), optional
            Samples that had no part in the fit; the page then tells how well they are predicted.
        y : array-like of shape (n_samples,), optional
            Their responses.
        covariates : array-like of shape (n_samples, n_covariates), optional
        title : str, optional

        Returns
        -------
        pyfastr.display.Report
            Shown in notebooks; `save_as_html` and `open_in_browser` show it elsewhere.
        """
        report = import_module("pyfastr.display.report").model_report
        return report(self, X=X, y=y, covariates=covariates, title=title)

    def diagnose(self) -> Any:
        """Say in plain words what to know of the fitted model before using it, and what to do.

        It looks at the number of samples beside the free parameters, folds, starts that disagree,
        convergence, ends of grids, emptied modes, slices that cannot be told apart, and samples
        that decide much by themselves.

        Returns
        -------
        pyfastr.display.Diagnosis
            A sequence of remarks, the gravest first, that prints itself with what was `measured`.
        """
        return import_module("pyfastr.display.diagnosis").diagnose(self)

    def to_tensorly(self) -> Any:
        """Return the coefficient as a CP tensor of tensorly.

        Returns
        -------
        tensorly.cp_tensor.CPTensor
            Of `scales_` and `factors_`.
        """
        return import_module("pyfastr.persistence").to_tensorly(self)

    def to_mat(self, path: str | Path) -> Path:
        """Write the coefficient and its factors to a MATLAB file.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Path
        """
        written: Path = import_module("pyfastr.persistence").to_mat(self, path)
        return written

    def to_xarray(self) -> Any:
        """Return the coefficient with the names and coordinates that X had.

        Returns
        -------
        xarray.DataArray
            Modes are called mode_0, mode_1, ... if X was not a DataArray. Of several outputs or
            more than two classes it has a first dimension "output" or "class".
        """
        check_is_fitted(self)
        xarray = require("xarray", "labels", "A labelled coefficient")
        coef = to_host(self.coef_)
        n_modes = len(self.tensor_shape_in_)
        names = getattr(self, "mode_names_in_", [f"mode_{m}" for m in range(n_modes)])
        coordinates = getattr(self, "mode_coords_in_", [None] * len(names))
        known = {n: c for n, c in zip(names, coordinates, strict=True) if c is not None}
        if coef.ndim > n_modes:
            first = "class" if hasattr(self, "classes_") else "output"
            names = (first, *names)
            known[first] = getattr(self, "classes_", np.arange(len(coef)))
        return xarray.DataArray(coef, dims=tuple(names), coords=known, name="coef")
