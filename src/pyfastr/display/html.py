"""Reports as one page of HTML that needs no other file."""

from pyfastr.display.document import Document
from pyfastr.display.templating import render


def document_to_html(document: Document) -> str:
    """Write a whole report, figures inside.

    Parameters
    ----------
    document : Document

    Returns
    -------
    str

    Examples
    --------
    >>> from pyfastr.display.document import Document, Section
    >>> from pyfastr.display.html import document_to_html
    >>> page = document_to_html(Document("Two < three", [], [Section("a", "A", ["Text."], [])]))
    >>> "<h1>Two &lt; three</h1>" in page, "<p>Text.</p>" in page
    (True, True)
    """
    return render(
        "document.html.j2",
        title=document.title,
        kicker="pyfastr",
        contents=[(section.name, section.title) for section in document.sections],
        document=document,
    )
