"""Values that belong to the samples: target, covariates and groups."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.cli.arrays import is_array_file, read_array
from pyfastr.cli.errors import InputError
from pyfastr.cli.images import check_order
from pyfastr.cli.places import Place, parse_place
from pyfastr.cli.samples import Samples, times
from pyfastr.cli.tables import read_table
from pyfastr.cli.voice import Voice

Array = NDArray[Any]

# The target of a fit, which may be numbers or classes; that of a report is as its model has it.
_OF_FIT = "TARGET"
_MOST_NAMED = 5
# Floats hold every whole number below this.
_EXACT = 2**53
_KINDS = ".npy, .npz:array, .h5:dataset, .zarr:array, .mat:variable, or table.csv:column"


@dataclass(frozen=True)
class Values:
    """One value, or row, for each sample.

    Attributes
    ----------
    place : Place
    array : ndarray of shape (n_samples,) or (n_samples, n_columns)
    names : list of str
        Names of the columns, if they have any.
    """

    place: Place
    array: Array
    names: Sequence[str] = field(default=())


def read_target(
    text: str, samples: Samples, voice: Voice, *, classify: bool, option: str = _OF_FIT
) -> Values:
    """Read the target, one value for each sample.

    Parameters
    ----------
    text : str
        FILE, FILE:NAME, or a name in the file of the samples.
    samples : Samples
    voice : Voice
        Is told what looks odd.
    classify : bool
        Whether values are labels, which may be text.
    option : str
        What it was given as, for errors.

    Returns
    -------
    Values
    """
    place = parse_place(text, option, within=samples.place.file)
    read = _read_labels(place, option) if classify else _read_numbers(place, option)
    array = _as_vector(read, place, option, samples)
    if array.dtype.kind == "f":
        _check_finite(array, place, option)
    if classify:
        _check_classes(array, place, option)
    _check_rows(samples, place, voice)
    if option == _OF_FIT and not classify and len(values := np.unique(array)) == 2:
        voice.note(
            f"{place} has two values, {values[0]:g} and {values[1]:g}. If they are classes, add "
            "--classify."
        )
    return Values(place, array)


def read_groups(text: str | None, samples: Samples, voice: Voice) -> Array | None:
    """Read which samples belong together.

    Parameters
    ----------
    text : str or None
        FILE, FILE:NAME, or a name in the file of the samples.
    samples : Samples
    voice : Voice

    Returns
    -------
    ndarray of shape (n_samples,) or None
    """
    if text is None:
        return None
    place = parse_place(text, "--groups", within=samples.place.file)
    groups = _as_vector(_read_labels(place, "--groups"), place, "--groups", samples)
    _check_rows(samples, place, voice)
    return groups


def read_covariates(
    text: str | None, samples: Samples, voice: Voice, names: Sequence[str] = ()
) -> Values | None:
    """Read columns of numbers.

    Parameters
    ----------
    text : str or None
        FILE:NAME,NAME, an array of one row for each sample, or names in the file of the samples.
    samples : Samples
    voice : Voice
    names : sequence of str
        Columns to take from a table if none are named.

    Returns
    -------
    Values or None
    """
    if text is None:
        return None
    option = "--covariates"
    place = parse_place(text, option, within=samples.place.file)
    if place.is_table:
        table = read_table(place.file)
        wanted = _named(place) or list(names) or [""]
        columns = [table.column(name, option) for name in wanted]
        advice = "Write categories as columns of 0 and 1."
        array = np.array([column.numbers(advice) for column in columns]).T
        values = Values(place, array, wanted)
    else:
        values = Values(place, _as_matrix(_read_stored(place, option), place))
    _check_count(len(values.array), place, option, samples)
    _check_finite(values.array, place, option)
    _check_rows(samples, place, voice)
    return values


def _named(place: Place) -> list[str]:
    """Return the columns that are named, each once."""
    names = [name.strip() for name in place.name.split(",")] if place.name else []
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"--covariates: {place} names {name!r} more than once; give each column once."
            )
    return names


def _as_matrix(array: Array, place: Place) -> Array:
    """Return covariates of an array as columns of numbers."""
    if array.ndim not in (1, 2) or array.dtype.kind not in "biuf":
        raise InputError(
            f"--covariates: {place} has shape {array.shape} and dtype {array.dtype}; expected "
            "numbers with a row for each sample."
        )
    return array.reshape(len(array), -1).astype(float)


def _read_stored(place: Place, option: str) -> Array:
    """Read an array, or say what would be one."""
    if not is_array_file(place):
        raise InputError(f"{option}: {place.file} is of no known kind; expected {_KINDS}.")
    return read_array(place, option)


def _read_numbers(place: Place, option: str) -> Array:
    """Read a target to be regressed on."""
    advice = "If the values are classes, add --classify."
    if option != _OF_FIT:
        advice = "MODEL was fitted to numbers."
    if place.is_table:
        return np.array(read_table(place.file).column(place.name, option).numbers(advice))
    array = _read_stored(place, option)
    if array.dtype.kind in "US":
        raise InputError(f"{option}: {place} holds text, not numbers. {advice}")
    return array.astype(float)


def _read_labels(place: Place, option: str) -> Array:
    """Read labels: text, or numbers, which are ints if all are whole."""
    if not place.is_table:
        array = _read_stored(place, option)
        return array.astype(str) if array.dtype.kind == "S" else array
    column = read_table(place.file).column(place.name, option)
    column.check_complete()
    numbers = np.array(column.numbers("") if column.is_numeric else [])
    # Longer ones, such as numbers of people, would lose digits and become alike.
    if not numbers.size or np.abs(numbers).max() >= _EXACT:
        return np.array([value.strip() for value in column.values])
    return numbers if (numbers % 1).any() else numbers.astype(int)


def _as_vector(array: Array, place: Place, option: str, samples: Samples) -> Array:
    """Refuse what is not one value for each sample."""
    # MATLAB has no vectors, only rows and columns.
    if array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1)
    if array.ndim != 1:
        what = f"has shape {times(array.shape)}" if array.shape else "is a single value"
        raise InputError(f"{option}: {place} {what}; expected one value for each sample.")
    _check_count(len(array), place, option, samples)
    return array


def _check_count(count: int, place: Place, option: str, samples: Samples) -> None:
    """Refuse rows that are not as many as the samples."""
    if count == samples.n_samples:
        return
    kind = "images" if samples.are_images else "samples"
    hint = _hint_of_images(place, samples) or "They must be as many, in the same order."
    if not samples.are_images and count == samples.shape[-1]:
        hint = f"The last axis has {count}: if it counts samples, add --samples-axis last."
    raise InputError(
        f"{option}: {place} has {count} rows, but {samples.place} has {samples.n_samples} {kind}. "
        f"{hint}"
    )


def _hint_of_images(place: Place, samples: Samples) -> str:
    """Name the column of a table whose rows are some of the images of a folder."""
    if not place.is_table or not samples.images:
        return ""
    known = {path.name for path in samples.images}
    for column in read_table(place.file).columns:
        if known.issuperset(Path(value).name for value in column.values):
            return f"To take the images that it lists, give {column} as DATA."
    return ""


def _check_finite(array: Array, place: Place, option: str) -> None:
    """Refuse NaN and infinity, saying where they are."""
    rows = np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))
    if rows.size:
        named = ", ".join(map(str, rows[:_MOST_NAMED]))
        more = f" and {rows.size - _MOST_NAMED} more" if rows.size > _MOST_NAMED else ""
        raise InputError(
            f"{option}: {place} has NaN or infinity in rows {named}{more} (counted from 0). Remove "
            "these samples from data and target, or fill them in."
        )


def _check_classes(array: Array, place: Place, option: str) -> None:
    """Refuse fractions, which name no classes."""
    fractions = array[array % 1 != 0] if array.dtype.kind == "f" else array[:0]
    if fractions.size:
        fit = option == _OF_FIT
        advice = "To predict numbers, leave out --classify." if fit else "MODEL is of classes."
        raise InputError(
            f"{option}: {place} has numbers that are no classes, such as {fractions[0]:g}; "
            f"expected text or whole numbers. {advice}"
        )


def _check_rows(samples: Samples, place: Place, voice: Voice) -> None:
    """See to it that rows and images are of the same subjects, as far as the table tells."""
    if not place.is_table or not samples.images or samples.place.file == place.file:
        return
    if not check_order(samples.images, read_table(place.file)):
        first, last = samples.images[0].name, samples.images[-1].name
        voice.note(
            f"The rows of {place.file} are matched to the images in order, from {first} to {last}."
        )
