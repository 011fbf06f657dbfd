"""The experiments of the paper: which problems each one solves."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from pyfastr.datasets.cmu2008.fetch import data_folder
from pyfastr.datasets.cmu2008.layout import SUBJECTS, file_name
from pyfastr.experiments.problems import Problem, Recording, Simulation

_TWO_MODES = [Simulation((p, p), n) for p, n in ((10, 10), (20, 40), (30, 90), (100, 1000))]
_TWO_LARGE = [Simulation((200, 200), 4000), Simulation((300, 300), 9000)]
_CUBES = [Simulation((p, p, p), 100) for p in (5, 10, 15, 20, 25, 30)]
_SLABS = [Simulation((p, p, 5), n) for p, n in ((200, 1000), (300, 2250), (400, 4000))]
_QUICK_SIZES = [*_TWO_MODES[:3], *_CUBES[:2]]


@dataclass(frozen=True)
class Study:
    """An experiment.

    Attributes
    ----------
    name : str
        Name on the command line.
    title : str
    problems : tuple of Problem
        Small ones first.
    """

    name: str
    title: str
    problems: tuple[Problem, ...]

    @property
    def label_title(self) -> str:
        """What sets its problems apart."""
        return {"figure2": "zeros", "table3": "participant"}.get(self.name, "size (N)")

    def label(self, problem: Problem) -> str:
        """Name a problem by what sets it apart from the others.

        Parameters
        ----------
        problem : Problem

        Returns
        -------
        str
        """
        if self.name == "figure2" and isinstance(problem, Simulation):
            return f"{problem.sparsity:.0%}"
        return problem.title


def _simulations(name: str, *, quick: bool) -> Sequence[Simulation]:
    """List the settings of a simulated experiment."""
    if name == "table1":
        return _QUICK_SIZES if quick else [*_TWO_MODES, *_TWO_LARGE, *_CUBES, *_SLABS]
    if name == "figure1":
        return _QUICK_SIZES if quick else [*_TWO_MODES, _TWO_LARGE[0], *_CUBES]
    if name == "table2":
        shape, counts = ((20, 20, 5), range(60, 121, 20)) if quick else ((100, 100, 5), _COUNTS)
        return [Simulation(shape, n) for n in counts]
    shape, n = ((20, 20, 5), 100) if quick else ((100, 100, 5), 500)
    shares = (0.2, 0.5, 0.8) if quick else [tenths / 10 for tenths in range(1, 10)]
    return [Simulation(shape, n, sparsity=share, noise=0.2) for share in shares]


_COUNTS = range(300, 601, 50)
_TITLES = {
    "table1": "Table 1: accuracy by size",
    "table2": "Table 2: accuracy by number of samples",
    "figure1": "Figure 1: time by size",
    "figure2": "Figure 2: time and error by sparsity",
    "table3": "Table 3: CMU2008, tools against animals",
}
NAMES = tuple(_TITLES)


def make_study(
    name: str, *, quick: bool = False, max_size: int | None = None, data_home: Path | None = None
) -> Study:
    """Set an experiment up.

    Parameters
    ----------
    name : {"table1", "table2", "figure1", "figure2", "table3"}
    quick : bool, default=False
        Whether to take few and small problems.
    max_size : int or None, default=None
        Leave out problems whose samples have more entries.
    data_home : Path or None, default=None
        Where ``data-science-P1.mat`` to ``data-science-P9.mat`` are, for Table 3; None: where
        `fetch_cmu2008` puts them, ``$PYFASTR_DATA`` or ``~/pyfastr_data``.

    Returns
    -------
    Study

    Examples
    --------
    >>> from pyfastr.experiments.studies import make_study
    >>> [problem.title for problem in make_study("table1", max_size=1000).problems]
    ['10×10 (10)', '20×20 (40)', '30×30 (90)', '5×5×5 (100)', '10×10×10 (100)']
    """
    problems: Sequence[Problem]
    if name == "table3":
        problems = _recordings(data_home, quick=quick)
    else:
        problems = _simulations(name, quick=quick)
    kept = [p for p in problems if max_size is None or prod(p.shape) <= max_size]
    return Study(name, _TITLES[name], tuple(kept))


def _recordings(data_home: Path | None, *, quick: bool) -> Sequence[Recording]:
    """List the participants whose files are there, or simulated ones if there is none."""
    folder = data_folder(data_home)
    files = {k: folder / file_name(subject) for k, subject in enumerate(SUBJECTS, start=1)}
    present = [Recording(k, file) for k, file in files.items() if file.exists()]
    chosen = present or [Recording(k) for k in files]
    return chosen[:1] if quick else chosen
