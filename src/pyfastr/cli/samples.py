"""The samples of a command: an array, or images."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyfastr.cli.arrays import is_array_file, open_array, read_array
from pyfastr.cli.errors import InputError
from pyfastr.cli.images import is_image, list_images, load_header
from pyfastr.cli.options import SamplesAxis
from pyfastr.cli.places import Place, parse_place
from pyfastr.cli.voice import Voice


@dataclass(frozen=True)
class Samples:
    """What a model is fitted to, or predicts.

    Attributes
    ----------
    place : Place
    X : ndarray, dataset, list of str, or str
        An array of shape (n_samples, p1, ..., pM), paths of images, or that of a 4-D image.
    n_samples : int
    shape : tuple of int
        Shape of one sample.
    images : list of Path
        The paths, if each sample has its own.
    are_images : bool
    """

    place: Place
    X: Any
    n_samples: int
    shape: tuple[int, ...]
    images: Sequence[Path] = ()
    are_images: bool = False

    @property
    def names(self) -> list[str]:
        """What to call each sample: the path of its image, or its number from 0 on."""
        return [str(path) for path in self.images] or list(map(str, range(self.n_samples)))

    @property
    def files(self) -> list[Path]:
        """All files that are read."""
        return [self.place.file, *self.images]


def read_samples(
    text: str,
    axis: SamplesAxis,
    voice: Voice,
    option: str = "DATA",
    *,
    mask: Path | None = None,
) -> Samples:
    """Find the samples, and read them if they are an array.

    Parameters
    ----------
    text : str
        FILE or FILE:NAME.
    axis : SamplesAxis
        Which axis of an array counts samples.
    voice : Voice
        Is told what is assumed.
    option : str
    mask : Path, optional
        Is no sample, though it may lie in the same folder.

    Returns
    -------
    Samples
    """
    place = parse_place(text, option)
    if is_array_file(place):
        return _read_tensor(place, axis, voice, option)
    if axis is SamplesAxis.last:
        raise InputError(f"--samples-axis is of arrays, but {option} is {place}; leave it out.")
    if place.file.is_file() and is_image(place.file):
        return _open_image(place, option)
    if place.is_table or place.is_pattern or place.file.is_dir():
        images = [path for path in list_images(place, option) if not _is_same(path, mask)]
        if not images:
            raise InputError(f"{option}: {place} has no images beside the mask.")
        shape = load_header(images[0], option).shape
        paths = list(map(str, images))
        return Samples(place, paths, len(images), shape, images, are_images=True)
    raise InputError(
        f"{option}: {place.file} is of no known kind; expected .npy, .npz, .h5, .zarr, .mat, .nii, "
        ".nii.gz, a folder of images, or a .csv or .tsv table with a column of their paths."
    )


def _read_tensor(place: Place, axis: SamplesAxis, voice: Voice, option: str) -> Samples:
    """Read an array with samples along its first axis."""
    # Only along the first axis are samples read piece by piece.
    X = (read_array if axis is SamplesAxis.last else open_array)(place, option)
    if X.ndim < 2 or X.dtype.kind not in "biuf":
        raise InputError(
            f"{option}: {place} has shape {X.shape} and dtype {X.dtype}; expected numbers with an "
            "axis of samples and at least one more."
        )
    if X.size == 0:
        raise InputError(f"{option}: {place} is empty: its shape is {X.shape}.")
    if axis is SamplesAxis.last:
        X = np.moveaxis(X, -1, 0)
    elif place.file.suffix.lower() == ".mat":
        voice.note(
            f"{place}: the first axis is taken to count samples, {len(X)} of shape "
            f"{times(X.shape[1:])}. If it is the last one, add --samples-axis last."
        )
    return Samples(place, X, X.shape[0], tuple(X.shape[1:]))


def _open_image(place: Place, option: str) -> Samples:
    """Look at a file of one image, or of many."""
    if place.name:
        raise InputError(f"{option}: {place.file} has no names; leave out {':' + place.name!r}.")
    shape = load_header(place.file, option).shape
    if len(shape) == 4:
        return Samples(place, str(place.file), shape[3], shape[:3], are_images=True)
    return Samples(place, [str(place.file)], 1, shape, [place.file], are_images=True)


def _is_same(path: Path, other: Path | None) -> bool:
    return other is not None and path.resolve() == other.resolve()


def times(shape: Sequence[int]) -> str:
    """Write a shape as people do.

    Parameters
    ----------
    shape : sequence of int

    Returns
    -------
    str

    Examples
    --------
    >>> from pyfastr.cli.samples import times
    >>> times((20, 30, 5))
    '20×30×5'
    """
    return "×".join(map(str, shape))
