"""The public contract: names, signatures, examples, and a light import."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import pyfastr
from pyfastr import baselines

MODULES = [m.name for m in pkgutil.walk_packages(pyfastr.__path__, "pyfastr.")]


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("pyfastr", ["FasTRRegressor", "TensorScaler", "baselines", "datasets", "metrics"]),
        ("pyfastr", ["fastr_path", "inference"]),
        ("pyfastr.inference", ["permutation_test", "stability_selection", "bootstrap_factors"]),
        ("pyfastr.datasets", ["make_tensor_regression", "make_cmu2008_like"]),
        ("pyfastr.datasets", ["fetch_cmu2008", "load_cmu2008"]),
        ("pyfastr.metrics", ["coefficient_error", "support_precision", "support_recall"]),
        ("pyfastr.baselines", ["PublishedFasTR", "ElementaryRidge", "DantzigSelector"]),
        ("pyfastr.baselines", ["VectorizedLasso", "VectorizedElasticNet"]),
        ("pyfastr.baselines", ["Remurs", "Sturm", "SURF", "GLTRM", "OrTRR"]),
        ("pyfastr.baselines", ["elementary_ridge_path", "remurs_path", "sturm_path"]),
        ("pyfastr.estimators", ["FasTRRegressor", "TensorScaler"]),
        ("pyfastr.display", ["CoefficientDisplay", "FactorsDisplay", "SelectionDisplay"]),
        ("pyfastr.display", ["StartsDisplay", "ConvergenceDisplay", "PredictionDisplay"]),
        ("pyfastr.display", ["RocDisplay", "StabilityDisplay", "PermutationDisplay"]),
        ("pyfastr.display", ["PathDisplay", "ImportanceDisplay"]),
    ],
)
def test_names_that_users_rely_on(module, names):
    public = importlib.import_module(module)
    for name in names:
        assert hasattr(public, name)
        assert name in dir(public)


def test_what_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'pyfastr' has no attribute 'nothing'"):
        _ = pyfastr.nothing


def test_the_parameters_of_the_regressor():
    signature = inspect.signature(pyfastr.FasTRRegressor).parameters
    assert list(signature) == [
        "threshold",
        "ridge",
        "n_terms",
        "loss",
        "init",
        "n_init",
        "sweep",
        "max_iter",
        "tol",
        "fit_intercept",
        "refit_support",
        "symmetry",
        "random_state",
        "verbose",
        "checkpoint",
    ]
    positional = [n for n, p in signature.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == ["threshold", "ridge"]


@pytest.mark.parametrize("name", [n for n in baselines.__all__ if n[0].isupper()])
def test_every_baseline_has_a_grid_of_its_own_parameters(name):
    estimator = getattr(baselines, name)
    assert estimator.param_grid_
    assert set(estimator.param_grid_) <= set(inspect.signature(estimator).parameters)
    assert all(isinstance(values, list) for values in estimator.param_grid_.values())


def test_importing_the_package_imports_neither_scikit_learn_nor_scipy():
    script = """
import sys
import pyfastr
heavy = {name.partition(".")[0] for name in sys.modules} & {"sklearn", "scipy", "pandas"}
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_run(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
    if "matplotlib.pyplot" in sys.modules:
        # Figures that examples leave open would add up.
        sys.modules["matplotlib.pyplot"].close("all")
