"""The coefficient for other packages."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import savemat
from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.atomic import replacing
from pyfastr.estimators.namespaces import hosted
from pyfastr.estimators.outputs import check_one_output
from pyfastr.persistence.document import inner_model
from pyfastr.persistence.errors import unwritable


def to_tensorly(model: Any) -> Any:
    r"""Return the coefficient as a CP tensor of tensorly.

    .. math:: W = \sum_r \sigma_r\, w^1_r \circ \dots \circ w^M_r

    Parameters
    ----------
    model : estimator
        Fitted, with factors; of a Pipeline the last step, whose units are those of scaled X.

    Returns
    -------
    tensorly.cp_tensor.CPTensor
        Weights are `scales_`, factors are copies of `factors_`.

    Examples
    --------
    >>> import numpy as np
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.persistence import to_tensorly
    >>> X, y = make_tensor_regression(60, (6, 5), random_state=0)
    >>> model = FasTRRegressor(random_state=0).fit(X, y)
    >>> bool(np.allclose(to_tensorly(model).to_tensor(), model.coef_))
    True
    """
    linear = _linear(model)
    check_one_output(linear, "A CP tensor is")
    try:
        tensorly = import_module("tensorly.cp_tensor")
    except ImportError as error:
        raise ImportError(
            "A CP tensor needs tensorly, which is not installed. Run: pip install tensorly"
        ) from error
    return tensorly.CPTensor((linear.scales_.copy(), [factor.copy() for factor in linear.factors_]))


def to_mat(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write the coefficient and what it is made of to a MATLAB file.

    It has the variables ``coef``, ``factors`` (a cell for each mode), ``lambda`` (the scales),
    ``intercept``, ``covariate_coef`` and ``classes`` where there are any, and the struct
    ``parameters``. In the Tensor Toolbox the coefficient is ``ktensor(lambda, factors)``. With
    several outputs each of them has a leading axis of outputs.

    Parameters
    ----------
    model : estimator
        Fitted, with factors; of a Pipeline the last step, whose units are those of scaled X.
    path : str or path-like
        An existing file is replaced, once the new one is complete.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.persistence import to_mat
    >>> from scipy.io import loadmat
    >>> X, y = make_tensor_regression(60, (6, 5), random_state=0)
    >>> model = FasTRRegressor(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     variables = loadmat(to_mat(model, Path(folder) / "model.mat"))
    >>> variables["coef"].shape, variables["factors"].shape
    ((6, 5), (2, 1))
    """
    target, variables = Path(path), _variables(_linear(model))
    try:
        with replacing(target) as file:
            savemat(file, variables, oned_as="column", long_field_names=True)
    except OSError as error:
        raise unwritable(target, error) from error
    return target


def _linear(model: Any) -> Any:
    """Return the fitted estimator that has the factors."""
    linear = inner_model(model)
    if not hasattr(type(linear), "coef_"):
        raise TypeError(
            f"model is a {type(model).__name__}, which has no coefficient; expected a FasTR "
            "estimator, or a Pipeline that ends in one."
        )
    check_is_fitted(linear)
    return hosted(linear)


def _variables(linear: Any) -> dict[str, Any]:
    """Return the variables of the file."""
    variables = {
        "coef": linear.coef_,
        "factors": _cells(linear.factors_),
        "lambda": linear.scales_,
        "intercept": linear.intercept_,
        "parameters": {n: _matlab(v) for n, v in linear.get_params(deep=False).items()},
    }
    if hasattr(linear, "covariate_coef_"):
        variables["covariate_coef"] = linear.covariate_coef_
    if hasattr(linear, "classes_"):
        variables["classes"] = _cells([_matlab(label) for label in linear.classes_.tolist()])
    return variables


def _cells(values: list[Any]) -> Any:
    """Return a column of cells."""
    cells = np.empty((len(values), 1), dtype=object)
    for row, value in enumerate(values):
        cells[row, 0] = value
    return cells


def _matlab(value: Any) -> Any:
    """Return a parameter as MATLAB can have it: a number, text, cells; else as text."""
    if value is None:
        return np.empty((0, 0))
    if isinstance(value, bool | int | float | str | np.number | np.bool_):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return value
    if isinstance(value, list | tuple) and value:
        return _cells([_matlab(item) for item in value])
    return repr(value)
