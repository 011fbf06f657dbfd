"""The pages for users run as they stand: blocks of Python, and commands of the shell."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "quickstart.md",
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *sorted((ROOT / "docs" / "coming_from").glob("*.md")),
]
EXTRAS = ["matplotlib", "nibabel", "nilearn", "pandas", "safetensors", "tensorly", "xarray"]


def blocks(page, language):
    """Return the fenced blocks of one language, each with the number of lines before it."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\S*)[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [
        (text.count("\n", 0, block.start(2)), block[2]) for block in found if block[1] == language
    ]


def name(page):
    return str(page.relative_to(ROOT))


def commands():
    """Return every `pyfastr ...` of a shell block, with the page that has it."""
    for page in PAGES:
        lines = [line for _, block in blocks(page, "") for line in block.splitlines()]
        for line in lines:
            words = shlex.split(line, comments=True)
            if words[:1] == ["pyfastr"]:
                yield pytest.param(words[1:], id=f"{name(page)}: {' '.join(words[1:4])}")


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    needed = [m for m in EXTRAS if m in "".join(code for _, code in blocks(page, "python"))]
    for module in needed:
        pytest.importorskip(module)
    if "matplotlib" in needed or "isplay" in page.read_text(encoding="utf-8"):
        pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for before, code in blocks(page, "python"):
        exec(compile("\n" * before + code, str(page), "exec"), namespace)


@pytest.mark.parametrize("words", list(commands()))
def test_the_commands_of_the_pages_are_accepted(words):
    typer = pytest.importorskip("typer")
    from pyfastr.cli.app import app

    command = typer.main.get_command(app)
    own = {option for parameter in command.params for option in parameter.opts}
    if words[0] in own:
        return
    assert words[0] in command.commands
    # Parsing checks names, numbers and choices, and runs nothing.
    command.commands[words[0]].make_context(words[0], words[1:])
