"""Which trials make which class: the argument `categories`."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from pyfastr.datasets.cmu2008.layout import CATEGORIES, TOOLS_AND_ANIMALS, Array

Categories = str | Mapping[str, str | Sequence[str]] | Sequence[str] | None
Classes = dict[str, tuple[str, ...]]

_FORMS = (
    'expected "tools-animals", "all", a sequence of at least two categories, or a dict from the '
    "name of a class to its category or categories"
)


def check_categories(categories: Any) -> Classes:
    """Return the categories of each class, in the order of the class indices.

    Parameters
    ----------
    categories : {"tools-animals", "all"}, sequence of str, mapping or None
        As `load_cmu2008` takes it.

    Returns
    -------
    dict of str to tuple of str
    """
    classes = _as_classes(categories)
    _check_names(list(chain.from_iterable(classes.values())))
    if len(classes) < 2 or not all(classes.values()):
        raise ValueError(f"categories is {categories!r}; {_FORMS}.")
    return classes


def _as_classes(categories: Any) -> Classes:
    """Bring the forms of the argument into one."""
    if categories is None or (isinstance(categories, str) and categories == "all"):
        return {name: (name,) for name in CATEGORIES}
    if isinstance(categories, str) and categories == "tools-animals":
        return dict(TOOLS_AND_ANIMALS)
    if isinstance(categories, Mapping):
        return {
            str(name): (group,) if isinstance(group, str) else tuple(group)
            for name, group in categories.items()
        }
    if isinstance(categories, Sequence) and not isinstance(categories, str):
        _check_names(categories)
        return {name: (name,) for name in categories}
    raise ValueError(f"categories is {categories!r}; {_FORMS}.")


def _check_names(names: Sequence[Any]) -> None:
    """Refuse categories that do not exist or would be in two classes."""
    for name in names:
        if name not in CATEGORIES:
            raise ValueError(
                f"categories has {name!r}; the categories of CMU2008 are {', '.join(CATEGORIES)}."
            )
        if names.count(name) > 1:
            raise ValueError(f"categories has {name!r} more than once; expected it in one class.")


def class_indices(cond: Array, classes: Classes) -> Array:
    """Return the class of each trial, or -1 where its category is in none.

    Parameters
    ----------
    cond : ndarray of str of shape (n_trials,)
    classes : dict of str to tuple of str

    Returns
    -------
    ndarray of int64 of shape (n_trials,)
    """
    target = np.full(len(cond), -1, dtype=np.int64)
    for index, group in enumerate(classes.values()):
        target[np.isin(cond, group)] = index
    return target
