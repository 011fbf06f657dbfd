"""Whether `starts_.sure` can be trusted: fits that say so, beside the best of 4,096 starts.

Each fit is drawn at random: the shape of a sample, samples for each degree of freedom, the share of
the response that is signal, one term or two whose second may be weak, the ridge. Its search is that
of ``FasTRRegressor`` with defaults. Then 4,096 other starts look for a better solution, by the same
search with a larger first round.

All fits take about half an hour of one core: ``--jsonl`` keeps what is done, and a run with the
same file goes on. ``--calibrate`` fits the weights of ``solver/confidence.py`` to the first half
of the fits and prints them; the tables are then of the second half.
"""

import argparse
import json
import math
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from _report import environment, print_table, verdict
from scipy.stats import beta
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from pyfastr.datasets import make_tensor_regression
from pyfastr.solver.confidence import SURE, SearchFacts, confidence
from pyfastr.solver.models import Models, cosines
from pyfastr.solver.paces import Pace, SampleNeed
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.polish import Step, polish
from pyfastr.solver.problem import SMALLEST_SHARE, Problem, make_problem
from pyfastr.solver.rounds import Found, search
from pyfastr.sources import ArraySource

# Small ones, of which 4,096 starts can be had; the larger ones are drawn less often.
SHAPES = ((6, 6), (4, 4, 4), (8, 8), (5, 5, 5), (10, 10), (10, 6, 4), (8, 8, 8))
SHAPE_ODDS = (0.28, 0.22, 0.16, 0.16, 0.08, 0.06, 0.04)
SHAPES_OF_TWO, ODDS_OF_TWO = ((6, 6), (4, 4, 4), (8, 8), (5, 5, 5)), (0.4, 0.3, 0.15, 0.15)
RATIOS = (1.05, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
SHARES = (0.0, 0.2, 0.4, 0.67, 0.8, 0.9, 0.95, 0.99)
# Size of a second term, as a share of the first; half of all fits are of one term.
SECONDS = (0.0, 1.0, 0.5, 0.2)
SECOND_ODDS = (0.6, 0.15, 0.1, 0.15)
RIDGES, RIDGE_ODDS = (1e-5, 0.1), (0.85, 0.15)

N_STARTS, N_POLISHED = 4096, 256
# The best solutions that are polished on, beside the returned one, before they are compared.
N_RIVALS, N_STEPS = 12, 30
HIGH_SHARE = 0.9
# A solution beats another that leaves more than this share more, penalty included.
BETTER = 1e-4


@dataclass(frozen=True)
class Draw:
    """What a fit is of; `second` is the size of a second term, 0 for a fit of one."""

    number: int
    shape: tuple[int, ...]
    ratio: float
    share: float
    second: float
    ridge: float

    @property
    def n_terms(self) -> int:
        """Terms that are fitted."""
        return 2 if self.second else 1

    @staticmethod
    def of(number: int, seed: int) -> "Draw":
        """Draw one."""
        rng = np.random.default_rng([seed, number])
        second = float(rng.choice(SECONDS, p=SECOND_ODDS))
        shapes, odds = (SHAPES_OF_TWO, ODDS_OF_TWO) if second else (SHAPES, SHAPE_ODDS)
        return Draw(
            number,
            shapes[rng.choice(len(shapes), p=odds)],
            float(rng.choice(RATIOS)),
            float(rng.choice(SHARES)),
            second,
            float(rng.choice(RIDGES, p=RIDGE_ODDS)),
        )

    def problem(self, seed: int) -> Problem:
        """Draw coefficient and samples."""
        rng = np.random.default_rng([seed, self.number, 1])
        n_free = self.n_terms * (sum(self.shape) - len(self.shape) + 1) + 1
        N = math.ceil(self.ratio * n_free)
        X = rng.standard_normal((N, *self.shape))
        W = sum(size * self._term(rng) for size in (1.0, self.second) if size)
        signal = X.reshape(N, -1) @ (W / np.linalg.norm(W)).ravel()
        y = math.sqrt(self.share) * signal + math.sqrt(1 - self.share) * rng.standard_normal(N)
        return make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)

    def _term(self, rng: np.random.Generator) -> np.ndarray:
        """A term of length 1, drawn as in the paper's simulation."""
        W = make_tensor_regression(1, self.shape, coef=True, random_state=rng)[2]
        return W / np.linalg.norm(W)


@dataclass(frozen=True)
class Outcome:
    """What came of a fit.

    Attributes
    ----------
    draw : Draw
    facts : SearchFacts
        What the search knew.
    n_starts : int
    behind : float
        Objective of the returned solution over the lowest of all that was seen.
    cosine : float
        Between the coefficients of these two.
    """

    draw: Draw
    facts: SearchFacts
    n_starts: int
    behind: float
    cosine: float

    @property
    def is_best(self) -> bool:
        """Whether no other solution is better."""
        return self.behind <= 1 + BETTER or self.cosine > SearchPolicy().rounds.same_cosine

    @property
    def confidence(self) -> float:
        """That of the library as it is now, not as it was when the fit was made."""
        return confidence(self.facts)

    @property
    def sure(self) -> bool:
        """What `starts_.sure` says."""
        return self.confidence >= SURE

    @staticmethod
    def read(line: str) -> "Outcome":
        """Return what a line of a file says."""
        entry = json.loads(line)
        draw = entry.pop("draw")
        known = Draw(**{**draw, "shape": tuple(draw["shape"])})
        return Outcome(known, SearchFacts(**entry.pop("facts")), **entry)


def many_starts(ratio: float) -> SearchPolicy:
    """How 4,096 starts run: as a later round would, and shorter where samples are many."""
    policy = SearchPolicy()
    long_run = Pace(30, (5, 9, 13, 17), 12, 4) if ratio < 3 else Pace(12, (2, 4, 6, 8), 6, 4)
    race = replace(
        policy.race,
        sprint_needs=SampleNeed(np.inf, np.inf),
        long_run=long_run,
        starts_per_polished_small=N_STARTS // N_POLISHED,
    )
    return replace(policy, race=race)


def found_by(problem: Problem, draw: Draw, seed: int, n_init: Any, policy: SearchPolicy) -> Found:
    """Search as ``FasTRRegressor`` does."""
    return search(
        problem,
        draw.n_terms,
        kind="mixed",
        n_init=n_init,
        ridge=draw.ridge,
        rng=np.random.default_rng(seed),
        policy=policy,
    )[0]


def run(number: int, seed: int) -> Outcome:
    """Draw a fit, and look for a better solution than it returns."""
    draw = Draw.of(number, seed)
    problem = draw.problem(seed)
    found = found_by(problem, draw, 1, "auto", SearchPolicy())
    more = found_by(problem, draw, 2, N_STARTS, many_starts(draw.ratio)).solutions
    rivals = Models.concatenate([found.solutions.take(slice(0, 1)), more.take(slice(0, N_RIVALS))])
    polished = polish(problem, rivals, [Step(draw.ridge)] * N_STEPS, SearchPolicy())
    left = polished.objective + SMALLEST_SHARE * problem.n_samples
    best = int(np.argmin(left))
    return Outcome(
        draw,
        found.facts,
        found.starts.n_starts,
        behind=float(left[0] / left[best]),
        cosine=float(cosines(polished.models)[0, best]),
    )


def run_all(numbers: Sequence[int], options: argparse.Namespace) -> Iterator[Outcome]:
    """Run fits in a few processes of one thread each."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.jobs, threadpool_limits, (1,)) as pool:
        yield from pool.imap_unordered(partial(run, seed=options.seed), numbers)


def known_from(file: Path | None) -> dict[int, Outcome]:
    """Read what earlier runs have kept."""
    if file is None or not file.exists():
        return {}
    outcomes = map(Outcome.read, file.read_text().splitlines())
    return {outcome.draw.number: outcome for outcome in outcomes}


def collect(options: argparse.Namespace) -> list[Outcome]:
    """Read outcomes and run what is missing."""
    known = known_from(options.jsonl)
    for outcome in run_all([n for n in range(options.fits) if n not in known], options):
        known[outcome.draw.number] = outcome
        if options.jsonl is not None:
            with options.jsonl.open("a") as stream:
                stream.write(json.dumps(asdict(outcome)) + "\n")
    return [known[number] for number in sorted(known) if number < options.fits]


def bound(n_bad: int, n: int) -> str:
    """Write a share with its interval of 95 % (Clopper and Pearson)."""
    if not n:
        return "–"
    low = beta.ppf(0.025, n_bad, n - n_bad + 1) if n_bad else 0.0
    high = beta.ppf(0.975, n_bad + 1, n - n_bad) if n_bad < n else 1.0
    return f"{n_bad / n:.1%} ({low:.1%} to {high:.1%})"


def row(name: str, some: list[Outcome]) -> list[str]:
    """Describe some of the fits."""
    sure, right = [o for o in some if o.sure], [o for o in some if o.is_best]
    wrong, unsure = sum(not o.is_best for o in sure), sum(not o.sure for o in right)
    n_starts = np.mean([o.n_starts for o in some]) if some else math.nan
    cells = [str(len(some)), str(len(right)), str(len(sure)), bound(wrong, len(sure))]
    return [name, *cells, bound(unsure, len(right)), f"{n_starts:.0f}"]


def print_groups(title: str, outcomes: list[Outcome], key: Callable[[Draw], Any]) -> None:
    """Print a row for each value of what was drawn."""
    header = ["", "fits", "best", "sure", "sure, not the best", "best, not sure", "starts"]
    values = sorted({key(o.draw) for o in outcomes})
    rows = [row(str(v), [o for o in outcomes if key(o.draw) == v]) for v in values]
    print_table(title, header, [*rows, row("all", outcomes)])


def print_calibration(outcomes: list[Outcome]) -> None:
    """Print how often solutions of a confidence are the best."""
    edges = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, SURE, 1.0 + 1e-9]
    rows = []
    for low, high in pairwise(edges):
        some = [o for o in outcomes if low <= o.confidence < high]
        mean = np.mean([o.confidence for o in some]) if some else math.nan
        cells = [str(len(some)), f"{mean:.1%}", bound(sum(o.is_best for o in some), len(some))]
        rows.append([f"{low:.2f} to {min(high, 1):.2f}", *cells])
    print_table("Calibration", ["confidence", "fits", "mean", "were the best"], rows)


def print_verdicts(outcomes: list[Outcome]) -> None:
    """Print what is asked, and whether it holds."""
    sure = [o for o in outcomes if o.sure]
    right = [o for o in outcomes if o.is_best and o.draw.share >= HIGH_SHARE]
    wrong, unsure = sum(not o.is_best for o in sure), sum(not o.sure for o in right)
    rows = [
        [
            "sure, not the best",
            bound(wrong, len(sure)),
            "≤ 1 %",
            verdict(wrong <= 0.01 * len(sure)),
        ],
        [
            f"best, not sure, signal share ≥ {HIGH_SHARE:g}",
            bound(unsure, len(right)),
            "≤ 30 %",
            verdict(unsure <= 0.3 * len(right)),
        ],
    ]
    print_table("What is asked", ["", "share", "needed", ""], rows)


def calibrate(outcomes: list[Outcome]) -> None:
    """Print the weights that suit some of the fits best, by logistic regression."""
    facts = np.array([o.facts.features for o in outcomes])
    best = np.array([o.is_best for o in outcomes])
    model = LogisticRegression(C=np.inf).fit(facts, best)
    weights = [model.intercept_[0], *model.coef_[0]]
    print(f"\nWEIGHTS = ({', '.join(f'{w:.2f}' for w in weights)})")


def print_report(outcomes: list[Outcome]) -> None:
    """Print all tables."""
    print_groups("By signal share", outcomes, lambda draw: draw.share)
    print_groups("By samples for each degree of freedom", outcomes, lambda draw: draw.ratio)
    print_groups("By size of a second term", outcomes, lambda draw: draw.second)
    print_groups("By ridge", outcomes, lambda draw: draw.ridge)
    print_calibration(outcomes)
    print_verdicts(outcomes)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--fits", type=int, default=2000)
    add("--seed", type=int, default=0, help="of all draws")
    add("--jobs", type=int, default=1, help="processes")
    add("--jsonl", type=Path, help="keep outcomes here, and do not repeat those that are")
    add("--calibrate", action="store_true", help="fit to the first half, report the second")
    return parser.parse_args()


def main() -> None:
    """Run the benchmark and print its tables."""
    options = parse()
    print(environment())
    outcomes = collect(options)
    if options.calibrate:
        half = len(outcomes) // 2
        calibrate(outcomes[:half])
        outcomes = outcomes[half:]
    print_report(outcomes)


if __name__ == "__main__":
    main()
