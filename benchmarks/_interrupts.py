"""Ctrl-C at random points of a fit: what it leaves behind, in one process, many times over."""

import gc
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone
from threadpoolctl import ThreadpoolController

from pyfastr import (
    FasTRClassifier,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
    config_context,
    get_config,
)
from pyfastr.datasets import make_tensor_regression

# Threads that stay for the next fit.
POOL = "pyfastr-worker"
# Seconds in which all is to be as it was before, on a machine however busy.
SOON = 60.0
# Seconds between looks at whether a point is reached, and points to try.
TICK = 0.0002
TRIES = 10
# So little that X in files is read block by block in every pass.
BUDGET = "16MB"
# Times that a scaler reads every file.
MANY = 40


@dataclass(frozen=True)
class Interrupted:
    """What an interruption came to.

    Attributes
    ----------
    case : str
    hit : bool
        Whether the fit was under way.
    seconds : float
        Until it stopped.
    work : float
        Processor seconds until then, which other programs lengthen little.
    whole : float
        Processor seconds of a fit of the same kind that nothing interrupts.
    left : list of str
        What was not as before; nothing if all is well.
    """

    case: str
    hit: bool
    seconds: float
    work: float
    whole: float
    left: list[str]


@dataclass(frozen=True)
class Case:
    """A fit to interrupt: a fresh estimator, and X as it is given to it."""

    estimator: Any
    give: Callable[[], Any]
    y: Any


def make_cases(folder: Path) -> dict[str, Case]:
    """Return fits of every kind whose threads and files differ."""
    X, y = _noisy(80, (8, 7, 6))
    # More than the budget keeps in memory, so that every pass reads.
    large, z = _noisy(60, (16, 15, 15))
    np.save(folder / "X.npy", large)
    for number, sample in enumerate(large):
        np.save(folder / f"sample{number:03d}.npy", sample)
    files = sorted(folder.glob("sample*.npy"))
    quick = {"n_init": 4, "max_iter": 20}
    grid = {"thresholds": [0.0, 0.1], "ridges": [0.1], "n_terms": 1, "cv": 2, **quick}
    return {
        "memory": Case(FasTRRegressor(ridge=0.01, **quick), lambda: X, y),
        "two terms": Case(FasTRRegressor(ridge=0.1, n_terms=2, **quick), lambda: X, y),
        "memory map": Case(
            FasTRRegressor(ridge=0.1, **quick), lambda: np.load(folder / "X.npy", mmap_mode="r"), z
        ),
        "files": Case(FasTRRegressor(ridge=0.1, **quick), lambda: list(files), z),
        "logistic": Case(FasTRClassifier(0.05, 0.1, loss="logistic", **quick), lambda: X, y > 0),
        "choice": Case(FasTRRegressorCV(**grid), lambda: X, y),
        "choice, files": Case(FasTRRegressorCV(**grid), lambda: list(files), z),
        # A pass over few files would be over before a thread could interrupt it.
        "scaler, files": Case(TensorScaler(), lambda: files * MANY, np.tile(z, MANY)),
    }


def _noisy(n_samples: int, shape: tuple[int, ...]) -> tuple[Any, Any]:
    X, y = make_tensor_regression(n_samples, shape, random_state=1)
    return X, y + 0.3 * y.std() * np.random.default_rng(0).standard_normal(n_samples)


def surroundings() -> dict[str, Any]:
    """Return what a fit must leave as it was."""
    blas = ThreadpoolController().select(user_api="blas").info()
    return {
        "threads": Counter(
            t.name for t in threading.enumerate() if not t.name.startswith((POOL, "timer"))
        ),
        "open files": Counter(_open_files()),
        "threads of BLAS": [library["num_threads"] for library in blas],
        "errors of numpy": np.geterr(),
        "filters of warnings": list(warnings.filters),
        "settings": get_config(),
        "settings of scikit-learn": sklearn.get_config(),
    }


def _seen(folder: Path) -> dict[str, Any]:
    return surroundings() | {"files in the folder": sorted(folder.iterdir())}


def _open_files() -> Iterator[str]:
    """Yield what this process has open, but for the list itself."""
    for entry in Path("/proc/self/fd").iterdir():
        try:
            yield str(entry.readlink())
        except FileNotFoundError:
            continue


def interrupt_often(
    cases: dict[str, Case], n_times: int, seed: int, folder: Path
) -> Iterator[Interrupted]:
    """Interrupt a case in turn at a random point; then fit anew and compare.

    Points are drawn by the processor's time, as other programs make the clock's anything.
    """
    rng = np.random.default_rng(seed)
    with _ctrl_c_is_heard(), config_context(memory_budget=BUDGET), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A first fit takes longer, as it starts threads and loads what it needs.
        known = {name: (_whole(case), _whole(case))[1] for name, case in cases.items()}
        gc.collect()
        before = _seen(folder)
        for number in range(n_times):
            name = list(cases)[number % len(cases)]
            answer, work = known[name]
            found = _interrupt_within(name, cases[name], work, rng)
            found.left.extend(_differences(before, folder))
            again, its_work = _whole(cases[name])
            known[name] = answer, min(work, its_work)
            if not _same(again, answer):
                found.left.append("the next fit gives another answer")
            yield found


@contextmanager
def _ctrl_c_is_heard() -> Iterator[None]:
    """Have every Ctrl-C raise an error that arrives."""

    main = threading.get_ident()

    def press_again(lost: Any) -> None:
        if lost.exc_type is not KeyboardInterrupt:
            hook(lost)
            return
        # Not here, where it would be dropped too.
        timer = threading.Timer(0.01, signal.pthread_kill, (main, signal.SIGINT))
        timer.name = "timer"
        timer.start()

    # A process in the background ignores Ctrl-C from its begin on.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    # Python drops errors of what it calls as objects go; a person would press once more.
    hook, sys.unraisablehook = sys.unraisablehook, press_again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, handler)


def _whole(case: Case) -> tuple[dict[str, Any], float]:
    """Fit to the end; return what it leaves, and the processor seconds that it takes."""
    model, began = _fresh(case), time.process_time()
    model.fit(case.give(), case.y)
    return _state(model), time.process_time() - began


def _interrupt_within(name: str, case: Case, work: float, rng: np.random.Generator) -> Interrupted:
    """Interrupt at a random point; at another one if the fit was over by then."""
    for _ in range(TRIES):
        found = _interrupt(name, case, rng.uniform(0, work), work)
        if found.hit or found.left:
            break
    return found


def _fresh(case: Case) -> Any:
    model = clone(case.estimator)
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


def _interrupt(name: str, case: Case, at: float, whole: float) -> Interrupted:
    """Fit, and send SIGINT after so many processor seconds of the whole fit's."""
    model, X = _fresh(case), case.give()
    before, sent = dict(vars(model)), list[tuple[float, float]]()
    is_over, main = threading.Event(), threading.get_ident()

    def send(due: float) -> None:
        while time.process_time() < due and not is_over.is_set():
            time.sleep(TICK)
        if not is_over.is_set():
            sent.append(_clocks())
            signal.pthread_kill(main, signal.SIGINT)

    timer = threading.Thread(target=send, args=(time.process_time() + at,), name="timer")
    stopped = None
    try:
        timer.start()
        model.fit(X, case.y)
        is_over.set()
        timer.join()
        if sent:
            # The signal was on its way as the fit ended, and falls in here.
            time.sleep(60)
    except KeyboardInterrupt as stop:
        in_fit = _passed_through_fit(stop)
        stopped = _clocks() if in_fit else None
    is_over.set()
    timer.join()
    left = []
    if vars(model).keys() != before.keys() and sent and not _is_complete(model, case):
        left.append(f"half a model: {', '.join(sorted(vars(model).keys() - before.keys()))}")
    if stopped is None:
        return Interrupted(name, False, 0.0, 0.0, whole, left)
    seconds, used = (after - begun for after, begun in zip(stopped, sent[0], strict=True))
    return Interrupted(name, True, seconds, used, whole, left)


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _passed_through_fit(error: BaseException) -> bool:
    """Whether an error came out of a fit."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_name == "fit" for frame, _ in frames)


def _is_complete(model: Any, case: Case) -> bool:
    """Whether a model that was interrupted at its very end is whole."""
    return vars(model).keys() == vars(_fresh(case).fit(case.give(), case.y)).keys()


def _state(model: Any) -> dict[str, Any]:
    """Return arrays and numbers that a fit found."""
    names = ("coef_", "intercept_", "mean_", "scale_")
    return {name: np.copy(getattr(model, name)) for name in names if hasattr(model, name)}


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    same = (np.array_equal(one[name], other[name]) for name in one)
    return one.keys() == other.keys() and all(same)


def _is_changed(before: Any, after: Any) -> bool:
    """Whether something is another, or more; what was there before the fits may go at any time."""
    return bool(after - before) if isinstance(before, Counter) else before != after


def _differences(before: dict[str, Any], folder: Path) -> list[str]:
    """Name what is not soon as it was; nothing is collected meanwhile that refers to itself."""
    began = time.perf_counter()
    while True:
        after = _seen(folder)
        changed = [name for name in before if _is_changed(before[name], after[name])]
        if not changed or time.perf_counter() - began > SOON:
            return [f"{name}: {before[name]} before, {after[name]} after" for name in changed]
        time.sleep(0.01)
