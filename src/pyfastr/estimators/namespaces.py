"""Arrays of torch, CuPy and alike: samples stay on their device, answers come back to it.

As in scikit-learn, this is so under ``sklearn.set_config(array_api_dispatch=True)``; without it
such arrays are read as arrays of NumPy.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.coefficient import LazyCoefficient
from pyfastr.sources import DeviceSource
from pyfastr.sources.namespaces import (
    describe,
    is_beside,
    is_foreign,
    is_of_one_library,
    is_real,
    to_device,
    to_host,
)

Method = TypeVar("Method", bound=Callable[..., Any])

# What `fit` may be given beside X, in its order.
_OTHERS = ("y", "sample_weight", "covariates")
# Fitted attributes that are arrays of numbers; records of a fit stay on the host.
_MOVED = ("scales_", "covariate_coef_", "scores_path_", "averaged_", "mean_", "scale_")
# One of them at least is there, unless a scaler has nothing to do.
_TELLING = ("scales_", "mean_", "scale_")
_NUMBERS = "biuf"


class DispatchMixin:
    """Estimators that take X on a device: fitted attributes are there, too."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.array_api_support = True
        return tags

    def __sklearn_array_api_convert__(self, converter: Callable[[Any], Any]) -> Any:
        """Let scikit-learn's `move_estimator_to` move this estimator."""
        return _converted(self, converter)


def is_dispatched(X: Any) -> bool:
    """Whether X stays what it is: an array of another library, and scikit-learn dispatches."""
    return is_foreign(X) and bool(get_config()["array_api_dispatch"])


def admit(estimator: Any, X: Any) -> Any:
    """Return an array of another library as samples: where it is, or read by NumPy.

    Parameters
    ----------
    estimator : estimator
        One that works on devices, or on the host alone.
    X : array of another library

    Returns
    -------
    DeviceSource or ndarray
    """
    _check_plain("X", X)
    if not (is_dispatched(X) and isinstance(estimator, DispatchMixin)):
        return _read_by_numpy("X", X)
    if not is_real(X):
        raise ValueError(f"X has dtype {X.dtype}; expected real numbers.")
    return DeviceSource(X)


def on_host(X: Any, **others: Any) -> list[Any]:
    """Return what belongs to the samples as arrays of NumPy, as far as it is of another library.

    As in scikit-learn all follows X. But a library that knows several devices would not mix
    them, so arrays of the library of X are to be on its device.

    Parameters
    ----------
    X : array-like
    **others : array-like or None
        By the names that users know them by.
    """
    return [_follow(X, name, value) for name, value in others.items()]


def fits_arrays(fit: Method) -> Method:
    """Let a `fit` leave its attributes where X is."""

    @wraps(fit)
    def fit_there(self: Any, X: Any, *others: Any, **named: Any) -> Any:
        known = dict(zip(_OTHERS, others, strict=False))
        given = known | named
        here = dict(zip(given, on_host(X, **given), strict=True))
        rest = others[len(_OTHERS) :]
        fit(self, X, *(here[name] for name in known), *rest, **{name: here[name] for name in named})
        settle(self, X, given.get("y"))
        return self

    fit_anywhere: Any = fit_there
    return fit_anywhere


def answers_in_kind(method: Method) -> Method:
    """Let a method that predicts return its numbers where X is."""

    @wraps(method)
    def answer(self: Any, X: Any, covariates: Any = None) -> Any:
        if not isinstance(self, DispatchMixin):
            return method(self, X, covariates)
        check_is_fitted(self)
        check_same_place(self, X, method.__name__)
        found = method(self, X, *on_host(X, covariates=covariates))
        return _moved(found, partial(to_device, like=X)) if is_dispatched(X) else found

    answer_anywhere: Any = answer
    return answer_anywhere


def check_same_place(estimator: Any, X: Any, method: str) -> None:
    """Refuse samples of another library or on another device than those of the fit."""
    fitted = _telling(estimator)
    if not get_config()["array_api_dispatch"] or fitted is None or is_beside(X, fitted):
        return
    name = type(estimator).__name__
    raise ValueError(
        f"X passed to {name}.{method}() is an array {describe(X)}, but {name} was fitted on one "
        f"{describe(fitted)}; both must use the same namespace and device. Convert X, or fit "
        f"{name} on an array like it."
    )


def settle(estimator: Any, X: Any, y: Any = None) -> None:
    """Move the fitted attributes to where X is, and the classes to where y is."""
    if not is_dispatched(X):
        return
    classes = getattr(estimator, "classes_", None)
    vars(estimator).update(vars(_converted(estimator, partial(to_device, like=X))))
    for own in (estimator, getattr(estimator, "best_estimator_", None)):
        if classes is not None and own is not None:
            own.classes_ = to_device(classes, like=y) if is_foreign(y) else classes


def hosted(model: Any) -> Any:
    """Return a fitted model with arrays of NumPy: itself, or a copy of one that is on a device.

    Parameters
    ----------
    model : estimator or Pipeline

    Returns
    -------
    estimator or Pipeline
    """
    own = getattr(model, "__dict__", {})
    if is_foreign(_telling(model)):
        return _converted(model, to_host)
    if "estimator_" in own:
        inner = hosted(model.estimator_)
        return model if inner is model.estimator_ else _copied(model, estimator_=inner)
    before = [step for _, step in own.get("steps", ())]
    after = [hosted(step) for step in before]
    if all(new is old for new, old in zip(after, before, strict=True)):
        return model
    names = [name for name, _ in model.steps]
    return _copied(model, steps=list(zip(names, after, strict=True)))


def placed(model: Any, X: Any) -> Any:
    """Return a fitted model that can predict X: itself, or a copy on the device of X."""
    return _converted(model, partial(to_device, like=X)) if is_dispatched(X) else model


def _converted(estimator: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a copy of a fitted estimator whose arrays are converted."""
    new = _copied(estimator)
    own = vars(new)
    for name in (*_MOVED, "classes_"):
        if own.get(name) is not None:
            own[name] = _moved(own[name], convert)
    if "factors_" in own:
        own["factors_"] = [convert(factor) for factor in own["factors_"]]
    if "_coefficient" in own:
        own["_coefficient"] = LazyCoefficient(own["factors_"], own["scales_"])
    if "best_estimator_" in own:
        own["best_estimator_"] = _converted(own["best_estimator_"], convert)
    return new


def _copied(estimator: Any, **changes: Any) -> Any:
    """Return an estimator of the same attributes, but for some."""
    new = object.__new__(type(estimator))
    vars(new).update(vars(estimator) | changes)
    return new


def _moved(values: Any, convert: Callable[[Any], Any]) -> Any:
    """Convert numbers; labels that are text are of NumPy alone."""
    return values if getattr(values.dtype, "kind", "f") not in _NUMBERS else convert(values)


def _follow(X: Any, name: str, value: Any) -> Any:
    """Return one array that belongs to the samples as an array of NumPy."""
    if not is_foreign(value):
        return value
    _check_plain(name, value)
    if not get_config()["array_api_dispatch"]:
        return _read_by_numpy(name, value)
    if is_foreign(X) and is_of_one_library(value, X) and not is_beside(value, X):
        raise ValueError(
            f"{name} is an array {describe(value)}, but X is one {describe(X)}; expected both on "
            f"one device. Move {name} to X.device, or pass it as an array of NumPy."
        )
    return to_host(value)


def _check_plain(name: str, x: Any) -> None:
    """Refuse tensors of torch that are more than an array."""
    if getattr(x, "requires_grad", False):
        raise ValueError(
            f"{name} is a tensor that requires gradients, but fits and predictions have none; "
            f"expected a tensor without. Pass {name}.detach()."
        )
    layout = str(getattr(x, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise TypeError(
            f"{name} is a tensor of layout {layout}; expected a dense one. Pass {name}.to_dense(), "
            "if there is memory for it."
        )


def _read_by_numpy(name: str, x: Any) -> Any:
    """Return an array without a copy, or say why NumPy cannot read it."""
    try:
        return np.asarray(x)
    except (TypeError, RuntimeError) as error:
        raise TypeError(
            f"{name} is an array {describe(x)} of {x.dtype}, which NumPy cannot read ({error}); "
            "expected one on the host. Pass a copy of NumPy, or let FasTR estimators work on the "
            "device: sklearn.set_config(array_api_dispatch=True)."
        ) from error


def _telling(estimator: Any) -> Any:
    """Return a fitted array that tells where the estimator is, or None."""
    own = getattr(estimator, "__dict__", {})
    return next((own[name] for name in _TELLING if own.get(name) is not None), None)
