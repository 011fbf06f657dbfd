"""Names that come with the data: of modes and their coordinates, and of covariates."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.estimators.warning import warn

Array = NDArray[Any]


def record_modes(estimator: Any, X: Any) -> None:
    """Keep names and coordinates of the modes of an xarray DataArray; other X have none."""
    for attribute in ("mode_names_in_", "mode_coords_in_"):
        estimator.__dict__.pop(attribute, None)
    if _is_labelled(X):
        estimator.mode_names_in_ = _names(X)
        estimator.mode_coords_in_ = _coordinates(X)


def check_modes(estimator: Any, X: Any) -> None:
    """Refuse a DataArray whose modes are not those of the fit."""
    expected = getattr(estimator, "mode_names_in_", None)
    if expected is None or not _is_labelled(X):
        return
    if _names(X) != tuple(expected):
        raise ValueError(
            f"X has dimensions {_names(X)} after the first, but {type(estimator).__name__} was "
            f"fitted on {tuple(expected)}; expected the same in the same order. Use X.transpose."
        )
    pairs = zip(expected, estimator.mode_coords_in_, _coordinates(X), strict=True)
    for name, fitted, given in pairs:
        if fitted is not None and given is not None and not _are_equal(fitted, given):
            raise ValueError(
                f"X has other coordinates along {name!r} than {type(estimator).__name__} was "
                "fitted on; expected the same. Use X.sel, X.reindex or X.interp."
            )


def _are_equal(one: Array, other: Array) -> bool:
    """Whether coordinates are the same; what is missing in both is."""
    floats = one.dtype.kind == other.dtype.kind == "f"
    return np.array_equal(one, other, equal_nan=floats)


def _is_labelled(X: Any) -> bool:
    """Whether X is a DataArray of xarray, told by what it offers: xarray need not be there."""
    return hasattr(X, "dims") and hasattr(X, "coords") and hasattr(X, "to_dataset")


def _names(X: Any) -> tuple[str, ...]:
    return tuple(str(name) for name in X.dims[1:])


def _coordinates(X: Any) -> list[Array | None]:
    """Return the coordinates along each mode, None where there are none."""
    return [np.asarray(X.coords[d].values) if d in X.coords else None for d in X.dims[1:]]


def covariate_names(covariates: Any) -> list[str] | None:
    """Return the names of the columns of a data frame, or of a series; None if there are none.

    Columns that are numbered have no names, as in scikit-learn.
    """
    names = list(getattr(covariates, "columns", [getattr(covariates, "name", None)]))
    return names if all(isinstance(name, str) for name in names) else None


def record_covariates(estimator: Any, covariates: Any) -> None:
    """Keep the names of the covariates, if they have any."""
    estimator.__dict__.pop("covariate_names_in_", None)
    names = covariate_names(covariates)
    if names is not None:
        estimator.covariate_names_in_ = np.array(names, dtype=object)


def check_covariate_names(estimator: Any, covariates: Any) -> None:
    """Refuse columns of other names or in another order than those of the fit."""
    fitted = getattr(estimator, "covariate_names_in_", None)
    given = covariate_names(covariates)
    if fitted is None or covariates is None:
        return
    if given is None:
        warn(
            f"covariates has no names, but {type(estimator).__name__} was fitted with columns "
            f"{fitted.tolist()}: they are taken to be in this order."
        )
    elif given != fitted.tolist():
        raise ValueError(
            f"covariates has columns {given}, but {type(estimator).__name__} was fitted with "
            f"{fitted.tolist()}; expected the same names in the same order. "
            f"Use covariates[{fitted.tolist()}]."
        )
