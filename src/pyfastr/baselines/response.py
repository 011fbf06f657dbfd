"""Responses of a generalised linear model: what y may hold, and what is predicted."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from pyfastr.baselines.glm import FAMILIES
from pyfastr.estimators.classes import check_tensor_and_classes
from pyfastr.estimators.linear import LinearTensorMixin
from pyfastr.estimators.validation import Samples, check_covariates, check_tensor_and_response

Array = NDArray[Any]


def _is_binomial(model: Any) -> bool:
    """Whether a model tells classes apart."""
    return bool(model.family == "binomial")


class ResponseMixin(LinearTensorMixin, RegressorMixin):
    """A regressor, or a classifier if its family is binomial."""

    family: str
    classes_: Array

    def predict(self, X: Any, covariates: Any = None) -> Array:
        """Predict the mean response, or the class if the family is binomial.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional
            Needed if and only if the fit had them.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values (normal), rates (Poisson) or classes (binomial).
        """
        predictor = self._linear_predictor(X, covariates)
        if _is_binomial(self):
            return self.classes_[(predictor > 0).astype(int)]
        return FAMILIES[self.family].mean(predictor)

    @available_if(_is_binomial)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, covariates: Any = None) -> Array:
        """Predict the probabilities of both classes; of a binomial family only.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional

        Returns
        -------
        ndarray of shape (n_samples, 2)
        """
        positive = FAMILIES[self.family].mean(self._linear_predictor(X, covariates))
        return np.column_stack([1 - positive, positive])

    @available_if(_is_binomial)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any, covariates: Any = None) -> Array:
        """Return the log-odds of `classes_[1]`; of a binomial family only.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._linear_predictor(X, covariates)

    def score(self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None) -> float:
        """Return R² of the predicted means, or the accuracy if the family is binomial.

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
        measure = accuracy_score if _is_binomial(self) else r2_score
        return float(measure(y, prediction, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.family == "poisson"
        if _is_binomial(self):
            tags.estimator_type, tags.regressor_tags = "classifier", None
            tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def _linear_predictor(self, X: Any, covariates: Any) -> Array:
        """Return ``<W, X_i>`` with covariates and intercept."""
        check_is_fitted(self)
        predictor = self._linear_prediction(X)
        own: Array | None = getattr(self, "covariate_coef_", None)
        Z = check_covariates(covariates, len(predictor), expected=0 if own is None else len(own))
        return predictor if Z is None else predictor + (Z @ own).astype(predictor.dtype)

    def _checked(self, X: Any, y: Any) -> tuple[Samples, Array]:
        """Return checked samples and a response that the family can have made, in float64."""
        if _is_binomial(self):
            X, _, self.classes_, labels = check_tensor_and_classes(self, X, y)
            return X, (labels + 1) / 2
        if hasattr(self, "classes_"):
            del self.classes_
        X, y = check_tensor_and_response(self, X, y)
        if self.family == "poisson" and (y < 0).any():
            raise ValueError(
                f"y holds {y.min()}; expected no negative numbers for family='poisson'. Use "
                "family='normal' for such data."
            )
        return X, y.astype(np.float64)
