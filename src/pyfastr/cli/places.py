"""`FILE:NAME`: which file, and which array or column of it."""

import re
from dataclasses import dataclass
from pathlib import Path

from pyfastr.cli.errors import InputError

_GLOB = re.compile(r"[*?\[]")
# What these endings promise is never a folder.
_FILES = (".npy", ".npz", ".h5", ".hdf5", ".hdf", ".mat", ".csv", ".tsv")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True)
class Place:
    """Where data are.

    Attributes
    ----------
    file : Path
        A file or a folder, or a pattern of names with ``*``, ``?`` or ``[``.
    name : str
        What is meant in it; "" if nothing was said.
    """

    file: Path
    name: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.name}" if self.name else str(self.file)

    @property
    def is_pattern(self) -> bool:
        """Whether it stands for all files whose names match."""
        return not self.file.exists() and _GLOB.search(str(self.file)) is not None

    @property
    def is_table(self) -> bool:
        """Whether it is a table of text."""
        return self.file.suffix.lower() in (".csv", ".tsv")


def parse_place(text: str, option: str, *, within: Path | None = None) -> Place:
    r"""Read `FILE` or `FILE:NAME`.

    The longest beginning that exists and is followed by a colon, or by nothing, is the file, so
    that colons in names of files and of columns do no harm, nor does the colon of ``C:\data``.

    Parameters
    ----------
    text : str
    option : str
        What it was given as, for errors.
    within : Path, optional
        A file in which a text that is no file is a name.

    Returns
    -------
    Place

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pyfastr.cli.places import parse_place
    >>> table = Path(tempfile.mkdtemp()) / "people.csv"
    >>> table.touch()
    >>> parse_place(f"{table}:score: total", "TARGET").name
    'score: total'
    >>> parse_place("score", "TARGET", within=table).file == table
    True
    """
    if not text:
        raise InputError(f"{option} is empty; expected FILE or FILE:NAME.")
    for end in [len(text), *_colons(text)]:
        if Path(text[:end]).exists():
            return _checked(Place(Path(text[:end]), text[end + 1 :]), option)
    if _GLOB.search(text):
        return Place(Path(text))
    if within is not None and not _looks_like_a_file(text):
        return Place(within, text)
    end = next(iter(_colons(text)), len(text))
    raise InputError(f"{option}: there is no file '{text[:end]}'. {_advice(text[:end])}")


def _checked(place: Place, option: str) -> Place:
    """Refuse a folder with the name of a file."""
    ending = place.file.suffix.lower()
    if ending in _FILES and place.file.is_dir():
        raise InputError(
            f"{option}: {place.file} is a folder; expected a file, as its name ends in {ending}. "
            "Give one that is in it, or rename the folder."
        )
    return place


def _colons(text: str) -> list[int]:
    """Positions of colons that may end the name of a file, the last first."""
    first = 2 if _DRIVE.match(text) else 1
    return [at for at in range(len(text) - 1, first - 1, -1) if text[at] == ":"]


def _looks_like_a_file(text: str) -> bool:
    """Whether a text that is no file was meant to be one."""
    return bool(re.search(r"[\\/]|\.(npy|npz|h5|hdf5|mat|zarr|csv|tsv|nii|gz)(:|$)", text))


def _advice(name: str) -> str:
    """Say which files are like the one that is missing, or where it was looked for."""
    from difflib import get_close_matches

    path = Path(name)
    if not path.parent.is_dir():
        return f"There is no folder {path.parent} either."
    near = get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], 1)
    return (
        f"Is it {path.parent / near[0]}?" if near else f"It was sought in {path.parent.resolve()}."
    )
