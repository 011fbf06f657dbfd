"""What the parameters of a choice may be, and what it shares with the model that it chooses."""

from numbers import Integral
from typing import Any

from sklearn.metrics import get_scorer_names

from pyfastr.estimators.fitting import CONSTRAINTS
from pyfastr.estimators.sklearn_private import Interval, StrOptions

# Parameters that a CV estimator passes on to the model it chooses.
SHARED = (
    *("init", "n_init", "sweep", "max_iter", "tol", "fit_intercept", "refit_support", "symmetry"),
    "verbose",
)
# Fitted attributes that it takes over from that model.
FITTED = (
    *("factors_", "scales_", "intercept_", "covariate_coef_"),
    *("n_iter_", "converged_", "history_", "starts_", "design_"),
)

# What only a choice by folds has.
OF_FOLDS = (
    *("agreement_", "held_out_", "output_scores_"),
    *("reference_", "reference_score_", "reference_is_better_", "reference_missing_"),
)

CV_CONSTRAINTS: dict[str, list[Any]] = {
    **{name: CONSTRAINTS[name] for name in (*SHARED, "random_state", "checkpoint")},
    "init": [StrOptions({"mixed", "spectral", "random"})],
    "refit_support": ["boolean"],
    "thresholds": ["array-like", StrOptions({"auto"})],
    "ridges": ["array-like", StrOptions({"auto"})],
    "n_terms": ["array-like", Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "cv": ["cv_object"],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    "criterion": [StrOptions({"cv", "evidence"})],
    "one_standard_error": ["boolean"],
    "refit": ["boolean", StrOptions({"auto"})],
}
