"""Fits in child processes of one whose threads are there already: none waits for ever."""

import os
import subprocess
import sys

import pytest

SCRIPT = '''
import multiprocessing
import sys

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import GridSearchCV

from pyfastr import FasTRRegressor, config_context
from pyfastr.datasets import make_tensor_regression

QUICK = {"n_init": 2, "max_iter": 20, "tol": 0.1, "random_state": 0}


def fit(path, y):
    """From a file, so that a thread reads and others work."""
    with config_context(memory_budget="16MB"):
        X = np.load(path, mmap_mode="r")
        return FasTRRegressor(0.0, 0.1, **QUICK).fit(X, y).coef_


def in_pool(method, path, y):
    with multiprocessing.get_context(method).Pool(2) as pool:
        return pool.starmap(fit, [(path, y)] * 3)


def in_joblib(backend, path, y):
    return Parallel(2, backend=backend)(delayed(fit)(path, y) for _ in range(3))


def in_search(n_jobs, X, y):
    search = GridSearchCV(FasTRRegressor(**QUICK), {"ridge": [0.1, 1.0]}, cv=2, n_jobs=int(n_jobs))
    return search.fit(X[:, :6, :5, :4], y).cv_results_["mean_test_score"]


if __name__ == "__main__":
    how, what, path = sys.argv[1:]
    X, y = make_tensor_regression(60, (16, 15, 15), noise=0.1, random_state=0)
    np.save(path, X)
    # The threads of this process are there from now on.
    expected = fit(path, y)
    if how == "search":
        np.testing.assert_array_equal(in_search(what, X, y), in_search(1, X, y))
    else:
        for found in {"pool": in_pool, "joblib": in_joblib}[how](what, path, y):
            np.testing.assert_array_equal(found, expected)
'''


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize(
    ("how", "what"),
    [
        *(("pool", "fork"), ("joblib", "multiprocessing"), ("joblib", "threading")),
        *(
            pytest.param(*own, marks=pytest.mark.slow)
            for own in (("pool", "spawn"), ("pool", "forkserver"), ("joblib", "loky"))
        ),
        pytest.param("search", "2", marks=pytest.mark.slow),
    ],
)
def test_children_fit_as_their_parent_does(tmp_path, how, what):
    script = tmp_path / "fits.py"
    script.write_text(SCRIPT)
    # Python warns of forks in processes with threads, which is what is tried here.
    command = [sys.executable, "-W", "ignore", str(script), how, what, str(tmp_path / "X.npy")]
    done = subprocess.run(command, timeout=300, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
