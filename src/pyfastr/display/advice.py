"""What a person should know of a fitted model before using it, and what to do about it."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pyfastr.display import traits
from pyfastr.display.fitted import fitted_part
from pyfastr.display.modes import modes_of
from pyfastr.display.remark import Advice
from pyfastr.display.sample_advice import few_samples, influential, look_alike, small_folds
from pyfastr.estimators.ranking import mean_and_error

# Thresholds lie in [0, 1), ridges above 0; at these ends a grid has no use for more.
LEAST_RIDGE, LARGEST_RIDGE, HIGHEST_THRESHOLD = 1e-5, 1e10, 0.9
# The best of a grid of classifiers is ahead of chance by less than this many standard errors of the
# area under a ROC curve in about nine of ten fits to noise (40 of each of three shapes). That of
# regressions is hardly ever ahead, as R² punishes them for what they imagine.
LUCK = 3.0


def advice(model: Any) -> list[Advice]:
    """Return what calls for attention in a fitted model, the gravest first.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of pyfastr, or a pipeline that ends in one.

    Returns
    -------
    list of Advice
        Empty if all is well.

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.display.advice import advice
    >>> X, y = make_tensor_regression(12, (8, 8), random_state=0)
    >>> model = FasTRRegressor(ridge=0.1, random_state=0).fit(X, y)
    >>> [item.what for item in advice(model) if "free parameters" in item.what]
    ['12 samples are no more than the 16 free parameters, which can fit them whatever they are.']
    """
    part = fitted_part(model)
    checks = (
        *(_zero, _chance, _convergence, _starts, few_samples, small_folds, influential, look_alike),
        *(_edges, _terms, _mean, _seed),
    )
    found = [item for check in checks for item in check(part)]
    order = ("problem", "caution", "note")
    return sorted(found, key=lambda item: order.index(item.level))


def _zero(part: Any) -> Iterator[Advice]:
    """Warn of a coefficient without entries."""
    if not np.any(part.scales_):
        what = "The coefficient is zero: predictions do not depend on X."
        yield Advice("problem", what, _cause_of_zero(part))


def _cause_of_zero(part: Any) -> str:
    """Say what may have left no coefficient, as far as it can be told."""
    starts, has_covariates = getattr(part, "starts_", None), hasattr(part, "covariate_coef_")
    if starts is not None and starts.n_starts == 0:
        # A search begins where there is something to explain.
        if not has_covariates:
            return "Check y: it is constant."
        who = "intercept and covariates explain" if part.fit_intercept else "covariates explain"
        return f"Check y and the covariates: {who} all of y and leave nothing to X."
    both = "X and y vary" + " beside the covariates" * has_covariates
    if traits.is_choice(part) or part.threshold == 0:
        return (
            f"Check that the rows of X and y belong to the same samples and that {both}. If so, "
            "these samples do not show a relation of this form."
        )
    return f"Check that {both}. If they do, lower `threshold`: it emptied {_emptied(part)}."


def _emptied(part: Any) -> str:
    """Name the modes without entries, where others have some."""
    pairs = zip(modes_of(part), part.factors_, strict=True)
    empty = [mode.name for mode, factor in pairs if not np.any(factor)]
    return ", ".join(empty) if 0 < len(empty) < len(part.factors_) else "a mode"


def _chance(part: Any) -> Iterator[Advice]:
    """Warn of a score that chance explains."""
    level = traits.chance_level(part) if traits.has_scores(part) else None
    if level is None:
        return
    scores = traits.fold_scores(part)
    if not len(scores):
        return
    mean, error = (float(own) for own in mean_and_error(scores))
    name = traits.score_name(part)
    if mean - level > error:
        yield from _luck(part, mean, level, name)
        return
    yield Advice(
        "problem",
        f"Held-out samples are predicted no better than by chance: mean {name} "
        f"{traits.number(mean)}, where {traits.number(level)} is chance.",
        "Do not interpret the coefficient. Check that the rows of X and y belong together; more "
        "samples, less noise or fewer entries in X may help. "
        "`pyfastr.inference.permutation_test` tells how such scores arise by chance.",
    )


def _luck(part: Any, score: float, level: float, name: str) -> Iterator[Advice]:
    """Warn of a score of classes that the best of many models may have by luck."""
    held_out = traits.held_out(part)
    if not hasattr(part, "classes_") or traits.n_points(part) < 2 or held_out is None:
        return
    codes = held_out.target
    n_positive, n = int(codes.sum()), len(codes)
    bound = level + LUCK * np.sqrt((n + 1) / (12 * n_positive * (n - n_positive)))
    if score <= bound:
        yield Advice(
            "caution",
            f"The {name} of {traits.number(score)} may yet be luck: by chance alone the best of "
            f"{traits.n_points(part)} points of a grid reaches up to about "
            f"{traits.number(min(bound, 1.0), 2)} on {n} samples.",
            "Test it with `pyfastr.inference.permutation_test` before you interpret the "
            "coefficient.",
        )


def _convergence(part: Any) -> Iterator[Advice]:
    """Warn of sweeps that were cut short."""
    moved = getattr(part, "history_", {}).get("change", ())
    if getattr(part, "converged_", True) or not len(moved) or not np.any(part.scales_):
        return
    ways = "Raise `max_iter` or `tol`."
    if not traits.is_choice(part):
        twin = traits.twin_name(part)
        ways = f"Raise `max_iter`, `tol` or `ridge`, or let {twin} choose the ridge."
    change = traits.number(float(moved[-1]), 2)
    yield Advice(
        "caution",
        f"The sweeps did not converge: the coefficient still changed by {change} of its size in "
        f"sweep {len(moved)}.",
        ways,
    )


def _starts(part: Any) -> Iterator[Advice]:
    """Warn where starts ended in different solutions."""
    starts = getattr(part, "starts_", None)
    # Vectors have one solution, however far the sweeps came.
    if starts is None or starts.sure or part.coef_.ndim == 1 or not np.any(part.scales_):
        return
    if starts.n_polished < 2:
        yield Advice(
            "note",
            "Only one start was carried to the end, so nothing is known of other solutions.",
            f"{_ask_for_starts(part)} to have several starts compared.",
        )
        return
    agreed = f"{starts.n_hits} of {starts.n_polished} starts that were carried to the end"
    if 2 * starts.n_hits > starts.n_polished:
        yield Advice(
            "note",
            f"{agreed} agree on this solution, but {_doubt(starts.confidence)}. With noise that "
            "is usual.",
        )
        return
    more = max(64, 4 * starts.n_starts)
    twin = f", let {traits.twin_name(part)} choose the ridge"
    regularise = "" if traits.is_choice(part) else twin
    yield Advice(
        "caution",
        f"Only {agreed} reached this solution; another one leaves {_gap(starts.gap)}. The "
        "coefficient may be one of several that fit alike.",
        f"Run more starts (`n_init={more}`){regularise}, or use more samples. Compare fits of "
        "different `random_state` before you interpret single entries.",
    )


def _ask_for_starts(part: Any) -> str:
    """Say which parameter makes more than one start."""
    if not isinstance(part.init, str):
        return 'Leave `init` at "mixed"' + ' and `n_init` at "auto"' * (part.n_init != "auto")
    return "Set `n_init=64`" if part.n_init == "auto" else 'Use `n_init="auto"`'


def _doubt(confidence: float | None) -> str:
    """Say how likely it is that others are no better."""
    if confidence is None:
        return "others fit nearly as well"
    return f"that it is the best is only {confidence:.0%} likely"


def _gap(gap: float) -> str:
    """Say how well another solution fits."""
    if gap < 1:
        # In files of earlier versions.
        return "even less of the squared residuals, at a larger penalty"
    if not np.isfinite(gap):
        return "far more"
    return f"{traits.number(gap, 4)} times as much, penalty included"


def _edges(part: Any) -> Iterator[Advice]:
    """Warn of a choice at the end of a grid, where better values may lie beyond."""
    if not traits.has_folds(part):
        return
    ridges, thresholds = traits.grid_of(part, "ridge"), traits.grid_of(part, "threshold")
    # Where grids of our own end on one side they do so for a reason, but a ridge may be too small.
    own_ridges, own_thresholds = (isinstance(v, str) for v in (part.ridges, part.thresholds))
    if len(ridges) > 1 and part.ridge_ == ridges[-1] < LARGEST_RIDGE:
        yield _edge("largest", "ridge", part.ridge_, f"{10 * part.ridge_:g}")
    elif len(ridges) > 1 and part.ridge_ == ridges[0] > LEAST_RIDGE and not own_ridges:
        yield _edge("smallest", "ridge", part.ridge_, f"{part.ridge_ / 10:g}")
    if len(thresholds) < 2 or own_thresholds:
        return
    if part.threshold_ == thresholds[-1] < HIGHEST_THRESHOLD:
        middle = (part.threshold_ + 1) / 2
        yield _edge("largest", "threshold", part.threshold_, f"{middle:.2g}")
    elif part.threshold_ == thresholds[0] > 0:
        yield _edge("smallest", "threshold", part.threshold_, "0")


def _edge(end: str, name: str, value: float, beyond: str) -> Advice:
    return Advice(
        "caution",
        f"The choice is the {end} {name} of the grid, {traits.number(value)}; a better one may lie "
        "beyond.",
        f"Add {beyond} to `{name}s` and fit again.",
    )


def _terms(part: Any) -> Iterator[Advice]:
    """Say that terms were asked for that the data do not need."""
    n_empty = int(np.sum(np.asarray(part.scales_) == 0))
    if 0 < n_empty < len(part.scales_):
        yield Advice(
            "note",
            f"{n_empty} of {len(part.scales_)} terms vanished.",
            f"Ask for {len(part.scales_) - n_empty} in `n_terms`; the fit is the same and simpler.",
        )


def _mean(part: Any) -> Iterator[Advice]:
    """Say why a mean of folds has many terms."""
    if not traits.is_mean(part) or len(part.scales_) < 2:
        return
    yield Advice(
        "note",
        f"The coefficient is the mean of the folds' models{_reason(part)}, a sum of "
        f"{len(part.scales_)} terms: good for prediction, but not of unit rank, and its factors "
        "are not to be read one by one.",
        "Use `refit=True` for a coefficient whose factors can be interpreted.",
    )


def _reason(part: Any) -> str:
    """Say why it is a mean."""
    if part.refit != "auto":
        return " (refit=False)"
    return f", as their coefficients differ (median cosine {traits.number(part.agreement_, 2)})"


def _seed(part: Any) -> Iterator[Advice]:
    """Say that another fit may differ."""
    if part.random_state is None:
        yield Advice(
            "note",
            "random_state is None: starts and folds are drawn anew in each fit.",
            "Pass a number, such as `random_state=0`, so that others can repeat it exactly.",
        )
