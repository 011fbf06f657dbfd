"""CP ridge regression with a group norm over the terms, by majorised alternating ridge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from pyfastr.engines import LocalEngine
from pyfastr.engines.contraction import project_own
from pyfastr.solver.models import Models

Array = NDArray[Any]

# A term whose factors are this small beside the largest is on its way to zero, and is put there:
# its share of the fit goes with the product of its factors, that of the norm with their length.
VANISHED = 1e-6
# A sum of squares that is smaller by no more than this share is the same, added up otherwise.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Descent:
    """Where one model ended.

    Attributes
    ----------
    models : Models
        The model alone.
    objectives : ndarray of shape (n_sweeps,)
        After every sweep.
    converged : bool
    """

    models: Models
    objectives: Array
    converged: bool


class GroupRidge:
    """``½ Σ (y - <W, X>)² + ½ ridge Σ_r s_r + group Σ_r √s_r`` with ``s_r = Σ_m |u_mr|²``.

    The factors of a term always have one length t, so that ``s_r = M t²`` and the term is ``t^M``
    times the outer product of unit vectors. Of all factors with that product, these have the
    smallest s; bringing them there after an update changes no fit and lowers both penalties.

    Parameters
    ----------
    engine : LocalEngine
    y : ndarray of shape (n_samples,)
        Centred if `centre`.
    group, ridge : float
    centre : bool
        Whether an intercept is fitted along: features are then centred too.
    """

    def __init__(
        self, engine: LocalEngine, y: Array, *, group: float, ridge: float, centre: bool
    ) -> None:
        self.engine, self.response = engine, y
        self._group, self._ridge, self._centre = group, ridge, centre
        self._n_modes = len(engine.shape)
        slices = engine.source.slices
        self._only_block = engine.source.read(slices[0]) if len(slices) == 1 else None

    def minimise(self, starts: Models, *, max_iter: int, tol: float) -> Descent:
        """Sweep all starts side by side until they rest; return the one with the lowest end."""
        # The starts have no scale. A sweep without the group norm gives them that of the data.
        models = self._sweep(starts, group=0.0)[0] if self._group > 0 else starts
        alive, ended = np.arange(len(starts)), []
        before, history = np.full(len(starts), np.inf), []
        for sweep in range(1, max_iter + 1):
            models, objectives = self._advance(models)
            history.append(dict(zip(alive.tolist(), objectives.tolist(), strict=True)))
            converged = before - objectives <= tol * objectives
            done = converged | (sweep == max_iter)
            before = objectives
            if done.any():
                ended += [
                    Descent(models.take(np.array([k])), _column(history, alive[k]), converged[k])
                    for k in np.flatnonzero(done)
                ]
                models, alive, before = models.take(~done), alive[~done], before[~done]
                if not alive.size:
                    break
        return self._or_nothing(min(ended, key=lambda end: float(end.objectives[-1])))

    def _or_nothing(self, best: Descent) -> Descent:
        """Return W = 0 where the end is no better: the last way to zero may be a long one."""
        nothing = float(self.response @ self.response) / 2
        if best.objectives[-1] < (1 - ROUNDING) * nothing or not best.converged:
            return best
        zero = Models(best.models.components, np.zeros_like(best.models.scales))
        return Descent(zero, np.append(best.objectives[:-1], nothing), best.converged)

    def prediction(self, models: Models) -> Array:
        """``<W, X_i>`` of one model."""
        projected = self._project(models.components, 0)[0]
        own = models.scales[0][:, np.newaxis] * models.components[0][0]
        found: Array = np.matmul(projected, own[..., np.newaxis])[..., 0].sum(axis=0)
        return found

    def residual(self, models: Models) -> Array:
        """Return what one model leaves of the response, at the best intercept."""
        predicted = self.prediction(models)
        return self.response - predicted + (predicted.mean() if self._centre else 0.0)

    def _advance(self, models: Models) -> tuple[Models, Array]:
        """Sweep once, put terms that are vanishing to zero, and return the objectives."""
        models, losses = self._sweep(models, self._group)
        lengths = self._lengths(models)
        if self._group > 0:
            gone = lengths <= VANISHED * lengths.max(axis=1, keepdims=True)
            if gone.any():
                models = _without(models, gone)
                lengths = self._lengths(models)
        penalties = (self._ridge / 2 * lengths + self._group) * lengths
        return models, losses + penalties.sum(axis=1)

    def _sweep(self, models: Models, group: float) -> tuple[Models, Array]:
        """Update all modes once; return the models and half the sums of squared residuals."""
        for mode in range(self._n_modes):
            models, fitted = self._update(models, mode, group)
        residuals = self.response - fitted
        return models, np.square(residuals).sum(axis=1) / 2

    def _update(self, models: Models, mode: int, group: float) -> tuple[Models, Array]:
        """Minimise over one mode with ``group √s_r`` majorised by ``½ group s_r / √(s_r now)``.

        That is a ridge of its own for each term, turned into 1 by a change of units; in a term
        of length 0 it is infinite. Also returns what the models fit.
        """
        lengths = self._lengths(models)
        shares = np.sqrt(lengths / np.where(lengths > 0, self._ridge * lengths + group, 1.0))
        others = models.scales ** (1 - 1 / self._n_modes)
        features = self._features(models.components, mode, shares * others)
        solutions = np.array([_unit_ridge(Q, self.response) for Q in features])
        fitted = np.matmul(features, solutions[..., np.newaxis])[..., 0]
        vectors = solutions.reshape(models.components[mode].shape)
        norms = np.sqrt(np.square(vectors).sum(axis=-1))
        components = list(models.components)
        components[mode] = vectors / np.where(norms > 0, norms, 1.0)[..., np.newaxis]
        return Models(components, others * shares * norms), fitted

    def _features(self, components: Sequence[Array], mode: int, scales: Array) -> Array:
        """Scaled projections of all terms side by side: ``(K, n_samples, R * p_mode)``."""
        projected = self._project(components, mode) * scales[..., np.newaxis, np.newaxis]
        K, R, n, p = projected.shape
        features = projected.transpose(0, 2, 1, 3).reshape(K, n, R * p)
        if self._centre:
            features -= features.mean(axis=1, keepdims=True)
        return features

    def _project(self, components: Sequence[Array], mode: int) -> Array:
        """Project every sample onto one mode: ``(K, R, n_samples, p_mode)``."""
        if self._only_block is None or components[0].shape[:2] != (1, 1):
            return self.engine.projections(components, mode)
        # One term on one block is too little work to plan and to share out.
        factors = [c[0].astype(self._only_block.dtype, copy=False) for c in components]
        return project_own(self._only_block[np.newaxis], factors, mode)[np.newaxis]

    def _lengths(self, models: Models) -> Array:
        """``√s_r`` of every term: ``(K, R)``."""
        return np.sqrt(self._n_modes) * models.scales ** (1 / self._n_modes)


def _unit_ridge(Q: Array, y: Array) -> Array:
    """``(Q'Q + I)^-1 Q'y`` in the smaller of the spaces of features and samples."""
    n, q = Q.shape
    gram = Q.T @ Q if q <= n else Q @ Q.T
    gram.flat[:: len(gram) + 1] += 1.0
    _, solution, _ = dposv(gram, Q.T @ y if q <= n else y)
    found: Array = solution if q <= n else Q.T @ solution
    return found


def _without(models: Models, gone: Array) -> Models:
    """Take terms ``(K, R)`` to zero, and away where no model needs their place any more."""
    last = np.argsort(gone, axis=1, kind="stable")
    kept = last[:, : max(1, int((~gone).sum(axis=1).max()))]
    scales = np.take_along_axis(np.where(gone, 0.0, models.scales), kept, axis=1)
    return Models(
        [np.take_along_axis(c, kept[..., np.newaxis], axis=1) for c in models.components], scales
    )


def _column(history: Sequence[dict[int, float]], which: int) -> Array:
    """Objectives of one model, sweep by sweep."""
    return np.array([row[which] for row in history])
