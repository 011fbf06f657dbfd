"""Tables of scores on real data, paired differences with intervals, and what is asked of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
from _real_fits import DEFAULT, N_FOLDS, PEERS, Scores
from _real_sets import Tensors
from _report import print_table, verdict
from _results import Results
from scipy import stats

# What is asked for.
CLOSE, N_CLOSE, N_AHEAD, BEHIND, N_SETS = 0.01, 8, 3, 0.02, 10


@dataclass(frozen=True)
class Row:
    """What is known about a set, by method and shuffle."""

    data: Tensors
    runs: dict[str, dict[int, Scores]]

    def scores(self, method: str) -> list[float]:
        """Return the scores in all outer folds of all shuffles."""
        return [score for run in self.runs.get(method, {}).values() for score in run.scores]

    def said(self, name: str) -> list[object]:
        """Return what the default fits say, in all outer folds of all shuffles."""
        return [one for run in self.runs.get(DEFAULT, {}).values() for one in run.info[name]]

    @property
    def rival(self) -> str | None:
        """The better of the peers, by its mean over everything."""
        known = [method for method in PEERS if self.scores(method)]
        return max(known, key=lambda method: mean(self.scores(method))) if known else None

    @property
    def differences(self) -> list[float]:
        """The scores of the default less those of the better peer, fold by fold."""
        if self.rival is None:
            return []
        ours, theirs = self.runs.get(DEFAULT, {}), self.runs[self.rival]
        shuffles = sorted(ours.keys() & theirs.keys())
        pairs = [zip(ours[s].scores, theirs[s].scores, strict=True) for s in shuffles]
        return [a - b for pair in pairs for a, b in pair]

    @property
    def difference(self) -> float | None:
        """The mean difference, if both were run."""
        return mean(self.differences) if self.differences else None

    @property
    def admits(self) -> bool:
        """Whether most of the fits say that their reference is better."""
        answers = self.said("reference_is_better")
        return sum(map(bool, answers)) > len(answers) / 2


def rows_of(
    sets: Sequence[Tensors], results: Results, methods: Sequence[str], n_seeds: int
) -> list[Row]:
    """Gather what the shuffles of this run gave."""
    return [
        Row(
            data,
            {
                method: {s: run for s, run in results.of(data, method).items() if s < n_seeds}
                for method in methods
            },
        )
        for data in sets
    ]


def half_width(differences: Sequence[float], level: float = 0.95) -> float:
    """Half of the interval of a mean over repeated folds (Nadeau and Bengio, 2003).

    Training sets overlap, so that the variance of the mean is (1 / n + test / train) s².
    """
    n = len(differences)
    variance = (1 / n + 1 / (N_FOLDS - 1)) * np.var(differences, ddof=1)
    return float(stats.t.ppf((1 + level) / 2, n - 1) * np.sqrt(variance))


def number(value: float | None, form: str = ".4f") -> str:
    """Format a number, a dash where there is none."""
    return "–" if value is None else format(value, form)


def _mean(values: Sequence[float]) -> float | None:
    return mean(values) if values else None


def _interval(row: Row) -> str:
    """Write the 95 % interval of the difference."""
    if row.difference is None:
        return "–"
    half = half_width(row.differences)
    return f"{row.difference - half:+.4f} to {row.difference + half:+.4f}"


def _count(values: Sequence[object]) -> str:
    """Write how often each value was chosen."""
    known = sorted({value for value in values if isinstance(value, int)})
    return ", ".join(f"{value}: {values.count(value)}" for value in known) or "–"


def cells(row: Row, methods: Sequence[str]) -> list[str]:
    """Describe a set."""
    better = row.said("reference_is_better")
    references = [s for s in row.said("reference_score") if isinstance(s, float)]
    return [
        row.data.name,
        "AUC" if row.data.classify else "R²",
        *(number(_mean(row.scores(method))) for method in methods),
        number(row.difference, "+.4f"),
        _interval(row),
        number(_mean(references)),
        f"{sum(map(bool, better))} of {len(better)}" if better else "–",
        _count(row.said("n_terms")),
    ]


def seconds_cells(row: Row, methods: Sequence[str]) -> list[str]:
    """Give the mean seconds of a nested cross-validation."""
    times = [[run.seconds for run in row.runs[method].values()] for method in methods]
    return [row.data.name, *(number(_mean(of_method), ".1f") for of_method in times)]


def print_report(rows: Sequence[Row], methods: Sequence[str]) -> None:
    """Print the tables, and how many sets are as asked."""
    header = [
        *("set", "score", *methods, "difference", "95 % interval"),
        *("own reference", "says it is better", "terms chosen: folds"),
    ]
    title = "Nested five-fold scores; the default less the better of ridge and lasso"
    print_table(title, header, [cells(row, methods) for row in rows])
    print_verdicts(rows)
    seconds = [seconds_cells(row, methods) for row in rows]
    print_table("Seconds of a nested cross-validation", ["set", *methods], seconds)


def print_verdicts(rows: Sequence[Row]) -> None:
    """Print how many sets are as asked, to four digits as the table shows them."""
    gaps = {r.data.key: round(r.difference, 4) for r in rows if r.difference is not None}
    n_close, n_ahead = sum(g >= -CLOSE for g in gaps.values()), sum(g > 0 for g in gaps.values())
    behind = {row.data.key: row.admits for row in rows if gaps.get(row.data.key, 0) < -BEHIND}
    silent = [key for key, admits in behind.items() if not admits]
    few = "" if len(gaps) >= N_SETS else f"; {N_SETS} sets are asked for"
    print(f"\nOf {len(gaps)} sets{few}:")
    print(f"- within {CLOSE:g}: {n_close} (required {N_CLOSE}): {verdict(n_close >= N_CLOSE)}")
    print(f"- ahead: {n_ahead} (required {N_AHEAD}): {verdict(n_ahead >= N_AHEAD)}")
    print(
        f"- more than {BEHIND:g} behind: {len(behind)}, of which most fits do not say so:"
        f" {', '.join(silent) or 'none'}: {verdict(not silent)}"
    )
