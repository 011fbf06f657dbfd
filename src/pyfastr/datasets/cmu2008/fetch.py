"""Trials of one participant of CMU2008, downloaded when they are not there."""

import os
from hashlib import file_digest
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.utils import Bunch

from pyfastr.datasets.cmu2008.classes import Categories, check_categories
from pyfastr.datasets.cmu2008.contents import check_file
from pyfastr.datasets.cmu2008.download import ResumingDownloader, only_one_process
from pyfastr.datasets.cmu2008.layout import BASE_URL, PAGE, check_subject, file_name
from pyfastr.datasets.cmu2008.load import load_cmu2008


def fetch_cmu2008(
    subject: int | str,
    *,
    data_home: str | PathLike[str] | None = None,
    categories: Categories = "tools-animals",
    download_if_missing: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
    base_url: str = BASE_URL,
) -> Bunch:
    """Load the trials of one participant of CMU2008, downloading the file when it is missing.

    A download that breaks off goes on where it stopped, now or in a later call, and the file
    gets its name only when it is complete. No checksums of these files are published: that of
    the first download is noted beside the file (``.sha256``) and held against it from then on.
    A file that you put into `data_home` yourself is used without any network.

    Downloading needs pooch: ``pip install "pyfastr[data]"``.

    Parameters
    ----------
    subject : int or str
        The participant, 1 to 9 or "P1" to "P9".
    data_home : path-like, optional
        The folder of the files. By default the environment variable ``PYFASTR_DATA``, or else
        ``~/pyfastr_data``.
    categories : {"tools-animals", "all"}, sequence of str, mapping or None, \
default="tools-animals"
        The classes, as in `load_cmu2008`.
    download_if_missing : bool, default=True
        If False, a file that is not there is an error.
    n_retries : int, default=3
        How often to try again after a broken connection.
    delay : float, default=1.0
        Seconds between tries.
    base_url : str
        Where the files are: for a mirror.

    Returns
    -------
    Bunch
        As `load_cmu2008` returns it.

    Raises
    ------
    OSError
        If the file is not there and cannot be downloaded: the message says where it is on the
        web and where to put it.
    ValueError
        If the file is damaged, or has changed since its checksum was noted.

    Examples
    --------
    >>> from pyfastr.datasets import fetch_cmu2008
    >>> trials = fetch_cmu2008(1)  # doctest: +SKIP
    >>> trials.data.shape  # doctest: +SKIP
    (120, 51, 61, 23)
    """
    name = check_subject(subject)
    check_categories(categories)
    file = data_folder(data_home) / file_name(name)
    if file.exists():
        _check_against_note(file)
    elif not download_if_missing:
        raise FileNotFoundError(
            f"{file} is missing, and download_if_missing=False. {_by_hand(file)}"
        )
    else:
        url = f"{base_url.rstrip('/')}/{file.name}"
        _download(url, file, n_retries=n_retries, delay=delay)
    return load_cmu2008(file, categories=categories, subject=name)


def data_folder(data_home: Any) -> Path:
    """Return the folder of the files.

    Parameters
    ----------
    data_home : path-like or None
        As in `fetch_cmu2008`.

    Returns
    -------
    Path
    """
    if data_home is None:
        data_home = os.environ.get("PYFASTR_DATA") or Path("~", "pyfastr_data")
    return Path(data_home).expanduser()


def _download(url: str, file: Path, *, n_retries: int, delay: float) -> None:
    """Download a file, or say what to do instead."""
    pooch = _import_pooch(file)
    downloader = ResumingDownloader(file, _check_download, n_retries=n_retries, delay=delay)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with only_one_process(file.parent):
            # Another process may have been first.
            if not file.exists():
                _retrieve(pooch, url, file, downloader)
    except OSError as error:
        raise OSError(f"Could not download {url} ({error}). {_by_hand(file)}") from error
    except ValueError as error:
        raise ValueError(
            f"{url} was downloaded, but is not used: {error}\nIf it is a new version that you "
            f"want, delete {_note_of(file)}, where the checksum of the first download is noted."
        ) from error


def _retrieve(pooch: Any, url: str, file: Path, downloader: ResumingDownloader) -> None:
    """Let pooch write the file beside its place, compare checksums and rename; note a new one."""
    pooch.retrieve(url, _noted(file), fname=file.name, path=file.parent, downloader=downloader)
    _note_of(file).write_text(f"{_sha256(file)}\n", encoding="utf-8")


def _import_pooch(file: Path) -> Any:
    """Return pooch, or say which extra brings it."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f'Downloading {file.name} needs pooch: pip install "pyfastr[data]". {_by_hand(file)}'
        ) from error
    return pooch


def _check_download(part: Path) -> None:
    """Refuse a download that is no complete file of this kind."""
    check_file(part)


def _note_of(file: Path) -> Path:
    """Return where the checksum of a file is noted."""
    return file.with_name(f"{file.name}.sha256")


def _noted(file: Path) -> str | None:
    """Return the checksum of the first download, if there was one."""
    note = _note_of(file)
    return note.read_text(encoding="utf-8").strip() if note.exists() else None


def _sha256(file: Path) -> str:
    """Return the checksum of a file."""
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _check_against_note(file: Path) -> None:
    """Refuse a file that is not the one that was downloaded."""
    noted = _noted(file)
    if noted is None:
        return
    found = _sha256(file)
    if found != noted:
        raise ValueError(
            f"{file}: its sha256 is {found}; expected {noted}, as noted in {_note_of(file).name} "
            f"when it was downloaded. Delete {file.name} to download it again; if you put another "
            f"file there on purpose, delete {_note_of(file).name}."
        )


def _by_hand(file: Path) -> str:
    """Say how to get a file without this function."""
    return f"Get {file.name} from {PAGE} and put it into {file.parent}: it is then used as it is."
