"""The road from a problem to fitted models, as its settings ask for it."""

from dataclasses import replace

import numpy as np
import pytest

from pyfastr.datasets import make_tensor_regression
from pyfastr.solver.grid import solve_grid
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.problem import make_problem
from pyfastr.solver.progress import watched_by
from pyfastr.solver.settings import Settings
from pyfastr.solver.solve import solve
from pyfastr.sources import ArraySource

POLICY = SearchPolicy()
# No gap between solutions, and no number of hits, ends a search.
NEVER = {"enough_hits": 10_000, "gap_of_one": np.nan, "gap_of_several": np.nan}
ENDLESS = replace(POLICY, rounds=replace(POLICY.rounds, **NEVER))
SHAPE = (6, 5)


class RecordedGenerator(np.random.Generator):
    """Draws as any generator does, and keeps the sizes of normal draws: the starts'."""

    def __init__(self, seed):
        super().__init__(np.random.PCG64(seed))
        self.sizes = []

    def standard_normal(self, size=None, *args, **options):
        self.sizes.append(size)
        return super().standard_normal(size, *args, **options)

    def n_starts(self):
        """Starts of each round, by the draws of the first mode."""
        return [n_models for n_models, _, p in self.sizes if p == SHAPE[0]]


def noise(n_samples):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_samples, *SHAPE)), rng.normal(size=n_samples)
    return make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)


def signal(n_samples):
    X, y = make_tensor_regression(n_samples, SHAPE, random_state=0)
    return make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)


def starts_of_grid(problem, **options):
    rng = RecordedGenerator(0)
    solve_grid(problem, [1e-3], [0.0], Settings(0.0, 1e-3, **options), rng)
    return rng.n_starts()


# There are 11 degrees of freedom: 80 samples are enough for a sprint, 18 are not.
@pytest.mark.parametrize(("n_samples", "n_starts"), [(80, POLICY.grid.brief_starts), (18, 16)])
def test_a_brief_search_is_one_round_however_unsure_it_is(n_samples, n_starts):
    assert starts_of_grid(noise(n_samples), brief=True, policy=ENDLESS) == [n_starts]


def test_a_search_that_is_unsure_goes_on_to_the_budget_of_a_grid():
    policy = replace(ENDLESS, grid=replace(POLICY.grid, budget=40))
    assert starts_of_grid(noise(18), policy=policy) == [16, 24]


@pytest.mark.parametrize("brief_starts", [3, 5])
def test_the_policy_says_how_many_starts_a_brief_search_has(brief_starts):
    policy = replace(POLICY, grid=replace(POLICY.grid, brief_starts=brief_starts))
    assert starts_of_grid(noise(80), brief=True, policy=policy) == [brief_starts]


@pytest.mark.parametrize("n_samples", [60, 18])
def test_the_policy_of_the_settings_reaches_the_race(n_samples):
    race = POLICY.race
    sprint, long_run = (replace(pace, n_sweeps=9) for pace in (race.sprint, race.long_run))
    policy = replace(POLICY, race=replace(race, sprint=sprint, long_run=long_run))
    events = []
    with watched_by(events.append):
        solve(signal(n_samples), Settings(0.0, 1e-5, policy=policy), np.random.default_rng(0))
    assert {event.total for event in events if event.stage == "search"} == {9}


def test_a_policy_cannot_be_changed_only_replaced():
    with pytest.raises(AttributeError):
        POLICY.race.n_sprints = 1
    changed = POLICY.with_budget(5)
    assert (changed.rounds.budget, changed.grid.budget) == (5, 5)
    assert (changed.race, changed.evidence) == (POLICY.race, POLICY.evidence)
    assert SearchPolicy() == POLICY
