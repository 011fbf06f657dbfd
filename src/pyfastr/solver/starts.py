"""Starts: proposed in batches, shaken and raced while the ridge cools, then polished."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyfastr.solver.contraction import project_own
from pyfastr.solver.models import Models, unit
from pyfastr.solver.polish import Polished, Step, polish
from pyfastr.solver.problem import Problem
from pyfastr.solver.sweep import batches, cyclic_sweep

Array = NDArray[Any]
Kind = Literal["mixed", "spectral", "random"]

POWER_SWEEPS = 15
# Ridge of the annealing, from hot to cold; it never ends below the one that is asked for.
HOT_RIDGE, COLD_RIDGE, ANNEAL_SWEEPS = 1.2, 0.1, 60
# After these sweeps the half with the larger smoothed loss leaves the race.
HALVINGS, SMOOTHING = (10, 20, 32), 0.7
# From this many models on, products in float32 gain more than rounding X costs.
ROUNDING_PAYS = 32
# The polish begins with this ridge, and as much sparsity, and cools to the ridge asked for: a
# jump there, or cooling without sparsity, loses models that stand in the right valley.
POLISH_HEAT, COOLING_STEPS, FINAL_STEPS = 0.3, 24, 6
SMALLEST_RIDGE = 1e-9
# Below this many elements a sample polishing costs as little as annealing: more reach it.
SMALL_SAMPLE = 1000


def propose(
    problem: Problem, n_models: int, n_terms: int, kind: Kind, rng: np.random.Generator
) -> Models:
    """Draw starts: random, spectral, or half of each."""
    models = Models.random(n_models, n_terms, problem.shape, rng)
    n_random = {"random": n_models, "spectral": 0, "mixed": n_models // 2}[kind]
    if n_random == n_models:
        return models
    spectral = _power_sweeps(problem, models.take(slice(n_random, None)), rng)
    return Models.concatenate([models.take(slice(0, n_random)), spectral])


def _power_sweeps(problem: Problem, models: Models, rng: np.random.Generator) -> Models:
    """Rank-one approximations of ``sum_i g_i y_i X_i``, g drawn from Exp(1) for each start.

    The sums take one pass over X; the power sweeps then work on one array a start.
    """
    K, R = models.scales.shape
    draws = rng.standard_exponential((K, R, problem.n_samples)).reshape(K * R, -1)
    weighted = draws * problem.response * (1.0 if problem.weights is None else problem.weights)
    # Orthogonal to the nuisance: as if X had been centred.
    C = problem.nuisance
    inverse = np.linalg.pinv(C)
    weighted -= (weighted @ C) @ inverse
    rows = [c.reshape(K * R, -1) for c in models.components]
    done = []
    for part in batches(problem, K * R, 24.0 * np.prod(problem.shape)):
        sums = problem.projector.weighted_sums(weighted[part])[:, None].astype(float, copy=False)
        some = [r[part] for r in rows]
        for _ in range(POWER_SWEEPS):
            for m in range(len(some)):
                some[m] = unit(project_own(sums, some, m)[:, 0])[0]
        done.append(some)
    components = [np.concatenate(c).reshape(K, R, -1) for c in zip(*done, strict=True)]
    return Models(components, models.scales)


def anneal(
    problem: Problem, models: Models, *, keep: int, ridge: float, rng: np.random.Generator
) -> Models:
    """Sweep with fresh Bayesian-bootstrap weights in every update while the ridge cools.

    The noise shakes models out of bad minima. Models race on the smoothed, unweighted training
    loss, and `keep` of them remain.
    """
    if len(models) >= ROUNDING_PAYS:
        problem = problem.rounded()
    models = models.astype(problem.projector.source.dtype)
    smooth = np.zeros(len(models))

    for sweep, heat in enumerate(_cooling(HOT_RIDGE, COLD_RIDGE, ANNEAL_SWEEPS, ridge)):
        models, loss = _shaken_sweep(problem, models, heat, rng)
        smooth = loss if sweep == 0 else SMOOTHING * smooth + (1 - SMOOTHING) * loss
        n_left = len(models)
        if sweep in HALVINGS:
            n_left = max(keep, len(models) // 2)
        if sweep == ANNEAL_SWEEPS - 1:
            n_left = keep
        if n_left < len(models):
            best = np.argsort(smooth, kind="stable")[:n_left]
            models, smooth = models.take(best), smooth[best]
    return models


def shake(
    problem: Problem,
    models: Models,
    *,
    ridges: tuple[float, float],
    n_sweeps: int,
    ridge: float,
    rng: np.random.Generator,
    threshold: float = 0.0,
) -> Models:
    """Sweep as `anneal` does, from one ridge to another, and keep all models."""
    rounded = problem.rounded() if len(models) >= ROUNDING_PAYS else problem
    models = models.astype(rounded.projector.source.dtype)
    for heat in _cooling(*ridges, n_sweeps, ridge):
        models, _ = _shaken_sweep(rounded, models, heat, rng, threshold)
    return models.astype(float)


def _cooling(hot: float, cold: float, n_sweeps: int, ridge: float) -> list[float]:
    """Ridges from hot to cold that never fall below the one that is asked for."""
    return np.geomspace(max(hot, ridge), max(cold, ridge), n_sweeps).tolist()


def _shaken_sweep(
    problem: Problem,
    models: Models,
    ridge: float,
    rng: np.random.Generator,
    threshold: float = 0.0,
) -> tuple[Models, Array]:
    """Sweep with sample weights drawn anew from Exp(1) for every update of every model."""

    def bootstrap() -> Array:
        return rng.standard_exponential(
            (len(models), problem.n_samples), dtype=models.scales.dtype.type
        )

    return cyclic_sweep(problem, models, ridge, threshold, draw_weights=bootstrap)


def race(
    problem: Problem,
    n_starts: int,
    n_terms: int,
    *,
    kind: Kind,
    ridge: float,
    rng: np.random.Generator,
) -> tuple[Models, Polished]:
    """Run one round of starts; return the survivors as the annealing left them, and polished."""
    keep = _n_survivors(problem, n_starts)
    models = propose(problem, n_starts, n_terms, kind, rng)
    models = anneal(problem, models, keep=keep, ridge=ridge, rng=rng).astype(float)
    return models, polish(problem, models, polish_schedule(ridge))


def _n_survivors(problem: Problem, n_starts: int) -> int:
    """How many starts are polished: half where that is cheap, else a few."""
    if np.prod(problem.shape) <= SMALL_SAMPLE:
        return max(1, n_starts // 2)
    return max(1, min(8, n_starts // 4), n_starts // 24)


def polish_schedule(ridge: float) -> list[Step]:
    """Cool from a warm, sparsity-seeking penalty to the ridge alone."""
    cooling = np.geomspace(max(POLISH_HEAT, ridge), max(ridge, SMALLEST_RIDGE), COOLING_STEPS)
    return [Step(heat, heat - ridge) for heat in cooling] + [Step(ridge)] * FINAL_STEPS
