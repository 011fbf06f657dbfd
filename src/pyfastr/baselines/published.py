"""FasTR as published: Algorithm 1 of the paper to the letter."""

from collections.abc import Sequence
from functools import reduce
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from pyfastr.baselines.proximal import soft_threshold
from pyfastr.baselines.ridge import ridge_solution
from pyfastr.estimators.linear import LinearTensorMixin
from pyfastr.estimators.sklearn_private import Interval, checks_parameters
from pyfastr.estimators.validation import check_tensor_and_response
from pyfastr.estimators.warning import warn
from pyfastr.sources import Source, as_source, largest_entry

Array = NDArray[Any]


class PublishedFasTR(LinearTensorMixin, RegressorMixin, BaseEstimator):
    r"""Fast sparse tensor regression exactly as its paper states it.

    The coefficient is an outer product :math:`W = w^1 \circ \dots \circ w^M`. From one
    random start the components are updated in turn by

    .. math:: w^m = S_\lambda\bigl((P^T P + \varepsilon I)^{-1} P^T y\bigr),

    where :math:`S_\lambda` is the soft threshold and the rows of P are the samples
    contracted with all components but :math:`w^m`. The components are not normalised,
    there is no intercept, and only one start is made: what "FasTR as published" means
    in comparisons. To fit data, use :class:`pyfastr.FasTRRegressor`.

    Parameters
    ----------
    threshold : float, default=1e-4
        The paper's :math:`\lambda`, absolute: in the units of the components.
    ridge : float, default=0.01
        The paper's :math:`\varepsilon`, absolute: in the units of :math:`P^T P`;
        greater than 0.
    max_iter : int, default=1000
        Largest number of sweeps over the modes.
    tol : float, default=1e-3
        Stop when :math:`\lVert W_{t+1} - W_t\rVert_F \le` `tol`
        :math:`\lVert W_t\rVert_F`. The change is computed without forming W and is
        exact to about 1e-8, so a smaller `tol` asks for no more.
    random_state : int, RandomState or None, default=None
        Seed of the N(0, 1) start.

    Attributes
    ----------
    coef_ : ndarray of shape (p1, ..., pM)
        The coefficient W.
    factors_ : list of M ndarrays of shape (p_m, 1)
        The components as the algorithm leaves them; their outer product is `coef_`.
    intercept_ : float
        Always 0.0.
    n_iter_ : int
        Number of sweeps.
    converged_ : bool
        Whether the stopping rule was met with a coefficient that is not zero.
    tensor_shape_in_ : tuple of int
        Shape ``(p1, ..., pM)`` of a sample.
    n_features_in_ : int
        Size of the first mode.
    param_grid_ : dict
        A grid for :class:`~sklearn.model_selection.GridSearchCV`. The authors choose both
        parameters by five folds and do not print their grid.

    Notes
    -----
    W fixes only the product of the norms of the components. With an absolute threshold
    their norms drift apart sweep by sweep, until one component is small enough for the
    threshold to empty it and W is zero; the larger `threshold`, the sooner. The
    defaults suit the paper's simulations (N(0, 1) entries, noise 0.1), where larger
    values of either lose accuracy; data in other units need other values.

    Examples
    --------
    >>> from pyfastr.baselines import PublishedFasTR
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(200, (8, 6), random_state=0)
    >>> model = PublishedFasTR(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    param_grid_: ClassVar[dict[str, list[Any]]] = {
        "threshold": [0.0, 1e-4, 1e-3, 1e-2, 1e-1],
        "ridge": [1e-3, 1e-2, 0.1, 1.0, 10.0],
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [Interval(Real, 0, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        threshold: float = 1e-4,
        ridge: float = 0.01,
        *,
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.threshold = threshold
        self.ridge = ridge
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @checks_parameters
    def fit(self, X: Any, y: Any) -> "PublishedFasTR":
        """Fit the coefficient.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)

        Returns
        -------
        PublishedFasTR
            The fitted estimator itself.
        """
        X, y = check_tensor_and_response(self, X, y)
        source = as_source(X)
        largest_entry(source)
        components = self._alternate(source, y.astype(np.float64, copy=False))
        self.coef_ = reduce(np.multiply.outer, components).astype(source.dtype, copy=False)
        self.factors_ = [w[:, np.newaxis] for w in components]
        self.intercept_ = 0.0
        return self

    def _alternate(self, source: Source, y: Array) -> list[Array]:
        """Sweep over the modes until W stands still, is zero, or `max_iter` is reached."""
        rng = check_random_state(self.random_state)
        components: list[Array] = [rng.standard_normal(size) for size in source.shape[1:]]
        self.converged_ = False
        for sweep in range(1, self.max_iter + 1):
            self.n_iter_ = sweep
            previous = list(components)
            for mode in range(len(components)):
                solution = ridge_solution(_project(source, components, mode), y, self.ridge)
                components[mode] = soft_threshold(solution, self.threshold)
            if not all(w.any() for w in components):
                self._warn("the coefficient has become zero: lower `threshold`")
                return components
            change = _relative_change(components, previous)
            if not np.isfinite(change):
                raise ValueError(
                    f"The components overflowed in sweep {sweep}: bring X and y to a scale near 1."
                )
            if change <= self.tol:
                self.converged_ = True
                return components
        self._warn("the coefficient still changes by more than `tol`: raise `max_iter` or `tol`")
        return components

    def _warn(self, reason: str) -> None:
        """Warn how the sweeps ended."""
        message = (
            f"PublishedFasTR stopped after {self.n_iter_} sweeps with threshold="
            f"{self.threshold}, ridge={self.ridge}: {reason}."
        )
        warn(message, ConvergenceWarning)


def _project(source: Source, components: Sequence[Array], mode: int) -> Array:
    """Contract every mode but one: the matrix P of shape (n_samples, p_mode).

    One read of X and two flops an entry. The leading modes go first, each a product
    with wide rows, so a narrow last mode is never contracted against all of X.
    """
    typed = [w.astype(source.dtype, copy=False) for w in components]
    trailing = reduce(np.multiply.outer, typed[mode + 1 :], source.dtype.type(1)).ravel()
    P = np.empty((source.shape[0], source.shape[mode + 1]))
    for rows in source.slices:
        block = source.read(rows)
        n = len(block)
        for w in typed[:mode]:
            block = w @ block.reshape(n, len(w), -1)
        P[rows] = block.reshape(n, -1, len(trailing)) @ trailing
    return P


def _relative_change(new: Sequence[Array], old: Sequence[Array]) -> float:
    """‖W_new − W_old‖_F / ‖W_old‖_F from the components, without forming W."""
    # An inner product of outer products is the product of the inner products.
    norm = np.prod([(w @ w) / (v @ v) for w, v in zip(new, old, strict=True)])
    inner = np.prod([(w @ v) / (v @ v) for w, v in zip(new, old, strict=True)])
    return float(np.sqrt(max(norm + 1.0 - 2.0 * inner, 0.0)))
