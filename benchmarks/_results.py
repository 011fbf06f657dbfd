"""Outcomes that are kept in a file as soon as they are known, to take a run up again."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from _fits import Outcome


class Keyed(Protocol):
    """A row of a benchmark."""

    @property
    def key(self) -> str:
        """Its name in the file."""


class Results:
    """Outcomes by row, seed and method, written to a file as they come and read from it."""

    def __init__(self, file: Path | None, redo: list[str], kind: type[Any] = Outcome) -> None:
        self._file = file
        self._known: dict[tuple[str, int, str], Any] = {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                entry = json.loads(line)
                key = (entry.pop("row"), entry.pop("seed"), entry.pop("method"))
                if key[2] not in redo:
                    self._known[key] = kind(**entry)
        self.n_read = len(self._known)

    def get(self, row: Keyed, seed: int, method: str) -> Any:
        """Return what is known, or None."""
        return self._known.get((row.key, seed, method))

    def add(self, row: Keyed, seed: int, method: str, outcome: Any) -> None:
        """Keep an outcome, at once in the file too."""
        self._known[row.key, seed, method] = outcome
        if self._file is not None:
            entry = {"row": row.key, "seed": seed, "method": method, **asdict(outcome)}
            with self._file.open("a") as stream:
                stream.write(json.dumps(entry) + "\n")

    def of(self, row: Keyed, method: str) -> dict[int, Any]:
        """Return the outcomes of a method in a row by seed."""
        return {s: o for (r, s, m), o in self._known.items() if (r, m) == (row.key, method)}
