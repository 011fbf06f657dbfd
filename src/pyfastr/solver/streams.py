"""Random numbers of many tasks."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.draws import Draw, mix

Array = NDArray[Any]


class Streams:
    """A stream of random numbers for each task.

    What one task draws does not depend on how much the others need, which their data decide: the
    samples that a fold holds out are in the data of all other folds.

    Parameters
    ----------
    common : numpy.random.Generator
        What the streams come from, and the only one if there is one task.
    n_tasks : int
    n_outputs : int, default=1
        So many tasks in a row draw the same numbers: those that each output of one fold would draw
        alone, wherever it stands among the others.

    Attributes
    ----------
    common : numpy.random.Generator
        For draws that depend on no data.
    """

    def __init__(self, common: np.random.Generator, n_tasks: int, n_outputs: int = 1) -> None:
        self.common = common
        self._own = [common]
        if n_tasks > n_outputs:
            # Seeds are drawn, as not every generator of a user's knows how to spawn others.
            seeds = common.integers(2**63, size=(n_tasks // n_outputs, 4))
            self._own = [np.random.default_rng(seed) for seed in np.repeat(seeds, n_outputs, 0)]
        elif n_tasks > 1:
            self._own = [deepcopy(common) for _ in range(n_tasks)]

    def normal(self, task: Array, size: tuple[int, ...]) -> Array:
        """Draw N(0, 1) numbers of this size for each model, ``(K, *size)``, given their tasks."""
        return self._draw(task, lambda rng, n: rng.standard_normal((n, *size)))

    def weights(self, task: Array) -> Draw:
        """Draw the keys of Exp(1) weights of each model and sample, to be made where these are."""
        tasks, counts = np.unique(task, return_counts=True)
        bases = np.array([self._own[t].integers(2**63) for t in tasks], np.uint64)
        return Draw(_keys(np.repeat(bases, counts), _numbers(counts)))

    def memory(self) -> dict[str, Any]:
        """Return where every stream stands."""
        return {"streams": [rng.bit_generator.state for rng in (self.common, *self._own)]}

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from where every stream stood then."""
        for rng, state in zip((self.common, *self._own), memory["streams"], strict=True):
            rng.bit_generator.state = state

    def _draw(self, task: Array, draw: Callable[[np.random.Generator, int], Array]) -> Array:
        """Let every task draw for its models, which stand one after another."""
        tasks, counts = np.unique(task, return_counts=True)
        return np.concatenate([draw(self._own[t], n) for t, n in zip(tasks, counts, strict=True)])


def _numbers(counts: Array) -> Array:
    """Return the number of each model in its task, from 1 on; those of a task stand together."""
    first = np.cumsum(counts) - counts
    return np.arange(1, counts.sum() + 1) - np.repeat(first, counts)


def _keys(bases: Array, numbers: Array) -> Array:
    """Return keys that have nothing in common, of each model's task and number in there."""
    return mix(bases + mix(numbers.astype(np.uint64)))
