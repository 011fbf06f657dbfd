"""Files of the layout of CMU2008: 12 categories × 5 words × 6 epochs, on few voxels."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

SHAPE = (51, 61, 23)
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
