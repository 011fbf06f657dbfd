"""What is said of models without building their coefficients, against the coefficients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.solver.models import (
    Models,
    cosines,
    inner_products,
    pairwise_inner_products,
    relative_change,
    unit,
)

SHAPES = [(7,), (6, 5), (4, 3, 5), (3, 2, 4, 3), (2, 3, 2, 3, 2)]
FIELDS = [(shape, n_terms) for shape in SHAPES for n_terms in (1, 3)]


def draw(shape, n_terms, seed=0, n_models=4):
    rng = np.random.default_rng(seed)
    models = Models.random(n_models, n_terms, shape, rng)
    return Models(models.components, rng.normal(size=(n_models, n_terms)))


def coefficients(models):
    """All coefficients as rows."""
    return np.stack([models.coefficient(k).ravel() for k in range(len(models))])


@pytest.mark.parametrize(("shape", "n_terms"), FIELDS)
def test_a_coefficient_is_the_sum_of_its_terms_outer_products(naive, shape, n_terms):
    models = draw(shape, n_terms)
    for k in range(len(models)):
        expected = naive.outer_sum([c[k] for c in models.components], models.scales[k])
        assert models.coefficient(k).shape == shape == models.shape
        assert_allclose(models.coefficient(k), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("shape", "n_terms"), FIELDS)
def test_inner_products_are_those_of_the_coefficients(shape, n_terms):
    first, second = draw(shape, n_terms), draw(shape, n_terms, seed=1)
    W, V = coefficients(first), coefficients(second)
    assert_allclose(inner_products(first, second), (W * V).sum(axis=1), rtol=1e-10, atol=1e-13)
    assert_allclose(pairwise_inner_products(first), W @ W.T, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("shape", "n_terms"), FIELDS)
@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_cosines_are_those_of_the_coefficients_at_any_scale(shape, n_terms, size):
    models = draw(shape, n_terms)
    W = coefficients(models)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    scaled = Models(models.components, models.scales * size)
    assert_allclose(cosines(scaled), W @ W.T, atol=1e-12)


def test_a_zero_coefficient_has_no_direction():
    models = draw((4, 3), 1)
    models.scales[1] = 0
    found = cosines(models)
    assert_array_equal(found[1], 0)
    assert_allclose(np.diag(found)[[0, 2, 3]], 1)


@pytest.mark.parametrize(("shape", "n_terms"), FIELDS)
@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("step", [1e-5, 0.1, 10.0])
def test_the_change_is_that_of_the_coefficients_at_any_scale(shape, n_terms, size, step):
    old = draw(shape, n_terms)
    moved = [
        unit(c + step * d)[0]
        for c, d in zip(old.components, draw(shape, n_terms, 1).components, strict=True)
    ]
    new = Models(moved, old.scales * (1 + step))
    V, W = coefficients(old), coefficients(new)
    expected = np.linalg.norm(W - V, axis=1) / np.linalg.norm(V, axis=1)
    found = relative_change(
        Models(new.components, new.scales * size), Models(old.components, old.scales * size)
    )
    # Differences of squares: eight digits of the change's square root are lost.
    assert_allclose(found, expected, rtol=1e-3, atol=1e-7)
    if step > 0.01:
        assert_allclose(found, expected, rtol=1e-9)


def test_changes_from_and_to_zero():
    some, none = draw((4, 3), 2), draw((4, 3), 2)
    none.scales[:] = 0
    assert_array_equal(relative_change(some, none), np.inf)
    assert_array_equal(relative_change(none, some), 1)
    assert_array_equal(relative_change(none, none), 0)
    assert_allclose(relative_change(some, some), 0, atol=1e-7)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_unit_vectors_at_any_scale(size):
    vectors = np.random.default_rng(0).normal(size=(3, 2, 5))
    lengths = np.linalg.norm(vectors, axis=-1)
    directions, found = unit(vectors * size)
    assert_allclose(directions, vectors / lengths[..., None], rtol=1e-12)
    assert_allclose(found, lengths * size, rtol=1e-12)


def test_the_zero_vector_has_length_zero_and_stays():
    directions, lengths = unit(np.zeros((2, 3)))
    assert_array_equal(directions, 0)
    assert_array_equal(lengths, 0)


@pytest.mark.parametrize(("shape", "n_terms"), FIELDS)
def test_random_models_are_of_unit_length_and_drawn_uniformly(shape, n_terms):
    models = Models.random(500, n_terms, shape, np.random.default_rng(0))
    assert_array_equal(models.scales, 1)
    for component in models.components:
        assert_allclose(np.linalg.norm(component, axis=-1), 1)
        # Uniform on the sphere: mean 0 and covariance I / p, to five standard errors.
        rows = component.reshape(-1, component.shape[-1])
        bound = 5 / np.sqrt(len(rows))
        assert np.abs(rows.mean(axis=0)).max() < bound
        assert (
            np.abs(rows.T @ rows / len(rows) - np.eye(rows.shape[1]) / rows.shape[1]).max() < bound
        )


def test_joining_and_taking_models_keeps_each():
    first, second = draw((4, 3), 2), draw((4, 3), 2, seed=1)
    joined = Models.concatenate([first, second])
    assert len(joined) == 8
    assert joined.n_terms == 2
    assert_array_equal(coefficients(joined), np.r_[coefficients(first), coefficients(second)])
    assert_array_equal(coefficients(joined.take(np.array([5, 0]))), coefficients(joined)[[5, 0]])


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_replaced_mode_brings_its_length_as_the_scale(naive, mode):
    models = draw((4, 3, 5), 2)
    solution = np.random.default_rng(2).normal(size=models.components[mode].shape)
    found = models.replace(mode, solution)
    for k in range(len(models)):
        parts = [c[k] for c in models.components]
        parts[mode] = solution[k]
        assert_allclose(found.coefficient(k), naive.outer_sum(parts, np.ones(2)), atol=1e-13)
    assert_allclose(np.linalg.norm(found.components[mode], axis=-1), 1)
