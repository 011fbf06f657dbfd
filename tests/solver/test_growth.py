"""Another term begins from what the others leave."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.datasets import make_tensor_regression
from pyfastr.solver.growth import with_another_term
from pyfastr.solver.losses import LOGISTIC
from pyfastr.solver.models import Models
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.problem import make_problem
from pyfastr.sources import ArraySource

POLICY = SearchPolicy()


def draw(shape, n_terms=1):
    """Centred samples, and models of a few terms that are far from them."""
    X, y = make_tensor_regression(80, shape, n_terms=2, random_state=0)
    rng = np.random.default_rng(1)
    return (
        X,
        y,
        Models.random(3, n_terms, shape, rng).replace(0, rng.normal(size=(3, n_terms, shape[0]))),
    )


@pytest.mark.parametrize("shape", [(6, 5), (1, 6, 5), (5, 4, 3)])
@pytest.mark.parametrize("n_terms", [1, 2])
def test_models_stay_what_they_were(shape, n_terms):
    X, y, models = draw(shape, n_terms)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    grown = with_another_term(problem, models, POLICY)
    assert grown.n_terms == n_terms + 1
    assert_array_equal(grown.scales[:, -1], 0)
    for which in range(3):
        assert_allclose(grown.coefficient(which), models.coefficient(which), atol=1e-12)
    for component in grown.components:
        assert_allclose(np.linalg.norm(component[:, -1], axis=-1), 1)


@pytest.mark.parametrize("shape", [(6, 5), (1, 6, 5)])
def test_the_new_term_of_matrices_is_the_first_singular_pair_of_the_slope(shape):
    X, y, models = draw(shape)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=True)
    grown = with_another_term(problem, models, POLICY)
    X, target = X - X.mean(axis=0), problem.samples.response[0]
    for which in range(3):
        residual = target - np.tensordot(X, models.coefficient(which), len(shape))
        slope = np.tensordot(residual - residual.mean(), X, 1).reshape(shape[-2:])
        left, _, right = np.linalg.svd(slope)
        pair = [c[which, -1] for c in grown.components[-2:]]
        for own, expected in zip(pair, (left[:, 0], right[0]), strict=True):
            assert_allclose(abs(own @ expected), 1, atol=1e-2)


def test_the_slope_is_that_of_the_loss():
    X, y, models = draw((6, 5))
    labels = np.where(y > 0, 1.0, -1.0)
    problem = make_problem(ArraySource(X), labels, x_scale=1.0, fit_intercept=True, loss=LOGISTIC)
    grown = with_another_term(problem, models, POLICY)
    # A little of the new term lowers the loss more than as little of any other direction.
    rng = np.random.default_rng(2)
    rivals = Models.random(50, 1, (6, 5), rng)

    def lowered(pair):
        step = np.tensordot(X, np.outer(*pair), 2)
        losses = []
        for size in (-1e-4, 1e-4):
            fitted = problem.engine.fitted(models.take(slice(0, 1))) + size * step
            losses.append(problem.losses_of(fitted, np.zeros(1, int))[0])
        return -min(losses)

    best = lowered([c[0, -1] for c in grown.components])
    assert best > max(lowered([c[k, 0] for c in rivals.components]) for k in range(50))


def test_the_new_term_of_tensors_is_not_the_one_large_entry_that_noise_has():
    flat = [np.full(p, p**-0.5) for p in (6, 5, 4)]
    slope = 3 * np.einsum("i,j,k->ijk", *flat)
    slope[5, 4, 3] = -2.0
    y = np.random.default_rng(0).normal(size=20)
    X = np.multiply.outer(y / (y @ y), slope)
    problem = make_problem(ArraySource(X), y, x_scale=1.0, fit_intercept=False)
    nothing = Models([c[None, None] for c in flat], np.zeros((1, 1)))
    grown = with_another_term(problem, nothing, POLICY)
    for component, expected in zip(grown.components, flat, strict=True):
        assert abs(component[0, 1] @ expected) > 0.9
