"""FasTR for classes: two by one decision, more of them one against the rest."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.checkpoint import checkpointed
from pyfastr.estimators.classes import check_all_classes, check_tensor_and_classes, class_weights
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import CONSTRAINTS, FasTRBase, check_together
from pyfastr.estimators.lazy import by_chunks
from pyfastr.estimators.namespaces import answers_in_kind, fits_arrays, on_host
from pyfastr.estimators.reading import read_weights
from pyfastr.estimators.sklearn_private import StrOptions
from pyfastr.estimators.validation import Samples
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


class LabelsMixin(ClassifierMixin):
    """Labels in, labels and probabilities out, by a linear decision or one for each class."""

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
        return predicted_classes(self._decide(X, covariates), to_host(self.classes_))

    @by_chunks
    @answers_in_kind
    def predict_proba(self, X: Any, covariates: Any = None) -> Array:
        """Predict the probabilities of all classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Those of more than two classes are each against the rest, divided by their sum.
        """
        return probabilities(self._decide(X, covariates), self.calibration_)

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

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Samples, Array, Array | None]:
        """Return checked samples, labels -1 and 1, and weights; set `classes_`.

        Labels of more than two classes have a row for each, 1 where a sample is of it.
        """
        y, sample_weight = on_host(X, y=y, sample_weight=sample_weight)
        X, y, self.classes_, labels = check_tensor_and_classes(self, X, y, multi_class=True)
        weights = None
        if sample_weight is not None:
            weights = read_weights(computed(sample_weight), X.shape[0])
        if self.class_weight is not None:
            own = class_weights(self.class_weight, y, self.classes_)
            weights = own if weights is None else own * weights
        if weights is not None:
            check_all_classes(y, weights, self.classes_)
        return X, labels, weights


class FasTRClassifier(LabelsMixin, FasTRBase):
    r"""Sparse unit-rank tensor classification.

    The decision is :math:`f(X) = \langle W, X\rangle + b` with W a sum of `n_terms` outer
    products, as in :class:`FasTRRegressor`, which also tells of the search for starts. More than
    two classes have a decision each, against the rest, and the largest wins; they share every pass
    over X.

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
    symmetry : "auto", pair of int or None, default="auto"
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
    checkpoint : str or Path, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    calibration_ : float
        Slope a of the probability :math:`1 / (1 + \exp(-a f(X)))` of `classes_[1]`: 1 for the
        logistic loss. For the squared loss it is Platt's, fitted to the training decisions: with
        few samples per degree of freedom these are too sure, and :class:`FasTRClassifierCV` uses
        held-out decisions. More than two classes share one slope, so that the most probable class
        is the predicted one.
    coef_ : ndarray of shape (p1, ..., pM)
        Of more than two classes ``(n_classes, p1, ..., pM)``.
    factors_, scales_, intercept_, covariate_coef_, n_iter_, converged_, history_, starts_, design_
        As in :class:`FasTRRegressor`, more than two classes being its outputs; the loss of
        `history_` is the one chosen.
    outputs_ : list of FasTRClassifier
        Each of more than two classes against the rest, as a fitted model of classes False and True.
    symmetric_modes_ : tuple of two int, or None
        Modes that share a component.
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
        symmetry: Literal["auto"] | Sequence[int] | None = "auto",
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
        self.symmetry = symmetry
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
            Two classes or more, labelled in any way.
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
        decisions = data.predictors(solution.models, solution.fitted)
        self.calibration_ = calibrate(self.loss, decisions, data.y, data.weights)
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
        ndarray of shape (n_samples,), or (n_samples, n_classes) of more than two classes
        """
        return self._with_covariates(X, covariates)


def predicted_classes(decision: Array, classes: Array) -> Array:
    """Return the classes that decisions ``(n,)`` of two or ``(n, n_classes)`` of more are for."""
    if decision.ndim == 1:
        return classes[(decision > 0).astype(int)]
    return classes[decision.argmax(axis=1)]


def probabilities(decision: Array, calibration: float) -> Array:
    """Return the probabilities ``(n, n_classes)`` that decisions stand for."""
    if decision.ndim == 1:
        positive = expit(calibration * decision)
        return np.column_stack([1 - positive, positive])
    # In logarithms there is always one class to divide by, however sure all are of the rest.
    shares: Array = softmax(log_expit(calibration * decision), axis=1)
    return shares


def calibrate(loss: str, decisions: Array, labels: Array, weights: Array | None) -> float:
    """Return the slope that turns decisions into log-odds: one, also of many rows ``(T, n)``.

    Those of the logistic loss are log-odds. Others get Platt's slope, with his targets that keep
    probabilities of small samples away from 0 and 1, and no offset: a decision of 0 is even odds.
    """
    decisions, labels = np.atleast_2d(decisions), np.atleast_2d(labels)
    size = float(np.abs(decisions).max(initial=0.0))
    if loss == "logistic" or size == 0:
        return 1.0
    f = (decisions / size).ravel()
    weights = np.ones(labels.shape[1]) if weights is None else weights
    target = np.concatenate([_platt_targets(own, weights) for own in labels])
    g = np.tile(weights, len(labels))

    def gradient(slope: float) -> float:
        return float(np.sum(g * (expit(slope * f) - target) * f))

    steepest = 1.0
    while gradient(steepest) < 0 and steepest < STEEPEST:
        steepest *= 2
    if gradient(FLATTEST) >= 0 or gradient(steepest) < 0:
        return (FLATTEST if gradient(FLATTEST) >= 0 else steepest) / size
    return float(brentq(gradient, FLATTEST, steepest, xtol=1e-14)) / size


def _platt_targets(labels: Array, weights: Array) -> Array:
    """Return probabilities that labels stand for: further from 0 and 1 the fewer they are."""
    positive = labels > 0
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    return np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
