"""Remurs: sparse regression with the nuclear norms of all unfoldings."""

from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyfastr.baselines.proximal import unfold, unfolding_threshold
from pyfastr.baselines.spectral import SpectralNorm, SpectralPath, SpectralRegressor
from pyfastr.estimators.sklearn_private import Interval

Array = NDArray[Any]


class Remurs(SpectralRegressor):
    r"""Regularised multilinear regression and selection.

    .. math:: \min_W \tfrac12 \sum_i \bigl(y_i - \langle W, X_i\rangle\bigr)^2
              + \frac{\alpha}{M} \sum_{m=1}^{M} \lVert W_{(m)}\rVert_*
              + \beta \lVert W\rVert_1,

    where :math:`W_{(m)}` is the unfolding of W along mode m and :math:`\lVert\cdot\rVert_*`
    the sum of the singular values. Solved by the authors' ADMM with a step of 1, all
    variables starting at zero.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the nuclear norms, in the units of :math:`X^T y`.
    beta : float, default=1.0
        Weight of the :math:`\ell_1` norm, in the same units.
    n_singular : int or None, default=None
        None: the proximal step of the nuclear norm is exact. A number: it keeps at most
        this many singular values, as the released code does with 6. The method then has
        no objective, and coefficients of a higher rank are out of its reach.
    fit_intercept : bool, default=False
        Whether to centre X and y and fit an intercept. The authors' method has none.
    max_iter : int, default=1000
        Largest number of iterations.
    tol : float, default=1e-4
        Stop when W changes by less than this, relative to its norm.

    Attributes
    ----------
    coef_ : ndarray of shape (p1, ..., pM)
        The coefficient W.
    intercept_ : float
        0.0 if there is no intercept.
    n_iter_ : int
        Number of iterations; 0 if the penalties are so large that W is zero without any.
    converged_ : bool
        Whether the stopping rule was met.
    tensor_shape_in_ : tuple of int
        Shape ``(p1, ..., pM)`` of a sample.
    n_features_in_ : int
        Size of the first mode.
    param_grid_ : dict
        The authors' grid, for :class:`~sklearn.model_selection.GridSearchCV`.

    See Also
    --------
    remurs_path : A whole grid from one factorisation of the samples.

    Notes
    -----
    Where the first iterates are zero the released code ends with W = 0, by a division of zero
    by zero; here the iterations go on. The stopping rule looks at the change of W only, so a
    slow advance can pass for an end: lower `tol` to be sure. It is not trusted while the
    variables that ADMM splits W into are far apart. The step of 1 suits entries of X near 1 in
    size.

    An iteration reads X twice and takes a singular value decomposition for each mode. A matrix
    of n_samples × n_samples or p × p is factored, so the smaller number may be 20,000 at most.

    References
    ----------
    X. Song, H. Lu. Multilinear regression for embedded feature selection with application to
    fMRI analysis. AAAI Conference on Artificial Intelligence, 2017.

    Examples
    --------
    >>> from pyfastr.baselines import Remurs
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(100, (8, 6), random_state=0)
    >>> model = Remurs(alpha=1.0, beta=0.1).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SpectralRegressor._parameter_constraints,
        "n_singular": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        beta: float = 1.0,
        *,
        n_singular: int | None = None,
        fit_intercept: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.n_singular = n_singular
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _spectral_norms(self, shape: tuple[int, ...]) -> list[SpectralNorm]:
        # The two unfoldings of a matrix are one another's transposes.
        modes, copies = ([0], 2) if len(shape) == 2 else (range(len(shape)), 1)
        return [
            SpectralNorm(
                partial(unfolding_threshold, mode=mode, n_singular=self.n_singular),
                partial(_largest_singular, mode=mode),
                copies,
            )
            for mode in modes
        ]


def remurs_path(
    X: Any,
    y: Any,
    *,
    alphas: ArrayLike,
    betas: ArrayLike,
    n_singular: int | None = None,
    max_iter: int = 1000,
    tol: float = 1e-4,
) -> SpectralPath:
    """Fit `Remurs` for every pair of a grid, with one factorisation of the samples.

    The points of the grid are iterated together and share the reads of X, which take most of
    the time of a single fit. Each starts at zero, so its result is that of a fit alone.

    Parameters
    ----------
    X : array-like of shape (n_samples, p1, ..., pM)
        As it is: there is no intercept. Centre X and y for one.
    y : array-like of shape (n_samples,)
    alphas : array-like of shape (n_alphas,)
    betas : array-like of shape (n_betas,)
    n_singular : int or None, default=None
    max_iter : int, default=1000
    tol : float, default=1e-4
        The last three as for `Remurs`.

    Returns
    -------
    SpectralPath
        `coefs` of shape (n_alphas, n_betas, p1, ..., pM); `n_iters` and `converged` of shape
        (n_alphas, n_betas).

    Examples
    --------
    >>> from pyfastr.baselines import remurs_path
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(100, (8, 6), random_state=0)
    >>> remurs_path(X, y, alphas=[1, 5], betas=[0.1, 0.5, 1]).coefs.shape
    (2, 3, 8, 6)
    """
    model = Remurs(n_singular=n_singular, max_iter=max_iter, tol=tol)
    return model._path(X, y, alphas, betas)


def _largest_singular(tensors: Array, mode: int) -> Array:
    """Return the largest singular value of one unfolding of each tensor."""
    return np.linalg.norm(unfold(tensors, mode), ord=2, axis=(-2, -1))
