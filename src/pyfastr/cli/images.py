"""Which images are meant: a 4-D file, a folder, a pattern of names, or a column of a table."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from pyfastr.cli.errors import InputError, as_input_error
from pyfastr.cli.places import Place
from pyfastr.cli.tables import Column, Table, read_table

_ENDINGS = (".nii", ".nii.gz")


def is_image(path: Path) -> bool:
    """Whether a file is an image by the ending of its name.

    Parameters
    ----------
    path : Path

    Returns
    -------
    bool

    Examples
    --------
    >>> from pathlib import Path
    >>> from pyfastr.cli.images import is_image
    >>> is_image(Path("sub-01.nii.gz")), is_image(Path("sub-01.json"))
    (True, False)
    """
    return path.name.lower().endswith(_ENDINGS)


def list_images(place: Place, option: str) -> list[Path]:
    """List the images of a folder, a pattern or a column of a table.

    Parameters
    ----------
    place : Place
    option : str
        What it was given as, for errors.

    Returns
    -------
    list of Path
        Those of a folder or a pattern in the order of their names.
    """
    if place.is_table:
        return _listed_in(read_table(place.file).column(place.name, option), option)
    if place.is_pattern:
        found = sorted(path for path in _matching(place.file) if is_image(path))
    else:
        found = sorted(path for path in place.file.iterdir() if is_image(path))
    if not found:
        raise InputError(
            f"{option}: {place.file} has no images; expected names in .nii or .nii.gz."
        )
    return found


def load_header(path: Path, option: str) -> Any:
    """Return an image whose data are not read yet.

    Parameters
    ----------
    path : Path
    option : str

    Returns
    -------
    nibabel image
    """
    from pyfastr.estimators.extras import require

    nibabel = require("nibabel", "imaging", "Reading brain images")
    kinds = (OSError, ValueError, EOFError, nibabel.filebasedimages.ImageFileError)
    with as_input_error(*kinds, what=f"{option}: {path} cannot be read as an image"):
        return nibabel.load(path)


def check_order(images: Sequence[Path], table: Table) -> bool:
    """Refuse a table whose rows name the images in another order than theirs.

    Parameters
    ----------
    images : sequence of Path
        As many as the table has rows.
    table : Table

    Returns
    -------
    bool
        Whether a column names the images, so that the order is known to be right.
    """
    for column in table.columns:
        order = _rows_named(images, column.values)
        if order is None:
            continue
        wrong = next((i for i, row in enumerate(order) if row != i), None)
        if wrong is None:
            return True
        raise InputError(
            f"Image {wrong + 1} is {images[wrong].name}, but line {column.lines[wrong]} of "
            f"{column} is {column.values[wrong]!r}. Put the rows in the order of the images, or "
            "add a column of their paths and give it as DATA."
        )
    return False


def _matching(pattern: Path) -> Iterator[Path]:
    """Find the files whose names match; ** stands for any folders."""
    root = Path(pattern.anchor)
    return root.glob(str(pattern.relative_to(root)))


def _listed_in(column: Column, option: str) -> list[Path]:
    """Paths of a column, which are relative to its table."""
    column.check_complete()
    paths = [column.table.parent / value.strip() for value in column.values]
    for path, line in zip(paths, column.lines, strict=True):
        if not path.exists():
            raise InputError(
                f"{option}: line {line} of {column} is {path}, which is not there. Paths are "
                "relative to the table."
            )
        if not is_image(path):
            raise InputError(
                f"{option}: line {line} of {column} is {path}; expected a name in .nii or .nii.gz."
            )
    return paths


def _rows_named(images: Sequence[Path], values: Sequence[str]) -> list[int] | None:
    """Row of the value that is a part of each image's name; None if it is not one for each."""
    row_of = {_parts(value): row for row, value in enumerate(values)}
    if len(row_of) < len(values) or all(re.fullmatch(r"[\d.,+-]*", v) for v in values):
        return None
    rows: list[int] = []
    for image in images:
        named = {row_of[run] for run in _runs(_parts(str(image))) if run in row_of}
        if len(named) != 1:
            return None
        rows += named
    return rows if len(set(rows)) == len(rows) else None


def _parts(name: str) -> tuple[str, ...]:
    """Words between marks such as / and _, so that sub-1 is no part of sub-10."""
    return tuple(re.findall(r"(?:[^\W_]|-)+", name.lower()))


def _runs(parts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield all words that follow one another."""
    for begin, end in combinations(range(len(parts) + 1), 2):
        yield tuple(parts[begin:end])
