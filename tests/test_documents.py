"""The documents point at files that are there, and the results are those of the lines."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_files_lead_somewhere(document):
    targets = re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8"))
    files = [target for target in targets if "://" not in target]
    assert [name for name in files if not (document.parent / name).exists()] == []


@pytest.mark.slow
def test_the_page_of_results_is_what_the_commands_make_of_their_lines(tmp_path):
    pytest.importorskip("typer")
    pytest.importorskip("matplotlib")
    built = shutil.ignore_patterns("_build", "api", "auto_examples")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=built)
    page = tmp_path / "docs" / "reproduction.md"
    page.unlink()
    subprocess.run([sys.executable, tmp_path / "docs" / "build_reproduction.py"], check=True)
    assert page.read_text(encoding="utf-8") == (ROOT / "docs" / "reproduction.md").read_text(
        encoding="utf-8"
    )
