"""What several rooms share: files of the layout of CMU2008 on few voxels, samples in any storage,
and oracles: the paper's formulas by einsum on copies of X, written to be read.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from scipy.io import savemat

# The suite tries the same few inputs each time. PYFASTR_EXAMPLES=1000 draws as many new ones in
# each property, for as long as that takes.
settings.register_profile("suite", max_examples=15, derandomize=True, database=None, deadline=None)
settings.register_profile(
    "search",
    max_examples=int(os.environ.get("PYFASTR_EXAMPLES", "100")),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("search" if "PYFASTR_EXAMPLES" in os.environ else "suite")

SHAPE = (51, 61, 23)
LETTERS = "abcde"
CATEGORIES = [
    *["animal", "bodypart", "building", "buildpart", "clothing", "furniture"],
    *["insect", "kitchen", "manmade", "tool", "vegetable", "vehicle"],
]


@dataclass
class MatContents:
    """What MATLAB would save: indices from 1, columns in the order of x, then y, then z."""

    meta: dict[str, Any]
    trials: list[dict[str, Any]]
    values: np.ndarray
    variables: dict[str, Any] = field(default_factory=dict)

    def save(self, path: Path, *, compress: bool = False) -> Path:
        savemat(path, self.as_variables(), do_compression=compress)
        return path

    def as_variables(self) -> dict[str, Any]:
        info = np.empty((1, len(self.trials)), dtype=[(name, object) for name in self.trials[0]])
        data = np.empty((len(self.trials), 1), dtype=object)
        for i, trial in enumerate(self.trials):
            info[0, i] = tuple(trial.values())
            data[i, 0] = self.values[i : i + 1]
        return {"meta": self.meta, "info": info, "data": data} | self.variables


def draw_contents(subject="P1", n_voxels=40, seed=0):
    rng = np.random.default_rng(seed)
    inside = np.sort(rng.permutation(np.prod(SHAPE))[:n_voxels])
    coords = np.stack(np.unravel_index(inside, SHAPE, order="F"), axis=1)
    columns = np.zeros(SHAPE)
    columns[tuple(coords.T)] = np.arange(1, n_voxels + 1)
    trials = [
        {
            "cond": cond,
            "cond_number": float(CATEGORIES.index(cond) + 2),
            "word": f"{cond}{word}",
            "word_number": float(word),
            "epoch": float(epoch),
        }
        for epoch in range(1, 7)
        for word in range(1, 6)
        for cond in rng.permutation(CATEGORIES).tolist()
    ]
    meta = {
        "study": "science",
        "subject": subject,
        "ntrials": float(len(trials)),
        "nvoxels": float(n_voxels),
        "dimx": 51.0,
        "dimy": 61.0,
        "dimz": 23.0,
        "colToCoord": coords + 1.0,
        "coordToCol": columns,
    }
    return MatContents(meta, trials, rng.standard_normal((len(trials), n_voxels)))


@pytest.fixture
def contents():
    return draw_contents()


def naive_projection(X, components, mode):
    """pr(X; mode) of components ``(K, R, p_m)`` by one einsum: ``(K, R, N, p_mode)``."""
    letters = LETTERS[: X.ndim - 1]
    others = [m for m in range(len(letters)) if m != mode]
    spec = ",".join(["n" + letters, *("kr" + letters[m] for m in others)])
    return np.einsum(f"{spec}->krn{letters[mode]}", X, *(components[m] for m in others))


def partialled_out(X, y, nuisance, weights=None):
    """Copies of X and y without what the nuisance columns explain, times the root weights."""
    root = np.sqrt(np.ones(len(y)) if weights is None else weights)
    C = nuisance * root[:, None]

    def rest(A):
        A = A.reshape(len(A), -1) * root[:, None]
        return A - C @ np.linalg.lstsq(C, A, rcond=None)[0]

    return rest(X).reshape(X.shape), rest(y)[:, 0]


def naive_update(X, y, components, mode, ridge, threshold):
    """The paper's update of one mode of one model ``(R, p_m)``: its solution ``(R, p_mode)``."""
    R, p = components[mode].shape
    P = naive_projection(X, [c[None] for c in components], mode)[0]
    P = P.transpose(1, 0, 2).reshape(len(y), R * p)
    gram = P.T @ P
    epsilon = ridge * np.trace(gram) / (R * p)
    u = np.linalg.solve(gram + epsilon * np.eye(R * p), P.T @ y)
    u = np.sign(u) * np.maximum(np.abs(u) - threshold * np.abs(u).max(), 0)
    return u.reshape(R, p)


def outer_sum(components, scales):
    """Coefficient of one model, its components ``(R, p_m)`` and scales ``(R,)``."""
    letters = LETTERS[: len(components)]
    spec = ",".join(["r", *("r" + letter for letter in letters)])
    return np.einsum(f"{spec}->{letters}", scales, *components)


# Seconds for what takes a moment, on a machine however busy; nothing waits this long for success.
PATIENCE = 120.0


def comes_true(is_so):
    """Wait until something is so; returns whether it came to that."""
    end = time.monotonic() + PATIENCE
    while not (result := is_so()) and time.monotonic() < end:
        time.sleep(0.01)
    return bool(result)


@pytest.fixture(name="soon", scope="session")
def before_long():
    """Wait for something; to be asserted."""
    return comes_true


@pytest.fixture(name="naive")
def oracles():
    """The formulas, as attributes."""
    return SimpleNamespace(
        project=naive_projection,
        partial_out=partialled_out,
        update=naive_update,
        outer_sum=outer_sum,
    )


@pytest.fixture(name="store")
def samples_in_files(tmp_path):
    """Write samples in one kind of storage, and open them as a user would."""
    opened = []

    def store(X, kind, chunk=7):
        if kind == "memmap":
            np.save(tmp_path / "X.npy", X)
            return np.load(tmp_path / "X.npy", mmap_mode="r")
        if kind == "npy files":
            for i, x in enumerate(X):
                np.save(tmp_path / f"sample{i:04d}.npy", x)
            return sorted(map(str, tmp_path.glob("sample*.npy")))
        if kind in ("nii files", "nii.gz files"):
            import nibabel

            ending = kind.removesuffix(" files")
            for i, x in enumerate(X):
                image = nibabel.Nifti1Image(x, np.eye(4), dtype=x.dtype)
                image.to_filename(tmp_path / f"sample{i:04d}.{ending}")
            return sorted(tmp_path.glob(f"sample*.{ending}"))
        if "zarr" in kind:
            return store_in_zarr(tmp_path / "X.zarr", X, kind, chunk)
        import h5py

        with h5py.File(tmp_path / "X.h5", "w") as file:
            chunks = None if kind == "contiguous hdf5" else (chunk, *X.shape[1:])
            compression = "gzip" if kind == "gzip hdf5" else None
            file.create_dataset("inner/X", data=X, chunks=chunks, compression=compression)
        opened.append(h5py.File(tmp_path / "X.h5"))
        return opened[-1]["inner/X"]

    yield store
    for file in opened:
        file.close()


def store_in_zarr(path, X, kind, chunk):
    import zarr

    width = max(1, X.shape[-1] // 2)
    options = {"chunks": (chunk, *X.shape[1:-1], width), "zarr_format": 2 if "2" in kind else 3}
    if kind == "sharded zarr":
        options["shards"] = (2 * chunk, *X.shape[1:-1], 2 * width)
    array = zarr.create_array(path, shape=X.shape, dtype=X.dtype, **options)
    array[...] = X
    return zarr.open_array(path, mode="r")


class CountingDataset:
    """A stored array that knows which samples were read."""

    def __init__(self, X, chunk):
        self._X, self.reads = X, []
        self.shape, self.dtype, self.chunks = X.shape, X.dtype, (chunk, *X.shape[1:])

    def __getitem__(self, rows):
        self.reads.append(rows)
        return self._X[rows]

    @property
    def n_read(self):
        return sum(rows.stop - rows.start for rows in self.reads)


@pytest.fixture(name="counting")
def counting_dataset():
    return CountingDataset


@dataclass(frozen=True)
class Library:
    """A library of arrays, and one of its devices."""

    module: Any
    device: Any = None

    def array(self, values, **options):
        """An array on the device, of the type that the values have in NumPy."""
        return self.module.asarray(np.asarray(values), device=self.device, **options)

    def has(self, x):
        """Whether an array is of this library and on this device."""
        other = self.array(0.0)
        return type(x) is type(other) and x.device == other.device


@pytest.fixture(params=["array_api_strict", "array_api_strict on device1", "torch"])
def library(request):
    """Libraries that follow the array API standard, one of them with a device beside the host."""
    name, _, device = request.param.partition(" on ")
    reason = f"{name} is not installed: pip install {name}"
    module = pytest.importorskip(name, reason=reason)
    pytest.importorskip("array_api_compat", reason="needs pip install 'pyfastr[arrays]'")
    if name == "torch":
        # Its threads wait for each other, which takes long where others have work for the cores.
        module.set_num_threads(1)
    return Library(module, module.Device(device) if device else None)
