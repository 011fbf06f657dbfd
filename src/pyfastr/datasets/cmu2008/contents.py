"""The fields of a CMU2008 file, checked one by one and in NumPy's terms."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyfastr.datasets.cmu2008.layout import CATEGORIES, SHAPE, SUBJECTS, Array, damage
from pyfastr.datasets.matfile import check_mat_file

VARIABLES = ("meta", "info", "data")
# The longest real file has 360 × 21764 values; a whole grid in each trial would be 26 million.
MOST_VALUES = 2**25
_META_FIELDS = (
    "subject",
    "ntrials",
    "nvoxels",
    "dimx",
    "dimy",
    "dimz",
    "colToCoord",
    "coordToCol",
)
_INFO_FIELDS = ("cond", "word", "epoch")


@dataclass(frozen=True)
class Contents:
    """What a file holds; voxels are counted from 0."""

    path: Path
    subject: str
    voxels: Array
    cond: Array
    word: Array
    epoch: Array
    rows: Array

    def mask(self) -> Array:
        """Return the voxels that were measured, as a boolean grid."""
        mask = np.zeros(SHAPE, dtype=bool)
        mask[tuple(self.voxels.T)] = True
        return mask

    def images(self, trials: Array) -> Array:
        """Return some trials on the grid, float32 and zero outside the mask.

        Only these trials are looked at and built.

        Parameters
        ----------
        trials : ndarray of int of shape (n,)

        Returns
        -------
        ndarray of float32 of shape (n, 51, 61, 23)
        """
        images = np.zeros((len(trials), *SHAPE), dtype=np.float32)
        for image, trial in zip(images, trials, strict=True):
            image[tuple(self.voxels.T)] = self._values(int(trial))
        return images

    def _values(self, trial: int) -> Array:
        """Return the voxel values of one trial, checked."""
        field = f"data{{{trial + 1}}}"
        row = _numbers(self.path, field, self.rows[trial])
        n_voxels = len(self.voxels)
        if row.shape not in ((1, n_voxels), (n_voxels, 1)):
            raise damage(self.path, field, f"is {_times(row)}", f"1×{n_voxels}, as meta.nvoxels")
        # A value too large for float32 becomes infinite, and is reported below.
        with np.errstate(over="ignore"):
            values = row.ravel().astype(np.float32)
        n_bad = int(np.count_nonzero(~np.isfinite(values)))
        if n_bad:
            found = f"has {n_bad} values that are NaN, infinite or beyond float32"
            raise damage(self.path, field, found, "finite values")
        return values


def check_file(path: Path) -> None:
    """Refuse a file that is cut short, lacks a variable, or claims to be larger than any of these.

    Parameters
    ----------
    path : Path
    """
    check_mat_file(path, VARIABLES, most=MOST_VALUES, refusal=damage)


def read_contents(path: Path) -> Contents:
    """Read a file and check all but the values of its trials.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Contents
    """
    check_file(path)
    stored = _load(path)
    meta = _one_struct(path, stored["meta"])
    subject = _text(path, "meta.subject", meta["subject"])
    if subject not in SUBJECTS:
        raise damage(path, "meta.subject", f"is {subject!r}", "P1 to P9")
    _check_grid(path, meta)
    voxels = _voxels(path, meta)
    n_trials = _whole(path, "meta.ntrials", meta["ntrials"])
    info = _of_length(path, "info", stored["info"], n_trials)
    _check_fields(path, "info", info, _INFO_FIELDS)
    rows = _of_length(path, "data", stored["data"], n_trials)
    if rows.dtype.names or rows.dtype != object:
        raise damage(path, "data", f"is an array of {rows.dtype}", "a cell of one row a trial")
    return Contents(
        path,
        subject,
        voxels,
        cond=_categories(path, info),
        word=np.array([_text(path, f"info({i + 1}).word", w) for i, w in enumerate(info["word"])]),
        epoch=np.array(
            [_whole(path, f"info({i + 1}).epoch", e) for i, e in enumerate(info["epoch"])],
            dtype=np.int64,
        ),
        rows=rows,
    )


def _load(path: Path) -> dict[str, Any]:
    """Read the variables with SciPy."""
    from scipy.io import loadmat

    try:
        return dict(loadmat(path, variable_names=list(VARIABLES)))
    # What SciPy raises on damaged bytes has no common type.
    except Exception as error:
        found = f"cannot be read ({type(error).__name__}: {error})"
        raise damage(path, "the file", found, "a complete MATLAB 5 file") from error


def _one_struct(path: Path, meta: Array) -> dict[str, Any]:
    """Return `meta` as a dict."""
    _check_fields(path, "meta", meta, _META_FIELDS)
    if meta.size != 1:
        raise damage(path, "meta", f"is a {_times(meta)} struct", "1×1")
    return {name: meta[name].item() for name in _META_FIELDS}


def _check_fields(path: Path, field: str, struct: Array, names: tuple[str, ...]) -> None:
    """Refuse a struct array without one of its fields."""
    found = struct.dtype.names or ()
    for name in names:
        if name not in found:
            raise damage(
                path,
                f"{field}.{name}",
                f"is missing (found: {', '.join(found) or 'no fields'})",
                f"the fields {', '.join(names)}",
            )


def _check_grid(path: Path, meta: dict[str, Any]) -> None:
    """Refuse another grid than that of CMU2008."""
    for name, size in zip(("dimx", "dimy", "dimz"), SHAPE, strict=True):
        found = _whole(path, f"meta.{name}", meta[name])
        if found != size:
            raise damage(path, f"meta.{name}", f"is {found}", str(size))


def _voxels(path: Path, meta: dict[str, Any]) -> Array:
    """Return the voxel of each column, counted from 0, after holding both maps together."""
    n_voxels = _whole(path, "meta.nvoxels", meta["nvoxels"])
    coords = _indices(path, "meta.colToCoord", meta["colToCoord"], (n_voxels, 3))
    columns = _indices(path, "meta.coordToCol", meta["coordToCol"], SHAPE)
    if n_voxels == 0:
        raise damage(path, "meta.nvoxels", "is 0", "at least one voxel")
    if coords.min() < 1 or np.any(coords > SHAPE):
        found = f"runs from {coords.min(axis=0).tolist()} to {coords.max(axis=0).tolist()}"
        raise damage(path, "meta.colToCoord", found, f"from [1, 1, 1] to {list(SHAPE)}")
    voxels = coords - 1
    # Every column is found at its voxel, and no voxel has another: then voxels differ, too.
    there = columns[tuple(voxels.T)] == np.arange(1, n_voxels + 1)
    if not there.all() or np.count_nonzero(columns) != n_voxels:
        found = (
            f"disagrees with meta.colToCoord in {int(np.count_nonzero(~there))} of {n_voxels} "
            f"columns and has {np.count_nonzero(columns)} voxels that are not 0"
        )
        raise damage(path, "meta.coordToCol", found, "the column of each voxel, 0 outside")
    return voxels


def _categories(path: Path, info: Array) -> Array:
    """Return the category of each trial."""
    cond = [_text(path, f"info({i + 1}).cond", value) for i, value in enumerate(info["cond"])]
    for i, name in enumerate(cond):
        if name not in CATEGORIES:
            expected = f"one of {', '.join(CATEGORIES)}"
            raise damage(path, f"info({i + 1}).cond", f"is {name!r}", expected)
    return np.array(cond)


def _of_length(path: Path, field: str, stored: Array, n_trials: int) -> Array:
    """Return a row or column of one entry a trial as a vector."""
    if stored.shape not in ((1, n_trials), (n_trials, 1)):
        expected = f"{n_trials} entries, as meta.ntrials"
        raise damage(path, field, f"is {_times(stored)}", expected)
    return stored.ravel()


def _numbers(path: Path, field: str, value: Any) -> Array:
    """Return an array of real numbers."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        kind = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        raise damage(path, field, f"is of type {kind}", "real numbers")
    return value


def _indices(path: Path, field: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Return whole numbers of a given shape."""
    numbers = _numbers(path, field, value)
    if numbers.shape != shape:
        expected = "×".join(map(str, shape))
        raise damage(path, field, f"is {_times(numbers)}", expected)
    whole = np.isfinite(numbers) & (np.abs(numbers) < 2**31) & (numbers == np.rint(numbers))
    if not whole.all():
        raise damage(path, field, "has values that are no indices", "whole numbers")
    return numbers.astype(np.int64)


def _whole(path: Path, field: str, value: Any) -> int:
    """Return a single whole number of at least 0."""
    numbers = _numbers(path, field, value)
    if numbers.size != 1:
        raise damage(path, field, f"is {_times(numbers)}", "a single number")
    number = float(numbers.item())
    if not number.is_integer() or number < 0:
        raise damage(path, field, f"is {number}", "a whole number")
    return int(number)


def _text(path: Path, field: str, value: Any) -> str:
    """Return a single text."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "U" or value.size != 1:
        raise damage(path, field, f"is {str(value)[:40]!r}", "a text")
    return str(value.item()).strip()


def _times(array: Array) -> str:
    """Spell a shape as in 51×61×23."""
    return "×".join(map(str, array.shape))
