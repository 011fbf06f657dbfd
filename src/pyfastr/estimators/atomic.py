"""Files that appear whole or not at all."""

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# Seconds without a change after which an unfinished file is taken for that of a process that was
# killed; even one that sleeps with its machine for a night goes on before.
ABANDONED = 24 * 3600.0


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path` to write to, which takes its place if no error comes up."""
    target = Path(os.path.realpath(path))
    _remove_abandoned(target.parent)
    temporary = target.with_name(f".pyfastr-{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _remove_abandoned(folder: Path) -> None:
    """Remove what processes left unfinished that were killed."""
    for path in folder.glob(".pyfastr-*.tmp"):
        # Another process may remove it at the same time, or own it.
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()
