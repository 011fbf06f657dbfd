"""Where models start from, and what annealing makes of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.datasets import make_tensor_regression
from pyfastr.engines import Draw
from pyfastr.solver.models import Models, cosines
from pyfastr.solver.polish import Polished, Step, polish
from pyfastr.solver.problem import make_problem
from pyfastr.solver.rounds import search
from pyfastr.solver.starts import (
    BROAD_RUN,
    LONG_RUN,
    N_BROAD,
    N_SPRINTS,
    SHORT_RUN,
    SPRINT,
    _on_all_samples,
    anneal,
    pace_of,
    propose,
    race,
)
from pyfastr.solver.streams import Streams
from pyfastr.sources import ArraySource

SHAPES = [(6, 5), (5, 4, 3), (4, 3, 2, 3)]


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
    starts = propose(problem, 3, 1, "spectral", EqualWeights(np.random.default_rng(0), 1))
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
    starts = propose(problem, 2, 1, "spectral", EqualWeights(np.random.default_rng(0), 1))
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
        propose(draw(shape, shift=s, sample_weight=weights)[-1], 6, 2, kind, seeded(3))
        for s in (0.0, shift)
    )
    for one, other in zip(plain.components, shifted.components, strict=True):
        assert_allclose(one, other, atol=1e-8)


@pytest.mark.parametrize("kind", ["spectral", "mixed", "random"])
@pytest.mark.parametrize("n_terms", [1, 2])
def test_as_many_starts_as_asked_for_all_different_and_of_unit_length(kind, n_terms):
    *_, problem = draw((5, 4, 3))
    starts = propose(problem, 7, n_terms, kind, seeded(0))
    assert starts.scales.shape == (7, n_terms)
    for component in starts.components:
        assert_allclose(np.linalg.norm(component, axis=-1), 1)
    off_diagonal = cosines(starts)[~np.eye(7, dtype=bool)]
    assert np.abs(off_diagonal).max() < 1 - 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_spectral_starts_are_nearer_to_the_truth_than_random_ones(shape):
    _, _, W, problem = draw(shape)

    def mean_cosine(kind):
        starts = propose(problem, 30, 1, kind, seeded(0))
        found = np.array([(starts.coefficient(k) * W).sum() for k in range(30)])
        return np.abs(found).mean() / np.linalg.norm(W)

    assert mean_cosine("spectral") > 0.5 > mean_cosine("random")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_models", [5, 40])
def test_annealing_keeps_as_many_as_asked_for_and_finds_the_truth(shape, n_models):
    _, _, W, problem = draw(shape, 80)
    starts = Models.random(n_models, 1, shape, np.random.default_rng(0))
    found = anneal(problem, starts, keep=3, ridge=1e-5, streams=seeded(1))
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
    starts = propose(problem, 6, 1, "mixed", seeded(0, 2))
    streams = RecordedStreams(1, 2)
    found = anneal(problem, starts, keep=2, ridge=1e-5, streams=streams)
    assert streams.n_sweeps(0, n_modes=3) < LONG_RUN.n_sweeps / 2
    assert streams.n_sweeps(1, n_modes=3) == LONG_RUN.n_sweeps
    assert found.task.tolist() == [0, 0, 1, 1]
    best = found.coefficient(0)
    assert abs((best * W).sum()) > 0.9 * np.linalg.norm(best) * np.linalg.norm(W)


def test_where_samples_are_few_a_good_fit_does_not_end_an_annealing():
    # There are 10 free parameters and an intercept: wrong valleys fit 14 samples as well.
    *_, problem = draw((5, 4, 3), 14, noise=0.0)
    streams = RecordedStreams(1)
    starts = propose(problem, 6, 1, "mixed", seeded(0))
    anneal(problem, starts, keep=2, ridge=0, streams=streams)
    assert streams.n_sweeps(0, n_modes=3) == LONG_RUN.n_sweeps


@pytest.mark.parametrize(
    ("n_samples", "ridge", "expected"),
    [(30, 0.01, LONG_RUN), (30, 2.0, SHORT_RUN), (10, 0.01, SHORT_RUN)],
)
def test_a_run_is_short_where_any_data_can_be_fitted_or_nothing_cools(n_samples, ridge, expected):
    *_, problem = draw((5, 4, 3), n_samples)
    assert pace_of(problem, 1, ridge) is expected


def test_a_race_is_the_same_for_the_same_seed():
    *_, problem = draw((5, 4, 3))
    first, again, other = (
        race(problem, 8, 1, kind="mixed", ridge=1e-5, streams=seeded(s))[1].models
        for s in (0, 0, 1)
    )
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
    found, expected = (polish(p, models, [Step(1e-5)] * 60).models for p in (subset, alone))
    for k in range(4):
        task = models.task[k]
        assert_allclose(
            found.coefficient(k) * subset.y_scale[task],
            expected.coefficient(k) * alone.y_scale[task],
            rtol=1e-5,
            atol=1e-8,
        )


@pytest.fixture
def runs(monkeypatch):
    """Numbers of samples that annealings look at, and their pace."""
    seen = []

    def spy(problem, *args, pace, **options):
        seen.append((problem.n_samples, pace))
        return anneal(problem, *args, pace=pace, **options)

    monkeypatch.setattr("pyfastr.solver.starts.anneal", spy)
    return seen


# There are 11 degrees of freedom: twice as many samples make a sprint, and it looks at 2.5 times as
# many of them at most.
@pytest.mark.parametrize(
    ("n_samples", "noise", "expected"),
    [
        (400, 0.01, [(27, SPRINT)]),
        (400, 3.0, [*[(27, SPRINT)] * N_SPRINTS, (400, LONG_RUN)]),
        (30, 0.01, [(30, SPRINT)]),
        (20, 0.01, [(20, LONG_RUN)]),
    ],
)
def test_a_race_is_a_sprint_where_samples_abound_and_long_where_they_are_noisy(
    runs, n_samples, noise, expected
):
    X, y, *_ = draw((6, 5), n_samples, noise=noise)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    _, found = race(problem, 8, 1, kind="mixed", ridge=1e-5, streams=seeded(0))
    assert runs == expected
    best = found.models.take(np.argsort(found.objective)[:1])
    # In any case the result is a solution of all samples.
    again = polish(problem, best, [Step(1e-5)] * 60).models
    assert_allclose(best.coefficient(), again.coefficient(), rtol=1e-4, atol=1e-6)


# There are 17 degrees of freedom: twice as many samples are plenty, but a sprint would need 48.
@pytest.mark.parametrize(
    ("n_starts", "first", "expected"),
    [(N_BROAD, True, BROAD_RUN), (N_BROAD - 1, True, LONG_RUN), (N_BROAD, False, LONG_RUN)],
)
def test_a_first_race_of_many_starts_is_broad_where_samples_are_plenty(
    runs, n_starts, first, expected
):
    *_, problem = draw((4, 4, 4, 4, 4), 40, noise=0.01)
    race(problem, n_starts, 1, kind="mixed", ridge=1e-5, streams=seeded(0), first=first)
    assert runs == [(40, expected)]


def test_models_of_a_sprint_that_are_wrong_are_told_by_their_residuals_of_few_samples():
    *_, problem = draw((6, 5), 400, noise=0.01)
    few = problem.subset(np.arange(0, 400, 4))
    right = polish(few, Models.random(8, 1, (6, 5), np.random.default_rng(0)), [Step(1e-5)] * 60)
    right = right.take(np.argsort(right.objective)[:1])
    wrong = Models.random(1, 1, (6, 5), np.random.default_rng(1))
    rss = few.n_samples * few.losses(wrong)
    both = Polished.concatenate([right, Polished(wrong, rss, rss), right])
    found = _on_all_samples(problem, both, 1e-5, few.n_samples)
    exact = polish(problem, right.models, [Step(1e-5)] * 60)
    for k in (0, 2):
        assert_allclose(found.models.coefficient(k), exact.models.coefficient(0), rtol=1e-3)
        assert found.rss[k] == pytest.approx(exact.rss[0], rel=1e-3)
    assert_array_equal(found.models.coefficient(1), wrong.coefficient(0))
    assert found.rss[1] == pytest.approx(4 * rss[0])


def test_a_sprint_that_ended_in_a_wrong_valley_is_run_again(monkeypatch, runs):
    X, y, *_ = draw((6, 5), 400, noise=0.01)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    ends = iter([np.array([0]), np.array([], int)])
    monkeypatch.setattr("pyfastr.solver.starts._unexplained", lambda *_: next(ends))
    models, found = race(problem, 8, 1, kind="mixed", ridge=1e-5, streams=seeded(0))
    assert runs == [(27, SPRINT)] * 2
    # What the first one found is forgotten.
    assert len(models) == len(found.models) == 4


def test_only_the_first_round_begins_with_a_sprint(monkeypatch, runs):
    X, y, *_ = draw((6, 5), 400, noise=3.0)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    # No gap between solutions, and no number of hits, is enough to end the search.
    monkeypatch.setattr("pyfastr.solver.rounds.MANY", 10_000)
    monkeypatch.setattr("pyfastr.solver.rounds.GAP_OF_SEVERAL", np.nan)
    monkeypatch.setattr("pyfastr.solver.rounds.GAP_OF_ONE", np.nan)
    rng = np.random.default_rng(0)
    search(problem, 1, kind="mixed", n_init="auto", ridge=1e-5, rng=rng, budget=32)
    assert runs == [*[(27, SPRINT)] * N_SPRINTS, *[(400, LONG_RUN)] * 3]


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
        found.append(race(problem, 8, 1, kind="mixed", ridge=1e-5, streams=seeded(0, 2))[1])
    (before, after), (clear, hidden) = (
        [f.take(np.flatnonzero(f.models.task == task)) for f in found] for task in (0, 1)
    )
    # To rounding: on some processors products of a batch round by how many models are left in it.
    assert_allclose(before.models.coefficient(), after.models.coefficient(), rtol=0, atol=1e-12)
    assert_allclose(before.rss, after.rss, rtol=1e-9)
    # The fold that trains on them is raced again.
    assert clear.rss.min() < 0.01 * hidden.rss.min()
    assert len(clear.rss) == len(hidden.rss)
