"""Small studies in memory and on disk, on grids of every kind."""

from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

SHAPE = (7, 8, 6)


def pytest_configure(config):
    """Know the marks of nilearn's own tests, whose helpers its checks import."""
    for mark in ("ai_generated", "flaky", "single_process", "slow", "thread_unsafe"):
        config.addinivalue_line("markers", f"{mark}: of nilearn's own tests")


def affine_of(directions, sizes, origin):
    affine = np.eye(4)
    affine[:3, :3] = np.asarray(directions, float) * sizes
    affine[:3, 3] = origin
    return affine


def rotation(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ np.array(
        [[1, 0, 0], [0, c, -s], [0, s, c]]
    )


# Columns are the directions of the voxel axes in space.
AFFINES = {
    "plain": np.eye(4),
    "flipped": affine_of(np.diag([-1, 1, -1]), [2, 2, 2], [10, -20, 30]),
    "anisotropic": affine_of(np.eye(3), [1.5, 3, 4.5], [-7, 5, 0]),
    "sagittal": affine_of([[0, 0, 1], [-1, 0, 0], [0, 1, 0]], [1, 2, 3], [4, 40, -9]),
    "oblique": affine_of(rotation(0.4), [2, 2.5, 3], [-12, 8, 3]),
}


@dataclass
class Study:
    """Images with a coefficient of a single voxel."""

    X: np.ndarray
    y: np.ndarray
    affine: np.ndarray
    mask: np.ndarray
    voxel: tuple[int, int, int]

    @property
    def images(self):
        return [nib.Nifti1Image(x, self.affine) for x in self.X]

    @property
    def image_4d(self):
        return nib.Nifti1Image(np.moveaxis(self.X, 0, -1), self.affine)

    @property
    def mask_img(self):
        return nib.Nifti1Image(self.mask.astype(np.uint8), self.affine)

    def write(self, folder: Path, suffix=".nii.gz"):
        paths = [folder / f"sub-{i:02d}{suffix}" for i in range(len(self.X))]
        for path, image in zip(paths, self.images, strict=True):
            image.to_filename(path)
        return paths


def draw(grid="plain", n_samples=40):
    """A mask that touches one border only, with a corner cut off, and y = 3 x[voxel] + 0.5."""
    X = np.random.default_rng(0).standard_normal((n_samples, *SHAPE))
    mask = np.zeros(SHAPE, bool)
    mask[1:6, 2:8, 1:5] = True
    mask[1:3, 2:4, 1:3] = False
    voxel = (4, 5, 2)
    return Study(X, 3.0 * X[(slice(None), *voxel)] + 0.5, AFFINES[grid], mask, voxel)


@pytest.fixture
def draw_study():
    return draw


@pytest.fixture
def study():
    return draw()


@pytest.fixture(params=AFFINES)
def grid(request):
    """The name of a kind of grid."""
    return request.param


@pytest.fixture
def paths(study, tmp_path):
    return study.write(tmp_path)
