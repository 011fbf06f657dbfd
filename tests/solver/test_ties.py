"""Modes in which samples are symmetric share a component, and end at fixed points of the update."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from pyfastr.solver.grid import solve_grid
from pyfastr.solver.growth import with_another_term
from pyfastr.solver.losses import LOSSES
from pyfastr.solver.models import Models, relative_change, settle_signs, unit
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.polish import Step, polish
from pyfastr.solver.problem import make_problem
from pyfastr.solver.proposals import propose, sparse_starts
from pyfastr.solver.settings import Settings
from pyfastr.solver.solve import solve
from pyfastr.solver.streams import Streams
from pyfastr.solver.support import count_free
from pyfastr.solver.sweep import cyclic_sweep, run_sweeps, simultaneous_sweep, update_mode
from pyfastr.solver.ties import UNTIED, Ties
from pyfastr.sources import ArraySource

POLICY = SearchPolicy()
# Shapes of a sample, and the modes in which it is symmetric.
CASES = [((6, 6), (0, 1)), ((5, 5, 3), (0, 1)), ((3, 5, 5), (1, 2)), ((5, 3, 5), (0, 2))]


def symmetric(shape, pair, n_samples, seed=0):
    X = np.random.default_rng(seed).standard_normal((n_samples, *shape))
    return (X + np.swapaxes(X, pair[0] + 1, pair[1] + 1)) / 2


def draw(shape, pair, *, n_samples=80, n_terms=1, noise=0.0, seed=0, **options):
    """A problem that has tied solutions, and its coefficient."""
    rng = np.random.default_rng(seed)
    X = symmetric(shape, pair, n_samples, seed)
    truth = tied_models(1, n_terms, shape, pair, rng)
    W = truth.coefficient()
    y = np.tensordot(X, W, axes=len(shape))
    y = y + noise * y.std() * rng.standard_normal(n_samples) + 1
    options = {"fit_intercept": True, "ties": Ties(pair), **options}
    return X, make_problem(ArraySource(X, block_bytes=8000), y, x_scale=1.0, **options), W


def tied_models(n_models, n_terms, shape, pair, rng):
    return Ties(pair).nearest(Models.random(n_models, n_terms, shape, rng))


def assert_tied(models, pair):
    first, second = (models.components[m] for m in pair)
    signs = Ties(pair).signs(models)[..., None]
    assert_array_equal(first, signs * second)


@pytest.mark.parametrize(("shape", "pair"), CASES)
@pytest.mark.parametrize("order", ["cyclic", "simultaneous"])
@pytest.mark.parametrize(("ridge", "threshold"), [(1e-3, 0.0), (0.1, 0.2)])
def test_sweeps_end_at_fixed_points_of_the_papers_update(shape, pair, order, ridge, threshold):
    _, problem, _ = draw(shape, pair, noise=0.3)
    starts = tied_models(4, 1, shape, pair, np.random.default_rng(1))
    penalty = Penalty(ridge, threshold)
    models, _, converged = run_sweeps(problem, starts, penalty, order=order, max_iter=300, tol=1e-7)
    assert converged.any()
    models = models.take(converged)
    assert_tied(models, pair)
    for mode in range(len(shape)):
        # Without ties: the solution itself.
        untied = replace(problem, ties=UNTIED)
        new, scales = unit(update_mode(untied, models, mode, penalty))
        assert_allclose(new, models.components[mode], atol=1e-5)
        assert_allclose(scales, models.scales, rtol=0.2 if ridge > 0.01 else 1e-2)
        assert_array_equal(new == 0, models.components[mode] == 0)


@pytest.mark.parametrize(("shape", "pair"), CASES)
@pytest.mark.parametrize("n_terms", [1, 2])
@pytest.mark.parametrize("n_samples", [200, 7])
def test_every_step_keeps_the_ties(shape, pair, n_terms, n_samples):
    _, problem, _ = draw(shape, pair, n_samples=n_samples, n_terms=n_terms, noise=0.3)
    streams = Streams(np.random.default_rng(0), 1)
    starts = propose(problem, 8, n_terms, "mixed", streams, POLICY)
    assert_tied(starts, pair)
    assert_tied(sparse_starts(problem, POLICY), pair)
    swept, _ = cyclic_sweep(problem, starts, Penalty(0.01, 0.1))
    assert_tied(swept, pair)
    assert_tied(simultaneous_sweep(problem, swept, Penalty(0.01))[0], pair)
    polished = polish(problem, swept, [Step(0.01, 0.01, 0.1)] * 5, POLICY).models
    assert_tied(polished, pair)
    assert_tied(with_another_term(problem, polished, POLICY), pair)
    assert_tied(replace(polished, components=settle_signs(polished.components)), pair)


def test_starts_of_both_signs_are_proposed():
    _, problem, _ = draw((6, 6), (0, 1))
    for kind in ("random", "spectral"):
        starts = propose(problem, 64, 1, kind, Streams(np.random.default_rng(0), 1), POLICY)
        signs = problem.ties.signs(starts)
        assert 8 < np.count_nonzero(signs > 0) < 56


@pytest.mark.parametrize("sign", [1, -1])
def test_a_new_term_is_the_leading_eigenvector_by_absolute_value(sign):
    w = unit(np.arange(1.0, 7))[0]
    X = symmetric((6, 6), (0, 1), 4000)
    y = np.tensordot(X, sign * np.outer(w, w), axes=2)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=False, ties=Ties((0, 1)))
    nothing = Models([np.zeros((1, 1, 6))] * 2, np.zeros((1, 1)))
    grown = with_another_term(problem, nothing, POLICY)
    values, vectors = np.linalg.eigh(np.tensordot(y, X, axes=1))
    leading = np.argmax(np.abs(values))
    assert np.sign(values[leading]) == sign
    new = [c[0, 1] for c in grown.components]
    assert_allclose(np.outer(*new), sign * np.outer(*[vectors[:, leading]] * 2), atol=1e-2)


@pytest.mark.parametrize("sign", [1, -1])
def test_new_terms_of_matrices_come_in_both_signs(sign):
    X = symmetric((6, 6), (0, 1), 4000)
    W = np.diag([3.0, 0, 0, 0, 0, -2.0])
    y = np.tensordot(X, sign * W, axes=2)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=False, ties=Ties((0, 1)))
    nothing = Models([np.zeros((3, 1, 6))] * 2, np.zeros((3, 1)), np.zeros(3, int))
    grown = with_another_term(problem, nothing, POLICY)
    assert len(grown) == 6
    for which, (entry, own) in enumerate([(0, sign), (5, -sign)] * 3):
        new = np.outer(*(c[which, 1] for c in grown.components))
        assert_allclose(new[entry, entry], own, atol=0.02)


@pytest.mark.parametrize(("shape", "pair"), CASES)
@pytest.mark.parametrize("n_terms", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_generic_optimiser_finds_nothing_lower_than_the_polish(shape, pair, n_terms, weighted):
    weights = np.random.default_rng(1).random(60) if weighted else None
    options = {"n_samples": 60, "n_terms": n_terms, "noise": 0.5, "sample_weight": weights}
    X, problem, _ = draw(shape, pair, **options)
    starts = tied_models(8, n_terms, shape, pair, np.random.default_rng(2))
    found = polish(problem, starts, [Step(0.0)] * 300, POLICY)
    z, root = (
        problem.samples.response[0],
        np.sqrt(1.0 if weights is None else weights / weights.mean()),
    )
    nuisance = np.linalg.qr((root * np.ones(60))[:, None])[0]

    def ends(models):
        """What L-BFGS makes of one model: tied components of the signs that it has."""
        own, signs = problem.ties.own(len(shape)), problem.ties.signs(models)[0]
        cuts = np.cumsum([n_terms * shape[m] for m in own])[:-1]

        def rss(theta):
            parts = dict(zip(own, np.split(theta, cuts), strict=True))
            parts[pair[1]] = parts[pair[0]]
            factors = [parts[m].reshape(n_terms, -1) for m in range(len(shape))]
            letters = "ijk"[: len(shape)]
            terms = ",".join(f"r{letter}" for letter in letters)
            fitted = np.einsum(f"n{letters},r,{terms}->n", X, signs, *factors, optimize=True)
            left = root * (z - fitted)
            return np.sum((left - nuisance @ (nuisance.T @ left)) ** 2)

        begun = np.concatenate([models.balanced()[m].ravel() for m in own])
        return minimize(rss, begun, method="L-BFGS-B").fun

    assert_allclose(problem.losses(found.models) * 60, found.rss, rtol=1e-6)
    best = int(np.argmin(found.rss))
    assert found.rss[best] <= ends(found.models.take(slice(best, best + 1))) * (1 + 1e-6)
    assert found.rss[best] <= min(ends(starts.take(slice(k, k + 1))) for k in (0, 1)) * (1 + 1e-6)


@pytest.mark.parametrize(("shape", "pair"), CASES)
def test_without_noise_joint_steps_end_at_the_truth(shape, pair):
    _, problem, W = draw(shape, pair, n_samples=100)
    near = tied_models(1, 1, shape, pair, np.random.default_rng(0))
    ended = polish(problem, near, [Step(0.0)] * 30, POLICY)
    assert ended.rss[0] < 1e-12
    assert_allclose(ended.models.coefficient() * problem.y_scale[0], W, atol=1e-6)


@pytest.mark.parametrize(("shape", "pair"), CASES)
def test_tied_entries_are_counted_once(shape, pair):
    _, problem, _ = draw(shape, pair)
    p, n_modes = shape[pair[0]], len(shape)
    others = [size for m, size in enumerate(shape) if m not in pair]
    expected = p + sum(others) - (n_modes - 1) + 1
    assert_array_equal(problem.degrees_of_freedom(2), 2 * expected + 1)
    models = tied_models(3, 2, shape, pair, np.random.default_rng(0))
    masks = [np.ones_like(c, bool) for c in models.components]
    assert_array_equal(count_free(masks, problem), 2 * expected)
    for m in pair:
        masks[m][:, :, 0] = False
    assert_array_equal(count_free(masks, problem), 2 * (expected - 1))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n_samples", [14, 100])
def test_a_coefficient_of_either_sign_is_found(sign, n_samples):
    w = np.random.default_rng(4).standard_normal(8)
    X = symmetric((8, 8), (0, 1), n_samples)
    y = np.tensordot(X, sign * np.outer(w, w), axes=2)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True, ties=Ties((0, 1)))
    fit = solve(problem, Settings(0.0, 1e-9), np.random.default_rng(0))
    assert_allclose(fit.models.coefficient() * problem.y_scale[0], sign * np.outer(w, w), atol=1e-4)
    assert fit.starts[0].sure


def test_one_term_without_ties_is_two_of_opposite_sign_with_them():
    rng = np.random.default_rng(0)
    u, v = rng.standard_normal((2, 6))
    X = symmetric((6, 6), (0, 1), 100)
    W = (np.outer(u, v) + np.outer(v, u)) / 2
    y = np.tensordot(X, W, axes=2)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True, ties=Ties((0, 1)))
    fit = solve(problem, Settings(0.0, 1e-9, n_terms=2), rng)
    assert_allclose(fit.models.coefficient() * problem.y_scale[0], W, atol=1e-4)
    assert sorted(problem.ties.signs(fit.models)[0]) == [-1, 1]


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_other_losses_keep_ties_and_fit_what_they_can(loss):
    rng = np.random.default_rng(0)
    w = unit(rng.standard_normal(5))[0]
    X = symmetric((5, 5), (0, 1), 600)
    predictor = 2 * np.tensordot(X, -np.outer(w, w), axes=2)
    if loss == "logistic":
        y = np.where(rng.random(600) < 1 / (1 + np.exp(-predictor)), 1.0, -1.0)
    else:
        y = rng.poisson(np.exp(predictor)).astype(float)
    problem = make_problem(
        ArraySource(X), y, x_scale=1.0, fit_intercept=True, loss=LOSSES[loss], ties=Ties((0, 1))
    )
    fit = solve(problem, Settings(0.0, 1e-4, tol=1e-6), rng)
    assert fit.converged[0]
    assert_tied(fit.models, (0, 1))
    assert_array_equal(problem.ties.signs(fit.models), [[-1]])
    assert abs(fit.models.components[0][0, 0] @ w) > 0.9


def test_steps_that_go_too_far_are_mended_where_noise_is_all():
    """Without samples enough the middle of old and new would swing farther and farther."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 12, 12)) * np.geomspace(1, 0.05, 12)
    X = A @ A.swapaxes(1, 2)
    problem = make_problem(
        ArraySource(X), rng.standard_normal(60), x_scale=1.0, fit_intercept=True, ties=Ties((0, 1))
    )
    settings = Settings(0.0, 1e-5, n_init=16, max_iter=500)
    fits = solve_grid(problem, [1e-5, 1e-3, 0.1], [0.0], settings, rng)
    assert fits.converged.all()
    losses = problem.losses(fits.models)
    # Least squares of the same penalty from the same starts is no better by more than the ridge.
    best = polish(problem, fits.models, [Step(np.array([1e-5, 1e-3, 0.1]))] * 200, POLICY)
    assert (losses <= best.rss / 60 + 0.05).all()


def test_supports_are_tied_in_refits_and_by_evidence():
    rng = np.random.default_rng(1)
    w = np.zeros(12)
    w[[1, 4, 7]] = 1, -2, 1.5
    X = symmetric((12, 12), (0, 1), 30)
    y = np.tensordot(X, -np.outer(w, w), axes=2) + 0.01 * rng.standard_normal(30)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True, ties=Ties((0, 1)))
    for refit, threshold in ((True, 0.2), ("evidence", 0.0)):
        fit = solve(problem, Settings(threshold, 1e-5, refit_support=refit), rng)
        assert_tied(fit.models, (0, 1))
        assert_array_equal(fit.models.components[0][0, 0] != 0, w != 0)


def test_untied_modes_are_left_alone():
    models = Models.random(3, 2, (4, 4, 3), np.random.default_rng(0))
    solution = np.random.default_rng(1).standard_normal((3, 2, 4))
    assert UNTIED.nearest(models) is models
    new = UNTIED.replace(models, 0, solution)
    assert_array_equal(new.components[0], unit(solution)[0])
    assert new.components[1] is models.components[1]
    # A mode that no tie concerns is taken over as it is.
    free = np.random.default_rng(2).standard_normal((3, 2, 3))
    tied = Ties((0, 1)).replace(models, 2, free)
    assert_array_equal(tied.components[2], unit(free)[0])
    assert_allclose(relative_change(tied, UNTIED.replace(models, 2, free)), 0)


def test_a_term_whose_solution_is_zero_vanishes():
    models = tied_models(2, 1, (4, 4), (0, 1), np.random.default_rng(0))
    new = Ties((0, 1)).replace(models, 0, np.zeros((2, 1, 4)))
    assert not new.scales.any()
    assert not any(c.any() for c in new.components)
