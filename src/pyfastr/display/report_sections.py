"""What stands in the sections of a model's report."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from pyfastr.display import traits
from pyfastr.display.advice import advice
from pyfastr.display.code_text import code_for
from pyfastr.display.convergence import ConvergenceDisplay
from pyfastr.display.diagnosis import measured
from pyfastr.display.factors import FactorsDisplay
from pyfastr.display.methods_text import citation, methods_text
from pyfastr.display.modes import modes_of
from pyfastr.display.performance import (
    Card,
    Given,
    performance_card,
    performance_text,
    predict_given,
)
from pyfastr.display.pictures import Picture, draw
from pyfastr.display.prediction import PredictionDisplay
from pyfastr.display.roc import RocDisplay
from pyfastr.display.selection import SelectionDisplay
from pyfastr.display.starts import StartsDisplay
from pyfastr.display.viewer import make_viewer
from pyfastr.estimators.data import Data

_PACKAGES = ("numpy", "scipy", "scikit-learn")
_COLOURS = " Orange raises it, blue lowers it, and entries without colour are exactly zero."
_FACTORS = (
    "The coefficient is the outer product of these vectors, one for each mode, times a scale{sum}. "
    "Hollow marks are exactly zero. Only products are determined: two vectors may change their "
    "signs together."
)
_SCALED = (
    "The model is the last step of a pipeline, so the coefficient is in units of what the steps "
    "before it return ({steps}), not of X as it was given."
)


@dataclass(frozen=True)
class Drawn:
    """A section around a drawing."""

    name: str
    title: str
    text: Sequence[str]
    picture: Picture


def page_values(
    model: Any, part: Any, X: Any, y: Any, covariates: Any, background: Any, mask: Any
) -> dict[str, Any]:
    """Gather all that the template of a model's report asks for.

    Parameters
    ----------
    model : estimator or Pipeline
    part : estimator
        The one with the coefficient.
    X, y, covariates : array-like or None
        Samples to predict.
    background, mask : array-like or None

    Returns
    -------
    dict
    """
    given = None if X is None else predictions_of(model, part, X, y, covariates)
    fingerprint = getattr(part, "fingerprint_", "")
    return {
        "kicker": "pyfastr model report",
        "default_title": f"{type(part).__name__}, {traits.shape_text(part.coef_.shape)}",
        "lead": _lead(part),
        "cards": [performance_card(part, given), *_cards(part, mask)],
        "advice": advice(model),
        "measured": list(measured(model, part)),
        "performance": {
            "text": performance_text(model, part, given),
            "picture": _performance_picture(part, given),
        },
        "coefficient": {"text": list(_coefficient_text(model, part))},
        "viewer": make_viewer(model, part, background, mask),
        "drawn": list(_drawn(model, part)),
        "methods": methods_text(model, part),
        "citation": citation(),
        "code": code_for(model, part, fingerprint=fingerprint),
        "facts": list(_facts(model, part)),
    }


def _lead(part: Any) -> str:
    """Say in a sentence what was fitted."""
    n = traits.n_samples(part)
    samples = "samples" if n is None else traits.count(n, "sample")
    kind = "Classification" if is_classifier(part) else "Regression"
    return (
        f"{kind} of {samples} of shape {traits.shape_text(part.coef_.shape)} by a coefficient of "
        f"{traits.count(len(part.scales_), 'unit-rank term')}.{_chosen(part)}"
    )


def _chosen(part: Any) -> str:
    """Say what was chosen and why, where the fit tells."""
    choice = getattr(part, "choice_", "")
    return f" Chosen: {choice}" if choice else ""


def _cards(part: Any, mask: Any) -> Iterator[Card]:
    """Yield what was chosen or set, and what came out."""
    if traits.is_choice(part):
        how = "chosen by folds" if part.criterion == "cv" else "chosen by evidence"
        thresholds, ridges = (len(traits.grid_of(part, name)) for name in ("threshold", "ridge"))
        yield Card("Threshold λ", traits.number(part.threshold_), f"{how}, of {thresholds}")
        yield Card("Ridge ε", traits.number(part.ridge_), f"{how}, of {ridges}")
    else:
        yield Card("Threshold λ", _set_threshold(part), "set beforehand")
        yield Card("Ridge ε", traits.number(part.ridge), "set beforehand")
    seen = part.coef_ if mask is None else part.coef_[np.asarray(mask, dtype=bool)]
    n_nonzero, size = int(np.count_nonzero(seen)), seen.size
    yield Card("Entries not zero", f"{n_nonzero:,}", f"of {size:,}, {n_nonzero / size:.1%}")
    n = traits.n_samples(part)
    if n is not None:
        yield Card("Samples", f"{n:,}", f"for {traits.n_free(part):,} free parameters")


def _set_threshold(part: Any) -> str:
    return part.threshold if isinstance(part.threshold, str) else traits.number(part.threshold)


def predictions_of(model: Any, part: Any, X: Any, y: Any, covariates: Any) -> Given:
    """Predict what was given, and see whether the model was fitted to it."""
    given = predict_given(model, part, X, y, covariates, seen=False)
    if len(given.target) != traits.n_samples(part):
        return given
    target = 2.0 * given.target - 1 if is_classifier(part) else given.target
    fingerprint = fingerprint_of(model, part, X, target, covariates)
    seen = fingerprint == getattr(part, "fingerprint_", None)
    return Given(given.target, given.prediction, seen)


def fingerprint_of(model: Any, part: Any, X: Any, target: Any, covariates: Any) -> str:
    """Return what data would be known by if the model had been fitted to them.

    Parameters
    ----------
    model : estimator or Pipeline
    part : estimator
    X : array-like of shape (n_samples, p1, ..., pM)
    target : ndarray of shape (n_samples,) or (n_outputs, n_samples)
        Classes as -1 and 1.
    covariates : array-like or None

    Returns
    -------
    str
    """
    before = getattr(model, "steps", [])[:-1]
    values, probe = model[:-1].transform(X) if before else X, SimpleNamespace()
    Data.check(probe, values, target, None, covariates, fit_intercept=part.fit_intercept)
    return str(probe.fingerprint_)


def _performance_picture(part: Any, given: Given | None) -> Picture | None:
    """Draw predictions against the truth: of samples given, else of those held out by folds."""
    shown = given if given is not None and not given.seen else getattr(part, "held_out_", None)
    if shown is None or (is_classifier(part) and len(np.unique(shown.target)) < 2):
        return None
    whose = "samples given to this report" if shown is given else "held-out samples of all folds"
    pair = (shown.target, shown.prediction, getattr(shown, "folds", None))
    if is_classifier(part):
        positive = str(part.classes_[1])
        alt = f"Receiver operating characteristic of the {whose}."
        return draw(
            "roc", alt, lambda axes: RocDisplay(*pair, positive=positive).plot(axes), size=(4, 4)
        )
    alt = f"Observed against predicted response of the {whose}."
    return draw("prediction", alt, lambda axes: PredictionDisplay(*pair).plot(axes), size=(4, 4))


def _coefficient_text(model: Any, part: Any) -> Iterator[str]:
    """Say what the entries mean."""
    towards = "the predicted response"
    if is_classifier(part):
        towards = f"the decision for class {part.classes_.tolist()[1]!r}"
    elif traits.is_of_counts(part):
        towards = "the logarithm of the predicted count"
    yield (
        f"An entry says how {towards} changes when that entry of a sample grows by one, all else "
        "unchanged." + _COLOURS * (part.coef_.ndim > 1)
    )
    before = [type(step).__name__ for _, step in getattr(model, "steps", [])[:-1]]
    if before:
        yield _SCALED.format(steps=", ".join(before))
    if part.coef_.ndim == 1:
        yield "Samples are vectors, so the factor drawn below, times its scale, is the coefficient."


def _drawn(model: Any, part: Any) -> Iterator[Drawn]:
    """Yield the sections around drawings that this model has."""
    yield _factors(model, part)
    if traits.has_scores(part) and traits.n_points(part) > 1:
        yield _selection(model, part)
    if getattr(part, "starts_", None) is not None and part.starts_.n_polished > 1:
        yield _starts(model)
    if hasattr(part, "history_") and len(part.history_["loss"]) > 1:
        yield _convergence(model, part)


def _factors(model: Any, part: Any) -> Drawn:
    names = ", ".join(mode.name for mode in modes_of(model))
    text = _FACTORS.format(sum="; terms are summed" if len(part.scales_) > 1 else "")
    if part.coef_.ndim == 1:
        text = "Hollow marks are exactly zero."
    picture = draw(
        "factors",
        f"Entries of the factors of {names}.",
        lambda axes: FactorsDisplay.from_estimator(model, axes=axes),
        n_panels=len(part.factors_),
    )
    return Drawn("factors", "Factors", [text], picture)


def _selection(model: Any, part: Any) -> Drawn:
    text = (
        f"Mean held-out {traits.score_name(part)} of every point of the grid. The ring is the "
        f"choice: threshold {traits.number(part.threshold_)}, ridge {traits.number(part.ridge_)}, "
        f"{traits.count(part.n_terms_, 'term')}. The band around its line is one standard error "
        "over the folds."
    )
    alt = "Mean score of every threshold and ridge, with the choice marked."
    has_lines = max(len(traits.grid_of(part, name)) for name in ("threshold", "ridge")) > 1
    picture = draw(
        "selection",
        alt,
        lambda axes: SelectionDisplay.from_estimator(model, axes=axes),
        n_panels=len(traits.grid_of(part, "n_terms")) if has_lines else 1,
        size=(5.0, 3.6),
    )
    return Drawn("choice", "How parameters were chosen", [text], picture)


def _starts(model: Any) -> Drawn:
    text = (
        "A fit may have many local solutions, so it is begun from many places, and the best one is "
        "kept. The more starts agree on it, the likelier it is the best there is."
    )
    alt = "What the solution of every start leaves, penalty included, over that of the best."
    picture = draw(
        "starts", alt, lambda axes: StartsDisplay.from_estimator(model, ax=axes), size=(5.0, 3.6)
    )
    return Drawn("starts", "Agreement of the starts", [text], picture)


def _convergence(model: Any, part: Any) -> Drawn:
    ended = "ended by `tol`" if part.converged_ else "were cut short by `max_iter`"
    text = f"The {part.n_iter_} sweeps from the best start {ended}."
    alt = "Loss and relative change of the coefficient in every sweep."
    picture = draw(
        "convergence",
        alt,
        lambda axes: ConvergenceDisplay.from_estimator(model, axes=axes),
        n_panels=2,
    )
    return Drawn("convergence", "Convergence", [text], picture)


def _facts(model: Any, part: Any) -> Iterator[tuple[str, str]]:
    """Yield the facts of the fit for the table at the end."""
    from pyfastr import __version__

    yield "Model", type(part).__name__
    if hasattr(model, "steps"):
        yield "Pipeline", " → ".join(type(step).__name__ for _, step in model.steps)
    yield "Shape of a sample", traits.shape_text(part.coef_.shape)
    yield "Modes", ", ".join(mode.label for mode in modes_of(model))
    if is_classifier(part):
        yield "Classes", ", ".join(repr(label) for label in part.classes_.tolist())
    yield "Intercept", traits.number(part.intercept_, 6)
    yield from _covariates(part)
    for name, value in part.get_params(deep=False).items():
        yield name, _parameter(value)
    yield "pyfastr", __version__
    for package in _PACKAGES:
        yield package, version(package)
    if hasattr(part, "fingerprint_"):
        yield "Fingerprint of the training data", part.fingerprint_


def _covariates(part: Any) -> Iterator[tuple[str, str]]:
    """Give each covariate its coefficient."""
    own = getattr(part, "covariate_coef_", None)
    if own is None:
        return
    names = getattr(part, "covariate_names_in_", [f"covariate {i}" for i in range(len(own))])
    pairs = [f"{name}: {traits.number(value, 6)}" for name, value in zip(names, own, strict=True)]
    yield "Coefficients of covariates", ", ".join(pairs)


def _parameter(value: Any) -> str:
    """Write a parameter in a line."""
    text = repr(value)
    return text if len(text) <= 120 else f"{type(value).__name__} (too long to show)"
