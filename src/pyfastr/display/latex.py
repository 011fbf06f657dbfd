"""Tables as LaTeX, for the booktabs package."""

from pyfastr.display.document import Section, Strong, Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "−": r"$-$",
    "–": "--",
    "λ": r"$\lambda$",
    "ε": r"$\varepsilon$",
    "ŷ": r"$\hat{y}$",
    "‖": r"$\|$",
    "₂": r"$_2$",
    "²": r"$^2$",
    "¹": r"$^1$",
}


def section_to_latex(section: Section) -> str:
    """Write the tables of a section; figures have files of their own.

    Parameters
    ----------
    section : Section

    Returns
    -------
    str
        Empty if there are none.
    """
    tables = [part for part in section.parts if isinstance(part, Table)]
    return "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    columns = "l" + ("l" if table.is_prose else "r") * (len(table.header) - 1)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{' '.join(map(_escape, [table.title + '.', *table.notes]))}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
    ]
    if table.groups:
        spans = [rf"\multicolumn{{{width}}}{{c}}{{{_escape(t)}}}" for t, width in table.groups]
        lines.append(_row(spans))
    lines += [_row([_escape(title) for title in table.header]), r"\midrule"]
    lines += [_row([_cell(cell) for cell in row]) for row in table.rows]
    lines += [r"\bottomrule", r"\end{tabular}", "}", r"\end{table}", ""]
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(cell: str) -> str:
    text = _escape(cell)
    return rf"\textbf{{{text}}}" if isinstance(cell, Strong) else text


def _escape(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text)
