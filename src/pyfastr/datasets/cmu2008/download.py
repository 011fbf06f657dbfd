"""Downloads that go on where they broke off."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_TIMEOUT_SECONDS = (10.0, 60.0)
_CHUNK_BYTES = 2**16
_TOO_MANY_REQUESTS = 429
_RANGE_NOT_SATISFIABLE = 416
_PARTIAL_CONTENT = 206


class ResumingDownloader:
    """A downloader for pooch that keeps what has arrived, and asks only for the rest.

    What has arrived is beside the file that is to be, with ".part" behind its name. It is kept
    when the connection breaks, and the next try, be it in this call or a later one, asks the
    server for what is missing (HTTP Range). A server that cannot do that, or whose file has
    changed since (If-Range), sends the whole file, and it is taken from the start.

    Parameters
    ----------
    file : Path
        Where the file will be in the end. Only pooch writes it, by a rename.
    check : callable
        Is given the path of the complete download, and raises if that is not what was wanted:
        a page of a network's login, say.
    n_retries : int
        How often to try again after a broken connection.
    delay : float
        Seconds between tries.
    """

    def __init__(
        self, file: Path, check: Callable[[Path], None], *, n_retries: int, delay: float
    ) -> None:
        self._part = file.with_name(f"{file.name}.part")
        self._version = file.with_name(f"{file.name}.part.version")
        self._check = check
        self._n_retries = n_retries
        self._delay = delay

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        """Download `url` to `output_file`, as pooch asks of a downloader."""
        self._download(url)
        try:
            self._check(self._part)
        except ValueError:
            self._forget()
            raise
        self._part.replace(output_file)
        self._forget()

    def _download(self, url: str) -> None:
        """Try until the part is complete, or the tries are used up."""
        for tries_left in range(self._n_retries, -1, -1):
            try:
                self._request(url)
                return
            except OSError as error:
                if tries_left == 0 or not _may_pass(error):
                    raise
                time.sleep(self._delay)

    def _request(self, url: str) -> None:
        """Ask for what is missing, and write it behind what is there."""
        import requests

        with requests.get(
            url, headers=self._headers(), stream=True, timeout=_TIMEOUT_SECONDS
        ) as response:
            if response.status_code == _RANGE_NOT_SATISFIABLE:
                # The part is longer than the file: it was another file's.
                self._forget()
                raise ConnectionError(f"{url} is shorter than what was downloaded of it before")
            response.raise_for_status()
            start = self._n_bytes() if _goes_on(response, self._n_bytes()) else 0
            self._write(response, start)

    def _headers(self) -> dict[str, str]:
        """Ask for bytes as they are, from where the part ends, of the version that it is of."""
        headers = {"Accept-Encoding": "identity"}
        if self._n_bytes() and self._version.exists():
            headers["Range"] = f"bytes={self._n_bytes()}-"
            headers["If-Range"] = self._version.read_text(encoding="utf-8")
        return headers

    def _write(self, response: Any, start: int) -> None:
        """Write what arrives from `start` on, and say so if it is too little."""
        length = response.headers.get("Content-Length")
        if start == 0:
            self._forget()
            self._remember(response)
        with self._part.open("ab" if start else "wb") as part:
            for chunk in response.iter_content(_CHUNK_BYTES):
                part.write(chunk)
        if length is not None and self._n_bytes() != start + int(length):
            expected = start + int(length)
            raise ConnectionError(f"{self._n_bytes()} of {expected} bytes arrived")

    def _remember(self, response: Any) -> None:
        """Note which version of the file this is; without a mark there is no going on later."""
        mark = response.headers.get("ETag", "")
        if not mark or mark.startswith("W/"):  # If-Range does not take a weak mark
            mark = response.headers.get("Last-Modified", "")
        if mark:
            self._version.write_text(mark, encoding="utf-8")

    def _n_bytes(self) -> int:
        """Return how much has arrived."""
        return self._part.stat().st_size if self._part.exists() else 0

    def _forget(self) -> None:
        """Remove the part and the note of its version."""
        self._part.unlink(missing_ok=True)
        self._version.unlink(missing_ok=True)


def _goes_on(response: Any, n_bytes: int) -> bool:
    """Return whether an answer begins where the part ends."""
    if response.status_code != _PARTIAL_CONTENT:
        return False
    begins = f"bytes {n_bytes}-"
    if response.headers.get("Content-Range", "").startswith(begins):
        return True
    raise OSError(
        f"{response.url} answered with {response.headers.get('Content-Range')!r}; expected "
        f"{begins!r}"
    )


def _may_pass(error: OSError) -> bool:
    """Return whether it makes sense to try again: the server did not refuse for good."""
    response = getattr(error, "response", None)
    if response is None:
        return True
    return response.status_code >= 500 or response.status_code == _TOO_MANY_REQUESTS


@contextmanager
def only_one_process(folder: Path) -> Iterator[None]:
    """Wait until no other process downloads into `folder`; two would write into one part.

    Where the system has no such lock (Windows, some network drives) it does not wait.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
