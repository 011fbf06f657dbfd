"""Files that a command writes: checked before the work, and all of them there or none."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from types import TracebackType
from typing import Self

from pyfastr.cli.errors import FULL, InputError
from pyfastr.estimators.atomic import draft_in


@dataclass(frozen=True)
class _Output:
    """A place that an option gives; the ending of a folder is ""."""

    option: str
    path: Path
    ending: str

    @property
    def draft_folder(self) -> Path:
        """Where it is written first: a folder that is there gets its files from within."""
        return self.path if self.path.is_dir() else self.path.absolute().parent


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
    >>> with outputs, outputs.draft(folder / "table.csv") as draft:
    ...     _ = draft.write_text("a,b")
    >>> (folder / "table.csv").read_text()
    'a,b'
    """

    def __init__(self, force: bool) -> None:
        self._force = force
        self._claimed: dict[Path, _Output] = {}
        self._drafts: list[tuple[Path, _Output]] = []

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
        ending = next((ending for ending in endings if path.name.endswith(ending)), "")
        if endings and not ending:
            raise InputError(
                f"{option} is {path}; expected a name ending in {' or '.join(endings)}."
            )
        output = _Output(option, path, ending)
        with naming(option, path):
            self._check_place(output)
            check_writable(output.draft_folder, ending)
        self._claimed[path.resolve()] = output

    def protect(self, inputs: Iterable[Path]) -> None:
        """Refuse to replace what is read, even by force.

        Parameters
        ----------
        inputs : iterable of Path
        """
        for path in inputs:
            output = self._claimed.get(path.resolve())
            if output is not None:
                raise InputError(
                    f"{output.option} is {path}, which is read as input; give another name."
                )

    @contextmanager
    def draft(self, path: Path) -> Iterator[Path]:
        """Give a place to write what will be at `path`, which was claimed.

        Parameters
        ----------
        path : Path

        Yields
        ------
        Path
            With the same ending, by which libraries tell formats.
        """
        output = self._claimed[path.resolve()]
        with naming(output.option, path):
            draft = draft_in(output.draft_folder, output.ending)
            self._drafts.append((draft, output))
            yield draft

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
                for draft, output in self._drafts:
                    with naming(output.option, output.path):
                        _move(draft, output.path)
        finally:
            for draft, _ in self._drafts:
                _remove(draft)

    def _check_place(self, output: _Output) -> None:
        """Refuse what exists, and a folder that is missing."""
        told, path = f"{output.option} is {output.path}", output.path
        if output.ending and path.is_dir():
            raise InputError(f"{told}, a folder; give the name of a file.")
        if path.is_file() and not output.ending:
            raise InputError(f"{told}, a file; give the name of a folder.")
        if path.exists() and not self._force:
            raise InputError(
                f"{told}, which exists. Add --force to replace it, or give another name."
            )
        if not path.parent.is_dir():
            raise InputError(f"{told}, but there is no folder {path.parent}. Make it.")
        # That a name is too long shows here, in any version of Python.
        with suppress(FileNotFoundError):
            path.lstat()


@contextmanager
def naming(option: str, path: Path) -> Iterator[None]:
    """Tell of which option a place is that the system lets nobody write to.

    Parameters
    ----------
    option : str
    path : Path
    """
    try:
        yield
    except (OSError, ValueError) as error:
        # Model files have an error of their own, whose cause is the system's.
        cause = error if isinstance(error, OSError) else error.__cause__
        # One without a number was raised by a library, which has said all in words.
        if not isinstance(cause, OSError) or cause.errno is None:
            raise
        advice = "Make room, or give another place." if cause.errno in FULL else "Give another one."
        raise InputError(
            f"{option} is {path}, which cannot be written to ({cause.strerror}). {advice}"
        ) from error


def check_writable(folder: Path, ending: str = "") -> None:
    """Write an empty file to a folder: whether that is possible, permissions alone do not tell.

    Parameters
    ----------
    folder : Path
    ending : str
        What the name of the file ends with.
    """
    draft = draft_in(folder, ending)
    try:
        draft.touch(exist_ok=False)
    finally:
        draft.unlink(missing_ok=True)


def _move(draft: Path, path: Path) -> None:
    """Put a draft in its place; of a folder that is there, only files of the same names go."""
    if path.is_dir() and draft.is_dir():
        for entry in draft.iterdir():
            _move(entry, path / entry.name)
    else:
        draft.replace(path)


def _remove(draft: Path) -> None:
    """Remove a draft if it is still there; what cannot be removed now goes another day."""
    with suppress(OSError):
        if draft.is_dir():
            rmtree(draft)
        else:
            draft.unlink(missing_ok=True)
