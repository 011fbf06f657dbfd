"""Which thresholds, ridges and numbers of terms there are to choose from."""

from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from pyfastr.estimators.choice_policy import TermsPolicy
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import terms_needed
from pyfastr.estimators.folds import Split


def checked_grid(
    name: str, values: Any, least: float, bound: float, *, whole: bool = False
) -> list[float]:
    """Return a grid as a list; errors say what is wrong with it."""
    grid = list(values)
    if not grid:
        raise ValueError(f"{name} is empty; expected at least one value to choose from.")
    kind, what = (Integral, "whole numbers") if whole else (Real, "numbers")
    for value in grid:
        if not isinstance(value, kind) or not least <= float(value) < bound:
            raise ValueError(f"{name} has {value!r}; expected {what} in [{least}, {bound}).")
    return [float(value) for value in grid]


def n_train(splits: Sequence[Split]) -> float:
    """Return how many samples the folds train on at most; no folds hold nothing out."""
    return max((len(np.unique(train)) for train, _ in splits), default=np.inf)


def is_blind(data: Data, n_train: float, n_terms: int) -> bool:
    """Whether there are no more samples to train on than free parameters."""
    return bool(n_train <= data.problem.degrees_of_freedom(n_terms).max())


def most_terms(shape: tuple[int, ...], policy: TermsPolicy) -> int:
    """Return how many terms there are to try: no more than any coefficient of the shape needs."""
    return min(policy.most, terms_needed(shape))


def further_terms(data: Data, policy: TermsPolicy) -> Iterator[int]:
    """Yield numbers of terms with at most half as many free parameters as samples; 1 at least.

    The best of many supports of more terms has evidence by chance.
    """
    problem = data.problem
    for terms in range(1, most_terms(data.source.shape[1:], policy) + 1):
        if terms > 1 and 2 * problem.degrees_of_freedom(terms).max() > problem.n_effective.min():
            return
        yield terms
