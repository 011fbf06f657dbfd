"""Means of X, for features that hardly vary beside them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.plan import Rows, plan_to, plan_to_all

Array = NDArray[Any]


class Centre:
    """The means of X of those tasks whose features hardly vary beside them.

    An intercept makes any constant that is subtracted from features harmless. The mean of a task's
    own samples lets no sample that it does not train on have a say, not even in rounding.

    Attributes
    ----------
    means : ndarray of shape (1 or T, p1, ..., pM) or None
        Zero for tasks that have no need of it.
    """

    def __init__(self) -> None:
        self.means: Array | None = None
        self._known: set[int] = set()

    def knows(self, tasks: Array) -> bool:
        """Whether the means of all these tasks are known."""
        return self._known.issuperset(tasks.tolist())

    def learn(self, tasks: Array, means: Array, n_tasks: int) -> None:
        """Remember the means of some of so many tasks."""
        old = self.means
        # Never written to: who remembers them by `memory` goes on to have the old ones.
        new = np.zeros((n_tasks, *means.shape[1:]), means.dtype) if old is None else old.copy()
        new[tasks] = means
        self.means = new
        self._known.update(tasks.tolist())

    def memory(self) -> dict[str, Any]:
        """Return what is known, to be recalled later."""
        return {"means": self.means, "known": sorted(self._known)}

    def recall(self, memory: dict[str, Any]) -> None:
        """Know what was known then."""
        self.means, self._known = memory["means"], set(memory["known"])

    def features(self, rows: Rows, modes: tuple[int, ...], task: Array) -> Array:
        """Return the features ``(K, q)`` of every model's mean."""
        assert self.means is not None
        means = self.means.astype(rows.factors[0].dtype, copy=False)
        plan = plan_to(rows, modes[0]) if len(modes) == 1 else plan_to_all(rows, modes)
        found = plan.project(means)
        own = task if len(means) > 1 else np.zeros_like(task)
        parts = []
        for mode in modes:
            terms = found[mode].reshape(len(task), rows.n_terms, len(means), -1)
            parts.append(terms[np.arange(len(task)), :, own].reshape(len(task), -1))
        return np.concatenate(parts, axis=1)
