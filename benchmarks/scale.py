"""Stored X under a memory budget: peak memory, and sweeps against plain reading of the same file.

Files are written below ``--folder`` and removed at the end. Plain reading is of the whole file, in
order, about 8 MB of whole chunks at a time, by the package that wrote it, and nothing is done with
what is read. Sweeps and reads take turns in one process, and the fastest of each counts: "warm"
from the system's cache, where the file fits into it, "cold" after the file was put out of it. Cold
sweeps are simultaneous ones, of one pass. The fit is a whole `FasTRRegressor().fit`, search and
all, in a process of its own.
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
# What is asked for: sweeps at this share of the speed of plain reading, peaks within this much.
SPEED, PEAK = 0.7, 1.5


@dataclass(frozen=True)
class Case:
    """One file: its kind, where it is, its size, and how it is to be read."""

    kind: str
    folder: Path
    n_samples: int
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
        return self.n_samples * prod(SHAPE) * 4

    @property
    def chunk(self) -> int:
        """Samples of a chunk."""
        return max(1, self.chunk_bytes // (prod(SHAPE) * 4))


def parts_of(case: Case) -> Iterator[slice]:
    """Cut the samples into what is written or plainly read at a time: whole chunks."""
    step = max(1, BLOCK // (case.chunk * prod(SHAPE) * 4)) * case.chunk
    yield from (slice(i, min(i + step, case.n_samples)) for i in range(0, case.n_samples, step))


def write(case: Case) -> Array:
    """Write samples part by part, and return responses to a sparse unit-rank coefficient."""
    rng = np.random.default_rng(0)
    factors = [np.where(rng.random(p) < 0.5, rng.normal(size=p), 0).astype("f4") for p in SHAPE]
    stored, y = create(case), np.empty(case.n_samples)
    for rows in parts_of(case):
        X = rng.standard_normal((rows.stop - rows.start, *SHAPE), np.float32)
        stored[rows] = X
        y[rows] = np.einsum("nijk,i,j,k", X, *factors, optimize=True)
    if hasattr(stored, "file"):
        stored.file.close()
    elif hasattr(stored, "flush"):
        stored.flush()
    # Only what is on disk can be put out of the cache.
    os.sync()
    return y / y.std() + NOISE * rng.normal(size=len(y))


def create(case: Case) -> Any:
    """Make an empty file."""
    shape, chunks = (case.n_samples, *SHAPE), (case.chunk, *SHAPE)
    if case.kind == "memmap":
        return np.lib.format.open_memmap(case.path, "w+", np.float32, shape)
    if case.kind == "Zarr":
        import zarr

        return zarr.create_array(case.path, shape=shape, chunks=chunks, dtype="f4")
    import h5py

    filters = {"compression": "gzip", "compression_opts": 1} if "gzip" in case.kind else {}
    file = h5py.File(case.path, "w")
    return file.create_dataset("X", shape, "f4", chunks=chunks, **filters)


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


def sweep_and_read(opened: tuple[Case, Any, Array]) -> dict[str, float]:
    """Time plain reads and sweeps of one model, and count the sweeps' passes."""
    case, X, y = opened
    with pyfastr.config_context(memory_budget=case.budget):
        source = as_source(X)
        problem = make_problem(source, y, x_scale=largest_entry(source), fit_intercept=True)
        models = Models.random(1, 1, SHAPE, np.random.default_rng(0)).astype(np.float32)

        def sweep() -> None:
            nonlocal models
            for _ in SHAPE[1:]:
                models, _ = cyclic_sweep(problem, models, Penalty(RIDGE))

        def read() -> None:
            read_plainly(case, X)

        def one_pass() -> None:
            simultaneous_sweep(problem, models, Penalty(RIDGE))

        warm = fastest({"read": read, "sweep": sweep}, case.repeats, lambda: None)
        before = problem.projector.passes
        sweep()
        passes = problem.projector.passes - before
        cold = fastest({"read": read, "sweep": one_pass}, 2, lambda: put_out_of_cache(case))
    return {
        "read": warm["read"],
        "pass": warm["sweep"] / passes,
        "passes": passes / (len(SHAPE) - 1),
        "cold read": cold["read"],
        "cold pass": cold["sweep"],
    }


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


def sweep_cells(case: Case, found: dict[str, float], peak: float) -> list[str]:
    """Compare sweeps with plain reading."""
    size = case.n_bytes / 1e9
    warm, cold = found["read"] / found["pass"], found["cold read"] / found["cold pass"]
    return [
        case.kind,
        f"{case.chunk * prod(SHAPE) * 4 / 1e6:.1f}",
        f"{found['passes']:.2f}",
        *(f"{size / found[name]:.2f}" for name in ("read", "pass")),
        f"{warm:.2f}",
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
    budget = parse_bytes(options.budget, "--budget")
    n_samples = int(options.gb * 1e9 / (4 * prod(SHAPE)))
    print(environment())
    print(f"{size_name(SHAPE, n_samples)}, float32, {options.gb:g} GB; budget {options.budget}")
    swept, fitted = [], []
    for size in options.chunks:
        for kind in options.kinds:
            folder = Path(tempfile.mkdtemp(dir=options.folder))
            chunk = int(parse_chunk(size))
            case = Case(kind, folder, n_samples, chunk, budget, options.repeats)
            try:
                y = write(case)
                peak, found = measured_above_data(open_stored, sweep_and_read, case, y)
                swept.append(sweep_cells(case, found, peak))
                if options.fit:
                    peak, found = measured_above_data(open_stored, fit, case, y)
                    passed = verdict(peak <= PEAK * budget)
                    cells = [kind, f"{found['seconds']:.0f}", f"{peak / 1e6:.0f}", passed]
                    fitted.append(cells)
            finally:
                shutil.rmtree(folder)
    header = ["kind", "chunk MB", "passes", "warm read GB/s", "sweep", "share"]
    header += ["cold read GB/s", "sweep", "share", "≥ 0.7", "peak MB", "≤ 1.5 budget"]
    print_table("Sweeps of one model", header, swept)
    if fitted:
        print_table("Whole fits", ["kind", "seconds", "peak MB", "≤ 1.5 budget"], fitted)


def parse_chunk(text: str) -> float:
    """Return the bytes of a chunk, which may be smaller than a budget."""
    return float(text.upper().removesuffix("MB")) * 1e6


if __name__ == "__main__":
    main()
