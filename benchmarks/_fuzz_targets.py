"""What fuzzing feeds with damaged input: readers, their refusals, and sound input for each."""

import gzip
import io
import json
import logging
import runpy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _fuzz_text import (
    change_arguments,
    command_lines,
    damage_text,
    read_csv,
    run_command,
    tables,
)
from _mutations import Rng, ask, damage, mutate, written

from pyfastr import config_context, load
from pyfastr.cli.arrays import open_array, read_array
from pyfastr.cli.errors import InputError
from pyfastr.cli.places import Place
from pyfastr.datasets.cmu2008.contents import read_contents
from pyfastr.estimators.checkpoint import CheckpointFile
from pyfastr.persistence import ModelFileError, read_header
from pyfastr.solver.journal import Entry
from pyfastr.sources import as_source

TESTS = Path(__file__).parents[1] / "tests"
SHAPE = (6, 4, 3)
# It tells of every oddity of every header.
logging.getLogger("nibabel").setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class Target:
    """A reader to feed.

    Attributes
    ----------
    prepare : callable
        Given an empty folder, puts there what `attempt` needs and returns sound input.
    attempt : callable
        Given that folder and input, reads it; what it raises is a refusal or a finding.
    refusals : tuple of exception types
        That may be raised.
    change : callable
        Makes damaged input of the sound.
    is_bounded : bool
        Whether it promises not to ask for the memory that a small file claims to need, though the
        system would give it and nothing of it be used. Readers of other packages do.
    """

    prepare: Callable[[Path], list[bytes]]
    attempt: Callable[[Path, bytes], None]
    refusals: tuple[type[Exception], ...]
    change: Callable[[list[bytes], Rng], bytes] = damage
    is_bounded: bool = False


def model_files(folder: Path) -> list[bytes]:
    """Return the model files of the test suite, one of every kind."""
    return [path.read_bytes() for path in sorted((TESTS / "data" / "models").glob("*.fastr"))]


def load_model(folder: Path, content: bytes) -> None:
    """Load a model, and let it answer."""
    ask(load(written(folder / "mutant.fastr", content)))


def read_model_header(folder: Path, content: bytes) -> None:
    """Read what a model file says of itself."""
    json.dumps(read_header(written(folder / "mutant.fastr", content)))


def samples() -> np.ndarray:
    """Return a few samples in float32."""
    return np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)


def npy_files(folder: Path) -> list[bytes]:
    """Write one sound .npy file beside which others are read."""
    np.save(folder / "sound.npy", samples()[0])
    others = samples()[1], samples()[1].astype(np.float16), samples()[1].astype(">f4")
    return [_npy(sample) for sample in others]


def read_npy_list(folder: Path, content: bytes) -> None:
    """Read a list of .npy files, one of them damaged."""
    _read_all([folder / "sound.npy", written(folder / "mutant.npy", content)])


def nifti_files(folder: Path) -> list[bytes]:
    """Write one sound image beside which others are read."""
    import nibabel

    affine = np.eye(4)
    nibabel.Nifti1Image(samples(), affine).to_filename(folder / "sound.nii")
    kinds = nibabel.Nifti1Image, nibabel.Nifti2Image
    return [kind(samples(), affine).to_bytes() for kind in kinds]


def read_nifti_list(folder: Path, content: bytes) -> None:
    """Read a list of NIfTI files, one of them damaged."""
    _read_all([folder / "sound.nii", written(folder / "mutant.nii", content)])


def packed_nifti_files(folder: Path) -> list[bytes]:
    """Return images packed by gzip."""
    return [gzip.compress(content, mtime=0) for content in nifti_files(folder)]


def damage_packed(corpus: list[bytes], rng: Rng) -> bytes:
    """Damage what is packed, or the packing."""
    if rng.integers(2):
        return damage(corpus, rng)
    return gzip.compress(damage([gzip.decompress(content) for content in corpus], rng), 1)


def read_packed_nifti_list(folder: Path, content: bytes) -> None:
    """Read a list of packed images, one of them damaged."""
    _read_all([folder / "sound.nii", written(folder / "mutant.nii.gz", content)])


def hdf5_files(folder: Path) -> list[bytes]:
    """Return files of datasets that are contiguous, chunked and packed."""
    import h5py

    contents = []
    for options in ({}, {"chunks": (2, 4, 3)}, {"chunks": (2, 4, 3), "compression": "gzip"}):
        file = io.BytesIO()
        with h5py.File(file, "w") as written:
            written.create_dataset("X", data=samples(), **options)
        contents.append(file.getvalue())
    return contents


def read_hdf5(folder: Path, content: bytes) -> None:
    """Read a dataset as the command line does, block by block."""
    path = written(folder / "mutant.h5", content)
    found = open_array(Place(path, "X"), "DATA")
    with found.file:
        _read_all(found)


def zarr_metadata(folder: Path) -> list[bytes]:
    """Write two stores; return what describes them."""
    for version in (2, 3):
        _make_zarr(folder / f"{version}.zarr", version)
    return [(folder / name).read_bytes() for name in ("2.zarr/.zarray", "3.zarr/zarr.json")]


def read_zarr_metadata(folder: Path, content: bytes) -> None:
    """Read a store that is described wrongly."""
    name = "2.zarr/.zarray" if b"compressor" in content else "3.zarr/zarr.json"
    before = (folder / name).read_bytes()
    try:
        _read_zarr(written(folder / name, content).parent)
    finally:
        (folder / name).write_bytes(before)


def zarr_chunks(folder: Path) -> list[bytes]:
    """Write a store; return its chunks."""
    _make_zarr(folder / "X.zarr", 3)
    return [
        path.read_bytes()
        for path in sorted((folder / "X.zarr" / "c").rglob("*0"))
        if path.is_file()
    ]


def read_zarr_chunk(folder: Path, content: bytes) -> None:
    """Read a store one of whose chunks is damaged."""
    path = next(p for p in sorted((folder / "X.zarr" / "c").rglob("*0")) if p.is_file())
    before = path.read_bytes()
    try:
        path.write_bytes(content)
        _read_zarr(folder / "X.zarr")
    finally:
        path.write_bytes(before)


def npz_files(folder: Path) -> list[bytes]:
    """Return archives, packed and not."""
    contents = []
    for write in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        write(file, X=samples(), y=np.arange(6.0))
        contents.append(file.getvalue())
    return contents


def read_npz(folder: Path, content: bytes) -> None:
    """Read an array of an archive as the command line does."""
    _read_all(read_array(Place(written(folder / "mutant.npz", content), "X"), "DATA"))


def mat_files(folder: Path) -> list[bytes]:
    """Return MATLAB files of numbers and text, packed and not."""
    from scipy.io import savemat

    variables = {"X": samples(), "y": np.arange(6.0), "labels": np.array(["one", "two"])}
    contents = []
    for packed in (False, True):
        file = io.BytesIO()
        savemat(file, variables, do_compression=packed)
        contents.append(file.getvalue())
    return contents


def read_mat(folder: Path, content: bytes) -> None:
    """Read a variable as the command line does."""
    _read_all(read_array(Place(written(folder / "mutant.mat", content), "X"), "DATA"))


def cmu2008_files(folder: Path) -> list[bytes]:
    """Return a file of the layout of CMU2008, on few voxels, packed and not."""
    draw = runpy.run_path(str(TESTS / "conftest.py"))["draw_contents"]
    contents = draw()
    paths = [contents.save(folder / f"{p}.mat", compress=p) for p in (False, True)]
    return [path.read_bytes() for path in paths]


def read_cmu2008(folder: Path, content: bytes) -> None:
    """Read all trials."""
    read_contents(written(folder / "mutant.mat", content)).images(np.arange(360))


def checkpoints(folder: Path) -> list[bytes]:
    """Return the checkpoint of a fit that ended early."""
    memory = {"kind": "Starts", "components": [np.ones((2, 3)), np.zeros(2)], "task": None}
    entries = [Entry("anneal", 3, [[2, 3]], 2, False, [memory, {"state": [1, "two", 3.5]}])]
    file = CheckpointFile(folder / "sound", {"data": "some"})
    file.write(entries)
    return [file.path.read_bytes()]


def read_checkpoint(folder: Path, content: bytes) -> None:
    """Read the entries of a checkpoint."""
    CheckpointFile(written(folder / "mutant", content), {"data": "some"}).read()


TARGETS = {
    "model": Target(model_files, load_model, (ModelFileError,), mutate, is_bounded=True),
    "header": Target(model_files, read_model_header, (ModelFileError,), mutate, is_bounded=True),
    "npy": Target(npy_files, read_npy_list, (OSError, ValueError)),
    "nifti": Target(nifti_files, read_nifti_list, (OSError, ValueError)),
    "nifti.gz": Target(
        packed_nifti_files, read_packed_nifti_list, (OSError, ValueError), damage_packed
    ),
    "hdf5": Target(hdf5_files, read_hdf5, (InputError, OSError, ValueError)),
    "zarr": Target(
        zarr_metadata, read_zarr_metadata, (InputError, OSError, ValueError), damage_text
    ),
    "zarr chunk": Target(zarr_chunks, read_zarr_chunk, (InputError, OSError, ValueError)),
    "npz": Target(npz_files, read_npz, (InputError, ValueError)),
    "mat": Target(mat_files, read_mat, (InputError, ValueError)),
    "cmu2008": Target(cmu2008_files, read_cmu2008, (ValueError,), is_bounded=True),
    "table": Target(tables, read_csv, (InputError,), damage_text),
    "checkpoint": Target(checkpoints, read_checkpoint, (ValueError,)),
    "command": Target(command_lines, run_command, (InputError,), change_arguments),
}


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _make_zarr(path: Path, version: int) -> None:
    import zarr

    options = {"chunks": (2, 4, 3), "zarr_format": version}
    array = zarr.create_array(path, shape=SHAPE, dtype=np.float32, **options)
    array[...] = samples()


def _read_zarr(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = open_array(Place(path), "DATA")
    _read_all(found)


def _read_all(X: Any) -> None:
    """Read every block; a small budget keeps blocks small."""
    with warnings.catch_warnings(), config_context(memory_budget="16MB"):
        warnings.simplefilter("ignore")
        source = as_source(X)
        for rows in source.slices:
            source.read(rows)
