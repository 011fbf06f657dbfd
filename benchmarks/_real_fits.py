"""What is compared on real data: this library as it comes, ridge and lasso on flattened samples.

For classes, ridge and lasso are logistic regression with these penalties. All methods see the same
outer and inner folds, which keep groups whole, and X scaled by the outer training samples.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
from _real_sets import Tensors
from _set_tools import Array
from sklearn.linear_model import LassoCV, LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from pyfastr import FasTRClassifierCV, FasTRRegressorCV, TensorScaler

Folds = list[tuple[Array, Array]]
# What a method returns: a prediction or decision of new samples, and what was chosen.
Chosen = tuple[Callable[[Array], Array], dict[str, Any]]

N_FOLDS = 5
# From hardly any penalty to hardly anything but the penalty; features are standardised.
RIDGE_ALPHAS = np.logspace(-3, 7, 21)
L2_STRENGTHS, L1_STRENGTHS = np.logspace(-7, 2, 19), np.logspace(-2.5, 2, 19)

DEFAULT, PEERS = "default", ("ridge", "lasso")
# The arguments of this library's estimators, beside the folds and the seed.
OURS: dict[str, dict[str, Any]] = {DEFAULT: {}, "unit rank": {"n_terms": (1,), "refit": True}}


@dataclass(frozen=True)
class Scores:
    """Scores of a method in the outer folds, and what it chose and said in each."""

    scores: list[float]
    seconds: float
    info: dict[str, list[Any]] = field(default_factory=dict)


def folds(y: Array, groups: Array | None, classify: bool, seed: int) -> Folds:
    """Shuffled folds, stratified for classes, that keep groups whole."""
    if groups is not None:
        return _group_folds(y, groups, classify, seed)
    splitter = (StratifiedKFold if classify else KFold)(N_FOLDS, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros((len(y), 1)), y))


def _group_folds(y: Array, groups: Array, classify: bool, seed: int) -> Folds:
    """Deal shuffled groups to the folds in turn, those with a majority of one class first.

    ``StratifiedGroupKFold`` gives the same folds for every seed if groups differ in size.
    """
    names, member = np.unique(groups, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(names))
    if classify:
        majority = np.round(np.bincount(member, y) / np.bincount(member))
        order = order[np.argsort(majority[order], kind="stable")]
    fold = np.empty(len(names), dtype=int)
    fold[order] = np.arange(len(names)) % N_FOLDS
    held_out = [fold[member] == number for number in range(N_FOLDS)]
    return [(np.flatnonzero(~test), np.flatnonzero(test)) for test in held_out]


def fit_fastr(X: Array, y: Array, inner: Folds, classify: bool, own: Mapping[str, Any]) -> Chosen:
    """Let this library choose, and keep what it says about its reference."""
    kind = FasTRClassifierCV if classify else FasTRRegressorCV
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = kind(cv=inner, random_state=0, **own).fit(X, y)
    reference = getattr(model, "reference_score_", None)
    info = {
        "n_terms": int(model.n_terms_),
        "reference_score": None if reference is None else float(reference),
        "reference_is_better": bool(getattr(model, "reference_is_better_", False)),
        "warnings": sorted({warning.category.__name__ for warning in caught}),
    }
    return (model.decision_function if classify else model.predict), info


def fit_ridge(X: Array, y: Array, inner: Folds, classify: bool) -> Chosen:
    """Fit a ridge to the flattened samples."""
    if classify:
        model = LogisticRegression(max_iter=2000)
        return _search(model, {"C": L2_STRENGTHS}, X, y, inner, "roc_auc")
    return _search(Ridge(), {"alpha": RIDGE_ALPHAS}, X, y, inner, "r2")


def fit_lasso(X: Array, y: Array, inner: Folds, classify: bool) -> Chosen:
    """Fit a lasso to the flattened samples."""
    if classify:
        model = LogisticRegression(solver="liblinear", random_state=0, **_l1_only())
        return _search(model, {"C": L1_STRENGTHS}, X, y, inner, "roc_auc")
    model = LassoCV(cv=inner, max_iter=5000).fit(_flat(X), y)
    return lambda X: model.predict(_flat(X)), {"alpha": float(model.alpha_)}


def _l1_only() -> dict[str, Any]:
    """Ask for the lasso's penalty, in the words of this scikit-learn."""
    deprecated = signature(LogisticRegression).parameters["penalty"].default == "deprecated"
    return {"l1_ratio": 1.0} if deprecated else {"penalty": "l1"}


def _search(
    model: Any, grid: dict[str, Array], X: Array, y: Array, inner: Folds, scoring: str
) -> Chosen:
    """Choose the strength of a penalty in the inner folds."""
    search = GridSearchCV(model, grid, cv=inner, scoring=scoring).fit(_flat(X), y)
    predict = search.predict if scoring == "r2" else search.decision_function
    return lambda X: predict(_flat(X)), {k: float(v) for k, v in search.best_params_.items()}


def _flat(X: Array) -> Array:
    return X.reshape(len(X), -1)


def fit(
    method: str, X: Array, y: Array, inner: Folds, classify: bool, own: Mapping[str, Any]
) -> Chosen:
    """Choose and fit a peer by its name, anything else with this library and its arguments."""
    if method in PEERS:
        return {"ridge": fit_ridge, "lasso": fit_lasso}[method](X, y, inner, classify)
    return fit_fastr(X, y, inner, classify, own)


def evaluate(data: Tensors, seed: int, method: str, own: Mapping[str, Any]) -> Scores:
    """Score a method in every outer fold."""
    begin, scores, chosen = time.perf_counter(), [], []
    for train, test in folds(data.y, data.groups, data.classify, seed):
        score, info = _evaluate_fold(data, seed, method, own, train, test)
        scores.append(score)
        chosen.append(info)
    info = {name: [one[name] for one in chosen] for name in chosen[0]}
    return Scores(scores, time.perf_counter() - begin, info)


def _evaluate_fold(
    data: Tensors, seed: int, method: str, own: Mapping[str, Any], train: Array, test: Array
) -> tuple[float, dict[str, Any]]:
    """Choose and fit on the training samples, score on the others."""
    scaler = TensorScaler().fit(data.X[train])
    groups = None if data.groups is None else data.groups[train]
    inner = folds(data.y[train], groups, data.classify, seed)
    X = scaler.transform(data.X[train])
    predict, info = fit(method, X, data.y[train], inner, data.classify, own)
    score = roc_auc_score if data.classify else r2_score
    return float(score(data.y[test], predict(scaler.transform(data.X[test])))), info
