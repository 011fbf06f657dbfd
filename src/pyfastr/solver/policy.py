"""How the solver searches: every limit, share and number of steps that it chooses by itself.

An estimator's parameters say what to fit, these say how to go about it. They are measured by
``benchmarks/accuracy.py``: single fits show proposals, annealing, race, rounds, polish and
evidence, choices by folds (``--cv``) refits and grids. ``benchmarks/selection.py`` times grids and
foresight, ``benchmarks/permutation.py`` brief searches.
"""

from dataclasses import dataclass, replace

import numpy as np

from pyfastr.solver.paces import RacePolicy

Sizes = tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class ProposalPolicy:
    """How starts are drawn.

    Attributes
    ----------
    power_sweeps, sparse_threshold : int, float
        Power sweeps that make a spectral or a sparse start, and their threshold if it is sparse.
    sparse_start_from : float
        Models of this threshold and above are also fitted from a sparse start.
    steepest_starts, steepest_sweeps : int
        Where a term that is added to others may begin, and power sweeps from each place.
    """

    power_sweeps: int = 15
    sparse_threshold: float = 0.5
    sparse_start_from: float = 0.2
    steepest_starts: int = 8
    steepest_sweeps: int = 4


@dataclass(frozen=True)
class AnnealingPolicy:
    """How models are shaken while the ridge cools.

    Attributes
    ----------
    hot_ridge, cold_ridge : float
        Ridge of the first and of the last sweep, unless a larger one is asked for.
    smoothing : float
        Weight of earlier sweeps in the loss by which models leave the race.
    right_valley : float
        Where samples abound, a task ends once its best model leaves no larger share of the
        response unexplained, because models in wrong valleys leave more.
    rounding_pays_from : int
        From this many models on, products in float32 gain more than rounding X costs.
    always_rounded_bytes : int
        X of at most this size is rounded to the end of an annealing that begins so, however few
        models are left.
    """

    hot_ridge: float = 1.2
    cold_ridge: float = 0.1
    smoothing: float = 0.7
    right_valley: float = 0.15
    rounding_pays_from: int = 32
    always_rounded_bytes: int = 32 << 20


@dataclass(frozen=True)
class RoundsPolicy:
    """How many starts there are, and when the best solution stands apart.

    A gap is the sum of squared residuals of the next best solution over that of the best.

    Attributes
    ----------
    first_round : tuple of (float, int)
        Starts of the first round, for at least so many samples per degree of freedom: where both
        are about equal, many solutions fit and the evidence wants a choice.
    sprinters : int
        Starts of a first round that is a sprint.
    budget : int
        Starts of all rounds, each of which has twice as many as the one before.
    large_ridge : float
        A ridge from this size on leaves few minima, and no solution that stands apart.
    budget_of_large_ridge, budget_beside_known : int
        Starts of all rounds with such a ridge, without and beside solutions that are known.
    known_steps : int
        Polishing steps of known solutions, which are those of nearly the same problem.
    same_cosine : float
        Models whose coefficients have a larger cosine are the same solution.
    several_hits, gap_of_one, gap_of_several : int, float, float
        Gap that ends a search whose solution one start found, or at least so many.
    lead_of_several : float
        Lead in ``(N - dof) log RSS`` that is enough for a single term which several starts found;
        noise makes much smaller ones. A sum of terms may yet miss a weak one.
    enough_hits : int
        Starts that end in the best solution and so end the search, even where noise hides the gap.
    """

    first_round: Sizes = ((2.0, 32), (1.5, 16), (1.25, 32), (1.05, 64), (0.9, 512), (0.0, 64))
    sprinters: int = 8
    budget: int = 960
    large_ridge: float = 0.01
    budget_of_large_ridge: int = 64
    budget_beside_known: int = 16
    known_steps: int = 3
    same_cosine: float = 0.98
    several_hits: int = 2
    gap_of_one: float = 100.0
    gap_of_several: float = 10.0
    lead_of_several: float = 100.0
    enough_hits: int = 8


@dataclass(frozen=True)
class PolishPolicy:
    """How joint steps are damped, and how their penalty cools.

    Attributes
    ----------
    hot_ridge : float
        Ridge, and weight of as much sparsity, of the first step; both cool to the ridge asked for,
        because a jump there loses models that stand in the right valley.
    least_ridge, sparsity_width : float
        Where the cooling ends if no ridge is asked for; width of the sparsity penalty meanwhile.
    first_damping, damping_range : float, (float, float)
        Damping of the first step, relative to the mean diagonal of J'J, and its smallest and
        largest.
    damping_after_success, damping_after_failure : float
        Factor of the damping after a step that lowered the objective, or did not.
    still : float
        A model whose step is a smaller share of its parameters has ended.
    longest : float
        A step longer than so many times the parameters, which are of order one, is not tried: what
        follows from it may leave the range of floats.
    """

    hot_ridge: float = 0.3
    least_ridge: float = 1e-9
    sparsity_width: float = 0.5
    first_damping: float = 1e-2
    damping_after_success: float = 0.2
    damping_after_failure: float = 5.0
    damping_range: tuple[float, float] = (1e-11, 1e4)
    still: float = 1e-9
    longest: float = 1e3


@dataclass(frozen=True)
class ForesightPolicy:
    """Where the end of sweeps is foreseen by a linear problem.

    Attributes
    ----------
    samples_per_parameter : float
        Samples for each degree of freedom that bring the linear problem close to the true one.
    unexplained : float
        Largest share of the response that a start may leave unexplained.
    largest_penalty : float
        Largest ridge and threshold whose effect is linear enough.
    least_ridge : float
        A smaller ridge without a threshold hardly moves a solution.
    n_sweeps : int
        Sweeps of the linear problem.
    largest_change : float
        Change of a model, relative to its size, beyond which the linear problem is not believed.
    inverses_bytes, products_bytes : int
        Memory for the inverse matrices of a batch of models, and for the products of all starts; of
        more starts nothing is foreseen.
    """

    samples_per_parameter: float = 2.0
    unexplained: float = 0.05
    largest_penalty: float = 0.1
    least_ridge: float = 1e-3
    n_sweeps: int = 20
    largest_change: float = 0.5
    inverses_bytes: int = 100 << 20
    products_bytes: int = 200 << 20


@dataclass(frozen=True)
class RefitPolicy:
    """How the non-zero entries of a model are fitted anew.

    Attributes
    ----------
    tol_share : float
        Refits end at this share of `tol`, because they are what is compared and kept.
    n_steps : int
        Joint steps of a refit at most.
    crawl_below : float
        With fewer samples for each degree of freedom sweeps crawl, and joint steps come first.
    crawl_below_ridge : float
        A ridge from this size on makes up for samples that are few.
    ridge_power : int
        Power of the share of free entries by which the ridge of a refit shrinks.
    n_spared : int
        Parameters that have no ridge, because so few are estimated no better by shrinking them
        (Stein 1956).
    """

    tol_share: float = 0.1
    n_steps: int = 25
    crawl_below: float = 2.0
    crawl_below_ridge: float = 0.01
    ridge_power: int = 2
    n_spared: int = 2


@dataclass(frozen=True)
class EvidencePolicy:
    """How a support is sought and chosen by its evidence.

    Attributes
    ----------
    candidates_small, candidates_large : int
        Candidates where no solution stands apart, of small and of larger samples.
    sparsities : tuple of float
        Weights of the sparsity penalty that thins a candidate; 0 keeps all of its entries.
    widths : (float, float)
        First and last width of that penalty: from nearly a ridge to nearly a count of entries.
    n_steps : int
        Joint steps of a thinning.
    zero : float
        Entries below this share of a model's root mean square are zero.
    refit_ridge : float
        Ridge with which a thinned support is fitted anew.
    least_spare : float
        Samples beyond the free parameters count as at least this many.
    settle_ridges, settle_sweeps : (float, float), int
        Ridges and sweeps that shake all models before the first thinning.
    n_hops : int
        Times that copies of the best models are shaken and thinned again at most.
    hop_ridges, hop_sweeps, hop_threshold : (float, float), int, float
        Ridges, sweeps and threshold that shake the copies in a hop.
    hop_sparsities : tuple of float
        Weights of the sparsity penalty after a hop.
    hop_models, hop_copies : int
        Best models that hop, and copies of each.
    enough_hits : int
        A support that this many models lead to ends the hops.
    vector_thresholds : tuple of float
        Thresholds whose supports are compared, beside that of all entries, if samples are vectors.
    vector_ridge : float
        A ridge that no fit shows, but that makes least squares of vectors unique.
    """

    candidates_small: int = 256
    candidates_large: int = 8
    sparsities: tuple[float, ...] = (0.0, 3e-6, 3e-5, 3e-4)
    widths: tuple[float, float] = (0.3, 0.01)
    n_steps: int = 50
    zero: float = 0.01
    refit_ridge: float = 1e-9
    least_spare: float = 0.5
    settle_ridges: tuple[float, float] = (0.1, 0.02)
    settle_sweeps: int = 15
    n_hops: int = 6
    hop_ridges: tuple[float, float] = (0.3, 0.02)
    hop_sweeps: int = 20
    hop_threshold: float = 0.2
    hop_sparsities: tuple[float, ...] = (3e-5,)
    hop_models: int = 32
    hop_copies: int = 4
    enough_hits: int = 64
    vector_thresholds: tuple[float, ...] = tuple(np.geomspace(1e-3, 0.9, 12).tolist())
    vector_ridge: float = 1e-8


@dataclass(frozen=True)
class GridPolicy:
    """How starts for a grid of ridges and thresholds are sought.

    Attributes
    ----------
    budget : int
        Starts of each task at most.
    blind_budget : int
        The same where any data could be fitted, so that there is nothing to find.
    candidates : int
        Survivors of the last round that are polished at every ridge.
    brief_starts, brief_candidates : int
        Starts of each task of a brief search, and how many are polished at every ridge.
    """

    budget: int = 512
    blind_budget: int = 8
    candidates: int = 4
    brief_starts: int = 8
    brief_candidates: int = 2


@dataclass(frozen=True)
class SearchPolicy:
    """All that the search chooses by itself; each group of values has a class that explains them.

    To change one, replace it in its group: ``replace(policy, race=replace(policy.race, ...))``.
    """

    proposals: ProposalPolicy = ProposalPolicy()
    annealing: AnnealingPolicy = AnnealingPolicy()
    race: RacePolicy = RacePolicy()
    rounds: RoundsPolicy = RoundsPolicy()
    polish: PolishPolicy = PolishPolicy()
    foresight: ForesightPolicy = ForesightPolicy()
    refit: RefitPolicy = RefitPolicy()
    evidence: EvidencePolicy = EvidencePolicy()
    grid: GridPolicy = GridPolicy()

    def with_budget(self, n_starts: int) -> "SearchPolicy":
        """Return the same with so many starts of all rounds, of a fit and of a grid's tasks."""
        rounds = replace(self.rounds, budget=n_starts)
        return replace(self, rounds=rounds, grid=replace(self.grid, budget=n_starts))
