"""Products of a block in other libraries against NumPy's, by every route."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pyfastr.engines.contraction import (
    contract_group,
    contract_others,
    contracted_others,
    gather,
    khatri_rao,
    outside,
    project_own,
    route_to,
    routes_to_all,
)
from pyfastr.sources.namespaces import to_host

SHAPES = [(6, 5), (4, 3, 5), (7, 1, 3), (3, 2, 4, 3), (2, 3, 2, 3, 2)]
# Few rows, several, and so many that all modes but one are contracted at once.
N_ROWS = [1, 5, 130]


def draw(shape, n_rows, n_samples=11):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_samples, *shape)), [rng.normal(size=(n_rows, p)) for p in shape]


def follow(route, block, factors):
    """Projections by one route, as any library makes them."""
    others = outside(route.group, range(len(factors)))
    vectors = khatri_rao([factors[m] for m in route.group])
    if len(others) == 1:
        return {others[0]: contracted_others(block, vectors, others[0])}
    partial = contract_group(block, vectors, route.group)
    inner = [factors[m] for m in others]
    return {m: project_own(partial, inner, others.index(m)) for m in route.modes}


def assert_same(library, found, expected):
    assert library.has(found)
    assert found.shape == expected.shape
    assert_allclose(to_host(found), expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_rows", N_ROWS)
def test_every_route_gives_numpys_projections_on_the_device(library, shape, n_rows):
    X, factors = draw(shape, n_rows)
    block, vectors = library.array(X), [library.array(f) for f in factors]
    routes = [route_to(shape, mode, n_rows) for mode in range(len(shape))]
    for route in [*routes, *routes_to_all(len(shape))]:
        expected = follow(route, X, factors)
        for mode, found in follow(route, block, vectors).items():
            assert_same(library, found, expected[mode])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_rows", N_ROWS)
def test_one_mode_alone_is_contracted_as_in_numpy(library, shape, n_rows):
    X, factors = draw(shape, n_rows)
    for mode, factor in enumerate(factors):
        group = range(mode, mode + 1)
        expected = contract_group(X, factor, group)
        assert_allclose(
            expected, np.moveaxis(np.tensordot(X, factor, axes=(mode + 1, 1)), -1, 0), atol=1e-12
        )
        assert_same(
            library, contract_group(library.array(X), library.array(factor), group), expected
        )


@pytest.mark.parametrize("n_rows", N_ROWS)
def test_what_is_written_is_what_is_returned(n_rows):
    X, factors = draw((6, 5), n_rows)
    for mode in range(2):
        out = np.empty((n_rows, len(X), X.shape[mode + 1]))
        contract_others(X, factors[1 - mode], mode, out)
        np.testing.assert_array_equal(contracted_others(X, factors[1 - mode], mode), out)


def test_slices_are_gathered_on_the_device(library):
    X, _ = draw((4, 3, 5), 1)
    support = [np.array([0, 3]), np.arange(3), np.array([2])]
    for mode in range(3):
        used = [np.arange(p) if m == mode else support[m] for m, p in enumerate(X.shape[1:])]
        expected = X[np.ix_(np.arange(len(X)), *used)]
        assert_same(library, gather(library.array(X), support, mode), expected)
        np.testing.assert_array_equal(gather(X, support, mode), expected)
