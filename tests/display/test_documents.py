import base64
import re

import pytest

from pyfastr.display.document import Document, Figure, Section, Strong, Table
from pyfastr.display.html import document_to_html
from pyfastr.display.latex import section_to_latex
from pyfastr.display.markdown import document_to_markdown, section_to_markdown

TABLE = Table(
    "Errors & times",
    ["size", "ours", "theirs", "paper"],
    [["5×5", Strong("0.1"), "a|b", "<2>"], ["100%", "_x_", "–", "> 3 s"]],
    [("", 1), ("measured", 2), ("published", 1)],
    ["A note."],
)
FIGURE = Figure("fig", "A figure", 'lines & "dots"', b"<svg/>", b"png", ["Below."])


@pytest.fixture
def section():
    return Section("part", "First part", ["Some <text>."], [TABLE, FIGURE])


def test_markdown_has_a_row_for_a_row_with_groups_in_the_header(section):
    lines = section_to_markdown(section).splitlines()
    at = lines.index("| size | measured: ours | measured: theirs | published: paper |")
    assert lines[at + 1 : at + 4] == [
        "| --- | ---: | ---: | ---: |",
        "| 5×5 | **0.1** | a\\|b | <2> |",
        "| 100% | _x_ | – | > 3 s |",
    ]
    assert '![lines & "dots"](fig.svg)' in lines
    assert "## First part" in lines


def test_a_document_is_its_title_text_and_sections(section):
    text = document_to_markdown(Document("Title", ["Intro."], [section]))
    assert text.startswith("# Title\n\nIntro.\n\n## First part\n")
    assert text.endswith("Below.\n")


def test_latex_escapes_what_would_break_it(section):
    text = section_to_latex(section)
    assert r"5$\times$5 & \textbf{0.1} & a|b & $<$2$>$ \\" in text
    assert r"100\% & \_x\_ & -- & $>$ 3 s \\" in text
    assert r"\multicolumn{1}{c}{} & \multicolumn{2}{c}{measured}" in text
    assert r"\caption{Errors \& times. A note.}" in text
    assert text.count("{") == text.count("}")


def test_latex_of_a_section_without_tables_is_empty():
    assert section_to_latex(Section("s", "S", [], [FIGURE])) == ""


def test_html_escapes_text_and_carries_its_figures(section):
    page = document_to_html(Document("A < B", ["Intro."], [section]))
    assert "<title>A &lt; B</title>" in page
    assert "<p>Some &lt;text&gt;.</p>" in page
    assert "<td><strong>0.1</strong></td>" in page
    assert '<th colspan="2">measured</th>' in page
    assert 'alt="lines &amp; &#34;dots&#34;"' in page
    (picture,) = re.findall(r"base64,([\w+/=]+)", page)
    assert base64.b64decode(picture) == b"<svg/>"
    assert '<a href="#part">First part</a>' in page


def test_tables_of_words_are_set_to_the_left():
    table = Table("Words", ["what", "why"], [["a", "because"]], is_prose=True)
    section = Section("s", "S", [], [table])
    assert "| --- | --- |" in section_to_markdown(section)
    assert r"\begin{tabular}{ll}" in section_to_latex(section)
    assert 'class="wide prose"' in document_to_html(Document("T", [], [section]))


def test_a_table_without_title_or_header_is_named_by_its_section():
    section = Section("s", "Facts", [], [Table("", ["", ""], [["a", "b"]], is_prose=True)])
    page = document_to_html(Document("T", [], [section]))
    assert 'aria-label="Facts"' in page
    assert "<thead>" not in page
    assert "<h3>" not in page
