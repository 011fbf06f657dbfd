"""Reports as one page of HTML that needs no other file."""

import base64
from collections.abc import Sequence
from html import escape

from pyfastr.display.document import Document, Figure, Section, Strong, Table

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1d1d1f; background: #fff;
  max-width: 88rem; margin: 2rem auto; padding: 0 1rem; }}
p, ul {{ max-width: 48rem; }}
h2 {{ margin-top: 3rem; border-bottom: 2px solid #1d1d1f; }}
nav a {{ margin-right: 1.5rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums;
  margin: .5rem 0; }}
th, td {{ padding: .3rem .5rem; text-align: right; border-bottom: 1px solid #ddd; }}
th {{ vertical-align: bottom; }}
td {{ white-space: nowrap; }}
.prose td, .prose th {{ text-align: left; white-space: normal; vertical-align: top; }}
.prose td:first-child {{ white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; position: sticky; left: 0;
  background: #fff; }}
tr.groups th {{ text-align: center; border-bottom: 1px solid #1d1d1f; }}
.note {{ color: #494949; font-size: 14px; margin: .3rem 0; max-width: 60rem; }}
figure {{ margin: 1rem 0; }}
img {{ max-width: 100%; height: auto; }}
</style>
</head>
<body>
<h1>{title}</h1>
{text}
<nav>{links}</nav>
{sections}
</body>
</html>
"""


def document_to_html(document: Document) -> str:
    """Write a whole report, figures inside.

    Parameters
    ----------
    document : Document

    Returns
    -------
    str
    """
    links = [f'<a href="#{s.name}">{escape(s.title)}</a>' for s in document.sections]
    return _PAGE.format(
        title=escape(document.title),
        text=_paragraphs(document.text),
        links="\n".join(links),
        sections="\n".join(map(_section, document.sections)),
    )


def _section(section: Section) -> str:
    head = f'<h2 id="{section.name}">{escape(section.title)}</h2>'
    parts = [_table(p) if isinstance(p, Table) else _figure(p) for p in section.parts]
    return "\n".join([head, _paragraphs(section.text), *parts])


def _paragraphs(text: Sequence[str], kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return "\n".join(f"<p{attribute}>{escape(paragraph)}</p>" for paragraph in text)


def _table(table: Table) -> str:
    groups = "".join(f'<th colspan="{width}">{escape(t)}</th>' for t, width in table.groups)
    header = "".join(f"<th>{escape(title)}</th>" for title in table.header)
    head = (f'<tr class="groups">{groups}</tr>\n' if groups else "") + f"<tr>{header}</tr>"
    rows = ["".join(map(_cell, row)) for row in table.rows]
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    kind = "wide prose" if table.is_prose else "wide"
    return (
        f"<h3>{escape(table.title)}</h3>\n"
        f'<div class="{kind}"><table>\n'
        f"<thead>{head}</thead>\n<tbody>{body}</tbody>\n</table></div>\n"
        + _paragraphs(table.notes, "note")
    )


def _cell(cell: str) -> str:
    text = f"<strong>{escape(cell)}</strong>" if isinstance(cell, Strong) else escape(cell)
    return f"<td>{text}</td>"


def _figure(figure: Figure) -> str:
    # An image of its own keeps the names inside a drawing apart from those of the next.
    source = f"data:image/svg+xml;base64,{base64.b64encode(figure.svg).decode()}"
    return (
        f"<h3>{escape(figure.title)}</h3>\n"
        f'<figure><img src="{source}" alt="{escape(figure.alt)}"></figure>\n'
        + _paragraphs(figure.notes, "note")
    )
