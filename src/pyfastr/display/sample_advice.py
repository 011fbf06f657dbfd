"""Remarks on the samples of a fit: whether they are enough, and what single ones and slices do."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display import traits
from pyfastr.display.modes import modes_of
from pyfastr.display.remark import Advice

Array = NDArray[Any]

# Samples for each free parameter below which a good fit to them says little.
HARDLY_MORE = 1.25
# Scores of folds that hold out fewer samples, or fewer of a class, are mostly chance.
LEAST_HELD_OUT, LEAST_OF_CLASS = 10, 3
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
        "the training samples. More samples, a coarser grid or fewer terms help."
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


def small_folds(part: Any) -> Iterator[Advice]:
    """Warn of folds that train on too few samples, or hold out too few to be judged by."""
    held_out = getattr(part, "held_out_", None)
    if held_out is None:
        return
    sizes = np.bincount(held_out.folds)
    n_samples, n_free = traits.n_samples(part), traits.n_free(part)
    n_train = None if n_samples is None else n_samples - int(sizes.max())
    if n_samples is not None and n_train is not None and n_train <= n_free < n_samples:
        yield Advice(
            "caution",
            f"Folds train on {n_train} samples, no more than the {n_free} free parameters: their "
            "scores say less than the final fit deserves.",
            "Use more folds (`cv=10`), fewer terms or a coarser grid; with little noise, "
            '`criterion="evidence"` holds none out.',
        )
    yield from _small_scores(part, held_out, sizes)


def _small_scores(part: Any, held_out: Any, sizes: Array) -> Iterator[Advice]:
    """Warn of scores of few samples."""
    least, wanted, of_class = int(sizes.min()), LEAST_HELD_OUT, ""
    if hasattr(part, "classes_"):
        labels = np.unique(held_out.target)
        counts = [
            np.bincount(held_out.folds[held_out.target == own], minlength=len(sizes))
            for own in labels
        ]
        least, wanted = min(int(c.min()) for c in counts), LEAST_OF_CLASS
        of_class = " of a class"
    if least < wanted:
        yield Advice(
            "note",
            f"A fold is scored on {traits.count(least, 'held-out sample')}{of_class}: scores of "
            "single folds are mostly chance.",
            "Judge by all held-out samples together, or use fewer folds or repeated ones "
            "(`sklearn.model_selection.RepeatedKFold`).",
        )


def influential(part: Any) -> Iterator[Advice]:
    """Warn of samples to which the fit bends."""
    design = getattr(part, "design_", None)
    if design is None:
        return
    leverage, mean = design.leverage, design.leverage.mean()
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
    for mode, pair, r in zip(modes_of(part), design.alike, design.correlation, strict=True):
        if r < CORRELATED:
            continue
        first, second = (mode.value(int(slice_)) for slice_ in sorted(pair))
        yield Advice(
            "caution" if r >= SAME else "note",
            f"Slices {first} and {second} of {mode.name} are collinear in what the fit sees of "
            f"them (correlation {_near_one(r)}): their entries can hardly be told apart.",
            "Read such entries together, not one by one, or merge slices; a larger ridge shares "
            "an effect evenly among them.",
        )


def _near_one(r: float) -> str:
    """Write a correlation, and what it does to standard errors where that can be said."""
    if r > ALIKE_TO_ROUNDING:
        return f"above {ALIKE_TO_ROUNDING}"
    return f"{r:.5f}, standard errors {1 / np.sqrt(1 - r**2):.0f} times as large"
