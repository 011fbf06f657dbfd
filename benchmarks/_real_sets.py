"""The labelled real data of the benchmarks: those of a directory, and those inside packages.

A set is in if its values were measured, its outcome is given with it and flattened ridge predicts
better than chance; of those that ridge predicts without an error, two of different kinds are kept,
and of vectors four. How this library does on a set is no reason for or against it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import _package_sets as packages
import numpy as np
from _set_tools import Array, MissingDataError, subsample

DIRECTORY_SETS = (
    "sugar_fluorescence",
    "mixture_nir",
    "eeg_alcoholism",
    "haxby_slice_face_house",
    "haxby_25mm_face_house",
    "covid_serology_deceased",
)
CLASSES: dict[str, Callable[[], packages.Loaded]] = {
    "digits_closest": partial(packages.digits, 0),
    "digits_next": partial(packages.digits, 1),
    "mnist": packages.mnist,
    "faces": packages.faces,
    "vowels": packages.vowels,
    "motions": packages.motions,
    "exercises": packages.exercises,
    "indian_pines": packages.indian_pines,
    "covid_serology_severe": packages.serology,
    "mouse_connectomes": packages.mouse_connectomes,
    "gun_point": packages.gun_point,
    "breast_cancer": packages.breast_cancer,
}
NUMBERS: dict[str, Callable[[], packages.Loaded]] = {
    "bicycles": packages.bicycles,
    "stock_exchange": packages.stock_exchange,
    "flights": packages.flights,
    "pressure_maps": packages.pressure_maps,
    "meat_nir": packages.meat,
    "diabetes": packages.diabetes,
}
SETS = (*DIRECTORY_SETS, *CLASSES, *NUMBERS)


@dataclass(frozen=True)
class Tensors:
    """A labelled set; `n_known` counts the samples that it was drawn from."""

    key: str
    X: Array
    y: Array
    groups: Array | None
    classify: bool
    n_known: int

    @property
    def name(self) -> str:
        """Name and size in a table."""
        drawn = "" if self.n_known == len(self.y) else f" (of {self.n_known})"
        return f"{self.key} {len(self.y)}{drawn}×{'×'.join(map(str, self.X.shape[1:]))}"


def load_set(name: str, directory: Path | None = None) -> Tensors:
    """Load a set, or raise `MissingDataError` with what has to be installed or given."""
    if name in DIRECTORY_SETS:
        return _from_directory(name, directory)
    classify = name in CLASSES
    X, y, groups = (CLASSES if classify else NUMBERS)[name]()
    kept = subsample(y, classify)
    groups = None if groups is None else groups[kept]
    return Tensors(name, X[kept].astype(float), y[kept], groups, classify, len(y))


def _from_directory(name: str, directory: Path | None) -> Tensors:
    """Read an ``.npz`` with `X`, `y`, perhaps `groups`, and `meta`, whose JSON names the task."""
    if directory is None or not (directory / f"{name}.npz").exists():
        raise MissingDataError(f"--data, a directory with {name}.npz")
    with np.load(directory / f"{name}.npz") as file:
        classify = json.loads(str(file["meta"]))["task"] != "regression"
        groups = file["groups"] if "groups" in file.files else None
        y = file["y"]
        return Tensors(name, file["X"].astype(float), y, groups, classify, len(y))


def load_sets(
    directory: Path | None = None, names: Sequence[str] = SETS
) -> tuple[list[Tensors], dict[str, str]]:
    """Load what is at hand, and tell what the others need."""
    loaded, missing = [], {}
    for name in names:
        try:
            loaded.append(load_set(name, directory))
        except MissingDataError as error:
            missing[name] = str(error)
    return loaded, missing
