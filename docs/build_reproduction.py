"""Write reproduction.md: the words of reproduction.template.md, and what the commands make.

Every command goes on with the results that lie in results/, so nothing is fitted unless a line is
missing there.
"""

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pyfastr.display.markdown import section_to_markdown
from pyfastr.experiments.report import environment_section
from pyfastr.experiments.store import Store

DOCS = Path(__file__).parent
EVERY = "--trials 3 --budget 30"
SOME = "--methods fastr,lasso,eeridge --trials 1 --budget 90"
SCANS = "--methods fastr,lasso,enet,eeridge --trials 1 --budget 120"


@dataclass(frozen=True)
class Part:
    """A section of the page: an experiment, where its results lie, what to add to its title."""

    experiment: str
    folder: str
    options: str
    addition: str = ""

    @property
    def command(self) -> str:
        """What makes it."""
        return (
            f"reproduce {self.experiment} {self.options} --out docs/results/{self.folder} --resume"
        )


PARTS = (
    Part("table1", "table1", f"{EVERY} --training-metric"),
    Part("table1", "table1-fastr", "--methods fastr", ", 20 trials of FasTR alone"),
    Part("figure1", "table1", EVERY),
    Part("table2", "full", SOME),
    Part("table2", "quick", "--quick --budget 20", ", at 20×20×5"),
    Part("figure2", "full", SOME),
    Part("figure2", "quick", "--quick --budget 20", ", at 20×20×5"),
    Part("table3", "full", SCANS),
    Part("table3", "quick", "--quick", ", one participant"),
)


def build(part: Part) -> dict[str, str]:
    """Run a command; return the sections of its report by title."""
    command = [sys.executable, "-m", "pyfastr.cli", *shlex.split(part.command)]
    subprocess.run(command, cwd=DOCS.parent, check=True)
    report = (DOCS / "results" / part.folder / "report.md").read_text(encoding="utf-8")
    sections = re.split(r"(?m)^## ", report)[1:]
    return {title: text.strip() for title, text in (s.split("\n", 1) for s in sections)}


def section(part: Part, found: dict[str, str]) -> str:
    """Put together the section of one command: its tables, and why fits failed."""
    title, text = next(iter(found.items()))
    text = text.replace("](figure", f"](results/{part.folder}/figure")
    blocks = [f"## {title}{part.addition}", f"`pyfastr {part.command}`", text]
    return "\n\n".join(blocks + failures(found.get("Fits without a result", "")))


def failures(text: str) -> list[str]:
    """Return the lines of fits that failed; what ran out of time shows in the tables."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    failed = [line for line in lines if "| failed |" in line]
    return ["### Fits that failed", "\n".join(lines[:2] + failed)] if failed else []


def main() -> None:
    """Write the page."""
    reports = [build(part) for part in PARTS]
    sections = [section(part, found) for part, found in zip(PARTS, reports, strict=True)]
    sections.append(f"## Methods\n\n{reports[0]['Methods']}")
    folders = dict.fromkeys(DOCS / "results" / part.folder for part in PARTS)
    environments = {k: v for f in folders for k, v in Store(f).environments().items()}
    sections.append(section_to_markdown(environment_section(environments)).strip())
    words = (DOCS / "reproduction.template.md").read_text(encoding="utf-8").strip()
    page = "\n\n".join([words, *sections]) + "\n"
    (DOCS / "reproduction.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
