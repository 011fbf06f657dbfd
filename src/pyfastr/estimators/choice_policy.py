"""How a choice by folds goes about it: every grid, chance and share that it sets by itself.

``benchmarks/real_data.py``, ``terms.py`` and ``accuracy.py --cv`` show what they are worth, and
``selection.py`` and ``small.py`` what they cost.
"""

from dataclasses import dataclass

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class PointsPolicy:
    """What there is to choose from, and how far folds are fitted.

    Thresholds and ridges are relative, so they serve every data set, from exact data to labels that
    are mostly noise.

    Attributes
    ----------
    thresholds : tuple of float
        The highest leaves hardly more than one entry a mode; the lowest keeps hundreds of entries
        that are known to four digits.
    label_thresholds : tuple of float
        Those of classes. Labels tell so little that higher ones, which leave one entry a mode,
        would win by chance.
    ridges : tuple of float
    blind_ridges : tuple of float
        Where samples are fewer than free parameters. A ridge of next to nothing fits them exactly,
        and wins by chance if at all.
    sweeps : int
        Most models of a grid stand still after a few; those that never do are scored as they are.
    blind_sweeps : int
        With fewer samples than free parameters hardly any stands still, and more are no better.
    """

    thresholds: Numbers = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.55, 0.9)
    label_thresholds: Numbers = (0.0, 0.001, 0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.35, 0.55)
    ridges: Numbers = (1e-5, 0.01, 0.1, 1.0, 10.0)
    blind_ridges: Numbers = (0.01, 0.1, 0.3, 1.0, 10.0)
    sweeps: int = 15
    blind_sweeps: int = 6


@dataclass(frozen=True)
class TermsPolicy:
    """Which points are given another term, and when that pays.

    Attributes
    ----------
    most : int
        More terms are not tried.
    neighbours : int
        A second term is fitted at the best threshold of every ridge and so many on each side.
    far_behind : float
        Points whose held-out losses are larger than those of the best by so many standard errors
        are given none.
    best : int
        Third and further terms are fitted at so many of these points: enough for a mean.
    sweeps : int
        Models that gain a term have made sweeps with each of the others, and go on from there. More
        sweeps show no better how many terms pay.
    chance : float
        A term pays if the losses of all held-out samples fall by more than so many standard errors,
    share_of_left, share_of_all : float
        and by this share of what is left, or of what there was to explain.
    chance_of_folds : float
        Where the score is not made of losses, it must rise by so many standard errors over the
        folds. One standard error is what a single sample of one fold makes of it.
    """

    most: int = 8
    neighbours: int = 1
    far_behind: float = 3.0
    best: int = 5
    sweeps: int = 4
    chance: float = 1.0
    share_of_left: float = 0.05
    share_of_all: float = 0.001
    chance_of_folds: float = 2.0


@dataclass(frozen=True)
class RankingPolicy:
    """Which points are as good as the best.

    Attributes
    ----------
    chance, chance_of_folds : float
        A threshold that falls short by less than so many standard errors is as good; the highest
        of them is chosen, as false entries in a support cost hardly any score. Five folds say less
        of their spread than samples do, so that it counts half.
    best : int
        Numbers of terms are compared by so many of their best points: one may be best by chance.
    averaged : int
        Points that a mean is of at most. Five to twenty predict recordings about as well.
    """

    chance: float = 1.0
    chance_of_folds: float = 0.5
    best: int = 5
    averaged: int = 10


@dataclass(frozen=True)
class ReferencePolicy:
    """What flattened ridge regression may choose from, and when its lead is clear.

    Attributes
    ----------
    alphas : tuple of float
        Relative to the mean squared length of a sample beside intercept and covariates: from data
        without noise whose entries go together, to noise alone.
    count_alphas : tuple of float
        Each of these takes several Newton steps, and counts are never without noise.
    chance, chance_of_folds : float
        A lead is clear if it is more than so many of its standard errors, paired over samples, or
        over folds: a standard error of a few folds is itself uncertain. A lead over a constant
        must be as large as the latter in any case.
    least_lead : float
        A smaller one does not matter: of R², D² and areas, and of other scores, whose units may be
        any, as a share of what the reference is ahead of a constant.
    most_samples, most_counts : int
        There is a reference up to so many samples, or entries of one, whichever is less, of numbers
        and of counts: its time grows with the third power of that.
    most_passes : int
        There is none where the memory budget would have it read X more often.
    """

    alphas: Numbers = tuple(10.0 ** (k / 2) for k in range(-20, 9))
    count_alphas: Numbers = tuple(10.0 ** (k / 2) for k in range(-8, 7))
    chance: float = 1.0
    chance_of_folds: float = 2.0
    least_lead: float = 0.015
    most_samples: int = 2000
    most_counts: int = 500
    most_passes: int = 12


@dataclass(frozen=True)
class ChoicePolicy:
    """All of it.

    Attributes
    ----------
    agreeing : float
        Folds agree if the median cosine between their coefficients is at least this. Where they
        differ by more, the mean of their models predicts better than one fit to all data.
    points, terms, ranking, reference : PointsPolicy, TermsPolicy, RankingPolicy, ReferencePolicy
    """

    agreeing: float = 0.95
    points: PointsPolicy = PointsPolicy()
    terms: TermsPolicy = TermsPolicy()
    ranking: RankingPolicy = RankingPolicy()
    reference: ReferencePolicy = ReferencePolicy()
