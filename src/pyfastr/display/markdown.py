"""Reports as Markdown."""

from collections.abc import Iterator

from pyfastr.display.document import Document, Figure, Section, Strong, Table


def document_to_markdown(document: Document) -> str:
    """Write a whole report; figures are linked as files beside it.

    Parameters
    ----------
    document : Document

    Returns
    -------
    str
    """
    blocks = [f"# {document.title}", *document.text]
    blocks += [section_to_markdown(section).rstrip("\n") for section in document.sections]
    return "\n\n".join(blocks) + "\n"


def section_to_markdown(section: Section) -> str:
    """Write one section.

    Parameters
    ----------
    section : Section

    Returns
    -------
    str
    """
    blocks = [f"## {section.title}", *section.text]
    for part in section.parts:
        blocks += [f"### {part.title}", _table(part) if isinstance(part, Table) else _image(part)]
        blocks += part.notes
    return "\n\n".join(blocks) + "\n"


def _table(table: Table) -> str:
    """Write a table; Markdown has no second row of headers, so groups go into the first."""
    header = list(_full_header(table))
    others = "---" if table.is_prose else "---:"
    lines = [header, ["---", *[others] * (len(header) - 1)]]
    lines += [[_cell(cell) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _full_header(table: Table) -> Iterator[str]:
    """Put the title of a column's group before its own."""
    over = [title for title, width in table.groups for _ in range(width)] or [""] * len(
        table.header
    )
    for group, title in zip(over, table.header, strict=True):
        yield f"{group}: {title}" if group else title


def _cell(cell: str) -> str:
    text = cell.replace("|", "\\|")
    return f"**{text}**" if isinstance(cell, Strong) else text


def _image(figure: Figure) -> str:
    return f"![{figure.alt}]({figure.name}.svg)"
