"""Whether the score of an estimator could have come about by chance."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight

from pyfastr.display.permutation import PermutationDisplay
from pyfastr.estimators.choice import SHARED, FasTRSelection
from pyfastr.estimators.classifier import FasTRClassifier
from pyfastr.estimators.data import Data
from pyfastr.estimators.folds import FoldFits, Scoring, Split, fit_tasks, training_weights
from pyfastr.estimators.selection import FasTRClassifierCV, FasTRRegressorCV
from pyfastr.estimators.validation import as_generator, share_input
from pyfastr.inference._tasks import BATCH, batches, check_count, checked_data, checked_estimator
from pyfastr.solver.solve import Settings

Array = NDArray[Any]


@dataclass(frozen=True)
class PermutationResult:
    """A score, and what it is when the response is permuted.

    Attributes
    ----------
    score : float
        Mean cross-validated score; of an estimator that chooses, the best of its grid.
    permutation_scores : ndarray of shape (n_permutations,)
        The same of permuted responses.
    p_value : float
    """

    score: float
    permutation_scores: Array

    @property
    def p_value(self) -> float:
        """``(1 + number of permuted scores >= score) / (1 + n_permutations)``."""
        as_good = int(np.count_nonzero(self.permutation_scores >= self.score))
        return (1 + as_good) / (1 + len(self.permutation_scores))

    def plot(self, ax: Any = None) -> Any:
        """Draw the permuted scores as a histogram, and the score as a line.

        Parameters
        ----------
        ax : matplotlib axes, optional
            A new figure by default.

        Returns
        -------
        matplotlib axes
        """
        return PermutationDisplay.from_result(self, ax=ax).ax_


def permutation_test(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_permutations: int = 100,
    cv: Any = 5,
    scoring: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    covariates: Any = None,
    random_state: int | np.random.RandomState | None = None,
) -> PermutationResult:
    r"""Test whether X tells anything of y, by the score of an estimator on permuted responses.

    The statistic is the mean cross-validated score at the estimator's parameters. For an
    estimator that chooses its parameters it is the best mean score of its grid, which the
    choice makes optimistic, but equally so for permuted responses. With b of n permuted scores
    at least as good as the observed one

    .. math:: p = \frac{1 + b}{1 + n},

    which is valid for any n. All folds of many permutations are fitted in one batch that shares
    each pass over X, and the observed response is one among them.

    Parameters
    ----------
    estimator : FasTRRegressor, FasTRClassifier, FasTRRegressorCV or FasTRClassifierCV
        Need not be fitted, and is left as it is. With ``n_init="auto"`` every fold has at most 256
        starts. A threshold "theory" is that of all samples.
    X : array-like of shape (n_samples, p1, ..., pM)
    y : array-like of shape (n_samples,)
    n_permutations : int, default=100
    cv : int, splitter, iterable or None, default=5
        An integer makes so many shuffled folds, stratified for classes, that keep groups whole.
        Folds that depend on y are drawn anew for each permutation, others stay. None takes the
        estimator's own `cv`, or 5.
    scoring : str, callable or None, default=None
        Any of scikit-learn; None takes the estimator's own, or else R² or the area under the ROC
        curve.
    groups : array-like of shape (n_samples,), optional
        Responses are permuted within groups only. Also passed to the splitter.
    sample_weight : array-like of shape (n_samples,), optional
        Counts in fits and scores, and stays with the samples.
    covariates : array-like of shape (n_samples, n_covariates), optional
        Stay with the samples: what they explain of y is permuted too, so the hypothesis tested
        is that neither X nor the covariates tell anything of y. To test X alone, permute within
        `groups` of alike covariates.
    random_state : int, RandomState or None, default=None
        Seed of permutations, folds and starts.

    Returns
    -------
    PermutationResult

    See Also
    --------
    sklearn.model_selection.permutation_test_score : The same test by a loop of fits.

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.inference import permutation_test
    >>> X, y = make_tensor_regression(60, (4, 4), random_state=0)
    >>> model = FasTRRegressor(ridge=0.1, n_init=2)
    >>> permutation_test(model, X, y, n_permutations=19, random_state=0).p_value
    0.05
    """
    check_count("n_permutations", n_permutations)
    test = _Test.check(estimator, X, y, cv, scoring, groups, sample_weight, covariates)
    draw = check_random_state(random_state)
    n_samples = len(test.y)
    orders = [_permutation(n_samples, test.groups, draw) for _ in range(n_permutations)]
    test.selection.random_state = int(draw.randint(2**31))
    scores = test.scores([np.arange(n_samples), *orders], as_generator(draw))
    return PermutationResult(float(scores[0]), scores[1:])


@dataclass(frozen=True)
class _Response:
    """One response, permuted or not, with its folds and its scoring."""

    data: Data
    splits: list[Split]
    scoring: Scoring

    @property
    def training(self) -> Array:
        """Training weights ``(n_folds, n_samples)``."""
        counts = training_weights(self.splits, len(self.data.y))
        return counts if self.data.weights is None else counts * self.data.weights

    def best_score(self, fits: FoldFits) -> float:
        """Return the best mean score of the grid; NaN if no point has one."""
        means = self.scoring.scores(fits, self.splits).mean(axis=0)
        finite = means[np.isfinite(means)]
        return float(finite.max()) if len(finite) else np.nan


@dataclass(frozen=True)
class _Test:
    """What is tested, checked.

    An estimator with parameters of its own is a selection whose grid has one point, apart from the
    number of sweeps, which is smaller where estimators choose.
    """

    selection: Any
    chooses: bool
    data: Data
    X: Any
    y: Array
    class_weights: Array | None
    groups: Array | None

    @classmethod
    def check(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        cv: Any,
        scoring: Any,
        groups: Any,
        sample_weight: Any,
        covariates: Any,
    ) -> "_Test":
        """Check all that the user gave."""
        own = checked_estimator(estimator)
        class_weight = getattr(own, "class_weight", None)
        if class_weight is not None:
            # Weights of classes move with the labels, those of samples do not.
            own.class_weight = None
        data = checked_data(own, X, y, sample_weight, covariates)
        classify = hasattr(own, "classes_")
        y = np.asarray(y).reshape(-1) if classify else data.y
        selection = _as_selection(own, data)
        _set_cross_validation(selection, cv, scoring, y)
        return cls(
            selection,
            selection is own,
            data,
            X,
            y,
            None if class_weight is None else compute_sample_weight(class_weight, y),
            _checked_groups(groups, y),
        )

    def scores(self, orders: Sequence[Array], rng: np.random.Generator) -> Array:
        """Return the statistic of the response in each of the orders."""
        n_folds = len(self._response(orders[0]).splits)
        found = np.full(len(orders), np.nan)
        # The solver treats tasks of one batch alike in some respects (how many starts they get),
        # so the observed response must not always be in the same batch.
        shuffled = rng.permutation(len(orders))
        for rows in batches(len(orders), max(1, BATCH // n_folds)):
            which = shuffled[rows]
            found[which] = self._batch([self._response(orders[i]) for i in which], rng)
        _check_finite(found)
        return found

    def _response(self, order: Array) -> _Response:
        """Put the response in another order; samples, covariates and their weights stay."""
        weights = self.data.weights
        if self.class_weights is not None:
            own = self.class_weights[order]
            weights = own if weights is None else own * weights
        data, y = replace(self.data, y=self.data.y[order], weights=weights), self.y[order]
        groups = {} if self.groups is None else {"groups": self.groups}
        splits = self.selection._splits(data, y, groups)
        return _Response(data, splits, self.selection._scoring(data, self.X, y))

    def _batch(self, responses: list[_Response], rng: np.random.Generator) -> Array:
        """Fit all folds of some responses together; return the statistic of each."""
        tasks = replace(
            self.data,
            y=np.concatenate([np.tile(r.data.y, (len(r.splits), 1)) for r in responses]),
            weights=np.concatenate([r.training for r in responses]),
        )
        splits = responses[0].splits
        thresholds, ridges, n_terms = self.selection._grids(self.data, splits)
        best = np.full(len(responses), np.nan)
        for terms in n_terms:
            settings = self._settings(splits, min(ridges), terms)
            fits = fit_tasks(tasks, ridges, thresholds, settings, rng)
            parts = _split_fits(fits, [len(r.splits) for r in responses])
            scores = [r.best_score(p) for r, p in zip(responses, parts, strict=True)]
            best = np.fmax(best, scores)
        return best

    def _settings(self, splits: list[Split], ridge: float, n_terms: int) -> Settings:
        if self.chooses:
            settings: Settings = self.selection._fold_settings(self.data, splits, ridge, n_terms)
        else:
            settings = self.selection._twin(0.0, ridge, n_terms)._settings(self.data.source.shape)
        return settings


def _as_selection(estimator: Any, data: Data) -> Any:
    """Return an estimator that chooses as it is, and another as a choice of one."""
    if isinstance(estimator, FasTRSelection):
        return estimator
    classify = isinstance(estimator, FasTRClassifier)
    names = (*SHARED, "loss") if classify else SHARED
    settings = estimator._settings(data.source.shape)
    selection = (FasTRClassifierCV if classify else FasTRRegressorCV)(
        [settings.threshold],
        [settings.ridge],
        settings.n_terms,
        **{name: getattr(estimator, name) for name in names},
    )
    share_input(estimator, selection)
    return selection


def _set_cross_validation(selection: Any, cv: Any, scoring: Any, y: Array) -> None:
    """Let the user's folds and score replace the estimator's own."""
    if scoring is not None:
        selection.scoring = scoring
    if cv is not None:
        selection.cv = cv
    if selection.cv is not None and not isinstance(selection.cv, Integral):
        # An iterable can be read only once.
        selection.cv = check_cv(selection.cv, y, classifier=selection._is_classifier())


def _split_fits(fits: FoldFits, n_tasks: Sequence[int]) -> list[FoldFits]:
    """Cut the fits of a batch into those of so many tasks each."""
    each = len(fits.models) // sum(n_tasks)
    ends = np.cumsum(n_tasks).tolist()
    return [
        fits.take(slice((end - n) * each, end * each)) for n, end in zip(n_tasks, ends, strict=True)
    ]


def _permutation(n_samples: int, groups: Array | None, draw: np.random.RandomState) -> Array:
    """Draw an order of the samples, within groups if there are any, as scikit-learn does."""
    if groups is None:
        return draw.permutation(n_samples)
    order = np.arange(n_samples)
    for group in np.unique(groups):
        own = groups == group
        order[own] = draw.permutation(order[own])
    return order


def _checked_groups(groups: Any, y: Array) -> Array | None:
    """Return the groups; those within which no permutation changes y are refused."""
    if groups is None:
        return None
    groups = column_or_1d(groups)
    check_consistent_length(y, groups)
    if all(len(np.unique(y[groups == group])) == 1 for group in np.unique(groups)):
        raise ValueError(
            "groups has only groups within which y is constant, so no permutation changes it; "
            "expected groups within which y varies. Average the samples of each group, or leave "
            "groups out and pass a `cv` that keeps them whole."
        )
    return groups


def _check_finite(scores: Array) -> None:
    """Refuse scores that cannot be compared."""
    n_bad = int(np.count_nonzero(~np.isfinite(scores)))
    if n_bad:
        raise ValueError(
            f"{n_bad} of {len(scores)} mean scores, of the response and its permutations, are not "
            "finite. Check `scoring`, or use fewer folds in `cv`, so that each holds out samples "
            "that can be scored."
        )
