"""Folds of the samples, as scikit-learn makes them."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)
from sklearn.utils import check_random_state

from pyfastr.estimators.data import Data
from pyfastr.estimators.folds import Split
from pyfastr.estimators.reading import check_as_many, first_line

Array = NDArray[Any]


def make_splits(
    cv: Any, data: Data, y: Any, groups: dict[str, Any], *, classify: bool, random_state: Any
) -> list[Split]:
    """Return the folds; an integer shuffles, and keeps classes in balance and groups whole."""
    n_samples = data.source.shape[0]
    counts = np.ones(n_samples, bool) if data.weights is None else data.weights > 0
    given = cv = 5 if cv is None else cv
    if groups.get("groups") is not None:
        check_as_many("groups", len(groups["groups"]), n_samples)
    try:
        if isinstance(cv, Integral):
            cv = _splitter(int(cv), classify, groups.get("groups") is not None, random_state)
        cv = check_cv(cv, y, classifier=classify)
        splits = list(cv.split(np.zeros((n_samples, 1)), y, **groups))
    except (AttributeError, TypeError, ValueError) as error:
        beside = " by these groups" if groups.get("groups") is not None else ""
        raise ValueError(
            f"cv is {given!r}, which cannot split these {n_samples} samples{beside}: "
            f"{first_line(error)}; expected a number of folds, a splitter of scikit-learn, or a "
            "list of (train, test), that suits them."
        ) from error
    splits = [
        (_numbers(train, n_samples, fold), _numbers(test, n_samples, fold))
        for fold, (train, test) in enumerate(splits)
    ]
    if not splits:
        raise ValueError(f"cv is {given!r}, which has no folds; expected at least one.")
    for fold, (train, test) in enumerate(splits):
        n_train = int(counts[np.unique(train)].sum())
        if not len(test) or n_train < 2:
            raise ValueError(
                f"cv gives fold {fold} {n_train} training samples that count and {len(test)} "
                "held-out samples; expected at least 2 and 1."
            )
    return splits


def _numbers(samples: Any, n_samples: int, fold: int) -> Array:
    """Return the numbers of samples, which may be given as a mask."""
    given = np.asarray(samples)
    if given.dtype == bool and given.shape == (n_samples,):
        return np.flatnonzero(given)
    if given.size == 0:
        return np.empty(0, int)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(
            f"cv gives fold {fold} samples of type {given.dtype} and shape {given.shape}; expected "
            f"a list of their numbers, or a mask of {n_samples}."
        )
    if given.min() < 0 or given.max() >= n_samples:
        raise ValueError(
            f"cv gives fold {fold} the samples {given.min()} to {given.max()}; expected numbers "
            f"from 0 to {n_samples - 1}."
        )
    return given


def _splitter(n_splits: int, classify: bool, grouped: bool, random_state: Any) -> Any:
    """Return shuffled folds, stratified for classes, that keep groups whole if there are any."""
    kinds = {
        (False, False): KFold,
        (False, True): GroupKFold,
        (True, False): StratifiedKFold,
        (True, True): StratifiedGroupKFold,
    }
    seed = check_random_state(clone(random_state, safe=False)).randint(2**31)
    return kinds[classify, grouped](n_splits, shuffle=True, random_state=seed)
