"""What could be had at best: least squares that is told the support and starts at the truth."""

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines import LocalEngine
from pyfastr.sources import ArraySource

Array = NDArray[Any]

_MAX_STEPS = 100


class Oracle:
    """Least squares with an intercept on the true support, from the true components.

    Parameters
    ----------
    coef_true : ndarray of shape (p1, ..., pM)
        The coefficient behind the data, of unit rank.

    Attributes
    ----------
    coef_ : ndarray of shape (p1, ..., pM)
    intercept_ : float

    Examples
    --------
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.experiments.oracle import Oracle
    >>> X, y, W = make_tensor_regression(50, (5, 4), noise=0.0, coef=True, random_state=0)
    >>> bool(abs(Oracle(W).fit(X, y).coef_ - W).max() < 1e-9)
    True
    """

    def __init__(self, coef_true: Array) -> None:
        self.coef_true = coef_true

    def fit(self, X: Array, y: Array) -> "Oracle":
        """Fit by Gauss-Newton with halved steps.

        Parameters
        ----------
        X : ndarray of shape (n_samples, p1, ..., pM)
        y : ndarray of shape (n_samples,)

        Returns
        -------
        Oracle
            The fitted estimator itself.
        """
        W = np.asarray(self.coef_true, dtype=float)
        support = [np.flatnonzero(W.any(axis=_all_but(mode, W.ndim))) for mode in range(W.ndim)]
        components = _gauss_newton(_OnSupport(X, support), y, _components(W[np.ix_(*support)]))
        self.coef_ = np.zeros_like(W)
        self.coef_[np.ix_(*support)] = reduce(np.multiply.outer, components)
        self.intercept_ = float(np.mean(y - _predict(X, self.coef_)))
        return self

    def predict(self, X: Array) -> Array:
        """Predict the response.

        Parameters
        ----------
        X : ndarray of shape (n_samples, p1, ..., pM)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return _predict(X, self.coef_) + self.intercept_


def _predict(X: Array, coef: Array) -> Array:
    """Contract every sample with the coefficient."""
    source = ArraySource(X)
    return np.concatenate(
        [
            source.read(rows).reshape(rows.stop - rows.start, -1) @ coef.ravel()
            for rows in source.slices
        ]
    )


class _OnSupport:
    """Projections of samples whose entries outside of a support do not count."""

    def __init__(self, X: Array, support: list[Array]) -> None:
        self._engine, self._support = LocalEngine(ArraySource(X)), support
        # Rounding makes promises of this size.
        self.tol = 10 * float(np.finfo(self._engine.dtype).eps)

    def project(self, components: list[Array]) -> list[Array]:
        """Contract every mode but one, for each mode."""
        whole = [np.zeros((1, 1, p)) for p in self._engine.shape]
        for entries, used, values in zip(whole, self._support, components, strict=True):
            entries[..., used] = values
        projections = [self._engine.projections(whole, mode) for mode in range(len(whole))]
        pairs = zip(projections, self._support, strict=True)
        return [p[0, 0][:, used].astype(float) for p, used in pairs]


def _gauss_newton(X: _OnSupport, y: Array, components: list[Array]) -> list[Array]:
    """Improve the components until no step promises to lower the residuals."""
    residual, jacobian = _linearise(X, y, components)
    for _ in range(_MAX_STEPS):
        step = _step(jacobian, residual, components)
        left = residual - jacobian[:, :-1] @ step
        if 1 - (left @ left) / (residual @ residual) < X.tol:
            break
        moved = _halve_until_better(X, y, components, step, residual)
        if moved is None:
            break
        components, residual, jacobian = moved
    return components


def _all_but(mode: int, n_modes: int) -> tuple[int, ...]:
    return tuple(m for m in range(n_modes) if m != mode)


def _components(W: Array) -> list[Array]:
    """Vectors of equal length whose outer product is W, read off its largest entry."""
    at: tuple[Any, ...] = np.unravel_index(np.abs(W).argmax(), W.shape)
    fibres = [W[(*at[:m], slice(None), *at[m + 1 :])] for m in range(W.ndim)]
    units = [fibre / np.linalg.norm(fibre) for fibre in fibres]
    scale = np.einsum(W, range(W.ndim), *_interleaved(units), [])
    length = np.abs(scale) ** (1 / W.ndim)
    return [np.sign(scale) * length * units[0], *(length * u for u in units[1:])]


def _interleaved(units: list[Array]) -> list[Any]:
    return [item for mode, u in enumerate(units) for item in (u, [mode])]


def _linearise(X: _OnSupport, y: Array, components: list[Array]) -> tuple[Array, Array]:
    """Residuals at the best intercept, and the Jacobian in components and intercept."""
    projections = X.project(components)
    residual = y - projections[0] @ components[0]
    jacobian = np.hstack([*projections, np.ones((len(y), 1))])
    return residual - residual.mean(), jacobian


def _step(jacobian: Array, residual: Array, components: list[Array]) -> Array:
    """Least squares without the steps that change factors of product one, which W never shows.

    They are held at zero by equations of their own: products in float32 would not tell their
    singular values, which are zero, from others.
    """
    held = []
    for w in components[1:]:
        parts = [-u if u is w else u if u is components[0] else 0 * u for u in components]
        held.append(np.concatenate([*parts, [0.0]]))
    size = np.linalg.norm(jacobian) / np.sqrt(len(jacobian))
    design = np.vstack([jacobian, *(size * h[None] for h in held)])
    step: Array = np.linalg.lstsq(design, np.append(residual, np.zeros(len(held))), rcond=None)[0]
    return step[:-1]


def _halve_until_better(
    X: _OnSupport, y: Array, components: list[Array], step: Array, residual: Array
) -> tuple[list[Array], Array, Array] | None:
    """Take the longest of the steps 1, 1/2, 1/4, ... that lowers the residuals."""
    cuts = np.cumsum([len(w) for w in components])[:-1]
    for share in 0.5 ** np.arange(12):
        moves = np.split(share * step, cuts)
        trial = [w + move for w, move in zip(components, moves, strict=True)]
        new_residual, jacobian = _linearise(X, y, trial)
        if new_residual @ new_residual < residual @ residual:
            return trial, new_residual, jacobian
    return None
