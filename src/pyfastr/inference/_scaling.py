"""Pipelines of scalers and an estimator: a scaling of its own for every training set."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from pyfastr.estimators.data import Data
from pyfastr.estimators.scaler import TensorScaler
from pyfastr.estimators.validation import check_tensor
from pyfastr.sources import ScaledSource, Source
from pyfastr.sources.namespaces import to_host

Array = NDArray[Any]


def unpacked(estimator: Any) -> tuple[list[TensorScaler], Any]:
    """Return the scalers of a pipeline, checked, and its estimator; others have no scalers."""
    if not isinstance(estimator, Pipeline):
        return [], estimator
    *steps, (_, last) = estimator.steps
    scalers = []
    for name, step in steps:
        if step is None or step == "passthrough":
            continue
        if not isinstance(step, TensorScaler):
            raise TypeError(
                f"estimator is a Pipeline whose step {name!r} is {step!r}; expected TensorScaler "
                "in all steps but the last, because these are fitted anew in every fold or "
                "resample without a copy of X. Apply other steps to X beforehand if they do not "
                "learn from it."
            )
        step._validate_params()
        scalers.append(step)
    return scalers, last


@dataclass(frozen=True)
class Scaling:
    """The scalers of a pipeline, which are fitted to each training set.

    Attributes
    ----------
    scalers : list of TensorScaler
        Not fitted, and left as they are; none leaves X as it is.
    X : array-like
        As the user gave it.
    sample_weight : array-like or None
        Counts in scales as in fits.
    """

    scalers: list[TensorScaler]
    X: Any
    sample_weight: Any

    def __bool__(self) -> bool:
        return bool(self.scalers)

    def apply(self, data: Data, counts: Array) -> "tuple[Data, list[TensorScaler]]":
        """Scale data by what a training set says, given how often each sample is in it."""
        if not self:
            return data, []
        weights = counts
        if self.sample_weight is not None:
            weights = counts * np.asarray(to_host(self.sample_weight), float)
        source: Source = data.source
        fitted: list[TensorScaler] = []
        for scaler in self.scalers:
            own = self._prepared(scaler, source.shape[1:], first=not fitted)
            own.n_samples_seen_ = float(weights.sum())
            own._set_statistics(source, weights)
            source = ScaledSource(source, own.mean_, own.scale_)
            fitted.append(own)
        return data.of_other_samples(source), fitted

    def _prepared(
        self, scaler: TensorScaler, shape: tuple[int, ...], *, first: bool
    ) -> TensorScaler:
        """Copy a scaler, and let it know its input: the first alone sees names of columns."""
        own: TensorScaler = clone(scaler)
        if first:
            check_tensor(own, self.X, reset=True)
        else:
            own.tensor_shape_in_, own.n_features_in_ = shape, shape[0]
        return own


def scoring_pipelines(
    scorer: Callable[..., float], scalers: list[TensorScaler]
) -> Callable[..., float]:
    """Let a scorer of the user's own judge the pipeline, not the estimator on X as it is."""

    def score(estimator: Any, X: Any, y: Any) -> float:
        steps = [(f"scaler{i}", scaler) for i, scaler in enumerate(scalers)]
        return scorer(Pipeline([*steps, ("estimator", estimator)]), X, y)

    return score
