"""What Remurs and Sturm share: ADMM for a sparse coefficient with small singular values."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from pyfastr.baselines.proximal import soft_threshold
from pyfastr.baselines.ridge import UnitRidge, check_gram_side
from pyfastr.baselines.samples import FlatSamples, flatten, store_coefficient
from pyfastr.baselines.values import check_values
from pyfastr.estimators.linear import LinearTensorMixin
from pyfastr.estimators.sklearn_private import Interval, checks_parameters
from pyfastr.estimators.warning import warn

Array = NDArray[Any]

# The arrays of the problems that are solved together stay within this, so that they share the
# passes over X and still fit in memory.
_BATCH_BYTES = 64 << 20

# Where the stopping rule holds, the blocks are within about 0.01 of the coefficient; where it
# stands still by coincidence, they are as far as its own norm.
_LARGEST_DISAGREEMENT = 0.1

_ONE_FIVE = [digit * 10.0**power for power in range(-3, 3) for digit in (1, 5)]


@dataclass(frozen=True)
class SpectralNorm:
    """A norm of singular values, as the algorithm needs it.

    Attributes
    ----------
    shrink : callable
        Its proximal operator: (K, p1, ..., pM) tensors and K thresholds to K tensors.
    largest : callable
        Its dual norm: (K, p1, ..., pM) tensors to K largest singular values.
    copies : int
        How often it stands in the objective. Copies have the same iterates, so one is computed.
    """

    shrink: Callable[[Array, Array], Array]
    largest: Callable[[Array], Array]
    copies: int = 1


class SpectralPath(NamedTuple):
    """Solutions on a grid of penalties.

    Attributes
    ----------
    coefs : ndarray of shape (n_alphas, n_betas, p1, ..., pM)
    n_iters : ndarray of shape (n_alphas, n_betas)
        Iterations; 0 where the coefficient is known to be zero without any.
    converged : ndarray of shape (n_alphas, n_betas)
    """

    coefs: Array
    n_iters: Array
    converged: Array


class SpectralProblem:
    """The samples, factored once, for any number of penalties.

    Parameters
    ----------
    samples : FlatSamples
    norms : sequence of SpectralNorm
        Each copy of each has the weight alpha divided by the number of all copies.
    """

    def __init__(self, samples: FlatSamples, norms: Sequence[SpectralNorm]) -> None:
        self.shape = samples.shape
        self.norms = norms
        self.n_copies = sum(norm.copies for norm in norms)
        self.ridge = UnitRidge(samples.X)
        self.gradient = (samples.y @ samples.X).reshape(self.shape)
        # How large a coefficient without penalties is, about: far below this it is zero.
        self.size = float(np.linalg.norm(self.ridge.solve(self.gradient.reshape(1, -1))))

    def path(self, alphas: Array, betas: Array, *, max_iter: int, tol: float) -> SpectralPath:
        """Solve for every pair, as many at a time as fit in memory."""
        grid = (len(alphas), len(betas))
        coefs = np.zeros((*grid, *self.shape))
        n_iters = np.zeros(grid, dtype=int)
        converged = np.ones(grid, dtype=bool)
        zero_from = np.array([self._zero_from(beta) for beta in betas])
        rows, columns = np.nonzero(alphas[:, np.newaxis] < zero_from)
        at_once = self._problems_at_once()
        for first in range(0, len(rows), at_once):
            batch = rows[first : first + at_once], columns[first : first + at_once]
            solved = _iterate(self, alphas[batch[0]], betas[batch[1]], max_iter, tol)
            coefs[batch], n_iters[batch], converged[batch] = solved
        return SpectralPath(coefs, n_iters, converged)

    def _zero_from(self, beta: float) -> float:
        """Return an alpha from which on zero is certain to be the solution.

        It is if the gradient at zero is a sum of parts, each within the dual ball of its
        penalty. Here the ℓ1 part takes from each entry what it can, and the spectral norms
        take shares of the rest.
        """
        rest = soft_threshold(self.gradient, beta)[np.newaxis]
        if not rest.any():
            return 0.0
        return self.n_copies / sum(
            norm.copies / float(norm.largest(rest)[0]) for norm in self.norms
        )

    def _problems_at_once(self) -> int:
        """Return how many problems fit in the memory set aside for them."""
        arrays_each = 2 * len(self.norms) + 6
        return max(1, _BATCH_BYTES // (arrays_each * self.gradient.nbytes))


class _Iterates:
    """The variables of K problems: the coefficient W and the multipliers A and B."""

    def __init__(self, problem: SpectralProblem, alphas: Array, betas: Array) -> None:
        zeros = np.zeros((len(alphas), *problem.shape))
        self.problem = problem
        self.alphas, self.betas = alphas, betas
        self.W, self.A = zeros, zeros
        self.B = [zeros for _ in problem.norms]

    def advance(self, tol: float) -> Array:
        """Make one iteration and return which problems have come to an end.

        The coefficient stands still, relative to its norm, and the blocks are not far from
        it: at the start, and by coincidence later, it may stand still without them.
        """
        problem, n_blocks = self.problem, self.problem.n_copies + 1
        U = self._fit_samples()
        V = [
            norm.shrink(self.W - B, self.alphas / problem.n_copies)
            for norm, B in zip(problem.norms, self.B, strict=True)
        ]
        total = U + self.A
        for norm, v, b in zip(problem.norms, V, self.B, strict=True):
            total += norm.copies * (v + b)
        W = soft_threshold(total / n_blocks, _per_problem(self.betas / n_blocks, total))
        self.A = self.A + U - W
        self.B = [b + v - W for b, v in zip(self.B, V, strict=True)]
        change = _norms(W - self.W)
        apart = np.max([_norms(block - W) for block in (U, *V)], axis=0)
        self.W = W
        # A coefficient that vanishes goes on changing by the same factor; its norm has a floor.
        size = np.maximum(_norms(W), tol * problem.size)
        return (change < tol * size) & (apart < _LARGEST_DISAGREEMENT * size)

    def _fit_samples(self) -> Array:
        """Return the block of the squared loss, (XᵀX + I)⁻¹(Xᵀy + W − A)."""
        right = self.problem.gradient + self.W - self.A
        return self.problem.ridge.solve(right.reshape(len(right), -1)).reshape(right.shape)

    def keep(self, which: Array) -> None:
        """Leave out the problems that have ended."""
        self.alphas, self.betas = self.alphas[which], self.betas[which]
        self.W, self.A = self.W[which], self.A[which]
        self.B = [b[which] for b in self.B]


def _iterate(
    problem: SpectralProblem, alphas: Array, betas: Array, max_iter: int, tol: float
) -> tuple[Array, Array, Array]:
    """Iterate K problems together, each until its coefficient stands still."""
    coefs = np.empty((len(alphas), *problem.shape))
    n_iters = np.full(len(alphas), max_iter)
    active = np.arange(len(alphas))
    iterates = _Iterates(problem, alphas, betas)
    for iteration in range(1, max_iter + 1):
        ended = iterates.advance(tol)
        if ended.any():
            coefs[active[ended]], n_iters[active[ended]] = iterates.W[ended], iteration
            active = active[~ended]
            iterates.keep(~ended)
        if not active.size:
            break
    coefs[active] = iterates.W
    converged = np.ones(len(alphas), dtype=bool)
    converged[active] = False
    return coefs, n_iters, converged


def _norms(tensors: Array) -> Array:
    """Return the Frobenius norm of each tensor."""
    return np.linalg.norm(tensors.reshape(len(tensors), -1), axis=1)


def _per_problem(values: Array, tensors: Array) -> Array:
    """Give K values the shape that multiplies K tensors."""
    return values.reshape(-1, *[1] * (tensors.ndim - 1))


class SpectralRegressor(LinearTensorMixin, RegressorMixin, BaseEstimator):
    """`fit` and the parameters of the methods with a spectral norm and an ℓ1 norm."""

    param_grid_: ClassVar[dict[str, list[Any]]] = {
        "alpha": _ONE_FIVE,
        "beta": [*_ONE_FIVE, 1000.0],
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    alpha: float
    beta: float
    fit_intercept: bool
    max_iter: int
    tol: float

    @abstractmethod
    def _spectral_norms(self, shape: tuple[int, ...]) -> list[SpectralNorm]:
        """Return the spectral norms of a coefficient of this shape."""

    @checks_parameters
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the coefficient.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
            The fitted estimator itself.
        """
        samples = self._flatten(X, y, self.fit_intercept)
        path = self._solve(samples, np.array([self.alpha]), np.array([self.beta]))
        store_coefficient(self, path.coefs[0, 0], samples)
        self.n_iter_, self.converged_ = int(path.n_iters[0, 0]), bool(path.converged[0, 0])
        if not self.converged_:
            self._warn(f"with alpha={self.alpha}, beta={self.beta}")
        return self

    def _path(self, X: Any, y: Any, alphas: Any, betas: Any) -> SpectralPath:
        """Fit every pair of a grid without intercept."""
        self._validate_params()
        alphas, betas = check_values("alphas", alphas), check_values("betas", betas)
        path = self._solve(self._flatten(X, y, False), alphas, betas)
        n_open = int(np.count_nonzero(~path.converged))
        if n_open:
            self._warn(f"at {n_open} of {path.converged.size} points of the grid")
        return path

    def _flatten(self, X: Any, y: Any, fit_intercept: bool) -> FlatSamples:
        """Flatten the samples if their Gram matrix fits in memory."""
        instead = "VectorizedElasticNet or FasTRRegressor"
        check = partial(check_gram_side, method=type(self).__name__, instead=instead)
        return flatten(self, X, y, fit_intercept=fit_intercept, check_size=check)

    def _solve(self, samples: FlatSamples, alphas: Array, betas: Array) -> SpectralPath:
        """Factor the samples and solve for every pair."""
        problem = SpectralProblem(samples, self._spectral_norms(samples.shape))
        return problem.path(alphas, betas, max_iter=self.max_iter, tol=self.tol)

    def _warn(self, where: str) -> None:
        """Warn that the iterations ended early."""
        message = (
            f"{type(self).__name__} stopped after {self.max_iter} iterations {where}: the "
            "coefficient still changes by more than `tol`. Raise `max_iter` or `tol`, or bring X "
            "to a scale near 1."
        )
        warn(message, ConvergenceWarning)
