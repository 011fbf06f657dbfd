"""Waiting for the workers of a Dask cluster, but not for ever."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Terms:
    """On which terms a cluster is used.

    Attributes
    ----------
    memory_share : float
        Of the workers' memory that X may take for good. From 60 % Dask moves data to disk, and what
        is made of X needs room as well.
    look : float
        Seconds between looks at the workers.
    without_workers : float
        Seconds that a fit goes on waiting while no worker can work.
    """

    memory_share: float = 0.5
    look: float = 2.0
    without_workers: float = 30.0


def workers_of(client: Any) -> dict[str, Any]:
    """Return what the scheduler knows of its workers, by address."""
    state, cause = client.status, None
    if state == "running":
        try:
            # Its own answer: scheduler_info() is now and then that of a look without workers, which
            # the client takes by itself meanwhile.
            workers: dict[str, Any] = client.sync(client.scheduler.identity)["workers"]
            return workers
        except OSError as error:
            state, cause = "cut off from the scheduler", error
    raise RuntimeError(
        f"X is a Dask array, and the client of its cluster is {state}. Connect a client to a "
        "cluster that runs, and fit again."
    ) from cause


def working(client: Any) -> dict[str, Any]:
    """Return those that take tasks: not paused for lack of memory, and not about to leave."""
    workers = workers_of(client)
    return {address: own for address, own in workers.items() if own["status"] == "running"}


def gathered(client: Any, futures: Sequence[Any], terms: Terms) -> list[Any]:
    """Return the results of tasks; whatever ends the wait early ends the tasks too."""
    try:
        settle(client, futures, terms)
        return list(client.gather(futures))
    except BaseException:
        cancel(client, futures)
        raise


def settle(client: Any, futures: Sequence[Any], terms: Terms) -> None:
    """Wait until tasks are done, and raise the error of one that failed."""
    distributed = import_module("distributed")
    with client.as_current(), _thread_for_others(distributed):
        wait_for(client, futures, terms)
    for future in futures:
        if future.status == "error":
            error = future.exception()
            if isinstance(error, distributed.KilledWorker):
                raise RuntimeError(
                    "X is a Dask array whose workers died again and again while they worked on it, "
                    "mostly for lack of memory. Give them more, or X smaller chunks."
                ) from error
            raise error


def wait_for(client: Any, futures: Sequence[Any], terms: Terms) -> None:
    """Wait until tasks are done; if no worker works for long, that is an error."""
    distributed = import_module("distributed")
    since: float | None = None
    while True:
        try:
            distributed.wait(futures, timeout=terms.look)
            return
        except TimeoutError:
            now = time.monotonic()
            since = None if working(client) else since or now
            if since is not None and now - since > terms.without_workers:
                raise RuntimeError(_nobody_works(terms)) from None


def wait_for_workers(client: Any, terms: Terms) -> dict[str, Any]:
    """Return the workers as soon as there are any."""
    end = time.monotonic() + terms.without_workers
    while not (workers := working(client)):
        if time.monotonic() > end:
            raise RuntimeError(_nobody_works(terms))
        time.sleep(min(terms.look, 0.1))
    return workers


def _nobody_works(terms: Terms) -> str:
    return (
        "X is a Dask array whose cluster has had no worker that works for "
        f"{terms.without_workers:.0f} s: they are gone, or have stopped for lack of memory. Start "
        "workers, or give them more memory, and fit again."
    )


def cancel(client: Any, futures: Sequence[Any]) -> None:
    """Have nobody work on tasks any more, if there is a scheduler to tell."""
    if client.status == "running":
        with suppress(OSError, TimeoutError):
            client.cancel(list(futures))


@contextmanager
def _thread_for_others(distributed: Any) -> Iterator[None]:
    """Where a task of the cluster waits itself, leave its thread to the tasks it waits for."""
    if not _is_in_task(distributed):
        yield
        return
    distributed.secede()
    try:
        yield
    finally:
        distributed.rejoin()


def _is_in_task(distributed: Any) -> bool:
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True
