"""The search: it finds the truth where data are easy, and says how sure it is."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.datasets import make_tensor_regression
from pyfastr.metrics import coefficient_error
from pyfastr.solver.confidence import SURE
from pyfastr.solver.models import Models, cosines
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.problem import make_problem
from pyfastr.solver.progress import watched_by
from pyfastr.solver.rounds import needed_gap, round_sizes, search
from pyfastr.sources import ArraySource

POLICY = SearchPolicy()
ROUNDS = POLICY.rounds
CASES = [((6, 5), 60), ((10, 10), 80), ((5, 4, 3), 60), ((4, 3, 2, 3), 60)]


def draw(shape, n_samples, seed=0, **options):
    """A problem with a coefficient of norm 1, which the noise of 0.1 does not drown."""
    X, _, W = make_tensor_regression(n_samples, shape, coef=True, random_state=seed, **options)
    W /= np.linalg.norm(W)
    noise = 0.1 * np.random.default_rng(seed).normal(size=n_samples)
    y = X.reshape(n_samples, -1) @ W.ravel() + noise
    return make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True), W


def found_in(problem, n_terms=1, *, n_init="auto", seed=0, kind="mixed", ridge=1e-5, **options):
    return search(
        problem,
        n_terms,
        kind=kind,
        n_init=n_init,
        ridge=ridge,
        rng=np.random.default_rng(seed),
        policy=POLICY,
        **options,
    )[0]


def rss_of(problem, W):
    """Sum of squared residuals of a coefficient in the units of X and y."""
    X = problem.engine.source.read(slice(None))
    fitted = X.reshape(len(X), -1) @ W.ravel() / problem.y_scale[0]
    return float(np.sum(problem.residuals(fitted[None], np.zeros(1, int)) ** 2))


def noise_problem():
    """A response that has nothing to do with X: many solutions fit about as well."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8, 7, 6))
    return make_problem(ArraySource(X), rng.normal(size=40), x_scale=1.0, fit_intercept=True)


@pytest.mark.parametrize(("shape", "n_samples"), CASES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_truth_is_found_and_sure(shape, n_samples, seed):
    problem, W = draw(shape, n_samples, seed)
    found = found_in(problem)
    best = found.solutions.coefficient() * problem.y_scale[0]
    assert coefficient_error(best, W) < 0.2
    assert found.starts.sure
    # Least squares leaves no more than the truth does.
    assert rss_of(problem, best) <= rss_of(problem, W) * (1 + 1e-6)


@pytest.mark.parametrize("kind", ["mixed", "spectral", "random"])
@pytest.mark.parametrize("n_init", [1, 2, 9])
def test_a_number_of_starts_is_kept_to(kind, n_init):
    problem, _ = draw((5, 4, 3), 60)
    found = found_in(problem, n_init=n_init, kind=kind)
    starts = found.starts
    assert starts.n_starts == n_init
    assert starts.n_rounds == 1
    assert 1 <= starts.n_hits <= starts.n_polished <= n_init
    assert 1 <= len(found.solutions) <= starts.n_polished


def test_one_start_alone_is_never_sure():
    problem, _ = draw((6, 5), 60)
    starts = found_in(problem, n_init=1).starts
    assert starts.n_hits == 1
    assert not starts.sure


def test_a_fit_of_more_parameters_than_samples_is_never_sure():
    problem, _ = draw((6, 5), 9)
    assert not found_in(problem, n_init=16).starts.sure


def test_a_response_of_noise_is_fitted_but_never_sure():
    found = found_in(noise_problem(), n_init=100)
    assert len(found.solutions) > 1
    assert 1 <= found.starts.gap < 10
    assert not found.starts.sure


def test_the_gap_that_makes_sure_falls_as_samples_grow_but_for_one_start_or_several_terms():
    n_spare = (1, 10, 50, 200, 1000)
    several = ROUNDS.several_hits
    needed = [needed_gap(several, 1, n, ROUNDS) for n in n_spare]
    assert needed[:2] == [ROUNDS.gap_of_several] * 2
    # The same lead in (N - dof) log RSS.
    assert_allclose(n_spare[2:] * np.log(needed[2:]), ROUNDS.lead_of_several)
    assert {needed_gap(several, 2, n, ROUNDS) for n in n_spare} == {ROUNDS.gap_of_several}
    assert {needed_gap(1, 1, n, ROUNDS) for n in n_spare} == {ROUNDS.gap_of_one}


@pytest.mark.parametrize("n_samples", [40, 100, 400])
def test_noise_is_far_from_sure_however_many_samples_there_are(n_samples):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_samples, 8, 7, 6)), rng.normal(size=n_samples)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    starts = found_in(problem, n_init=100).starts
    n_spare = n_samples - int(problem.degrees_of_freedom(1)[0])
    assert n_spare * np.log(starts.gap) < ROUNDS.lead_of_several / 3
    assert not starts.sure
    assert 0 < starts.confidence < SURE


def test_the_first_round_has_many_starts_unless_it_can_be_a_sprint():
    sizes = {}
    for n_samples in (40, 60):
        problem, _ = draw((4, 4, 4, 4, 4), n_samples)
        sizes[n_samples] = list(round_sizes(problem, 1, "auto", POLICY.with_budget(100)))
    assert sizes == {40: [POLICY.race.broad_from, 64, 4], 60: [ROUNDS.sprinters, 16, 32, 44]}


def test_solutions_are_distinct_and_the_best_comes_first():
    problem = noise_problem()
    found = found_in(problem, n_init=60)
    near = cosines(found.solutions)[~np.eye(len(found.solutions), dtype=bool)]
    assert near.max() < 0.99
    coefficients = map(found.solutions.coefficient, range(len(found.solutions)))
    rss = [rss_of(problem, W * problem.y_scale[0]) for W in coefficients]
    # The ridge of 1e-5 counts too, but little.
    assert rss[0] < min(rss) * 1.01
    assert found.starts.gap == pytest.approx(min(rss[1:]) / rss[0], rel=1e-3)


@pytest.mark.parametrize("ridge", [1e-5, 0.1, 3.0])
@pytest.mark.parametrize("n_terms", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_gap_counts_the_penalty_so_nothing_is_ahead_of_the_best(ridge, n_terms, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(25, 4, 3, 3)), rng.normal(size=25)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    starts = found_in(problem, n_terms, n_init=40, ridge=ridge).starts
    assert starts.gap >= 1
    assert starts.losses[0] == 1
    assert (np.diff(starts.losses) >= 0).all()


def test_rounds_are_told_as_they_end_and_add_up():
    problem, _ = draw((6, 5), 14, sparsity=0.0)
    events = []
    with watched_by(events.append):
        found = found_in(problem)
    rounds = [event for event in events if event.stage == "starts"]
    assert len(rounds) == found.starts.n_rounds
    assert all(b.done > a.done for a, b in pairwise(rounds))
    assert f"{found.starts.n_starts} starts so far" in rounds[-1].note


def test_the_losses_of_all_polished_solutions_are_kept_relative_to_the_best():
    problem, _ = draw((8, 8, 8), 26, sparsity=0.0)
    starts = found_in(problem, n_init=64).starts
    assert 0 < starts.n_hits < starts.n_polished
    assert len(starts.losses) == starts.n_polished
    assert (np.diff(starts.losses) >= 0).all()
    assert starts.gap in starts.losses


@pytest.mark.parametrize("size", [0.0, 0.5])
def test_a_second_term_is_sure_only_if_it_stands_out_of_the_noise(size):
    rng = np.random.default_rng(1)
    X, noise = rng.normal(size=(80, 7, 6)), 0.1 * rng.normal(size=80)
    # The first term is far above the noise either way.
    y = X[:, 0, 0] + size * X[:, 3, 2] + noise
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    assert found_in(problem, 1).starts.confidence > found_in(noise_problem()).starts.confidence
    assert found_in(problem, 2).starts.sure == (size > 0)


def test_the_same_seed_gives_the_same_search():
    problem, _ = draw((5, 4, 3), 60)
    first, again = found_in(problem), found_in(problem)
    assert first.starts == again.starts
    assert_array_equal(first.solutions.coefficient(), again.solutions.coefficient())


def test_two_terms_are_found():
    problem, W = draw((7, 6), 120, n_terms=2)
    found = found_in(problem, 2)
    assert found.solutions.n_terms == 2
    assert coefficient_error(found.solutions.coefficient() * problem.y_scale[0], W) < 0.2


def folds_of(problem, n_folds=5):
    """Solutions of parts of the samples."""
    X, y = problem.engine.source.read(slice(None)), problem.samples.response[0]
    found = []
    for fold in range(n_folds):
        kept = np.arange(len(y)) % n_folds != fold
        part = make_problem(ArraySource(X[kept]), y[kept], x_scale=1.0, fit_intercept=True)
        found.append(found_in(part).solutions.take(slice(0, 1)))
    return Models.concatenate(found)


def test_known_solutions_that_agree_spare_the_search():
    problem, _ = draw((10, 10), 80)
    expected = found_in(problem)
    known = folds_of(problem)
    events = []
    with watched_by(events.append):
        found = found_in(problem, known=known)
    assert [event.stage for event in events] == ["starts"]
    assert found.starts.sure
    assert (found.starts.n_starts, found.starts.n_hits) == (5, 5)
    assert_allclose(found.solutions.coefficient(), expected.solutions.coefficient(), atol=1e-4)


@pytest.mark.slow
def test_known_solutions_that_differ_are_only_the_first_of_the_starts():
    problem = noise_problem()
    found = found_in(problem, n_init=16, known=folds_of(problem))
    assert not found.starts.sure
    assert found.starts.n_starts == 5 + 16
