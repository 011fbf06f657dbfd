"""FasTR that chooses its threshold, ridge and number of terms."""

import time
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context, clone
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
from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.classifier import (
    CLASSIFIER_CONSTRAINTS,
    BinaryMixin,
    FasTRClassifier,
    calibrate,
    check_loss,
)
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import CONSTRAINTS, FasTRBase
from pyfastr.estimators.folds import FoldFits, Scoring, Split, fit_folds
from pyfastr.estimators.regressor import FasTRRegressor
from pyfastr.estimators.validation import as_generator, check_tensor_and_response

Array = NDArray[Any]

# Both are relative, so they serve every data set: from exact data to labels that are mostly noise.
THRESHOLDS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.35, 0.55)
RIDGES = (1e-5, 0.01, 0.1, 1.0, 10.0)
# Most models of a grid stand still after a few sweeps; those that never do are scored as they are.
FOLD_SWEEPS = 30
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
            twin = self._twin(0.0, min(ridges), terms, max_iter=min(self.max_iter, FOLD_SWEEPS))
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


class FasTRRegressorCV(RegressorMixin, FasTRSelection):
    """Sparse unit-rank tensor regression that chooses threshold, ridge and number of terms.

    Every fold, ridge and threshold is a model of one batch that shares each pass over X. Every
    fold has its own starts, which serve its whole grid. The choice is then fitted to all data.

    Parameters
    ----------
    thresholds : sequence of float or "auto", default="auto"
        Relative thresholds to choose from; "auto" has ten from 0 to 0.55.
    ridges : sequence of float or "auto", default="auto"
        Relative ridges; "auto" has five from 1e-5 (hardly any noise) to 10 (mostly noise).
    n_terms : int or sequence of int, default=(1,)
        Numbers of unit-rank terms.
    cv : int, splitter or iterable, default=5
        An integer makes so many shuffled folds (`GroupKFold` if groups are given), drawn by
        `random_state`: rows are often sorted.
    scoring : str, callable or None, default=None
        Any of scikit-learn; None is R². Sample weights count in the score too, if it can.
    criterion : {"cv", "evidence"}, default="cv"
        "evidence" holds no data out, for samples too few to split: it fits with
        ``refit_support="evidence"``, and chooses support and number of terms by the lowest
        ``(N - dof) log RSS``. It needs neither `thresholds`, nor any but the least of `ridges`.
    one_standard_error : bool, default=False
        By default the choice is the best score's number of terms and ridge, and the highest
        threshold that falls short of it by less than half the standard error of the difference
        fold by fold. True chooses the simplest model (fewest terms, then largest threshold, then
        largest ridge) whose score is within one standard error of the best.
    init, n_init, sweep, max_iter, tol, fit_intercept, verbose
        As in :class:`FasTRRegressor`, for the final fit; the folds make at most 30 sweeps, and
        with ``n_init="auto"`` at most 128 starts each.
    refit_support : bool, default=True
        Whether supports found by a threshold are fitted anew without it, in folds and at the end.
    random_state : int, RandomState or None, default=None
        Seed of folds and starts.

    Attributes
    ----------
    threshold_, ridge_, n_terms_ : float, float, int
        The choice; also as `best_params_`, at `best_index_` of `cv_results_`.
    best_score_ : float
        Its mean score, or its negative ``(N - dof) log RSS``.
    best_estimator_ : FasTRRegressor
        Fitted to all data.
    cv_results_ : dict of arrays
        With the keys of scikit-learn's GridSearchCV. Times are shares of the whole batch's.
    scores_path_ : ndarray of shape (n_terms, n_ridges, n_thresholds, n_folds)
    coef_, factors_, scales_, intercept_, n_iter_, converged_, history_, starts_
        Of the best estimator.
    tensor_shape_in_ : tuple of int
    n_features_in_ : int

    Examples
    --------
    >>> from pyfastr import FasTRRegressorCV
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y, W = make_tensor_regression(100, (8, 8), sparsity=0.5, coef=True, random_state=0)
    >>> model = FasTRRegressorCV(random_state=0).fit(X, y)
    >>> bool(model.best_score_ > 0.99)
    True
    """

    _estimator_type_of_twin: ClassVar[type[FasTRBase]] = FasTRRegressor
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CV_CONSTRAINTS

    def __init__(
        self,
        thresholds: Sequence[float] | Literal["auto"] = "auto",
        ridges: Sequence[float] | Literal["auto"] = "auto",
        n_terms: int | Sequence[int] = (1,),
        *,
        cv: Any = 5,
        scoring: Any = None,
        criterion: Literal["cv", "evidence"] = "cv",
        one_standard_error: bool = False,
        init: Literal["mixed", "spectral", "random"] = "mixed",
        n_init: int | Literal["auto"] = "auto",
        sweep: Literal["cyclic", "simultaneous"] = "cyclic",
        max_iter: int = 1000,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        refit_support: bool = True,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.thresholds = thresholds
        self.ridges = ridges
        self.n_terms = n_terms
        self.cv = cv
        self.scoring = scoring
        self.criterion = criterion
        self.one_standard_error = one_standard_error
        self.init = init
        self.n_init = n_init
        self.sweep = sweep
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.refit_support = refit_support
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None, **params: Any
    ) -> "FasTRRegressorCV":
        """Choose the model and fit it to all data.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
            M >= 1. Never copied or written to.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Counts in fits and scores.
        covariates : array-like of shape (n_samples, n_covariates), optional
            Columns with an ordinary, unpenalised coefficient each.
        **params : dict
            `groups`, an array of shape (n_samples,), for the splitter: samples of a group stay
            together. With metadata routing, whatever the splitter has requested.

        Returns
        -------
        FasTRRegressorCV
            The fitted estimator itself.
        """
        tensor, response = check_tensor_and_response(self, X, y)
        data = Data.check(
            tensor, response, sample_weight, covariates, fit_intercept=self.fit_intercept
        )
        fit_params = {"sample_weight": sample_weight, "covariates": covariates}
        self._select(data, X, response, fit_params, self._routed(params))
        return self

    def predict(self, X: Any, covariates: Any = None) -> Array:
        """Predict the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X, covariates)

    def score(self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None) -> float:
        """Return R² of the prediction.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        covariates : array-like of shape (n_samples, n_covariates), optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        return self.best_estimator_.score(X, y, sample_weight, covariates)


class FasTRClassifierCV(BinaryMixin, FasTRSelection):
    """Sparse unit-rank tensor classification that chooses threshold, ridge and number of terms.

    Parameters
    ----------
    thresholds, ridges, n_terms
        As in :class:`FasTRRegressorCV`.
    loss : {"squared", "logistic"}, default="squared"
        As in :class:`FasTRClassifier`.
    class_weight : dict, "balanced" or None, default=None
        Counts in fits and scores.
    cv : int, splitter or iterable, default=5
        An integer makes so many stratified, shuffled folds (`StratifiedGroupKFold` if groups are
        given), drawn by `random_state`.
    scoring : str, callable or None, default=None
        Any of scikit-learn; None is the area under the ROC curve.
    criterion, one_standard_error
        As in :class:`FasTRRegressorCV`; "evidence" is of the squared loss only.
    init, n_init, sweep, max_iter, tol, fit_intercept, refit_support, random_state, verbose
        As in :class:`FasTRRegressorCV`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    calibration_ : float
        As in :class:`FasTRClassifier`, but for the squared loss fitted to held-out decisions.
    best_estimator_ : FasTRClassifier
    threshold_, ridge_, n_terms_, best_params_, best_index_, best_score_, cv_results_, scores_path_
        As in :class:`FasTRRegressorCV`.
    coef_, factors_, scales_, intercept_, n_iter_, converged_, history_, starts_
        Of the best estimator.
    tensor_shape_in_ : tuple of int
    n_features_in_ : int

    Examples
    --------
    >>> from pyfastr import FasTRClassifierCV
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(120, (6, 6), random_state=0)
    >>> model = FasTRClassifierCV(random_state=0).fit(X, y > 0)
    >>> bool(model.best_score_ > 0.95)
    True
    """

    _estimator_type_of_twin: ClassVar[type[FasTRBase]] = FasTRClassifier
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CV_CONSTRAINTS,
        **{name: CLASSIFIER_CONSTRAINTS[name] for name in ("loss", "class_weight")},
    }

    def __init__(
        self,
        thresholds: Sequence[float] | Literal["auto"] = "auto",
        ridges: Sequence[float] | Literal["auto"] = "auto",
        n_terms: int | Sequence[int] = (1,),
        *,
        loss: Literal["squared", "logistic"] = "squared",
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        cv: Any = 5,
        scoring: Any = None,
        criterion: Literal["cv", "evidence"] = "cv",
        one_standard_error: bool = False,
        init: Literal["mixed", "spectral", "random"] = "mixed",
        n_init: int | Literal["auto"] = "auto",
        sweep: Literal["cyclic", "simultaneous"] = "cyclic",
        max_iter: int = 1000,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        refit_support: bool = True,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.thresholds = thresholds
        self.ridges = ridges
        self.n_terms = n_terms
        self.loss = loss
        self.class_weight = class_weight
        self.cv = cv
        self.scoring = scoring
        self.criterion = criterion
        self.one_standard_error = one_standard_error
        self.init = init
        self.n_init = n_init
        self.sweep = sweep
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.refit_support = refit_support
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None, **params: Any
    ) -> "FasTRClassifierCV":
        """Choose the model and fit it to all data.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)
            Two classes, labelled in any way.
        sample_weight : array-like of shape (n_samples,), optional
        covariates : array-like of shape (n_samples, n_covariates), optional
        **params : dict
            `groups`, an array of shape (n_samples,), for the splitter: samples of a group stay
            together. With metadata routing, whatever the splitter has requested.

        Returns
        -------
        FasTRClassifierCV
            The fitted estimator itself.
        """
        check_loss(self)
        tensor, labels, weights = self._checked(X, y, sample_weight)
        logistic = self.loss == "logistic"
        data = Data.check(
            tensor,
            labels,
            weights,
            covariates,
            fit_intercept=self.fit_intercept,
            logistic=logistic,
        )
        fit_params = {"sample_weight": sample_weight, "covariates": covariates}
        self._held_out: tuple[Array, Array] | None = None
        self._select(data, X, np.asarray(y).reshape(-1), fit_params, self._routed(params))
        self._calibrate_on_held_out(data)
        return self

    def decision_function(self, X: Any, covariates: Any = None) -> Array:
        """Return the decision values, above 0 for `classes_[1]`.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X, covariates)

    def _splits(self, data: Data, y: Any, groups: dict[str, Any]) -> list[Split]:
        """Return the folds; both classes must be there to train on."""
        splits = super()._splits(data, y, groups)
        for fold, (train, _) in enumerate(splits):
            weights = np.ones(len(train)) if data.weights is None else data.weights[train]
            present = np.unique(data.y[train][weights > 0])
            if len(present) < 2:
                only = self.classes_.tolist()[int(present[0] > 0)]
                raise ValueError(
                    f"cv leaves fold {fold} only training samples of class {only!r}; expected "
                    "both classes in every fold. Use fewer or stratified folds."
                )
        return splits

    def _keep_decisions(self, fits: FoldFits, point: int, each: int, splits: list[Split]) -> None:
        decisions = [
            fits.predictions[fold * each + point][test] for fold, (_, test) in enumerate(splits)
        ]
        self._held_out = np.concatenate(decisions), np.concatenate([test for _, test in splits])

    def _calibrate_on_held_out(self, data: Data) -> None:
        """Give the best estimator probabilities that held-out samples bear out."""
        best = self.best_estimator_
        if self._held_out is not None:
            decision, test = self._held_out
            weights = None if data.weights is None else data.weights[test]
            best.calibration_ = calibrate(self.loss, decision, data.y[test], weights)
        del self._held_out
        self.calibration_ = best.calibration_


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
