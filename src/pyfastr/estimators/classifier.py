"""FasTR for two classes."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import assert_all_finite, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from pyfastr.estimators.checkpoint import checkpointed
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import CONSTRAINTS, FasTRBase, check_together
from pyfastr.estimators.lazy import by_chunks
from pyfastr.estimators.namespaces import answers_in_kind, fits_arrays, on_host
from pyfastr.estimators.sklearn_private import StrOptions, check_sample_weight
from pyfastr.estimators.validation import Samples, check_tensor
from pyfastr.estimators.watching import fit_method
from pyfastr.solver.losses import LOSSES
from pyfastr.solver.models import Models
from pyfastr.solver.solve import Fit
from pyfastr.sources import computed
from pyfastr.sources.namespaces import to_host

Array = NDArray[Any]

CLASSIFIER_CONSTRAINTS: dict[str, list[Any]] = {
    **CONSTRAINTS,
    "loss": [StrOptions({"squared", "logistic"})],
    "class_weight": [dict, StrOptions({"balanced"}), None],
}


# Slopes of probabilities against decisions, in units of the largest decision.
FLATTEST, STEEPEST = 1e-6, 1e6


class BinaryMixin(ClassifierMixin):
    """Labels in, labels and probabilities out, for two classes and a linear decision."""

    classes_: Array
    calibration_: float
    loss: str
    class_weight: Any

    @by_chunks
    @answers_in_kind
    def predict(self, X: Any, covariates: Any = None) -> Array:
        """Predict the class.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional
            Needed if and only if the fit had them.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision = self._decide(X, covariates)
        return to_host(self.classes_)[(decision > 0).astype(int)]

    @by_chunks
    @answers_in_kind
    def predict_proba(self, X: Any, covariates: Any = None) -> Array:
        """Predict the probabilities of both classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional

        Returns
        -------
        ndarray of shape (n_samples, 2)
        """
        decision = self._decide(X, covariates)
        positive = expit(self.calibration_ * decision)
        return np.column_stack([1 - positive, positive])

    def score(self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None) -> float:
        """Return the share of samples whose class is predicted.

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
        prediction = self.predict(X) if covariates is None else self.predict(X, covariates)
        y, sample_weight = on_host(X, y=computed(y), sample_weight=computed(sample_weight))
        prediction = to_host(computed(prediction))
        return float(accuracy_score(y, prediction, sample_weight=sample_weight))

    def _decide(self, X: Any, covariates: Any) -> Array:
        """Return the decision values; without covariates a subclass need not know of them."""
        check_is_fitted(self)
        decide: Any = self.decision_function
        return to_host(decide(X) if covariates is None else decide(X, covariates))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Samples, Array, Array | None]:
        """Return checked samples, labels -1 and 1, and weights; set `classes_`."""
        y, sample_weight = on_host(X, y=y, sample_weight=sample_weight)
        X, y, self.classes_, labels = check_tensor_and_classes(self, X, y)
        weights = None
        if sample_weight is not None:
            weights = computed(sample_weight)
            weights = check_sample_weight(weights, X, dtype=float, ensure_non_negative=True)
        if self.class_weight is not None:
            own = compute_sample_weight(self.class_weight, y)
            weights = own if weights is None else own * weights
        if weights is not None:
            _check_both_classes(labels, weights, self.classes_)
        return X, labels, weights


class FasTRClassifier(BinaryMixin, FasTRBase):
    r"""Sparse unit-rank tensor classification of two classes.

    The decision is :math:`f(X) = \langle W, X\rangle + b` with W a sum of `n_terms` outer
    products, as in :class:`FasTRRegressor`, which also tells of the search for starts.

    Parameters
    ----------
    threshold : float or "theory", default=0.0
        Relative soft threshold, as in :class:`FasTRRegressor`.
    ridge : float, default=1.0
        Relative ridge, as in :class:`FasTRRegressor`. Labels are noisy, so it is larger here;
        :class:`FasTRClassifierCV` chooses it.
    n_terms : int, default=1
        Number of unit-rank terms.
    loss : {"squared", "logistic"}, default="squared"
        "squared" regresses labels -1 and 1, as the paper does. "logistic" lowers the logistic
        loss: the same updates with weights and a response that are renewed in each (IRLS), from
        the solution of the squared loss.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    init : {"mixed", "spectral", "random"} or sequence of M arrays, default="mixed"
    n_init : int or "auto", default="auto"
    sweep : {"cyclic", "simultaneous"}, default="cyclic"
    max_iter : int, default=1000
    tol : float, default=1e-3
    fit_intercept : bool, default=True
    refit_support : bool or "evidence", default=False
        "evidence" is of the squared loss only. The logistic loss is refitted with a ridge that
        shrinks by the share of free parameters itself, as labels are noisy.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
    checkpoint : str or Path, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    calibration_ : float
        Slope a of the probability :math:`1 / (1 + \exp(-a f(X)))` of `classes_[1]`: 1 for the
        logistic loss. For the squared loss it is Platt's, fitted to the training decisions: with
        few samples per degree of freedom these are too sure, and :class:`FasTRClassifierCV` uses
        held-out decisions.
    coef_ : ndarray of shape (p1, ..., pM)
    factors_, scales_, intercept_, covariate_coef_, n_iter_, converged_, history_, starts_
        As in :class:`FasTRRegressor`; the loss of `history_` is the one chosen.
    tensor_shape_in_ : tuple of int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pyfastr import FasTRClassifier
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(200, (8, 8), random_state=0)
    >>> labels = np.where(y > 0, "patient", "control")
    >>> model = FasTRClassifier(ridge=0.1, random_state=0).fit(X[:150], labels[:150])
    >>> model.classes_.tolist()
    ['control', 'patient']
    >>> bool(model.score(X[150:], labels[150:]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CLASSIFIER_CONSTRAINTS

    def __init__(
        self,
        threshold: float | Literal["theory"] = 0.0,
        ridge: float = 1.0,
        *,
        n_terms: int = 1,
        loss: Literal["squared", "logistic"] = "squared",
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        init: Literal["mixed", "spectral", "random"] | Sequence[Array] = "mixed",
        n_init: int | Literal["auto"] = "auto",
        sweep: Literal["cyclic", "simultaneous"] = "cyclic",
        max_iter: int = 1000,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        refit_support: bool | Literal["evidence"] = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.threshold = threshold
        self.ridge = ridge
        self.n_terms = n_terms
        self.loss = loss
        self.class_weight = class_weight
        self.init = init
        self.n_init = n_init
        self.sweep = sweep
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.refit_support = refit_support
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @fit_method
    @fits_arrays
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None
    ) -> "FasTRClassifier":
        """Fit the coefficient.

        Parameters
        ----------
        X : array-like or stored, of shape (n_samples, p1, ..., pM)
            M >= 1. Never copied or written to. A memory map, a dataset of h5py or Zarr and a list
            of .npy or NIfTI files, one a sample, are read block by block within the memory budget.
            A Dask array is computed once if it fits the budget, else chunk by chunk in every pass;
            that of a cluster stays with its workers.
        y : array-like of shape (n_samples,)
            Two classes, labelled in any way.
        sample_weight : array-like of shape (n_samples,), optional
        covariates : array-like of shape (n_samples, n_covariates), optional
            Columns with an ordinary, unpenalised coefficient each.

        Returns
        -------
        FasTRClassifier
            The fitted estimator itself.
        """
        check_together(self)
        X, labels, weights = self._checked(X, y, sample_weight)
        data = Data.check(
            self,
            X,
            labels,
            weights,
            covariates,
            fit_intercept=self.fit_intercept,
            loss=LOSSES[self.loss],
        )
        with checkpointed(self):
            self._fit_data(data)
        return self

    def _fit_data(self, data: Data, known: Models | None = None) -> Fit:
        """Solve, and calibrate the decisions on the training samples."""
        solution = super()._fit_data(data, known)
        decision = data.predictors(solution.models, solution.fitted)[0]
        self.calibration_ = calibrate(self.loss, decision, data.y, data.weights)
        return solution

    @by_chunks
    @answers_in_kind
    def decision_function(self, X: Any, covariates: Any = None) -> Array:
        """Return the decision values, above 0 for `classes_[1]`.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional
            Needed if and only if the fit had them.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._with_covariates(X, covariates)


def calibrate(loss: str, decision: Array, labels: Array, weights: Array | None) -> float:
    """Return the slope that turns decisions into log-odds.

    Those of the logistic loss are log-odds. Others get Platt's slope, with his targets that keep
    probabilities of small samples away from 0 and 1, and no offset: a decision of 0 is even odds.
    """
    size = float(np.abs(decision).max(initial=0.0))
    if loss == "logistic" or size == 0:
        return 1.0
    f = decision / size
    g = np.ones(len(labels)) if weights is None else weights
    positive = labels > 0
    n_positive, n_negative = g[positive].sum(), g[~positive].sum()
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))

    def gradient(slope: float) -> float:
        return float(np.sum(g * (expit(slope * f) - target) * f))

    steepest = 1.0
    while gradient(steepest) < 0 and steepest < STEEPEST:
        steepest *= 2
    if gradient(FLATTEST) >= 0 or gradient(steepest) < 0:
        return (FLATTEST if gradient(FLATTEST) >= 0 else steepest) / size
    return float(brentq(gradient, FLATTEST, steepest, xtol=1e-14)) / size


def check_tensor_and_classes(estimator: Any, X: Any, y: Any) -> tuple[Samples, Array, Array, Array]:
    """Return checked samples and y, its two classes, and the labels as -1 and 1."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    X = check_tensor(estimator, X, reset=True, min_samples=2)
    y = column_or_1d(computed(y), warn=True)
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    return X, y, *_binary_labels(y)


def _binary_labels(y: Array) -> tuple[Array, Array]:
    """Return the two classes and the labels as -1 and 1."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}: y has {len(classes)} classes; expected 2. Use "
            "sklearn.multiclass.OneVsRestClassifier for more."
        )
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}; expected samples of 2 classes to "
            "tell apart."
        )
    return classes, 2.0 * codes - 1


def _check_both_classes(labels: Array, weights: Array, classes: Array) -> None:
    """Refuse weights that leave one class only."""
    for label, name in zip((-1, 1), classes.tolist(), strict=True):
        if not weights[labels == label].any():
            raise ValueError(
                f"sample_weight and class_weight leave no sample of class {name!r}; expected "
                "positive weights in both classes."
            )
