"""Sweeps against a transcription of the paper's update on a centred copy of X."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.config import MemoryBudget
from pyfastr.engines import Draw
from pyfastr.solver.models import Models, unit
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.problem import make_problem
from pyfastr.solver.sweep import cyclic_sweep, run_sweeps, simultaneous_sweep
from pyfastr.sources import ArraySource

# Every mode but the first shorter than 6 samples; the first longer than 6, shorter than 40.
SHAPES = [(9, 5), (8, 3, 5), (7, 2, 4, 3), (7, 3, 2, 3, 2)]
N_SAMPLES = [6, 40]
CASES = [
    pytest.param(shape, n, n_terms, id=f"{'x'.join(map(str, shape))}-N{n}-R{n_terms}")
    for shape in SHAPES
    for n in N_SAMPLES
    for n_terms in (1, 3)
]
RIDGE, THRESHOLD, N_SWEEPS = 0.05, 0.1, 6


def draw(shape, n_samples, n_terms=1, n_models=1, *, seed=0):
    """X with a mean that is not zero, y, and starts."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, *shape)) + rng.normal(size=shape)
    W = Models.random(1, n_terms, shape, rng).coefficient()
    y = 3 + X.reshape(n_samples, -1) @ W.ravel() + 0.5 * rng.normal(size=n_samples)
    return X, y, Models.random(n_models, n_terms, shape, rng)


def problem_of(X, y, *, block_bytes=1 << 20, **options):
    """The problem in X's own units, with an intercept unless told otherwise."""
    source = ArraySource(X, block_bytes=block_bytes)
    options = {"fit_intercept": True, **options}
    return make_problem(source, y, x_scale=float(np.abs(X).max()), **options)


def in_units(problem, models):
    """The models with scales in the units of X and y."""
    scales = models.scales * problem.y_scale[0] / problem.x_scale
    return Models(models.components, scales)


def swept(problem, models, n_sweeps=N_SWEEPS, one_sweep=cyclic_sweep, **options):
    """The models after some sweeps, in the units of X and y, and their last loss."""
    for _ in range(n_sweeps):
        models, _ = one_sweep(problem, models, Penalty(RIDGE, THRESHOLD), **options)
    return in_units(problem, models), problem.losses(models)


def budget_of_batches(n_bytes):
    """A budget that has so many bytes for a batch of models."""
    budget = MemoryBudget(4 * n_bytes)
    assert budget.batch == n_bytes
    return budget


class Masks(Draw):
    """Given weights in place of those that are drawn; keys are the rows of the models."""

    def __init__(self, masks, keys=None):
        super().__init__(np.arange(len(masks)) if keys is None else keys)
        object.__setattr__(self, "masks", masks)

    def take(self, which):
        return Masks(self.masks, self.keys[which])

    def exponential(self, first, n_samples, dtype=float):
        return self.masks[self.keys, first : first + n_samples].astype(dtype)


def naive_sweeps(naive, X, y, models, n_sweeps=N_SWEEPS):
    """The same of the first model by einsum, on X and y that are centred already."""
    components = [c[0] for c in models.components]
    for _ in range(n_sweeps):
        for mode in range(len(components)):
            u = naive.update(X, y, components, mode, RIDGE, THRESHOLD)
            components[mode], scales = unit(u)
    return Models([c[None] for c in components], scales[None])


def assert_same(found, expected, tolerance=1e-10):
    assert len(found) == len(expected)
    for one, other in zip(found.components, expected.components, strict=True):
        assert_allclose(one, other, rtol=0, atol=tolerance)
    assert_allclose(found.scales, expected.scales, rtol=tolerance)


def one_of(models, k):
    return models.take(slice(k, k + 1))


def centred(X, y, weights=None):
    """Copies without their (weighted) means, times the root weights."""
    root = np.sqrt(np.ones(len(y)) if weights is None else weights)
    X, y = X - np.average(X, 0, weights=weights), y - np.average(y, weights=weights)
    return X * root.reshape(-1, *[1] * (X.ndim - 1)), y * root


@pytest.mark.parametrize(("shape", "n_samples", "n_terms"), CASES)
@pytest.mark.parametrize("block_bytes", [1 << 20, 2000])
def test_cyclic_iterates_are_those_of_the_formula(naive, shape, n_samples, n_terms, block_bytes):
    X, y, start = draw(shape, n_samples, n_terms)
    found, _ = swept(problem_of(X, y, block_bytes=block_bytes), start)
    assert_same(found, naive_sweeps(naive, *centred(X, y), start))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_samples", N_SAMPLES)
def test_without_intercept_nothing_is_centred(naive, shape, n_samples):
    X, y, start = draw(shape, n_samples)
    found, _ = swept(problem_of(X, y, fit_intercept=False), start)
    assert_same(found, naive_sweeps(naive, X, y, start))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_terms", [1, 2])
def test_covariates_are_partialled_out_of_x_and_y(naive, shape, n_terms):
    X, y, start = draw(shape, 40, n_terms)
    Z = np.random.default_rng(1).normal(size=(40, 3)) + X[:, :3].reshape(40, 3, -1)[..., 0]
    weights = np.random.default_rng(2).random(40)
    problem = problem_of(X, y, covariates=Z, sample_weight=weights)
    found, _ = swept(problem, start)
    bare = naive.partial_out(X, y, np.c_[np.ones(40), Z], weights)
    assert_same(found, naive_sweeps(naive, *bare, start))


@pytest.mark.parametrize(("shape", "n_samples", "n_terms"), CASES)
def test_simultaneous_iterates_start_from_the_same_old_components(naive, shape, n_samples, n_terms):
    X, y, start = draw(shape, n_samples, n_terms)
    found, _ = swept(problem_of(X, y), start, one_sweep=simultaneous_sweep)
    X, y = centred(X, y)
    components = [c[0] for c in start.components]
    for _ in range(N_SWEEPS):
        modes = range(len(shape))
        solutions = [naive.update(X, y, components, m, RIDGE, THRESHOLD) for m in modes]
        new, lengths = zip(*map(unit, solutions), strict=True)
        # All modes see the same wrong sign of W, and one of them may turn it round.
        for m in modes[1:]:
            new[m][(new[m] * components[m]).sum(axis=1) < 0] *= -1
        components = new
    assert_same(found, Models([c[None] for c in components], np.mean(lengths, axis=0)[None]))


@pytest.mark.parametrize("one_sweep", [cyclic_sweep, simultaneous_sweep])
@pytest.mark.parametrize(("shape", "n_samples", "n_terms"), CASES)
def test_models_in_lockstep_do_not_know_of_each_other(shape, n_samples, n_terms, one_sweep):
    X, y, starts = draw(shape, n_samples, n_terms, n_models=12)
    problem = problem_of(X, y)
    together, losses = swept(problem, starts, one_sweep=one_sweep)
    for k in range(12):
        alone, loss = swept(problem_of(X, y), one_of(starts, k), one_sweep=one_sweep)
        assert_same(one_of(together, k), alone)
        assert_allclose(losses[k], loss[0], rtol=1e-10)


@pytest.mark.parametrize("one_sweep", [cyclic_sweep, simultaneous_sweep])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_that_is_split_for_memory_gives_the_same(shape, one_sweep):
    X, y, starts = draw(shape, 40, 2, n_models=7)
    expected, losses = swept(problem_of(X, y), starts, one_sweep=one_sweep)
    n_entries = 2 * (max(shape) if one_sweep is cyclic_sweep else sum(shape))
    # One model a part, and three of the longest mode or of all modes.
    for limit in (1, 3 * 4 * n_entries**2 * 8):
        problem = problem_of(X, y)
        problem.engine.budget = budget_of_batches(limit)
        found, losses_too = swept(problem, starts, one_sweep=one_sweep)
        assert_same(found, expected)
        assert_allclose(losses_too, losses, rtol=1e-10)


@pytest.mark.parametrize(("shape", "n_samples", "n_terms"), CASES)
def test_float32_follows_the_formula_as_far_as_its_digits_go(naive, shape, n_samples, n_terms):
    X, y, start = draw(shape, n_samples, n_terms)
    X = X.astype(np.float32)
    expected = naive_sweeps(naive, *centred(X.astype(float), y), start)
    found, _ = swept(problem_of(X, y), start)
    assert_same(found, expected, 1e-4)
    found, _ = swept(problem_of(X, y), start.astype(np.float32))
    assert found.components[0].dtype == np.float32
    assert_same(found, expected, 5e-3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_whole_weights_are_repeated_samples(shape, fit_intercept):
    X, y, start = draw(shape, 30, 2)
    weights = np.random.default_rng(1).integers(0, 4, size=30)
    options = {"fit_intercept": fit_intercept}
    found, loss = swept(problem_of(X, y, sample_weight=weights.astype(float), **options), start)
    X, y = np.repeat(X, weights, axis=0), np.repeat(y, weights)
    expected, loss_too = swept(problem_of(X, y, **options), start)
    assert_same(found, expected)
    assert_allclose(loss, loss_too, rtol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [True, False])
def test_a_row_mask_of_each_model_fits_it_to_those_samples_only(naive, shape, weighted):
    X, y, starts = draw(shape, 30, 2, n_models=3)
    rng = np.random.default_rng(1)
    weights = rng.random(30) if weighted else None
    masks = (rng.random((3, 30)) < 0.7).astype(float)
    problem = problem_of(X, y, sample_weight=weights)
    found, _ = swept(problem, starts, draw_weights=lambda _: Masks(masks))
    for k, mask in enumerate(masks.astype(bool)):
        own = None if weights is None else weights[mask]
        expected = naive_sweeps(naive, *centred(X[mask], y[mask], own), one_of(starts, k))
        assert_same(one_of(found, k), expected)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_loss_is_the_weighted_mean_of_squared_residuals(shape, weighted, fit_intercept):
    X, y, start = draw(shape, 30, 2, n_models=3)
    weights = np.arange(30.0) if weighted else None
    problem = problem_of(X, y, sample_weight=weights, fit_intercept=fit_intercept)
    found, loss = swept(problem, start)
    for k in range(3):
        left = y - X.reshape(30, -1) @ found.coefficient(k).ravel()
        if fit_intercept:
            left -= np.average(left, weights=weights)
        expected = np.average(left**2, weights=weights)
        assert_allclose(loss[k] * problem.y_scale[0] ** 2, expected, rtol=1e-10)


@pytest.mark.parametrize("order", ["cyclic", "simultaneous"])
def test_sweeps_end_one_model_at_a_time_when_its_change_is_small(order):
    X, y, starts = draw((8, 3, 5), 40, 1, n_models=6)
    problem = problem_of(X, y)
    options = {"penalty": Penalty(1.0), "order": order, "tol": 1e-3, "max_iter": 500}
    found, history, converged = run_sweeps(problem, starts, **options)
    history.end(problem.losses(found))
    assert converged.all()
    change, loss = np.array(history.change), np.array(history.loss)
    for k in range(6):
        alone, history, _ = run_sweeps(problem, one_of(starts, k), **options)
        history.end(problem.losses(alone))
        n = len(history.loss)
        assert_same(one_of(found, k), alone)
        assert_allclose(change[:n, k], np.concatenate(history.change), rtol=1e-6, atol=1e-7)
        # Simultaneous updates rise and fall at first, and enlarge what batches round differently.
        assert_allclose(loss[:n, k], np.concatenate(history.loss), rtol=1e-8)
        assert np.isnan(change[n:, k]).all()
        assert change[n - 1, k] <= 1e-3
        assert (change[: n - 1, k] > 1e-3).all()


@pytest.mark.parametrize("order", ["cyclic", "simultaneous"])
@pytest.mark.parametrize("n_samples", N_SAMPLES)
def test_sweeps_are_the_same_whether_or_not_losses_are_kept(order, n_samples):
    X, y, starts = draw((8, 3, 5), n_samples, 2, n_models=4)
    problem = problem_of(X, y)
    options = {"penalty": Penalty(0.1, 0.1), "order": order, "tol": 1e-3, "max_iter": 20}
    kept, history, converged = run_sweeps(problem, starts, **options)
    found, without, again = run_sweeps(problem, starts, **options, keep_losses=False)
    assert_same(found, kept)
    assert_array_equal(again, converged)
    assert_array_equal(without.take(np.arange(4)).change, history.change)


def test_the_loss_of_cyclic_sweeps_without_ridge_never_rises():
    X, y, starts = draw((8, 3, 5), 60, 2, n_models=5)
    problem = problem_of(X, y)
    found, history, _ = run_sweeps(problem, starts, Penalty(0.0), tol=0.0, max_iter=30)
    history.end(problem.losses(found))
    loss = np.array(history.loss)
    assert (np.diff(loss, axis=0) <= 1e-12).all()


def test_running_out_of_sweeps_is_not_convergence():
    X, y, starts = draw((8, 3, 5), 40, 1, n_models=3)
    _, history, converged = run_sweeps(
        problem_of(X, y), starts, Penalty(1e-3), tol=1e-12, max_iter=2
    )
    assert len(history.loss) == 2
    assert_array_equal(converged, False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_sweeps_end_even_if_no_change_is_tolerated(shape, dtype):
    X, y, starts = draw(shape, 60, n_models=3)
    found = run_sweeps(
        problem_of(X.astype(dtype), y), starts, Penalty(0.1, 0.1), tol=0.0, max_iter=500
    )
    assert found[2].all()


@pytest.mark.parametrize("one_sweep", [cyclic_sweep, simultaneous_sweep])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_samples", N_SAMPLES)
def test_a_sweep_tells_how_well_the_models_fitted_that_it_began_with(shape, n_samples, one_sweep):
    X, y, starts = draw(shape, n_samples, 2, n_models=3)
    problem = problem_of(X, y, sample_weight=np.arange(1.0, n_samples + 1))
    _, before = one_sweep(problem, starts, Penalty(RIDGE))
    assert_allclose(before.loss, problem.losses(starts), rtol=1e-10)
    fitted = problem.engine.fitted(starts)
    assert_allclose(before.loss, problem.losses_of(fitted, starts.task), rtol=1e-10)
    assert_allclose(before.misfit, problem.misfits_of(fitted, starts.task), rtol=1e-10)
