"""The pages for users run as they stand: blocks of Python, and commands of the shell."""

import re
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "quickstart.md",
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *sorted((ROOT / "docs" / "coming_from").glob("*.md")),
]
# What a page needs that the core does not bring, told by a word of its code.
NEEDS = {
    "display": "matplotlib",
    "generate_report": "jinja2",
    "dask": "dask",
    "h5py": "h5py",
    "imaging": "nilearn",
    "pandas": "pandas",
    "tensorly": "tensorly",
    "torch": "torch",
    "xarray": "xarray",
    "zarr": "zarr",
}


BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A block of Python, and the block of what it prints if that comes next.
PYTHON = re.compile(r"^```python\n(.*?)^```$(?:\s*^```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def name(page):
    return str(page.relative_to(ROOT))


def commands():
    """Return every `pyfastr ...` of a shell block, with the page that has it."""
    for page in PAGES:
        found = BLOCK.findall(page.read_text(encoding="utf-8"))
        text = "\n".join(block for language, block in found if not language)
        for line in text.replace("\\\n", " ").splitlines():
            if line.startswith("pyfastr "):
                words = shlex.split(line, comments=True)[1:]
                yield pytest.param(words, id=f"{name(page)}: {' '.join(words[:3])}")


@pytest.mark.parametrize("page", [p for p in PAGES if PYTHON.search(p.read_text())], ids=name)
def test_the_python_of_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch, capsys):
    text = page.read_text(encoding="utf-8")
    for module in [module for word, module in NEEDS.items() if word in text]:
        pytest.importorskip(module)
    if "matplotlib" in sys.modules:
        sys.modules["matplotlib"].use("agg")
    monkeypatch.chdir(tmp_path)
    # As the page about devices asks for.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    namespace = {}
    for block in PYTHON.finditer(text):
        before = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(before + block[1], str(page), "exec"), namespace)
        printed = capsys.readouterr().out
        assert block[2] is None or printed == block[2]
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


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


@pytest.mark.parametrize("page", PAGES[1:], ids=name)
def test_links_lead_to_pages_and_examples(page):
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    for target in [t for t in targets if "://" not in t]:
        place = (page.parent / target).resolve()
        # Pages of the gallery are made of examples when the site is built.
        gallery = ROOT / "docs" / "auto_examples"
        if place.is_relative_to(gallery):
            place = (ROOT / "examples" / place.relative_to(gallery)).with_suffix(".py")
        assert place.is_file(), target
