"""Files that appear whole or not at all."""

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO

# Seconds without a change after which an unfinished file counts as abandoned: long enough for a
# machine that was suspended overnight.
ABANDONED = 24 * 3600.0


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path` to write to, which takes its place if no error comes up."""
    target = Path(os.path.realpath(path))
    temporary = draft_in(target.parent)
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def draft_in(folder: Path, ending: str = "") -> Path:
    """Return a new name in a folder for what is not whole yet, and remove what was abandoned."""
    _remove_abandoned(folder)
    return folder / f".pyfastr-{secrets.token_hex(8)}.tmp{ending}"


def _remove_abandoned(folder: Path) -> None:
    """Remove the files and folders that killed processes left unfinished."""
    for path in folder.glob(".pyfastr-*.tmp*"):
        # Another process may remove it at the same time, or own it.
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                rmtree(path) if path.is_dir() else path.unlink()
