"""A paragraph on a fit for the methods section of a paper, and what to cite."""

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from pyfastr.display import traits
from pyfastr.display.modes import modes_of

PAPER = (
    "J. Zhang and B. Wang. Fast and Scalable Estimator for Sparse and Unit-Rank Higher-Order "
    "Regression Models. In 24th European Conference on Artificial Intelligence (ECAI), 2020."
)
_BIBTEX = """@inproceedings{{zhang2020fastr,
  title     = {{Fast and Scalable Estimator for Sparse and Unit-Rank Higher-Order
               Regression Models}},
  author    = {{Zhang, Jiaqi and Wang, Beilun}},
  booktitle = {{24th European Conference on Artificial Intelligence (ECAI 2020)}},
  year      = {{2020}}
}}

@software{{pyfastr,
  title   = {{pyfastr: sparse unit-rank tensor regression in Python}},
  author  = {{{{The pyfastr developers}}}},
  version = {{{version}}}
}}"""


@dataclass(frozen=True)
class Citation:
    """What to cite, in words and for a bibliography."""

    text: list[str]
    bibtex: str


def citation() -> Citation:
    """Return the paper whose model this is, and the software.

    Returns
    -------
    Citation
    """
    from pyfastr import __version__

    software = (
        "The pyfastr developers. pyfastr: sparse unit-rank tensor regression in Python, version "
        f"{__version__}."
    )
    return Citation([PAPER, software], _BIBTEX.format(version=__version__))


def methods_text(model: Any, part: Any) -> list[str]:
    """Describe a fit as a paper would.

    Parameters
    ----------
    model : estimator or Pipeline
    part : estimator
        The one with the coefficient.

    Returns
    -------
    list of str
        Paragraphs.
    """
    groups = (_model(model, part), _algorithm(part), _choice(part), _result(model, part))
    return [" ".join(sentences) for group in groups if (sentences := list(group))]


def _model(model: Any, part: Any) -> Iterator[str]:
    """Say what was modelled."""
    from pyfastr import __version__

    shape = part.coef_.shape
    n = traits.n_samples(part)
    samples = "Samples" if n is None else f"The n = {n:,} samples"
    kind = "vectors of length" if len(shape) == 1 else "arrays of"
    yield f"{samples} are {kind} {traits.shape_text(shape)}{_mode_names(model)}."
    yield from _scaling(model)
    response, value = "The response", "y"
    if is_classifier(part):
        response, value = "A binary class", "as the sign of f(X)"
    elif traits.is_of_counts(part):
        response, value = "A count", "log E[y]"
    linear = f"⟨W, X⟩{' + b' if part.fit_intercept else ''}"
    yield (
        f"{response} was modelled by sparse {_rank(part)} tensor regression (FasTR; Zhang and "
        f"Wang, 2020), {value} = {linear}, whose coefficient W {_form(part)}, as implemented in "
        f"pyfastr {__version__}."
    )
    if is_classifier(part):
        yield (
            "The loss is logistic, lowered by ridge regressions that are reweighted in turn."
            if part.loss == "logistic"
            else "Classes were coded −1 and 1 and fitted by least squares."
        )
    elif traits.is_of_counts(part):
        yield "The Poisson loss is lowered by ridge regressions that are reweighted in turn."
    if hasattr(part, "covariate_coef_"):
        n_covariates = traits.count(len(part.covariate_coef_), "covariate")
        yield f"{n_covariates} entered with unpenalised coefficients."


def _rank(part: Any) -> str:
    return "unit-rank" if traits.n_terms_of(part) == 1 else "low-rank"


def _form(part: Any) -> str:
    """Say what the coefficient is made of."""
    n_modes, n_terms = part.coef_.ndim, traits.n_terms_of(part)
    kind = "" if all(np.all(factor) for factor in part.factors_) else "sparse "
    form = f"a {kind}vector" if n_modes == 1 else f"an outer product of {n_modes} {kind}vectors"
    if n_terms > 1:
        form = f"a sum of {n_terms} terms, each {form}"
    return (
        f"is the mean over folds of models that are each {form}"
        if traits.is_mean(part)
        else f"is {form}"
    )


def _mode_names(model: Any) -> str:
    """Name the modes, where they have names."""
    modes = modes_of(model)
    if all(mode.name == f"mode {i}" for i, mode in enumerate(modes)):
        return ""
    return f" ({', '.join(mode.label for mode in modes)})"


def _scaling(model: Any) -> Iterator[str]:
    """Say what was done to X before."""
    for _, step in getattr(model, "steps", [])[:-1]:
        if hasattr(step, "get_params"):
            yield f"X was transformed by {type(step).__name__} first, fitted to the same samples."


def _algorithm(part: Any) -> Iterator[str]:
    """Say how the coefficient was found."""
    penalties = (
        "(threshold λ relative to its largest entry, ridge ε relative to the mean diagonal of the "
        "Gram matrix)"
    )
    if part.coef_.ndim == 1:
        yield f"W is the soft-thresholded solution of a ridge regression {penalties}."
        return
    end = f"until W changed by less than {traits.number(part.tol)} of its size"
    if traits.is_mean(part):
        end += " or the limit of sweeps in folds was reached"
    elif not getattr(part, "converged_", True):
        end = f"for {traits.count(part.n_iter_, 'sweep')} over all of them, short of convergence"
    yield (
        "Each vector in turn was set to the soft-thresholded solution of a ridge regression on X "
        f"contracted with all others {penalties}, {end}."
    )
    if getattr(part, "starts_", None) is not None and part.starts_.n_starts > 1:
        yield f"The best of {part.starts_.n_starts} starts was taken."


def _choice(part: Any) -> Iterator[str]:
    """Say how parameters were chosen, or what they were set to."""
    if not traits.is_choice(part):
        yield f"Parameters were set to λ = {_threshold(part)} and ε = {traits.number(part.ridge)}."
        if part.refit_support:
            yield "Entries that are not zero were then fitted anew without threshold."
        return
    if part.criterion == "evidence":
        yield (
            "The entries that are not zero were chosen by the lowest "
            "(N − dof) log(RSS / (N − dof)), without a threshold, "
            f"with ε = {traits.number(part.ridge_)}."
        )
        return
    yield _grid(part)
    if traits.adds_terms(part):
        yield (
            "Terms were added one at a time at the best of these points, each begun from what the "
            "others left unexplained, while held-out samples showed a gain "
            f"({traits.count(len(traits.grid_of(part, 'n_terms')), 'number')} of terms tried)."
        )
    if traits.has_scores(part):
        yield _chosen(part)
    if not traits.is_mean(part):
        refit = ", its non-zero entries without threshold" if part.refit_support else ""
        yield f"The choice was then fitted to all samples{refit}."
    else:
        points = traits.count(len(part.averaged_), "point")
        mean = f"The coefficient is the mean of the folds' models at {points} of the grid"
        yield f"{mean}{_why(part)}."


def _why(part: Any) -> str:
    """Say why a mean was taken, where nobody asked for it."""
    if part.refit != "auto":
        return ""
    return f", whose coefficients differ (median cosine {traits.number(part.agreement_, 2)})"


def _threshold(part: Any) -> str:
    """Write a threshold that was set."""
    if isinstance(part.threshold, str):
        return "the order of the paper's theorem"
    return traits.number(part.threshold)


def _grid(part: Any) -> str:
    """Say what was chosen from."""
    names = {"the threshold λ": "threshold", "the ridge ε": "ridge"}
    grids = {said: traits.grid_of(part, name) for said, name in names.items()}
    what = [_range(said, values) for said, values in grids.items() if len(values) > 1]
    terms = traits.grid_of(part, "n_terms")
    if len(terms) > 1 and not traits.adds_terms(part):
        what.append(f"the number of terms (from {', '.join(f'{n:g}' for n in terms)})")
    if not what:
        return f"The model was scored by {_folds(part)}, with nothing to choose from."
    listed = " and ".join([", ".join(what[:-1]), what[-1]] if len(what) > 1 else what)
    return (
        f"{listed[0].upper()}{listed[1:]} {'was' if len(what) == 1 else 'were'} chosen by "
        f"{_folds(part)} for the {_merit(part)}{_rule(part)}."
    )


def _range(symbol: str, values: list[float]) -> str:
    low, high = traits.number(values[0]), traits.number(values[-1])
    return f"{symbol} ({len(values)} values from {low} to {high})"


def _folds(part: Any) -> str:
    """Name the cross-validation."""
    n_folds = part.scores_path_.shape[-1]
    if part.cv is None or isinstance(part.cv, Integral):
        return f"{n_folds}-fold cross-validation"
    kind = type(part.cv).__name__
    named = f" ({kind})" if hasattr(part.cv, "split") else ""
    return f"cross-validation with {traits.count(n_folds, 'fold')}{named}"


def _merit(part: Any) -> str:
    """Name what points were compared by: errors of samples rather than R² or D² of folds."""
    if _compares_samples(part):
        error = "deviance" if traits.is_of_counts(part) else "squared error"
        return f"least mean {error} of all held-out samples"
    return f"best mean {traits.score_name(part)}"


def _compares_samples(part: Any) -> bool:
    scored = np.isfinite(part.scores_path_).any(axis=(0, 1, 2))
    by_samples = traits.scoring_key(part) in ("r2", "d2")
    return by_samples and bool(scored.all()) and not part.one_standard_error


def _rule(part: Any) -> str:
    """Say which of the points that are nearly the best was taken."""
    if part.one_standard_error:
        return ", taking the simplest model within one standard error of it"
    if traits.is_mean(part) or len(traits.grid_of(part, "threshold")) == 1:
        return ""
    error = (
        "one standard error of the difference, sample by sample"
        if _compares_samples(part)
        else "half a standard error of the difference, fold by fold"
    )
    return f", taking the highest threshold that fell short of it by no more than {error}"


def _chosen(part: Any) -> str:
    """Give the choice and its score."""
    scores = traits.fold_scores(part)
    spread = (
        f" (SD {traits.number(traits.spread(scores), 2)} across folds)" if len(scores) > 1 else ""
    )
    terms = (
        f", {traits.count(part.n_terms_, 'term')}"
        if len(traits.grid_of(part, "n_terms")) > 1
        else ""
    )
    return (
        f"The choice (λ = {traits.number(part.threshold_)}, ε = {traits.number(part.ridge_)}"
        f"{terms}) had a mean held-out {traits.score_name(part)} of "
        f"{traits.number(part.best_score_)}{spread}."
    )


def _result(model: Any, part: Any) -> Iterator[str]:
    """Describe the coefficient that was found."""
    n_nonzero = int(np.count_nonzero(part.coef_))
    share = f"{n_nonzero:,} of {part.coef_.size:,} entries"
    yield f"W has {share} other than zero{_supports(model, part)}."
    starts = getattr(part, "starts_", None)
    if starts is not None and starts.n_polished > 1:
        yield (
            f"Of the {starts.n_polished} starts that were carried to the end, {starts.n_hits} "
            "reached this solution."
        )


def _supports(model: Any, part: Any) -> str:
    """Count the entries of a single term's factors."""
    if len(part.scales_) > 1 or part.coef_.ndim == 1 or not np.any(part.scales_):
        return ""
    counts = [
        f"{np.count_nonzero(factor)} of {len(factor)} in {mode.name}"
        for mode, factor in zip(modes_of(model), part.factors_, strict=True)
    ]
    return f" ({', '.join(counts)})"
