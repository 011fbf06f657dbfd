"""Results, each one line of a file from the moment it is known."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from errno import ENOSPC
from pathlib import Path
from typing import Any, Literal

Status = Literal["ok", "timeout", "failed", "skipped"]
Key = tuple[str, int, str]


@dataclass(frozen=True)
class Result:
    """What came of one fit.

    Attributes
    ----------
    experiment : str
        The experiment that asked for it first.
    problem, method : str
        Their keys.
    trial : int
    status : {"ok", "timeout", "failed", "skipped"}
    seconds : float
        Time of the fit with all its tuning; the limit if it was ended there.
    budget : float
        Seconds that it was given.
    dtype : str
        Type of the samples.
    metrics : dict of float
        Empty unless the status is "ok".
    params : dict
        What was chosen.
    reason : str
        Why there are no metrics.
    environment : str
        Name of the machine and the versions, see `Store.add_environment`.
    """

    experiment: str
    problem: str
    trial: int
    method: str
    status: Status
    seconds: float
    budget: float
    dtype: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    environment: str = ""

    @property
    def key(self) -> Key:
        """What no other result of a study shares."""
        return self.problem, self.trial, self.method

    def answers(self, budget: float) -> bool:
        """Whether a run with this budget can do without the fit.

        Parameters
        ----------
        budget : float

        Returns
        -------
        bool
            False if it was ended, or never begun, for want of time that there is now.
        """
        return self.status in ("ok", "failed") or self.budget >= budget


class Store:
    """The lines of a directory, which several processes may add to.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "results.jsonl"

    def add(self, result: Result) -> None:
        """Keep a result.

        Parameters
        ----------
        result : Result
        """
        self._append(asdict(result))

    def add_environment(self, name: str, facts: dict[str, str]) -> None:
        """Keep what results of this environment depend on; once is enough.

        Parameters
        ----------
        name : str
        facts : dict of str
        """
        if name not in self.environments():
            self._append({"environment": name, "facts": facts})

    def results(self) -> dict[Key, Result]:
        """Read all results; of several with one key, the last.

        Returns
        -------
        dict of Result
            By problem, trial and method.
        """
        found = (Result(**entry) for entry in self._entries() if "method" in entry)
        return {result.key: result for result in found}

    def environments(self) -> dict[str, dict[str, str]]:
        """Read all environments.

        Returns
        -------
        dict of dict
            Facts by name.
        """
        return {e["environment"]: e["facts"] for e in self._entries() if "facts" in e}

    def _entries(self) -> Iterator[dict[str, Any]]:
        if not self.file.exists():
            return
        for line in self.file.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                # The process that wrote this line was killed: its fit is not known.
                continue

    def _append(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, ensure_ascii=True, default=_plain_number) + "\n"
        # One write to a file opened for appending stands in one piece beside those of others.
        handle = os.open(self.file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            text = line if _ends_with_newline(handle) else "\n" + line
            written = os.write(handle, text.encode())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.file)) from error
        finally:
            os.close(handle)
        if written != len(text):
            # What there is of the line is passed over by whoever reads.
            raise OSError(ENOSPC, os.strerror(ENOSPC), str(self.file))


def _plain_number(value: Any) -> Any:
    """Turn a NumPy number into one of Python."""
    return value.item()


def _ends_with_newline(handle: int) -> bool:
    """Whether the last line is whole; an empty file has none that is not."""
    size = os.fstat(handle).st_size
    return size == 0 or os.pread(handle, 1, size - 1) == b"\n"
