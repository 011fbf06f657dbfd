"""What the benchmarks of faults and of fuzzing use, for a few of each."""

import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(name="benchmarks", scope="session")
def modules_of_the_benchmarks():
    """Import modules by name; they import each other."""
    for package in ("h5py", "nibabel", "typer", "zarr"):
        pytest.importorskip(package)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        names = ("_faults", "_fuzz_targets", "_interrupts")
        yield SimpleNamespace(**{name.lstrip("_"): importlib.import_module(name) for name in names})
