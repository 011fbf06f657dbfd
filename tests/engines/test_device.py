"""X on a device: every verb of an engine gives NumPy's answer, made of blocks that stay there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pyfastr import FasTRRegressor
from pyfastr.engines import DeviceEngine, Draw, LocalEngine, Samples, engine_of
from pyfastr.solver.models import Models
from pyfastr.sources import ArraySource, DeviceSource, RoundedSource, ScaledSource, ThinnedSource
from pyfastr.sources.namespaces import to_host

SHAPE, N_SAMPLES, N_TASKS = (6, 5, 4), 60, 3
# One, several, and so many of so many features that they are worked on in parts.
N_MODELS = [1, 7, 400]


class ManyBlocks(DeviceEngine):
    """As if X were too large for few blocks."""

    def _cut(self, n_blocks):
        return super()._cut(max(7, n_blocks))


def draw(n_samples=N_SAMPLES, shape=SHAPE, dtype=np.float64):
    return np.random.default_rng(0).normal(1, size=(n_samples, *shape)).astype(dtype)


def tasks(n_samples=N_SAMPLES, *, weighted):
    """Tasks with an intercept and a covariate, whose weights differ where there are any."""
    rng = np.random.default_rng(1)
    weights = rng.uniform(0, 2, (N_TASKS, n_samples)) if weighted else None
    if weighted:
        weights[0, : n_samples // 2] = 0
    columns = np.stack([np.ones(n_samples), rng.normal(size=n_samples)], axis=1)
    bases = []
    for g in np.ones((1, n_samples)) if weights is None else weights:
        root = np.sqrt(g)[:, None]
        bases.append(columns @ np.linalg.inv(np.linalg.qr(columns * root)[1]))
    return Samples(rng.normal(size=(N_TASKS, n_samples)), np.stack(bases), weights)


def models_of(n_models, n_terms, dtype=np.float64):
    rng = np.random.default_rng(2)
    models = Models.random(n_models, n_terms, SHAPE, rng).astype(dtype)
    return Models(models.components, models.scales, rng.integers(N_TASKS, size=n_models))


def equations(engine, models):
    keys = np.random.default_rng(3).integers(2**63, size=len(models.task)).astype(np.uint64)
    found = []
    for mode in range(len(SHAPE)):
        for own in (None, Draw(keys)):
            made = engine.mode_equations(models, mode, own, judged=True)
            found += [made.gram, made.moment, made.fits.rss, made.fits.misfit]
    joint = engine.joint_equations(models)
    return [*found, joint.gram, joint.moment, joint.fits.rss]


def fits(engine, models):
    found = engine.losses(models)
    return [found.rss, found.misfit, engine.fitted(models)]


def projections(engine, models):
    components = models.components
    each = [engine.projections(components, mode) for mode in range(len(SHAPE))]
    return [*each, engine.project_all(components)]


def newton(engine, models):
    rng = np.random.default_rng(4)
    projected = engine.project(models, 1)
    shape = len(models.task), engine.n_samples
    gram, moment = projected.products(rng.uniform(size=shape), rng.normal(size=shape))
    vectors = rng.normal(size=(len(models.task), projected.n_features))
    return [gram, moment, projected.times(vectors), projected.whole()]


def sums(engine, models):
    keys = np.arange(len(models.task), dtype=np.uint64)
    coefficients = np.random.default_rng(5).normal(size=(3, engine.n_samples))
    plain, drawn = engine.drawn_sums(models.task), engine.drawn_sums(models.task, Draw(keys))
    return [plain, drawn, engine.weighted_sums(coefficients)]


VERBS = [equations, fits, projections, newton, sums]


def assert_same(found, expected, tolerance=1e-9):
    for own, other in zip(found, expected, strict=True):
        assert isinstance(own, np.ndarray)
        assert own.dtype == other.dtype
        assert_allclose(own, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


@pytest.mark.parametrize("kind", [DeviceEngine, ManyBlocks])
@pytest.mark.parametrize("n_models", N_MODELS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_gives_numpys_answer(library, verb, n_models, kind):
    X = draw(N_SAMPLES if n_models < 100 else 900)
    samples = tasks(len(X), weighted=n_models == 7)
    models = models_of(n_models, 2 if n_models == 7 else 1)
    scale = 0.5 if n_models == 1 else 1.0
    expected = verb(LocalEngine(ArraySource(X), samples, scale), models)
    found = verb(kind(DeviceSource(library.array(X)), samples, scale), models)
    assert_same(found, expected)


@pytest.mark.parametrize("n_models", N_MODELS)
def test_equations_of_many_are_those_of_each(n_models):
    engine = LocalEngine(ArraySource(draw(150)), tasks(150, weighted=False).task(0))
    models = models_of(n_models, 1)
    models = Models(models.components, models.scales, np.zeros(n_models, int))
    every = engine.mode_equations(models, 0)
    for k in range(0, n_models, 37):
        alone = engine.mode_equations(models.take(slice(k, k + 1)), 0)
        assert_allclose(every.gram[k], alone.gram[0], rtol=1e-10, atol=1e-10)
        assert_allclose(every.moment[k], alone.moment[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("wanted", [np.float32, np.float64])
def test_float32_has_its_digits(library, verb, wanted):
    X, samples, models = draw(dtype=np.float32), tasks(weighted=True), models_of(7, 1, wanted)
    expected = verb(LocalEngine(ArraySource(X), samples), models)
    found = verb(DeviceEngine(DeviceSource(library.array(X)), samples), models)
    for own, other in zip(found, expected, strict=True):
        assert_allclose(own, other, rtol=1e-3, atol=1e-4 * np.abs(other).max())


@pytest.mark.parametrize("verb", VERBS)
def test_devices_without_float64_do_with_float32(verb):
    strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")
    pytest.importorskip("array_api_compat", reason="needs pip install 'pyfastr[arrays]'")
    X, samples, models = draw(dtype=np.float32), tasks(weighted=True), models_of(7, 1)
    expected = verb(LocalEngine(ArraySource(X), samples), models)
    there = strict.asarray(X, device=strict.Device("no_float64"))
    found = verb(DeviceEngine(DeviceSource(there), samples), models)
    for own, other in zip(found, expected, strict=True):
        assert_allclose(own, other, rtol=1e-3, atol=1e-4 * np.abs(other).max())


@pytest.mark.parametrize("dtype", [np.float64, np.int16])
def test_other_engines_of_the_same_x_stay_on_the_device(library, dtype):
    X, samples = (10 * draw()).astype(dtype), tasks(weighted=True)
    which = np.sort(np.random.default_rng(0).permutation(N_SAMPLES)[:40])
    here = engine_of(ArraySource(X), samples)
    there = engine_of(DeviceSource(library.array(X)), samples)
    pairs = [
        (there.bind(samples.task(1), 2.0), here.bind(samples.task(1), 2.0), 1e-9),
        (there.subset(which, samples.rows(which)), here.subset(which, samples.rows(which)), 1e-9),
        (there.rounded(), here.rounded(), 1e-3),
    ]
    models = models_of(7, 1)
    for found, expected, tolerance in pairs:
        assert isinstance(found, DeviceEngine)
        own = Models(models.components, models.scales, models.task % len(found.samples.response))
        assert_same([found.fitted(own)], [expected.fitted(own)], tolerance)


def test_sources_of_a_source_on_a_device_are_there_too(library):
    X, which = draw(), np.array([3, 4, 9, 30])
    mean, scale = X.mean(axis=0), X.std(axis=0)
    there = DeviceSource(library.array(X))
    sources = [
        (RoundedSource(there), X.astype(np.float32)),
        (ThinnedSource(there, which), X[which]),
        (ScaledSource(there, mean, scale), (X - mean) / scale),
        (ScaledSource(there, None, scale), X / scale),
        (ThinnedSource(ScaledSource(there, mean, None), which), (X - mean)[which]),
    ]
    for source, expected in sources:
        assert isinstance(engine_of(source), DeviceEngine)
        block = source.block(slice(1, 4))
        assert library.has(block)
        for found in (to_host(block), source.read(slice(1, 4))):
            assert found.dtype == source.dtype == expected.dtype
            assert_allclose(found, expected[1:4], rtol=1e-12)


def test_models_predict_samples_that_are_scaled_on_the_device(library):
    X = draw()
    y = X.sum(axis=(1, 2, 3))
    mean = X.mean(axis=0)
    model = FasTRRegressor(ridge=0.1, n_init=2, random_state=0).fit(X - mean, y)
    there = ScaledSource(DeviceSource(library.array(X)), mean, None)
    assert_allclose(model.predict(there), model.predict(X - mean), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", [DeviceEngine, ManyBlocks])
@pytest.mark.parametrize("n_used", [12, 30])
def test_inner_products_of_pairs_of_samples(library, n_used, kind):
    X = draw(20, (6, 5))
    used, share = np.arange(30).reshape(6, 5) < n_used, np.arange(20) / 190
    engine = kind(DeviceSource(library.array(X)), scale=2.0)
    some = (X - np.tensordot(share, X, 1))[:, used] / 2
    assert_allclose(engine.sample_products(share, used), some @ some.T, rtol=1e-12, atol=1e-12)
    assert engine.passes == 1
