"""Remarks on the samples of a fit: whether they are enough, and what single ones and slices do."""

from collections.abc import Iterator
from math import ceil
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display import traits
from pyfastr.display.modes import modes_of
from pyfastr.display.remark import Advice
from pyfastr.estimators.folds import HeldOut

Array = NDArray[Any]

# Samples for each free parameter below which a good fit to them says little.
HARDLY_MORE = 1.25
# Scores of folds that hold out fewer samples, or fewer of a class, are mostly chance.
LEAST_HELD_OUT, LEAST_OF_CLASS = 10, 3
# The number of folds that is advised, and the fewest samples that R² of one needs.
USUAL_FOLDS, LEAST_FOR_SCORE = 10, 2
# A sample stands out if it decides so much of its own fitted value, and so many times the mean.
HIGH_LEVERAGE, TIMES_MEAN, MOST_NAMED = 0.5, 3.0, 5
# Standard errors of entries grow by 1 / sqrt(1 - r²) with the correlation r of two slices: 7 and
# 22 times.
CORRELATED, SAME, ALIKE_TO_ROUNDING = 0.99, 0.999, 0.99999


def few_samples(part: Any) -> Iterator[Advice]:
    """Warn where any data could be fitted, or nearly so."""
    n_samples, n_free = traits.n_samples(part), traits.n_free(part)
    if n_samples is None or n_samples > HARDLY_MORE * n_free:
        return
    choose = f"Choose ridge and threshold with {traits.twin_name(part)}. "
    do = (
        f"{'' if traits.is_choice(part) else choose}Trust held-out scores only, never the fit to "
        f"the training samples. {_either(['More samples', *_fewer_parameters(part)])} help."
    )
    if n_samples > n_free:
        what = f"{n_samples} samples are hardly more than the {n_free} numbers fitted to them."
        yield Advice("note", what, do)
        return
    yield Advice(
        "caution",
        f"{n_samples} samples are no more than the {n_free} free parameters, which can fit them "
        "whatever they are.",
        do,
    )


def _fewer_parameters(part: Any) -> list[str]:
    """Name the ways to fewer free parameters."""
    return ["a coarser grid", *(["fewer terms"] if traits.n_terms_of(part) > 1 else [])]


def _either(ways: list[str]) -> str:
    """Write a list of which one will do."""
    *first, last = ways
    return f"{', '.join(first)} or {last}" if first else last


def small_folds(part: Any) -> Iterator[Advice]:
    """Warn of folds that train on too few samples, or hold out too few to be judged by."""
    held_out = traits.held_out(part)
    if held_out is None:
        return
    sizes = np.unique(held_out.folds, return_counts=True)[1]
    # In files of earlier versions their number may not be known.
    n_samples, n_free = traits.n_samples(part) or 0, traits.n_free(part)
    n_train = n_samples - int(sizes.max())
    is_blind = n_train <= n_free < n_samples
    if is_blind:
        yield Advice(
            "caution",
            f"Folds train on {n_train} samples, no more than the {n_free} free parameters: their "
            "scores say less than the final fit deserves.",
            _ways_to_see(part, n_samples, held_out),
        )
    yield from _small_scores(part, held_out, may_be_fewer=not is_blind and len(sizes) > 2)


def _ways_to_see(part: Any, n_samples: int, held_out: HeldOut) -> str:
    """Say how folds train on more samples than there are free parameters, as far as they can."""
    further = _further_folds(part, n_samples, held_out)
    # A splitter has a number of its own, and perhaps groups that bound it.
    asked = f" (`cv={further}`)" if part.cv is None or isinstance(part.cv, Integral) else ""
    ways = [*([f"more folds{asked}"] if further else []), *_fewer_parameters(part)]
    instead = '; with little noise, `criterion="evidence"` holds none out'
    return f"Use {_either(ways)}{instead if _takes_evidence(part, n_samples) else ''}."


def _further_folds(part: Any, n_samples: int, held_out: HeldOut) -> int:
    """Return how many folds would train on enough samples; 0 if so many cannot be scored."""
    # Most samples that a fold can do without.
    spare = n_samples - traits.n_free(part) - 1
    if spare < 1:
        return 0
    n_folds, most = len(np.unique(held_out.folds)), _most_folds(part, n_samples, held_out)
    wanted = max(n_folds + 1, min(USUAL_FOLDS, most), ceil(n_samples / spare))
    return wanted if wanted <= most else 0


def _most_folds(part: Any, n_samples: int, held_out: HeldOut) -> int:
    """Return how many folds have a score: each needs samples of both classes, or a few."""
    if not hasattr(part, "classes_"):
        return n_samples // LEAST_FOR_SCORE
    first = np.unique(held_out.samples, return_index=True)[1]
    return int(np.unique(held_out.target[first], return_counts=True)[1].min())


def _takes_evidence(part: Any, n_samples: int) -> bool:
    """Tell whether the choice could be made by evidence: with its loss, refit and terms."""
    most = max(1, n_samples // traits.n_free_of(part, 1))
    grows = isinstance(part.n_terms, str)
    return part.loss == "squared" and bool(part.refit) and (grows or np.max(part.n_terms) <= most)


def _small_scores(part: Any, held_out: HeldOut, *, may_be_fewer: bool) -> Iterator[Advice]:
    """Warn of scores of few samples."""
    folds = np.unique(held_out.folds, return_inverse=True)[1]
    labels, wanted, of_class, kind = np.zeros(len(folds)), LEAST_HELD_OUT, "", "RepeatedKFold"
    if hasattr(part, "classes_"):
        labels, wanted, of_class = held_out.target, LEAST_OF_CLASS, " of a class"
        kind = "RepeatedStratifiedKFold"
    counts = [np.bincount(folds[labels == own], minlength=folds.max() + 1) for own in set(labels)]
    least = min(int(own.min()) for own in counts)
    if least < wanted:
        yield Advice(
            "note",
            f"A fold is scored on {traits.count(least, 'held-out sample')}{of_class}: scores of "
            "single folds are mostly chance.",
            "Judge by all held-out samples together, or use "
            f"{'fewer folds or ' * may_be_fewer}repeated ones "
            f"(`sklearn.model_selection.{kind}`).",
        )


def influential(part: Any) -> Iterator[Advice]:
    """Warn of samples to which the fit bends."""
    design = getattr(part, "design_", None)
    if design is None:
        return
    leverage, mean = design.leverage, traits.mean_leverage(part)
    high = np.flatnonzero((leverage >= HIGH_LEVERAGE) & (leverage >= TIMES_MEAN * mean))
    if not len(high):
        return
    high = high[np.argsort(-leverage[high])]
    names = ", ".join(map(str, high[:MOST_NAMED])) + (", …" if len(high) > MOST_NAMED else "")
    who = f"Sample {names} decides" if len(high) == 1 else f"Samples {names} each decide"
    yield Advice(
        "caution",
        f"{who} {'up to ' * (len(high) > 1)}{leverage[high[0]]:.0%} of the value fitted to it, "
        f"where {mean:.0%} is the mean: the fit bends to such samples.",
        "Look at them (counted from 0): outliers, other units, artefacts? Fit without them and "
        "compare the coefficients.",
    )


def look_alike(part: Any) -> Iterator[Advice]:
    """Warn of slices whose entries cannot be told apart."""
    design = getattr(part, "design_", None)
    if design is None:
        return
    # A choice has its ridge of what predicts best.
    ridge = "; a larger ridge shares an effect evenly among them"
    shared = "" if traits.is_choice(part) else ridge
    for mode, pair, r in zip(modes_of(part), design.alike, design.correlation, strict=True):
        if r < CORRELATED:
            continue
        first, second = (mode.value(int(slice_)) for slice_ in sorted(pair))
        yield Advice(
            "caution" if r >= SAME else "note",
            f"Slices {first} and {second} of {mode.name} are collinear in what the fit sees of "
            f"them (correlation {_near_one(r)}): their entries can hardly be told apart.",
            f"Read such entries together, not one by one, or merge slices{shared}.",
        )


def _near_one(r: float) -> str:
    """Write a correlation, and what it does to standard errors where that can be said."""
    if r > ALIKE_TO_ROUNDING:
        return f"above {ALIKE_TO_ROUNDING}"
    return f"{r:.5f}, standard errors {1 / np.sqrt(1 - r**2):.0f} times as large"
