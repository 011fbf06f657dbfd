"""A tiny problem, methods that behave and misbehave, and results without fits."""

import os
import signal
import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from pyfastr.experiments.methods import Method
from pyfastr.experiments.plan import Plan
from pyfastr.experiments.problems import Simulation
from pyfastr.experiments.store import Result
from pyfastr.experiments.studies import Study


@dataclass
class Zeros:
    """A model whose coefficient is zero, after whatever `before` does."""

    before: object = None

    def fit(self, X, y):
        if self.before is not None:
            self.before()
        self.coef_ = np.zeros(X.shape[1:])
        return self

    def predict(self, X):
        return np.zeros(len(X))


def method(key, before=None):
    return Method(key, key.title(), lambda data: Zeros(before), "nothing")


def raise_memory_error():
    raise MemoryError("no room")


def raise_two_lines():
    raise ValueError("All fits failed:\nValueError: X has 3")


MISBEHAVIOUR = {
    "sleepy": lambda: time.sleep(600),
    "greedy": raise_memory_error,
    "wordy": raise_two_lines,
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "crashed": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "gone": lambda: os._exit(3),
}


class Silent:
    """A watcher that only counts the results it is told of."""

    def __init__(self):
        self.results = []

    def progress(self, n_answered, n_fits):
        self.answered = n_answered, n_fits

    def doing(self, unit, what):
        pass

    def tick(self):
        pass

    def found(self, unit, result):
        self.results.append(result)


@pytest.fixture
def watcher():
    return Silent()


SMALL, LARGE = Simulation((4, 3), 20), Simulation((5, 4), 20)


def make_plan(*methods, problems=(SMALL,), n_trials=1, budget=10.0, name="table1"):
    return Plan([Study(name, "A study", tuple(problems))], list(methods), n_trials, budget)


def result(problem, trial, key, *, seconds=1.0, status="ok", budget=10.0, reason="", **metrics):
    """A result as a run would have written it."""
    defaults = {"ce": 0.1, "mse": 2.0, "relative_mse": 0.2, "training_metric": 0.01}
    return Result(
        *("table1", problem.key, trial, key, status, seconds, budget),
        dtype="float64",
        metrics={**defaults, **metrics} if status == "ok" else {},
        reason=reason,
        environment="abc",
    )


def known(*results):
    return {r.key: r for r in results}


@pytest.fixture
def lab():
    """All of the above; tests cannot import it."""
    return SimpleNamespace(
        small=SMALL,
        large=LARGE,
        method=method,
        misbehaviour=MISBEHAVIOUR,
        make_plan=make_plan,
        result=result,
        known=known,
    )
