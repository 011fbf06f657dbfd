"""Sturm: sparse regression with the tubal nuclear norm."""

from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyfastr.baselines.proximal import (
    transformed_slices,
    tubal_threshold,
    unfold,
    unfolding_threshold,
)
from pyfastr.baselines.spectral import SpectralNorm, SpectralPath, SpectralRegressor
from pyfastr.estimators.sklearn_private import Interval

Array = NDArray[Any]


class Sturm(SpectralRegressor):
    r"""Sparse tubal-regularised multilinear regression.

    .. math:: \min_W \tfrac12 \sum_i \bigl(y_i - \langle W, X_i\rangle\bigr)^2
              + \frac{\alpha}{p_3} \sum_{k=1}^{p_3} \lVert \hat W_k\rVert_*
              + \beta \lVert W\rVert_1,

    where :math:`\hat W_k` are the frontal slices of W after a discrete Fourier transform
    along mode 3, or the mode that is chosen, and :math:`\lVert\cdot\rVert_*` is the sum of
    the singular values. Solved by the authors' ADMM with a step of 1, all variables starting
    at zero. A matrix is its own only slice: in 2-D the objective is that of :class:`Remurs`.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the tubal nuclear norm, in the units of :math:`X^T y`.
    beta : float, default=1.0
        Weight of the :math:`\ell_1` norm, in the same units.
    mode : int, default=2
        The transformed mode of three, counted from 0 or, if negative, from the end. Another
        mode is another method. Without effect on samples of one or two modes.
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
        Shape ``(p1, ..., pM)`` of a sample; M ≤ 3.
    n_features_in_ : int
        Size of the first mode.
    param_grid_ : dict
        The grid of the authors' Remurs, for :class:`~sklearn.model_selection.GridSearchCV`.

    See Also
    --------
    sturm_path : A whole grid from one factorisation of the samples.

    Notes
    -----
    The stopping rule looks at the change of W only, so a slow advance can pass for an end:
    lower `tol` to be sure. It is not trusted while the variables that ADMM splits W into are far
    apart. The step of 1 suits entries of X near 1 in size.

    An iteration reads X twice and takes a singular value decomposition for each slice. A matrix
    of n_samples × n_samples or p × p is factored, so the smaller number may be 20,000 at most.

    References
    ----------
    W. Li, J. Lou, S. Zhou, H. Lu. Sturm: Sparse tubal-regularized multilinear regression for
    fMRI. Machine Learning in Medical Imaging, 2019.

    Examples
    --------
    >>> from pyfastr.baselines import Sturm
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(200, (5, 4, 6), random_state=0)
    >>> model = Sturm(alpha=1.0, beta=0.1, mode=-1).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SpectralRegressor._parameter_constraints,
        "mode": [Interval(Integral, -3, 2, closed="both")],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        beta: float = 1.0,
        *,
        mode: int = 2,
        fit_intercept: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.mode = mode
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _spectral_norms(self, shape: tuple[int, ...]) -> list[SpectralNorm]:
        if len(shape) > 3:
            raise ValueError(
                f"X has samples of shape {shape}; Sturm is defined for at most 3 modes. Merge "
                "modes by a reshape, or use Remurs, which takes any number."
            )
        slices: Any = partial(unfold, mode=0)
        shrink: Any = partial(unfolding_threshold, mode=0)
        if len(shape) == 3:
            slices = partial(transformed_slices, mode=self.mode % 3)
            shrink = partial(tubal_threshold, mode=self.mode % 3)
        return [SpectralNorm(shrink, partial(_largest_singular, slices=slices))]


def sturm_path(
    X: Any,
    y: Any,
    *,
    alphas: ArrayLike,
    betas: ArrayLike,
    mode: int = 2,
    max_iter: int = 1000,
    tol: float = 1e-4,
) -> SpectralPath:
    """Fit `Sturm` for every pair of a grid, with one factorisation of the samples.

    The points of the grid are iterated together and share the reads of X, which take most of
    the time of a single fit. Each starts at zero, so its result is that of a fit alone.

    Parameters
    ----------
    X : array-like of shape (n_samples, p1, ..., pM)
        As it is: there is no intercept. Centre X and y for one.
    y : array-like of shape (n_samples,)
    alphas : array-like of shape (n_alphas,)
    betas : array-like of shape (n_betas,)
    mode : int, default=2
    max_iter : int, default=1000
    tol : float, default=1e-4
        The last three as for `Sturm`.

    Returns
    -------
    SpectralPath
        `coefs` of shape (n_alphas, n_betas, p1, ..., pM); `n_iters` and `converged` of shape
        (n_alphas, n_betas).

    Examples
    --------
    >>> from pyfastr.baselines import sturm_path
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(200, (5, 4, 6), random_state=0)
    >>> sturm_path(X, y, alphas=[1, 5], betas=[0.1, 0.5, 1]).coefs.shape
    (2, 3, 5, 4, 6)
    """
    return Sturm(mode=mode, max_iter=max_iter, tol=tol)._path(X, y, alphas, betas)


def _largest_singular(tensors: Array, slices: Any) -> Array:
    """Return the largest singular value of all slices of each tensor."""
    values = np.linalg.norm(slices(tensors), ord=2, axis=(-2, -1))
    return values.reshape(len(tensors), -1).max(axis=1)
