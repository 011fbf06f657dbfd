"""Which entries of each mode are selected again and again."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display.modes import Mode, modes_of
from pyfastr.display.stability import StabilityDisplay
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

Array = NDArray[Any]


@dataclass(frozen=True, repr=False)
class StabilityResult(Summary):
    """How often each entry of each mode was selected.

    Attributes
    ----------
    frequencies : list of M ndarrays of shape (p_m,)
        Share of the subsamples in which the entry is not zero in some term.
    n_subsamples : int
    fraction : float
    labels : list of Mode
        Names and coordinates of the modes, as X had them.
    """

    frequencies: list[Array]
    n_subsamples: int
    fraction: float
    labels: list[Mode] = field(default_factory=list)

    def selected(self, cutoff: float = 0.6) -> list[Array]:
        """Return the entries that are selected at least so often.

        Parameters
        ----------
        cutoff : float, default=0.6
            A share of the subsamples, above 0 and up to 1.

        Returns
        -------
        list of M ndarrays of shape (p_m,)
            Of bool.
        """
        if not 0 < cutoff <= 1:
            raise ValueError(
                f"cutoff is {cutoff!r}; expected a share of the subsamples above 0 and up to 1."
            )
        return [f >= cutoff for f in self.frequencies]

    def plot(self, axes: Any = None) -> Array:
        """Draw the frequencies of each mode as bars, filled from a frequency of 0.6.

        Parameters
        ----------
        axes : sequence of M matplotlib axes, optional
            A new figure by default.

        Returns
        -------
        ndarray of M matplotlib axes
        """
        return StabilityDisplay.from_result(self, axes=axes).axes_

    def _facts(self) -> dict[str, str]:
        facts = {"n_subsamples": str(self.n_subsamples), "fraction": f"{self.fraction:g}"}
        pairs = zip(self.selected(), self.frequencies, strict=True)
        for mode, (chosen, frequency) in enumerate(pairs):
            facts[f"mode_{mode}"] = f"{np.count_nonzero(chosen)} of {len(frequency)}"
        return facts

    def _sentence(self) -> str:
        return (
            "Entries of each mode that were selected in at least 60 % of "
            f"{counted(self.n_subsamples, 'subsample')}."
        )


def stability_selection(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_subsamples: int = 100,
    fraction: float = 0.5,
    sample_weight: Any = None,
    covariates: Any = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> StabilityResult:
    """Count how often each entry of each mode is selected in subsamples.

    The estimator is fitted, at its threshold and ridge, to subsamples drawn without replacement,
    all in batches that share each pass over X. Entries that belong to the coefficient are
    selected in nearly all of them, others by chance in some.

    Parameters
    ----------
    estimator : FasTRRegressor or FasTRClassifier, or a fitted FasTRRegressorCV, FasTRClassifierCV
        With a threshold above 0; of an estimator that chooses, its choice. Left as it is. With
        ``n_init="auto"`` every subsample has at most 512 starts. A threshold "theory" is that of
        all samples. In a Pipeline after TensorScaler, X is scaled by each subsample anew.
    X : array-like of shape (n_samples, p1, ..., pM)
    y : array-like of shape (n_samples,)
    n_subsamples : int, default=100
    fraction : float, default=0.5
        Share of the samples, of each class if there are classes, in a subsample.
    sample_weight : array-like of shape (n_samples,), optional
        Samples of weight 0 are not drawn.
    covariates : array-like of shape (n_samples, n_covariates), optional
    random_state : int, RandomState or None, default=None
        Seed of subsamples and starts.
    verbose : int, default=0
        1 shows a bar where a person watches, 2 prints lines.

    Returns
    -------
    StabilityResult

    References
    ----------
    N. Meinshausen and P. Bühlmann, "Stability selection", Journal of the Royal Statistical
    Society B 72, 2010.

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.inference import stability_selection
    >>> X, y, W = make_tensor_regression(100, (6, 6), sparsity=0.5, coef=True, random_state=0)
    >>> model = FasTRRegressor(threshold=0.1, n_init=4)
    >>> stability = stability_selection(model, X, y, n_subsamples=20, random_state=0)
    >>> bool((stability.selected()[0] == W.any(axis=1)).all())
    True
    """
    check_count("n_subsamples", n_subsamples)
    check_share("fraction", fraction, "Half of the samples, 0.5, is usual.")
    scalers, last = unpacked(estimator)
    model = checked_model(last)
    data = checked_data(model, X, y, sample_weight, covariates)
    settings = model._settings(data.source.shape)
    _check_threshold(settings.threshold)
    rng = as_generator(random_state)
    counts = subsample_counts(strata(model, data), len(data.y), n_subsamples, fraction, rng)
    with showing(verbose):
        models = fit_resamples(data, Scaling(scalers, X, sample_weight), counts, settings, rng)
    alive = models.scales[..., None] != 0
    chosen = [(alive & (c != 0)).any(axis=1).mean(axis=0) for c in models.components]
    return StabilityResult(chosen, n_subsamples, fraction, modes_of(model))


def subsample_counts(
    groups: list[Array],
    n_samples: int,
    n_subsamples: int,
    fraction: float,
    rng: np.random.Generator,
) -> Array:
    """Draw rows of 0 and 1 with the same share of each group."""
    sizes = [int(fraction * len(group)) for group in groups]
    if min(sizes) < 1 or sum(sizes) < 2:
        raise ValueError(
            f"fraction is {fraction!r}, which leaves {sizes} of {[len(g) for g in groups]} samples "
            "(of each class, if there are classes); expected subsamples of at least 2 samples and "
            "1 of each class. Raise `fraction`, or collect more samples."
        )
    counts = np.zeros((n_subsamples, n_samples))
    for row in counts:
        for group, size in zip(groups, sizes, strict=True):
            row[rng.choice(group, size, replace=False)] = 1
    return counts


def _check_threshold(threshold: float) -> None:
    """Refuse a fit that selects everything."""
    if threshold == 0:
        raise ValueError(
            "estimator has threshold=0.0, with which every entry is selected in every subsample; "
            "expected a threshold above 0 and below 1, such as 0.1, or a choice among such."
        )
