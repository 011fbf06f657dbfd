"""Processes that are killed, disks that are full, and samples that cannot be read."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pyfastr import FasTRClassifier, FasTRRegressor, FasTRRegressorCV, TensorScaler, load
from pyfastr.datasets import make_tensor_regression
from pyfastr.experiments.claims import Claims
from pyfastr.experiments.plan import Unit
from pyfastr.experiments.problems import Simulation
from pyfastr.experiments.store import Store
from pyfastr.persistence import ModelFileError, to_mat
from pyfastr.sources import ArraySource

STUDY = ["table1", "--quick", "--max-size", "125", "--methods", "lasso,eeridge", "--trials", "2"]
# Two problems, with the oracle three results in each trial.
N_RESULTS = 12
LAST = Unit("table1", Simulation((5, 5, 5), 100), 1)
# Bytes of a disk that a model file or a checkpoint does not fit on.
SMALL = 16 << 10
# Seconds for what takes a moment, on a machine however busy.
PATIENCE = 60.0


class Hasty(FasTRRegressor):
    """Writes its checkpoint after every step."""

    _checkpoint_interval = 0.0


def noisy(shape: tuple[int, ...] = (8, 7, 6), n_samples: int = 80) -> tuple[Any, Any]:
    """Return samples and responses with noise."""
    X, y = make_tensor_regression(n_samples, shape, random_state=1)
    return X, y + 0.3 * y.std() * np.random.default_rng(0).standard_normal(n_samples)


def killed(
    work: Callable[[], Any], seconds: float, has_begun: Callable[[], bool] = lambda: True
) -> bool:
    """Do some work in a forked process and kill it some time after it has begun.

    Returns whether it was still at work.
    """
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    try:
        _comes_true(has_begun)
        time.sleep(seconds)
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def _comes_true(is_so: Callable[[], bool]) -> bool:
    """Wait until something is so; return whether it came to that."""
    deadline = time.monotonic() + PATIENCE
    while not (result := is_so()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return result


def kill_a_save(folder: Path, rng: np.random.Generator) -> list[str]:
    """Kill a process that replaces a model file; one of the two models must be in it."""
    models = [FasTRRegressor(random_state=0).fit(*noisy((p, 5, 4))) for p in (6, 7)]
    path = models[0].save(folder / "model.fastr")
    before = _version(path)

    def save_for_ever() -> None:
        while True:
            for model in models:
                model.save(path)

    def is_replaced() -> bool:
        return _version(path) != before

    was_at_work = killed(save_for_ever, rng.uniform(0, 0.5), is_replaced)
    left = [] if was_at_work and is_replaced() else ["no save was under way"]
    found = load(path)
    same = (np.array_equal(found.coef_, model.coef_) for model in models)
    return left + ([] if any(same) else ["the file has neither model"])


def _version(path: Path) -> tuple[int, int]:
    """Return what is another when a file has been replaced."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


def kill_a_fit(folder: Path, rng: np.random.Generator) -> list[str]:
    """Kill a fit with a checkpoint again and again; the last call must end as if it were whole."""
    X, y = noisy()
    path = folder / "fit.checkpoint"
    model = Hasty(n_terms=2, n_init=20, random_state=0, checkpoint=path)
    whole = FasTRRegressor(n_terms=2, n_init=20, random_state=0)
    began = time.perf_counter()
    expected = whole.fit(X, y).coef_
    seconds = time.perf_counter() - began
    for _ in range(3):
        if not killed(lambda: model.fit(X, y), rng.uniform(0, 1.5 * seconds)):
            break
    left = [] if np.array_equal(model.fit(X, y).coef_, expected) else ["another answer"]
    return left + (["the checkpoint stayed"] if path.exists() else [])


def kill_a_study(folder: Path, rng: np.random.Generator) -> list[str]:
    """Kill a study; what it had found stays, and the next process does the rest."""
    out = folder / "out"
    n_before = int(rng.integers(N_RESULTS))
    with _study(out) as process:
        while process.poll() is None and len(_results(out)) < n_before:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        process.communicate()
    before = _results(out)
    code, errors = _resume(out)
    after = _results(out)
    left = [] if code == 0 else [f"code {code}: {errors[-200:]}"]
    left += [] if after[: len(before)] == before else ["results were lost"]
    return left + ([] if len(set(after)) == len(after) == N_RESULTS else ["results are missing"])


@contextmanager
def _study(out: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a study, which ends with the context."""
    command = [sys.executable, "-m", "pyfastr.cli", "reproduce", *STUDY, "--out", str(out)]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen([*command, *options], env=environment, **quiet) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def _resume(out: Path) -> tuple[int, str]:
    """Go on with a study to its end; return its code and what it says of errors."""
    with _study(out, "--resume") as process:
        _, errors = process.communicate()
    return process.returncode, errors


def _results(out: Path) -> list[tuple[str, int, str]]:
    return list(Store(out).results()) if out.exists() else []


@contextmanager
def small_disk(n_bytes: int) -> Iterator[Path]:
    """Mount a disk of so many bytes; only root can."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", folder]
        subprocess.run(["mount", *options], check=True, capture_output=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True, capture_output=True)


def can_mount() -> bool:
    """Whether a small disk can be mounted here."""
    try:
        with small_disk(SMALL):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def fill(disk: Path) -> None:
    """Write until nothing more fits."""
    with (disk / "filler").open("ab", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def save_on_a_full_disk(disk: Path) -> list[str]:
    """Replace a model file on a full disk: it must be told, and the old model stay."""
    model = FasTRRegressor(random_state=0).fit(*noisy((6, 5)))
    path = model.save(disk / "model.fastr")
    other = FasTRRegressor(random_state=0).fit(*noisy((60, 50)))
    fill(disk)
    left = []
    for write in (other.save, lambda place: to_mat(other, place)):
        message = _message(lambda write=write: write(path), ModelFileError)
        if "No space left on device" not in message or str(path) not in message:
            left.append(f"said: {message}")
    if not np.array_equal(load(path).coef_, model.coef_):
        left.append("the old model is gone")
    return left + _strangers(disk, "model.fastr", "filler")


def begin_a_fit_on_a_full_disk(disk: Path) -> list[str]:
    """Begin a fit whose checkpoint has no room: it must be told before the work."""
    fill(disk)
    source = Counting(noisy()[0])
    model = FasTRRegressor(random_state=0, checkpoint=disk / "fit.checkpoint")
    message = _message(lambda: model.fit(source, noisy()[1]), OSError)
    left = [] if "fit.checkpoint" in message else [f"said: {message}"]
    left += [] if not hasattr(model, "coef_") else ["a model"]
    return left + _strangers(disk, "filler")


def go_on_with_a_fit_on_a_full_disk(disk: Path) -> list[str]:
    """Let the disk be full in the middle of a fit: it must warn, go on and end as it would."""
    X, y = noisy()
    expected = FasTRRegressor(random_state=0).fit(X, y).coef_
    filling = Counting(X, at=15, then=lambda: fill(disk))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = Hasty(random_state=0, checkpoint=disk / "fit.checkpoint").fit(filling, y)
    left = [] if np.array_equal(model.coef_, expected) else ["another answer"]
    told = any("The fit goes on" in str(warning.message) for warning in heard)
    return left + ([] if told else ["nothing was said"]) + _strangers(disk, "filler")


def study_on_a_full_disk(disk: Path) -> list[str]:
    """Let the disk be full in the middle of a study: what is there must stay whole."""
    out = disk / "out"
    with _study(out) as process:
        # It cannot be over before the disk is full, as its last trial is claimed here.
        with Claims(out / "claims").claim(LAST.name):
            while process.poll() is None and len(_results(out)) < 3:
                time.sleep(0.005)
            fill(disk)
        before = _results(out)
        _, errors = process.communicate()
    left = [] if process.returncode == 2 else [f"code {process.returncode}"]
    left += [] if errors.count("\n") <= N_RESULTS + 2 else [f"said: {errors[-300:]}"]
    left += [] if "Traceback" not in errors else [f"said: {errors[-300:]}"]
    (disk / "filler").unlink()
    code, errors = _resume(out)
    after = _results(out)
    left += [] if code == 0 else [f"code {code}: {errors[-200:]}"]
    kept = after[: len(before)] == before and len(after) == N_RESULTS
    return left + ([] if kept else ["results were lost"])


def _message(work: Callable[[], Any], kind: type[Exception]) -> str:
    """Return what an error of this kind says, or that there was none."""
    try:
        work()
    except kind as error:
        return str(error)
    return "no error"


def _strangers(folder: Path, *known: str) -> list[str]:
    """Name the files that should not be in a folder."""
    return [f"{path.name} was left" for path in folder.iterdir() if path.name not in known]


class Counting(ArraySource):
    """Samples that have something happen, or fail, when they are read for the nth time."""

    def __init__(self, X: Any, at: int = 0, then: Callable[[], Any] = bool) -> None:
        super().__init__(X)
        self.n_reads, self._at, self._then = 0, at, then

    def read(self, rows: slice) -> Any:
        """Return a block."""
        self.n_reads += 1
        if self.n_reads == self._at:
            self._then()
        return super().read(rows)


ESTIMATORS = {
    "regressor": FasTRRegressor(n_init=4, random_state=0),
    "two terms": FasTRRegressor(n_terms=2, n_init=4, random_state=0),
    "logistic": FasTRClassifier(0.05, 0.1, loss="logistic", n_init=4, random_state=0),
    "choice": FasTRRegressorCV([0.0, 0.1], [0.1], 1, cv=2, n_init=4, random_state=0),
    "scaler": TensorScaler(),
}


def break_a_read(name: str, folder: Path, rng: np.random.Generator) -> list[str]:
    """Let a file of samples vanish in the middle of a fit: estimator and threads as before."""
    X, y = noisy()
    y = y > 0 if name == "logistic" else y
    paths = [folder / f"{number}.npy" for number in range(len(X))]
    for path, sample in zip(paths, X, strict=True):
        np.save(path, sample)
    from sklearn.base import clone

    model = clone(ESTIMATORS[name]).fit(X, y)
    before, threads = dict(vars(model)), _readers()
    lost = int(rng.integers(len(paths)))
    paths[lost].write_bytes(paths[lost].read_bytes()[:100])
    message = _message(lambda: model.fit(paths, y), OSError)
    left = [] if str(paths[lost]) in message and f"sample {lost}" in message else [message]
    same = vars(model).keys() == before.keys()
    same = same and all(vars(model)[attribute] is before[attribute] for attribute in before)
    left += [] if same else ["the estimator has changed"]
    is_quiet = _comes_true(lambda: _readers() <= threads)
    return left + ([] if is_quiet else ["a thread stayed"])


def _readers() -> int:
    return sum(t.name.startswith("pyfastr-reader") for t in threading.enumerate())
