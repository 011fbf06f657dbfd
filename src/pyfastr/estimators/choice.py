"""How threshold, ridge and number of terms are chosen, for regression and classification."""

import time
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from pyfastr.estimators.checkpoint import INTERVAL, checkpointed
from pyfastr.estimators.classifier import FasTRClassifier
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import CONSTRAINTS, FasTRBase, solver_settings, warn_of_zero
from pyfastr.estimators.folds import Scoring, Split, TaskFits, fit_folds, held_out, mean_of
from pyfastr.estimators.namespaces import DispatchMixin
from pyfastr.estimators.outlets import OutletMixin
from pyfastr.estimators.ranking import Point, choose, cv_results, leading, usable_scores
from pyfastr.estimators.sklearn_private import BaseScorer, Interval, StrOptions, routing_enabled
from pyfastr.estimators.validation import Samples, TensorInputMixin, as_generator, share_input
from pyfastr.estimators.warning import warn
from pyfastr.estimators.watching import CallbackSupportMixin
from pyfastr.solver.losses import LOSSES
from pyfastr.solver.models import Models
from pyfastr.solver.progress import tell
from pyfastr.solver.solve import Settings
from pyfastr.sources import computed, is_in_memory, is_stored

Array = NDArray[Any]

# Both are relative, so they serve every data set: from exact data to labels that are mostly noise.
# The highest leaves hardly more than one entry a mode, which noise hides at all lower ones; of
# hundreds of entries known to four digits the lowest loses none.
THRESHOLDS = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.55, 0.9)
# Labels say so little that one entry a mode wins by chance.
LABEL_THRESHOLDS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.35, 0.55)
RIDGES = (1e-5, 0.01, 0.1, 1.0, 10.0)
# Fewer samples than free parameters are fitted exactly by a ridge of next to nothing: in scores of
# few samples it wins by chance if at all.
BLIND_RIDGES = (0.01, 0.1, 0.3, 1.0, 10.0)
# Most models of a grid stand still after a few sweeps; those that never do are scored as they are.
# With fewer samples than free parameters hardly any does, and more sweeps are no better.
FOLD_SWEEPS, BLIND_SWEEPS = 15, 6
# scikit-learn's name of the score that regressors have by default; D² of counts has none.
DEFAULT_SCORING = {"squared": "r2", "poisson": None}
# What the best estimator's own parameters and those of its twin have in common.
SHARED = ("init", "n_init", "sweep", "max_iter", "tol", "fit_intercept", "refit_support", "verbose")
FITTED = (
    *("factors_", "scales_", "intercept_", "covariate_coef_"),
    *("n_iter_", "converged_", "history_", "starts_"),
)

CV_CONSTRAINTS: dict[str, list[Any]] = {
    **{name: CONSTRAINTS[name] for name in (*SHARED, "random_state", "checkpoint")},
    "init": [StrOptions({"mixed", "spectral", "random"})],
    "refit_support": ["boolean"],
    "thresholds": ["array-like", StrOptions({"auto"})],
    "ridges": ["array-like", StrOptions({"auto"})],
    "n_terms": ["array-like", Interval(Integral, 1, None, closed="left")],
    "cv": ["cv_object"],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    "criterion": [StrOptions({"cv", "evidence"})],
    "one_standard_error": ["boolean"],
    "refit": ["boolean"],
}


class FasTRSelection(
    CallbackSupportMixin, OutletMixin, DispatchMixin, TensorInputMixin, BaseEstimator
):
    """The choice of a model, for regression and for classification alike."""

    best_estimator_: Any
    loss: str
    _checkpoint_interval: ClassVar[float] = INTERVAL
    _estimator_type_of_twin: ClassVar[type[FasTRBase]]

    def _checked_data(self, X: Samples, y: Array, sample_weight: Any, covariates: Any) -> Data:
        """Check what belongs to samples and responses that are checked already."""
        loss, fit_intercept = LOSSES[self.loss], self.fit_intercept
        return Data.check(
            self, X, y, sample_weight, covariates, fit_intercept=fit_intercept, loss=loss
        )

    def _select(self, data: Data, X: Any, y: Any, groups: dict[str, Any]) -> None:
        """Choose, refit on all data, and take over what the refit found."""
        self.__dict__.pop("held_out_", None)
        if self.criterion == "evidence":
            if not self.refit:
                raise ValueError(
                    "refit=False takes the mean of the folds' models, but criterion='evidence' has "
                    "no folds; expected refit=True, or criterion='cv'."
                )
            _, ridges, n_terms = self._grids(data)
            with checkpointed(self):
                self._choose_by_evidence(data, ridges, n_terms)
        else:
            scoring, splits = self._scoring(data, X, y), self._splits(data, y, groups)
            with checkpointed(self, splits):
                chosen = self._choose_by_folds(data, scoring, splits)
                if self.refit:
                    self._refit(chosen[0].models, data)
                else:
                    self._average(chosen, scoring)
        for name in FITTED:
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
            elif hasattr(self, name):
                delattr(self, name)

    def _refit(self, found: Models, data: Data) -> None:
        """Fit the choice to all data, beginning from the solutions that the folds found."""
        best = self._twin(self.threshold_, self.ridge_, self.n_terms_)
        some = found.scales.all(axis=1)
        known = Models([c[some] for c in found.components], found.scales[some])
        best._fit_data(data, known if len(known) else None)
        self.best_estimator_ = best

    def _average(self, chosen: list[TaskFits], scoring: Scoring) -> None:
        """Let the mean of the folds' models be the choice."""
        mean = mean_of(chosen)
        if not mean.models.scales.any():
            warn_of_zero(mean.data.problem)
        best = scoring.fitted(mean, 0, np.arange(len(scoring.data.y)))
        best.set_params(threshold=self.threshold_, ridge=self.ridge_, n_terms=self.n_terms_)
        self.best_estimator_ = best

    @property
    def coef_(self) -> Array:
        """The coefficient of the best estimator."""
        return self.best_estimator_.coef_

    def _grids(
        self, data: Data, splits: Sequence[Split] = ()
    ) -> tuple[list[float], list[float], list[int]]:
        """Return the grids as lists of numbers, checked."""
        own = LABEL_THRESHOLDS if self._is_classifier() else THRESHOLDS
        thresholds = own if isinstance(self.thresholds, str) else self.thresholds
        terms = [self.n_terms] if isinstance(self.n_terms, Integral) else self.n_terms
        n_terms = [int(n) for n in _checked_grid("n_terms", terms, 1, np.inf, whole=True)]
        auto = BLIND_RIDGES if _is_blind(data, _n_train(splits), min(n_terms)) else RIDGES
        ridges = auto if isinstance(self.ridges, str) else self.ridges
        return (
            _checked_grid("thresholds", thresholds, 0, 1),
            _checked_grid("ridges", ridges, 0, np.inf),
            n_terms,
        )

    def _fold_settings(
        self, data: Data, splits: Sequence[Split], ridge: float, n_terms: int
    ) -> Settings:
        """Return what is asked of the solver in folds, for the least ridge of a grid."""
        blind = _is_blind(data, _n_train(splits), n_terms)
        # A sweep of another loss gets less far, as its weights follow one sweep behind.
        n_sweeps = BLIND_SWEEPS if blind and data.loss.is_quadratic else FOLD_SWEEPS
        settings = solver_settings(self, data.source.shape, 0.0, ridge, n_terms)
        return replace(settings, max_iter=min(settings.max_iter, n_sweeps))

    def _twin(self, threshold: float, ridge: float, n_terms: int, **changes: Any) -> Any:
        """Return an estimator with these parameters and the user's others."""
        names = [*SHARED, "loss", *(n for n in ("class_weight",) if hasattr(self, n))]
        shared = {name: getattr(self, name) for name in names} | changes
        twin = self._estimator_type_of_twin(
            threshold=threshold,
            ridge=ridge,
            n_terms=n_terms,
            random_state=clone(self.random_state, safe=False),
            **shared,
        )
        share_input(self, twin)
        return twin

    def _splits(self, data: Data, y: Any, groups: dict[str, Any]) -> list[Split]:
        """Return the folds; an integer shuffles, and keeps classes in balance and groups whole."""
        n_samples = data.source.shape[0]
        counts = np.ones(n_samples, bool) if data.weights is None else data.weights > 0
        given = groups.get("groups")
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            cv = _splitter(int(cv), self._is_classifier(), given is not None, self.random_state)
        cv = check_cv(cv, y, classifier=self._is_classifier())
        splits = list(cv.split(np.zeros((n_samples, 1)), y, **groups))
        for fold, (train, test) in enumerate(splits):
            n_train = int(counts[np.unique(train)].sum())
            if not len(test) or n_train < 2:
                raise ValueError(
                    f"cv gives fold {fold} {n_train} training samples that count and {len(test)} "
                    "held-out samples; expected at least 2 and 1."
                )
        return [(np.asarray(train), np.asarray(test)) for train, test in splits]

    def _choose_by_folds(self, data: Data, scoring: Scoring, splits: list[Split]) -> list[TaskFits]:
        """Fit and score the grid, a number of terms at a time; return the chosen points' fits."""
        thresholds, ridges, n_terms = self._grids(data, splits)
        rng = as_generator(self.random_state)
        fits, scores, times = [], [], []
        for terms in n_terms:
            began = time.perf_counter()
            settings = self._fold_settings(data, splits, min(ridges), terms)
            fits.append(fit_folds(data, splits, ridges, thresholds, settings, rng))
            fitted = time.perf_counter()
            scores.append(scoring.scores(fits[-1], splits))
            times.append((fitted - began, time.perf_counter() - fitted))
            note = f"{terms} term(s): {len(fits[-1].models)} models in {times[-1][0]:.1f} s"
            tell("numbers of terms", len(fits), len(n_terms), note)
        points = [(n, r, t) for n in n_terms for r in ridges for t in thresholds]
        all_scores = np.concatenate(scores, axis=1)
        usable = usable_scores(all_scores)
        losses = None
        if scoring.is_of_samples and len(usable) == len(splits):
            losses = np.concatenate([scoring.losses(own, splits) for own in fits], axis=1)
        indices = self._ranked(points, usable, losses)
        best, each = indices[0], len(ridges) * len(thresholds)
        if scoring.scorer is None:
            chance = 0.5 if self._is_classifier() else 0.0
            _warn_of_blind_folds(fits[best // each], usable[:, best] - chance)
        chosen = [fits[i // each].take(slice(i % each, None, each)) for i in indices]
        self.held_out_ = held_out(chosen, splits, scoring.targets)
        shape = (len(n_terms), len(ridges), len(thresholds), len(splits))
        self.scores_path_ = all_scores.T.reshape(shape)
        self.cv_results_ = cv_results(points, all_scores, times)
        self._set_choice(points[best], float(np.mean(usable[:, best])), indices)
        return chosen

    def _ranked(self, points: list[Point], scores: Array, losses: Array | None) -> list[int]:
        """Return the index of the choice, and of the points that are averaged with it."""
        if self.refit or self.one_standard_error:
            simplest = self.one_standard_error
            return [choose(points, scores, losses, one_standard_error=simplest)]
        return leading(scores, losses)

    def _choose_by_evidence(self, data: Data, ridges: list[float], n_terms: list[int]) -> None:
        """Fit all data once for each number of terms; the evidence chooses the support."""
        ridge = min(ridges)
        models, times = [], []
        for terms in n_terms:
            began = time.perf_counter()
            twin = self._twin(0.0, ridge, terms, refit_support="evidence")
            twin._fit_data(data)
            models.append(twin)
            times.append((time.perf_counter() - began, 0.0))
            tell("numbers of terms", len(models), len(n_terms))
        points = [(terms, ridge, 0.0) for terms in n_terms]
        scores = -np.array([[model.evidence_ for model in models]])
        best = int(np.argmax(scores[0]))
        self.best_estimator_ = models[best]
        self.scores_path_ = scores.T.reshape(len(n_terms), 1, 1, 1)
        self.cv_results_ = cv_results(points, scores, times)
        self._set_choice(points[best], float(scores[0, best]), [best])

    def _set_choice(self, point: Point, score: float, indices: list[int]) -> None:
        self.n_terms_, self.ridge_, self.threshold_ = point
        self.best_score_, self.best_index_ = score, indices[0]
        self.averaged_ = np.array(indices)
        self.best_params_ = self.cv_results_["params"][indices[0]]
        tell("choice", 1, 1, f"chosen: {self.best_params_}, score {score:.4g}")

    def _scoring(self, data: Data, X: Any, y: Any) -> Scoring:
        """Return how models are scored."""
        default = "roc_auc" if self._is_classifier() else DEFAULT_SCORING[self.loss]
        scorer, twin = None, self._twin(0.0, 1.0, 1)
        if self.scoring is not None and self.scoring != default:
            scorer = check_scoring(twin, scoring=self.scoring)
            if data.covariates is not None and not isinstance(scorer, BaseScorer):
                raise ValueError(
                    f"scoring is {self.scoring!r}, a function of estimator, X and y, which cannot "
                    "be given the covariates that predictions need; expected the name of a score, "
                    "or one made by sklearn.metrics.make_scorer."
                )
        if is_stored(X) or not is_in_memory(data.source):
            X = data.source
        return Scoring(scorer, X, y, data, getattr(self, "classes_", None), self.loss, twin)

    def _is_classifier(self) -> bool:
        return issubclass(self._estimator_type_of_twin, FasTRClassifier)

    def _routed(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return what the splitter is to be given."""
        params = {name: computed(own) for name, own in params.items() if own is not None}
        if routing_enabled():
            return dict(process_routing(self, "fit", **params).splitter.split)
        unknown = sorted(set(params) - {"groups"})
        if unknown:
            raise TypeError(
                f"fit() got {unknown}; expected no more than X, y, sample_weight, covariates and "
                "groups, unless scikit-learn's metadata routing is enabled."
            )
        return params

    def get_metadata_routing(self) -> MetadataRouter:
        """Say what metadata `fit` takes, and what it passes to the splitter.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        # Folds of an integer may take groups.
        splitter = self.cv if hasattr(self.cv, "get_metadata_routing") else GroupKFold()
        mapping = MethodMapping().add(caller="fit", callee="split")
        return router.add(splitter=splitter, method_mapping=mapping)


def _splitter(n_splits: int, classify: bool, grouped: bool, random_state: Any) -> Any:
    """Return shuffled folds, stratified for classes, that keep groups whole if there are any."""
    kinds = {
        (False, False): KFold,
        (False, True): GroupKFold,
        (True, False): StratifiedKFold,
        (True, True): StratifiedGroupKFold,
    }
    seed = check_random_state(clone(random_state, safe=False)).randint(2**31)
    return kinds[classify, grouped](n_splits, shuffle=True, random_state=seed)


def _checked_grid(
    name: str, values: Any, least: float, bound: float, *, whole: bool = False
) -> list[float]:
    """Return a grid as a list; errors say what is wrong with it."""
    grid = list(values)
    if not grid:
        raise ValueError(f"{name} is empty; expected at least one value to choose from.")
    kind, what = (Integral, "whole numbers") if whole else (Real, "numbers")
    for value in grid:
        if not isinstance(value, kind) or not least <= float(value) < bound:
            raise ValueError(f"{name} has {value!r}; expected {what} in [{least}, {bound}).")
    return [float(value) for value in grid]


def _n_train(splits: Sequence[Split]) -> float:
    """Return how many samples the folds train on at most; no folds hold nothing out."""
    return max((len(np.unique(train)) for train, _ in splits), default=np.inf)


def _is_blind(data: Data, n_train: float, n_terms: int) -> bool:
    """Whether there are no more samples to train on than free parameters."""
    return bool(n_train <= data.problem.degrees_of_freedom(n_terms).max())


def _warn_of_blind_folds(fits: TaskFits, gains: Array) -> None:
    """Say so where folds are too small to tell models apart, and none was found to predict."""
    problem = fits.data.problem
    n_samples = int(problem.n_effective.max())
    n_free = int(problem.degrees_of_freedom(fits.models.n_terms).max())
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    if n_samples <= n_free and gains.mean() <= error:
        warn(
            f"No model predicts held-out samples better than chance: folds train on {n_samples} "
            f"samples, which {n_free} free parameters can fit whatever they are. Use more samples, "
            'or, if there is little noise, criterion="evidence", which holds none out.'
        )
