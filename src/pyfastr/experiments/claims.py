"""Who works on what, where several processes share a directory."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Claims:
    """Locks on names; the system releases those of a process that ends, however it ends.

    Parameters
    ----------
    folder : Path
        Where the lock files are; made if it is not there.

    Notes
    -----
    The locks are POSIX record locks, which a forked child does not inherit: a fit that outlives
    its parent holds none. For the same reason a process does not lock out itself.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    @contextmanager
    def claim(self, name: str, *, wait: bool = False) -> Iterator[bool]:
        """Hold a name as long as the context lasts.

        Parameters
        ----------
        name : str
        wait : bool, default=False
            Whether to wait until another process lets go of it.

        Yields
        ------
        bool
            Whether it is held; always with `wait`.
        """
        with (self._folder / f"{name}.lock").open("w") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True
