"""The paper's simulation: a sparse unit-rank coefficient, Gaussian tensors, noise."""

from collections.abc import Sequence
from functools import reduce
from numbers import Integral, Real
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pyfastr.engines.parallel import map_threads
from pyfastr.estimators.validation import as_generator

Array = NDArray[Any]
RandomState = int | np.random.RandomState | np.random.Generator | None

# X is drawn in pieces of so many entries, each after the first by a stream of its own: a few
# threads can share the work, and how many they are changes nothing.
PIECE = 1 << 28


@overload
def make_tensor_regression(
    n_samples: int,
    shape: Sequence[int],
    *,
    sparsity: float = ...,
    noise: float = ...,
    n_terms: int = ...,
    coef: Literal[False] = ...,
    dtype: DTypeLike = ...,
    random_state: RandomState = ...,
) -> tuple[Array, Array]: ...


@overload
def make_tensor_regression(
    n_samples: int,
    shape: Sequence[int],
    *,
    sparsity: float = ...,
    noise: float = ...,
    n_terms: int = ...,
    coef: Literal[True],
    dtype: DTypeLike = ...,
    random_state: RandomState = ...,
) -> tuple[Array, Array, Array]: ...


def make_tensor_regression(
    n_samples: int,
    shape: Sequence[int],
    *,
    sparsity: float = 0.2,
    noise: float = 0.1,
    n_terms: int = 1,
    coef: bool = False,
    dtype: DTypeLike = float,
    random_state: RandomState = None,
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    r"""Draw a tensor regression problem as the paper's simulations do.

    .. math:: y_i = \langle W, X_i\rangle + \alpha\,\varepsilon_i,
              \qquad W = w^1 \circ \dots \circ w^M

    Every entry of the components :math:`w^m`, of X and of :math:`\varepsilon` is drawn
    from N(0, 1); then a share of the entries of each component is set to zero.

    Parameters
    ----------
    n_samples : int
        Number of samples, N.
    shape : sequence of int
        Shape ``(p1, ..., pM)`` of one sample; M >= 1.
    sparsity : float, default=0.2
        Share of zeros in each component, in [0, 1): ``round(sparsity * p_m)`` entries
        are set to zero, but at least one is left.
    noise : float, default=0.1
        Standard deviation of the noise, the paper's :math:`\alpha`.
    n_terms : int, default=1
        Number of unit-rank terms, each drawn as above, that W is the sum of.
    coef : bool, default=False
        Whether to return W too.
    dtype : {float64, float32}, default=float64
        Type of all that is returned. It is drawn in this type: no array of the size of
        X is made beside X.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws; an int gives the same data each time. W is drawn first and
        the samples in order: with the same seed, more samples are a continuation with
        the same W and other noise.

    Returns
    -------
    X : ndarray of shape (n_samples, p1, ..., pM)
    y : ndarray of shape (n_samples,)
    W : ndarray of shape (p1, ..., pM)
        Only if ``coef=True``.

    Examples
    --------
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y, W = make_tensor_regression(50, (10, 5), coef=True, random_state=0)
    >>> X.shape, y.shape, W.shape
    ((50, 10, 5), (50,), (10, 5))
    >>> int((W != 0).sum())
    32
    """
    N = _check_count(n_samples, "n_samples")
    R = _check_count(n_terms, "n_terms")
    sizes = _check_shape(shape)
    _check_number(sparsity, "sparsity", below=1.0)
    _check_number(noise, "noise", below=np.inf)
    real = _check_dtype(dtype)
    rng = as_generator(random_state)

    W = _draw_term(rng, sizes, sparsity, real)
    for _ in range(R - 1):
        W += _draw_term(rng, sizes, sparsity, real)
    X = _draw_samples(rng, (N, *sizes), real)
    # One pass over X through a view: W is no larger than one sample.
    y = X.reshape(N, -1) @ W.ravel()
    _add_noise(rng, y, noise)
    return (X, y, W) if coef else (X, y)


def _draw_samples(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Gaussian tensors."""
    X: Array = np.empty(shape, dtype)
    entries = X.reshape(-1)
    pieces = [entries[i : i + PIECE] for i in range(0, entries.size, PIECE)]
    streams = [rng, *rng.spawn(len(pieces) - 1)] if len(pieces) > 1 else [rng]

    def fill(number: int) -> None:
        streams[number].standard_normal(dtype=dtype.type, out=pieces[number])

    map_threads(fill, range(len(pieces)))
    return X


def _add_noise(rng: np.random.Generator, y: Array, noise: float) -> None:
    """Add Gaussian noise to y, or refuse it for what is beyond the numbers of that type."""
    real = y.dtype.type
    with np.errstate(over="ignore", invalid="ignore"):
        y += real(noise) * rng.standard_normal(len(y), dtype=real)
    if not np.isfinite(y).all():
        raise ValueError(
            f"noise is {noise!r}, which makes y infinite in {y.dtype}; expected a smaller one."
        )


def _draw_term(
    rng: np.random.Generator, sizes: tuple[int, ...], sparsity: float, dtype: np.dtype[Any]
) -> Array:
    """Outer product of one sparse Gaussian component a mode."""
    components = [_draw_component(rng, size, sparsity, dtype) for size in sizes]
    return reduce(np.multiply.outer, components)


def _draw_component(
    rng: np.random.Generator, size: int, sparsity: float, dtype: np.dtype[Any]
) -> Array:
    """Gaussian vector with a share of zeros; one entry is left, or W would be zero."""
    component: Array = rng.standard_normal(size, dtype=dtype.type)
    n_zeros = min(round(sparsity * size), size - 1)
    component[rng.permutation(size)[:n_zeros]] = 0.0
    return component


def _check_count(value: Any, name: str) -> int:
    """Return a whole number of at least 1."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} is {value!r}; expected an int of at least 1.")
    return int(value)


def _check_shape(shape: Any) -> tuple[int, ...]:
    """Return the sizes of the modes."""
    if not isinstance(shape, Sequence | np.ndarray) or len(shape) == 0 or isinstance(shape, str):
        raise ValueError(
            f"shape is {shape!r}; expected a sequence of at least one int, (p1, ..., pM)."
        )
    return tuple(_check_count(size, f"shape[{mode}]") for mode, size in enumerate(shape))


def _check_number(value: Any, name: str, *, below: float) -> None:
    """Refuse what is no number in [0, below)."""
    if not isinstance(value, Real) or not 0.0 <= float(value) < below:
        raise ValueError(f"{name} is {value!r}; expected a number in [0, {below}).")


def _check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return float32 or float64, which are what the generator can draw."""
    try:
        real = np.dtype(dtype)
    except TypeError:
        real = None
    if real not in (np.float32, np.float64):
        raise ValueError(f"dtype is {dtype!r}; expected float64 or float32.")
    return real
