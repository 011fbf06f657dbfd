"""How far the factors would move with other samples."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display.factors import FactorsDisplay
from pyfastr.display.modes import Mode, modes_of
from pyfastr.estimators.validation import as_generator
from pyfastr.estimators.watching import showing
from pyfastr.inference._scaling import Scaling, unpacked
from pyfastr.inference._summary import Summary, counted
from pyfastr.inference._tasks import (
    check_count,
    check_share,
    checked_data,
    checked_model,
    fit_resamples,
    strata,
)
from pyfastr.solver.models import Models

Array = NDArray[Any]


@dataclass(frozen=True, repr=False)
class BootstrapResult(Summary):
    """Intervals of the entries of factors of unit length.

    Attributes
    ----------
    factors : list of M ndarrays of shape (p_m, n_terms)
        Of the fit to all samples.
    lower, upper : list of M ndarrays of shape (p_m, n_terms)
        Ends of the percentile intervals.
    samples : list of M ndarrays of shape (n_bootstrap, p_m, n_terms)
        Factors of the bootstrap samples, in the order and with the signs of `factors`.
    confidence : float
    labels : list of Mode
        Names and coordinates of the modes, as X had them.
    """

    factors: list[Array]
    lower: list[Array]
    upper: list[Array]
    samples: list[Array]
    confidence: float
    labels: list[Mode] = field(default_factory=list)

    def plot(self, axes: Any = None) -> Array:
        """Draw the entries of each mode as points with their intervals.

        Parameters
        ----------
        axes : sequence of M matplotlib axes, optional
            A new figure by default.

        Returns
        -------
        ndarray of M matplotlib axes
        """
        return FactorsDisplay.from_result(self, axes=axes).axes_

    def _facts(self) -> dict[str, str]:
        facts = {"confidence": f"{self.confidence:g}"}
        for mode, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            apart = np.count_nonzero(((low > 0) | (high < 0)).any(axis=1))
            facts[f"mode_{mode}"] = f"{apart} of {len(low)}"
        return facts

    def _sentence(self) -> str:
        n_bootstrap = len(self.samples[0]) if self.samples else 0
        return (
            "Entries of each mode whose interval leaves 0 out in some term, by "
            f"{counted(n_bootstrap, 'bootstrap sample')}."
        )


def bootstrap_factors(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_bootstrap: int = 200,
    confidence: float = 0.95,
    sample_weight: Any = None,
    covariates: Any = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> BootstrapResult:
    """Compute percentile intervals of the factors by the bootstrap.

    The estimator is fitted to all samples. From that solution it is fitted to bootstrap samples,
    which are whole-number weights, all in batches that share each pass over X. Terms of each
    bootstrap sample are matched with those of the fit by their cosines, and their components
    turned to the same side, two at a time so that the term stays the same.

    Parameters
    ----------
    estimator : FasTRRegressor or FasTRClassifier, or a fitted FasTRRegressorCV, FasTRClassifierCV
        Of an estimator that chooses, its choice. Left as it is. A threshold or a large ridge
        shrinks the factors, and the intervals do not make up for that. In a Pipeline after
        TensorScaler, X is scaled by each bootstrap sample anew, and factors are those of scaled X.
    X : array-like of shape (n_samples, p1, ..., pM)
    y : array-like of shape (n_samples,)
    n_bootstrap : int, default=200
        Number of bootstrap samples; those of classes are drawn within each.
    confidence : float, default=0.95
    sample_weight : array-like of shape (n_samples,), optional
        Multiplies how often a sample was drawn; samples of weight 0 are not.
    covariates : array-like of shape (n_samples, n_covariates), optional
    random_state : int, RandomState or None, default=None
        Seed of starts and bootstrap samples.
    verbose : int, default=0
        1 shows a bar where a person watches, 2 prints lines.

    Returns
    -------
    BootstrapResult

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.inference import bootstrap_factors
    >>> X, y = make_tensor_regression(100, (4, 5), random_state=0)
    >>> intervals = bootstrap_factors(FasTRRegressor(), X, y, n_bootstrap=50, random_state=0)
    >>> [bool((low <= high).all()) for low, high in zip(intervals.lower, intervals.upper)]
    [True, True]
    """
    check_count("n_bootstrap", n_bootstrap)
    check_share("confidence", confidence, "0.95 is usual.")
    scalers, last = unpacked(estimator)
    model = checked_model(last)
    data = checked_data(model, X, y, sample_weight, covariates)
    scaling = Scaling(scalers, X, sample_weight)
    rng = as_generator(random_state)
    model.set_params(random_state=int(rng.integers(2**31)))
    counts = bootstrap_counts(strata(model, data), len(data.y), n_bootstrap, rng)
    with showing(verbose):
        model._fit_data(scaling.apply(data, np.ones(len(data.y)))[0])
        start = [model.factors_[0] * model.scales_, *model.factors_[1:]]
        settings = replace(model._settings(data.source.shape), init=start)
        found = fit_resamples(data, scaling, counts, settings, rng)
    samples = align_terms(found, model.factors_)
    tail = (1 - confidence) / 2
    lower, upper = ([np.quantile(s, q, axis=0) for s in samples] for q in (tail, 1 - tail))
    return BootstrapResult(model.factors_, lower, upper, samples, confidence, modes_of(model))


def bootstrap_counts(
    groups: list[Array], n_samples: int, n_bootstrap: int, rng: np.random.Generator
) -> Array:
    """Draw how often each sample is in each bootstrap sample, as many of each group as it has."""
    counts = np.zeros((n_bootstrap, n_samples))
    for group in groups:
        n = len(group)
        counts[:, group] = rng.multinomial(n, np.full(n, 1 / n), size=n_bootstrap)
    return counts


def align_terms(models: Models, reference: list[Array]) -> list[Array]:
    """Return components ``(K, p_m, R)`` in the order and with the signs of the reference."""
    cosines = np.stack(
        [np.einsum("pr,ksp->krs", f, c) for f, c in zip(reference, models.components, strict=True)]
    )
    order = _matched(np.abs(cosines).prod(axis=0))
    signs = _signs(np.take_along_axis(cosines, order[None, :, :, None], axis=3)[..., 0])
    return [
        (np.take_along_axis(c, order[:, :, None], axis=1) * s[:, :, None]).transpose(0, 2, 1)
        for c, s in zip(models.components, signs, strict=True)
    ]


def _matched(likeness: Array) -> Array:
    """Match terms greedily: ``order[k, r]`` is the term of model k that is most like term r."""
    left = likeness.copy()
    K, R, _ = left.shape
    order, models = np.zeros((K, R), int), np.arange(K)
    for _ in range(R):
        own, other = np.divmod(left.reshape(K, -1).argmax(axis=1), R)
        order[models, own] = other
        left[models, own, :] = left[models, :, other] = -1
    return order


def _signs(cosines: Array) -> Array:
    """Return signs ``(M, K, R)`` that turn components to the reference and leave terms the same.

    Where an odd number of components points away the term itself is reversed: the one least like
    the reference then stays.
    """
    signs = np.where(cosines < 0, -1.0, 1.0)
    least = np.abs(cosines).argmin(axis=0)
    reversed_ = signs.prod(axis=0) < 0
    stays = reversed_ & (np.arange(len(cosines))[:, None, None] == least)
    return np.where(stays, -signs, signs)
