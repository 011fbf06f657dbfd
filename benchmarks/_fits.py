"""The fits that `accuracy.py` compares, and a process that can be ended when one takes too long.

`selection.py` runs methods of its own in the same process.
"""

import multiprocessing
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LassoCV
from threadpoolctl import threadpool_limits

from pyfastr import FasTRRegressor
from pyfastr.baselines import PublishedFasTR
from pyfastr.datasets import make_tensor_regression
from pyfastr.experiments.oracle import Oracle
from pyfastr.metrics import coefficient_error

Array = NDArray[Any]


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
    """Fit least squares and an intercept on the true support, from the true components."""
    return Oracle(W).fit(X, y).coef_, {}


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
