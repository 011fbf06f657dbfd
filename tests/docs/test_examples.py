"""The gallery is complete: every example has a title, a summary and a picture."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/plot_*.py"))
FOLDERS = sorted({example.parent for example in EXAMPLES})


def name(path):
    return str(path.relative_to(ROOT))


def test_there_is_a_gallery():
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_an_example_has_a_title_and_a_summary(example):
    docstring = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8")))
    title, underline, _, *summary = docstring.splitlines()
    assert underline == "=" * len(title)
    assert "".join(summary).strip().endswith((".", "?"))


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_an_example_draws_something(example):
    assert "plt.show()" in example.read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", FOLDERS, ids=name)
def test_a_folder_of_the_gallery_has_a_heading_and_a_place(folder):
    assert (folder / "GALLERY_HEADER.rst").is_file()
    order = re.search(
        r"^FOLDERS = \[(.*?)\]", (ROOT / "docs" / "conf.py").read_text(), re.MULTILINE
    )
    assert f'"{folder.name}"' in order[1]
