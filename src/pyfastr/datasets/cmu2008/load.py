"""Trials of one participant of CMU2008, from a file."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from pyfastr.datasets.cmu2008.classes import (
    Categories,
    Classes,
    check_categories,
    class_indices,
)
from pyfastr.datasets.cmu2008.contents import Contents, read_contents
from pyfastr.datasets.cmu2008.layout import (
    CATEGORIES,
    PAGE,
    check_subject,
    mni_affine,
    subject_in_name,
)

_DESCR = """CMU2008: functional MRI of participants who think of nouns

Participant {subject}: {n_trials} trials, classes {classes}.

Nine participants (P1 to P9) saw the drawings and names of 60 nouns, five of each of twelve
categories, in six epochs, and thought of what each means. A trial is the mean percent signal
change of four images on a grid of 51×61×23 voxels of 3.125×3.125×6 mm in MNI space; voxels
outside `mask` were not measured and are 0. Trials of one epoch share the noise of its time: use
`epoch` as groups in cross-validation.

T. M. Mitchell, S. V. Shinkareva, A. Carlson, K.-M. Chang, V. L. Malave, R. A. Mason and
M. A. Just, "Predicting human brain activity associated with the meanings of nouns", Science
320:1191-1195, 2008. Files: {page}
"""


def load_cmu2008(
    path: str | PathLike[str],
    *,
    categories: Categories = "tools-animals",
    subject: int | str | None = None,
) -> Bunch:
    """Load the trials of one participant of CMU2008 from a file.

    The default is the task of the paper: "tools" (tool and furniture) against "animals"
    (animal and insect), 60 trials each. Only the trials of the classes asked for are built,
    34 MB for the default and 103 MB for all.

    Parameters
    ----------
    path : path-like
        A file ``data-science-P<k>.mat`` as published.
    categories : {"tools-animals", "all"}, sequence of str, mapping or None, \
default="tools-animals"
        The classes. A sequence of categories, such as ``("vehicle", "building")``, makes each
        a class; a mapping, such as ``{"food": ["vegetable"], "body": ["bodypart",
        "clothing"]}``, names groups of them. "all" and None are the twelve categories.
    subject : int or str, optional
        The participant that is expected, 1 or "P1". By default the one in the file's name,
        if it is named as published.

    Returns
    -------
    Bunch
        With these fields:

        - data : ndarray of float32 of shape (n_trials, 51, 61, 23). The trials in the order of the
          file; 0 outside the mask. The files have float64: half the memory, and far finer than the
          noise.
        - target : ndarray of int of shape (n_trials,). Index into `target_names`: by default 0 for
          tools, 1 for animals.
        - target_names : list of str.
        - cond, word : ndarray of str of shape (n_trials,). Category and noun.
        - epoch : ndarray of int of shape (n_trials,). 1 to 6: the presentation of all nouns that a
          trial belongs to, to group by.
        - mask : ndarray of bool of shape (51, 61, 23).
        - affine : ndarray of shape (4, 4). From voxels counted from 0 to MNI millimetres.
        - subject, DESCR : str.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, or is that of another participant: the message says which field
        is wrong, and what to do. Values are checked in the trials asked for.

    Examples
    --------
    >>> from pyfastr.datasets import load_cmu2008
    >>> trials = load_cmu2008("data-science-P1.mat")  # doctest: +SKIP
    >>> trials.data.shape, trials.target_names  # doctest: +SKIP
    ((120, 51, 61, 23), ['tools', 'animals'])
    """
    classes = check_categories(categories)
    file = _existing_file(path)
    expected = subject_in_name(file) if subject is None else check_subject(subject)
    contents = read_contents(file)
    _check_same_subject(contents, expected)
    return _as_bunch(contents, classes)


def _existing_file(path: Any) -> Path:
    """Return the path of a file that exists."""
    try:
        file = Path(path).expanduser()
    except TypeError as error:
        raise TypeError(f"path is {path!r}; expected the path of a file.") from error
    if not file.is_file():
        raise FileNotFoundError(
            f"path is {str(file)!r}, and there is no such file; expected data-science-P<k>.mat "
            f"from {PAGE}. fetch_cmu2008 downloads it."
        )
    return file


def _check_same_subject(contents: Contents, expected: str | None) -> None:
    """Refuse the file of another participant than was asked for."""
    if expected is not None and contents.subject != expected:
        raise ValueError(
            f"{contents.path}: meta.subject is {contents.subject!r}; expected {expected!r}. "
            f"Rename the file to data-science-{contents.subject}.mat if that is what it is, and "
            f"download data-science-{expected}.mat from {PAGE}."
        )


def _as_bunch(contents: Contents, classes: Classes) -> Bunch:
    """Build the trials of the classes."""
    all_targets = class_indices(contents.cond, classes)
    _check_every_category(contents, classes)
    trials = np.flatnonzero(all_targets >= 0)
    counts = np.bincount(all_targets[trials])
    spelled = ", ".join(
        f"{name} ({'+'.join(group)}, {count} trials)"
        for (name, group), count in zip(classes.items(), counts, strict=True)
    )
    return Bunch(
        data=contents.images(trials),
        target=all_targets[trials],
        target_names=list(classes),
        cond=contents.cond[trials],
        word=contents.word[trials],
        epoch=contents.epoch[trials],
        mask=contents.mask(),
        affine=mni_affine(),
        subject=contents.subject,
        DESCR=_DESCR.format(
            subject=contents.subject, n_trials=len(trials), classes=spelled, page=PAGE
        ),
    )


def _check_every_category(contents: Contents, classes: Classes) -> None:
    """Refuse a file that lacks trials of a category asked for."""
    found = set(contents.cond.tolist())
    for group in classes.values():
        for name in group:
            if name not in found:
                raise ValueError(
                    f"{contents.path}: info.cond has no trial of {name!r} (found: "
                    f"{', '.join(c for c in CATEGORIES if c in found)}). Choose categories that "
                    f"the file has, or download it again from {PAGE}."
                )
