from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from pyfastr.baselines import (
    ElementaryRidge,
    Remurs,
    Sturm,
    elementary_ridge_path,
    remurs_path,
    sturm_path,
)
from pyfastr.datasets import make_tensor_regression
from pyfastr.experiments.isolation import run_isolated
from pyfastr.experiments.methods import METHODS, known_methods
from pyfastr.experiments.oracle import Oracle
from pyfastr.experiments.path_search import PathSearchCV
from pyfastr.experiments.problems import Simulation
from pyfastr.experiments.runner import fit_and_score

SMALL_GRIDS = {
    ElementaryRidge: {"threshold": [0.0, 0.1], "ridge": [0.1, 100.0]},
    Remurs: {"alpha": [0.5, 50.0], "beta": [0.1, 10.0]},
    Sturm: {"alpha": [0.5, 50.0], "beta": [0.1, 10.0]},
}
PATHS = {
    ElementaryRidge: elementary_ridge_path,
    Remurs: lambda X, y, **grid: remurs_path(X, y, **grid).coefs,
    Sturm: lambda X, y, **grid: sturm_path(X, y, **grid).coefs,
}


@pytest.mark.parametrize("kind", list(PATHS))
def test_a_search_by_paths_chooses_what_a_grid_search_chooses(kind, monkeypatch):
    data = Simulation((5, 4), 40, noise=3.0).draw(0)
    monkeypatch.setattr(kind, "param_grid_", SMALL_GRIDS[kind])
    ours = PathSearchCV(kind(), PATHS[kind]).fit(data.X, data.y)
    theirs = GridSearchCV(kind(), SMALL_GRIDS[kind], cv=5, scoring="neg_mean_squared_error")
    theirs.fit(data.X, data.y)
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_allclose(ours.predict(data.X_test), theirs.predict(data.X_test))


@pytest.mark.parametrize("key", ["fastr", "published", "lasso", "enet", "eeridge"])
def test_methods_choose_and_find_an_easy_coefficient(key):
    problem = Simulation((4, 3), 60, noise=0.01)
    # As in a study: there, that a point of a grid does not converge is no news.
    task = partial(fit_and_score, problem, METHODS[key], problem.draw(0))
    found = run_isolated(task, 60.0, lambda: None).value
    assert found["metrics"]["ce"] < 0.1
    assert found["params"]


@pytest.mark.parametrize("key", ["remurs", "sturm", "surf", "gltrm", "ortrr"])
def test_every_method_can_be_made_for_a_trial(key):
    model = METHODS[key].make(Simulation((4, 3), 60).draw(0))
    assert hasattr(model, "fit")
    assert model.estimator.max_iter == 1000


@pytest.mark.parametrize(
    ("size", "n_samples", "criterion"), [(10, 10, "cv"), (20, 40, "evidence"), (30, 150, "cv")]
)
def test_folds_of_few_samples_for_the_coefficient_make_way_for_evidence(size, n_samples, criterion):
    data = Simulation((size, size), n_samples).draw(0)
    assert METHODS["fastr"].make(data).criterion == criterion


def test_unknown_methods_are_told_the_known_ones():
    with pytest.raises(ValueError, match=r"methods has foo; expected some of fastr, published, l"):
        known_methods(["lasso", "foo"])
    with pytest.raises(ValueError, match="methods has no method; expected some of fastr"):
        known_methods([])


def test_the_oracle_of_float32_is_that_of_float64():
    X, y, W = make_tensor_regression(120, (6, 5, 4), coef=True, random_state=0)
    double, single = (Oracle(W.astype(t)).fit(X.astype(t), y) for t in (float, np.float32))
    # Not the truth it begins at, from which noise leads away.
    assert np.linalg.norm(double.coef_ - W) > 1e-3 * np.linalg.norm(W)
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-5)


def test_the_oracle_is_least_squares_where_that_is_linear():
    X, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50.0)
    truth = np.array([1.0, 0.0, -2.0, 3.0])
    model = Oracle(truth).fit(X, y)
    design = np.column_stack([X[:, [0, 2, 3]], np.ones(50)])
    expected = np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_[[0, 2, 3]], expected[:3])
    assert model.coef_[1] == 0.0
    assert model.intercept_ == pytest.approx(expected[3])
    np.testing.assert_allclose(model.predict(X), design @ expected)
