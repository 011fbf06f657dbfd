import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from pyfastr import FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV

mpl.use("agg")
GRID = {"thresholds": [0.0, 0.1, 0.3], "ridges": [0.1, 1.0], "n_init": 2, "random_state": 0}


def _draw(shape, n_samples=60, noise=0.3, seed=0):
    """A unit-rank coefficient whose components are zero in the last third."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, *shape))
    W = np.ones(())
    for p in shape:
        vector = rng.normal(size=p)
        vector[-(p // 3) :] = 0
        W = np.multiply.outer(W, vector)
    y = X.reshape(n_samples, -1) @ W.ravel()
    return X, y + noise * y.std() * rng.normal(size=n_samples)


@pytest.fixture(scope="session")
def draw():
    """A function that draws samples."""
    return _draw


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def fitted():
    """Models of one to four modes."""
    shapes = [(9,), (6, 5), (5, 6, 4), (3, 4, 3, 4)]
    return {
        len(shape): FasTRRegressor(0.2, 0.1, n_init=2, random_state=0).fit(*_draw(shape))
        for shape in shapes
    }


@pytest.fixture(scope="session")
def chosen():
    """A choice of threshold, ridge and number of terms."""
    return FasTRRegressorCV(n_terms=(1, 2), **GRID).fit(*_draw((6, 5)))


@pytest.fixture(scope="session")
def averaged():
    """The mean of the folds' models."""
    return FasTRRegressorCV(refit=False, **GRID).fit(*_draw((6, 5), noise=2.0))


@pytest.fixture(scope="session")
def classifier():
    X, y = _draw((6, 5))
    return FasTRClassifierCV(**GRID).fit(X, np.where(y > 0, "yes", "no"))
