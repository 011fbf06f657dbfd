"""Options that several commands share, and how their values are read."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from pyfastr.cli.errors import InputError

Number = TypeVar("Number", int, float)


class SamplesAxis(StrEnum):
    """Which axis of an array counts samples."""

    first = "first"
    last = "last"


class Loss(StrEnum):
    """What is lowered."""

    squared = "squared"
    logistic = "logistic"
    poisson = "poisson"


# Under which heads a help page sorts options.
DATA_PANEL, OUTPUT_PANEL = "Data", "Output"
DATA_HELP = (
    "Samples: .npy, .npz:array, .h5:dataset, .zarr:array, .mat:variable, a 4-D .nii or .nii.gz, a "
    "folder or quoted pattern of images, or table.csv:column (or .tsv) of their paths, which are "
    "relative to the table."
)
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, .fastr.")]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        metavar="",
        help="Print one JSON document, for programs.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", metavar="", help="Replace files that exist.", rich_help_panel=OUTPUT_PANEL
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        metavar="",
        help="Say nothing but warnings and errors.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
Axis = Annotated[
    SamplesAxis,
    typer.Option(
        help="Which axis of an array counts samples; in MATLAB often the last.",
        rich_help_panel=DATA_PANEL,
    ),
]


def parse_list(
    text: str | None,
    option: str,
    kind: Callable[[str], Number],
    is_allowed: Callable[[Number], bool],
    expected: str,
) -> list[Number]:
    """Read values with commas between them.

    Parameters
    ----------
    text : str or None
        None if the option was not given.
    option : str
    kind : callable
        Turns the text of one value into a number, or raises ValueError.
    is_allowed : callable
    expected : str
        What one value should be.

    Returns
    -------
    list
        Empty if the option was not given.

    Examples
    --------
    >>> from pyfastr.cli.options import parse_list
    >>> parse_list("1,2", "--n-terms", int, lambda n: n > 0, "a whole number from 1 on")
    [1, 2]
    """
    if text is None:
        return []
    try:
        values = [kind(part) for part in text.split(",")]
        is_right = all(map(is_allowed, values))
    except ValueError:
        is_right = False
    if not is_right:
        raise InputError(
            f"{option} is {text or 'empty'}; expected {expected}, or several with commas between "
            "them."
        )
    return values


def parse_folder(text: str | Path) -> Path:
    """Read the name of a folder; for Python an empty one would be the folder one is in.

    Parameters
    ----------
    text : str or Path
        What was typed, or the default.

    Returns
    -------
    Path

    Examples
    --------
    >>> from pyfastr.cli.options import parse_folder
    >>> parse_folder("study").name
    'study'
    """
    if text == "":
        raise typer.BadParameter("it is empty; expected the name of a folder.")
    return Path(text)


def parse_shape(text: str, option: str) -> tuple[int, ...]:
    """Read a shape such as 20x20x5.

    Parameters
    ----------
    text : str
    option : str

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> from pyfastr.cli.options import parse_shape
    >>> parse_shape("20x30", "--shape")
    (20, 30)
    """
    parts = text.lower().replace("×", "x").split("x")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InputError(
            f"{option} is {text or 'empty'}; expected sizes with an x between them, as 20x20x5."
        )
    return tuple(map(int, parts))
