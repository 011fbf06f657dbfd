"""Links of the Markdown pages to files and folders that are not pages of the site."""

import re
from pathlib import Path
from typing import Any

# A link whose target is neither an address nor a place on the same page.
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?://|#)([^)\s]+)\)")


def name_only(app: Any, docname: str, source: list[str]) -> None:
    """Show the name of a folder, or of a file outside of the site, without a link.

    Such links serve who reads the file in the repository.
    """
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".md":
        source[0] = LINK.sub(lambda link: _text(link, page.parent, app.srcdir), source[0])


def _text(link: re.Match[str], folder: Path, site: Path) -> str:
    """Return the link as it stands if the site can follow it, otherwise what it shows."""
    target = (folder / link[2].partition("#")[0]).resolve()
    inside = target.is_relative_to(Path(site).resolve())
    return link[0] if inside and not target.is_dir() else link[1]


def setup(app: Any) -> dict[str, bool]:
    """Ask Sphinx for every source as it is read."""
    app.connect("source-read", name_only)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
