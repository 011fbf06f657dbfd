"""Facts about a fitted model that several parts of a report state."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from pyfastr.estimators.folds import HeldOut
from pyfastr.estimators.ranking import mean_and_error
from pyfastr.solver.problem import power_of_two
from pyfastr.solver.ties import Ties

Array = NDArray[Any]

_SCORE_NAMES = {
    "r2": "R²",
    "d2": "D²",
    "roc_auc": "area under the ROC curve",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
}
_RAISED = str.maketrans("−0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_CHANCE = {
    "r2": 0.0,
    "d2": 0.0,
    "explained_variance": 0.0,
    "roc_auc": 0.5,
    "balanced_accuracy": 0.5,
}


def is_choice(part: Any) -> bool:
    """Tell whether a model chose its parameters from a grid."""
    return hasattr(part, "cv_results_")


def has_folds(part: Any) -> bool:
    """Tell whether a model chose by scores of held-out samples."""
    return is_choice(part) and part.criterion == "cv"


def has_scores(part: Any) -> bool:
    """Tell whether scores of held-out samples say anything: a constant response has none."""
    if not has_folds(part):
        return False
    held = held_out(part)
    return held is None or bool(np.ptp(held.target) > 0)


def is_mean(part: Any) -> bool:
    """Tell whether the coefficient is the mean of the folds' models."""
    return has_folds(part) and not getattr(part, "refitted_", part.refit)


def adds_terms(part: Any) -> bool:
    """Tell whether terms were added while folds showed a gain."""
    terms = part.n_terms if has_folds(part) else None
    return isinstance(terms, str) and len(grid_of(part, "n_terms")) > 1


def is_of_counts(part: Any) -> bool:
    """Tell whether the logarithm of a mean count was modelled."""
    return bool(part.loss == "poisson")


def scoring_key(part: Any) -> str:
    """Return scikit-learn's name of the score that chose, empty for a function of the user's.

    D² of counts, which has none there, is "d2".
    """
    if part.scoring is None:
        numbers = "d2" if is_of_counts(part) else "r2"
        return "roc_auc" if is_classifier(part) else numbers
    return part.scoring if isinstance(part.scoring, str) else ""


def score_name(part: Any) -> str:
    """Return what the score is called in a sentence."""
    key = scoring_key(part)
    if key:
        return _SCORE_NAMES.get(key, key.replace("neg_", "negative ").replace("_", " "))
    function = getattr(part.scoring, "_score_func", part.scoring)
    name = getattr(function, "__name__", "")
    return name.replace("_", " ") if name.isidentifier() else "score of its own"


def chance_level(part: Any) -> float | None:
    """Return the score of a model that knows nothing of X, where that is fixed.

    Covariates may predict by themselves.
    """
    return None if hasattr(part, "covariate_coef_") else _CHANCE.get(scoring_key(part))


def fold_scores(part: Any) -> Array:
    """Return the scores of the choice in the folds that have one."""
    scores = np.array(
        [
            part.cv_results_[f"split{fold}_test_score"][part.best_index_]
            for fold in range(part.scores_path_.shape[-1])
        ]
    )
    return scores[np.isfinite(scores)]


def spread(scores: Array) -> float:
    """Return the standard deviation of scores, which may be too large to square."""
    return float(mean_and_error(scores)[1] * np.sqrt(len(scores)))


def twin_name(part: Any) -> str:
    """Return the class that chooses its own parameters."""
    return "FasTRClassifierCV" if hasattr(part, "classes_") else "FasTRRegressorCV"


def n_points(part: Any) -> int:
    """Return how many points of a grid were tried."""
    return len(part.cv_results_["params"])


def grid_of(part: Any, name: str) -> list[float]:
    """Return the values of a parameter that were tried, ascending."""
    return sorted(set(np.asarray(part.cv_results_[f"param_{name}"]).tolist()))


def n_terms_of(part: Any) -> int:
    """Return the number of terms that was fitted; that of each fold, if their mean was taken."""
    return int(getattr(part, "n_terms_", len(part.scales_)))


def n_free(part: Any) -> int:
    """Return the number of free parameters of a fit; that of each fold, if it is their mean."""
    return n_free_of(part, int(getattr(part, "n_terms_", part.n_terms)))


def n_free_of(part: Any, n_terms: int) -> int:
    """Return the number of free parameters that a fit of so many terms would have."""
    ties = Ties(getattr(part, "symmetric_modes_", None))
    sizes = [part.coef_.shape[m] for m in ties.own(part.coef_.ndim)]
    nuisance = int(part.fit_intercept) + len(getattr(part, "covariate_coef_", ()))
    return n_terms * (sum(sizes) - len(sizes) + 1) + nuisance


def n_samples(part: Any) -> int | None:
    """Return how many samples were fitted, where it is known; those without weight were not."""
    return getattr(part, "n_samples_in_", None)


def counting(design: Any, n_samples: int | None) -> Array:
    """Return the numbers of the samples that count: others have no weight, and so no leverage."""
    most_first: Array = np.argsort(-design.leverage, kind="stable")
    return most_first[:n_samples]


def mean_leverage(part: Any) -> float:
    """Return the mean leverage of the samples that count."""
    leverage = part.design_.leverage
    return float(leverage[counting(part.design_, n_samples(part))].mean())


def held_out(part: Any) -> HeldOut | None:
    """Return what folds held out of the samples that count, where it is known which these are."""
    held, n = getattr(part, "held_out_", None), n_samples(part)
    design = getattr(part, "design_", None)
    if held is None or n is None:
        return held
    if design is None:
        return held if held.samples.max() < n else None
    own = np.isin(held.samples, counting(design, n))
    some = {field.name: getattr(held, field.name)[own] for field in fields(held)}
    return replace(held, **some) if own.any() else None


def unit_of(*arrays: Array) -> float:
    """Return a power of two in units of which squares of numbers are in the range of floats."""
    return float(power_of_two(max(np.abs(own).max(initial=0.0) for own in arrays)))


def shape_text(shape: tuple[int, ...]) -> str:
    """Write a shape as people do."""
    return " × ".join(str(size) for size in shape)


def number(value: float, digits: int = 3) -> str:
    """Write a number shortly, with a true minus sign and powers of ten as people write them.

    Examples
    --------
    >>> from pyfastr.display.traits import number
    >>> number(-0.01234), number(1e-5), number(2.5e-7)
    ('−0.0123', '10⁻⁵', '2.5 × 10⁻⁷')
    """
    mantissa, _, exponent = f"{value:.{digits}g}".replace("-", "−").partition("e")
    if not exponent:
        return mantissa
    power = "10" + exponent.replace("+", "").replace("−0", "−").lstrip("0").translate(_RAISED)
    return power if mantissa == "1" else f"{mantissa} × {power}"


def count(value: int, what: str) -> str:
    """Write a number of things, in plural where it is one."""
    return f"{value:,} {what}" + ("" if value == 1 else "s")
