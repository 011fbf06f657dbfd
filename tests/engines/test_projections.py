"""Projections of X by every route against one einsum, and how often X is read for them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.config import MemoryBudget
from pyfastr.engines import LocalEngine
from pyfastr.engines.contraction import khatri_rao, project_own
from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.problem import make_problem
from pyfastr.solver.sweep import cyclic_sweep, simultaneous_sweep
from pyfastr.sources import ArraySource

SHAPES = [(6, 5), (4, 3, 5), (3, 2, 4, 3), (2, 3, 2, 3, 2)]
BATCHES = [(1, 1), (1, 3), (20, 1), (7, 2)]
# One block, about one sample a block, and something between.
BLOCK_BYTES = [1 << 20, 1, 1500]


def draw(shape, n_models=1, n_terms=1, *, n_samples=11, seed=0):
    """X and components of that many models and terms."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, *shape))
    return X, [rng.normal(size=(n_models, n_terms, p)) for p in shape]


def side_by_side(naive, X, components):
    """Projections onto all modes, those of a model's terms side by side: ``(K, N, q)``."""
    parts = []
    for mode in range(len(components)):
        P = naive.project(X, components, mode)
        parts.append(P.transpose(0, 2, 1, 3).reshape(len(P), len(X), -1))
    return np.concatenate(parts, axis=2)


class CountingSource(ArraySource):
    """A source that knows which samples were read."""

    def __init__(self, X, *, block_bytes):
        super().__init__(X, block_bytes=block_bytes)
        self.reads = []

    def read(self, rows):
        # Several threads read; appending to a list loses none of them.
        self.reads.append(rows.stop - rows.start)
        return super().read(rows)

    @property
    def passes(self):
        return sum(self.reads) / len(self)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("block_bytes", BLOCK_BYTES)
def test_a_projection_is_the_contraction_of_all_other_modes(naive, shape, batch, block_bytes):
    X, components = draw(shape, *batch)
    source = ArraySource(X, block_bytes=block_bytes)
    for mode in range(len(shape)):
        expected = naive.project(X, components, mode)
        # A fresh engine, so that nothing is left over from another mode.
        found = LocalEngine(source).projections(components, mode)
        assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("block_bytes", BLOCK_BYTES)
def test_projections_onto_all_modes_are_those_onto_each(naive, shape, batch, block_bytes):
    X, components = draw(shape, *batch)
    found = LocalEngine(ArraySource(X, block_bytes=block_bytes)).project_all(components)
    expected = side_by_side(naive, X, components)
    assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("order", ["cyclic", "any"])
@pytest.mark.parametrize("in_place", [False, True])
def test_projections_follow_components_that_change_between_them(
    naive, shape, batch, order, in_place
):
    X, components = draw(shape, *batch)
    rng = np.random.default_rng(1)
    engine = LocalEngine(ArraySource(X, block_bytes=1500))
    M = len(shape)
    modes = list(range(M)) * 3 if order == "cyclic" else rng.integers(M, size=5 * M)
    for mode in modes:
        expected = naive.project(X, components, mode)
        found = engine.projections(components, mode)
        assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
        new = rng.normal(size=components[mode].shape)
        if in_place:
            components[mode][:] = new
        else:
            components[mode] = new


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("batches", [[(1, 1), (1, 1)], [(1, 2), (2, 1)], [(20, 1), (7, 2)]])
def test_models_are_not_served_what_was_kept_of_others(naive, shape, batches):
    X, one = draw(shape, *batches[0])
    _, other = draw(shape, *batches[1], seed=1)
    engine = LocalEngine(ArraySource(X, block_bytes=1500))
    for mode in [*range(len(shape))] * 2:
        for components in (one, other, one):
            expected = naive.project(X, components, mode)
            found = engine.projections(components, mode)
            assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_no_room_to_keep_anything_changes_no_projection(naive, shape, batch):
    X, components = draw(shape, *batch)
    engine = LocalEngine(ArraySource(X, block_bytes=1500))
    engine.budget = MemoryBudget(0)
    for mode in [*range(len(shape))] * 2:
        expected = naive.project(X, components, mode)
        found = engine.projections(components, mode)
        assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
        components[mode] = components[mode][..., ::-1]


def test_a_batch_is_cut_into_parts_of_about_one_size():
    engine = LocalEngine(ArraySource(np.ones((3, 2, 2))))
    engine.budget = MemoryBudget(360)
    assert engine.budget.batch == 90
    assert engine.batches(10, 10.0) == [slice(0, 5), slice(5, 10)]
    assert engine.batches(9, 10.0) == [slice(0, 9)]
    # A model that needs more than there is goes alone.
    assert engine.batches(2, 1000.0) == [slice(0, 1), slice(1, 2)]


# More models and samples than one product takes, and samples larger than a core's cache.
@pytest.mark.parametrize(
    ("shape", "n_models", "n_samples"), [((110, 6, 7), 140, 50), ((2, 600, 500), 2, 2)]
)
def test_products_that_are_cut_for_the_cache_change_no_projection(
    naive, shape, n_models, n_samples
):
    X, components = draw(shape, n_models, n_samples=n_samples)
    engine = LocalEngine(ArraySource(X))
    every = engine.project_all(components)
    expected = side_by_side(naive, X, components)
    assert_allclose(every, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    for mode in range(len(shape)):
        expected = naive.project(X, components, mode)
        found = engine.projections(components, mode)
        assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("shape", [(30, 20), (9, 8, 7), (5, 6, 5, 4), (4, 3, 4, 3, 5)])
@pytest.mark.parametrize("batch", [(1, 1), (5, 2)])
@pytest.mark.parametrize("n_left", [0, 1, 2])
def test_zeros_in_components_drop_their_slices_and_nothing_else(naive, shape, batch, n_left):
    X, components = draw(shape, *batch)
    rng = np.random.default_rng(2)
    for component in components:
        used = rng.permutation(component.shape[-1])[:n_left]
        component[..., np.setdiff1d(np.arange(component.shape[-1]), used)] = 0
    engine = LocalEngine(ArraySource(X, block_bytes=4000))
    every = side_by_side(naive, X, components)
    assert_allclose(engine.project_all(components), every, rtol=1e-12, atol=1e-12)
    for mode in range(len(shape)):
        expected = naive.project(X, components, mode)
        assert_allclose(engine.projections(components, mode), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_float32_keeps_its_precision(naive, shape, batch):
    X, components = draw(shape, *batch)
    X = X.astype(np.float32)
    engine = LocalEngine(ArraySource(X, block_bytes=1500))
    # What rounding may lose: a few units in the last place of the sum of absolute values.
    sizes = side_by_side(naive, np.abs(X).astype(float), [np.abs(c) for c in components])
    bound = 8 * np.finfo(np.float32).eps * sizes.max()
    every = side_by_side(naive, X.astype(float), components)
    assert_allclose(engine.project_all(components), every, rtol=0, atol=bound)
    for mode in [*range(len(shape))] * 2:
        found = engine.projections(components, mode)
        assert found.dtype == np.float32
        expected = naive.project(X.astype(float), components, mode)
        assert_allclose(found, expected, rtol=0, atol=bound)


@pytest.mark.parametrize("scale", [1e-150, 0.3, 1e150])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_scale_divides_x_without_overflow(naive, shape, scale):
    X, components = draw(shape, 3, 2)
    engine = LocalEngine(ArraySource(X * scale), scale=scale)
    every = side_by_side(naive, X, components)
    assert_allclose(engine.project_all(components), every, rtol=1e-10, atol=1e-12)
    for mode in range(len(shape)):
        expected = naive.project(X, components, mode)
        assert_allclose(engine.projections(components, mode), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("block_bytes", BLOCK_BYTES)
def test_weighted_sums_over_the_samples(shape, block_bytes):
    X, _ = draw(shape)
    c = np.random.default_rng(1).normal(size=(3, len(X)))
    found = LocalEngine(ArraySource(X, block_bytes=block_bytes), scale=0.5).weighted_sums(c)
    assert_allclose(found, np.tensordot(c, X / 0.5, axes=1), rtol=1e-12, atol=1e-12)


def test_sums_of_samples_join_blocks_of_too_few():
    X, _ = draw((5, 4))
    source = CountingSource(X, block_bytes=2 * X[0].nbytes)
    LocalEngine(source).weighted_sums(np.ones((1, len(X))))
    assert len(source.reads) < len(source.slices)
    assert source.passes == 1
    # Four samples for each sum, whatever the blocks.
    assert max(source.reads) <= 4


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_with_tensors_of_their_own(naive, shape):
    _, components = draw(shape, 4, 1)
    own = np.random.default_rng(1).normal(size=(4, 6, *shape))
    for mode in range(len(shape)):
        found = project_own(own, [c[:, 0] for c in components], mode)
        for row in range(4):
            one = [c[row : row + 1] for c in components]
            assert_allclose(found[row], naive.project(own[row], one, mode)[0, 0], atol=1e-12)


def test_khatri_rao_rows_are_flattened_outer_products():
    rng = np.random.default_rng(0)
    a, b, c = (rng.normal(size=(3, p)) for p in (2, 4, 3))
    expected = np.einsum("li,lj,lk->lijk", a, b, c).reshape(3, -1)
    assert_allclose(khatri_rao([a, b, c]), expected, rtol=1e-14)
    assert_array_equal(khatri_rao([a]), a)


def counted_problem(shape, n_samples=16):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, *shape))
    source = CountingSource(X, block_bytes=X.nbytes // 4)
    problem = make_problem(source, rng.normal(size=n_samples), x_scale=1.0, fit_intercept=True)
    return source, problem


# Solved for in the space of entries, and in that of samples.
@pytest.mark.parametrize("n_samples", [16, 4])
@pytest.mark.parametrize("n_terms", [1, 2])
@pytest.mark.parametrize(
    ("shape", "expected"),
    list(zip(SHAPES, [2, 3 / 2, 4 / 3, 5 / 4], strict=True)),
)
def test_one_model_reads_x_m_over_m_minus_1_times_a_sweep(shape, expected, n_terms, n_samples):
    source, problem = counted_problem(shape, n_samples)
    models = Models.random(1, n_terms, shape, np.random.default_rng(1))
    # 12 is a multiple of M - 1 for all of these.
    for _ in range(12):
        models, _ = cyclic_sweep(problem, models, Penalty(0.1))
    assert source.passes == 12 * expected
    assert problem.engine.passes == source.passes


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_models", [1, 20])
def test_a_simultaneous_sweep_reads_x_once(shape, n_models):
    source, problem = counted_problem(shape)
    models = Models.random(n_models, 1, shape, np.random.default_rng(1))
    for _ in range(5):
        models, _ = simultaneous_sweep(problem, models, Penalty(0.1))
    assert source.passes == problem.engine.passes == 5


@pytest.mark.parametrize("n_models", [3, 50])
def test_many_models_read_x_twice_a_sweep_where_later_modes_begin_with_the_first(n_models):
    source, problem = counted_problem((5, 4, 3))
    models = Models.random(n_models, 1, (5, 4, 3), np.random.default_rng(1))
    for _ in range(4):
        models, _ = cyclic_sweep(problem, models, Penalty(0.1))
    assert source.passes == 4 * 2


@pytest.mark.parametrize("shape", SHAPES)
def test_many_models_read_x_at_most_once_an_update(shape):
    source, problem = counted_problem(shape)
    models = Models.random(50, 1, shape, np.random.default_rng(1))
    for _ in range(4):
        models, _ = cyclic_sweep(problem, models, Penalty(0.1))
    assert source.passes <= 4 * len(shape)
