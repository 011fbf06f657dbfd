"""Block relaxation of a CP generalised linear model: one mode after another, then covariates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.baselines.cp_factors import CPFactors
from pyfastr.baselines.glm import Penalty, fit_glm, fit_penalised
from pyfastr.engines import LocalEngine
from pyfastr.solver.losses import Loss

Array = NDArray[Any]

# Takes the features of a mode (N, R p_m), the covariates' predictor (N,) as one more column, and
# coefficients of all these to begin with; returns better ones.
BlockSolver = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True)
class Relaxed:
    """K models on their way, or where the relaxation left them.

    Attributes
    ----------
    factors : CPFactors
    covariate_coefs : ndarray of shape (K, n_covariates)
    deviances : ndarray of shape (K,)
    n_sweeps : ndarray of shape (K,)
    converged : ndarray of shape (K,)
    """

    factors: CPFactors
    covariate_coefs: Array
    deviances: Array
    n_sweeps: Array
    converged: Array

    def take(self, which: Array) -> "Relaxed":
        """Return some of the models."""
        return Relaxed(
            self.factors.take(which),
            self.covariate_coefs[which],
            self.deviances[which],
            self.n_sweeps[which],
            self.converged[which],
        )


class BlockRelaxation:
    """Sweeps over the modes of K models side by side, which share every pass over X.

    Parameters
    ----------
    engine : LocalEngine
    covariates : ndarray of shape (n_samples, n_covariates)
        With a column of ones for an intercept.
    y : ndarray of shape (n_samples,)
    family : Loss
    """

    def __init__(self, engine: LocalEngine, covariates: Array, y: Array, family: Loss) -> None:
        self._engine, self._family = engine, family
        self._covariates, self._y = covariates, y

    def dense(self, factors: CPFactors, *, max_iter: int, tol: float) -> Relaxed:
        """Maximise the likelihood in every block, from covariates fitted alone."""
        coefs = fit_glm(self._covariates, self._y, self._family, self._zeros())
        deviance = self._family.deviance(self._y, self._covariates @ coefs)
        K = len(factors.sizes)
        start = Relaxed(
            factors,
            np.tile(coefs, (K, 1)),
            np.full(K, deviance),
            np.zeros(K, int),
            np.zeros(K, bool),
        )
        return self._relax(start, self._solve_dense, max_iter, tol)

    def penalised(
        self, factors: CPFactors, penalty: Penalty, *, max_iter: int, tol: float
    ) -> Relaxed:
        """Maximise the penalised likelihood in every block.

        The penalty depends on how large the factors are, so that each sweep begins with factors
        of one size.
        """

        def solve(features: Array, offset: Array, start: Array) -> Array:
            return fit_penalised(features, offset, self._y, self._family, penalty, start)

        K = len(factors.sizes)
        coefs = np.tile(self._zeros(), (K, 1))
        refitted = self._refit_all(factors, self._predictors(factors), coefs)
        start = Relaxed(*refitted, np.zeros(K, int), np.zeros(K, bool))
        return self._relax(start, solve, max_iter, tol)

    def _relax(self, state: Relaxed, solve: BlockSolver, max_iter: int, tol: float) -> Relaxed:
        """Sweep until each model's deviance changes by less than `tol` (|deviance| + 1)."""
        ended = []
        for sweep in range(1, max_iter + 1):
            factors, predictors = self._sweep(state.factors, state.covariate_coefs, solve)
            factors, coefs, deviances = self._refit_all(factors, predictors, state.covariate_coefs)
            converged = np.abs(deviances - state.deviances) < tol * (np.abs(deviances) + 1)
            state = Relaxed(factors, coefs, deviances, state.n_sweeps + 1, converged)
            done = converged | (sweep == max_iter)
            if done.any():
                ended.append(state.take(done))
                state = state.take(~done)
            if done.all():
                break
        return _join(ended)

    def _sweep(
        self, factors: CPFactors, coefs: Array, solve: BlockSolver
    ) -> tuple[CPFactors, Array]:
        """Update all modes once; return the factors and their linear predictors ``(K, N)``."""
        offsets = coefs @ self._covariates.T
        predictors = np.empty_like(offsets)
        for mode, p in enumerate(self._engine.shape):
            features = factors.features(self._engine, mode)
            old = factors.factor(mode).reshape(len(offsets), -1)
            solutions = np.empty_like(old)
            for k, own in enumerate(features):
                found = solve(own, offsets[k], np.append(old[k], 1.0))
                solutions[k] = found[:-1]
                offsets[k] *= found[-1]
                predictors[k] = own @ solutions[k]
            factors = factors.replace(mode, solutions.reshape(len(offsets), -1, p))
        return factors, predictors

    def _solve_dense(self, features: Array, offset: Array, start: Array) -> Array:
        """Maximum likelihood from the present coefficients, or from none if those are worse."""
        design = np.column_stack([features, offset])
        if self._family.is_quadratic:
            return fit_glm(design, self._y, self._family, start)
        without = np.append(np.zeros(len(start) - 1), 1.0)
        best = min(start, without, key=lambda s: self._family.deviance(self._y, design @ s))
        return fit_glm(design, self._y, self._family, best)

    def _refit_all(
        self, factors: CPFactors, predictors: Array, coefs: Array
    ) -> tuple[CPFactors, Array, Array]:
        """Fit covariates and the scale of every model; also return the deviances."""
        refits = [self._refit(p, c) for p, c in zip(predictors, coefs, strict=True)]
        found = np.array([both for both, _ in refits])
        scales = found[:, -1]
        # The scale is spread evenly over the modes; a negative one turns the sign.
        factors = factors.balanced(np.abs(scales)).negated(scales < 0)
        return factors, found[:, :-1], np.array([deviance for _, deviance in refits])

    def _refit(self, predictor: Array, coefs: Array) -> tuple[Array, float]:
        """Fit covariates and the scale of one model's linear predictor."""
        design = np.column_stack([self._covariates, predictor])
        found = fit_glm(design, self._y, self._family, np.append(coefs, 1.0))
        return found, self._family.deviance(self._y, design @ found)

    def _predictors(self, factors: CPFactors) -> Array:
        """``<W, X_i>`` of all models: ``(K, N)``."""
        features = factors.features(self._engine, 0)
        own = factors.factor(0).reshape(len(features), -1, 1)
        return (features @ own)[..., 0]

    def _zeros(self) -> Array:
        """Coefficients of the covariates to begin with."""
        return np.zeros(self._covariates.shape[1])


def _join(parts: list[Relaxed]) -> Relaxed:
    """Join models that ended one by one."""
    columns = zip(*(part.factors.components for part in parts), strict=True)
    return Relaxed(
        CPFactors(
            [np.concatenate(c) for c in columns], np.concatenate([p.factors.sizes for p in parts])
        ),
        np.concatenate([p.covariate_coefs for p in parts]),
        np.concatenate([p.deviances for p in parts]),
        np.concatenate([p.n_sweeps for p in parts]),
        np.concatenate([p.converged for p in parts]),
    )
