"""What is known of the CMU2008 files: their grid, their categories, where they are."""

import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SHAPE = (51, 61, 23)
N_EPOCHS = 6
CATEGORIES = (
    "animal",
    "bodypart",
    "building",
    "buildpart",
    "clothing",
    "furniture",
    "insect",
    "kitchen",
    "manmade",
    "tool",
    "vegetable",
    "vehicle",
)
TOOLS_AND_ANIMALS = MappingProxyType(
    {"tools": ("tool", "furniture"), "animals": ("animal", "insect")}
)
SUBJECTS = tuple(f"P{number}" for number in range(1, 10))
BASE_URL = "https://www.cs.cmu.edu/afs/cs/project/theo-73/www/science2008"
PAGE = f"{BASE_URL}/data.html"

# Voxel (i, j, k) of the files, counted from 1, is at (-3.125 i + 81.25, 3.125 j - 115.625,
# 6 k - 54) mm. Counted from 0, each offset takes one more step.
_STEPS = (-3.125, 3.125, 6.0)
_ORIGIN = (81.25 - 3.125, -115.625 + 3.125, -54.0 + 6.0)


def mni_affine() -> Array:
    """Return the 4×4 matrix from voxels counted from 0 to MNI millimetres."""
    affine = np.diag([*_STEPS, 1.0])
    affine[:3, 3] = _ORIGIN
    return affine


def file_name(subject: str) -> str:
    """Return the name of the file of a participant, as on the data page."""
    return f"data-science-{subject}.mat"


def subject_in_name(path: Path) -> str | None:
    """Return the participant that a file is named after, if it is."""
    found = re.fullmatch(r"data-science-(P\d+)\.mat", path.name)
    return found[1] if found else None


def check_subject(subject: Any) -> str:
    """Return a participant, given as 1 to 9 or as "P1" to "P9", as the files spell it."""
    spelled = f"P{subject}" if isinstance(subject, int | np.integer) else subject
    if spelled not in SUBJECTS:
        raise ValueError(f'subject is {subject!r}; expected an int from 1 to 9, or "P1" to "P9".')
    return str(spelled)


def damage(path: Path, field: str, found: str, expected: str) -> ValueError:
    """Return the error for a file that is not as it should be, with what to do."""
    name = path.name.removesuffix(".part")
    return ValueError(
        f"{path}: {field} {found}; expected {expected}. The file is damaged or not one of "
        f"CMU2008: delete it and download {name} again from {PAGE}."
    )
