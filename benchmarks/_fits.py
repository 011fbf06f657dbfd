"""The fits that `accuracy.py` compares, and a process that can be ended when one takes too long.

`selection.py` runs methods of its own in the same process.
"""

import multiprocessing
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LassoCV
from threadpoolctl import threadpool_limits

from pyfastr import FasTRRegressor
from pyfastr.baselines import PublishedFasTR
from pyfastr.datasets import make_tensor_regression
from pyfastr.metrics import coefficient_error

Array = NDArray[Any]

ORACLE_STEPS, ORACLE_TOL = 100, 1e-10


@dataclass(frozen=True)
class Job:
    """One fit: a method on the paper's simulation of one size and seed."""

    method: str
    shape: tuple[int, ...]
    n_samples: int
    seed: int
    params: dict[str, Any] = field(default_factory=dict)
    # What `make_data` is told beside size and seed.
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What came of a fit.

    `ce` is None if it was ended at the limit, infinite if it failed, and not a number if the
    method has no coefficient to compare.
    """

    ce: float | None
    seconds: float
    info: dict[str, Any] = field(default_factory=dict)


# What a method returns: the coefficient, if there is one, and what else is worth knowing. Its
# time is taken from there if the method knows better than the clock around it.
Fit = tuple[Array | None, dict[str, Any]]
Methods = dict[str, Callable[..., Fit]]


def fit_fastr(X: Array, y: Array, W: Array, **params: Any) -> Fit:
    """Fit this library's regressor, with defaults unless told otherwise."""
    model = FasTRRegressor(random_state=0, **params).fit(X, y)
    starts = model.starts_
    return model.coef_, {
        "n_iter": model.n_iter_,
        "n_starts": starts.n_starts,
        "n_hits": starts.n_hits,
        "gap": starts.gap,
        "sure": starts.sure,
    }


def fit_published(X: Array, y: Array, W: Array) -> Fit:
    """Fit Algorithm 1 of the paper, from one random start."""
    return PublishedFasTR(random_state=0).fit(X, y).coef_, {}


def fit_tensorly(X: Array, y: Array, W: Array) -> Fit:
    """Fit tensorly's rank-one ridge with its defaults."""
    from tensorly.regression import CPRegressor

    model = CPRegressor(weight_rank=1, random_state=0, verbose=0).fit(X, y)
    return model.weight_tensor_.reshape(W.shape), {}


def fit_lasso(X: Array, y: Array, W: Array) -> Fit:
    """Fit scikit-learn's lasso to the flattened samples, its penalty by five folds."""
    model = LassoCV(cv=5).fit(X.reshape(len(X), -1), y)
    return model.coef_.reshape(W.shape), {}


def fit_oracle(X: Array, y: Array, W: Array) -> Fit:
    """Fit least squares and an intercept on the true support, from the true components.

    Gauss-Newton with halved steps. W fixes the components up to factors of product one; the
    least-squares step of minimum norm leaves those alone.
    """
    support = [np.flatnonzero(W.any(axis=_all_but(mode, W.ndim))) for mode in range(W.ndim)]
    X_on = X[np.ix_(np.arange(len(X)), *support)]
    components = _components(W[np.ix_(*support)])
    residual, jacobian = _linearise(X_on, y, components)
    for _ in range(ORACLE_STEPS):
        step = np.linalg.lstsq(jacobian, residual, rcond=1e-10)[0][:-1]
        moved = _halve_until_better(X_on, y, components, step, residual)
        if moved is None:
            break
        components, new_residual, jacobian = moved
        gain = 1 - (new_residual @ new_residual) / (residual @ residual)
        residual = new_residual
        if gain < ORACLE_TOL:
            break
    coef = np.zeros_like(W)
    coef[np.ix_(*support)] = reduce(np.multiply.outer, components)
    return coef, {}


def _all_but(mode: int, n_modes: int) -> tuple[int, ...]:
    return tuple(m for m in range(n_modes) if m != mode)


def _components(W: Array) -> list[Array]:
    """Vectors of equal length whose outer product is W, read off its largest entry."""
    at = np.unravel_index(np.abs(W).argmax(), W.shape)
    fibres = [W[(*at[:m], slice(None), *at[m + 1 :])] for m in range(W.ndim)]
    units = [fibre / np.linalg.norm(fibre) for fibre in fibres]
    scale = np.einsum(W, range(W.ndim), *_interleaved(units), [])
    length = np.abs(scale) ** (1 / W.ndim)
    return [np.sign(scale) * length * units[0], *(length * u for u in units[1:])]


def _interleaved(units: list[Array]) -> list[Any]:
    return [item for mode, u in enumerate(units) for item in (u, [mode])]


def _linearise(X: Array, y: Array, components: list[Array]) -> tuple[Array, Array]:
    """Residuals at the best intercept, and the Jacobian in components and intercept."""
    projections = [_project(X, components, mode) for mode in range(len(components))]
    residual = y - projections[0] @ components[0]
    jacobian = np.hstack([*projections, np.ones((len(y), 1))])
    return residual - residual.mean(), jacobian


def _project(X: Array, components: list[Array], mode: int) -> Array:
    """Contract every mode but one."""
    for w in components[:mode:-1]:
        X = X @ w
    for w in components[:mode]:
        X = w @ X.reshape(len(X), len(w), -1)
    return X.reshape(len(X), -1)


def _halve_until_better(
    X: Array, y: Array, components: list[Array], step: Array, residual: Array
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


METHODS: Methods = {
    "fastr": fit_fastr,
    "oracle": fit_oracle,
    "published": fit_published,
    "tensorly": fit_tensorly,
    "lasso": fit_lasso,
}


class Worker:
    """A process that makes data and fits, one job after another, and starts anew if ended.

    The data stay there from one job to the next of the same size and seed, so that all methods
    see the same arrays and only the fits are timed.
    """

    def __init__(self, threads: int | None = None, methods: Methods | None = None) -> None:
        self._threads = threads
        self._methods = METHODS if methods is None else methods
        self._process: Any = None
        self._pipe: Any = None

    def run(self, job: Job, limit: float | None) -> Outcome:
        """Fit; after `limit` seconds end the fit."""
        if self._process is None:
            self._start()
        self._pipe.send(job)
        try:
            self._pipe.recv()  # the data are there
            if self._pipe.poll(limit):
                return self._pipe.recv()
        except EOFError:
            self.close()
            return Outcome(np.inf, 0.0, {"error": "the process ended: out of memory?"})
        self.close()
        return Outcome(None, limit)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        args = (far_end, self._threads, self._methods)
        self._process = context.Process(target=_serve, args=args, daemon=True)
        self._process.start()
        far_end.close()


def _serve(pipe: Any, threads: int | None, methods: Methods) -> None:
    """Answer jobs for as long as they come."""
    warnings.simplefilter("ignore")  # that a method did not converge shows in its error
    key, data = None, None
    warm = set()
    with threadpool_limits(threads):
        while True:
            try:
                job = pipe.recv()
            except EOFError:
                return
            wanted = (job.shape, job.n_samples, job.seed, job.data)
            if key != wanted:
                data = None  # before the next X is made
                key, data = wanted, make_data(*wanted[:3], **job.data)
            fit = partial(methods[job.method], **job.params)
            if job.method not in warm:
                warm.add(job.method)
                _attempt(fit, make_data((4, 3), 20, 0))
            pipe.send("ready")
            pipe.send(_attempt(fit, data))


def make_data(
    shape: tuple[int, ...],
    n_samples: int,
    seed: int,
    *,
    sparsity: float = 0.2,
    noise: float | Literal["signal"] = 0.1,
) -> tuple[Array, Array, Array]:
    """Draw the paper's simulation: 20 % zeros in each component, noise 0.1 if not told otherwise.

    With the noise "signal" it is as large as the signal, so R² of the truth is 0.5.
    """
    draw = partial(
        make_tensor_regression, shape=shape, sparsity=sparsity, coef=True, random_state=seed
    )
    if noise == "signal":
        noise = signal_size(draw(1)[2])
    return draw(n_samples, noise=noise)


def signal_size(W: Array) -> float:
    """Standard deviation of the signal: that of X is one."""
    return float(np.linalg.norm(W))


def _attempt(fit: Callable[..., Fit], data: tuple[Array, Array, Array]) -> Outcome:
    """Fit and measure; an error is an outcome too."""
    X, y, W = data
    begin = time.perf_counter()
    try:
        coef, info = fit(X, y, W)
    except Exception as error:
        return Outcome(np.inf, time.perf_counter() - begin, {"error": repr(error)})
    seconds = info.pop("seconds", time.perf_counter() - begin)
    return Outcome(np.nan if coef is None else coefficient_error(coef, W), seconds, info)
