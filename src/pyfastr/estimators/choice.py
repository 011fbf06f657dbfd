"""How threshold, ridge and number of terms are chosen, for regression and classification."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from pyfastr.estimators.candidates import (
    Candidates,
    Gain,
    gain,
    null_loss,
    tell_of_terms,
    warn_of_blind_folds,
)
from pyfastr.estimators.checkpoint import INTERVAL, checkpointed
from pyfastr.estimators.choice_parameters import FITTED, OF_FOLDS, SHARED
from pyfastr.estimators.choice_policy import ChoicePolicy
from pyfastr.estimators.choice_text import choice_sentence, counted
from pyfastr.estimators.classifier import FasTRClassifier
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import (
    LARGEST_RIDGE,
    FasTRBase,
    check_n_terms,
    solver_settings,
    warn_of_zero,
)
from pyfastr.estimators.folds import (
    Split,
    TaskFits,
    fit_folds,
    grow_folds,
    held_out,
    known_solutions,
    mean_design,
    mean_of,
)
from pyfastr.estimators.grids import (
    checked_grid,
    further_terms,
    is_blind,
    most_terms,
    n_train,
)
from pyfastr.estimators.linear import TensorInputMixin
from pyfastr.estimators.namespaces import DispatchMixin
from pyfastr.estimators.outlets import OutletMixin
from pyfastr.estimators.outputs import outputs_of
from pyfastr.estimators.ranking import Point, cv_results, scores_path
from pyfastr.estimators.reference import NoReference, reference_of, reference_sentence
from pyfastr.estimators.scoring import Scoring
from pyfastr.estimators.sklearn_private import BaseScorer, routing_enabled
from pyfastr.estimators.splitting import make_splits
from pyfastr.estimators.tried import Tried, agreement
from pyfastr.estimators.validation import Samples, as_generator, share_input
from pyfastr.estimators.warning import warn
from pyfastr.estimators.watching import CallbackSupportMixin
from pyfastr.solver.losses import LOSSES
from pyfastr.solver.progress import tell
from pyfastr.solver.settings import Settings
from pyfastr.sources import computed, is_in_memory, is_stored

Array = NDArray[Any]

# scikit-learn's name of the score that regressors have by default; D² of counts has none.
DEFAULT_SCORING = {"squared": "r2", "poisson": None}


class FasTRSelection(
    CallbackSupportMixin, OutletMixin, DispatchMixin, TensorInputMixin, BaseEstimator
):
    """The choice of a model, for regression and for classification alike."""

    best_estimator_: Any
    loss: str
    _checkpoint_interval: ClassVar[float] = INTERVAL
    _estimator_type_of_twin: ClassVar[type[FasTRBase]]
    _policy: ClassVar[ChoicePolicy] = ChoicePolicy()

    def _checked_data(self, X: Samples, y: Array, sample_weight: Any, covariates: Any) -> Data:
        """Check what belongs to samples and responses that are checked already."""
        loss, fit_intercept = LOSSES[self.loss], self.fit_intercept
        return Data.check(
            self, X, y, sample_weight, covariates, fit_intercept=fit_intercept, loss=loss
        )

    def _select(self, data: Data, X: Any, y: Any, groups: dict[str, Any]) -> None:
        """Choose, refit on all data, and take over what the refit found."""
        for name in OF_FOLDS:
            self.__dict__.pop(name, None)
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
                self._choose_by_folds(data, scoring, splits)
        for name in FITTED:
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
            elif hasattr(self, name):
                delattr(self, name)

    def _refit(self, fits: TaskFits, data: Data) -> None:
        """Fit the choice to all data, beginning from the solutions that the folds found."""
        best = self._twin(self.threshold_, self.ridge_, self.n_terms_)
        best._fit_data(data, known_solutions(fits, data))
        self.best_estimator_ = best

    def _average(self, chosen: list[TaskFits], scoring: Scoring, data: Data) -> None:
        """Let the mean of the folds' models be the choice."""
        mean = mean_of(chosen)
        zero = np.logical_not(mean.models.scales.any(axis=1))
        if zero.any():
            warn_of_zero(mean.data, zero)
        every = np.arange(scoring.data.source.shape[0])
        best = scoring.fitted(mean, np.arange(len(zero)), every)
        best.set_params(threshold=self.threshold_, ridge=self.ridge_, n_terms=self.n_terms_)
        best.design_ = mean_design(chosen[0], data, best._settings(data.source.shape))
        self.best_estimator_ = best

    @property
    def outputs_(self) -> list[Any]:
        """Each of several outputs, or of more than two classes, as a choice of one."""
        return outputs_of(self)

    @property
    def coef_(self) -> Array:
        """The coefficient of the best estimator."""
        return self.best_estimator_.coef_

    def _grids(
        self, data: Data, splits: Sequence[Split] = ()
    ) -> tuple[list[float], list[float], list[int]]:
        """Return the grids as lists of numbers, checked."""
        known = self._policy.points
        own = known.label_thresholds if self._is_classifier() else known.thresholds
        thresholds = own if isinstance(self.thresholds, str) else self.thresholds
        terms = [self.n_terms] if isinstance(self.n_terms, Integral) else self.n_terms
        if isinstance(terms, str):
            terms = [1]  # others grow from it
        n_terms = [int(n) for n in checked_grid("n_terms", terms, 1, np.inf, whole=True)]
        check_n_terms(n_terms, data.source.shape)
        blind = is_blind(data, n_train(splits), min(n_terms))
        auto = known.blind_ridges if blind else known.ridges
        ridges = auto if isinstance(self.ridges, str) else self.ridges
        return (
            checked_grid("thresholds", thresholds, 0, 1),
            checked_grid("ridges", ridges, 0, LARGEST_RIDGE),
            n_terms,
        )

    def _fold_settings(
        self, data: Data, splits: Sequence[Split], ridge: float, n_terms: int
    ) -> Settings:
        """Return what is asked of the solver in folds, for the least ridge of a grid."""
        blind = is_blind(data, n_train(splits), n_terms)
        # A sweep of another loss gets less far, as its weights follow one sweep behind.
        known = self._policy.points
        n_sweeps = known.blind_sweeps if blind and data.loss.is_quadratic else known.sweeps
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
        # The ridge is chosen, not for the user to raise.
        twin._remedies = "Raise `max_iter` or `tol`."
        return twin

    def _splits(self, data: Data, y: Any, groups: dict[str, Any]) -> list[Split]:
        """Return the folds."""
        state = self.random_state
        return make_splits(
            self.cv, data, y, groups, classify=self._is_classifier(), random_state=state
        )

    def _candidates(
        self, data: Data, scoring: Scoring, splits: list[Split]
    ) -> tuple[list[Candidates], list[Gain]]:
        """Fit and score points of the grid in all folds, a number of terms at a time."""
        thresholds, ridges, n_terms = self._grids(data, splits)
        rng = as_generator(self.random_state)
        found: list[Candidates] = []
        grows = isinstance(self.n_terms, str)
        most = most_terms(data.source.shape[1:], self._policy.terms) if grows else len(n_terms)
        for terms in n_terms:
            points = [(terms, r, t) for r in ridges for t in thresholds]
            settings = self._fold_settings(data, splits, min(ridges), terms)
            fit = partial(fit_folds, data, splits, ridges, thresholds, settings, rng)
            found.append(Candidates.scored(points, fit, scoring, splits))
            tell_of_terms(found, most)
        return self._grow(found[0], most, data, scoring, splits) if grows else (found, [])

    def _grow(
        self, unit_rank: Candidates, most: int, data: Data, scoring: Scoring, splits: list[Split]
    ) -> tuple[list[Candidates], list[Gain]]:
        """Add terms at promising points while held-out samples show a gain."""
        found, gains, policy = [unit_rank], list[Gain](), self._policy.terms
        nothing = null_loss(data)
        while len(found) < most:
            last, terms = found[-1], found[-1].n_terms + 1
            kept = last.promising(policy, first=terms == 2)
            now = [(terms, *last.points[i][1:]) for i in kept]
            ridges, thresholds = ([p[axis] for p in now] for axis in (1, 2))
            settings = self._fold_settings(data, splits, min(ridges), terms)
            settings = replace(settings, max_iter=min(settings.max_iter, policy.sweeps))
            fit = partial(grow_folds, last.take(kept), ridges, thresholds, settings)
            found.append(Candidates.scored(now, fit, scoring, splits))
            gains.append(gain(last, found[-1], nothing, policy))
            tell_of_terms(found, most)
            if not gains[-1].is_worth_it:
                break
        return found, gains

    def _choose_by_folds(self, data: Data, scoring: Scoring, splits: list[Split]) -> None:
        """Fit and score the grid; fit the choice to all data, or take the mean of the folds'."""
        found = self._candidates(data, scoring, splits)
        tried = Tried(*found, scoring, splits, self.one_standard_error, self._policy.ranking)
        leaders = tried.leaders()
        self.agreement_ = agreement(tried.fits_of(leaders[0]))
        differ = self.agreement_ < self._policy.agreeing
        self.refitted_ = not differ if self.refit == "auto" else bool(self.refit)
        alone = self.refitted_ or self.one_standard_error
        chosen = [tried.simplest_of_best()] if alone else leaders
        fits = [tried.fits_of(i) for i in chosen]
        self._describe(tried, chosen, fits)
        self._compare_with_ridge(tried, alone=alone)
        if self.refitted_:
            self._refit(fits[0], data)
        else:
            self._average(fits, scoring, data)

    def _describe(self, tried: Tried, chosen: list[int], fits: list[TaskFits]) -> None:
        """Tell how the chosen point does, or those that are averaged, given their fits."""
        scoring, splits, scores = tried.scoring, tried.splits, tried.usable[:, chosen[0]]
        if scoring.scorer is None:
            chance = 0.5 if self._is_classifier() else 0.0
            warn_of_blind_folds(fits[0], scores - chance)
        self.held_out_ = held_out(fits, splits, scoring.targets)
        self.scores_path_ = scores_path(tried.points, tried.scores)
        seconds = [own.seconds for own in tried.candidates]
        self.cv_results_ = cv_results(tried.points, tried.scores, seconds)
        if len(tried.output_scores) > 1:
            self.output_scores_ = tried.output_scores
        self._set_choice(tried.points[chosen[0]], float(np.mean(scores)), chosen)
        self.choice_ = choice_sentence(
            self.n_terms_,
            tried.gains,
            self.agreement_,
            refitted=self.refitted_,
            n_points=len(chosen),
            is_asked=self.refit != "auto",
            simplest=tried.simplest,
        )

    def _compare_with_ridge(self, tried: Tried, *, alone: bool) -> None:
        """Put flattened ridge regression beside the choice, and say so if it is better."""
        found = reference_of(tried, self._policy.reference, alone=alone)
        if isinstance(found, NoReference):
            tell("reference", 1, 1, f"no ridge regression beside it: {found.reason}")
            self.reference_, self.reference_score_, self.reference_is_better_ = None, np.nan, False
            self.reference_missing_ = found.reason
            return
        self.reference_, self.reference_score_ = found, found.score
        self.reference_is_better_, self.reference_missing_ = found.is_better, ""
        tell("reference", 1, 1, f"flattened ridge regression: score {found.score:.4g}")
        # Vectors have no structure that might not pay.
        if found.is_better and len(tried.scoring.data.source.shape) > 2:
            warn(reference_sentence(found, tried.scoring))

    def _choose_by_evidence(self, data: Data, ridges: list[float], n_terms: list[int]) -> None:
        """Fit all data once for each number of terms; the evidence chooses the support."""
        ridge = min(ridges)
        models, times = list[Any](), []
        grows = isinstance(self.n_terms, str)
        n_terms = list(further_terms(data, self._policy.terms)) if grows else n_terms
        for terms in n_terms:
            began = time.perf_counter()
            twin = self._twin(0.0, ridge, terms, refit_support="evidence")
            twin._fit_data(data)
            models.append(twin)
            times.append((time.perf_counter() - began, 0.0))
            tell("numbers of terms", len(models), len(n_terms))
            evidence = [float(np.sum(model.evidence_)) for model in models]
            if grows and evidence[-1] > min(evidence):
                break
        points = [(model.n_terms, ridge, 0.0) for model in models]
        scores = -np.array([evidence])
        best = int(np.argmax(scores[0]))
        self.best_estimator_, self.refitted_ = models[best], True
        self.scores_path_ = scores_path(points, scores)
        self.cv_results_ = cv_results(points, scores, times)
        self._set_choice(points[best], float(scores[0, best]), [best])
        self.choice_ = f"{counted(self.n_terms_)}, by evidence; fitted to all samples."

    def _set_choice(self, point: Point, score: float, indices: list[int]) -> None:
        self.n_terms_, self.ridge_, self.threshold_ = point
        self.best_score_, self.best_index_ = score, indices[0]
        self.averaged_ = np.array(indices)
        self.best_params_ = self.cv_results_["params"][indices[0]]
        tell("choice", 1, 1, f"chosen: {self.best_params_}, score {score:.4g}")

    def _scoring(self, data: Data, X: Any, y: Any) -> Scoring:
        """Return how models are scored."""
        default = "roc_auc" if self._is_classifier() else DEFAULT_SCORING[self.loss]
        if self._is_classifier() and data.n_outputs is not None:
            default = None  # scikit-learn's areas of several classes are of probabilities
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
