"""How much every slice of every mode counts for the score of a fitted model."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from pyfastr.display.modes import Mode, modes_of, plain_modes
from pyfastr.display.stability import ImportanceDisplay
from pyfastr.engines import engine_of
from pyfastr.estimators.choice import DEFAULT_SCORING, FasTRSelection
from pyfastr.estimators.classifier import LabelsMixin
from pyfastr.estimators.fitting import FasTRBase
from pyfastr.estimators.labels import check_covariate_names
from pyfastr.estimators.namespaces import hosted, on_host
from pyfastr.estimators.outputs import check_one_output
from pyfastr.estimators.reading import read_weights
from pyfastr.estimators.scoring import SCORES, KnownClassifier, KnownRegressor, auc_scores
from pyfastr.estimators.sklearn_private import BaseScorer
from pyfastr.estimators.validation import (
    as_generator,
    check_covariates,
    check_modes_asked_for,
    check_tensor,
)
from pyfastr.inference._scaling import unpacked
from pyfastr.inference._summary import Summary, counted
from pyfastr.inference._tasks import check_count
from pyfastr.solver.losses import LOSSES, Loss
from pyfastr.sources import ScaledSource, Source, as_source, largest_entry

Array = NDArray[Any]


@dataclass(frozen=True, repr=False)
class SliceImportance(Summary):
    """What the score of a model loses when slices are permuted.

    Attributes
    ----------
    importances : list of ndarrays of shape (p_m, n_repeats)
        For every mode asked for: the score less that with slice j permuted over the samples.
    mode_importances : ndarray of shape (n_modes, n_repeats)
        The score less that with the slices of the mode in random order, drawn for each sample
        anew: how much it matters which slice is which.
    score : float
        Of samples as they are.
    modes : tuple of int
        The modes asked for, counted from 0.
    labels : list of Mode
        Their names and coordinates, as X had them.
    """

    importances: list[Array]
    mode_importances: Array
    score: float
    modes: tuple[int, ...]
    labels: list[Mode] = field(default_factory=list)

    @property
    def importances_mean(self) -> list[Array]:
        """Mean over repeats, ``(p_m,)`` for every mode."""
        return [own.mean(axis=1) for own in self.importances]

    @property
    def importances_std(self) -> list[Array]:
        """Standard deviation over repeats, ``(p_m,)`` for every mode."""
        return [own.std(axis=1) for own in self.importances]

    def plot(self, axes: Any = None) -> Array:
        """Draw the importances of each mode as bars.

        Parameters
        ----------
        axes : sequence of matplotlib axes, one for each mode, optional
            A new figure by default.

        Returns
        -------
        ndarray of matplotlib axes
        """
        labels = self.labels or [plain_modes(m + 1)[m] for m in self.modes]
        return ImportanceDisplay.from_result(self, modes=labels, axes=axes).axes_

    def _facts(self) -> dict[str, str]:
        facts = {"score": f"{self.score:.4g}"}
        parts = zip(self.modes, self.importances_mean, self.mode_importances, strict=True)
        for mode, mean, whole in parts:
            best = int(np.argmax(mean))
            facts[f"mode_{mode}"] = f"{whole.mean():.3g}"
            facts[f"mode_{mode}_top_slice"] = f"{best} ({mean[best]:.3g})"
        return facts

    def _sentence(self) -> str:
        n_repeats = self.mode_importances.shape[1]
        return (
            f"Mean loss of score over {counted(n_repeats, 'repeat')}: of a mode when its slices "
            "are put in random order, and of its most important slice when that is permuted over "
            "the samples."
        )


def slice_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    modes: int | Sequence[int] | None = None,
    n_repeats: int = 30,
    scoring: Any = None,
    covariates: Any = None,
    sample_weight: Any = None,
    random_state: int | np.random.RandomState | None = None,
) -> SliceImportance:
    r"""Measure how much the score of a fitted model depends on each slice of each mode.

    It is scikit-learn's ``permutation_importance`` for tensors: slice j of a mode is permuted over
    the samples, and the loss of score is its importance. The prediction is a sum over slices,

    .. math:: f(X_i) = b + \sum_j c_{ij}, \qquad c_{ij} = \langle W_j, X_{ij} \rangle,

    so that a permuted slice exchanges one column of c: all slices of all modes and all repeats
    take one pass over X, which is neither copied nor written.

    Parameters
    ----------
    model : fitted FasTRRegressor, FasTRClassifier or CV twin, or Pipeline of TensorScaler and one
        After scaling, slices are those of scaled X.
    X : array-like of shape (n_samples, p1, ..., pM)
        Best samples that had no part in the fit: others make all that was fitted look important.
    y : array-like of shape (n_samples,)
    modes : int, sequence of int or None, default=None
        Modes to look at, counted from 0 over the axes of a sample, negative ones from the last.
        None takes all.
    n_repeats : int, default=30
        Permutations of every slice; all slices share them.
    scoring : str, scorer of ``sklearn.metrics.make_scorer`` or None, default=None
        None is R², or the area under the ROC curve for classes.
    covariates : array-like of shape (n_samples, n_covariates), optional
        Needed if and only if the fit had them.
    sample_weight : array-like of shape (n_samples,), optional
        Counts in the score, if that can.
    random_state : int, RandomState or None, default=None
        Seed of the permutations.

    Returns
    -------
    SliceImportance

    See Also
    --------
    sklearn.inspection.permutation_importance : The same for columns of a matrix.

    Notes
    -----
    Slices that tell the same share their importance: permuting one leaves the other to predict
    from. A coefficient of 0 has importance 0 always.

    To permute all slices of a mode over the samples would be to permute whole samples, the same for
    every mode. The importance of a mode is therefore what is lost when the slices of each sample
    change places within it. A mode whose slices all count alike, such as one that the model
    averages over, has importance 0: the model needs its sum but not its order. As scores may fall
    below those of chance, an importance may exceed the score itself.

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.inference import slice_importance
    >>> X, y, W = make_tensor_regression(200, (6, 5), sparsity=0.5, coef=True, random_state=0)
    >>> model = FasTRRegressor(threshold=0.1, random_state=0).fit(X[:100], y[:100])
    >>> found = slice_importance(model, X[100:], y[100:], random_state=0)
    >>> bool(((found.importances_mean[0] > 0.01) == W.any(axis=1)).all())
    True
    """
    check_count("n_repeats", n_repeats)
    source, last = _checked(model, X)
    wanted = check_modes_asked_for(modes, len(source.shape) - 1)
    score = _Score.check(last, y, scoring, sample_weight, source.shape[0])
    projections = _projections(last, source)
    base = _nuisance(last, covariates, source.shape[0])
    terms = [_Terms(projections[m], last.factors_[m] * last.scales_) for m in wanted]
    fitted = base + terms[0].contributions.sum(axis=1)
    rng = as_generator(random_state)
    orders = np.stack([rng.permutation(source.shape[0]) for _ in range(n_repeats)])
    observed = _checked_score(float(score(fitted[None])[0]))
    return SliceImportance(
        [_losses(own.contributions, fitted, observed, orders, score) for own in terms],
        np.stack([observed - score(base + own.shuffled(n_repeats, rng)) for own in terms]),
        observed,
        wanted,
        [modes_of(model)[m] for m in wanted],
    )


@dataclass(frozen=True)
class _Terms:
    """Samples projected onto one mode ``(N, R, p)``, and what weighs its slices ``(p, R)``."""

    projections: Array
    weights: Array

    @property
    def contributions(self) -> Array:
        """What each slice adds to each prediction, ``(N, p)``."""
        summed: Array = np.einsum("nrp,pr->np", self.projections, self.weights)
        return summed

    def shuffled(self, n_repeats: int, rng: np.random.Generator) -> Array:
        """Sum contributions with the slices of every sample in random order, ``(n_repeats, N)``."""
        n_samples, _, size = self.projections.shape
        found = np.empty((n_repeats, n_samples))
        for row in found:
            order = rng.permuted(np.tile(np.arange(size), (n_samples, 1)), axis=1)
            moved = np.take_along_axis(self.projections, order[:, None], axis=2)
            row[:] = np.einsum("nrp,pr->n", moved, self.weights)
        return found


@dataclass(frozen=True)
class _Score:
    """How rows of predictions, or of decisions, are scored.

    Attributes
    ----------
    scorer : callable or None
        None is R², D² of counts, or the area under the ROC curve, of all rows at once.
    default : callable
        What that is.
    known : callable
        Makes an estimator of linear predictors that are known.
    y : ndarray
        The response, or the labels.
    codes : ndarray
        The response, or -1 and 1.
    weights : ndarray or None
    """

    scorer: Any
    default: Any
    known: Any
    y: Array
    codes: Array
    weights: Array | None

    @classmethod
    def check(
        cls, model: Any, y: Any, scoring: Any, sample_weight: Any, n_samples: int
    ) -> "_Score":
        """Check what the user gave."""
        classify = isinstance(model, LabelsMixin)
        y, sample_weight = on_host(None, y=y, sample_weight=sample_weight)
        y = column_or_1d(y)
        check_consistent_length(np.empty(n_samples), y)
        codes = _codes(model, y) if classify else np.asarray(y, float)
        weights = None
        if sample_weight is not None:
            weights = read_weights(sample_weight, n_samples)
        scorer = _checked_scorer(model, scoring, classify)
        if not classify:
            known = partial(_known_numbers, LOSSES[model.loss])
            return cls(scorer, SCORES[model.loss], known, y, codes, weights)
        slope = float(model.calibration_)
        known = partial(KnownClassifier, classes=model.classes_, calibration=lambda: slope)
        return cls(scorer, auc_scores, known, y, codes, weights)

    def __call__(self, predictions: Array) -> Array:
        """Return the score of every row."""
        if self.scorer is None:
            scores: Array = self.default(self.codes, predictions, self.weights)
            return scores
        samples, options = np.arange(len(self.y))[:, None], {}
        parameters = inspect.signature(self.scorer._score_func).parameters
        if self.weights is not None and "sample_weight" in parameters:
            options["sample_weight"] = self.weights
        return np.array(
            [self.scorer(self.known(row), samples, self.y, **options) for row in predictions]
        )


def _known_numbers(loss: Loss, predictor: Array) -> KnownRegressor:
    """Return an estimator that predicts what a linear predictor means."""
    return KnownRegressor(loss.predict(predictor))


def _losses(
    contributions: Array, fitted: Array, observed: float, orders: Array, score: _Score
) -> Array:
    """Return what is lost with each slice permuted in each order, ``(p, n_repeats)``."""
    found = np.zeros((contributions.shape[1], len(orders)))
    for slice_, own in enumerate(contributions.T):
        if own.any():
            found[slice_] = observed - score(fitted - own + own[orders])
    return found


def _checked_score(observed: float) -> float:
    """Refuse a score from which nothing can be lost."""
    if not np.isfinite(observed):
        raise ValueError(
            f"The score of the samples given is {observed}, so that no loss can be told; expected "
            "y without NaN, two or more samples, and samples of both classes if there are classes, "
            "or another `scoring`."
        )
    return observed


def _checked(model: Any, X: Any) -> tuple[Source, Any]:
    """Return samples as a fitted estimator sees them, and that estimator."""
    scalers, last = unpacked(model)
    if not isinstance(last, FasTRBase | FasTRSelection):
        raise TypeError(
            f"model is {model!r}; expected a fitted FasTRRegressor, FasTRClassifier, "
            "FasTRRegressorCV or FasTRClassifierCV, or a Pipeline of TensorScaler and one of them."
        )
    for step in (*scalers, last):
        check_is_fitted(step)
    check_one_output(last, "Importances are")
    source = as_source(check_tensor(scalers[0] if scalers else last, X, reset=False))
    for scaler in map(hosted, scalers):
        source = ScaledSource(source, scaler.mean_, scaler.scale_)
    return source, hosted(last)


def _projections(model: Any, source: Source) -> list[Array]:
    """Return samples contracted with all components of each term but one: M of ``(N, R, p_m)``."""
    components = [factor.T[None] for factor in model.factors_]
    features = engine_of(source).project_all(components)[0]
    ends = np.cumsum([c[0].size for c in components])[:-1]
    found = np.split(features, ends, axis=1)
    if not all(np.isfinite(own).all() for own in found):
        # It says where X is not finite.
        largest_entry(source)
    n_terms = len(model.scales_)
    return [own.reshape(len(own), n_terms, -1) for own in found]


def _nuisance(model: Any, covariates: Any, n_samples: int) -> Array:
    """Return what intercept and covariates add to each prediction."""
    own: Array | None = getattr(model, "covariate_coef_", None)
    check_covariate_names(model, covariates)
    Z = check_covariates(covariates, n_samples, expected=0 if own is None else len(own))
    base = np.full(n_samples, float(model.intercept_))
    return base if Z is None else base + Z @ own


def _codes(model: Any, y: Array) -> Array:
    """Return labels as -1 and 1."""
    unknown = np.setdiff1d(y, model.classes_)
    if len(unknown):
        raise ValueError(
            f"y has the labels {unknown.tolist()}, which the model has not seen; expected only "
            f"{model.classes_.tolist()}."
        )
    return np.where(y == model.classes_[1], 1.0, -1.0)


def _checked_scorer(model: Any, scoring: Any, classify: bool) -> Any:
    """Return a scorer of predictions; None is the default, for which rows need no loop."""
    if scoring is None or scoring == ("roc_auc" if classify else DEFAULT_SCORING[model.loss]):
        return None
    scorer = check_scoring(model, scoring=scoring)
    if not isinstance(scorer, BaseScorer):
        raise ValueError(
            f"scoring is {scoring!r}, a function of estimator, X and y, but X with a permuted "
            "slice is never made; expected the name of a score, or one made by "
            "sklearn.metrics.make_scorer."
        )
    return scorer
