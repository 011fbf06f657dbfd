"""How sure it is that a search has found the best solution of the fitting problem.

That starts agree does not tell: where samples hardly outnumber the free parameters, or noise is as
large as the signal, all that were polished can end in one solution while another fits better that
one start of a hundred finds. What tells is how much better the solution fits than one of noise
would, because what noise has to offer are many solutions that fit about alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

# Of solutions that are called sure each may be wrong with one chance in fifty; most are far above,
# so that of all of them fewer than one in a hundred is.
SURE = 0.98

# Log odds of being the best: at no strength, for the strength cubed, for the share of LARGE_RIDGE,
# and for the logarithm of spare samples over free parameters. `benchmarks/sure.py --calibrate` fits
# them to one half of its draws, and the other half tells how well they do.
WEIGHTS = (1.00, 1.87, 1.58, 0.45)
# A ridge from this size on was drawn for the weights, and leaves few solutions.
LARGE_RIDGE = 0.1
# Beyond these the draws say nothing more: a strength that always was enough, and the most spare
# samples for each free parameter.
LARGEST_STRENGTH, MOST_SPARE = 2.5, 9.0


@dataclass(frozen=True)
class SearchFacts:
    """What a search knows of its best solution.

    Attributes
    ----------
    n_hits, n_polished : int
        Polished starts that ended in the solution, and all of them.
    unexplained : float
        Share of the response that the solution leaves unexplained.
    without_term : tuple of float
        The same without one of its terms, for each, the others fitted anew.
    n_samples, n_free : int
        Samples, and free parameters with intercept and covariates.
    shape : tuple of int
        Of a sample.
    ridge : float
    """

    n_hits: int
    n_polished: int
    unexplained: float
    without_term: Sequence[float]
    n_samples: int
    n_free: int
    shape: Sequence[int]
    ridge: float

    @property
    def strength(self) -> float:
        r"""How much better the solution fits than noise does; about 1 or less if it is of noise.

        A unit-rank term explains about :math:`(\sum_m \sqrt{p_m})^2 / N` of a response of noise, if
        samples are many (Chevet's inequality), and a larger share the fewer they are beside the
        free parameters. The strength is the logarithm of what is left over in these units, for all
        terms or for the weakest: terms that cancel are large each and explain little together.
        """
        spare = max(self.n_samples - self.n_free, 0)
        of_noise = sum(sqrt(p) for p in self.shape) ** 2 / sqrt(self.n_samples * spare or 1)
        all_terms = -log(self.unexplained) / len(self.without_term)
        weakest = log(min(self.without_term) / self.unexplained)
        return min(all_terms, weakest) / of_noise if spare else 0.0

    @property
    def features(self) -> tuple[float, float, float]:
        """What the weights belong to."""
        strength = min(max(self.strength, 0.0), LARGEST_STRENGTH)
        # Half a sample stands for none, whose logarithm is of no use.
        spare = max(self.n_samples - self.n_free, 0.5) / self.n_free
        ridge = min(self.ridge, LARGE_RIDGE) / LARGE_RIDGE
        return strength**3, ridge, log(min(spare, MOST_SPARE))


def confidence(found: SearchFacts) -> float:
    """Return the probability that 4,096 starts would find no better solution."""
    pairs = zip(WEIGHTS, (1.0, *found.features), strict=True)
    chance = 1 / (1 + exp(-sum(weight * fact for weight, fact in pairs)))
    beyond_doubt = found.n_polished > 1 and found.strength >= LARGEST_STRENGTH
    if found.n_hits > 1 or beyond_doubt:
        return chance
    # One that is no harder to find would be missed as often as this one would have been.
    missed = (1 - 1 / (found.n_polished + 1)) ** found.n_polished
    return min(chance, 1 - missed)
