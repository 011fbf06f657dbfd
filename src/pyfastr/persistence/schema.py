"""What the attributes of a fitted model must be, so that whatever loads also predicts."""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from pyfastr.estimators.folds import HeldOut
from pyfastr.estimators.reference import Reference
from pyfastr.persistence.errors import RefusedError
from pyfastr.persistence.image_schema import NEEDED_OF_IMAGES, box_shape, check_images
from pyfastr.persistence.registry import TWINS
from pyfastr.solver.design import Design
from pyfastr.solver.rounds import Starts

_INPUT = ("tensor_shape_in_", "n_features_in_")
# What a choice takes over from its best estimator.
SHOWN = ("factors_", "scales_", "intercept_", "covariate_coef_", "classes_", "calibration_")
# What its table has beside the points and the scores of each fold.
_COLUMNS = {"param_n_terms", "param_ridge", "param_threshold", "mean_test_score", "std_test_score"}

Holds = Callable[[Any, Any], bool]


@dataclass(frozen=True)
class Rule:
    """What is expected of an attribute, and whether it holds for a value and its model."""

    expected: str
    holds: Holds


def _is_count(value: Any, least: int = 0) -> bool:
    whole = isinstance(value, int | np.integer) and type(value) is not bool
    return whole and bool(value >= least)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and type(value) is not bool


def _is_finite(value: Any) -> bool:
    return _is_number(value) and isfinite(value)


def _is_array(value: Any, ndim: int, kinds: str = "biuf") -> bool:
    return isinstance(value, np.ndarray) and value.ndim == ndim and value.dtype.kind in kinds


def _is_finite_array(value: Any, ndim: int) -> bool:
    typed = _is_array(value, ndim, "f") and value.dtype in (np.float32, np.float64)
    return typed and bool(np.isfinite(value).all())


def _n_outputs(model: Any) -> int | None:
    """Return how many outputs the scales of a model are of; None if they have no such axis."""
    scales = getattr(model, "scales_", None)
    return len(scales) if isinstance(scales, np.ndarray) and scales.ndim == 2 else None


def _axes(model: Any) -> int:
    """Return how many axes come before those of one output."""
    return 0 if _n_outputs(model) is None else 1


def _for_each(holds: Holds) -> Holds:
    """Return whether something holds, of each of several outputs in a list or an array."""

    def hold(value: Any, model: Any) -> bool:
        n_outputs = _n_outputs(model)
        if n_outputs is None:
            return holds(value, model)
        # The numbers of an array as Python has them.
        values = value.tolist() if isinstance(value, np.ndarray) else value
        listed = type(values) is list and len(values) == n_outputs
        return listed and all(holds(own, model) for own in values)

    return hold


def _is_shape(value: Any, model: Any) -> bool:
    return type(value) is tuple and len(value) > 0 and all(_is_count(p, 1) for p in value)


def _are_factors(value: Any, model: Any) -> bool:
    """Matrices of one type and number of columns, a row for each slice of their mode.

    Those of several outputs are stacked.
    """
    shape, axes = getattr(model, "tensor_shape_in_", ()), _axes(model)
    if type(value) is not list or len(value) != len(shape):
        return False
    if not all(_is_finite_array(f, axes + 2) for f in value):
        return False
    alike = {(f.dtype, f.shape[:axes], f.shape[-1]) for f in value}
    return len(alike) == 1 and tuple(f.shape[-2] for f in value) == shape and value[0].shape[-1] > 0


def _are_scales(value: Any, model: Any) -> bool:
    factors, axes = getattr(model, "factors_", None), _axes(model)
    if not factors or not _is_finite_array(value, axes + 1):
        return False
    shape = (*factors[0].shape[:axes], factors[0].shape[-1])
    return shape == value.shape and value.size > 0 and value.dtype == factors[0].dtype


def _are_coefficients(value: Any, model: Any) -> bool:
    return _is_finite_array(value, _axes(model) + 1) and (
        not _axes(model) or len(value) == _n_outputs(model)
    )


def _are_tied(value: Any, model: Any) -> bool:
    """Whether two modes have one factor, up to the signs of its columns."""
    shape, factors = getattr(model, "tensor_shape_in_", ()), getattr(model, "factors_", None)
    if value is None:
        return True
    named = type(value) is tuple and len(value) == 2 and all(map(_is_count, value))
    if not named or factors is None or not value[0] < value[1] < len(shape):
        return False
    return all(np.array_equal(np.abs(factors[value[0]]), np.abs(factors[m])) for m in value)


def _are_classes(value: Any, model: Any) -> bool:
    # Those who ask a model for its classes go on to ask for probabilities.
    labels = _is_array(value, 1, "biufUO") and hasattr(model, "predict_proba")
    expected = _n_outputs(model) or 2
    return labels and len(value) == expected == len(set(value.tolist()))


def _are_names(value: Any, length: int | None) -> bool:
    named = _is_array(value, 1, "UO") and all(isinstance(n, str) for n in value.tolist())
    return named and length in (None, len(value))


def _are_covariate_names(value: Any, model: Any) -> bool:
    own = getattr(model, "covariate_coef_", None)
    return _are_names(value, None if own is None else own.shape[-1])


def _are_mode_names(value: Any, model: Any) -> bool:
    named = type(value) is tuple and all(isinstance(name, str) for name in value)
    return named and len(value) == len(model.tensor_shape_in_)


def _are_mode_coords(value: Any, model: Any) -> bool:
    shape = model.tensor_shape_in_
    if type(value) is not list or len(value) != len(shape):
        return False
    pairs = zip(value, shape, strict=True)
    return all(c is None or (isinstance(c, np.ndarray) and c.shape == (p,)) for c, p in pairs)


def _is_history(value: Any, model: Any) -> bool:
    ndim = _axes(model) + 1
    return type(value) is dict and all(
        isinstance(name, str) and _is_array(numbers, ndim) for name, numbers in value.items()
    )


def _are_starts(value: Any, model: Any) -> bool:
    if not isinstance(value, Starts):
        return False
    counts = (value.n_starts, value.n_polished, value.n_hits, value.n_rounds)
    numbers = _is_number(value.gap) and isinstance(value.sure, bool | np.bool_)
    chance = value.confidence
    known = chance is None or (_is_number(chance) and 0 <= chance <= 1)
    return all(map(_is_count, counts)) and numbers and known and _is_array(value.losses, 1, "f")


def _is_design(value: Any, model: Any) -> bool:
    """Whether what samples say of a fit is missing, or fits the modes."""
    if value is None:
        return True
    if not isinstance(value, Design) or not _is_finite_array(value.leverage, 1):
        return False
    n_modes = len(getattr(model, "tensor_shape_in_", ()))
    pairs = _is_array(value.alike, 2, "i") and value.alike.shape == (n_modes, 2)
    alike = _is_finite_array(value.correlation, 1) and len(value.correlation) == n_modes
    return pairs and alike and value.leverage.size > 0 and _is_finite(value.n_effective)


def _are_held_out(value: Any, model: Any) -> bool:
    if not isinstance(value, HeldOut):
        return False
    numbers, values = (value.samples, value.folds), (value.target, value.prediction)
    one = all(_is_array(own, 1) and own.size > 0 for own in numbers)
    several = all(_is_array(own, 1) or _is_array(own, 1 + _axes(model)) for own in values)
    return one and several and len({len(own) for own in (*numbers, *values)}) == 1


def _is_reference(value: Any, model: Any) -> bool:
    """Whether flattened ridge regression is missing, or all that is told of it is there."""
    if value is None:
        return True
    if not isinstance(value, Reference) or not _are_held_out(value.held_out, model):
        return False
    numbers = (
        *(value.alpha, value.score, value.lead, value.lead_error),
        *(value.unseen_score, value.unseen_score_of_choice),
    )
    columns = value.results.values() if type(value.results) is dict else (None,)
    tables = _is_array(value.scores, 1, "f") and all(_is_array(own, 1) for own in columns)
    known = _is_count(value.best_index) and isinstance(value.is_better, bool)
    return all(map(_is_number, numbers)) and tables and known


def _is_statistic(value: Any, model: Any) -> bool:
    """Whether means or scales are finite and spread over a sample."""
    if value is None:
        return True
    shape = getattr(model, "tensor_shape_in_", ())
    if not _is_finite_array(value, len(shape)):
        return False
    return all(own in (1, p) for own, p in zip(value.shape, shape, strict=True))


def _are_supports(value: Any, model: Any) -> bool:
    shape = getattr(model, "tensor_shape_in_", ())
    listed = type(value) is list and all(_is_array(own, 1, "b") for own in value)
    return listed and tuple(map(len, value)) == shape


def _is_best(value: Any, model: Any) -> bool:
    """Whether the best estimator is of the right class, and the choice shows what it has."""
    if type(value).__name__ != TWINS.get(type(model).__name__):
        return False
    own, best = vars(model), vars(value)
    return all(_are_equal(own.get(name), best.get(name)) for name in (*SHOWN, *_INPUT))


def _are_equal(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_are_equal, a, b))
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else bool(a == b)


def _is_table(value: Any, model: Any) -> bool:
    """Whether a table has a row for every point, names the points, and scores them in all folds."""
    if type(value) is not dict or type(value.get("params")) is not list:
        return False
    path, n_points = getattr(model, "scores_path_", None), len(value["params"])
    n_folds = path.shape[-1] if isinstance(path, np.ndarray) and path.ndim else 0
    scored = all(f"split{fold}_test_score" in value for fold in range(n_folds))
    columns = (own for name, own in value.items() if name != "params")
    full = n_points > 0 and all(_is_array(own, 1) and len(own) == n_points for own in columns)
    return full and scored and value.keys() >= _COLUMNS


def _is_index(value: Any, model: Any) -> bool:
    table = getattr(model, "cv_results_", {"params": []})
    return _is_count(value) and value < len(table["params"])


RULES = {
    "tensor_shape_in_": Rule("a tuple of positive whole numbers", _is_shape),
    "n_features_in_": Rule(
        "the size of the first mode", lambda v, m: _is_count(v) and v == m.tensor_shape_in_[0]
    ),
    "symmetric_modes_": Rule("None, or two modes whose factors are equal up to sign", _are_tied),
    "n_samples_in_": Rule("a positive whole number", lambda v, m: _is_count(v, 1)),
    "fingerprint_": Rule("text", lambda v, m: isinstance(v, str)),
    "feature_names_in_": Rule(
        "a name for each column", lambda v, m: _are_names(v, m.tensor_shape_in_[0])
    ),
    "mode_names_in_": Rule("a name for each mode", _are_mode_names),
    "mode_coords_in_": Rule("coordinates that fit the modes", _are_mode_coords),
    "factors_": Rule("finite float matrices that fit tensor_shape_in_", _are_factors),
    "scales_": Rule("a finite number for each column of the factors", _are_scales),
    "intercept_": Rule("a finite number", _for_each(lambda v, m: _is_finite(v))),
    "covariate_coef_": Rule("a finite float vector", _are_coefficients),
    "covariate_names_in_": Rule("a name for each covariate", _are_covariate_names),
    "classes_": Rule("different labels, two or one for each output, of a classifier", _are_classes),
    "calibration_": Rule("a positive number", lambda v, m: _is_finite(v) and v > 0),
    "n_iter_": Rule("a whole number", _for_each(lambda v, m: _is_count(v))),
    "converged_": Rule("True or False", _for_each(lambda v, m: isinstance(v, bool))),
    "history_": Rule("a dict of vectors", _is_history),
    "starts_": Rule("a complete record of starts", _for_each(_are_starts)),
    "design_": Rule(
        "None, or leverages and pairs of slices that fit the modes",
        lambda v, m: v is None or _for_each(_is_design)(v, m),
    ),
    "evidence_": Rule("a number", _for_each(lambda v, m: _is_number(v))),
    "best_estimator_": Rule("the model whose coefficient the choice shows", _is_best),
    "threshold_": Rule("a finite number", lambda v, m: _is_finite(v)),
    "ridge_": Rule("a finite number", lambda v, m: _is_finite(v)),
    "n_terms_": Rule("a positive whole number", lambda v, m: _is_count(v, 1)),
    "best_score_": Rule("a number", lambda v, m: _is_number(v)),
    "cv_results_": Rule("parameters and scores, in all folds, of each point", _is_table),
    "best_index_": Rule("the number of a point of cv_results_", _is_index),
    "best_params_": Rule("a dict", lambda v, m: type(v) is dict),
    "averaged_": Rule("a vector of whole numbers", lambda v, m: _is_array(v, 1, "iu")),
    "agreement_": Rule("a number", lambda v, m: _is_number(v)),
    "refitted_": Rule("True or False", lambda v, m: isinstance(v, bool)),
    "choice_": Rule("text", lambda v, m: isinstance(v, str)),
    "scores_path_": Rule(
        "an array of four axes", lambda v, m: _is_array(v, 4, "f") and v.shape[-1] > 0
    ),
    "output_scores_": Rule("an array of three axes", lambda v, m: _is_array(v, 3, "f")),
    "held_out_": Rule("vectors of one length", _are_held_out),
    "reference_": Rule("None, or a complete record of a ridge regression", _is_reference),
    "reference_score_": Rule("a number", lambda v, m: _is_number(v)),
    "reference_is_better_": Rule("True or False", lambda v, m: isinstance(v, bool)),
    "reference_missing_": Rule("text", lambda v, m: isinstance(v, str)),
    "mean_": Rule("None, or finite numbers that fit tensor_shape_in_", _is_statistic),
    "scale_": Rule(
        "None, or positive numbers that fit tensor_shape_in_",
        lambda v, m: _is_statistic(v, m) and (v is None or bool((v > 0).all())),
    ),
    "support_": Rule("booleans for the slices of each mode", _are_supports),
    "n_samples_seen_": Rule("a positive number", lambda v, m: _is_finite(v) and v > 0),
}
_LINEAR = (*_INPUT, "factors_", "scales_", "intercept_")
_LABELS = ("classes_", "calibration_")
_CHOICE = (
    *(*_LINEAR, "best_estimator_", "threshold_", "ridge_", "n_terms_", "cv_results_"),
    *("best_score_", "best_index_", "best_params_", "averaged_", "scores_path_"),
)
NEEDED = {
    "FasTRRegressor": _LINEAR,
    "FasTRClassifier": (*_LINEAR, *_LABELS),
    "FasTRRegressorCV": _CHOICE,
    "FasTRClassifierCV": (*_CHOICE, *_LABELS),
    "TensorScaler": (*_INPUT, "mean_", "scale_", "n_samples_seen_"),
    "SliceSelector": (*_INPUT, "estimator_", "support_"),
    **NEEDED_OF_IMAGES,
}


def check(model: Any) -> None:
    """Refuse a model, or a part of one, that could not predict."""
    if isinstance(model, Pipeline):
        _check_pipeline(model)
        return
    own, name = vars(model), type(model).__name__
    missing = [n for n in NEEDED.get(name, ()) if n not in own]
    if missing:
        raise RefusedError(f"{name} has no {missing[0]}. Fit and save it again.")
    _check_params(model)
    for attribute, rule in RULES.items():
        if attribute in own and not rule.holds(own[attribute], model):
            raise RefusedError(
                f"{attribute} of {name} is {_shown(own[attribute])}; expected {rule.expected}. "
                "Fit and save the model again."
            )
    # A parameter may be an estimator too, and need not be fitted.
    for attribute, value in own.items():
        if attribute.endswith("_") and type(value).__name__ in NEEDED:
            check(value)
    check_images(model)


def _check_params(model: Any) -> None:
    """Let scikit-learn judge the parameters, where they have constraints."""
    if not hasattr(model, "_parameter_constraints"):
        return
    try:
        model._validate_params()
    except ValueError as error:
        words = textwrap.shorten(str(error), 400)
        raise RefusedError(f"{words} Set it with set_params and save the model again.") from None


def _shown(value: Any) -> str:
    """Return a value in one short line."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    return textwrap.shorten(repr(value), 100)


def _check_pipeline(pipeline: Pipeline) -> None:
    """Check each step, and that it takes what the one before it gives."""
    given = None
    for name, step in pipeline.steps:
        check(step)
        taken = getattr(step, "tensor_shape_in_", given)
        if given is not None and taken != given:
            raise RefusedError(
                f"step {name!r} of its pipeline takes samples of shape {taken}, but is given "
                f"{given}. Fit and save the pipeline again."
            )
        given = _shape_given(step, taken)


def _shape_given(step: Any, taken: Any) -> Any:
    """Return the shape of the samples that a step gives, where it is known."""
    if type(step).__name__ == "NiftiTransformer":
        return box_shape(step)
    if type(step).__name__ == "SliceSelector":
        return tuple(int(np.count_nonzero(own)) for own in step.support_)
    return taken
