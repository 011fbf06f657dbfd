"""Classes as users name them, and the labels of -1 and 1 that the solver is given."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from pyfastr.estimators.reading import check_as_many, first_line
from pyfastr.estimators.validation import Samples, check_tensor
from pyfastr.sources import computed

Array = NDArray[Any]

EXPECTED = "a class for each sample, as text, whole numbers or booleans"


def check_tensor_and_classes(
    estimator: Any, X: Any, y: Any, *, multi_class: bool = False
) -> tuple[Samples, Array, Array, Array]:
    """Return checked samples and y, its classes, and the labels as -1 and 1.

    Of more than two classes, labels have a row for each.
    """
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    X = check_tensor(estimator, X, reset=True, min_samples=2)
    y = _read_classes(computed(y))
    check_as_many("y", len(y), X.shape[0])
    return X, y, *_labels(y, multi_class)


def class_weights(class_weight: Any, y: Array, classes: Array) -> Array:
    """Return the weights of samples that those of their classes make."""
    if isinstance(class_weight, dict):
        known = set(classes.tolist())
        # Classes that samples do not have do no harm where all that they have are weighed.
        is_strange = bool(class_weight.keys() - known) and bool(known - class_weight.keys())
        if is_strange or not all(0 <= own < np.inf for own in class_weight.values()):
            raise ValueError(
                f"class_weight is {class_weight!r}; expected weights of 0 or more for classes "
                f"among {classes.tolist()}."
            )
    weights: Array = compute_sample_weight(class_weight, y)
    return weights


def check_all_classes(y: Array, weights: Array, classes: Array) -> None:
    """Refuse weights that leave nothing of a class."""
    for label, name in zip(classes, classes.tolist(), strict=True):
        if not weights[y == label].any():
            raise ValueError(
                f"sample_weight and class_weight leave no sample of class {name!r}; expected "
                "positive weights in all classes."
            )


def _read_classes(given: Any) -> Array:
    """Return the classes of samples as an array of one axis."""
    try:
        y: Array = column_or_1d(given, warn=True)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y is no list of classes ({first_line(error)}); expected {EXPECTED}."
        ) from error
    numbers = y.astype(float) if y.dtype.kind == "f" else np.zeros(len(y))
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        kind = "NaN" if np.isnan(numbers[bad[0]]) else "infinity"
        raise ValueError(
            f"Input y contains {kind}: first at sample {bad[0]}, {bad.size} such values in all; "
            f"expected {EXPECTED}. Drop these samples before fitting."
        )
    return y


def _labels(y: Array, multi_class: bool) -> tuple[Array, Array]:
    """Return the classes, and labels -1 and 1: of more than two classes a row for each."""
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise ValueError(
            f"{str(error).partition('.')[0]}: y has values such as {y.tolist()[0]!r}; expected "
            f"{EXPECTED}. Numbers are predicted by FasTRRegressor."
        ) from error
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) > 2 and not multi_class:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}: y has {len(classes)} classes; expected 2. Use "
            "sklearn.multiclass.OneVsRestClassifier for more."
        )
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}; expected samples of 2 or more classes "
            "to tell apart."
        )
    if len(classes) > 2:
        return classes, 2.0 * (codes == np.arange(len(classes))[:, None]) - 1
    return classes, 2.0 * codes - 1
