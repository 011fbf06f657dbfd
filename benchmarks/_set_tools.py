"""What the loaders of real data share: files inside packages, and rules that choose samples."""

import csv
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# A run stays short, and a class is large enough for folds within folds.
MAX_SAMPLES, MIN_OF_CLASS = 600, 20


class MissingDataError(Exception):
    """A set is not at hand; the message names what it needs."""


def package_file(package: str, path: str, *, install: str | None = None) -> Path:
    """Find a file that a package carries, without importing it and what it depends on."""
    needed = f"pip install --no-deps {install or package}"
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise MissingDataError(needed)
    file = Path(next(iter(spec.submodule_search_locations))) / path
    if not file.exists():
        raise MissingDataError(f"{needed}, of a version that carries {path}")
    return file


def read_series(*files: Path) -> tuple[Array, Array]:
    """Read ``.ts`` files: a series for each variable, and a class or a number, in a line."""
    samples, labels = [], []
    for file in files:
        for line in _data_lines(file):
            *series, label = line.split(":")
            samples.append([[float(value) for value in one.split(",")] for one in series])
            labels.append(label)
    return np.array(samples), np.array(labels)


def _data_lines(file: Path) -> Iterator[str]:
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.strip() and line[0] not in "#@":
            yield line.strip()


def read_rows(file: Path, n_header: int = 1) -> list[list[str]]:
    """Read the rows of a CSV file below its header."""
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))[n_header:]


def close_pairs(X: Array, labels: Array, n_pairs: int = 1) -> list[tuple[Any, Any]]:
    """Choose the pairs of classes that are closest, no class twice.

    The distance of two classes is that of their means, in standard deviations within classes.
    """
    flat = X.reshape(len(X), -1)
    classes = [c for c in np.unique(labels) if np.sum(labels == c) >= MIN_OF_CLASS]
    means = {c: flat[labels == c].mean(0) for c in classes}
    within = np.mean([flat[labels == c].var(0) for c in classes], axis=0)
    varies = within > 0
    distances = {
        (a, b): float(np.mean((means[a] - means[b])[varies] ** 2 / within[varies]))
        for a, b in combinations(classes, 2)
    }
    chosen: list[tuple[Any, Any]] = []
    for pair in sorted(distances, key=lambda pair: distances[pair]):
        if len(chosen) < n_pairs and not set(pair) & {c for other in chosen for c in other}:
            chosen.append(pair)
    return chosen


def subsample(y: Array, classify: bool) -> Array:
    """Choose at most ``MAX_SAMPLES``: each class in its share, or evenly spaced samples."""
    if len(y) <= MAX_SAMPLES:
        return np.arange(len(y))
    if not classify:
        return np.linspace(0, len(y) - 1, MAX_SAMPLES).astype(int)
    rng, share = np.random.default_rng(0), MAX_SAMPLES / len(y)
    parts = [np.flatnonzero(y == c) for c in np.unique(y)]
    kept = [rng.choice(part, round(share * len(part)), replace=False) for part in parts]
    return np.sort(np.concatenate(kept))


def tiles(image: Array, size: int) -> Array:
    """Cut an image (rows, columns, ...) into whole tiles (tiles, size, size, ...)."""
    n_rows, n_columns = (n // size for n in image.shape[:2])
    whole = image[: n_rows * size, : n_columns * size]
    parts = whole.reshape(n_rows, size, n_columns, size, *image.shape[2:])
    return parts.swapaxes(1, 2).reshape(n_rows * n_columns, size, size, *image.shape[2:])
