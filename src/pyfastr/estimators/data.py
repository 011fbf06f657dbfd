"""What a fit is given, checked: samples, responses, weights, intercept and covariates."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.estimators.labels import record_covariates
from pyfastr.estimators.namespaces import on_host
from pyfastr.estimators.reading import read_weights, unit_of_weights
from pyfastr.estimators.symmetry import looked_over
from pyfastr.estimators.validation import Samples, check_covariates
from pyfastr.solver.losses import SQUARED, Loss
from pyfastr.solver.models import Models
from pyfastr.solver.problem import PLAIN_RANGE, Problem, make_problem, power_of_two
from pyfastr.solver.ties import UNTIED, Ties
from pyfastr.sources import Source, as_source, computed

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
        A row for each output if these are several; of all tasks, those of a fold together.
    weights : ndarray of shape (n_samples,) or (T, n_samples), or None
    covariates : ndarray of shape (n_samples, n_covariates) or None
    fit_intercept : bool
    loss : Loss
    n_outputs : int or None
        None where y is a vector.
    weight_unit : float
        What the user's weights were divided by, so that products of them stay in range.
    symmetry : "auto", None or pair of int
        What was asked of two modes.
    ties : Ties
        Modes that share a component.
    """

    source: Source
    largest_entry: float
    y: Array
    weights: Array | None
    covariates: Array | None
    fit_intercept: bool
    loss: Loss = SQUARED
    n_outputs: int | None = None
    weight_unit: float = 1.0
    symmetry: Any = None
    ties: Ties = UNTIED

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

        Responses have a row for each output if they have two axes. The estimator is given names of
        covariates, the number of samples and their fingerprint.
        """
        sample_weight, covariates = on_host(X, sample_weight=sample_weight, covariates=covariates)
        source, weights, weight_unit = as_source(X), None, 1.0
        n_samples = source.shape[0]
        if sample_weight is not None:
            given = read_weights(computed(sample_weight), n_samples)
            weight_unit = unit_of_weights(given)
            weights = given / weight_unit
            _check_enough_weight(weights)
        Z = check_covariates(covariates, n_samples)
        _check_responses(y, weights, loss)
        symmetry = getattr(estimator, "symmetry", None)
        largest, ties = looked_over(source, symmetry)
        data = cls(
            source,
            largest,
            y.astype(float),
            weights,
            Z,
            fit_intercept,
            loss,
            n_outputs=len(y) if y.ndim > 1 else None,
            weight_unit=weight_unit,
            symmetry=symmetry,
            ties=ties,
        )
        record_covariates(estimator, covariates)
        # Samples of weight zero have no part in a fit.
        n_fitted = n_samples if weights is None else int(np.count_nonzero(weights))
        estimator.n_samples_in_, estimator.fingerprint_ = n_fitted, data.fingerprint()
        estimator.symmetric_modes_ = ties.modes
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

    def of_other_samples(self, source: Source) -> "Data":
        """Return what belongs to the samples with others in their place, such as scaled ones."""
        largest, ties = looked_over(source, self.symmetry if self.ties else None)
        return replace(self, source=source, largest_entry=largest, ties=ties)

    def tasks(self, *, y: Array | None = None, weights: Array | None = None) -> "Data":
        """Return the same samples with a row of responses, or of further weights, for each task.

        A row of weights is a task for each output.
        """
        if weights is None:
            return replace(self, y=self.y if y is None else y)
        weights = weights if self.weights is None else weights * self.weights
        y = self.y if y is None else y
        if self.n_outputs is not None:
            y = np.tile(y, (len(weights), 1))
            weights = np.repeat(weights, self.n_outputs, axis=0)
        return replace(self, y=y, weights=weights)

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
            n_outputs=self.n_outputs or 1,
            ties=self.ties,
        )

    @cached_property
    def units(self) -> Array:
        """Powers of two ``(T,)``, in units of which squares of y are in range; 1 if they are."""
        low, high = PLAIN_RANGE
        largest = np.abs(np.atleast_2d(self.y)).max(axis=1, initial=0.0)
        plain = (largest == 0) | ((low < largest) & (largest < high)) | (not self.loss.is_quadratic)
        return np.where(plain, 1.0, power_of_two(largest))

    @cached_property
    def null_losses(self) -> Array:
        """Mean losses ``(T,)`` of intercept and covariates alone, in squared `units`."""
        tasks, units = np.arange(self.problem.n_tasks), self.units[:, None]
        observed = self.problem.observed(tasks)
        nothing = observed.predictor(np.zeros((len(tasks), self.source.shape[0])))
        return replace(observed, target=observed.target / units).mean_loss(nothing / units)

    @cached_property
    def loss_units(self) -> Array:
        """What losses of each output are divided by, so that all of them count alike."""
        if self.n_outputs is None:
            return np.ones(1)
        return np.where(self.null_losses > 0, self.null_losses, 1.0)

    @cached_property
    def nuisance_columns(self) -> Array:
        """Intercept and covariates as columns."""
        columns = [np.ones((self.source.shape[0], 1))] if self.fit_intercept else []
        if self.covariates is not None:
            columns.append(self.covariates)
        return np.hstack(columns) if columns else np.empty((self.source.shape[0], 0))

    def nuisance_coefficients(self, models: Models, fitted: Array) -> Array:
        """Coefficients ``(K, q)`` of intercept and covariates beside fitted values ``(K, N)``.

        Those of tiny covariates may be too large for a float, and infinite.
        """
        columns, task = self.nuisance_columns, models.task
        if not columns.shape[1]:
            return np.empty((len(models), 0))
        left, unit = self._left(fitted, task)
        if self.weights is None:
            return scaled(_least_squares(columns, left.T).T, unit)
        roots = np.sqrt(np.atleast_2d(self.weights))
        rows = np.zeros(len(left), int) if len(roots) == 1 else task
        found = np.empty((len(left), columns.shape[1]))
        for row in np.unique(rows):
            # Models of one task share their weights, and so one factorisation.
            own, g = rows == row, roots[row][:, None]
            found[own] = _least_squares(columns * g, left[own].T * g).T
        return scaled(found, unit)

    def predictors(self, models: Models, fitted: Array) -> Array:
        """Linear predictors ``(K, N)``: fitted values with intercept and covariates."""
        return self.with_nuisance(models, fitted, self.nuisance_coefficients(models, fitted))

    def with_nuisance(self, models: Models, fitted: Array, nuisance: Array) -> Array:
        """Return the same with known coefficients ``(K, q)`` of intercept and covariates."""
        scale = self.problem.y_scale[models.task][:, None]
        return fitted * scale + nuisance @ self.nuisance_columns.T

    def _left(self, fitted: Array, task: Array) -> tuple[Array, Array]:
        """Return what intercept and covariates are to explain, ``(K, N)``, and its units."""
        problem = self.problem
        if not self.loss.is_quadratic:
            return problem.observed(task).offset(fitted), np.ones((len(fitted), 1))
        # In units of its own even a huge y has squares, weighted or not.
        scale = problem.y_scale[task][:, None]
        unit, y = power_of_two(scale), np.atleast_2d(self.y)
        return (y if len(y) == 1 else y[task]) / unit - fitted * (scale / unit), unit


def _check_responses(y: Array, weights: Array | None, loss: Loss) -> None:
    """Refuse responses that the loss cannot fit, and say of which output they are."""
    for output, own in enumerate(np.atleast_2d(y)):
        if flaw := loss.flaw_of(own, weights):
            raise ValueError(flaw if y.ndim == 1 else f"Output {output}: {flaw}")


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
    return scaled(found.T, 1 / size).T


def scaled(values: Array, units: Array | float) -> Array:
    """Multiply; who uses the result has to look for infinity. Zero is zero in any units."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(values == 0, values, values * units)
