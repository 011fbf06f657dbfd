"""Equations made of second moments against those made of samples, and where each serves."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.engines import Engine
from pyfastr.engines.local import LocalEngine
from pyfastr.engines.moments import MOST_ENTRIES, parts_of_tasks
from pyfastr.engines.weighted import BLOCK_BYTES
from pyfastr.solver.models import Models
from pyfastr.solver.problem import make_problem
from pyfastr.sources import ArraySource

N_SAMPLES = 150
SHAPES = [(6, 5), (4, 3, 5), (3, 2, 4, 3)]


def draw(shape, *, weighted=False, n_covariates=0, mean=0.0, n_samples=N_SAMPLES, n_terms=2):
    """An engine of three tasks, and seven models of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, *shape)) + mean
    weights = rng.integers(0, 3, (3, n_samples)).astype(float) if weighted else None
    problem = make_problem(
        ArraySource(X, block_bytes=40 * X[0].nbytes),
        rng.normal(size=(3, n_samples)),
        x_scale=1.0,
        fit_intercept=True,
        sample_weight=weights,
        covariates=rng.normal(size=(n_samples, n_covariates)) if n_covariates else None,
    )
    models = Models.random(7, n_terms, shape, rng)
    scales, task = rng.normal(size=(7, n_terms)), np.array([0, 2, 1, 1, 0, 2, 1])
    return problem.engine, Models(models.components, scales, task)


def assert_same(found, expected, tol=1e-11):
    for name in ("gram", "moment"):
        own, other = getattr(found, name), getattr(expected, name)
        assert_allclose(own, other, rtol=0, atol=tol * np.abs(other).max(), err_msg=name)
    assert_allclose(found.fits.rss, expected.fits.rss, rtol=tol)
    assert_allclose(found.fits.misfit, expected.fits.misfit, rtol=tol)


@pytest.mark.parametrize("n_terms", [1, 3])
@pytest.mark.parametrize("n_covariates", [0, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_moments_tell_what_samples_tell(shape, weighted, n_covariates, n_terms):
    options = {"weighted": weighted, "n_covariates": n_covariates, "n_terms": n_terms}
    engine, models = draw(shape, **options)
    for mode in range(len(shape)):
        found = engine.mode_equations(models, mode, judged=True)
        assert_same(found, Engine.mode_equations(engine, models, mode, judged=True))
    assert_same(engine.joint_equations(models), Engine.joint_equations(engine, models))
    assert_allclose(engine.losses(models).rss, Engine.losses(engine, models).rss)


def test_a_large_mean_of_x_costs_no_more_digits_than_x_has():
    engine, models = draw((6, 5), mean=1e6, weighted=True)
    plain, _ = draw((6, 5), weighted=True)
    assert_same(engine.joint_equations(models), plain.joint_equations(models), 1e-8)


@pytest.mark.parametrize("n_models", [1, 7])
def test_x_is_read_once_for_any_number_of_equations(n_models):
    engine, models = draw((6, 5))
    some = models.take(slice(0, n_models))
    for mode in (0, 1, 0, 1):
        engine.mode_equations(some, mode)
        engine.joint_equations(some)
    assert engine.passes == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_many_samples_are_worked_on_a_few_at_a_time(weighted):
    engine, models = draw((8, 8), n_samples=100_000, mean=3.0, weighted=weighted)
    expected = Engine.mode_equations(engine, models, 1, judged=True)
    passes = engine.passes
    tracemalloc.start()
    found = engine.mode_equations(models, 1, judged=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_same(found, expected, 1e-9)
    assert engine.passes - passes == (9 if weighted else 3)
    assert peak < 4 * BLOCK_BYTES < engine.n_bytes


@pytest.mark.parametrize(
    ("shape", "n_samples"), [((6, 5), 59), ((MOST_ENTRIES // 2 + 1, 2), 2000), ((7,), 100)]
)
def test_few_samples_large_ones_and_vectors_go_without_moments(shape, n_samples):
    engine, models = draw(shape, n_samples=n_samples, n_terms=1)
    engine.mode_equations(models, 0)
    engine.mode_equations(models, 0)
    assert engine.passes == 2


def exact_fit():
    """An engine whose response a model explains but for rounding."""
    rng = np.random.default_rng(0)
    X, models = rng.normal(size=(N_SAMPLES, 6, 5)), Models.random(1, 1, (6, 5), rng)
    y = X.reshape(N_SAMPLES, -1) @ models.coefficient().ravel()
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    return problem, Models(models.components, models.scales / problem.y_scale[0])


def test_residuals_of_a_perfect_fit_are_no_difference_of_large_numbers():
    problem, models = exact_fit()
    engine = problem.engine
    for found in (engine.mode_equations(models, 1, judged=True), engine.joint_equations(models)):
        assert found.fits.rss[0] < 1e-18 * problem.n_samples
    assert engine.losses(models).rss[0] < 1e-25 * problem.n_samples


def test_an_entry_that_does_not_vary_is_no_feature():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_SAMPLES, 4, 3))
    X[:, 2] = 0.1
    y = rng.normal(size=N_SAMPLES)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    found = problem.engine.mode_equations(Models.random(2, 1, (4, 3), rng), 0)
    assert_array_equal(found.gram[:, 2], 0)
    assert_array_equal(found.gram[:, :, 2], 0)
    assert_array_equal(found.moment[:, 2], 0)


def test_samples_without_weight_have_no_say_not_even_in_rounding():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N_SAMPLES, 4, 3)), rng.normal(size=N_SAMPLES)
    weights = np.ones((2, N_SAMPLES))
    weights[0, :50] = weights[1, 50:] = 0
    models = Models.random(6, 2, (4, 3), rng)
    models.task = np.arange(6) % 2
    found = []
    for factor in (1.0, -7.3):
        changed = X.copy()
        changed[:50] *= factor
        problem = make_problem(
            ArraySource(changed),
            np.stack([y, y]),
            x_scale=1.0,
            fit_intercept=True,
            sample_weight=weights,
        )
        found.append(problem.engine.joint_equations(models))
    first, second = found
    assert_array_equal(first.gram[::2], second.gram[::2])
    assert_array_equal(first.moment[::2], second.moment[::2])
    assert not np.array_equal(first.gram[1::2], second.gram[1::2])


def test_an_engine_that_recalls_another_works_as_that_one_would():
    # So many samples and entries are worth moments only to a batch of models.
    engine, models = draw((16, 16), n_samples=1000, n_terms=1)
    one = models.take(slice(0, 1))
    engine.joint_equations(models.take(np.arange(30) % 7))
    after = LocalEngine(engine.source, engine.samples, engine.scale)
    before = after.mode_equations(one, 0).gram
    after.recall(engine.memory())
    assert_array_equal(after.mode_equations(one, 0).gram, engine.mode_equations(one, 0).gram)
    assert not np.array_equal(before, engine.mode_equations(one, 0).gram)


@pytest.mark.parametrize("task", [[0, 0, 1, 1, 1, 2, 2], [0, 2, 1, 1, 0, 2, 1]], ids=str)
def test_equations_of_a_task_are_the_same_bits_with_and_without_other_tasks(task):
    engine, models = draw((6, 5), weighted=True)
    models.task = np.array(task)
    mode, joint = engine.mode_equations(models, 1), engine.joint_equations(models)
    for own in (np.flatnonzero(models.task == t) for t in range(3)):
        alone = models.take(own)
        assert_array_equal(engine.mode_equations(alone, 1).gram, mode.gram[own])
        assert_array_equal(engine.joint_equations(alone).gram, joint.gram[own])


def test_parts_of_many_models_have_one_task_in_a_piece_and_every_model_once():
    task = np.repeat([0, 1, 2], [3, 8, 2])
    for order in (np.arange(13), np.random.default_rng(0).permutation(13)):
        parts = parts_of_tasks(task[order], 4)
        rows, seen = [], []
        for part in parts:
            which = np.arange(13)[part.which]
            assert len(which) <= 4
            for row, piece in part.pieces:
                assert set(task[order][which[piece]]) == {row}
                rows.append(len(which[piece]))
            seen += which.tolist()
        assert sorted(seen) == list(range(13))
        assert rows == [3, 4, 4, 2]
