"""Tables of text: comma-separated in .csv files, tab-separated in .tsv files."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pyfastr.cli.errors import InputError, as_input_error

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# Also what BIDS and R write for a value that is missing.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "."}
_MOST_NAMED = 5
_SEPARATORS = "Set cells apart by commas in a .csv file, by tabs in a .tsv file."


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    table : Path
    name : str
    values : list of str
    lines : list of int
        Line of the file that each value is on, the header being on line 1.
    """

    table: Path
    name: str
    values: list[str]
    lines: list[int]

    def __str__(self) -> str:
        return f"{self.table}:{self.name}"

    def check_complete(self) -> None:
        """Refuse missing values, saying where they are."""
        lines = [n for n, value in self._numbered() if value.strip().lower() in _MISSING]
        if lines:
            raise InputError(
                f"{self} has no value in {_listed(lines)}. Remove these samples from data and "
                "table, or fill them in."
            )

    @property
    def is_numeric(self) -> bool:
        """Whether all values are numbers, or missing."""
        return all(_is_number(v) or v.strip().lower() in _MISSING for v in self.values)

    def numbers(self, advice: str) -> list[float]:
        """Return the values as numbers.

        Parameters
        ----------
        advice : str
            What to do about text.

        Returns
        -------
        list of float
        """
        for line, value in self._numbered():
            if not _is_number(value) and value.strip().lower() not in _MISSING:
                raise InputError(
                    f"{self} has {value!r} on line {line}, which is not a number. {advice}"
                )
        self.check_complete()
        return [float(value) for value in self.values]

    def _numbered(self) -> list[tuple[int, str]]:
        return list(zip(self.lines, self.values, strict=True))


@dataclass(frozen=True)
class Table:
    """A table as it is in its file.

    Attributes
    ----------
    file : Path
    header : list of str
    rows : list of lists of str
    lines : list of int
        Line of the file that each row ends on.
    """

    file: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def column(self, name: str, option: str) -> Column:
        """Return a column by its name.

        Parameters
        ----------
        name : str
        option : str
            What asked for it.

        Returns
        -------
        Column
        """
        if name not in self.header:
            raise InputError(f"{option}: {self.file} {self._lack_of(name)}")
        if self.header.count(name) > 1:
            raise InputError(f"{option}: {self.file} has several columns {name!r}; rename them.")
        at = self.header.index(name)
        return Column(self.file, name, [row[at] for row in self.rows], self.lines)

    def _lack_of(self, name: str) -> str:
        """Say that there is no such column, and which there are."""
        known = f"It has {', '.join(self.header)}"
        if not name:
            return f"is a table; say which column is meant. {known}: {self.file}:{self.header[-1]}"
        if len(self.header) == 1 and re.search(r"[;,\t]", self.header[0]):
            return f"has one column, {self.header[0]!r}. {_SEPARATORS}"
        near = get_close_matches(name, self.header, 1)
        return f"has no column '{name}'. {known}.{f' Is it {near[0]}?' if near else ''}"

    @property
    def columns(self) -> list[Column]:
        """All columns."""
        return [
            Column(self.file, name, [row[at] for row in self.rows], self.lines)
            for at, name in enumerate(self.header)
        ]


def read_table(file: Path) -> Table:
    """Read a .csv or .tsv file.

    Parameters
    ----------
    file : Path

    Returns
    -------
    Table
    """
    delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
    with (
        as_input_error(UnicodeDecodeError, what=f"{file} is not UTF-8 text; save it as UTF-8"),
        as_input_error(csv.Error, what=f"{file} is no table"),
        file.open(encoding="utf-8-sig", newline="") as stream,
    ):
        reader = csv.reader(stream, delimiter=delimiter)
        numbered = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    if len(numbered) < 2:
        raise InputError(f"{file} has no rows; expected a line of column names and one per sample.")
    header = [name.strip() for name in numbered[0][1]]
    for line, row in numbered[1:]:
        if len(row) != len(header):
            kind = "tabs" if delimiter == "\t" else "commas"
            raise InputError(
                f"{file}: line {line} has {len(row)} cells, the header has {len(header)}. Cells "
                f"are set apart by {kind}; put text with {kind} in quotes."
            )
    return Table(file, header, [row for _, row in numbered[1:]], [n for n, _ in numbered[1:]])


def _is_number(value: str) -> bool:
    return _NUMBER.fullmatch(value.strip()) is not None


def _listed(lines: Sequence[int]) -> str:
    """Name the first few lines."""
    named = ", ".join(map(str, lines[:_MOST_NAMED]))
    more = f" and {len(lines) - _MOST_NAMED} more" if len(lines) > _MOST_NAMED else ""
    return f"line{'s' if len(lines) > 1 else ''} {named}{more}"
