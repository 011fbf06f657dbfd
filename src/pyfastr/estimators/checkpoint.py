"""Checkpoints: how far a long fit is, in a file from which the same call goes on."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.estimators.atomic import replacing
from pyfastr.estimators.warning import warn
from pyfastr.solver.journal import Entry, Journal, Tree, journaling

Array = NDArray[Any]
Key = dict[str, Any]

FORMAT = "pyfastr checkpoint 1"
# Parameters that do not change what is fitted.
OF_NO_ACCOUNT = ("checkpoint", "verbose")
# Where a document stands for an array, by its number.
ARRAY = "#array"
# Seconds between two writings.
INTERVAL = 120.0
WHAT_TO_DO = "Delete the file to begin anew, or pass another path to keep it."


def check_checkpoint(estimator: Any) -> None:
    """Refuse a checkpoint that could not be written, or not be gone on from."""
    if estimator.checkpoint is None:
        return
    given, path, seed = str(estimator.checkpoint), _path(estimator), estimator.random_state
    if path.is_dir():
        raise ValueError(f"checkpoint is {given!r}, a directory; expected the path of a file.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ValueError(
            f"checkpoint is {given!r}, but {path.parent} is no directory that can be written to; "
            "create it, or pass another path."
        )
    if not isinstance(seed, Integral):
        raise ValueError(
            f"random_state is {seed!r} and checkpoint is {given!r}, but a fit can only go on with "
            "the random numbers that it began with; expected an int for random_state, such as 0."
        )


@contextmanager
def checkpointed(estimator: Any, folds: Sequence[Any] = ()) -> Iterator[None]:
    """Write how far the fit in the block is, go on from there, and clean up when it has ended.

    Parameters
    ----------
    estimator : FasTR estimator
        Whose data have been checked.
    folds : sequence of pairs of arrays
        What a choice is made by.
    """
    if estimator.checkpoint is None:
        with journaling(None):
            yield
        return
    file = CheckpointFile(_path(estimator), _key(estimator, folds))
    known = file.read()
    journal = Journal(file.try_to_write, known, estimator._checkpoint_interval)
    try:
        if not known:
            # What cannot be written is to be known before hours of work, not after.
            file.begin()
        with journaling(journal):
            yield
    except BaseException as error:
        with suppress(UserWarning):
            journal.write()
        if file.path.exists():
            error.add_note(f"How far the fit was is in {file.path}: the same call goes on there.")
        raise
    file.remove()


def _path(estimator: Any) -> Path:
    """Return where the checkpoint is, wherever the process goes meanwhile."""
    return Path(estimator.checkpoint).expanduser().absolute()


@dataclass(frozen=True)
class CheckpointFile:
    """Entries of a journal in a file of NumPy arrays and a JSON document, without pickles.

    Attributes
    ----------
    path : Path
    key : dict
        What a fit must have in common with that of the file.
    """

    path: Path
    key: Key

    def read(self) -> list[Entry]:
        """Return what the file has, or nothing if there is none; that of another fit is refused."""
        try:
            key, entries = self._read()
        except FileNotFoundError:
            return []
        # What reading raises has no common type if the file is cut short, damaged or another.
        except Exception as error:
            raise ValueError(
                f"checkpoint {self.path} cannot be read: it is damaged, or no checkpoint of "
                f"pyfastr ({error}). {WHAT_TO_DO}"
            ) from error
        if flaw := _difference(key, self.key):
            raise ValueError(f"checkpoint {self.path} is of another fit. {flaw} {WHAT_TO_DO}")
        return entries

    def _read(self) -> tuple[Key, list[Entry]]:
        """Return the key of the file and its entries."""
        with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        document = json.loads(arrays["document"].tobytes())
        if document["format"] != FORMAT:
            raise ValueError(f"its format is {document['format']!r:.60}")
        return document["key"], [Entry(**_with_arrays(e, arrays)) for e in document["entries"]]

    def write(self, entries: list[Entry]) -> None:
        """Put these entries in place of those that are there."""
        arrays: dict[int, tuple[int, Array]] = {}
        rows = [_without_arrays(vars(entry), arrays) for entry in entries]
        document = json.dumps({"format": FORMAT, "key": self.key, "entries": rows}).encode()
        numbered = {f"array_{number}": array for number, array in arrays.values()}
        with replacing(self.path) as file:
            np.savez(file, document=np.frombuffer(document, np.uint8), **numbered)  # type: ignore[arg-type]

    def begin(self) -> None:
        """Write that nothing is done yet, or refuse to begin."""
        try:
            self.write([])
        except OSError as error:
            raise OSError(
                f"checkpoint {self.path} cannot be written ({error}); expected a place with room "
                "for it. Free some space, or pass another path."
            ) from error

    def try_to_write(self, entries: list[Entry]) -> None:
        """Write, or say that it is not possible: that is no reason to end the fit."""
        try:
            self.write(entries)
        except OSError as error:
            warn(
                f"The checkpoint {self.path} could not be written ({error}). The fit goes on; the "
                "file is as it was before."
            )

    def remove(self) -> None:
        """Remove the file, or say that it is not possible."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            warn(f"The fit has ended, but its checkpoint {self.path} could not be removed: {error}")


def _without_arrays(tree: Tree, arrays: dict[int, tuple[int, Array]]) -> Tree:
    """Return a tree with numbers in place of its arrays; one that is there twice is kept once."""
    if isinstance(tree, np.ndarray):
        number, _ = arrays.setdefault(id(tree), (len(arrays), tree))
        return {ARRAY: number}
    if isinstance(tree, list):
        return [_without_arrays(item, arrays) for item in tree]
    if isinstance(tree, dict):
        return {name: _without_arrays(item, arrays) for name, item in tree.items()}
    return tree


def _with_arrays(tree: Tree, arrays: Mapping[str, Array]) -> Tree:
    """Return a tree with the arrays that numbers stand for."""
    if isinstance(tree, list):
        return [_with_arrays(item, arrays) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if ARRAY in tree:
        return arrays[f"array_{tree[ARRAY]}"]
    return {name: _with_arrays(item, arrays) for name, item in tree.items()}


def _key(estimator: Any, folds: Sequence[Any]) -> Key:
    """Return what a fit has to have in common with the one that it goes on with."""
    from pyfastr import __version__

    params = estimator.get_params(deep=False)
    if folds:
        params["cv"] = [part for fold in folds for part in fold]
    own = {name: _described(v) for name, v in params.items() if name not in OF_NO_ACCOUNT}
    made_by = {"pyfastr": __version__, "estimator": type(estimator).__name__}
    return {**made_by, "data": estimator.fingerprint_, **own}


def _described(value: Any) -> Any:
    """Describe a parameter so that equal ones are described alike, by any process."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return sorted(f"{name!r}: {item!r}" for name, item in value.items())
    if isinstance(value, np.ndarray | Sequence):
        return _digest(value)
    # The address of a function or an object is another in every process.
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _digest(values: Any) -> str:
    """Return a digest of numbers, arrays of them, or several such arrays."""
    digest = hashlib.blake2b(digest_size=8)
    for part in values:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.shape} {array.dtype}".encode() + array.tobytes())
    return digest.hexdigest()


def _difference(there: Key, here: Key) -> str:
    """Say in what two fits differ."""
    names = {"data": "X, y, sample_weight or covariates", "cv": "the folds of cv"}
    differ = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    plain = (str, int, float, bool, type(None))
    said = []
    for name in differ:
        values = there.get(name), here.get(name)
        shown = name not in names and all(isinstance(value, plain) for value in values)
        detail = f" ({values[0]!r} there, {values[1]!r} here)" if shown else ""
        said.append(names.get(name, name) + detail)
    return f"What differs: {'; '.join(said)}." if said else ""
