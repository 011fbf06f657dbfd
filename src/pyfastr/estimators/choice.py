"""How threshold, ridge and number of terms are chosen, for regression and classification."""

import time
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import (
    BaseCrossValidator,
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)
from sklearn.utils import check_random_state
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from pyfastr.estimators.classifier import FasTRClassifier
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import CONSTRAINTS, FasTRBase
from pyfastr.estimators.folds import FoldFits, Scoring, Split, fit_folds
from pyfastr.estimators.validation import as_generator

Array = NDArray[Any]

# Both are relative, so they serve every data set: from exact data to labels that are mostly noise.
THRESHOLDS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.35, 0.55)
RIDGES = (1e-5, 0.01, 0.1, 1.0, 10.0)
# Most models of a grid stand still after a few sweeps; those that never do are scored as they are.
# With fewer samples than free parameters hardly any does.
FOLD_SWEEPS, BLIND_SWEEPS = 15, 10
# A threshold that falls short of the best by less than this many standard errors is as good; the
# highest of them is chosen, as false entries in a support cost hardly any score.
CHANCE = 0.5
# What the best estimator's own parameters and those of its twin have in common.
SHARED = ("init", "n_init", "sweep", "max_iter", "tol", "fit_intercept", "refit_support", "verbose")
FITTED = ("factors_", "scales_", "intercept_", "n_iter_", "converged_", "history_", "starts_")

CV_CONSTRAINTS: dict[str, list[Any]] = {
    **{name: CONSTRAINTS[name] for name in (*SHARED, "random_state") if name != "init"},
    "init": [StrOptions({"mixed", "spectral", "random"})],
    "thresholds": ["array-like", StrOptions({"auto"})],
    "ridges": ["array-like", StrOptions({"auto"})],
    "n_terms": ["array-like", Interval(Integral, 1, None, closed="left")],
    "cv": ["cv_object"],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    "criterion": [StrOptions({"cv", "evidence"})],
    "one_standard_error": ["boolean"],
}


class FasTRSelection(BaseEstimator):
    """The choice of a model, for regression and for classification alike."""

    best_estimator_: Any
    _estimator_type_of_twin: ClassVar[type[FasTRBase]]

    def _select(
        self, data: Data, X: Any, y: Any, fit_params: dict[str, Any], groups: dict[str, Any]
    ) -> None:
        """Choose, refit on all data, and take over what the refit found."""
        thresholds, ridges, n_terms = self._grids()
        if self.criterion == "evidence":
            self._choose_by_evidence(X, y, fit_params, ridges, n_terms)
        else:
            scoring = self._scoring(data, X, y)
            splits = self._splits(data, y, groups)
            self._choose_by_folds(data, scoring, splits, thresholds, ridges, n_terms)
            self.best_estimator_ = self._twin(self.threshold_, self.ridge_, self.n_terms_)
            self.best_estimator_.fit(X, y, **fit_params)
        for name in FITTED:
            setattr(self, name, getattr(self.best_estimator_, name))
        if hasattr(self.best_estimator_, "covariate_coef_"):
            self.covariate_coef_ = self.best_estimator_.covariate_coef_
        elif hasattr(self, "covariate_coef_"):
            del self.covariate_coef_

    @property
    def coef_(self) -> Array:
        """The coefficient of the best estimator."""
        return self.best_estimator_.coef_

    def _grids(self) -> tuple[list[float], list[float], list[int]]:
        """Return the grids as lists of numbers, checked."""
        thresholds = THRESHOLDS if isinstance(self.thresholds, str) else self.thresholds
        ridges = RIDGES if isinstance(self.ridges, str) else self.ridges
        terms = [self.n_terms] if isinstance(self.n_terms, Integral) else self.n_terms
        return (
            _checked_grid("thresholds", thresholds, 0, 1),
            _checked_grid("ridges", ridges, 0, np.inf),
            [int(n) for n in _checked_grid("n_terms", terms, 1, np.inf, whole=True)],
        )

    def _twin(self, threshold: float, ridge: float, n_terms: int, **changes: Any) -> Any:
        """Return an estimator with these parameters and the user's others."""
        names = [*SHARED, *(n for n in ("loss", "class_weight") if hasattr(self, n))]
        shared = {name: getattr(self, name) for name in names} | changes
        return self._estimator_type_of_twin(
            threshold=threshold,
            ridge=ridge,
            n_terms=n_terms,
            random_state=clone(self.random_state, safe=False),
            **shared,
        )

    def _splits(self, data: Data, y: Any, groups: dict[str, Any]) -> list[Split]:
        """Return the folds; an integer shuffles, and keeps classes in balance and groups whole."""
        n_samples = data.source.shape[0]
        given = groups.get("groups")
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            cv = _splitter(int(cv), self._is_classifier(), given is not None, self.random_state)
        cv = check_cv(cv, y, classifier=self._is_classifier())
        splits = list(cv.split(np.zeros((n_samples, 1)), y, **groups))
        for fold, (train, test) in enumerate(splits):
            if not len(test) or len(np.unique(train)) < 2:
                raise ValueError(
                    f"cv gives fold {fold} {len(train)} training and {len(test)} held-out samples; "
                    "expected at least 2 and 1."
                )
        return [(np.asarray(train), np.asarray(test)) for train, test in splits]

    def _choose_by_folds(
        self,
        data: Data,
        scoring: Scoring,
        splits: list[Split],
        thresholds: list[float],
        ridges: list[float],
        n_terms: list[int],
    ) -> None:
        """Fit and score the grid, a number of terms at a time, and choose."""
        rng = as_generator(self.random_state)
        fits, scores, times = [], [], []
        for terms in n_terms:
            began = time.perf_counter()
            n_sweeps = min(self.max_iter, _n_sweeps(data, splits, terms))
            twin = self._twin(0.0, min(ridges), terms, max_iter=n_sweeps)
            settings = twin._settings(data.source.shape)
            fits.append(fit_folds(data, splits, ridges, thresholds, settings, rng))
            fitted = time.perf_counter()
            scores.append(scoring.scores(fits[-1], splits))
            times.append((fitted - began, time.perf_counter() - fitted))
            self._tell(f"{terms} term(s): {len(fits[-1].models)} models in {times[-1][0]:.1f} s")
        points = [(n, r, t) for n in n_terms for r in ridges for t in thresholds]
        all_scores = np.concatenate(scores, axis=1)
        usable = _usable(all_scores)
        best = _choose(points, usable, one_standard_error=self.one_standard_error)
        each = len(ridges) * len(thresholds)
        if scoring.scorer is None:
            chance = 0.5 if self._is_classifier() else 0.0
            _warn_of_blind_folds(fits[best // each], usable[:, best] - chance)
        self._keep_decisions(fits[best // each], best % each, each, splits)
        shape = (len(n_terms), len(ridges), len(thresholds), len(splits))
        self.scores_path_ = all_scores.T.reshape(shape)
        self.cv_results_ = _cv_results(points, all_scores, times)
        self._set_choice(points[best], float(np.mean(usable[:, best])), best)

    def _choose_by_evidence(
        self, X: Any, y: Any, fit_params: dict[str, Any], ridges: list[float], n_terms: list[int]
    ) -> None:
        """Fit all data once for each number of terms; the evidence chooses the support."""
        ridge = min(ridges)
        models, times = [], []
        for terms in n_terms:
            began = time.perf_counter()
            twin = self._twin(0.0, ridge, terms, refit_support="evidence")
            models.append(twin.fit(X, y, **fit_params))
            times.append((time.perf_counter() - began, 0.0))
        points = [(terms, ridge, 0.0) for terms in n_terms]
        scores = -np.array([[model.evidence_ for model in models]])
        best = int(np.argmax(scores[0]))
        self.best_estimator_ = models[best]
        self.scores_path_ = scores.T.reshape(len(n_terms), 1, 1, 1)
        self.cv_results_ = _cv_results(points, scores, times)
        self._set_choice(points[best], float(scores[0, best]), best)

    def _set_choice(self, point: tuple[int, float, float], score: float, index: int) -> None:
        self.n_terms_, self.ridge_, self.threshold_ = point
        self.best_score_, self.best_index_ = score, index
        self.best_params_ = self.cv_results_["params"][index]
        self._tell(f"chosen: {self.best_params_}, score {score:.4g}")

    def _keep_decisions(self, fits: FoldFits, point: int, each: int, splits: list[Split]) -> None:
        """Let a classifier keep the chosen model's held-out decisions."""

    def _tell(self, message: str) -> None:
        if self.verbose:
            print(f"[FasTR] {message}", flush=True)  # noqa: T201

    def _scoring(self, data: Data, X: Any, y: Any) -> Scoring:
        """Return how models are scored."""
        default = "roc_auc" if self._is_classifier() else "r2"
        scorer, twin = None, self._twin(0.0, 1.0, 1)
        if self.scoring is not None and self.scoring != default:
            scorer = check_scoring(twin, scoring=self.scoring)
        classes, loss = getattr(self, "classes_", None), getattr(self, "loss", "squared")
        return Scoring(scorer, X, y, data, classes, loss, twin)

    def _is_classifier(self) -> bool:
        return issubclass(self._estimator_type_of_twin, FasTRClassifier)

    def _routed(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return what the splitter is to be given."""
        params = {name: value for name, value in params.items() if value is not None}
        if _routing_enabled():
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
        if isinstance(self.cv, BaseCrossValidator):
            splitter: Any = self.cv
        else:
            splitter = GroupKFold()
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


def _n_sweeps(data: Data, splits: list[Split], n_terms: int) -> int:
    """Return how many sweeps the folds may make."""
    n_train = max(len(train) for train, _ in splits)
    blind = n_train <= data.problem.degrees_of_freedom(n_terms).max()
    return BLIND_SWEEPS if blind else FOLD_SWEEPS


def _usable(scores: Array) -> Array:
    """Leave out folds in which no model has a score, such as the ROC curve of one class."""
    scored = np.isfinite(scores).any(axis=1)
    if not scored.all() and scored.any():
        warnings.warn(
            f"Folds {np.flatnonzero(~scored).tolist()} have no finite score and are left out of "
            "the choice. Use fewer or stratified folds.",
            UserWarning,
            stacklevel=6,
        )
    return scores[scored] if scored.any() else scores


def _warn_of_blind_folds(fits: FoldFits, gains: Array) -> None:
    """Say so where folds are too small to tell models apart, and none was found to predict."""
    problem = fits.data.problem
    n_samples = int(problem.n_effective.max())
    n_free = int(problem.degrees_of_freedom(fits.models.n_terms).max())
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    if n_samples <= n_free and gains.mean() <= error:
        warnings.warn(
            f"No model predicts held-out samples better than chance: folds train on {n_samples} "
            f"samples, which {n_free} free parameters can fit whatever they are. Use more samples, "
            'or criterion="evidence", which holds none out.',
            UserWarning,
            stacklevel=6,
        )


def _choose(
    points: list[tuple[int, float, float]], scores: Array, *, one_standard_error: bool
) -> int:
    """Return the index of the simplest point that is as good as the best."""
    mean = scores.mean(axis=0)
    finite = np.isfinite(mean)
    if not finite.any():
        raise ValueError(
            "No point of the grid has a finite score in every fold. Check `scoring`, or use "
            "fewer folds, so that each holds out samples that can be scored."
        )
    if not finite.all():
        warnings.warn(
            f"One or more of the test scores are non-finite: {mean}", UserWarning, stacklevel=6
        )
    best = int(np.argmax(np.where(finite, mean, -np.inf)))
    if one_standard_error:
        slack = float(np.std(scores[:, best], ddof=1) / np.sqrt(len(scores)))
        as_good = finite & (mean >= mean[best] - slack)
    else:
        as_good = finite & _hardly_worse(points, scores, best)
    return int(min(np.flatnonzero(as_good), key=lambda i: _complexity(points[i])))


def _hardly_worse(points: list[tuple[int, float, float]], scores: Array, best: int) -> Array:
    """Tell which thresholds, at the best number of terms and ridge, fall short by chance.

    The folds are the same for all models, so it is the shortfall fold by fold that is compared
    with its standard error.
    """
    shortfall = scores[:, best, None] - scores
    mean = shortfall.mean(axis=0)
    error = shortfall.std(axis=0, ddof=min(1, len(scores) - 1)) / np.sqrt(len(scores))
    alike = np.array([point[:2] == points[best][:2] for point in points])
    return alike & (mean <= CHANCE * error)


def _complexity(point: tuple[int, float, float]) -> tuple[float, float, float]:
    """Order models from simple to complex."""
    n_terms, ridge, threshold = point
    return n_terms, -threshold, -ridge


def _cv_results(
    points: list[tuple[int, float, float]], scores: Array, times: list[tuple[float, float]]
) -> dict[str, Any]:
    """Return what GridSearchCV would."""
    n_folds, n_points = scores.shape
    usable = scores[np.isfinite(scores).any(axis=1)]
    seconds = np.repeat(times, n_points // len(times), axis=0) * len(times) / scores.size
    mean = usable.mean(axis=0)
    results: dict[str, Any] = {
        "mean_fit_time": seconds[:, 0],
        "std_fit_time": np.zeros(n_points),
        "mean_score_time": seconds[:, 1],
        "std_score_time": np.zeros(n_points),
    }
    params = [{"n_terms": n, "ridge": r, "threshold": t} for n, r, t in points]
    for name in ("n_terms", "ridge", "threshold"):
        values = [p[name] for p in params]
        results[f"param_{name}"] = np.ma.MaskedArray(values, mask=np.zeros(n_points, bool))
    results["params"] = params
    for fold in range(n_folds):
        results[f"split{fold}_test_score"] = scores[fold]
    results["mean_test_score"] = mean
    results["std_test_score"] = usable.std(axis=0)
    # Scores that are no numbers come last, as in GridSearchCV.
    ranked = np.where(np.isfinite(mean), mean, -np.inf)
    results["rank_test_score"] = rankdata(-ranked, method="min").astype(np.int32)
    return results
