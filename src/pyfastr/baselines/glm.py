"""Generalised linear models with the canonical link: least squares, Newton, coordinate descent."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.linear_model import enet_path

from pyfastr.solver.losses import LOGISTIC, POISSON, SQUARED, Loss

Array = NDArray[Any]

# Cholesky factors whose diagonal spans more than this leave too few correct digits.
MAX_SPREAD = 1e5
# Relative change of the objective at which an inner solution is exact enough.
INNER_TOL = 1e-12
MAX_INNER = 100
MAX_HALVINGS = 30
# scikit-learn's duality gap relative to the squares of y, and its largest number of sweeps.
GAP_TOL, MAX_CYCLES = 1e-14, 100_000


@dataclass(frozen=True)
class Penalty:
    """``strength * (l1_ratio * sum|b| + (1 - l1_ratio) / 2 * sum b^2)``, added to deviance / 2."""

    strength: float
    l1_ratio: float

    def __call__(self, coefficients: Array) -> float:
        """Return its value."""
        absolute, squared = np.abs(coefficients).sum(), coefficients @ coefficients
        mixed = self.l1_ratio * absolute + (1 - self.l1_ratio) / 2 * squared
        return float(self.strength * mixed)


# Distributions of the response, each with its canonical link.
FAMILIES = {"normal": SQUARED, "binomial": LOGISTIC, "poisson": POISSON}


def least_squares(design: Array, target: Array) -> Array:
    """Least squares, of minimum norm where the columns are dependent."""
    size = np.sqrt(np.einsum("ij,ij->j", design, design))
    size = np.where(size > 0, size, 1.0)
    scaled = design / size
    if design.shape[1] <= design.shape[0]:
        solution = _solve_normal_equations(scaled, target)
        if solution is not None:
            return solution / size
    found: Array = np.linalg.lstsq(scaled, target, rcond=None)[0]
    return found / size


def _solve_normal_equations(design: Array, target: Array) -> Array | None:
    """Solve by Cholesky, some ten times faster than by SVD; None where digits would be lost."""
    try:
        factor = cho_factor(design.T @ design, check_finite=False)
    except LinAlgError:
        return None
    diagonal = np.diag(factor[0])
    if not diagonal.size or diagonal.min() * MAX_SPREAD < diagonal.max():
        return None
    solution: Array = cho_solve(factor, design.T @ target, check_finite=False)
    # One step of refinement gives back what the squared condition number took.
    correction = cho_solve(factor, design.T @ (target - design @ solution), check_finite=False)
    return solution + correction


def fit_glm(design: Array, y: Array, family: Loss, start: Array) -> Array:
    """Maximum likelihood by Newton steps that never raise the deviance from that of `start`."""
    if family.is_quadratic:
        return least_squares(design, y)

    def newton(predictor: Array, coefficients: Array) -> Array:
        root = _root_weights(family, predictor)
        gain = least_squares(root[:, np.newaxis] * design, (y - family.mean(predictor)) / root)
        return coefficients + gain

    return _descend(newton, lambda predictor, _: family.deviance(y, predictor) / 2, design, start)


def fit_penalised(
    design: Array, free: Array, y: Array, family: Loss, penalty: Penalty, start: Array
) -> Array:
    """Minimise deviance / 2 + penalty; `free` is one more column, without penalty.

    Coordinate descent on the quadratic approximation, again and again where that is not exact.
    Returns the coefficients of the design, then that of `free`.
    """
    both = np.column_stack([design, free])

    def approximate(predictor: Array, coefficients: Array) -> Array:
        root = _root_weights(family, predictor)
        working = root * predictor + (y - family.mean(predictor)) / root
        return _elastic_net(
            root[:, np.newaxis] * design, root * free, working, penalty, coefficients[:-1]
        )

    def objective(predictor: Array, coefficients: Array) -> float:
        return family.deviance(y, predictor) / 2 + penalty(coefficients[:-1])

    if family.is_quadratic:
        return approximate(both @ start, start)
    # Where classes are separated, what a fit without penalty left is worse than nothing.
    nothing = np.zeros_like(start)
    best = min(start, nothing, key=lambda begin: objective(both @ begin, begin))
    return _descend(approximate, objective, both, best)


def _root_weights(family: Loss, predictor: Array) -> Array:
    """Roots of the variances, kept away from zero where a response is all but sure."""
    return np.sqrt(np.maximum(family.variance(family.mean(predictor)), 1e-10))


def _descend(
    propose: Callable[[Array, Array], Array],
    objective: Callable[[Array, Array], float],
    design: Array,
    start: Array,
) -> Array:
    """Go to the proposed coefficients, or part of the way where that is better, until at rest."""
    current, predictor = start, design @ start
    value = objective(predictor, current)
    for _ in range(MAX_INNER):
        direction = propose(predictor, current) - current
        share, shift = 1.0, design @ direction
        for _ in range(MAX_HALVINGS):
            new = objective(predictor + share * shift, current + share * direction)
            if new <= value:
                break
            share /= 2
        else:
            return current
        current, predictor = current + share * direction, predictor + share * shift
        if value - new <= INNER_TOL * (abs(new) + 1):
            return current
        value = new
    return current


def _elastic_net(
    design: Array, free: Array, target: Array, penalty: Penalty, start: Array
) -> Array:
    """Elastic net with one free column, which is taken out of all others beforehand."""
    n, length = len(target), float(np.linalg.norm(free))
    direction = free / length if length > 0 else free
    rest = design - np.outer(direction, direction @ design)
    left = target - direction * (direction @ target)
    # scikit-learn divides the squares by n, so the penalty is divided as well.
    _, found, _ = enet_path(
        np.asfortranarray(rest),
        left,
        l1_ratio=penalty.l1_ratio,
        alphas=[penalty.strength / n],
        # An array of its own, because it is written to. Columns of zeros would stay at their start.
        coef_init=start * rest.any(axis=0),
        tol=GAP_TOL,
        max_iter=MAX_CYCLES,
        precompute=len(start) < n,
    )
    coefficients = found[:, 0]
    own = direction @ (target - design @ coefficients)
    return np.append(coefficients, own / length if length > 0 else 0.0)
