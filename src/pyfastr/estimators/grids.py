"""Which thresholds, ridges and numbers of terms there are to choose from."""

from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import terms_needed
from pyfastr.estimators.folds import Split

# Thresholds and ridges are relative, so they serve every data set, from exact data to labels that
# are mostly noise. The highest threshold leaves hardly more than one entry a mode; the lowest keeps
# hundreds of entries that are known to four digits.
THRESHOLDS = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.55, 0.9)
# Labels tell so little that higher thresholds, which leave one entry a mode, would win by chance.
LABEL_THRESHOLDS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.35, 0.55)
RIDGES = (1e-5, 0.01, 0.1, 1.0, 10.0)
# Fewer samples than free parameters are fitted exactly by a ridge of next to nothing: in scores of
# few samples it wins by chance if at all.
BLIND_RIDGES = (0.01, 0.1, 0.3, 1.0, 10.0)
# Most models of a grid stand still after a few sweeps; those that never do are scored as they are.
# With fewer samples than free parameters hardly any does, and more sweeps are no better.
FOLD_SWEEPS, BLIND_SWEEPS = 15, 6
# Models that gain a term have made sweeps with each of the others, and go on from there. More
# sweeps show no better how many terms pay.
GROWTH_SWEEPS = 4
# More terms than so many are not tried.
MOST_TERMS = 8


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


def most_terms(shape: tuple[int, ...]) -> int:
    """Return how many terms there are to try: no more than any coefficient of the shape needs."""
    return min(MOST_TERMS, terms_needed(shape))


def further_terms(data: Data) -> Iterator[int]:
    """Yield numbers of terms with at most half as many free parameters as samples; 1 at least.

    The best of many supports of more terms has evidence by chance.
    """
    problem = data.problem
    for terms in range(1, most_terms(data.source.shape[1:]) + 1):
        if terms > 1 and 2 * problem.degrees_of_freedom(terms).max() > problem.n_effective.min():
            return
        yield terms
