"""What a command says: to a person in a terminal, or to a program as one JSON document."""

import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

# Of use to those who write the libraries, not to those who run the command.
_FOR_DEVELOPERS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning)


class Voice:
    """Speaks to whoever runs the command.

    Parameters
    ----------
    as_json : bool
        Whether the standard output has one JSON document and nothing else.
    quiet : bool
        Whether only warnings and errors are said.

    Attributes
    ----------
    warnings : list of str
        All that were said.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.warnings: list[str] = []
        self._notes: list[str] = []

    @property
    def verbose(self) -> int:
        """What estimators take as `verbose`: 1 if a person watches the progress."""
        return int(sys.stderr.isatty() and not (self.as_json or self.quiet))

    def note(self, text: str) -> None:
        """Say something on the way, apart from the results, once.

        Parameters
        ----------
        text : str
        """
        if text not in self._notes and not (self.quiet or self.as_json):
            self._notes.append(text)
            typer.echo(text, err=True)

    def warn(self, text: str) -> None:
        """Say what should not be missed, once.

        Parameters
        ----------
        text : str
        """
        line = " ".join(text.split())
        if line not in self.warnings:
            self.warnings.append(line)
            typer.echo(typer.style("Warning:", fg="yellow") + f" {line}", err=True)

    def show(self, *renderables: Any) -> None:
        """Print results for a person.

        Parameters
        ----------
        *renderables : str or whatever rich can draw
        """
        if self.quiet or self.as_json:
            return
        from rich.console import Console

        console = Console(highlight=False, markup=False)
        for renderable in renderables:
            console.print(renderable)

    def document(self, content: Mapping[str, Any]) -> None:
        """Print results for a program; nothing unless JSON was asked for.

        Parameters
        ----------
        content : mapping
            NumPy's numbers and arrays, paths and tuples may be among its values.
        """
        if self.as_json:
            typer.echo(json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False))

    @contextmanager
    def hearing_warnings(self) -> Iterator[None]:
        """Say Python's warnings as plain lines, after a progress bar has made way for them."""
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            for kind in _FOR_DEVELOPERS:
                warnings.simplefilter("ignore", kind)
            try:
                yield
            finally:
                lines = [str(warning.message) for warning in heard]
        for line in lines:
            self.warn(line)


def _plain(value: Any) -> Any:
    """Return a value that JSON has a word for: null stands for what is no finite number."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if value - value == 0 else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
