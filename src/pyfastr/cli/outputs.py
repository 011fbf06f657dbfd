"""Files that a command writes: checked before the work, and all of them there or none."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from types import TracebackType
from typing import Self

from pyfastr.cli.errors import InputError


class Outputs:
    """The files, or folders, of one command.

    They are written under other names beside their places and moved there when the block ends
    well; if it does not, or is interrupted, nothing is left behind.

    Parameters
    ----------
    force : bool
        Whether what exists may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pyfastr.cli.outputs import Outputs
    >>> folder = Path(tempfile.mkdtemp())
    >>> outputs = Outputs(force=False)
    >>> outputs.claim("--out", folder / "table.csv", [".csv"])
    >>> with outputs:
    ...     _ = outputs.draft(folder / "table.csv").write_text("a,b")
    >>> (folder / "table.csv").read_text()
    'a,b'
    """

    def __init__(self, force: bool) -> None:
        self._force = force
        self._claimed: dict[Path, str] = {}
        self._drafts: dict[Path, Path] = {}

    def claim(self, option: str, path: Path | None, endings: Sequence[str] = ()) -> None:
        """Refuse a place that cannot, or should not, be written to.

        Parameters
        ----------
        option : str
            Which option it was given by.
        path : Path or None
            None if the option was not given.
        endings : sequence of str
            What its name may end with; anything if there are none. A folder has none.
        """
        if path is None:
            return
        if endings and not path.name.endswith(tuple(endings)):
            raise InputError(
                f"{option} is {path}; expected a name ending in {' or '.join(endings)}."
            )
        self._check_place(option, path, is_file=bool(endings))
        self._claimed[path.resolve()] = option

    def protect(self, inputs: Iterable[Path]) -> None:
        """Refuse to replace what is read, even by force.

        Parameters
        ----------
        inputs : iterable of Path
        """
        for path in inputs:
            option = self._claimed.get(path.resolve())
            if option is not None:
                raise InputError(f"{option} is {path}, which is read as input; give another name.")

    def draft(self, path: Path) -> Path:
        """Return where to write what will be at `path`.

        Parameters
        ----------
        path : Path

        Returns
        -------
        Path
            With the same ending, in the same folder.
        """
        # A hidden name keeps the whole ending, by which libraries tell formats.
        draft = path.with_name(f".{token_hex(6)}-{path.name}")
        self._drafts[path] = draft
        return draft

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                for path, draft in self._drafts.items():
                    _move(draft, path)
        finally:
            for draft in self._drafts.values():
                _remove(draft)

    def _check_place(self, option: str, path: Path, *, is_file: bool) -> None:
        """Refuse what exists, and a folder that is missing or cannot be written to."""
        if is_file and path.is_dir():
            raise InputError(f"{option} is {path}, a folder; give the name of a file.")
        if path.is_file() and not is_file:
            raise InputError(f"{option} is {path}, a file; give the name of a folder.")
        if path.exists() and not self._force:
            raise InputError(
                f"{option} is {path}, which exists. Add --force to replace it, or give another "
                "name."
            )
        if not path.parent.is_dir():
            raise InputError(f"{option} is {path}, but there is no folder {path.parent}. Make it.")
        if not os.access(path.parent, os.W_OK):
            raise InputError(
                f"{option} is {path}, but the folder {path.parent} cannot be written to. "
                "Give another one."
            )


def _move(draft: Path, path: Path) -> None:
    """Put a draft in its place; of a folder that is there, only files of the same names go."""
    if path.is_dir() and draft.is_dir():
        for entry in draft.iterdir():
            _move(entry, path / entry.name)
    else:
        draft.replace(path)


def _remove(draft: Path) -> None:
    """Remove a draft if it is still there."""
    if draft.is_dir():
        rmtree(draft)
    else:
        draft.unlink(missing_ok=True)
