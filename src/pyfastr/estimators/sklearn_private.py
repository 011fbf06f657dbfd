"""What scikit-learn has no public name for: the one place to mend when a version moves it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._metadata_requests import _routing_enabled as routing_enabled
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in

__all__ = [
    "BaseScorer",
    "HasMethods",
    "Interval",
    "StrOptions",
    "all_or_nothing",
    "check_feature_names_in",
    "checks_parameters",
    "only_checks_parameters",
    "routing_enabled",
    "safe_indexing",
]


Method = TypeVar("Method", bound=Callable[..., Any])


def checks_parameters(fit: Method, *, nested: bool = False) -> Method:
    """Let a `fit` check the parameters of its estimator first, and change nothing if it fails.

    Parameters of estimators that it is given are checked, too, if `nested`.
    """
    return only_checks_parameters(all_or_nothing(fit), nested=nested)


def only_checks_parameters(fit: Method, *, nested: bool = False) -> Method:
    """Let a `fit` check the parameters of its estimator first."""

    @wraps(fit)
    def apart(*args: Any, **kwargs: Any) -> Any:
        # Ctrl-C between two calls can keep a `with` from ending; what it has set for this context,
        # as how NumPy takes errors, then goes with the context.
        return copy_context().run(fit, *args, **kwargs)

    checked: Any = _fit_context(prefer_skip_nested_validation=not nested)(apart)
    return checked


def all_or_nothing(fit: Method) -> Method:
    """Let a `fit` leave its estimator as it was if there is an error."""

    @wraps(fit)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _all_or_nothing(self):
            return fit(self, *args, **kwargs)

    checked: Any = whole
    return checked


@contextmanager
def _all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was after an error: half of it would be of another fit."""
    before, errors = vars(estimator).copy(), np.geterr()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        # Before NumPy 2 they were not of the context.
        np.seterr(**errors)
        raise
