"""How long a round of starts runs: paces, the samples that each needs, and their policy."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """How much time a race takes.

    Attributes
    ----------
    n_sweeps : int
        Sweeps of the annealing.
    halvings : tuple of int
        Sweeps after which the half with the larger smoothed loss leaves.
    n_cooling, n_final : int
        Steps of the polish while its penalty cools, and with the ridge alone after that.
    """

    n_sweeps: int
    halvings: tuple[int, ...]
    n_cooling: int
    n_final: int


@dataclass(frozen=True)
class SampleNeed:
    """How many samples are enough: both of these are to be met.

    Attributes
    ----------
    per_parameter : float
        Samples for each degree of freedom.
    per_root : float
        Samples for each term, as a multiple of the root of the number of entries of a sample.
    """

    per_parameter: float
    per_root: float


@dataclass(frozen=True)
class RacePolicy:
    """How long a round of starts runs, and which of them are polished.

    Attributes
    ----------
    sprint, long_run : Pace
        Paces of a first round where samples abound, and of a round where they do not.
    broad_run, broad_from : Pace, int
        Pace of a first round of at least so many starts if samples are plenty, but too few for a
        sprint.
    short_run : Pace
        Pace where there is nothing to find, or the ridge asked for leaves nothing to cool.
    sprint_needs : SampleNeed
        Samples that make a first round a sprint; those per parameter also make models in the right
        valley visible.
    sprint_looks_at, worth_thinning : SampleNeed, float
        Samples that a sprint looks at, because nearly all sprints succeed with as many. It leaves
        others out if there are at least this many times as many.
    thinned_from_bytes : int
        A smaller X is looked at whole: calls cost more than its samples.
    n_sprints, sprint_unexplained : int, float
        Sprints that are tried before a long run. One has succeeded if it leaves no larger share of
        the response unexplained.
    agreement, agreeing, agreement_needs : float, int, float
        Where noise leaves more, polished starts agree if this share of them, and so many, end in
        the best solution: given so many samples for each degree of freedom, others find no better.
    settling_steps : int
        Steps of the polish that bring those together which noise has kept apart.
    small_sample : int
        Samples of at most this many entries are polished as cheaply as annealed.
    starts_per_polished_small, starts_per_polished, most_polished : int
        Starts of small and of larger samples for each one that is polished, and how many of larger
        ones that makes at most.
    many_starts_per_polished : int
        Of many starts more than `most_polished` are polished: one of this many.
    """

    sprint: Pace = Pace(7, (2, 4), 4, 2)
    long_run: Pace = Pace(60, (10, 20, 32), 24, 6)
    broad_run: Pace = Pace(30, (5, 10, 15), 24, 6)
    short_run: Pace = Pace(20, (4, 8), 8, 4)
    broad_from: int = 32
    sprint_needs: SampleNeed = SampleNeed(2.0, 1.5)
    sprint_looks_at: SampleNeed = SampleNeed(2.5, 2.0)
    worth_thinning: float = 1.5
    thinned_from_bytes: int = 1 << 20
    n_sprints: int = 3
    sprint_unexplained: float = 0.05
    agreement: float = 0.75
    agreeing: int = 3
    agreement_needs: float = 5.0
    settling_steps: int = 12
    small_sample: int = 1000
    starts_per_polished_small: int = 2
    starts_per_polished: int = 4
    most_polished: int = 8
    many_starts_per_polished: int = 24
