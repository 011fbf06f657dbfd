"""Stored X under a memory budget: peak memory, and sweeps against plain reading of the same file.

Files are written below ``--folder`` and removed at the end. Plain reading is of the whole file, in
order, about 8 MB of whole chunks at a time, by the package that wrote it, and nothing is done with
what is read. Sweeps and reads take turns in one process, and the fastest of each counts: "warm"
from the system's cache, where the file fits into it, "cold" after the file was put out of it. Cold
sweeps are simultaneous ones, of one pass. "Of bound" compares warm sweeps with the same sweeps of
an array plus plain reading shared among all cores: no reader could be faster. The fit is a whole
`FasTRRegressor().fit`, search and all, in a process of its own.

    python benchmarks/scale.py --shape 400 400 5 --dtype float64 --gb 25.6 --kinds memmap

is a case beyond most machines' memory; it needs that much room on the disk.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from _memory import measured_above_data
from _report import environment, print_table, size_name, verdict
from numpy.typing import NDArray

import pyfastr
from pyfastr.config import parse_bytes
from pyfastr.solver.models import Models
from pyfastr.solver.problem import make_problem
from pyfastr.solver.sweep import cyclic_sweep, simultaneous_sweep
from pyfastr.solver.update import Penalty
from pyfastr.sources import as_source, largest_entry

Array = NDArray[Any]

SHAPE = (51, 61, 23)
KINDS = ("memmap", "HDF5", "HDF5 gzip", "Zarr")
BLOCK = 8 << 20
RIDGE, NOISE = 1e-5, 0.1
# Bytes of the samples that are swept as an array.
IN_MEMORY = 400_000_000
# What is asked for: sweeps at this share of the speed of plain reading, peaks within this much.
SPEED, PEAK = 0.7, 1.5


@dataclass(frozen=True)
class Case:
    """One file: its kind, where it is, its size, and how it is to be read."""

    kind: str
    folder: Path
    n_samples: int
    shape: tuple[int, ...]
    dtype: str
    chunk_bytes: int
    budget: int
    repeats: int

    @property
    def path(self) -> Path:
        """The file or folder."""
        ending = {"memmap": "npy", "HDF5": "h5", "HDF5 gzip": "gz.h5", "Zarr": "zarr"}[self.kind]
        return self.folder / f"X.{ending}"

    @property
    def n_bytes(self) -> int:
        """Size of X."""
        return self.n_samples * self.sample_bytes

    @property
    def sample_bytes(self) -> int:
        """Size of a sample."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def chunk(self) -> int:
        """Samples of a chunk."""
        return max(1, self.chunk_bytes // self.sample_bytes)


def parts_of(case: Case) -> Iterator[slice]:
    """Cut the samples into what is written or plainly read at a time: whole chunks."""
    step = max(1, BLOCK // (case.chunk * case.sample_bytes)) * case.chunk
    yield from (slice(i, min(i + step, case.n_samples)) for i in range(0, case.n_samples, step))


def write(case: Case) -> Array:
    """Write samples part by part, and return responses to a sparse unit-rank coefficient."""
    rng = np.random.default_rng(0)
    factors = [np.where(rng.random(p) < 0.5, rng.normal(size=p), 0) for p in case.shape]
    stored, y = create(case), np.empty(case.n_samples)
    for rows in parts_of(case):
        X = rng.standard_normal((rows.stop - rows.start, *case.shape), np.dtype(case.dtype))
        stored[rows] = X
        for factor in reversed(factors):
            X = X @ factor.astype(case.dtype)
        y[rows] = X
    if hasattr(stored, "file"):
        stored.file.close()
    elif hasattr(stored, "flush"):
        stored.flush()
    # Only what is on disk can be put out of the cache.
    os.sync()
    return y / y.std() + NOISE * rng.normal(size=len(y))


def create(case: Case) -> Any:
    """Make an empty file."""
    shape, chunks = (case.n_samples, *case.shape), (case.chunk, *case.shape)
    if case.kind == "memmap":
        return np.lib.format.open_memmap(case.path, "w+", case.dtype, shape)
    if case.kind == "Zarr":
        import zarr

        return zarr.create_array(case.path, shape=shape, chunks=chunks, dtype=case.dtype)
    import h5py

    filters = {"compression": "gzip", "compression_opts": 1} if "gzip" in case.kind else {}
    file = h5py.File(case.path, "w")
    return file.create_dataset("X", shape, case.dtype, chunks=chunks, **filters)


def open_stored(case: Case, y: Array) -> tuple[Case, Any, Array]:
    """Open a file as a user would."""
    # What the first fit loads is not memory that samples take.
    rng = np.random.default_rng(0)
    pyfastr.FasTRRegressor(n_init=1).fit(rng.normal(size=(30, 3, 3)), rng.normal(size=30))
    if case.kind == "memmap":
        return case, np.load(case.path, mmap_mode="r"), y
    if case.kind == "Zarr":
        import zarr

        return case, zarr.open_array(case.path, mode="r"), y
    import h5py

    return case, h5py.File(case.path)["X"], y


def read_plainly(case: Case, X: Any) -> None:
    """Read everything once, and use none of it."""
    if case.kind != "memmap":
        for rows in parts_of(case):
            _ = X[rows]
        return
    buffer = bytearray(BLOCK)
    with case.path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def put_out_of_cache(case: Case) -> None:
    """Let the next read come from the disk."""
    paths = [case.path] if case.path.is_file() else case.path.rglob("*")
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Sweeps:
    """Sweeps of one model over some samples."""

    def __init__(self, case: Case, X: Any, y: Array) -> None:
        source = as_source(X)
        self._n_modes = len(case.shape)
        self.problem = make_problem(source, y, x_scale=largest_entry(source), fit_intercept=True)
        self._models = Models.random(1, 1, case.shape, np.random.default_rng(0)).astype(case.dtype)

    def cyclic(self) -> None:
        """Sweep as often as it takes for the passes to come in whole numbers."""
        for _ in range(self._n_modes - 1):
            self._models, _ = cyclic_sweep(self.problem, self._models, Penalty(RIDGE))

    def one_pass(self) -> None:
        """Sweep in a single pass."""
        simultaneous_sweep(self.problem, self._models, Penalty(RIDGE))

    def count_passes(self) -> float:
        """Sweep once more, and return the passes over X of `cyclic`."""
        before = self.problem.engine.passes
        self.cyclic()
        return self.problem.engine.passes - before


def sweep_and_read(opened: tuple[Case, Any, Array]) -> dict[str, float]:
    """Time plain reads and sweeps of one model, and count the sweeps' passes."""
    case, X, y = opened
    with pyfastr.config_context(memory_budget=case.budget):
        sweeps = Sweeps(case, X, y)

        def read() -> None:
            read_plainly(case, X)

        warm = fastest({"read": read, "sweep": sweeps.cyclic}, case.repeats, lambda: None)
        passes = sweeps.count_passes()
        works = {"read": read, "sweep": sweeps.one_pass}
        cold = fastest(works, 2, lambda: put_out_of_cache(case))
    return {
        "read": warm["read"],
        "pass": warm["sweep"] / passes,
        "passes": passes / (len(case.shape) - 1),
        "cold read": cold["read"],
        "cold pass": cold["sweep"],
    }


def sweep_in_memory(opened: tuple[Case, Any, Array]) -> float:
    """Seconds of a pass over all samples if they were an array, from some of them."""
    case, X, y = opened
    some = max(1, min(case.n_samples, IN_MEMORY // case.sample_bytes))
    sweeps = Sweeps(case, np.array(X[:some]), y[:some])
    found = fastest({"sweep": sweeps.cyclic}, case.repeats, lambda: None)
    return found["sweep"] / sweeps.count_passes() * case.n_samples / some


def fastest(
    works: dict[str, Callable[[], None]], repeats: int, prepare: Callable[[], None]
) -> dict[str, float]:
    """Seconds of each work, the least of some repeats in which they take turns."""
    least = dict.fromkeys(works, np.inf)
    for _ in range(repeats):
        for name, work in works.items():
            prepare()
            begin = time.perf_counter()
            work()
            least[name] = min(least[name], time.perf_counter() - begin)
    return least


def fit(opened: tuple[Case, Any, Array]) -> dict[str, float]:
    """Fit, and count the samples that are read."""
    case, X, y = opened
    begin = time.perf_counter()
    with pyfastr.config_context(memory_budget=case.budget):
        model = pyfastr.FasTRRegressor(random_state=0).fit(X, y)
    return {"seconds": time.perf_counter() - begin, "sweeps": float(model.n_iter_)}


def sweep_cells(case: Case, found: dict[str, float], memory: float, peak: float) -> list[str]:
    """Compare sweeps with plain reading."""
    size = case.n_bytes / 1e9
    bound = memory + found["read"] / (os.cpu_count() or 1)
    warm, cold = found["read"] / found["pass"], found["cold read"] / found["cold pass"]
    return [
        case.kind,
        f"{case.chunk * case.sample_bytes / 1e6:.1f}",
        f"{found['passes']:.2f}",
        *(f"{size / found[name]:.2f}" for name in ("read", "pass")),
        f"{warm:.2f}",
        f"{bound / found['pass']:.2f}",
        *(f"{size / found[name]:.2f}" for name in ("cold read", "cold pass")),
        f"{cold:.2f}",
        verdict(cold >= SPEED),
        f"{peak / 1e6:.0f}",
        verdict(peak <= PEAK * case.budget),
    ]


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gb", type=float, default=2.0, help="size of X in GB (1e9 bytes)")
    parser.add_argument("--shape", type=int, nargs="+", default=SHAPE, help="of a sample")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--budget", default="512MB")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--chunks", nargs="+", default=["2MB"], help="sizes of chunks")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--fit", action="store_true", help="run whole fits as well")
    parser.add_argument("--folder", type=Path, default=None)
    return parser.parse_args()


def main() -> None:
    """Write, measure, and print."""
    options = parse_arguments()
    check_room(options.folder or Path(tempfile.gettempdir()), options.gb)
    swept, fitted = [], []
    print(environment())
    size = size_name(tuple(options.shape), n_samples_of(options))
    print(f"{size}, {options.dtype}, {options.gb:g} GB; budget {options.budget}")
    for case in cases_of(options):
        try:
            y = write(case)
            peak, found = measured_above_data(open_stored, sweep_and_read, case, y)
            _, memory = measured_above_data(open_stored, sweep_in_memory, case, y)
            swept.append(sweep_cells(case, found, memory, peak))
            if options.fit:
                peak, found = measured_above_data(open_stored, fit, case, y)
                passed = verdict(peak <= PEAK * case.budget)
                fitted.append([case.kind, f"{found['seconds']:.0f}", f"{peak / 1e6:.0f}", passed])
        finally:
            shutil.rmtree(case.folder)
    header = ["kind", "chunk MB", "passes", "warm read GB/s", "sweep", "share", "of bound"]
    header += ["cold read GB/s", "sweep", "share", "≥ 0.7", "peak MB", "≤ 1.5 budget"]
    print_table("Sweeps of one model", header, swept)
    if fitted:
        print_table("Whole fits", ["kind", "seconds", "peak MB", "≤ 1.5 budget"], fitted)


def n_samples_of(options: argparse.Namespace) -> int:
    """Return how many samples make up the size that is asked for."""
    return round(options.gb * 1e9 / (prod(options.shape) * np.dtype(options.dtype).itemsize))


def cases_of(options: argparse.Namespace) -> Iterator[Case]:
    """Yield what is to be measured, each in a new folder."""
    shape, budget = tuple(options.shape), parse_bytes(options.budget, "--budget")
    for size in options.chunks:
        for kind in options.kinds:
            folder = Path(tempfile.mkdtemp(dir=options.folder))
            layout = (n_samples_of(options), shape, options.dtype, int(parse_chunk(size)))
            yield Case(kind, folder, *layout, budget, options.repeats)


def check_room(folder: Path, size: float) -> None:
    """Refuse to fill a disk to its brim."""
    free = shutil.disk_usage(folder).free / 1e9
    if free < 1.2 * size:
        raise SystemExit(f"--gb is {size:g}, but {folder} has {free:.1f} GB of room; use --folder.")


def parse_chunk(text: str) -> float:
    """Return the bytes of a chunk, which may be smaller than a budget."""
    return float(text.upper().removesuffix("MB")) * 1e6


if __name__ == "__main__":
    main()
