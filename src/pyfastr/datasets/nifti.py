"""A small study as files: images, a mask and a table."""

from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from pyfastr.datasets.simulation import RandomState, _check_count, _check_number, _check_shape
from pyfastr.estimators.atomic import draft_in
from pyfastr.estimators.extras import require
from pyfastr.estimators.validation import as_generator

Array = NDArray[Any]

# Grey level of the head, and how much subjects vary around it.
LEVEL, VARIATION = 100.0, 10.0
VOXEL_SIZE = 4.0


@dataclass(frozen=True)
class NiftiStudy:
    """The files of a study, and the truth behind them.

    Attributes
    ----------
    folder : Path
    images : list of Path
        One `.nii.gz` file for each subject.
    mask : Path
    table : Path
        `participants.tsv` with the columns image (relative to the folder), score, group and age.
    scores : ndarray of shape (n_subjects,)
    groups : ndarray of shape (n_subjects,)
        "control" or "patient".
    ages : ndarray of shape (n_subjects,)
    coef : ndarray of the shape of an image
        The coefficient that scores come from, zero outside the mask.
    affine : ndarray of shape (4, 4)
    """

    folder: Path
    images: list[Path]
    mask: Path
    table: Path
    scores: Array
    groups: Array
    ages: Array
    coef: Array
    affine: Array


def make_nifti_study(
    folder: str | Path,
    n_subjects: int = 40,
    *,
    shape: tuple[int, int, int] = (12, 14, 10),
    noise: float = 0.1,
    random_state: RandomState = None,
) -> NiftiStudy:
    r"""Write a small imaging study to a folder: images, a mask and a table.

    Heads are ellipsoids of smooth noise around a grey level. With :math:`X_i` the image inside the
    mask and W an outer product of three bumps,

    .. math:: \text{score}_i = \langle W, X_i\rangle + \text{age effect} + \text{noise},

    and the half with the higher :math:`\langle W, X_i\rangle` plus noise are patients.

    Parameters
    ----------
    folder : str or Path
        Made if it does not exist; it must be empty.
    n_subjects : int, default=40
    shape : tuple of 3 int, default=(12, 14, 10)
        Shape of an image.
    noise : float, default=0.1
        Standard deviation of the noise over that of :math:`\langle W, X_i\rangle`.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an int gives the same study each time.

    Returns
    -------
    NiftiStudy

    Examples
    --------
    >>> import tempfile
    >>> from pyfastr.datasets import make_nifti_study
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = make_nifti_study(folder, n_subjects=3, random_state=0)
    ...     print(study.table.read_text().splitlines()[0].split())
    ['image', 'score', 'group', 'age']
    >>> [path.name for path in study.images]
    ['sub-01.nii.gz', 'sub-02.nii.gz', 'sub-03.nii.gz']
    """
    nibabel = require("nibabel", "imaging", "Writing brain images")
    N, sizes = _check_count(n_subjects, "n_subjects"), _check_shape(shape)
    if len(sizes) != 3 or min(sizes) < 5:
        raise ValueError(f"shape is {shape!r}; expected three ints of at least 5.")
    # Beyond, scores that are rounded to six digits leave the range of floats.
    _check_number(noise, "noise", below=1e300)
    target = _check_empty(Path(folder))
    rng = as_generator(random_state)

    mask = _ellipsoid(sizes)
    X = _draw_heads(rng, N, mask)
    coef = _draw_bumps(rng, mask)
    scores, groups, ages = _draw_table(rng, X, coef, noise)
    affine = np.diag([-VOXEL_SIZE, VOXEL_SIZE, VOXEL_SIZE, 1.0])
    affine[:3, 3] = -affine[:3, :3] @ ((np.array(sizes) - 1) / 2)

    width = len(str(N)) if N > 9 else 2
    names = [f"sub-{i:0{width}d}.nii.gz" for i in range(1, N + 1)]
    files = {name: nibabel.Nifti1Image(x, affine) for name, x in zip(names, X, strict=True)}
    files["mask.nii.gz"] = nibabel.Nifti1Image(mask.astype(np.uint8), affine)
    rows = zip(names, scores, groups, ages, strict=True)
    lines = [f"{name}\t{score:.6f}\t{group}\t{age:.1f}" for name, score, group, age in rows]
    _write(target, files, "\n".join(["image\tscore\tgroup\tage", *lines, ""]))
    return NiftiStudy(
        target,
        [target / name for name in names],
        target / "mask.nii.gz",
        target / "participants.tsv",
        scores,
        groups,
        ages,
        coef,
        affine,
    )


def _check_empty(folder: Path) -> Path:
    """Refuse to write among other files."""
    folder = folder.expanduser()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} exists and is not empty; expected a new or empty folder.")
    if folder.resolve() == Path.cwd():
        raise ValueError(f"folder is {folder}, the one you are in; expected another, as 'study'.")
    return folder


def _ellipsoid(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Voxels of a head that leaves one voxel free on every side."""
    axes = [(2 * np.arange(p) - (p - 1)) / (p - 2) for p in shape]
    squares: Array = reduce(np.add.outer, [axis**2 for axis in axes])
    return squares <= 1.0 + 1e-9


def _draw_heads(rng: np.random.Generator, n_subjects: int, mask: Array) -> Array:
    """Smooth noise around a grey level inside the mask, zero outside."""
    X = rng.standard_normal((n_subjects, *mask.shape))
    X = gaussian_filter(X, sigma=(0, 0.6, 0.6, 0.6))
    X = LEVEL + VARIATION / X[:, mask].std() * X
    return np.where(mask, X, 0.0).astype(np.float32)


def _draw_bumps(rng: np.random.Generator, mask: Array) -> Array:
    """Outer product of one short bump along each axis, near the middle of the head."""
    bumps = []
    for p in mask.shape:
        centre = rng.uniform(0.35, 0.65) * (p - 1)
        bumps.append(np.maximum(1 - np.abs(np.arange(p) - centre) / (0.2 * p), 0.0))
    return np.where(mask, reduce(np.multiply.outer, bumps), 0.0)


def _draw_table(
    rng: np.random.Generator, X: Array, coef: Array, noise: float
) -> tuple[Array, Array, Array]:
    """Scores of unit spread but for age and noise, groups, and ages, as the file has them."""
    n_subjects = len(X)
    signal = X.reshape(n_subjects, -1).astype(float) @ coef.ravel()
    spread = signal.std() if n_subjects > 1 else 1.0
    coef /= spread
    signal = (signal - signal.mean()) / spread
    ages = rng.uniform(20, 80, n_subjects).round(1)
    scores = signal + 0.02 * (ages - 50) + noise * rng.standard_normal(n_subjects)
    drive = signal + noise * rng.standard_normal(n_subjects)
    groups = np.where(drive > np.median(drive), "patient", "control")
    return scores.round(6), groups, ages


def _write(folder: Path, files: dict[str, Any], table: str) -> None:
    """Write all files beside the folder, then give them its name: half a study is never seen."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = draft_in(folder.parent)
    partial.mkdir()
    try:
        for name, image in files.items():
            image.to_filename(partial / name)
        (partial / "participants.tsv").write_text(table, encoding="utf-8")
        if folder.exists():
            folder.rmdir()
        partial.rename(folder)
    except BaseException:
        rmtree(partial, ignore_errors=True)
        raise
