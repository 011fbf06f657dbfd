"""Easy data for estimators."""

import numpy as np
import pytest

from pyfastr.datasets import make_tensor_regression


@pytest.fixture(name="draw")
def easy_data():
    """X with means that are not zero, y with intercept 2, and a coefficient of norm 1."""

    def draw(shape, n_samples=80, seed=0, noise=0.1):
        X, _, W = make_tensor_regression(n_samples, shape, coef=True, random_state=seed)
        rng = np.random.default_rng(seed)
        X, W = X + rng.normal(size=shape), W / np.linalg.norm(W)
        y = 2 + X.reshape(n_samples, -1) @ W.ravel() + noise * rng.normal(size=n_samples)
        return X, y, W

    return draw


@pytest.fixture(name="starts_of")
def random_arrays():
    """Arrays for `init`."""

    def starts_of(shape, n_terms=1):
        rng = np.random.default_rng(5)
        return [rng.normal(size=(p, n_terms)) for p in shape]

    return starts_of
