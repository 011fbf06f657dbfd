"""Samples that are tensors, and the prediction that a linear model makes of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.validation import check_tensor, finite_blocks_there
from pyfastr.sources import as_source
from pyfastr.sources.namespaces import namespace_of, to_device, to_host

Array = NDArray[Any]


def check_prediction(prediction: Array) -> Array:
    """Return predictions; it is an error if they have left the range of their type."""
    bad = np.flatnonzero(~np.isfinite(prediction))
    if bad.size:
        raise ValueError(
            f"The prediction of sample {bad[0]} is larger than {prediction.dtype} can hold; "
            "expected X, and covariates, of about the size that they had in fit. Rescale them."
        )
    return prediction


class TensorInputMixin:
    """Samples may have more than two axes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # In addition to two_d_array, which stays True: a matrix is the case M = 1.
        tags.input_tags.three_d_array = True
        return tags


class LinearTensorMixin(TensorInputMixin):
    """`predict` for estimators that have `coef_` of a sample's shape and `intercept_`.

    Those of several outputs have a leading axis of outputs.
    """

    coef_: Array
    intercept_: Any

    def predict(self, X: Any) -> Array:
        """Predict ``<coef_, X_i> + intercept_`` for each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._linear_prediction(X)

    def _linear_prediction(self, X: Any) -> Array:
        """Read X once, block by block."""
        source = as_source(check_tensor(self, X, reset=False))
        coef = to_host(self.coef_)
        outputs = coef.shape[: coef.ndim + 1 - len(source.shape)]
        flat = coef.reshape(*outputs, -1).T
        weights: Any = flat.astype(source.dtype, copy=False)
        prediction = np.empty((source.shape[0], *outputs), dtype=source.dtype)
        # What is too large is refused in words.
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, block in finite_blocks_there(source):
                samples = namespace_of(block).reshape(block, (block.shape[0], -1))
                weights = to_device(weights, like=block)
                prediction[rows] = to_host(samples @ weights)
            prediction += to_host(self.intercept_)
        return check_prediction(prediction)
