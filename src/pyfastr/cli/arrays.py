"""Arrays from files: NumPy, HDF5, Zarr and MATLAB."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.cli.errors import InputError
from pyfastr.cli.places import Place
from pyfastr.config import physical_memory
from pyfastr.estimators.extras import require

Array = NDArray[Any]

_HDF5 = (".h5", ".hdf5", ".hdf")
# What the files of numpy.save and numpy.savez begin with.
_NUMPY = {".npy": b"\x93NUMPY", ".npz": b"PK"}
_SAVE_ANEW = "Save it anew."
_GIGABYTE = 1e9
# Numbers in a file, where the system does not tell how much memory it has.
_MANY = 2**40


def is_array_file(place: Place) -> bool:
    """Whether arrays can be read from a place, by the ending of its name.

    Parameters
    ----------
    place : Place

    Returns
    -------
    bool
    """
    return place.file.suffix.lower() in _READERS


def read_array(place: Place, option: str) -> Array:
    """Read an array of numbers or text.

    Parameters
    ----------
    place : Place
        Its name may be left out if the file has one array only.
    option : str
        What it was given as, for errors.

    Returns
    -------
    ndarray
        A memory map of an .npy file; what is stored otherwise is read into memory.
    """
    return _found(_READERS, place, option)


def open_array(place: Place, option: str) -> Any:
    """Find an array without reading it, where its file allows that.

    Parameters
    ----------
    place : Place
    option : str
        What it was given as, for errors.

    Returns
    -------
    ndarray or dataset
        What is stored in HDF5 or Zarr is left there: its file stays open as long as the dataset is
        in use. Other arrays are as `read_array` returns them.
    """
    return _found(_OPENERS, place, option)


def _found(kinds: dict[str, Callable[[Place, str], Any]], place: Place, option: str) -> Any:
    """Read or open, and refuse what is neither numbers nor text."""
    if place.file.is_file() and not place.file.stat().st_size:
        raise InputError(f"{option}: {place.file} is an empty file. {_SAVE_ANEW}")
    try:
        found = kinds[place.file.suffix.lower()](place, option)
    except (InputError, ImportError, MemoryError):
        raise
    # Each library has errors of its own for files that are damaged or cut short.
    except Exception as error:
        raise _unreadable(place, option, error) from error
    if found.dtype.kind not in "biufUS":
        raise InputError(f"{option}: {place} has dtype {found.dtype}; expected numbers or text.")
    return found


def _unreadable(place: Place, option: str, error: Exception) -> InputError:
    """Say what a library made of a file, and what to do about it."""
    told, reason = f"{option}: {place.file} cannot be read", str(error).rstrip(".")
    if isinstance(error, OSError) and error.errno is not None:
        return InputError(f"{told}: {error.strerror}. Check that you may read it.")
    ending = place.file.suffix.lower()
    if ending in _NUMPY and "object" in reason.lower():
        return InputError(
            f"{told}: it holds Python objects; expected numbers or text. Save it with such a dtype."
        )
    return InputError(
        f"{told}: {reason}. It is damaged, or not what its name says, {ending}. {_SAVE_ANEW}"
    )


def _check_beginning(file: Path) -> None:
    """Refuse what NumPy has not written, which it would take for Python objects."""
    beginning = _NUMPY[file.suffix.lower()]
    with file.open("rb") as stream:
        if stream.read(len(beginning)) != beginning:
            raise ValueError("its first bytes are of another kind of file")


def _read_npy(place: Place, option: str) -> Array:
    if place.name:
        raise InputError(f"{option}: {place.file} has no names; leave out {':' + place.name!r}.")
    _check_beginning(place.file)
    return np.load(place.file, mmap_mode="r", allow_pickle=False)


def _read_npz(place: Place, option: str) -> Array:
    _check_beginning(place.file)
    # NumPy would leave a file open that it cannot read.
    with place.file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return archive[_chosen(place, option, archive.files)]


def _open_hdf5(place: Place, option: str) -> Any:
    h5py = require("h5py", "stored", "Reading HDF5 files")
    file = h5py.File(place.file, "r")
    try:
        return file[_chosen(place, option, _datasets_of(file, h5py))]
    except InputError:
        file.close()
        raise


def _read_hdf5(place: Place, option: str) -> Array:
    dataset = _open_hdf5(place, option)
    with dataset.file:
        return _read_dataset(dataset, place, option)


def _open_zarr(place: Place, option: str) -> Any:
    zarr = require("zarr", "stored", "Reading Zarr stores")
    store = zarr.open(str(place.file), mode="r")
    if isinstance(store, zarr.Array):
        return store
    members = store.members(max_depth=None)
    names = [name for name, member in members if isinstance(member, zarr.Array)]
    return store[_chosen(place, option, names)]


def _read_zarr(place: Place, option: str) -> Array:
    return _read_dataset(_open_zarr(place, option), place, option)


def _read_mat(place: Place, option: str) -> Array:
    with place.file.open("rb") as file:
        beginning = file.read(10)
    if beginning == b"MATLAB 7.3":
        # It is HDF5, with the axes in the opposite order.
        return _read_hdf5(place, option).T
    return (_read_mat5 if beginning == b"MATLAB 5.0" else _read_mat4)(place, option)


def _read_mat5(place: Place, option: str) -> Array:
    from scipy.io import loadmat

    from pyfastr.datasets.matfile import check_mat_file

    # SciPy believes the sizes and types in a file; damaged ones can end the process.
    check = partial(
        check_mat_file, place.file, most=_most_numbers(), refusal=partial(_damaged_mat, option)
    )
    chosen = _chosen(place, option, filter(None, check([])))
    check([chosen])
    return np.asarray(loadmat(place.file, variable_names=[chosen])[chosen])


def _read_mat4(place: Place, option: str) -> Array:
    from scipy.io import loadmat, whosmat

    try:
        chosen = _chosen(place, option, [name for name, _, _ in whosmat(place.file)])
        return np.asarray(loadmat(place.file, variable_names=[chosen])[chosen])
    except MemoryError as error:
        found = "asks for more memory than there is"
        raise _damaged_mat(option, place.file, "an array", found, "a MATLAB file") from error


def _damaged_mat(option: str, path: Path, field: str, found: str, expected: str) -> InputError:
    """Return the error of a MATLAB file that contradicts itself."""
    return InputError(
        f"{option}: {path} cannot be read: {field} {found}; expected {expected}. {_SAVE_ANEW}"
    )


def _most_numbers() -> int:
    """Return how many numbers this machine can hold."""
    memory = physical_memory()
    return _MANY if memory is None else memory // 8


_READERS: dict[str, Callable[[Place, str], Array]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".zarr": _read_zarr,
    ".mat": _read_mat,
    **dict.fromkeys(_HDF5, _read_hdf5),
}
_OPENERS: dict[str, Callable[[Place, str], Any]] = {
    **_READERS,
    ".zarr": _open_zarr,
    **dict.fromkeys(_HDF5, _open_hdf5),
}


def _datasets_of(file: Any, h5py: Any) -> list[str]:
    """Names of all arrays of an HDF5 file, but those in which MATLAB keeps its cells."""
    names: list[str] = []
    file.visititems(lambda n, item: names.append(n) if isinstance(item, h5py.Dataset) else None)
    return [name for name in names if not name.startswith("#")]


def _read_dataset(dataset: Any, place: Place, option: str) -> Array:
    """Read an array of a store into memory."""
    _check_fits_in_memory(dataset, place, option)
    found = dataset[...]
    if found.dtype.kind == "O" and all(isinstance(entry, bytes) for entry in found.flat):
        return np.array([entry.decode() for entry in found.flat]).reshape(found.shape)
    return np.asarray(found)


def _chosen(place: Place, option: str, names: Iterable[str]) -> str:
    """Return which array is meant."""
    known = [name for name in names if not name.startswith("__")]
    wanted = place.name.strip("/")
    if wanted in known:
        return wanted
    if not wanted and len(known) == 1:
        return known[0]
    if not known:
        raise InputError(f"{option}: {place.file} has no arrays.")
    what = f"has no array {place.name!r}" if wanted else "has several arrays; say which is meant"
    raise InputError(
        f"{option}: {place.file} {what}. It has {', '.join(known)}; for example "
        f"{place.file}:{known[0]}"
    )


def _check_fits_in_memory(dataset: Any, place: Place, option: str) -> None:
    """Refuse an array that this machine cannot hold."""
    size = int(np.prod(dataset.shape, dtype=float)) * dataset.dtype.itemsize
    memory = physical_memory()
    if memory is not None and size > memory:
        raise InputError(
            f"{option}: {place} has {size / _GIGABYTE:.0f} GB, this machine "
            f"{memory / _GIGABYTE:.0f} GB of memory. Store samples along the first axis in .npy, "
            "HDF5 or Zarr, which are read piece by piece."
        )
