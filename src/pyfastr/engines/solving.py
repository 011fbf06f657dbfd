"""Stacks of symmetric equations, singular ones among them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def solve(matrices: Array, rhs: Array) -> Array:
    """Solve symmetric equations ``(K, q, q)`` for columns ``(K, q, c)``.

    A singular matrix, such as that of features that rounding makes equal, has many solutions or
    none: the smallest of those that come nearest is returned, and no other matrix of the stack is
    touched by it.
    """
    try:
        solution: Array = np.linalg.solve(matrices, rhs)
    except np.linalg.LinAlgError:
        solution = _solve_each(matrices, rhs)
    return solution


def inverse(matrices: Array) -> Array:
    """Return inverse matrices; those of singular ones solve as `solve` does."""
    return solve(matrices, np.broadcast_to(np.eye(matrices.shape[-1]), matrices.shape))


def _solve_each(matrices: Array, rhs: Array) -> Array:
    """Solve the regular matrices of a stack as usual, and the singular ones by least squares."""
    matrices, rhs = (
        np.broadcast_to(a, (max(len(matrices), len(rhs)), *a.shape[1:])) for a in (matrices, rhs)
    )
    # Singular to `slogdet` is what is so to `solve`: both factorise alike.
    singular = np.linalg.slogdet(matrices)[0] == 0
    regular = matrices.copy()
    regular[singular] = np.eye(matrices.shape[-1])
    solution: Array = np.linalg.solve(regular, rhs)
    solution[singular] = np.linalg.pinv(matrices[singular], hermitian=True) @ rhs[singular]
    return solution
