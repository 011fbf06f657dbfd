"""Classification that chooses its threshold, ridge and number of terms."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.parallel import blas_for
from pyfastr.estimators.choice import FasTRSelection
from pyfastr.estimators.choice_parameters import CV_CONSTRAINTS
from pyfastr.estimators.classifier import (
    CLASSIFIER_CONSTRAINTS,
    FasTRClassifier,
    LabelsMixin,
    calibrate,
)
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import FasTRBase, check_together
from pyfastr.estimators.folds import Split
from pyfastr.estimators.namespaces import answers_in_kind, fits_arrays
from pyfastr.estimators.watching import fit_method

Array = NDArray[Any]


class FasTRClassifierCV(LabelsMixin, FasTRSelection):
    """Sparse unit-rank tensor classification that chooses threshold, ridge and number of terms.

    Parameters
    ----------
    thresholds, ridges, n_terms
        As in :class:`FasTRRegressorCV`, but "auto" has ten thresholds up to 0.55.
    loss : {"squared", "logistic"}, default="squared"
        As in :class:`FasTRClassifier`.
    class_weight : dict, "balanced" or None, default=None
        Counts in fits and scores.
    cv : int, splitter or iterable, default=5
        An integer makes so many stratified, shuffled folds (`StratifiedGroupKFold` if groups are
        given), drawn by `random_state`.
    scoring : str, callable or None, default=None
        Any of scikit-learn; None is the area under the ROC curve.
    criterion, one_standard_error, refit, checkpoint
        As in :class:`FasTRRegressorCV`; "evidence" is of the squared loss only.
    init, n_init, sweep, max_iter, tol, fit_intercept, refit_support
        As in :class:`FasTRRegressorCV`.
    symmetry, random_state, verbose
        As in :class:`FasTRRegressorCV`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    calibration_ : float
        As in :class:`FasTRClassifier`, but for the squared loss fitted to held-out decisions.
    best_estimator_ : FasTRClassifier
    threshold_, ridge_, n_terms_, best_params_, best_index_, best_score_
        As in :class:`FasTRRegressorCV`.
    choice_, refitted_, agreement_, averaged_
        As in :class:`FasTRRegressorCV`.
    cv_results_, scores_path_, output_scores_, held_out_
        As in :class:`FasTRRegressorCV`; of `held_out_`, `prediction` are decision values and
        `target` the numbers of classes.
    reference_score_, reference_, reference_is_better_, reference_missing_
        As in :class:`FasTRRegressorCV`; the ridge regression is on labels -1 and 1.
    coef_, factors_, scales_, intercept_, design_, n_iter_, converged_, history_, starts_
        Of the best estimator; the last four only of a refit.
    outputs_ : list of FasTRClassifierCV
        Each of more than two classes against the rest, as a fitted choice of one.
    symmetric_modes_, tensor_shape_in_, n_features_in_ : tuple of int or None, tuple of int, int

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
        n_terms: int | Sequence[int] | Literal["auto"] = "auto",
        *,
        loss: Literal["squared", "logistic"] = "squared",
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        cv: Any = 5,
        scoring: Any = None,
        criterion: Literal["cv", "evidence"] = "cv",
        one_standard_error: bool = False,
        refit: bool | Literal["auto"] = "auto",
        init: Literal["mixed", "spectral", "random"] = "mixed",
        n_init: int | Literal["auto"] = "auto",
        sweep: Literal["cyclic", "simultaneous"] = "cyclic",
        max_iter: int = 1000,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        refit_support: bool = True,
        symmetry: Literal["auto"] | Sequence[int] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
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
        self.refit = refit
        self.init = init
        self.n_init = n_init
        self.sweep = sweep
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.refit_support = refit_support
        self.symmetry = symmetry
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @fit_method
    @fits_arrays
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None, **params: Any
    ) -> "FasTRClassifierCV":
        """Choose the model and fit it to all data.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)
            Two classes or more, labelled in any way. More than two are each set against the rest,
            and share threshold, ridge and number of terms.
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
        check_together(self)
        tensor, labels, weights = self._checked(X, y, sample_weight)
        data = self._checked_data(tensor, labels, weights, covariates)
        with blas_for(data.source):
            self._select(data, X, np.asarray(y).reshape(-1), self._routed(params))
        self._calibrate_on_held_out(data)
        return self

    @answers_in_kind
    def decision_function(self, X: Any, covariates: Any = None) -> Array:
        """Return the decision values, above 0 for `classes_[1]`.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) of more than two classes
        """
        return self.best_estimator_.decision_function(X, covariates)

    def _splits(self, data: Data, y: Any, groups: dict[str, Any]) -> list[Split]:
        """Return the folds; all classes must be there to train on."""
        splits = super()._splits(data, y, groups)
        for fold, (train, _) in enumerate(splits):
            counted = train if data.weights is None else train[data.weights[train] > 0]
            present = np.unique(np.asarray(y)[counted])
            if len(present) < len(self.classes_):
                named = ", ".join(map(repr, present.tolist()))
                raise ValueError(
                    f"cv leaves fold {fold} only training samples of class {named}; expected "
                    "all classes in every fold. Use fewer or stratified folds."
                )
        return splits

    def _calibrate_on_held_out(self, data: Data) -> None:
        """Give the best estimator probabilities that held-out samples bear out."""
        best = self.best_estimator_
        if self.criterion == "cv":
            test = self.held_out_.samples
            weights = None if data.weights is None else data.weights[test]
            decisions = self.held_out_.prediction.T
            best.calibration_ = calibrate(self.loss, decisions, data.y[..., test], weights)
        self.calibration_ = best.calibration_
