"""Why a model file is refused."""

from pathlib import Path


class ModelFileError(ValueError):
    """A model file cannot be read or written; the message names it, the reason and a remedy.

    Examples
    --------
    >>> from pyfastr.persistence import ModelFileError, load
    >>> try:
    ...     load("no such model.fastr")
    ... except ModelFileError as error:
    ...     print(error)
    Cannot load 'no such model.fastr': there is no such file. Check the path.
    """


class RefusedError(Exception):
    """What is wrong and what to do, from a part that does not know the file's name."""


class UnstorableError(Exception):
    """A value has no place in a model file."""


def foreign(what: str) -> RefusedError:
    """Refuse what is no model file."""
    return RefusedError(
        f"it is not a pyfastr model file, or is damaged: {what}. Expected a file that "
        "pyfastr.save has written."
    )


def unwritable(path: Path, error: OSError) -> ModelFileError:
    """Say that a file cannot be written."""
    return ModelFileError(
        f"Cannot write {str(path)!r}: {error.strerror or error}. Expected a path in a folder that "
        "exists and can be written to."
    )


def damaged(what: str) -> RefusedError:
    """Refuse a model file that does not hold what it should."""
    return RefusedError(
        f"the file is damaged or forged: {what}. Take another copy of it, or fit and save the "
        "model again."
    )
