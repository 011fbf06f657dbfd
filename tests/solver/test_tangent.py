"""What sweeps are foreseen to do: it shortens them, and changes nothing about their end."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.datasets import make_tensor_regression
from pyfastr.solver.losses import LOGISTIC, SQUARED
from pyfastr.solver.models import Models, relative_change
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.problem import make_problem
from pyfastr.solver.rounds import search
from pyfastr.solver.sweep import run_sweeps
from pyfastr.solver.tangent import foresee
from pyfastr.sources import ArraySource

POLICY = SearchPolicy()
SHAPES = [(12, 10), (8, 7, 6), (6, 5, 4, 3)]


def solved(shape, *, n_samples=200, n_terms=1, noise=0.01, n_tasks=1, loss=SQUARED):
    """A problem whose tasks leave out a sample in so many, and the solution of each."""
    X, y = make_tensor_regression(n_samples, shape, n_terms=n_terms, noise=noise, random_state=0)
    left_out = np.arange(n_samples) % n_tasks
    weights = np.stack([left_out != t for t in range(n_tasks)]).astype(float)
    problem = make_problem(
        ArraySource(X),
        np.sign(y) if loss is LOGISTIC else y,
        x_scale=1.0,
        fit_intercept=True,
        sample_weight=weights if n_tasks > 1 else None,
        loss=loss,
    )
    rng = np.random.default_rng(0)
    found = search(problem, n_terms, kind="mixed", n_init=8, ridge=1e-5, rng=rng, policy=POLICY)
    return problem, Models.concatenate([f.solutions.take(slice(0, 1)) for f in found])


def ends(problem, starts, penalty):
    return run_sweeps(problem, starts, penalty, tol=1e-10)[0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_tasks", [1, 3])
def test_the_end_of_sweeps_is_foreseen_to_second_order(shape, n_tasks):
    problem, starts = solved(shape, n_tasks=n_tasks)
    for size in (1e-2, 1e-3):
        penalty = Penalty(size, size)
        end = ends(problem, starts, penalty)
        foreseen = foresee(problem, starts, penalty, POLICY).move(starts, penalty)
        before = relative_change(starts, end)
        assert np.all(relative_change(foreseen, end) < 30 * before**2 + 1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_fit_of_a_support_is_foreseen(shape):
    problem, starts = solved(shape)
    penalty = Penalty(1e-5, 0.03)
    foresight = foresee(problem, starts, penalty, POLICY)
    sparse = ends(problem, starts, penalty)
    masks = [c != 0 for c in sparse.components]
    assert not all(m.all() for m in masks)
    support = Penalty(1e-5, 0.0, masks)
    foreseen = foresight.move(sparse, support)
    end = ends(problem, sparse, support)
    assert relative_change(foreseen, end) < 0.1 * relative_change(sparse, end)
    for component, mask in zip(foreseen.components, masks, strict=True):
        assert_array_equal(component != 0, mask)


def test_starts_that_are_the_same_share_a_pass():
    problem, starts = solved((12, 10), n_tasks=3)
    batch = starts.take(np.repeat(np.arange(3), 4))
    penalty = Penalty(np.tile([1e-5, 1e-2], 6), np.tile([0.0, 0.0, 0.01, 0.1], 3))
    before = problem.engine.passes
    foresight = foresee(problem, batch, penalty, POLICY)
    assert problem.engine.passes == before + 1
    # Next to no penalty leaves a solution where it is.
    assert_array_equal(foresight.rows, [1, 2, 3, 5, 6, 7, 9, 10, 11])
    moved = foresight.move(batch, penalty)
    for k in range(12):
        own = penalty.take(np.array([k]))
        start = batch.take(np.array([k]))
        alone = foresee(problem, start, own, POLICY).move(start, own)
        assert_allclose(moved.coefficient(k), alone.coefficient(), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "penalty"),
    [
        ({}, Penalty(1e-5, 0.0)),
        ({}, Penalty(1e-5, 0.5)),
        ({}, Penalty(10.0, 0.01)),
        ({"noise": 30.0}, Penalty(1e-5, 0.01)),
        ({"n_samples": 40}, Penalty(1e-5, 0.01)),
        ({"n_terms": 2}, Penalty(1e-5, 0.01)),
        ({"loss": LOGISTIC}, Penalty(1e-5, 0.01)),
    ],
    ids=["no penalty", "threshold", "ridge", "noise", "few samples", "terms", "classes"],
)
def test_what_cannot_be_foreseen_is_left_alone(options, penalty):
    problem, starts = solved((12, 10), **options)
    foresight = foresee(problem, starts, penalty, POLICY)
    assert not len(foresight.rows)
    assert foresight.move(starts, penalty) is starts


def test_too_many_tasks_for_the_memory_are_left_alone():
    problem, starts = solved((12, 10), n_tasks=3)
    penalty = Penalty(1e-5, 0.01)
    room = replace(POLICY.foresight, products_bytes=8 * 3 * 22**2 - 1)
    policy = replace(POLICY, foresight=room)
    assert foresee(problem, starts, penalty, policy).move(starts, penalty) is starts
    two = starts.take(slice(0, 2))
    assert len(foresee(problem, two, penalty, policy).rows) == 2
