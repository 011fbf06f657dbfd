"""The statistic of permutation tests: mean scores of folds, of many responses in one batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import column_or_1d
from sklearn.utils.class_weight import compute_sample_weight

from pyfastr.estimators.choice import FasTRSelection
from pyfastr.estimators.choice_parameters import SHARED
from pyfastr.estimators.classifier import FasTRClassifier
from pyfastr.estimators.classifier_cv import FasTRClassifierCV
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import solver_settings
from pyfastr.estimators.folds import Split, TaskFits, fit_tasks, training_weights
from pyfastr.estimators.namespaces import on_host
from pyfastr.estimators.reading import check_as_many
from pyfastr.estimators.scaler import TensorScaler
from pyfastr.estimators.scoring import Scoring
from pyfastr.estimators.selection import FasTRRegressorCV
from pyfastr.estimators.sklearn_private import BaseScorer
from pyfastr.estimators.validation import share_input
from pyfastr.inference._progress import Progress
from pyfastr.inference._scaling import Scaling, scoring_pipelines, unpacked
from pyfastr.inference._tasks import BATCH, batches, checked_data, checked_estimator
from pyfastr.solver.progress import unwatched
from pyfastr.solver.settings import Settings

Array = NDArray[Any]

# Sweeps of a grid's models at most, and the change of W at which they end: two digits of a score
# are enough to compare it with others that are known as well.
N_SWEEPS, TOL = 8, 0.01


@dataclass(frozen=True)
class Response:
    """One response, permuted or not, with its folds and its scoring."""

    data: Data
    splits: list[Split]
    scoring: Scoring

    @cached_property
    def counts(self) -> Array:
        """How often each fold trains on each sample, ``(n_folds, n_samples)``."""
        return training_weights(self.splits, len(self.data.y))

    @cached_property
    def training(self) -> Array:
        """Training weights ``(n_folds, n_samples)``."""
        return self.counts if self.data.weights is None else self.counts * self.data.weights

    def scores(self, fits: TaskFits, fold: int, scalers: list[TensorScaler]) -> Array:
        """Return the scores of the models of one fold, fitted to X that these have scaled."""
        scoring = self.scoring
        if scalers and scoring.scorer is not None and not isinstance(scoring.scorer, BaseScorer):
            scoring = replace(scoring, scorer=scoring_pipelines(scoring.scorer, scalers))
        own: Array = scoring.scores(fits, [self.splits[fold]])[0]
        return own


@dataclass(frozen=True)
class _Group:
    """Folds that train on the same samples, and so have the same scaled X.

    Attributes
    ----------
    data : Data
    scalers : list of TensorScaler
        Fitted to the training samples.
    members : list of (int, int)
        Numbers of response and fold.
    """

    data: Data
    scalers: list[TensorScaler]
    members: list[tuple[int, int]]


@dataclass(frozen=True)
class PermutationStatistic:
    """What is tested, checked.

    An estimator with parameters of its own is a selection whose grid has one point, apart from the
    number of sweeps, which is smaller where estimators choose.
    """

    selection: Any
    chooses: bool
    data: Data
    scaling: Scaling
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
    ) -> "PermutationStatistic":
        """Check all that the user gave."""
        y, groups, sample_weight = on_host(X, y=y, groups=groups, sample_weight=sample_weight)
        scalers, last = unpacked(estimator)
        own = checked_estimator(last)
        class_weight = getattr(own, "class_weight", None)
        if class_weight is not None:
            # Weights of classes move with the labels, those of samples do not.
            own.class_weight = None
        data = checked_data(own, X, y, sample_weight, covariates)
        if scalers:
            # Scaled samples are an array, whose columns have no names.
            vars(own).pop("feature_names_in_", None)
        classify = hasattr(own, "classes_")
        y = np.asarray(y).reshape(-1) if classify else data.y
        selection = _as_selection(own, data)
        _set_cross_validation(selection, cv, scoring, y)
        return cls(
            selection,
            selection is own,
            data,
            Scaling(scalers, X, sample_weight),
            y,
            None if class_weight is None else compute_sample_weight(class_weight, y),
            _checked_groups(groups, y),
        )

    def scores(self, orders: Sequence[Array], rng: np.random.Generator) -> Array:
        """Return the statistic of the response in each of the orders."""
        n_folds = len(self._response(orders[0]).splits)
        found = np.full(len(orders), np.nan)
        progress = Progress("folds", "folds of permuted responses", len(orders) * n_folds)
        # The solver treats tasks of one batch alike in some respects (how many starts they get),
        # so the observed response must not always be in the same batch.
        shuffled = rng.permutation(len(orders))
        # Of scaled X each fold makes batches of its own.
        size = BATCH if self.scaling else max(1, BATCH // n_folds)
        for rows in batches(len(orders), size):
            which = shuffled[rows]
            found[which] = self._some([self._response(orders[i]) for i in which], rng, progress)
        _check_finite(found)
        return found

    def _response(self, order: Array) -> Response:
        """Put the response in another order; samples, covariates and their weights stay."""
        weights = self.data.weights
        if self.class_weights is not None:
            own = self.class_weights[order]
            weights = own if weights is None else own * weights
        data, y = replace(self.data, y=self.data.y[order], weights=weights), self.y[order]
        groups = {} if self.groups is None else {"groups": self.groups}
        splits = self.selection._splits(data, y, groups)
        return Response(data, splits, self.selection._scoring(data, self.scaling.X, y))

    def _some(
        self, responses: list[Response], rng: np.random.Generator, progress: Progress
    ) -> Array:
        """Return the statistic of some responses: the best mean score of the grid."""
        grid = self.selection._grids(self.data, responses[0].splits)
        size = len(grid[0]) * len(grid[1])
        scores = [np.empty((len(grid[2]), len(r.splits), size)) for r in responses]
        for group in self._groups(responses):
            for rows in batches(len(group.members), BATCH):
                batch = replace(group, members=group.members[rows])
                with unwatched():
                    self._fit(batch, responses, grid, rng, scores)
                progress.add(len(batch.members))
        return np.array([_best_mean(own) for own in scores])

    def _groups(self, responses: list[Response]) -> Iterator[_Group]:
        """Gather folds by their training samples where X is scaled by these, else all folds."""
        members: dict[bytes, list[tuple[int, int]]] = {}
        for i, response in enumerate(responses):
            for fold, counts in enumerate(response.counts):
                key = counts.tobytes() if self.scaling else b""
                members.setdefault(key, []).append((i, fold))
        for own in members.values():
            i, fold = own[0]
            yield _Group(*self.scaling.apply(self.data, responses[i].counts[fold]), own)

    def _fit(
        self,
        group: _Group,
        responses: list[Response],
        grid: tuple[list[float], list[float], list[int]],
        rng: np.random.Generator,
        scores: list[Array],
    ) -> None:
        """Fit folds together, and fill in the scores of every number of terms."""
        thresholds, ridges, n_terms = grid
        members = group.members
        tasks = replace(
            group.data,
            y=np.stack([responses[i].data.y for i, _ in members]),
            weights=np.stack([responses[i].training[fold] for i, fold in members]),
        )
        each = len(thresholds) * len(ridges)
        for k, terms in enumerate(n_terms):
            settings = self._settings(responses[0].splits, min(ridges), terms)
            fits = fit_tasks(tasks, ridges, thresholds, settings, rng)
            for task, (i, fold) in enumerate(members):
                own = fits.take(slice(task * each, (task + 1) * each))
                scores[i][k, fold] = responses[i].scores(own, fold, group.scalers)

    def _settings(self, splits: list[Split], ridge: float, n_terms: int) -> Settings:
        """Return what is asked of the solver; estimators that do not choose keep their accuracy."""
        if not self.chooses:
            shape = self.data.source.shape
            return replace(solver_settings(self.selection, shape, 0.0, ridge, n_terms), brief=True)
        settings: Settings = self.selection._fold_settings(self.data, splits, ridge, n_terms)
        n_sweeps, tol = min(settings.max_iter, N_SWEEPS), max(settings.tol, TOL)
        return replace(settings, brief=True, max_iter=n_sweeps, tol=tol)


def _as_selection(estimator: Any, data: Data) -> Any:
    """Return an estimator that chooses as it is, and another as a choice of one."""
    if isinstance(estimator, FasTRSelection):
        return estimator
    classify = isinstance(estimator, FasTRClassifier)
    settings = estimator._settings(data.source.shape)
    selection = (FasTRClassifierCV if classify else FasTRRegressorCV)(
        [settings.threshold],
        [settings.ridge],
        settings.n_terms,
        **{name: getattr(estimator, name) for name in (*SHARED, "loss")},
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


def _best_mean(scores: Array) -> float:
    """Return the best mean over folds ``(n_terms, n_folds, grid)``; NaN if no point has one."""
    means = scores.mean(axis=1)
    finite = means[np.isfinite(means)]
    return float(finite.max()) if len(finite) else np.nan


def _checked_groups(groups: Any, y: Array) -> Array | None:
    """Return the groups; those within which no permutation changes y are refused."""
    if groups is None:
        return None
    groups = column_or_1d(groups)
    check_as_many("groups", len(groups), len(y))
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
