"""What tests of convex penalties share: subdifferentials, and how far a gradient is from them."""

from types import SimpleNamespace

import numpy as np
import pytest

# Entries and singular values below this are zeros that the iterations are still approaching.
ZERO = 1e-5


def l1_subdifferential(W, weight):
    """Projection onto the subdifferential of ``weight·‖·‖₁`` at W."""
    fixed = np.abs(W) > ZERO
    return lambda G: np.where(fixed, weight * np.sign(W), np.clip(G, -weight, weight))


def nuclear_subdifferential(W, weight):
    """Projection onto the subdifferential of ``weight·‖·‖_*`` at the matrix W."""
    left, values, right = np.linalg.svd(W)
    rank = int(np.sum(values > ZERO))
    fixed = left[:, :rank] @ right[:rank]
    off_left, off_right = left[:, rank:], right[rank:]

    def project(G):
        inner = off_left.conj().T @ G @ off_right.conj().T
        u, s, v = np.linalg.svd(inner, full_matrices=False)
        return weight * fixed + off_left @ (u * np.minimum(s, weight)) @ v @ off_right

    return project


def distance_to_sum(G, projections, tol):
    """Distance of G from a sum of convex sets, by projecting onto one after another."""
    parts = [np.zeros_like(G) for _ in projections]
    rest = G.copy()
    for _ in range(5000):
        for k, project in enumerate(projections):
            part = project(rest + parts[k])
            rest += parts[k] - part
            parts[k] = part
        if np.abs(rest).max() < tol:
            break
    return np.abs(rest).max()


@pytest.fixture
def convex():
    return SimpleNamespace(
        l1_subdifferential=l1_subdifferential,
        nuclear_subdifferential=nuclear_subdifferential,
        distance_to_sum=distance_to_sum,
    )
