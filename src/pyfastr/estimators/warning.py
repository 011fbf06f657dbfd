"""Warnings that point at the user's own line."""

import contextlib
import sys
import warnings
from pathlib import Path

import sklearn

_OURS = (
    str(Path(__file__).parents[1]),
    str(Path(sklearn.__file__).parent),
    # Between a context of ours and the function that it is used in.
    contextlib.__file__,
)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside of this package and of scikit-learn.

    Parameters
    ----------
    message : str
    category : type of Warning, default=UserWarning
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
