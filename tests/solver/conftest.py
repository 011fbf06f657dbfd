"""Oracles: the paper's formulas by einsum on copies of X, written to be read."""

from types import SimpleNamespace

import numpy as np
import pytest

LETTERS = "abcde"


def naive_projection(X, components, mode):
    """pr(X; mode) of components ``(K, R, p_m)`` by one einsum: ``(K, R, N, p_mode)``."""
    letters = LETTERS[: X.ndim - 1]
    others = [m for m in range(len(letters)) if m != mode]
    spec = ",".join(["n" + letters, *("kr" + letters[m] for m in others)])
    return np.einsum(f"{spec}->krn{letters[mode]}", X, *(components[m] for m in others))


def partialled_out(X, y, nuisance, weights=None):
    """Copies of X and y without what the nuisance columns explain, times the root weights."""
    root = np.sqrt(np.ones(len(y)) if weights is None else weights)
    C = nuisance * root[:, None]

    def rest(A):
        A = A.reshape(len(A), -1) * root[:, None]
        return A - C @ np.linalg.lstsq(C, A, rcond=None)[0]

    return rest(X).reshape(X.shape), rest(y)[:, 0]


def naive_update(X, y, components, mode, ridge, threshold):
    """The paper's update of one mode of one model ``(R, p_m)``: its solution ``(R, p_mode)``."""
    R, p = components[mode].shape
    P = naive_projection(X, [c[None] for c in components], mode)[0]
    P = P.transpose(1, 0, 2).reshape(len(y), R * p)
    gram = P.T @ P
    epsilon = ridge * np.trace(gram) / (R * p)
    u = np.linalg.solve(gram + epsilon * np.eye(R * p), P.T @ y)
    u = np.sign(u) * np.maximum(np.abs(u) - threshold * np.abs(u).max(), 0)
    return u.reshape(R, p)


def outer_sum(components, scales):
    """Coefficient of one model, its components ``(R, p_m)`` and scales ``(R,)``."""
    letters = LETTERS[: len(components)]
    spec = ",".join(["r", *("r" + letter for letter in letters)])
    return np.einsum(f"{spec}->{letters}", scales, *components)


@pytest.fixture(name="naive")
def oracles():
    """The functions of this file, as attributes."""
    return SimpleNamespace(
        project=naive_projection,
        partial_out=partialled_out,
        update=naive_update,
        outer_sum=outer_sum,
    )
