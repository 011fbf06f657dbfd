"""FasTR for a real-valued response."""

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from pyfastr.estimators.coefficient import LazyCoefficient
from pyfastr.estimators.validation import (
    LinearTensorMixin,
    as_generator,
    check_covariates,
    check_init,
    check_tensor_and_response,
)
from pyfastr.solver.problem import Problem, make_problem
from pyfastr.solver.rounds import Starts
from pyfastr.solver.solve import Settings, Solution, solve
from pyfastr.sources import as_source, largest_entry

Array = NDArray[Any]


class FasTRRegressor(LinearTensorMixin, RegressorMixin, BaseEstimator):
    r"""Sparse unit-rank tensor regression.

    The samples are arrays, the coefficient is a sum of `n_terms` outer products of vectors:

    .. math:: y_i = \langle W, X_i\rangle + b + \text{noise}, \qquad
              W = \sum_r \sigma_r\, w^1_r \circ \dots \circ w^M_r

    With P the samples contracted with all components but :math:`w^m`, those being of unit length,
    each component is a fixed point of the paper's update

    .. math:: w^m \propto S_\lambda\bigl((P^T P + \varepsilon I)^{-1} P^T y\bigr).

    Where such fixed points are many, the best one is sought: batches of random and spectral
    starts are shaken by bootstrap weights while a ridge cools, raced, and polished by joint
    Levenberg-Marquardt steps, all models sharing each pass over X.

    Parameters
    ----------
    threshold : float, default=0.0
        The paper's :math:`\lambda` as a fraction of the largest entry of the ridge solution, in
        [0, 1): free of the units of X and y. 0 leaves every entry in.
    ridge : float, default=1e-5
        The paper's :math:`\varepsilon` relative to the scale of the projection:
        :math:`\varepsilon =` `ridge` :math:`\cdot\,\mathrm{trace}(P^T P) / p_m`. Noisy data want
        more; try 0.01 to 10.
    n_terms : int, default=1
        Number of unit-rank terms. Samples that are vectors have one.
    init : {"mixed", "spectral", "random"} or sequence of M arrays, default="mixed"
        Starts: half random and half spectral, or only one kind. Arrays of shape ``(p_m,)`` or
        ``(p_m, n_terms)`` are the one start, from which the sweeps begin at once; `n_init` is
        then not used.
    n_init : int or "auto", default="auto"
        Number of starts. "auto" runs rounds of more and more starts until the best solution is
        sure (see `starts_`), has been found many times, or 960 starts have run.
    sweep : {"cyclic", "simultaneous"}, default="cyclic"
        "cyclic" updates one mode after another, each from the newest components. "simultaneous"
        updates all from the same old ones, in one pass over X, and converges less surely.
    max_iter : int, default=1000
        Largest number of sweeps from the best start.
    tol : float, default=1e-3
        Sweeps end when :math:`\lVert W_{t+1}-W_t\rVert_F \le` `tol` :math:`\lVert W_t\rVert_F`.
        Changes below 1e-7 are not seen.
    fit_intercept : bool, default=True
        Whether to fit b. Neither X nor y needs to be centred, and X is not copied for it.
    refit_support : bool or "evidence", default=False
        True refits the non-zero entries by least squares, which takes the shrinkage of the
        threshold away. "evidence" also chooses which entries those are, without a threshold, by
        the lowest :math:`(N - \mathrm{dof})\log\mathrm{RSS}`: for sparse coefficients and few
        samples.
    random_state : int, RandomState or None, default=None
        Seed of the starts; an int gives the same result each time.
    verbose : int, default=0
        Above 0, a line is printed after every round of starts.

    Attributes
    ----------
    coef_ : ndarray of shape (p1, ..., pM)
        The coefficient W, built from the factors on first use.
    factors_ : list of M ndarrays of shape (p_m, n_terms)
        Components of unit length; a term that vanished is zero.
    scales_ : ndarray of shape (n_terms,)
        :math:`\sigma_r`, in descending order.
    intercept_ : float
    covariate_coef_ : ndarray of shape (n_covariates,)
        Only after a fit with covariates.
    n_iter_ : int
        Sweeps from the best start.
    converged_ : bool
        Whether they ended by `tol`.
    history_ : dict of ndarrays of shape (n_iter\_,)
        For each sweep "loss", the (weighted) mean squared residual on the training data, and
        "change", the relative change of W. Simultaneous sweeps give the loss before all but the
        last mode are replaced.
    starts_ : Starts
        `n_starts` that ran, `n_polished` that survived the race, `n_hits` of those that reached
        this solution, `gap` (squared residuals of the next best solution over those of this one),
        `sure`, `n_rounds`. `sure` speaks of the optimum of the fit; where N hardly exceeds the
        degrees of freedom, even the best fit may be far from the truth.
    tensor_shape_in_ : tuple of int
        Shape ``(p1, ..., pM)`` of a sample.
    n_features_in_ : int
        Size of the first mode, as scikit-learn counts.

    Notes
    -----
    Multiplying X by a and y by c multiplies `coef_` by c / a and `intercept_` by c; adding a
    constant to y, or an array to all samples, moves only the intercept; permuting the modes
    permutes the factors. (The mode updated last sets the scale, so with a large ridge or threshold
    the order of the modes changes `scales_` by a percent or so.)

    The evidence counts samples: a weight of 2 is then not quite the same as a repeated sample.

    References
    ----------
    J. Zhang and B. Wang, "Fast and Scalable Estimator for Sparse and Unit-Rank Higher-Order
    Regression Models", ECAI 2020.

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.metrics import coefficient_error
    >>> X, y, W = make_tensor_regression(100, (15, 15, 15), coef=True, random_state=0)
    >>> model = FasTRRegressor(random_state=0).fit(X, y)
    >>> bool(coefficient_error(model.coef_, W) < 0.01)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [Interval(Real, 0, 1, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "n_terms": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"mixed", "spectral", "random"}), list, tuple],
        "n_init": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "sweep": [StrOptions({"cyclic", "simultaneous"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "refit_support": ["boolean", StrOptions({"evidence"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        threshold: float = 0.0,
        ridge: float = 1e-5,
        *,
        n_terms: int = 1,
        init: Literal["mixed", "spectral", "random"] | Sequence[Array] = "mixed",
        n_init: int | Literal["auto"] = "auto",
        sweep: Literal["cyclic", "simultaneous"] = "cyclic",
        max_iter: int = 1000,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        refit_support: bool | Literal["evidence"] = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.threshold = threshold
        self.ridge = ridge
        self.n_terms = n_terms
        self.init = init
        self.n_init = n_init
        self.sweep = sweep
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.refit_support = refit_support
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None
    ) -> "FasTRRegressor":
        """Fit the coefficient.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
            M >= 1. Never copied or written to.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Whole-number weights equal repeated samples.
        covariates : array-like of shape (n_samples, n_covariates), optional
            Columns with an ordinary, unpenalised coefficient each (age, site, motion, ...).

        Returns
        -------
        FasTRRegressor
            The fitted estimator itself.
        """
        X, y = check_tensor_and_response(self, X, y)
        source = as_source(X)
        settings = self._settings(source.shape[1:])
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=float, ensure_non_negative=True)
            _check_enough_weight(weights)
        Z = check_covariates(covariates, len(y))
        problem = make_problem(
            source,
            y.astype(float),
            x_scale=largest_entry(source),
            fit_intercept=self.fit_intercept,
            sample_weight=weights,
            covariates=Z,
        )
        solution = solve(problem, settings, as_generator(self.random_state), self._report)
        self._set_factors(problem, solution)
        self._set_nuisance(problem, solution, y.astype(float), weights, Z)
        self._set_history(problem, solution)
        self._warn(problem, solution)
        return self

    def predict(self, X: Any, covariates: Any = None) -> Array:
        """Predict the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional
            Needed if and only if the fit had them.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        prediction = super().predict(X)
        own: Array | None = getattr(self, "covariate_coef_", None)
        expected = 0 if own is None else len(own)
        Z = check_covariates(covariates, len(prediction), expected=expected)
        return prediction if Z is None else prediction + (Z @ own).astype(prediction.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None) -> float:
        """Return R² of the prediction.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        covariates : array-like of shape (n_samples, n_covariates), optional

        Returns
        -------
        float
        """
        prediction = self.predict(X) if covariates is None else self.predict(X, covariates)
        return float(r2_score(y, prediction, sample_weight=sample_weight))

    @property
    def coef_(self) -> Array:  # type: ignore[override]
        return self._coefficient()

    def _settings(self, shape: tuple[int, ...]) -> Settings:
        """Translate the parameters for the solver."""
        if len(shape) == 1 and self.n_terms > 1:
            raise ValueError(
                f"n_terms is {self.n_terms}, but the samples are vectors of shape {shape}, whose "
                "coefficient is one vector; expected n_terms=1 for 2-D X."
            )
        init = self.init
        if not isinstance(init, str):
            init = check_init(init, shape, self.n_terms)
        return Settings(
            threshold=float(self.threshold),
            ridge=float(self.ridge),
            n_terms=int(self.n_terms),
            init=init,
            n_init=self.n_init,
            order=self.sweep,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            refit_support=self.refit_support,
        )

    def _report(self, starts: Starts) -> None:
        """Tell a person who watches how the search goes."""
        if self.verbose:
            print(  # noqa: T201
                f"[FasTR] round {starts.n_rounds}: {starts.n_starts} starts so far, "
                f"{starts.n_hits} of {starts.n_polished} polished reached the best solution, "
                f"the next best leaves "
                f"{starts.gap:.3g} x its squared residuals"
                f"{': sure' if starts.sure else ''}",
                flush=True,
            )

    def _set_factors(self, problem: Problem, solution: Solution) -> None:
        """Read factors and scales off the solution, in the user's units and type."""
        dtype = problem.projector.source.dtype
        models = solution.models
        scales = models.scales[0] * (problem.y_scale[0] / problem.x_scale)
        order = np.argsort(-scales, kind="stable")
        with np.errstate(over="ignore"):
            typed = scales[order].astype(dtype)
        if not np.isfinite(typed).all():
            raise ValueError(
                f"The coefficient is of size {scales.max():.3g}, which {dtype} cannot hold: X "
                f"is of size {problem.x_scale:.3g} and y of size {problem.y_scale[0]:.3g}. "
                "Rescale one."
            )
        self.factors_ = [
            np.ascontiguousarray(c[0][order].T.astype(dtype, copy=False)) for c in models.components
        ]
        self.scales_ = typed
        self._coefficient = LazyCoefficient(self.factors_, self.scales_)

    def _set_nuisance(
        self, problem: Problem, solution: Solution, y: Array, weights: Array | None, Z: Array | None
    ) -> None:
        """Fit intercept and covariates to what the coefficient leaves."""
        columns = [np.ones((len(y), 1))] if self.fit_intercept else []
        if Z is not None:
            columns.append(Z)
        found = np.zeros(0)
        if columns:
            root = np.ones(len(y)) if weights is None else np.sqrt(weights)
            left = y - solution.fitted * problem.y_scale[0]
            found = _least_squares(np.hstack(columns) * root[:, None], left * root)
        self.intercept_ = float(found[0]) if self.fit_intercept else 0.0
        if Z is not None:
            self.covariate_coef_ = found[int(self.fit_intercept) :]
        elif hasattr(self, "covariate_coef_"):
            del self.covariate_coef_

    def _set_history(self, problem: Problem, solution: Solution) -> None:
        """Keep what a person needs to judge convergence."""
        history = solution.history
        loss = np.array([row[0] for row in history.loss])
        # The square of a huge y is infinite, and nothing else suffers from it.
        with np.errstate(over="ignore"):
            loss = np.square(np.sqrt(loss) * problem.y_scale[0])
        self.history_ = {
            "loss": loss,
            "change": np.array([row[0] for row in history.change]),
        }
        self.n_iter_ = len(history.loss)
        self.converged_ = solution.converged
        self.starts_ = solution.starts

    def _warn(self, problem: Problem, solution: Solution) -> None:
        """Say what a person should not miss."""
        if not problem.response.any():
            warnings.warn(
                "y is constant, or intercept and covariates explain all of it: the coefficient "
                "is zero. Check y.",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif not solution.models.scales.any():
            warnings.warn(
                "The coefficient is zero: X does not vary, or the threshold emptied a mode. "
                "Check X, or lower `threshold`.",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif not solution.converged:
            warnings.warn(
                f"The sweeps did not converge: W still changed by {self.history_['change'][-1]:.2g}"
                f" of its size in sweep {self.n_iter_}. Raise `max_iter` or `tol`, or raise "
                "`ridge`.",
                ConvergenceWarning,
                stacklevel=4,
            )


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
    return found / size
