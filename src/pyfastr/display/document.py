"""What a report consists of, whatever it is written as."""

from collections.abc import Sequence
from dataclasses import dataclass


class Strong(str):
    """A cell to be set in bold."""

    __slots__ = ()


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes
    ----------
    title : str
    header : sequence of str
    rows : sequence of sequences of str
        As many cells as the header has.
    groups : sequence of (str, int)
        Titles over the header with the number of columns each one spans; none by default.
    notes : sequence of str
        Sentences below the table.
    is_prose : bool
        Whether its cells hold words to be read along the line, rather than numbers to be
        compared down the column.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    groups: Sequence[tuple[str, int]] = ()
    notes: Sequence[str] = ()
    is_prose: bool = False


@dataclass(frozen=True)
class Figure:
    """A drawing, as vectors and as pixels.

    Attributes
    ----------
    name : str
        Name of its files, without ending.
    title : str
    alt : str
        What it shows, for those who cannot see it.
    svg, png : bytes
    notes : sequence of str
        Sentences below the figure.
    """

    name: str
    title: str
    alt: str
    svg: bytes
    png: bytes
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Section:
    """A heading, sentences, tables and figures.

    Attributes
    ----------
    name : str
        Name of its files and of its anchor.
    title : str
    text : sequence of str
        Paragraphs.
    parts : sequence of Table and Figure
    """

    name: str
    title: str
    text: Sequence[str]
    parts: Sequence[Table | Figure]


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes
    ----------
    title : str
    text : sequence of str
        Paragraphs before the sections.
    sections : sequence of Section
    """

    title: str
    text: Sequence[str]
    sections: Sequence[Section]
