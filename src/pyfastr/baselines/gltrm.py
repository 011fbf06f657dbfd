"""GLTRM: generalised linear models whose coefficient is a tensor of low CP rank."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from pyfastr.baselines.block_relaxation import BlockRelaxation, Relaxed
from pyfastr.baselines.cp_factors import CPFactors
from pyfastr.baselines.glm import FAMILIES, Penalty
from pyfastr.baselines.limits import check_block_memory, check_finite_result, check_scales
from pyfastr.baselines.response import ResponseMixin
from pyfastr.engines import LocalEngine
from pyfastr.estimators.sklearn_private import Interval, StrOptions, checks_parameters
from pyfastr.estimators.validation import as_generator, check_covariates, check_init
from pyfastr.estimators.warning import warn
from pyfastr.sources import Source, as_source

Array = NDArray[Any]

# Deviance a sample below which a predictor separates the two classes of a binomial response.
SEPARATED = 1e-2


class GLTRM(ResponseMixin, BaseEstimator):
    r"""Generalised linear tensor regression model of CP rank R.

    The mean response depends on :math:`\eta_i = \langle W, X_i\rangle + z_i^T\gamma + b` through
    the canonical link of its distribution, and

    .. math:: W = \sum_{r=1}^R u^1_r \circ \dots \circ u^M_r, \qquad
              \min_{U, \gamma, b}\; \tfrac12 D(y, \eta)
              + \nu \sum_m \Bigl(\rho \lVert U^m\rVert_1 + \tfrac{1-\rho}2 \lVert U^m\rVert_F^2
              \Bigr),

    with D the deviance (the sum of squares if the response is normal). It is minimised over one
    mode after another, each an ordinary generalised linear model of the samples contracted with
    all other factors; then :math:`\gamma`, b and a scale of W are refitted, and that scale is
    spread evenly over the modes. From several random starts the one with the lowest deviance is
    kept. A penalty :math:`\nu > 0` makes the factors sparse in a second round from there.

    Parameters
    ----------
    n_terms : int, default=1
        The rank R. Samples that are vectors have one term.
    penalty : float, default=0.0
        :math:`\nu`, in the units of the deviance, which is a sum over the samples. 0 is the dense
        method.
    family : {"normal", "binomial", "poisson"}, default="normal"
        Distribution of the response, with the link identity, logit or log. A binomial y holds two
        classes, labelled in any way: the model is then a classifier, `predict` returns classes
        and `predict_proba` probabilities. A Poisson y holds no negative numbers, and `predict`
        returns rates.
    l1_ratio : float, default=1.0
        :math:`\rho`, the share of the :math:`\ell_1` norm in the penalty, in (0, 1].
    init : "random" or sequence of M arrays, default="random"
        Starts with entries from U(-1, 1), or the one start given as arrays of shape ``(p_m,)`` or
        ``(p_m, n_terms)``, with which a penalised fit begins at once.
    n_init : int, default=5
        Number of random starts.
    max_iter : int, default=100
        Largest number of sweeps over the modes from each start.
    tol : float, default=1e-4
        Sweeps end when the deviance D changes by less than `tol` :math:`(|D| + 1)`.
    max_iter_penalty : int, default=50
        The same for the penalised sweeps.
    tol_penalty : float, default=1e-3
        The same for the penalised sweeps.
    fit_intercept : bool, default=True
        Whether to fit b.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    coef_ : ndarray of shape (p1, ..., pM)
        The coefficient W.
    factors_ : list of M ndarrays of shape (p_m, n_terms)
        Factors :math:`u^m_r`, those of one term of equal length.
    classes_ : ndarray of shape (2,)
        The classes of y; only of a binomial family. Positive coefficients speak for the second.
    intercept_ : float
    covariate_coef_ : ndarray of shape (n_covariates,)
        :math:`\gamma`; only after a fit with covariates.
    deviance_ : float
        Deviance on the training samples.
    n_iter_ : int
        Sweeps from the best start, penalised ones included.
    converged_ : bool
        Whether they ended by `tol` (and `tol_penalty`), with a coefficient that is not zero.
    tensor_shape_in_ : tuple of int
        Shape ``(p1, ..., pM)`` of a sample.
    n_features_in_ : int
        Size of the first mode.

    Notes
    -----
    Every block has R :math:`p_m` unknowns, so at least R max :math:`p_m` samples are needed, and
    clearly more for a good estimate: at 20 x 20 with 40 samples the dense fit explains noise.
    Where terms are many or correlated, sweeps converge slowly.

    After the last sweep the refitted scale is applied to W, so that `coef_`, `intercept_` and
    `deviance_` belong together. The authors' code compares deviances with it but returns W
    without it: theirs differs by that factor, which is near 1 in a dense fit and undoes some of
    the shrinkage in a sparse one.

    Two classes that the predictor separates have no finite solution, a penalty notwithstanding,
    because the scale is refitted without it; the fit ends with probabilities near 0 and 1, and
    says so.

    References
    ----------
    H. Zhou, L. Li and H. Zhu, "Tensor Regression with Applications in Neuroimaging Data Analysis",
    Journal of the American Statistical Association 108, 2013.

    Examples
    --------
    >>> from pyfastr.baselines import GLTRM
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.metrics import coefficient_error
    >>> X, y, W = make_tensor_regression(100, (6, 5, 4), coef=True, random_state=0)
    >>> model = GLTRM(random_state=0).fit(X, y)
    >>> bool(coefficient_error(model.coef_, W) < 0.05)
    True
    """

    # The penalties are those of the authors' examples.
    param_grid_: ClassVar[dict[str, list[Any]]] = {
        "n_terms": [1, 2, 3],
        "penalty": [0.0, 1.0, 100.0, 1000.0],
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_terms": [Interval(Integral, 1, None, closed="left")],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "family": [StrOptions(set(FAMILIES))],
        "l1_ratio": [Interval(Real, 0, 1, closed="right")],
        "init": [StrOptions({"random"}), list, tuple],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter_penalty": [Interval(Integral, 1, None, closed="left")],
        "tol_penalty": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_terms: int = 1,
        penalty: float = 0.0,
        *,
        family: Literal["normal", "binomial", "poisson"] = "normal",
        l1_ratio: float = 1.0,
        init: Literal["random"] | Sequence[Array] = "random",
        n_init: int = 5,
        max_iter: int = 100,
        tol: float = 1e-4,
        max_iter_penalty: int = 50,
        tol_penalty: float = 1e-3,
        fit_intercept: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_terms = n_terms
        self.penalty = penalty
        self.family = family
        self.l1_ratio = l1_ratio
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_iter_penalty = max_iter_penalty
        self.tol_penalty = tol_penalty
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    @checks_parameters
    def fit(self, X: Any, y: Any, covariates: Any = None) -> "GLTRM":
        """Fit coefficient, covariates and intercept.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)
            Two classes if the family is binomial, no negative numbers if it is Poisson.
        covariates : array-like of shape (n_samples, n_covariates), optional
            Columns with an ordinary, unpenalised coefficient each.

        Returns
        -------
        GLTRM
            The fitted estimator itself.
        """
        X, y = self._checked(X, y)
        Z = check_covariates(covariates, len(y))
        columns = self._columns(len(y), Z)
        self._check_size(X.shape, columns.shape[1])
        source = as_source(X)
        check_scales(source, y)
        self.n_iter_, self.converged_ = 0, True
        solution = self._solve(source, columns, y)
        self._set_solution(solution, source, Z)
        self._warn(len(y))
        return self

    def _columns(self, n_samples: int, Z: Array | None) -> Array:
        """Intercept and covariates as one matrix, maybe without columns."""
        columns = [np.ones((n_samples, int(self.fit_intercept)))]
        if Z is not None:
            columns.append(Z)
        return np.hstack(columns)

    def _check_size(self, shape: tuple[int, ...], n_columns: int) -> None:
        """Refuse ranks and sizes for which the blocks have no single solution."""
        n_samples, *sizes = shape
        if len(sizes) == 1 and self.n_terms > 1:
            raise ValueError(
                f"n_terms is {self.n_terms}, but the samples are vectors of shape {tuple(sizes)}, "
                "whose coefficient is one vector; expected n_terms=1 for 2-D X."
            )
        needed = max(self.n_terms * max(sizes), n_columns)
        if n_samples < needed:
            raise ValueError(
                f"X has n_samples={n_samples}, but GLTRM needs at least {needed} for "
                f"n_terms={self.n_terms} and samples of shape {tuple(sizes)}: one for each unknown "
                "of the largest mode. Lower n_terms, or use OrTRR or FasTRRegressor, which have a "
                "ridge."
            )

    def _solve(self, source: Source, columns: Array, y: Array) -> Relaxed:
        """Run the dense method from all starts and the sparse one from the best of them."""
        relaxation = BlockRelaxation(LocalEngine(source), columns, y, FAMILIES[self.family])
        factors = self._starts(source.shape[1:])
        check_block_memory(source, len(factors.sizes), self.n_terms)
        if self.penalty == 0 or isinstance(self.init, str):
            dense = relaxation.dense(factors, max_iter=self.max_iter, tol=self.tol)
            best = dense.take(np.argmin(dense.deviances, keepdims=True))
            self._count(best)
            factors = best.factors
        if self.penalty > 0:
            best = relaxation.penalised(
                factors,
                Penalty(float(self.penalty), float(self.l1_ratio)),
                max_iter=self.max_iter_penalty,
                tol=self.tol_penalty,
            )
            self._count(best)
        return best

    def _count(self, stage: Relaxed) -> None:
        """Add up sweeps, and note whether all of them ended by their tolerance."""
        self.n_iter_ += int(stage.n_sweeps[0])
        self.converged_ &= bool(stage.converged[0])

    def _starts(self, shape: tuple[int, ...]) -> CPFactors:
        """Draw the starts, or take the user's."""
        if not isinstance(self.init, str):
            given = check_init(self.init, shape, self.n_terms)
            return CPFactors.from_arrays([f.T[np.newaxis] for f in given])
        # The one block of samples that are vectors has the same solution from every start.
        n_init = self.n_init if len(shape) > 1 else 1
        rng = as_generator(self.random_state)
        # Start by start, so that more of them are those of fewer and some others.
        draws = [[rng.uniform(-1, 1, (self.n_terms, p)) for p in shape] for _ in range(n_init)]
        return CPFactors.from_arrays([np.array(mode) for mode in zip(*draws, strict=True)])

    def _set_solution(self, solution: Relaxed, source: Source, Z: Array | None) -> None:
        """Read the attributes off the best model, in the type of X."""
        check_finite_result(solution.factors.norms, solution.covariate_coefs)
        factors, coefs = solution.factors, solution.covariate_coefs[0]
        modes = range(len(source.shape) - 1)
        self.factors_ = [factors.factor(m)[0].T.astype(source.dtype) for m in modes]
        self.coef_ = factors.coefficient().astype(source.dtype)
        self.intercept_ = float(coefs[0]) if self.fit_intercept else 0.0
        self.deviance_ = float(solution.deviances[0])
        self.converged_ &= bool(factors.norms.any())
        if Z is not None:
            self.covariate_coef_ = coefs[int(self.fit_intercept) :]
        elif hasattr(self, "covariate_coef_"):
            del self.covariate_coef_

    def _warn(self, n_samples: int) -> None:
        """Say what a person should not miss."""
        reason = ""
        if not self.coef_.any():
            reason = (
                "the coefficient is zero: X or y does not vary, or the penalty emptied a mode; "
                "check X and y, or lower `penalty`"
            )
        elif self.family == "binomial" and self.deviance_ < SEPARATED * n_samples:
            reason = (
                "X separates the two classes of y, so that no finite coefficient is best; add "
                "samples, or use FasTRClassifier, whose ridge keeps it finite"
            )
        elif not self.converged_:
            reason = (
                f"the deviance still changed by more than the tolerance after {self.n_iter_} "
                "sweeps; raise `max_iter` or `tol` (or those of the penalty)"
            )
        if reason:
            warn(f"GLTRM: {reason}.", ConvergenceWarning)
