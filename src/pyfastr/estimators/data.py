"""What a fit is given, checked: samples, responses, weights, intercept and covariates."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.estimators.labels import record_covariates
from pyfastr.estimators.namespaces import on_host
from pyfastr.estimators.sklearn_private import check_sample_weight
from pyfastr.estimators.validation import Samples, check_covariates
from pyfastr.solver.losses import SQUARED, Loss
from pyfastr.solver.models import Models
from pyfastr.solver.problem import Problem, make_problem
from pyfastr.sources import Source, as_source, computed, largest_entry

Array = NDArray[Any]


@dataclass(frozen=True)
class Data:
    """Samples with one response and weight each, or with one of each for every task.

    Attributes
    ----------
    source : Source
    largest_entry : float
        Size of the largest entry of X.
    y : ndarray of shape (n_samples,) or (T, n_samples)
    weights : ndarray of shape (n_samples,) or (T, n_samples), or None
    covariates : ndarray of shape (n_samples, n_covariates) or None
    fit_intercept : bool
    loss : Loss
    """

    source: Source
    largest_entry: float
    y: Array
    weights: Array | None
    covariates: Array | None
    fit_intercept: bool
    loss: Loss = SQUARED

    @classmethod
    def check(
        cls,
        estimator: Any,
        X: Samples,
        y: Array,
        sample_weight: Any,
        covariates: Any,
        *,
        fit_intercept: bool,
        loss: Loss = SQUARED,
    ) -> "Data":
        """Check weights and covariates of samples and responses that are checked already.

        The estimator is given names of covariates, the number of samples and their fingerprint.
        """
        sample_weight, covariates = on_host(X, sample_weight=sample_weight, covariates=covariates)
        weights = None
        if sample_weight is not None:
            weights = computed(sample_weight)
            weights = check_sample_weight(weights, X, dtype=float, ensure_non_negative=True)
            _check_enough_weight(weights)
        source = as_source(X)
        Z = check_covariates(covariates, len(y))
        if flaw := loss.flaw_of(y, weights):
            raise ValueError(flaw)
        data = cls(source, largest_entry(source), y.astype(float), weights, Z, fit_intercept, loss)
        record_covariates(estimator, covariates)
        estimator.n_samples_in_, estimator.fingerprint_ = len(y), data.fingerprint()
        return data

    def fingerprint(self) -> str:
        """Return a digest by which data are known again, without another pass over X.

        It is of the shape and type of X, its largest entry, its first and last sample, the
        responses, weights and covariates.
        """
        n_samples = self.source.shape[0]
        ends = [self.source.read(slice(i, i + 1)) for i in (0, n_samples - 1)]
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{self.source.shape} {self.source.dtype} {self.largest_entry!r}".encode())
        for part in (*ends, self.y, self.weights, self.covariates):
            digest.update(b"-" if part is None else np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def tasks(self, *, y: Array | None = None, weights: Array | None = None) -> "Data":
        """Return the same samples with a row of responses, or of further weights, for each task."""
        if weights is not None and self.weights is not None:
            weights = weights * self.weights
        return replace(
            self,
            y=self.y if y is None else y,
            weights=self.weights if weights is None else weights,
        )

    @cached_property
    def problem(self) -> Problem:
        """What the solver is given."""
        return make_problem(
            self.source,
            self.y,
            x_scale=self.largest_entry,
            fit_intercept=self.fit_intercept,
            sample_weight=self.weights,
            covariates=self.covariates,
            loss=self.loss,
        )

    @cached_property
    def nuisance_columns(self) -> Array:
        """Intercept and covariates as columns."""
        columns = [np.ones((self.source.shape[0], 1))] if self.fit_intercept else []
        if self.covariates is not None:
            columns.append(self.covariates)
        return np.hstack(columns) if columns else np.empty((self.source.shape[0], 0))

    def nuisance_coefficients(self, models: Models, fitted: Array) -> Array:
        """Coefficients ``(K, q)`` of intercept and covariates beside fitted values ``(K, N)``."""
        columns, task = self.nuisance_columns, models.task
        if not columns.shape[1]:
            return np.empty((len(models), 0))
        left = self._left(fitted, task)
        if self.weights is None:
            return _least_squares(columns, left.T).T
        roots = np.sqrt(np.atleast_2d(self.weights))
        rows = np.zeros(len(left), int) if len(roots) == 1 else task
        found = np.empty((len(left), columns.shape[1]))
        for row in np.unique(rows):
            # Models of one task share their weights, and so one factorisation.
            own, g = rows == row, roots[row][:, None]
            found[own] = _least_squares(columns * g, left[own].T * g).T
        return found

    def predictors(self, models: Models, fitted: Array) -> Array:
        """Linear predictors ``(K, N)``: fitted values with intercept and covariates."""
        scale = self.problem.y_scale[models.task][:, None]
        nuisance = self.nuisance_coefficients(models, fitted) @ self.nuisance_columns.T
        return fitted * scale + nuisance

    def _left(self, fitted: Array, task: Array) -> Array:
        """Return what intercept and covariates are to explain, ``(K, N)``, in the units of y."""
        problem = self.problem
        if not self.loss.is_quadratic:
            return problem.observed(task).offset(fitted)
        y = np.atleast_2d(self.y)
        return (y if len(y) == 1 else y[task]) - fitted * problem.y_scale[task][:, None]


def _check_enough_weight(weights: Array) -> None:
    """Refuse weights that leave fewer than two samples."""
    n_positive = int(np.count_nonzero(weights))
    if n_positive < 2:
        raise ValueError(
            f"sample_weight has {n_positive} positive entries; expected at least 2 samples that "
            "count."
        )


def _least_squares(A: Array, b: Array) -> Array:
    """Minimum-norm least squares with columns brought to one scale."""
    size = np.abs(A).max(axis=0)
    size = np.where(size > 0, size, 1)
    found: Array = np.linalg.lstsq(A / size, b, rcond=None)[0]
    return (found.T / size).T
