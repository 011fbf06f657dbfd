"""How well a model predicts samples that it has not seen, as far as that is known."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.utils import check_consistent_length

from pyfastr.display import traits
from pyfastr.display.observed import check_range, finite_score
from pyfastr.estimators.namespaces import on_host, placed
from pyfastr.sources.namespaces import to_host

Array = NDArray[Any]

_CAREFUL = (
    "The best of {n_points} points was chosen by these same scores, which makes them optimistic, "
    "the more so the fewer the samples. For a score free of that, hold samples out of the whole "
    "choice: `sklearn.model_selection.cross_val_score(model, X, y)`."
)
_MEAN = (
    "These are scores of the folds' models, each of samples that it was not fitted to. Their mean, "
    "which is the coefficient, has none of its own: every sample had a part in some of them."
)
_CONSTANT = "The response is constant, so there is nothing to predict and no score."
_BEHIND = (
    "It is clearly better ({theirs} against {ours} where each fold is predicted by what the other "
    "folds would have chosen): a sum of so few outer products does not describe how y depends on "
    "X. To predict, use ridge regression, and read the factors with care."
)
_POOLED = (
    "The picture has the held-out samples of all folds together, so that its numbers may differ "
    "from the mean of the folds."
)
_LEAK = (
    " But {steps} came before the folds and saw the held-out samples too. To hold them out of the "
    "whole pipeline, score it as a whole, as below."
)
_UNKNOWN = (
    "Nothing is known of how well this model predicts new samples: it was fitted to all samples it "
    "was given, and how well it fits those says little. {how}"
)
_HOW_TO_KNOW = (
    "Give samples that it has not seen, `model.generate_report(X=X_new, y=y_new)`, or use {twin}, "
    "which holds samples out in turn."
)


@dataclass(frozen=True)
class Card:
    """A figure that counts, with its name and a remark."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Given:
    """What was predicted for samples that the caller gave.

    Attributes
    ----------
    target : ndarray of shape (n_samples,)
        Response; of classes 0 or 1.
    prediction : ndarray of shape (n_samples,)
        Predicted response, or decision value.
    seen : bool
        Whether these are the samples that the model was fitted to.
    """

    target: Array
    prediction: Array
    seen: bool


def predict_given(model: Any, part: Any, X: Any, y: Any, covariates: Any, seen: bool) -> Given:
    """Predict samples that the caller gave.

    Parameters
    ----------
    model : estimator or Pipeline
    part : estimator
    X : array-like of shape (n_samples, p1, ..., pM)
    y : array-like of shape (n_samples,)
    covariates : array-like of shape (n_samples, n_covariates) or None
    seen : bool

    Returns
    -------
    Given
    """
    check_consistent_length(X, y)
    before = getattr(model, "steps", [])[:-1]
    values = model[:-1].transform(X) if before else X
    more = () if covariates is None else (covariates,)
    target = np.asarray(*on_host(X, y=y)).reshape(-1)
    there = placed(part, values)
    if not is_classifier(part):
        target = target.astype(float)
        check_range(target, part.loss)
        prediction = to_host(there.predict(values, *more))
        return Given(target, np.asarray(prediction, float), seen)
    unknown = sorted(set(target.tolist()) - set(part.classes_.tolist()), key=str)
    if unknown:
        raise ValueError(
            f"y has the classes {unknown}; expected those of the fit, {part.classes_.tolist()}."
        )
    codes = (target == part.classes_[1]).astype(int)
    decision = to_host(there.decision_function(values, *more))
    return Given(codes, np.asarray(decision, float), seen)


def performance_text(model: Any, part: Any, given: Given | None) -> list[str]:
    """Say in sentences how well a model predicts.

    Parameters
    ----------
    model : estimator or Pipeline
    part : estimator
    given : Given or None

    Returns
    -------
    list of str
        Paragraphs.
    """
    text = [] if given is None else [_given_text(part, given)]
    if traits.has_folds(part):
        return [*text, *_folds_paragraphs(model, part, shows_folds=given is None or given.seen)]
    if given is None or given.seen:
        text.append(_unknown_text(part))
    return text


def performance_card(part: Any, given: Given | None) -> Card:
    """Return the figure that tells best how well a model predicts.

    Parameters
    ----------
    part : estimator
    given : Given or None

    Returns
    -------
    Card
    """
    if given is not None and not given.seen:
        name, value = _main_score(part, given)
        note = traits.count(len(given.target), "sample")
        return Card(f"{_capital(name)} of samples given", value, note)
    if traits.has_folds(part) and not traits.has_scores(part):
        return Card("Held-out score", "undefined", "the response is constant")
    if traits.has_folds(part):
        scores = traits.fold_scores(part)
        spread = f", SD {traits.number(traits.spread(scores), 2)}" if len(scores) > 1 else ""
        return Card(
            f"Held-out {traits.score_name(part)}",
            traits.number(part.best_score_),
            f"mean of {traits.count(len(scores), 'fold')}{spread}",
        )
    return Card("Held-out score", "unknown", "no samples were held out")


def _main_score(part: Any, given: Given) -> tuple[str, str]:
    """Return name and value of the score of samples that were given."""
    if not is_classifier(part):
        if len(given.target) < 2:
            return "root mean squared error", traits.number(_error(given))
        value = finite_score(part.loss, given.target, given.prediction)
        return "D²" if traits.is_of_counts(part) else "R²", traits.number(value)
    if len(np.unique(given.target)) < 2:
        return "accuracy", traits.number(_accuracy(given))
    return "area under the ROC curve", traits.number(roc_auc_score(given.target, given.prediction))


def _accuracy(given: Given) -> float:
    return float(accuracy_score(given.target, given.prediction > 0))


def _error(given: Given) -> float:
    """Return the root mean squared error."""
    unit = traits.unit_of(given.target, given.prediction)
    residuals = given.target / unit - given.prediction / unit
    return float(unit * np.sqrt(np.mean(residuals**2)))


def _given_text(part: Any, given: Given) -> str:
    """Score what was given, and say what kind of samples that is."""
    name, value = _main_score(part, given)
    samples = traits.count(len(given.target), "sample")
    text = f"{_capital(name)} of the {samples} given to this report: {value}."
    if is_classifier(part) and name != "accuracy":
        text += f" Accuracy: {traits.number(_accuracy(given))}."
    elif name in ("R²", "D²"):
        text += f" Root mean squared error: {traits.number(_error(given))}."
    if given.seen:
        return (
            f"{text} These are the samples that the model was fitted to, so this is no measure of "
            "how well it predicts new ones."
        )
    return f"{text} This counts only if none of them took part in the fit."


def _folds_paragraphs(model: Any, part: Any, *, shows_folds: bool) -> list[str]:
    """Give the scores of the folds, and say what to think of them."""
    if not traits.has_scores(part):
        return [_CONSTANT]
    n_points = traits.n_points(part)
    careful = [_CAREFUL.format(n_points=n_points)] if n_points > 1 else []
    if shows_folds and hasattr(part, "held_out_") and len(traits.fold_scores(part)) > 1:
        careful.append(_POOLED)
    mean = [_MEAN] if traits.is_mean(part) else []
    return [
        _folds_text(model, part),
        *reference_text(part),
        *mean,
        *([" ".join(careful)] if careful else []),
    ]


def _folds_text(model: Any, part: Any) -> str:
    """Give the scores of the folds, and say what they are scores of."""
    scores, name = traits.fold_scores(part), traits.score_name(part)
    score, low, high = (traits.number(v) for v in (part.best_score_, scores.min(), scores.max()))
    text = f"{_capital(name)} of one fold: {score}."
    if len(scores) > 1:
        text = f"Mean {name} over {len(scores)} folds: {score} (from {low} to {high})."
    text += " Held-out samples were predicted by models that were fitted without them."
    level = traits.chance_level(part)
    if level is not None:
        text += f" A model that knows nothing of X scores about {level:g}."
    before = [type(step).__name__ for _, step in getattr(model, "steps", [])[:-1]]
    return text + _LEAK.format(steps=", ".join(before)) if before else text


def reference_text(part: Any) -> list[str]:
    """Put the score of flattened ridge regression beside that of the choice, where it is known."""
    reference = getattr(part, "reference_", None)
    if reference is None:
        reason = getattr(part, "reference_missing_", "")
        return [f"No ridge regression stands beside it: {reason}."] if reason else []
    score, theirs, ours = (
        traits.number(own)
        for own in (reference.score, reference.unseen_score, reference.unseen_score_of_choice)
    )
    text = f"Ridge regression on the flattened samples scores {score} in the same folds."
    if reference.is_better:
        return [f"{text} {_BEHIND.format(theirs=theirs, ours=ours)}"]
    return [f"{text} It is not clearly better."]


def _unknown_text(part: Any) -> str:
    """Say that nothing is known, and how to know."""
    twin = "FasTRClassifierCV" if is_classifier(part) else "FasTRRegressorCV"
    if traits.is_choice(part):
        twin = f'{twin} with `criterion="cv"`'
    return _UNKNOWN.format(how=_HOW_TO_KNOW.format(twin=twin))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
