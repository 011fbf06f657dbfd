"""Normal equations, losses and sums of samples against dense definitions on copies of X."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pyfastr.engines import Draw
from pyfastr.solver.models import Models
from pyfastr.solver.problem import make_problem
from pyfastr.sources import ArraySource

N_SAMPLES = 60
SHAPES = [(7,), (6, 5), (4, 3, 5), (3, 2, 4, 3)]
TASK = np.array([0, 1, 2, 1])
KEYS = np.array([3, 1, 4, 15], np.uint64)


def fold_weights(rng):
    """Weights of three tasks, each of which leaves out ten samples."""
    weights = rng.uniform(0.5, 2, (3, N_SAMPLES))
    for task in range(3):
        weights[task, 10 * task : 10 * task + 10] = 0
    return weights


WEIGHTS = {
    "no weights": lambda rng: None,
    "weights": lambda rng: rng.uniform(0.5, 2, (1, N_SAMPLES)),
    "folds": lambda rng: (fold_weights(rng) > 0).astype(float),
    "weighted folds": fold_weights,
}


class Case:
    """X, three responses, weights and nuisance; the engine made of them, and four models."""

    def __init__(self, shape, weights="no weights", *, n_covariates=0, fit_intercept=True):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(N_SAMPLES, *shape))
        self.y = rng.normal(size=(3, N_SAMPLES))
        self.weights = WEIGHTS[weights](rng)
        self.covariates = rng.normal(size=(N_SAMPLES, n_covariates)) if n_covariates else None
        self.fit_intercept = fit_intercept
        drawn = Models.random(len(TASK), 2 if len(shape) > 1 else 1, shape, rng)
        self.models = Models(drawn.components, rng.normal(size=drawn.scales.shape), TASK)

    @property
    def engine(self):
        """A new one, which knows nothing yet: blocks of a few samples."""
        problem = make_problem(
            ArraySource(self.X, block_bytes=7 * self.X[0].nbytes),
            self.y,
            x_scale=1.0,
            fit_intercept=self.fit_intercept,
            sample_weight=self.weights,
            covariates=self.covariates,
        )
        return problem.engine

    def weights_of(self, task):
        """As the problem has them: of mean 1."""
        if self.weights is None:
            return np.ones(N_SAMPLES)
        row = self.weights[task % len(self.weights)]
        return row / row.mean()

    def bare(self, naive, response, g):
        """X and a response without what intercept and covariates explain, times root weights."""
        X = self.X.astype(float)
        columns = [np.ones((N_SAMPLES, 1))] if self.fit_intercept else []
        columns += [] if self.covariates is None else [self.covariates]
        if self.fit_intercept:
            # Any constant may go beforehand; nearly all digits of this difference are right.
            X = X - X.mean(axis=0)
        if not columns:
            root = np.sqrt(g)
            return X * root.reshape(-1, *[1] * (X.ndim - 1)), response * root
        return naive.partial_out(X, response, np.hstack(columns), g)

    def features(self, naive, X, k, modes):
        """Projections of one model's terms onto some modes, side by side."""
        if X.ndim == 2:
            return X
        one = [c[k : k + 1] for c in self.models.components]
        parts = [naive.project(X, one, mode)[0].transpose(1, 0, 2) for mode in modes]
        return np.hstack([P.reshape(N_SAMPLES, -1) for P in parts])

    def misfit(self, naive, z, k):
        """Weighted residuals of one model, and what it leaves unexplained at its best scale."""
        X, z = self.bare(naive, z, self.weights_of(TASK[k]))
        fitted = X.reshape(N_SAMPLES, -1) @ self.models.coefficient(k).ravel()
        best = fitted @ z / (fitted @ fitted)
        return z - fitted, np.sum((z - best * fitted) ** 2) / (z @ z)


def tolerance(dtype=float, mean=0.0):
    """What rounding may change: some units in the last place of X."""
    return 64 * np.finfo(dtype).eps * (1 + mean)


def assert_close(found, expected, tol, size=None):
    size = np.abs(expected).max() if size is None else size
    assert_allclose(found, expected, rtol=0, atol=tol * size)


def check_mode(case, naive, engine, mode, tol, draw=None):
    """Compare one mode's equations of all models with their definition."""
    found = engine.mode_equations(case.models, mode, draw, judged=True)
    drawn = None if draw is None else draw.exponential(0, N_SAMPLES)
    for k, task in enumerate(TASK):
        z = engine.samples.response[task]
        g = case.weights_of(task) * (1 if drawn is None else drawn[k])
        X, bare = case.bare(naive, z, g)
        P = case.features(naive, X, k, [mode])
        assert_close(found.gram[k], P.T @ P, tol)
        size = np.linalg.norm(P, axis=0).max() * np.linalg.norm(bare)
        assert_close(found.moment[k], P.T @ bare, tol, size)
        residuals, misfit = case.misfit(naive, z, k)
        assert_allclose(found.fits.rss[k], residuals @ residuals, rtol=16 * tol)
        assert_allclose(found.fits.misfit[k], misfit, rtol=64 * tol)


def check_joint(case, naive, engine, tol):
    """Compare the equations of all modes with their definition: moments are of residuals."""
    found = engine.joint_equations(case.models)
    for k, task in enumerate(TASK):
        z, g = engine.samples.response[task], case.weights_of(task)
        X, _ = case.bare(naive, z, g)
        P = case.features(naive, X, k, range(len(engine.shape)))
        residuals, misfit = case.misfit(naive, z, k)
        assert_close(found.gram[k], P.T @ P, tol)
        size = np.linalg.norm(P, axis=0).max() * np.linalg.norm(residuals)
        assert_close(found.moment[k], P.T @ residuals, tol, size)
        assert_allclose(found.fits.rss[k], residuals @ residuals, rtol=16 * tol)
        assert_allclose(found.fits.misfit[k], misfit, rtol=64 * tol)


OPTIONS = {
    "intercept": {},
    "covariates": {"n_covariates": 2},
    "covariates alone": {"n_covariates": 2, "fit_intercept": False},
    "nothing": {"fit_intercept": False},
}


@pytest.mark.parametrize("nuisance", OPTIONS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_equations_are_those_of_samples_without_the_nuisance(naive, shape, weights, nuisance):
    case = Case(shape, weights, **OPTIONS[nuisance])
    engine = case.engine
    for mode in [*range(len(shape))] * 2:
        check_mode(case, naive, engine, mode, tolerance())
    check_joint(case, naive, engine, tolerance())


@pytest.mark.parametrize("nuisance", OPTIONS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_drawn_weights_multiply_those_of_the_samples(naive, weights, nuisance):
    case = Case((4, 3, 5), weights, **OPTIONS[nuisance])
    engine = case.engine
    for mode in range(3):
        check_mode(case, naive, engine, mode, tolerance(), Draw(KEYS))


# Of products with so large a mean nothing would be left, and hardly anything in float32.
@pytest.mark.parametrize(
    ("mean", "dtype"), [(1e3, np.float64), (1e6, np.float64), (30.0, np.float32)]
)
@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("nuisance", ["intercept", "covariates"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_mean_of_x_costs_no_more_digits_than_x_has(
    naive, weights, nuisance, drawn, mean, dtype
):
    case = Case((4, 3, 5), weights, **OPTIONS[nuisance])
    case.X = (case.X + mean * np.random.default_rng(1).uniform(1, 2, (4, 3, 5))).astype(dtype)
    engine, tol = case.engine, tolerance(dtype, 2 * mean)
    for mode in [*range(3)] * 2:
        check_mode(case, naive, engine, mode, tol, Draw(KEYS) if drawn else None)
    check_joint(case, naive, engine, tol)


@pytest.mark.parametrize("weights", ["no weights", "folds"])
def test_a_large_mean_of_x_takes_two_passes_more_and_only_once(weights):
    case = Case((4, 3, 5), weights)
    plain = case.engine
    case.X = case.X + 1e6
    shifted = case.engine
    for n_more in (2, 0):
        for mode in range(3):
            before = plain.passes, shifted.passes
            for engine in (plain, shifted):
                engine.mode_equations(case.models, mode)
            # One in vain and one for the means, at first.
            more = shifted.passes - before[1] - (plain.passes - before[0])
            assert more == (n_more if mode == 0 else 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_models_in_float32_have_equations_in_float32(naive, dtype):
    case = Case((4, 3, 5), "weighted folds", n_covariates=2)
    case.X = case.X.astype(dtype)
    models = case.models.astype(np.float32)
    case.models = models.astype(float)
    for mode in range(3):
        found = case.engine.mode_equations(models, mode, judged=True)
        assert found.gram.dtype == found.moment.dtype == np.float32
        expected = case.engine.mode_equations(case.models, mode, judged=True)
        assert_close(found.gram, expected.gram, tolerance(np.float32))
        assert_close(found.moment, expected.moment, tolerance(np.float32))
        assert_allclose(found.fits.rss, expected.fits.rss, rtol=tolerance(np.float32))


@pytest.mark.parametrize("left", [1e-2, 1e-5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_what_covariates_leave_of_x_has_its_digits(naive, weights, fit_intercept, left):
    case = Case((4, 3, 5), weights, n_covariates=2, fit_intercept=fit_intercept)
    explained = np.tensordot(case.covariates, np.random.default_rng(1).normal(size=(2, 4, 3, 5)), 1)
    case.X = explained + left * case.X
    # Models whose fitted values are of the size of the response.
    case.models.scales /= left
    for mode in range(3):
        check_mode(case, naive, case.engine, mode, tolerance(mean=1 / left))
    check_joint(case, naive, case.engine, tolerance(mean=1 / left))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", ["a constant", "covariates"])
def test_of_x_that_the_nuisance_explains_nothing_is_left(weights, kind):
    case = Case((4, 3, 5), weights, n_covariates=2)
    pattern = np.random.default_rng(1).normal(size=(2, 4, 3, 5))
    constant = np.broadcast_to(1e3 * pattern[0], case.X.shape).copy()
    case.X = constant if kind == "a constant" else np.tensordot(case.covariates, pattern, 1)
    for mode in range(3):
        found = case.engine.mode_equations(case.models, mode)
        assert_array_equal(found.gram, 0)
        assert_array_equal(found.moment, 0)
        projected = case.engine.project(case.models, mode)
        gram, moment = projected.products(*np.random.default_rng(2).uniform(size=(2, 4, N_SAMPLES)))
        assert_array_equal(gram, 0)
        assert_array_equal(moment, 0)
    joint = case.engine.joint_equations(case.models)
    assert_array_equal(joint.gram, 0)
    assert_array_equal(joint.moment, 0)


def test_one_entry_that_does_not_vary_is_no_feature(naive):
    case = Case((4, 5), "folds")
    case.X[:, 2] = 1e3
    found = case.engine.mode_equations(case.models, 0)
    for term in range(2):
        size = np.abs(found.gram).max()
        assert_allclose(found.gram[:, 4 * term + 2], 0, atol=tolerance() * size)
        assert_allclose(found.moment[:, 4 * term + 2], 0, atol=tolerance() * N_SAMPLES)
    check_mode(case, naive, case.engine, 0, tolerance(mean=1e3))


# With and without a mean that makes features be formed without it.
@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("weights", ["folds", "weighted folds"])
def test_samples_that_a_task_leaves_out_change_no_bit_of_its_equations(weights, drawn, mean):
    case = Case((4, 3, 5), weights, n_covariates=2)
    case.X += mean
    draw = Draw(KEYS) if drawn else None
    before, after = case.engine, None
    out = case.weights[1] == 0
    for value in (1e9, 0.0):
        wild = Case((4, 3, 5), weights, n_covariates=2)
        wild.X += mean
        wild.X[out], wild.y[1, out], wild.covariates[out] = value, -value, value
        after = wild.engine
        own = TASK == 1
        for mode in [*range(3)] * 2:
            old, new = (
                e.mode_equations(case.models, mode, draw, judged=True) for e in (before, after)
            )
            assert_same_bits(old, new, own)
            assert not np.array_equal(old.gram[~own], new.gram[~own])
        old, new = (e.joint_equations(case.models) for e in (before, after))
        assert_same_bits(old, new, own)


def test_products_of_one_task_do_not_depend_on_whether_another_is_in_doubt():
    task, out = TASK == 1, slice(10, 20)
    further, response = np.random.default_rng(1).uniform(0.1, 2, (2, 4, N_SAMPLES))
    found = []
    for factor in (1e6, 1.0):
        case = Case((4, 3, 5), "folds", n_covariates=1)
        # Tasks that have these samples see, once, little but what the covariate explains.
        case.covariates[out] *= 1e6
        case.X[out] = case.X[out] * factor + case.covariates[out][..., None, None]
        found.append(case.engine.project(case.models, 1).products(further, response))
    for before, after in zip(*found, strict=True):
        assert_array_equal(before[task], after[task])
        assert not np.array_equal(before[~task], after[~task])


def assert_same_bits(old, new, own):
    assert_array_equal(old.gram[own], new.gram[own])
    assert_array_equal(old.moment[own], new.moment[own])
    assert_array_equal(old.fits.rss[own], new.fits.rss[own])
    assert_array_equal(old.fits.misfit[own], new.fits.misfit[own])


@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize("nuisance", ["intercept", "covariates"])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_losses_are_those_of_residuals(naive, shape, weights, nuisance, mean):
    case = Case(shape, weights, **OPTIONS[nuisance])
    case.X += mean
    engine, tol = case.engine, tolerance(mean=mean)
    # After an update, as in a fit: by then the engine knows of a large mean.
    engine.mode_equations(case.models, 0)
    found = engine.losses(case.models)
    for k, task in enumerate(TASK):
        residuals, misfit = case.misfit(naive, engine.samples.response[task], k)
        assert_allclose(found.rss[k], residuals @ residuals, rtol=16 * tol)
        assert_allclose(found.misfit[k], misfit, rtol=64 * tol)


@pytest.mark.parametrize("shape", SHAPES)
def test_fitted_values_are_inner_products_with_the_coefficients(shape):
    case = Case(shape, "folds")
    found = case.engine.fitted(case.models)
    for k in range(len(TASK)):
        expected = case.X.reshape(N_SAMPLES, -1) @ case.models.coefficient(k).ravel()
        assert_close(found[k], expected, tolerance())


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("nuisance", OPTIONS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_sums_of_samples_weighted_by_the_response_are_without_the_nuisance(
    weights, nuisance, drawn
):
    case = Case((4, 3, 5), weights, **OPTIONS[nuisance])
    engine, draw = case.engine, Draw(KEYS) if drawn else None
    found = engine.drawn_sums(TASK, draw)
    for k, task in enumerate(TASK):
        g = case.weights_of(task)
        C = engine.samples.nuisance[task % len(engine.samples.nuisance)]
        bare = case.X - np.tensordot(C, np.tensordot((C * g[:, None]).T, case.X, 1), 1)
        c = g * engine.samples.response[task]
        c = c * draw.take(np.array([k])).exponential(0, N_SAMPLES)[0] if drawn else c
        assert_close(found[k], np.tensordot(c, bare, 1), tolerance(), np.linalg.norm(c) * 8)


@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize("nuisance", OPTIONS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_projected_features_have_products_in_any_weights(naive, weights, nuisance, mean):
    case = Case((4, 3, 5), weights, **OPTIONS[nuisance])
    case.X += mean
    rng = np.random.default_rng(1)
    further, response = rng.uniform(0.1, 2, (4, N_SAMPLES)), rng.normal(size=(4, N_SAMPLES))
    engine, tol = case.engine, tolerance(mean=mean)
    for mode in range(3):
        projected = engine.project(case.models, mode)
        gram, moment = projected.products(further, response)
        vectors = rng.normal(size=moment.shape)
        whole, fitted = projected.whole(), projected.times(vectors)
        assert projected.n_features == whole.shape[2]
        for k, task in enumerate(TASK):
            X, z = case.bare(naive, response[k], case.weights_of(task) * further[k])
            P = case.features(naive, X, k, [mode])
            assert_close(gram[k], P.T @ P, tol)
            size = np.linalg.norm(P, axis=0).max() * np.linalg.norm(z)
            assert_close(moment[k], P.T @ z, tol, size)
            # Up to a constant that the intercept takes out.
            plain = case.features(naive, case.X, k, [mode])
            apart = whole[k] - plain
            assert_close(fitted[k], whole[k] @ vectors[k], tol)
            assert_allclose(apart, apart[:1] * np.ones((N_SAMPLES, 1)), atol=10 * tol)
            assert case.fit_intercept or np.abs(apart).max() < 10 * tol


def test_sums_of_few_tasks_take_no_memory_for_the_others():
    rng, n_tasks, shape = np.random.default_rng(0), 100, (40, 50)
    X, y = rng.normal(size=(20, *shape)), rng.normal(size=(n_tasks, 20))
    weights = rng.uniform(0.5, 2, (n_tasks, 20))
    options = {"x_scale": 1.0, "fit_intercept": True, "sample_weight": weights}
    engine = make_problem(ArraySource(X), y, **options).engine
    tracemalloc.start()
    engine.drawn_sums(np.array([3, 3, 70]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n_tasks / 4 * X[0].nbytes


def test_tasks_that_are_bound_anew_have_their_own_equations():
    case = Case((4, 3, 5), "weighted folds", n_covariates=2)
    engine = case.engine
    whole = engine.mode_equations(case.models, 1, judged=True)
    for k, task in enumerate(TASK):
        alone = engine.bind(engine.samples.task(task), 1.0)
        one = replace(case.models.take(slice(k, k + 1)), task=np.zeros(1, int))
        found = alone.mode_equations(one, 1, judged=True)
        assert_allclose(found.gram[0], whole.gram[k], rtol=1e-12, atol=1e-12)
        assert_allclose(found.moment[0], whole.moment[k], rtol=1e-12, atol=1e-12)
        assert_allclose(found.fits.rss, whole.fits.rss[[k]], rtol=1e-12)
