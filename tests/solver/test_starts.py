"""Where models start from, and what annealing makes of them."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.datasets import make_tensor_regression
from pyfastr.engines import Draw
from pyfastr.solver.agreement import agree
from pyfastr.solver.models import Models, cosines
from pyfastr.solver.paces import Pace
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.polish import Polished, Step, polish
from pyfastr.solver.problem import make_problem
from pyfastr.solver.progress import watched_by
from pyfastr.solver.proposals import propose
from pyfastr.solver.rounds import search
from pyfastr.solver.starts import anneal, for_a_sprint, on_all_samples, pace_of, race
from pyfastr.solver.streams import Streams
from pyfastr.sources import ArraySource

POLICY = SearchPolicy()
RACE = POLICY.race
SHAPES = [(6, 5), (5, 4, 3), (4, 3, 2, 3)]
# As for a large X, whose samples cost more than calls.
OF_LARGE = replace(POLICY, race=replace(RACE, thinned_from_bytes=0))


def seeded(seed, n_tasks=1):
    return Streams(np.random.default_rng(seed), n_tasks)


class Ones(Draw):
    """A draw in which the weight of each sample is 1."""

    def take(self, which):
        return Ones(self.keys[which])

    def exponential(self, first, n_samples, dtype=float):
        return np.ones((len(self.keys), n_samples), dtype)


class EqualWeights(Streams):
    """Draws starts as any streams do, but no weights."""

    def weights(self, task):
        return Ones(super().weights(task).keys)


def annealed(problem, starts, streams, *, keep, ridge=1e-5):
    options = {"keep": keep, "ridge": ridge, "streams": streams}
    return anneal(problem, starts, pace=RACE.long_run, policy=POLICY, **options)


def draw(shape, n_samples=60, *, noise=0.1, shift=0.0, **options):
    X, y, W = make_tensor_regression(n_samples, shape, noise=noise, coef=True, random_state=0)
    X, y = X + shift, y / np.linalg.norm(W)
    options = {"fit_intercept": True, **options}
    source = ArraySource(X, block_bytes=5000)
    return X, y, W, make_problem(source, y, x_scale=float(np.abs(X).max()), **options)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [True, False])
def test_spectral_starts_are_best_rank_one_fits_of_the_covariance_with_y(shape, weighted, naive):
    weights = np.random.default_rng(1).random(400) if weighted else None
    X, y, _, problem = draw(shape, 400, shift=1.0, sample_weight=weights)
    starts = propose(problem, 3, 1, "spectral", EqualWeights(np.random.default_rng(0), 1), POLICY)
    y = (y - np.average(y, weights=weights)) * (1 if weights is None else weights)
    covariance = np.tensordot(y, X - X.mean(axis=0), axes=1)
    for k in range(3):
        parts = [c[k : k + 1] for c in starts.components]
        # Each component is what the others make of the array: a fixed point of power sweeps.
        for mode in range(len(shape)):
            image = naive.project(covariance[None], parts, mode)[0, 0, 0]
            assert_allclose(parts[mode][0, 0], image / np.linalg.norm(image), atol=1e-4)


def test_spectral_starts_of_matrices_are_singular_vectors():
    X, y, _, problem = draw((6, 5), 400)
    starts = propose(problem, 2, 1, "spectral", EqualWeights(np.random.default_rng(0), 1), POLICY)
    U, _, Vt = np.linalg.svd(np.tensordot(y - y.mean(), X, axes=1))
    assert_allclose(np.abs(starts.components[0][:, 0] @ U[:, 0]), 1, atol=1e-8)
    assert_allclose(np.abs(starts.components[1][:, 0] @ Vt[0]), 1, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["spectral", "mixed"])
@pytest.mark.parametrize("weighted", [True, False])
def test_an_array_added_to_all_samples_moves_no_start(shape, kind, weighted):
    weights = np.random.default_rng(1).integers(0, 3, 60).astype(float) if weighted else None
    shift = 5 * np.random.default_rng(2).normal(size=shape)
    plain, shifted = (
        propose(draw(shape, shift=s, sample_weight=weights)[-1], 6, 2, kind, seeded(3), POLICY)
        for s in (0.0, shift)
    )
    for one, other in zip(plain.components, shifted.components, strict=True):
        assert_allclose(one, other, atol=1e-8)


@pytest.mark.parametrize("kind", ["spectral", "mixed", "random"])
@pytest.mark.parametrize("n_terms", [1, 2])
def test_as_many_starts_as_asked_for_all_different_and_of_unit_length(kind, n_terms):
    *_, problem = draw((5, 4, 3))
    starts = propose(problem, 7, n_terms, kind, seeded(0), POLICY)
    assert starts.scales.shape == (7, n_terms)
    for component in starts.components:
        assert_allclose(np.linalg.norm(component, axis=-1), 1)
    off_diagonal = cosines(starts)[~np.eye(7, dtype=bool)]
    assert np.abs(off_diagonal).max() < 1 - 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_spectral_starts_are_nearer_to_the_truth_than_random_ones(shape):
    _, _, W, problem = draw(shape)

    def mean_cosine(kind):
        starts = propose(problem, 30, 1, kind, seeded(0), POLICY)
        found = np.array([(starts.coefficient(k) * W).sum() for k in range(30)])
        return np.abs(found).mean() / np.linalg.norm(W)

    assert mean_cosine("spectral") > 0.5 > mean_cosine("random")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_models", [5, 40])
def test_annealing_keeps_as_many_as_asked_for_and_finds_the_truth(shape, n_models):
    _, _, W, problem = draw(shape, 80)
    starts = Models.random(n_models, 1, shape, np.random.default_rng(0))
    found = annealed(problem, starts, seeded(1), keep=3)
    assert len(found) == 3
    cosine = np.sum(found.coefficient(0) * W) / (
        np.linalg.norm(found.coefficient(0)) * np.linalg.norm(W)
    )
    # As near as a ridge of 0.1 and fresh weights in each update allow.
    assert abs(cosine) > 0.9


class RecordedStreams(Streams):
    """Keeps the tasks that draw sample weights: each of them in every update of a sweep."""

    def __init__(self, seed, n_tasks=1):
        super().__init__(np.random.default_rng(seed), n_tasks)
        self.tasks = []

    def weights(self, task):
        self.tasks.append(set(task.tolist()))
        return super().weights(task)

    def n_sweeps(self, task, n_modes):
        return sum(task in tasks for tasks in self.tasks) / n_modes


def test_an_annealing_ends_for_a_task_that_has_found_its_valley_and_goes_on_for_noise():
    X, y, W, _ = draw((5, 4, 3))
    responses = np.stack([y, np.random.default_rng(5).normal(size=len(y))])
    problem = make_problem(ArraySource(X), responses, x_scale=1.0, fit_intercept=True)
    starts = propose(problem, 6, 1, "mixed", seeded(0, 2), POLICY)
    streams = RecordedStreams(1, 2)
    found = annealed(problem, starts, streams, keep=2)
    assert streams.n_sweeps(0, n_modes=3) < RACE.long_run.n_sweeps / 2
    assert streams.n_sweeps(1, n_modes=3) == RACE.long_run.n_sweeps
    assert found.task.tolist() == [0, 0, 1, 1]
    best = found.coefficient(0)
    assert abs((best * W).sum()) > 0.9 * np.linalg.norm(best) * np.linalg.norm(W)


def test_where_samples_are_few_a_good_fit_does_not_end_an_annealing():
    # There are 10 free parameters and an intercept: wrong valleys fit 14 samples as well.
    *_, problem = draw((5, 4, 3), 14, noise=0.0)
    streams = RecordedStreams(1)
    starts = propose(problem, 6, 1, "mixed", seeded(0), POLICY)
    annealed(problem, starts, streams, keep=2, ridge=0)
    assert streams.n_sweeps(0, n_modes=3) == RACE.long_run.n_sweeps


@pytest.mark.parametrize(
    ("n_samples", "ridge", "expected"),
    [(30, 0.01, RACE.long_run), (30, 2.0, RACE.short_run), (10, 0.01, RACE.short_run)],
)
def test_a_run_is_short_where_any_data_can_be_fitted_or_nothing_cools(n_samples, ridge, expected):
    *_, problem = draw((5, 4, 3), n_samples)
    assert pace_of(problem, 1, ridge, POLICY) == expected


def raced(problem, n_starts, streams, policy=POLICY, **options):
    options = {"kind": "mixed", "ridge": 1e-5, **options}
    return race(problem, n_starts, 1, streams=streams, policy=policy, **options)


def test_a_race_is_the_same_for_the_same_seed():
    *_, problem = draw((5, 4, 3))
    first, again, other = (raced(problem, 8, seeded(s))[1].models for s in (0, 0, 1))
    assert_array_equal(first.coefficient(), again.coefficient())
    assert not np.array_equal(first.coefficient(), other.coefficient())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("covariates", [False, True])
def test_a_subset_of_a_problem_is_that_of_its_samples(weighted, covariates):
    X, y, _, _ = draw((5, 4))
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.1, 2, (3, len(y))) if weighted else None
    Z = rng.normal(size=(len(y), 2)) if covariates else None
    which = np.array([1, 2, 5, *range(10, 60, 2)])

    def problem_of(rows):
        g = None if weights is None else weights[:, rows]
        z = None if Z is None else Z[rows]
        options = {"fit_intercept": True, "sample_weight": g, "covariates": z}
        return make_problem(ArraySource(X[rows]), y[rows], x_scale=1.0, **options)

    models = Models.random(4, 1, (5, 4), rng)
    models.task = np.arange(4) % (3 if weighted else 1)
    subset, alone = problem_of(slice(None)).subset(which), problem_of(which)
    found, expected = (polish(p, models, [Step(1e-5)] * 60, POLICY).models for p in (subset, alone))
    for k in range(4):
        task = models.task[k]
        assert_allclose(
            found.coefficient(k) * subset.y_scale[task],
            expected.coefficient(k) * alone.y_scale[task],
            rtol=1e-5,
            atol=1e-8,
        )


@contextmanager
def noted_paces():
    """The numbers of sweeps that annealings set out to make, by which paces are known."""
    paces = []

    def note(event):
        if event.stage == "search" and event.done == 1:
            paces.append(event.total)

    with watched_by(note):
        yield paces


def sweeps_of(*paces):
    return [pace.n_sweeps for pace in paces]


# There are 11 degrees of freedom: twice as many samples make a sprint.
@pytest.mark.parametrize(
    ("policy", "n_samples", "noise", "expected"),
    [
        (POLICY, 400, 0.01, [RACE.sprint]),
        (OF_LARGE, 400, 0.01, [RACE.sprint]),
        (OF_LARGE, 400, 3.0, [*[RACE.sprint] * RACE.n_sprints, RACE.long_run]),
        (POLICY, 30, 3.0, [*[RACE.sprint] * RACE.n_sprints, RACE.long_run]),
        (POLICY, 30, 0.01, [RACE.sprint]),
        (POLICY, 20, 0.01, [RACE.long_run]),
    ],
)
def test_a_race_is_a_sprint_where_samples_abound_and_long_where_they_are_noisy(
    policy, n_samples, noise, expected
):
    X, y, *_ = draw((6, 5), n_samples, noise=noise)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    with noted_paces() as paces:
        _, found = raced(problem, 8, seeded(0), policy)
    assert paces == sweeps_of(*expected)
    best = found.models.take(np.argsort(found.objective)[:1])
    # In any case the result is a solution of all samples.
    again = polish(problem, best, [Step(1e-5)] * 60, POLICY).models
    assert_allclose(best.coefficient(), again.coefficient(), rtol=1e-4, atol=1e-6)


def test_in_noise_a_sprint_whose_starts_agree_ends_the_search():
    X, y, *_ = draw((6, 5), 400, noise=3.0)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    with noted_paces() as paces:
        (found,) = searched(problem, POLICY)
    assert paces == sweeps_of(RACE.sprint)
    assert found.starts.n_hits >= RACE.agreeing
    # A long search finds no better solution.
    patient = replace(POLICY, race=replace(RACE, agreement_needs=np.inf, n_sprints=0))
    best = [f.solutions.take(slice(0, 1)) for f in (found, *searched(problem, patient))]
    assert cosines(Models.concatenate(best))[0, 1] > POLICY.rounds.same_cosine


def searched(problem, policy):
    options = {"kind": "mixed", "n_init": "auto", "ridge": 1e-5, "policy": policy}
    return search(problem, 1, rng=np.random.default_rng(0), **options)


@pytest.mark.parametrize(
    ("n_samples", "n_same", "expected"),
    [(400, 4, True), (400, 3, True), (400, 2, False), (40, 4, False)],
)
def test_starts_agree_if_most_end_in_the_best_solution_and_samples_abound(
    n_samples, n_same, expected
):
    *_, problem = draw((6, 5), n_samples)
    models = Models.random(4, 1, (6, 5), np.random.default_rng(0))
    models = models.take(np.array([0] * n_same + [1, 2, 3])[:4])
    merit = np.arange(4.0)
    assert agree(problem, Polished(models, merit, merit), 0, POLICY) == expected


@pytest.mark.parametrize(
    ("policy", "n_samples", "n_seen"), [(OF_LARGE, 400, 27), (OF_LARGE, 30, 30), (POLICY, 400, 400)]
)
def test_a_sprint_looks_at_no_more_samples_than_it_needs(policy, n_samples, n_seen):
    # 2.5 for each of the 11 degrees of freedom, unless that saves too few, or X is small.
    *_, problem = draw((6, 5), n_samples)
    assert for_a_sprint(problem, 1, np.random.default_rng(0), policy).n_samples == n_seen


# There are 17 degrees of freedom: twice as many samples are plenty, but a sprint would need 48.
@pytest.mark.parametrize(
    ("n_starts", "first", "expected"),
    [
        (RACE.broad_from, True, RACE.broad_run),
        (RACE.broad_from - 1, True, RACE.long_run),
        (RACE.broad_from, False, RACE.long_run),
    ],
)
def test_a_first_race_of_many_starts_is_broad_where_samples_are_plenty(n_starts, first, expected):
    *_, problem = draw((4, 4, 4, 4, 4), 40, noise=0.01)
    with noted_paces() as paces:
        raced(problem, n_starts, seeded(0), first=first)
    assert paces == sweeps_of(expected)


def test_models_of_a_sprint_that_are_wrong_are_told_by_their_residuals_of_few_samples():
    *_, problem = draw((6, 5), 400, noise=0.01)
    few = problem.subset(np.arange(0, 400, 4))
    right = polish(
        few, Models.random(8, 1, (6, 5), np.random.default_rng(0)), [Step(1e-5)] * 60, POLICY
    )
    right = right.take(np.argsort(right.objective)[:1])
    wrong = Models.random(1, 1, (6, 5), np.random.default_rng(1))
    rss = few.n_samples * few.losses(wrong)
    both = Polished.concatenate([right, Polished(wrong, rss, rss), right])
    found = on_all_samples(problem, both, 1e-5, few.n_samples, POLICY)
    exact = polish(problem, right.models, [Step(1e-5)] * 60, POLICY)
    for k in (0, 2):
        assert_allclose(found.models.coefficient(k), exact.models.coefficient(0), rtol=1e-3)
        assert found.rss[k] == pytest.approx(exact.rss[0], rel=1e-3)
    assert_array_equal(found.models.coefficient(1), wrong.coefficient(0))
    assert found.rss[1] == pytest.approx(4 * rss[0])


def test_a_sprint_that_ended_in_a_wrong_valley_is_run_again():
    X, y, *_ = draw((6, 5, 4), 400, noise=0.01)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    # So short, and of so few starts, that some fail and others do not.
    hasty = Pace(n_sweeps=1, halvings=(), n_cooling=1, n_final=1)
    policy = replace(OF_LARGE, race=replace(OF_LARGE.race, sprint=hasty, n_sprints=50))
    n_sprints = []
    for seed in range(12):
        with noted_paces() as paces:
            models, found = raced(problem, 4, seeded(seed), policy, kind="random")
        assert set(paces) == {hasty.n_sweeps}
        n_sprints.append(len(paces))
        # What those that failed found is forgotten.
        assert len(models) == len(found.models) == 2
        assert found.rss.min() <= RACE.sprint_unexplained * problem.n_samples
    assert min(n_sprints) == 1
    assert max(n_sprints) > 1


def test_only_the_first_round_begins_with_a_sprint():
    X, y, *_ = draw((6, 5), 400, noise=3.0)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    # No gap between solutions, not even an infinite one, and no number of hits ends the search.
    never = {"enough_hits": 10_000, "gap_of_one": np.nan, "gap_of_several": np.nan}
    race = replace(RACE, agreement_needs=np.inf)
    policy = replace(POLICY, race=race, rounds=replace(POLICY.rounds, **never, budget=32))
    with noted_paces() as paces:
        searched(problem, policy)
    sprints, long_runs = [RACE.sprint] * RACE.n_sprints, [RACE.long_run] * 3
    assert paces == sweeps_of(*sprints, *long_runs)


def test_samples_that_a_fold_holds_out_do_not_decide_how_it_is_raced():
    X, y, *_ = draw((6, 5), 400, noise=0.01)
    weights = np.ones((2, 400))
    weights[0, :100] = weights[1, 300:] = 0
    noisy = y.copy()
    noisy[:100] = np.random.default_rng(0).normal(scale=5, size=100)
    found = []
    for response in (y, noisy):
        problem = make_problem(
            ArraySource(X), response, x_scale=1.0, fit_intercept=True, sample_weight=weights
        )
        found.append(raced(problem, 8, seeded(0, 2))[1])
    (before, after), (clear, hidden) = (
        [f.take(np.flatnonzero(f.models.task == task)) for f in found] for task in (0, 1)
    )
    # To rounding: on some processors products of a batch round by how many models are left in it.
    assert_allclose(before.models.coefficient(), after.models.coefficient(), rtol=0, atol=1e-12)
    assert_allclose(before.rss, after.rss, rtol=1e-9)
    # The fold that trains on them is raced again.
    assert clear.rss.min() < 0.01 * hidden.rss.min()
    assert len(clear.rss) == len(hidden.rss)
