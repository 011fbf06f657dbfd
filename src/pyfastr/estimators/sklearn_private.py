"""What scikit-learn has no public name for: the one place to mend when a version moves it."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._metadata_requests import _routing_enabled as routing_enabled
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_sample_weight

__all__ = [
    "BaseScorer",
    "HasMethods",
    "Interval",
    "StrOptions",
    "check_feature_names_in",
    "check_sample_weight",
    "checks_parameters",
    "routing_enabled",
    "safe_indexing",
]


def check_sample_weight(sample_weight: Any, X: Any, **options: Any) -> Any:
    """Check weights of samples, of which no more than their number is asked for."""
    return _check_sample_weight(sample_weight, np.empty((X.shape[0], 0)), **options)


Method = TypeVar("Method", bound=Callable[..., Any])


def checks_parameters(fit: Method, *, nested: bool = False) -> Method:
    """Let a `fit` check the parameters of its estimator first; and of others in it, if `nested`."""
    checked: Any = _fit_context(prefer_skip_nested_validation=not nested)(fit)
    return checked
