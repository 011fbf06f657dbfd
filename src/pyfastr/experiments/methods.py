"""The methods that are compared, and how each chooses its parameters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV

from pyfastr.baselines import (
    GLTRM,
    SURF,
    ElementaryRidge,
    OrTRR,
    PublishedFasTR,
    Remurs,
    Sturm,
    VectorizedElasticNet,
    VectorizedLasso,
    elementary_ridge_path,
    remurs_path,
    sturm_path,
)
from pyfastr.estimators import FasTRClassifierCV, FasTRRegressorCV
from pyfastr.experiments.oracle import Oracle
from pyfastr.experiments.path_search import PathSearchCV
from pyfastr.experiments.problems import TrialData, n_free

Array = NDArray[Any]

N_FOLDS, MAX_ITER, TOL = 5, 1000, 1e-3
# The simulations have little noise: where the coefficient can be identified, larger ridges and
# thresholds of the default grid, which is for data of any kind, were not chosen in trials of these
# studies.
RIDGES, THRESHOLDS = (1e-5, 1e-2), (0.0, 0.001, 0.003, 0.01, 0.03)
# Folds of fewer samples for each free parameter miss what all samples show, and choose wrongly.
ENOUGH_SAMPLES = 2


@dataclass(frozen=True)
class Method:
    """A method of a study.

    Attributes
    ----------
    key : str
        Name on the command line and in the file of results.
    title : str
        Name in tables.
    make : callable
        Returns an estimator for the samples of a trial; it may look at their shape and seed.
    tuning : str
        What is chosen, and how, in words.
    """

    key: str
    title: str
    make: Callable[[TrialData], Any]
    tuning: str


def _fastr(data: TrialData) -> Any:
    """Make the estimator of this library."""
    common: dict[str, Any] = {"max_iter": MAX_ITER, "tol": TOL, "random_state": data.seed}
    common |= {"n_terms": (1,), "refit": True}  # the model of the paper
    if data.is_classes:
        return FasTRClassifierCV(cv=N_FOLDS, **common)
    criterion: Any = "evidence" if _folds_are_too_small(data.X.shape) else "cv"
    return FasTRRegressorCV(THRESHOLDS, RIDGES, cv=N_FOLDS, criterion=criterion, **common)


def _folds_are_too_small(shape: Sequence[int]) -> bool:
    """Whether all samples determine a unit-rank coefficient, but four fifths of them hardly do."""
    N, *sizes = shape
    n_train = N * (N_FOLDS - 1) // N_FOLDS
    return n_free(sizes) <= N and ENOUGH_SAMPLES * n_free(sizes) > n_train


def _published(data: TrialData) -> Any:
    return _grid_search(PublishedFasTR(max_iter=MAX_ITER, tol=TOL, random_state=data.seed))


def _grid_search(estimator: Any) -> GridSearchCV:
    """Search the estimator's own grid."""
    return GridSearchCV(
        estimator, estimator.param_grid_, cv=N_FOLDS, scoring="neg_mean_squared_error"
    )


def _lasso(data: TrialData) -> Any:
    return VectorizedLasso(cv=N_FOLDS, max_iter=MAX_ITER)


def _elastic_net(data: TrialData) -> Any:
    ratios = VectorizedElasticNet.param_grid_["l1_ratio"]
    return VectorizedElasticNet(l1_ratio=ratios, cv=N_FOLDS, max_iter=MAX_ITER)


def _elementary(data: TrialData) -> Any:
    return PathSearchCV(ElementaryRidge(), elementary_ridge_path, N_FOLDS)


def _remurs(data: TrialData) -> Any:
    def path(X: Array, y: Array, **grid: Any) -> Array:
        return remurs_path(X, y, max_iter=MAX_ITER, tol=TOL, **grid).coefs

    return PathSearchCV(Remurs(max_iter=MAX_ITER, tol=TOL), path, N_FOLDS)


def _sturm(data: TrialData) -> Any:
    def path(X: Array, y: Array, **grid: Any) -> Array:
        return sturm_path(X, y, max_iter=MAX_ITER, tol=TOL, **grid).coefs

    return PathSearchCV(Sturm(max_iter=MAX_ITER, tol=TOL), path, N_FOLDS)


def _surf(data: TrialData) -> Any:
    return _grid_search(SURF(max_iter=MAX_ITER, cv=N_FOLDS))


def _gltrm(data: TrialData) -> Any:
    return _grid_search(GLTRM(max_iter=MAX_ITER, random_state=data.seed))


def _ortrr(data: TrialData) -> Any:
    return _grid_search(OrTRR(max_iter=MAX_ITER, random_state=data.seed))


OURS = "fastr"
METHODS: dict[str, Method] = {
    method.key: method
    for method in (
        Method(
            OURS,
            "FasTR",
            _fastr,
            "FasTRRegressorCV: 5 thresholds and 2 ridges; by evidence instead of folds where N "
            "reaches the number of free parameters, but four fifths of N not twice that number. "
            "FasTRClassifierCV in Table 3: 10 thresholds and 5 ridges.",
        ),
        Method("published", "FasTR as published", _published, "λ and ε, from one random start"),
        Method("lasso", "Lasso", _lasso, "100 penalties, by paths"),
        Method("enet", "Elastic Net", _elastic_net, "6 ratios and 100 penalties, by paths"),
        Method("eeridge", "EE-Ridge", _elementary, "14 thresholds and 7 ridges"),
        Method("remurs", "Remurs", _remurs, "12 × 13 penalties, the authors' grid"),
        Method("sturm", "Sturm", _sturm, "12 × 13 penalties, the grid of Remurs"),
        Method("surf", "SURF", _surf, "λ and the number of terms by the authors' rule, 4 ridges"),
        Method("gltrm", "GLTRM", _gltrm, "rank 1 to 3 and 4 penalties, 5 starts"),
        Method("ortrr", "orTRR", _ortrr, "5 group penalties and 3 ridges, 5 starts"),
    )
}
# Not a method to choose: it is told the truth, and runs wherever there is one.
ORACLE = Method("oracle", "oracle", lambda data: Oracle(data.truth), "nothing")


def known_methods(keys: Sequence[str]) -> list[Method]:
    """Return the methods of these keys, in the order of the tables.

    Parameters
    ----------
    keys : sequence of str
        At least one, all among those of `METHODS`.

    Returns
    -------
    list of Method

    Examples
    --------
    >>> from pyfastr.experiments.methods import known_methods
    >>> [method.title for method in known_methods(["surf", "fastr"])]
    ['FasTR', 'SURF']
    """
    unknown = sorted(set(keys) - set(METHODS))
    if unknown or not keys:
        given = ", ".join(unknown) or "no method"
        raise ValueError(f"methods has {given}; expected some of {', '.join(METHODS)}.")
    return [method for key, method in METHODS.items() if key in keys]
