"""SURF: sparse unit-rank terms grown one after another by small steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv

from pyfastr.baselines.limits import check_path_memory, check_scales
from pyfastr.baselines.surf_path import (
    Choice,
    Split,
    Stagewise,
    StagewisePath,
    Start,
    TensorSlices,
    UnitRankTerm,
    choose,
    grow_to_radius,
    trace_path,
)
from pyfastr.engines import LocalEngine
from pyfastr.estimators.linear import LinearTensorMixin
from pyfastr.estimators.sklearn_private import Interval, checks_parameters
from pyfastr.estimators.validation import as_array, check_tensor_and_response
from pyfastr.estimators.warning import warn
from pyfastr.sources import Source, as_source

Array = NDArray[Any]


class SURF(LinearTensorMixin, RegressorMixin, BaseEstimator):
    r"""Sparse tensor regression by boosted unit-rank terms.

    The coefficient is a sum of unit-rank terms, fitted one after another to what the others leave.
    One term moves along a path of points near the minima of

    .. math:: \frac1N \sum_i (r_i - \langle W, X_i\rangle)^2 + \alpha \lVert W\rVert_F^2
              + \lambda \lVert W\rVert_1, \qquad W = \sigma\, w^1 \circ \dots \circ w^M,
              \quad \lVert w^m\rVert_1 = 1,

    from the single best entry :math:`\pm\varepsilon` with ever smaller :math:`\lambda`: a step
    shrinks the active entry of a factor whose loss rises least, if that rise is at most
    :math:`\lambda\varepsilon - \xi`; otherwise it moves the entry that lowers the loss most by
    :math:`\pm\varepsilon`, and lowers :math:`\lambda` to what that gained. Cross-validation
    chooses :math:`\lambda`, and the term is the point on the path of all samples before its norm
    :math:`\lVert W\rVert_1` reaches the mean norm of the folds there.

    Parameters
    ----------
    ridge : float, default=1.0
        The paper's :math:`\alpha`. With standardised data, 1 shrinks W to about a half.
    step : float, default=0.1
        The paper's :math:`\varepsilon`, in the units of W.
    slack : float, default=0.005
        The paper's :math:`\xi` relative to the step: :math:`\xi =` `slack` :math:`\varepsilon`.
    radius : float or None, default=None
        Bound on :math:`\lVert W\rVert_1` of every term, without cross-validation. None chooses it
        anew for every term by cross-validation.
    max_terms : int, default=50
        Largest number of terms.
    cv : int, splitter or iterable of (train, test), default=5
        Folds of the cross-validation; an int means consecutive folds without shuffling.
    max_iter : int, default=1000
        Largest number of points on a path, so that :math:`\lVert W\rVert_1` of a term is at most
        `max_iter` times `step`.
    tol : float, default=1e-4
        Terms are added as long as each lowers the root mean square of the residuals by more than
        this, in the units of y; the one that does not is dropped.
    fit_intercept : bool, default=True
        Whether to fit an intercept. The authors' code has none.

    Attributes
    ----------
    coef_ : ndarray of shape (p1, ..., pM)
        The coefficient, the sum of all terms.
    factors_ : list of M ndarrays of shape (p_m, n_terms)
        Factors of unit :math:`\ell_1` norm.
    scales_ : ndarray of shape (n_terms,)
        :math:`\sigma` of every term, its :math:`\ell_1` norm.
    intercept_ : float
    n_terms_ : int
        Number of terms.
    radii_ : ndarray of shape (n_terms,)
        Bound on :math:`\lVert W\rVert_1` of every term.
    penalties_ : ndarray of shape (n_terms,)
        :math:`\lambda` chosen for every term; NaN where `radius` was given.
    cv_rmse_ : ndarray of shape (n_terms,)
        Root of the mean squared error of the folds at that :math:`\lambda`; NaN where `radius`
        was given.
    residual_rms_ : ndarray of shape (n_terms,)
        Root mean square of the residuals after every term.
    n_iter_ : int
        Points on the final paths of all terms that were tried.
    converged_ : bool
        Whether all final paths reached their radius within `max_iter`, and W is not zero.
    tensor_shape_in_ : tuple of int
        Shape ``(p1, ..., pM)`` of a sample.
    n_features_in_ : int
        Size of the first mode.

    Notes
    -----
    All steps are absolute, so X should be standardised and `step` be small beside the entries of
    W sought. The errors of the folds are compared at all :math:`\lambda` of all folds, between
    and beyond those of their own paths by linear interpolation of their roots, as the authors do;
    beyond its own path, that of a fold is a guess.

    In two details this is not the authors' code. Theirs adds terms until the residual changes by
    less than `tol`, up or down, and so may add and take away the same entry until `max_terms`.
    And where a backward step meets an entry smaller than the step and stops it at zero, theirs
    updates the projected samples as for a full step, and is off from there on.

    Memory: the slices of X that the steps use are kept in float64, up to 1 GiB.

    References
    ----------
    L. He, K. Chen, W. Xu, J. Zhou and F. Wang, "Boosted Sparse and Low-Rank Tensor Regression",
    NeurIPS 2018.

    Examples
    --------
    >>> from pyfastr.baselines import SURF
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(100, (5, 4), random_state=0)
    >>> model = SURF(ridge=0.01, max_terms=2).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    # The authors fix all of these; the ridge matters most.
    param_grid_: ClassVar[dict[str, list[Any]]] = {"ridge": [1.0, 0.1, 0.01, 0.001]}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ridge": [Interval(Real, 0, None, closed="left")],
        "step": [Interval(Real, 0, None, closed="neither")],
        "slack": [Interval(Real, 0, None, closed="left")],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "max_terms": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        ridge: float = 1.0,
        *,
        step: float = 0.1,
        slack: float = 0.005,
        radius: float | None = None,
        max_terms: int = 50,
        cv: Any = 5,
        max_iter: int = 1000,
        tol: float = 1e-4,
        fit_intercept: bool = True,
    ) -> None:
        self.ridge = ridge
        self.step = step
        self.slack = slack
        self.radius = radius
        self.max_terms = max_terms
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept

    @checks_parameters
    def fit(self, X: Any, y: Any) -> "SURF":
        """Fit the terms one after another.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)

        Returns
        -------
        SURF
            The fitted estimator itself.
        """
        tensor, y = check_tensor_and_response(self, X, y)
        X = as_array(X, tensor)
        source = as_source(X)
        check_scales(source, y)
        paths = _Paths(X, source, self._splits(X, y), self._settings())
        mean = float(y.mean()) if self.fit_intercept else 0.0
        terms = self._fit_terms(paths, y.astype(np.float64) - mean)
        self._set_terms(terms, source)
        self.intercept_ = 0.0
        if self.fit_intercept:
            self.intercept_ = mean - float(np.vdot(self.coef_, paths.mean_sample))
        self._warn()
        return self

    def _settings(self) -> Stagewise:
        """Translate the parameters for the path."""
        step = float(self.step)
        return Stagewise(step, float(self.slack) * step, float(self.ridge))

    def _splits(self, X: Array, y: Array) -> list[Split]:
        """All samples, and the folds where the radius is to be chosen."""
        nobody = np.zeros(len(y), bool)
        splits = [Split(np.ones(len(y)), nobody, self.fit_intercept)]
        if self.radius is None:
            for train, test in check_cv(self.cv).split(X, y):
                splits.append(Split.of(len(y), train, test, self.fit_intercept))
        return splits

    def _fit_terms(self, paths: "_Paths", residual: Array) -> list["_Term"]:
        """Fit terms to the residuals until one no longer lowers them by more than `tol`."""
        terms: list[_Term] = []
        level = _rms(residual)
        self.n_iter_, self.converged_ = 0, True
        while len(terms) < self.max_terms:
            term, reached = self._fit_term(paths, residual)
            if level - _rms(term.residual) <= self.tol:
                break
            self.converged_ &= reached
            terms.append(term)
            residual, level = term.residual, _rms(term.residual)
        return terms

    def _fit_term(self, paths: "_Paths", residual: Array) -> tuple["_Term", bool]:
        """Fit one term within its radius; also return whether all its paths were long enough."""
        starts = paths.starts(residual)
        choice = Choice(np.nan if self.radius is None else float(self.radius))
        if self.radius is None:
            folds = range(1, len(starts))
            choice = choose(
                [trace_path(paths.term(k, residual, starts[k]), self.max_iter) for k in folds]
            )
        grown = paths.term(0, residual, starts[0])
        n_points, reached = grow_to_radius(grown, choice.radius, self.max_iter)
        self.n_iter_ += n_points
        term = _Term(grown.factors, grown.norm, grown.residual, choice)
        return term, reached and not choice.exhausted

    def _set_terms(self, terms: Sequence["_Term"], source: Source) -> None:
        """Read coefficient, factors and what was chosen off the terms."""
        outer = (t.norm * reduce(np.multiply.outer, t.factors) for t in terms)
        self.coef_ = sum(outer, start=np.zeros(source.shape[1:])).astype(source.dtype)
        self.factors_ = [
            np.array([t.factors[mode] for t in terms]).reshape(-1, p).T.astype(source.dtype)
            for mode, p in enumerate(source.shape[1:])
        ]
        self.scales_ = np.array([t.norm for t in terms], dtype=source.dtype)
        self.n_terms_ = len(terms)
        self.residual_rms_ = np.array([_rms(t.residual) for t in terms])
        self.radii_ = np.array([t.choice.radius for t in terms])
        self.penalties_ = np.array([t.choice.penalty for t in terms])
        self.cv_rmse_ = np.array([t.choice.rmse for t in terms])

    def _warn(self) -> None:
        """Say what a person should not miss."""
        reason = ""
        if self.n_terms_ == 0:
            self.converged_ = False
            reason = (
                "the coefficient is zero, because no first entry of size "
                f"step={self.step} lowers the residuals by more than tol={self.tol}: lower `step` "
                "and `tol`, or bring X and y to a scale near 1"
            )
        elif not self.converged_:
            reason = (
                f"a path had max_iter={self.max_iter} points before it reached its end: raise "
                "`max_iter` or `step`"
            )
        if reason:
            warn(f"SURF: {reason}.", ConvergenceWarning)


def stagewise_path(
    X: Array,
    y: Array,
    test: Sequence[int] = (),
    *,
    ridge: float = 1.0,
    step: float = 0.1,
    slack: float = 0.005,
    max_iter: int = 1000,
    fit_intercept: bool = True,
) -> StagewisePath:
    """Compute the whole path of one unit-rank term, as `SURF` does in every fold.

    Parameters
    ----------
    X : array-like of shape (n_samples, p1, ..., pM)
    y : array-like of shape (n_samples,)
    test : sequence of int
        Samples the path is not fitted to. It ends when their error rests; without any, their
        error is NaN and the path goes on until λ is used up or `max_iter` points.
    ridge, step, slack, max_iter, fit_intercept
        As in :class:`SURF`.

    Returns
    -------
    StagewisePath

    Examples
    --------
    >>> from pyfastr.baselines.surf import stagewise_path
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(100, (5, 4), random_state=0)
    >>> path = stagewise_path(X, y, test=range(80, 100), ridge=0.01)
    >>> bool(path.test_errors[-1] < path.test_errors[0])
    True
    """
    model = SURF(ridge, step=step, slack=slack, max_iter=max_iter, fit_intercept=fit_intercept)
    model._validate_params()
    tensor, y = check_tensor_and_response(model, X, y)
    X = as_array(X, tensor)
    source = as_source(X)
    check_scales(source, y)
    held_out = np.asarray(test, dtype=int)
    train = np.setdiff1d(np.arange(len(y)), held_out)
    split = Split.of(len(y), train, held_out, fit_intercept)
    paths = _Paths(X, source, [split], model._settings())
    response = y.astype(np.float64)
    return trace_path(paths.term(0, response, paths.starts(response)[0]), max_iter)


@dataclass(frozen=True)
class _Term:
    """A fitted term and what it leaves."""

    factors: list[Array]
    norm: float
    residual: Array
    choice: Choice


class _Paths:
    """What the paths of all splits and terms share: slices and moments of X."""

    def __init__(
        self, X: Array, source: Source, splits: Sequence[Split], settings: Stagewise
    ) -> None:
        check_path_memory(source, len(splits))
        self._slices = TensorSlices(X)
        self._engine = LocalEngine(source)
        self._splits, self._settings = splits, settings
        self._train = np.array([s.train for s in splits])
        self._sizes = self._train.sum(axis=1).reshape(-1, *[1] * len(source.shape[1:]))
        sums = self._engine.weighted_sums(self._train)
        self.mean_sample = sums[0] / len(X)
        self._squares = _sums_of_squares(source, self._train)
        if splits[0].centre:
            self._squares -= np.square(sums) / self._sizes

    def starts(self, response: Array) -> list[Start]:
        """Find the single entry ±ε that lowers the loss most, for every split in one pass."""
        targets = np.array([s.train * self._centred(response, s) for s in self._splits])
        products = self._engine.weighted_sums(targets)
        step, ridge = self._settings.step, self._settings.ridge
        gains = (2 * np.abs(products) - step * self._squares) / self._sizes - ridge * step
        if not np.isfinite(gains).all():
            raise ValueError("The products of X and y overflowed: bring X and y to a scale near 1.")
        flat = gains.reshape(len(gains), -1).argmax(axis=1)
        entries = [tuple(int(i) for i in np.unravel_index(f, gains.shape[1:])) for f in flat]
        return [
            Start(e, float(np.sign(xy[e])) or 1.0, float(gain[e]))
            for e, xy, gain in zip(entries, products, gains, strict=True)
        ]

    def term(self, which: int, response: Array, start: Start) -> UnitRankTerm:
        """Begin the path of one split."""
        split = self._splits[which]
        centred = self._centred(response, split)
        return UnitRankTerm(self._slices, centred, split, start, self._settings)

    @staticmethod
    def _centred(response: Array, split: Split) -> Array:
        """Take out the mean over the training samples, if there is an intercept."""
        if not split.centre:
            return response
        return response - (split.train @ response) / split.train.sum()


def _sums_of_squares(source: Source, weights: Array) -> Array:
    """``sum_i weights[l, i] X_i ** 2``: ``(L, p1, ..., pM)``."""
    total = np.zeros((len(weights), prod(source.shape[1:])))
    for rows in source.slices:
        block = source.read(rows)
        total += weights[:, rows] @ np.square(block.reshape(len(block), -1), dtype=np.float64)
    return total.reshape(-1, *source.shape[1:])


def _rms(values: Array) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))
