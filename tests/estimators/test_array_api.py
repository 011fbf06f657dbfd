"""Arrays of other libraries in, attributes and predictions of the same kind out."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline

import pyfastr
from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
    fastr_path,
)
from pyfastr.datasets import make_tensor_regression
from pyfastr.display import CoefficientDisplay
from pyfastr.estimators.selector import SliceSelector
from pyfastr.inference import bootstrap_factors, slice_importance
from pyfastr.sources import DeviceSource
from pyfastr.sources.namespaces import to_host

GRID = {"thresholds": (0.0, 0.1), "ridges": (0.01, 1.0), "n_init": 2, "cv": 3}
REGRESSORS = [
    FasTRRegressor(threshold=0.05, random_state=0),
    FasTRRegressor(ridge=0.1, n_terms=2, n_init=4, random_state=0),
    FasTRRegressor(ridge=0.1, loss="poisson", n_init=4, random_state=0),
    FasTRRegressorCV(**GRID, random_state=0),
    FasTRRegressorCV(**GRID, refit=False, random_state=0),
]
CLASSIFIERS = [
    FasTRClassifier(random_state=0),
    FasTRClassifier(loss="logistic", random_state=0),
    FasTRClassifierCV(**GRID, random_state=0),
]


@pytest.fixture
def dispatching(monkeypatch):
    """scikit-learn as it is for those who want their arrays to stay what they are."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch is not installed: pip install torch")


def draw(dtype=np.float64):
    X, y = make_tensor_regression(70, (5, 4, 3), noise=0.2, random_state=0)
    return X.astype(dtype), y


def same(found, expected, tolerance=1e-8):
    assert_allclose(to_host(found), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.usefixtures("dispatching")
@pytest.mark.parametrize("estimator", REGRESSORS, ids=repr)
def test_regressors_answer_as_with_numpy_but_on_the_device(library, estimator):
    X, y = draw()
    y = np.round(np.exp(y / np.abs(y).max())) if estimator.loss == "poisson" else y
    expected = sklearn.clone(estimator).fit(X[:50], y[:50])
    there = library.array(X)
    model = sklearn.clone(estimator).fit(there[:50, ...], library.array(y[:50]))
    for name in ("coef_", "scales_"):
        assert library.has(getattr(model, name))
        same(getattr(model, name), getattr(expected, name))
    for found, factor in zip(model.factors_, expected.factors_, strict=True):
        assert library.has(found)
        same(found, factor)
    assert isinstance(model.intercept_, float)
    assert model.intercept_ == pytest.approx(expected.intercept_, rel=1e-8)
    prediction = model.predict(there[50:, ...])
    assert library.has(prediction)
    same(prediction, expected.predict(X[50:]))
    score = model.score(there[50:, ...], library.array(y[50:]))
    assert score == pytest.approx(expected.score(X[50:], y[50:]))


@pytest.mark.usefixtures("dispatching")
@pytest.mark.parametrize("estimator", [REGRESSORS[0], REGRESSORS[2], REGRESSORS[3]], ids=repr)
@pytest.mark.parametrize("n_features", [20, 90])
def test_samples_may_be_vectors(library, estimator, n_features):
    rng = np.random.default_rng(0)
    # A few directions hold most of X, so that folds can predict more features than samples.
    X = rng.normal(size=(60, 5)) @ rng.normal(size=(5, n_features))
    X += 0.1 * rng.normal(size=X.shape)
    y = X[:, :3].sum(axis=1) + 0.1 * rng.normal(size=60)
    y = np.round(np.exp(y / np.abs(y).max())) if estimator.loss == "poisson" else y
    expected = sklearn.clone(estimator).fit(X, y)
    model = sklearn.clone(estimator).fit(library.array(X), library.array(y))
    assert library.has(model.coef_)
    same(model.coef_, expected.coef_)


@pytest.mark.usefixtures("dispatching")
@pytest.mark.parametrize("estimator", REGRESSORS[:2], ids=repr)
def test_float32_answers_as_with_numpy_to_its_digits(library, estimator):
    X, y = draw(np.float32)
    expected = sklearn.clone(estimator).fit(X, y)
    model = sklearn.clone(estimator).fit(library.array(X), library.array(y))
    same(model.coef_, expected.coef_, 1e-3 * np.abs(expected.coef_).max())


class StaysThere(DeviceSource):
    """X on a device that gives out no more than a sample at a time."""

    def read(self, rows):
        assert rows.stop - rows.start <= 1, "X was brought to the host"
        return super().read(rows)


@pytest.mark.parametrize("estimator", [*REGRESSORS, *CLASSIFIERS], ids=repr)
def test_a_fit_leaves_x_on_the_device(library, estimator):
    X, y = draw()
    counts, labels = np.round(np.exp(y / np.abs(y).max())), np.where(y > 0, 1, 0)
    y = counts if estimator.loss == "poisson" else y
    y = labels if sklearn.base.is_classifier(estimator) else y
    model = sklearn.clone(estimator).fit(StaysThere(library.array(X)), y)
    same(model.coef_, sklearn.clone(estimator).fit(X, y).coef_)


@pytest.mark.parametrize("estimator", [*REGRESSORS[:3], CLASSIFIERS[1]], ids=repr)
def test_only_small_tensors_come_to_the_host(torch, estimator):
    overrides = pytest.importorskip("torch.overrides")
    sizes = []

    class Watch(overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function is torch.Tensor.numpy:
                sizes.append(args[0].numel())
            return function(*args, **(kwargs or {}))

    X, y = make_tensor_regression(4000, (6, 5, 4), noise=0.2, random_state=0)
    y = y > 0 if sklearn.base.is_classifier(estimator) else np.round(np.exp(y / np.abs(y).max()))
    with Watch():
        sklearn.clone(estimator).fit(DeviceSource(torch.asarray(X)), y)
    assert sizes
    # The largest are fitted values of a batch of models.
    assert max(sizes) < X.size / 5


@pytest.mark.usefixtures("dispatching")
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=repr)
def test_classifiers_answer_as_with_numpy_but_on_the_device(library, estimator):
    X, y = draw()
    labels = np.where(y > np.median(y), 7, 3)
    expected = sklearn.clone(estimator).fit(X, labels)
    there, theirs = library.array(X), library.array(labels)
    model = sklearn.clone(estimator).fit(there, theirs)
    assert library.has(model.classes_)
    assert_array_equal(to_host(model.classes_), [3, 7])
    for method in ("decision_function", "predict_proba", "predict"):
        found = getattr(model, method)(there)
        assert library.has(found)
        same(found, getattr(expected, method)(X))
    assert to_host(model.predict(there)).dtype == labels.dtype
    assert model.score(there, theirs) == expected.score(X, labels)


@pytest.mark.usefixtures("dispatching")
def test_text_stays_text(library):
    X, y = draw()
    labels = np.where(y > 0, "patient", "control")
    model = FasTRClassifier(random_state=0).fit(library.array(X), labels)
    assert library.has(model.scales_)
    assert model.classes_.tolist() == ["control", "patient"]
    prediction = model.predict(library.array(X))
    assert set(prediction.tolist()) == {"control", "patient"}
    assert model.score(library.array(X), labels) > 0.8


@pytest.mark.usefixtures("dispatching")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_type_of_x_is_kept(library, dtype):
    X, y = draw(dtype)
    there = library.array(X)
    model = FasTRRegressor(random_state=0).fit(there, library.array(y))
    for found in (model.coef_, model.scales_, model.factors_[0], model.predict(there)):
        assert found.dtype == there.dtype


@pytest.mark.usefixtures("dispatching")
@pytest.mark.parametrize("estimator", [REGRESSORS[0], REGRESSORS[3]], ids=repr)
def test_weights_and_covariates_follow_x(library, estimator):
    X, y = draw()
    rng = np.random.default_rng(1)
    weights, covariates = rng.uniform(1, 2, len(y)), rng.normal(size=(len(y), 2))
    expected = sklearn.clone(estimator).fit(X, y, weights, covariates)
    model = sklearn.clone(estimator).fit(
        library.array(X),
        library.array(y),
        sample_weight=library.array(weights),
        covariates=library.array(covariates),
    )
    assert library.has(model.covariate_coef_)
    same(model.covariate_coef_, expected.covariate_coef_)
    found = model.predict(library.array(X), library.array(covariates))
    assert library.has(found)
    same(found, expected.predict(X, covariates))


@pytest.mark.usefixtures("dispatching")
def test_records_of_the_choice_and_its_scores(library):
    X, y = draw()
    groups = np.arange(len(y)) % 7
    expected = FasTRRegressorCV(**GRID, random_state=0).fit(X, y, groups=groups)
    model = FasTRRegressorCV(**GRID, random_state=0)
    model.fit(library.array(X), library.array(y), groups=library.array(groups))
    assert model.best_params_ == expected.best_params_
    assert library.has(model.scores_path_)
    same(model.scores_path_, expected.scores_path_)
    assert library.has(model.best_estimator_.coef_)
    same(model.held_out_.prediction, expected.held_out_.prediction)
    assert isinstance(model.held_out_.prediction, np.ndarray)
    assert isinstance(model.cv_results_["mean_test_score"], np.ndarray)


@pytest.mark.usefixtures("dispatching")
def test_a_scorer_of_the_users_own_sees_x_as_it_was_given(library):
    X, y = draw()
    seen = []

    def score(model, X, y):
        seen.append(library.has(X) and library.has(model.coef_))
        return model.score(X, y)

    model = FasTRRegressorCV(**GRID, scoring=score, random_state=0)
    model.fit(library.array(X), library.array(y))
    assert seen
    assert all(seen)
    expected = FasTRRegressorCV(**GRID, scoring=score, random_state=0)
    with sklearn.config_context(array_api_dispatch=False):
        expected.fit(X, y)
    same(model.scores_path_, expected.scores_path_)


@pytest.mark.usefixtures("dispatching")
def test_what_belongs_to_the_samples_may_be_of_numpy(library):
    X, y = draw()
    model = FasTRRegressor(random_state=0).fit(library.array(X), y, np.ones(len(y)))
    assert library.has(model.coef_)
    here = FasTRRegressor(random_state=0).fit(X, library.array(y))
    assert isinstance(here.coef_, np.ndarray)
    same(model.coef_, here.coef_)


@pytest.mark.usefixtures("dispatching")
def test_a_fit_to_numpy_forgets_the_device(library):
    X, y = draw()
    model = FasTRClassifier(random_state=0).fit(library.array(X), library.array((y > 0) * 1))
    model.fit(X, y > 0)
    assert isinstance(model.coef_, np.ndarray)
    assert isinstance(model.classes_, np.ndarray)
    assert isinstance(model.predict(X), np.ndarray)


@pytest.mark.usefixtures("dispatching")
@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_samples_of_another_library_are_refused_as_in_scikit_learn(library, method):
    X, y = draw()
    labels = (y > 0) * 1
    there = FasTRClassifier(random_state=0).fit(library.array(X), library.array(labels))
    with pytest.raises(ValueError, match=rf"FasTRClassifier.{method}\(\).*same namespace"):
        getattr(there, method)(X)
    here = FasTRClassifier(random_state=0).fit(X, labels)
    with pytest.raises(ValueError, match="Convert X, or fit FasTRClassifier"):
        getattr(here, method)(library.array(X))


@pytest.mark.usefixtures("dispatching")
def test_scikit_learn_moves_a_model_to_other_arrays(library):
    arrays = pytest.importorskip("sklearn.utils._array_api")
    if not hasattr(arrays, "move_estimator_to"):
        pytest.skip("scikit-learn moves estimators from 1.9 on")
    X, y = draw()
    model = FasTRRegressorCV(**GRID, random_state=0).fit(library.array(X), library.array(y))
    here = arrays.move_estimator_to(model, np, "cpu")
    assert isinstance(here.coef_, np.ndarray)
    assert library.has(model.coef_)
    same(model.predict(library.array(X)), here.predict(X))
    xp, _, device = arrays.get_namespace_and_device(library.array(X))
    back = arrays.move_estimator_to(here, xp, device)
    assert library.has(back.predict(library.array(X)))


@pytest.mark.usefixtures("dispatching")
def test_y_on_another_device_is_refused():
    strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")
    pytest.importorskip("array_api_compat", reason="needs pip install 'pyfastr[arrays]'")
    X, y = draw()
    elsewhere = strict.asarray(y, device=strict.Device("device1"))
    with pytest.raises(ValueError, match=r"y is an array .*device1.*Move y to X.device"):
        FasTRRegressor().fit(strict.asarray(X), elsewhere)
    with pytest.raises(ValueError, match="sample_weight is an array"):
        FasTRRegressor().fit(strict.asarray(X), strict.asarray(y), sample_weight=elsewhere)


@pytest.mark.parametrize("dispatch", [True, False])
def test_gradients_are_refused_with_what_to_do(torch, dispatch, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    X, y = (torch.asarray(a) for a in draw())
    model = FasTRRegressor(random_state=0)
    with sklearn.config_context(array_api_dispatch=dispatch):
        with pytest.raises(ValueError, match=r"X .* requires gradients.* Pass X\.detach\(\)"):
            model.fit(X.clone().requires_grad_(), y)
        with pytest.raises(ValueError, match=r"y .* requires gradients.* Pass y\.detach\(\)"):
            model.fit(X, y.clone().requires_grad_())
        model.fit(X, y)
        with pytest.raises(ValueError, match=r"Pass X\.detach\(\)"):
            model.predict(X.clone().requires_grad_())


@pytest.mark.usefixtures("dispatching")
def test_sparse_and_complex_tensors_are_refused(torch):
    X, y = (torch.asarray(a) for a in draw())
    with pytest.raises(TypeError, match=r"layout torch.sparse_coo.* Pass X\.to_dense\(\)"):
        FasTRRegressor().fit(X.to_sparse(), y)
    with pytest.raises(ValueError, match=r"X has dtype torch.complex128; expected real numbers"):
        FasTRRegressor().fit(X + 1j, y)


@pytest.mark.usefixtures("dispatching")
def test_bad_samples_are_refused_in_the_usual_words(library):
    X, y = draw()
    with pytest.raises(ValueError, match=r"expected \(n_samples, p1, \.\.\., pM\)"):
        FasTRRegressor().fit(library.array(y), library.array(y))
    with pytest.raises(ValueError, match=r"y has \d+ values, but X has \d+ samples"):
        FasTRRegressor().fit(library.array(X), library.array(y[:-1]))
    X[3, 1, 2, 0] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN: first at sample 3, element \(1, 2, 0\)"):
        FasTRRegressor().fit(library.array(X), library.array(y))


def test_without_dispatch_tensors_are_read_by_numpy(torch):
    X, y = draw()
    expected = FasTRRegressor(random_state=0).fit(X, y)
    model = FasTRRegressor(random_state=0).fit(torch.asarray(X), torch.asarray(y))
    assert isinstance(model.coef_, np.ndarray)
    assert_array_equal(model.coef_, expected.coef_)
    assert_array_equal(model.predict(torch.asarray(X)), expected.predict(X))


def test_without_dispatch_a_device_is_refused_with_what_to_do(torch):
    X, y = draw()
    with pytest.raises(TypeError, match=r"of torch on meta.*array_api_dispatch=True"):
        FasTRRegressor().fit(torch.empty(X.shape, device="meta"), y)
    with pytest.raises(TypeError, match="y is an array of torch on meta"):
        FasTRRegressor().fit(X, torch.empty(y.shape, device="meta"))


def test_a_model_of_tensors_predicts_arrays_without_dispatch(torch, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    X, y = draw()
    with sklearn.config_context(array_api_dispatch=True):
        model = FasTRRegressor(random_state=0).fit(torch.asarray(X), torch.asarray(y))
        expected = model.predict(torch.asarray(X))
    for given in (X, torch.asarray(X)):
        found = model.predict(given)
        assert isinstance(found, np.ndarray)
        same(found, to_host(expected))


@pytest.mark.usefixtures("dispatching")
def test_models_on_a_device_are_saved_shown_and_exported(library, tmp_path):
    X, y = draw()
    there, labels = library.array(X), library.array((y > 0) * 1)
    model = FasTRClassifierCV(**GRID, random_state=0).fit(there, labels)
    loaded = pyfastr.load(model.save(tmp_path / "model.fastr"))
    same(model.coef_, loaded.coef_)
    assert_array_equal(loaded.predict(X), to_host(model.predict(there)))
    assert_allclose(model.to_xarray().values, loaded.coef_)
    assert_allclose(model.to_tensorly().to_tensor(), loaded.coef_)
    CoefficientDisplay.from_estimator(model)
    report = model.generate_report(there, labels)
    assert "Coefficient" in report.html
    assert library.has(model.coef_)


@pytest.mark.usefixtures("dispatching")
def test_paths_and_inference_take_the_same_arrays(library):
    X, y = draw()
    there, theirs = library.array(X), library.array(y)
    options = {"thresholds": [0.0, 0.1], "random_state": 0}
    same(fastr_path(there, theirs, **options).coef(1), fastr_path(X, y, **options).coef(1))
    estimator = FasTRRegressor(threshold=0.1, n_init=2, random_state=0)
    weights = np.linspace(1, 2, len(y))
    for model in (estimator, make_pipeline(TensorScaler(), estimator)):
        found, expected = (
            bootstrap_factors(model, *data, n_bootstrap=5, sample_weight=own, random_state=0)
            for *data, own in ((there, theirs, library.array(weights)), (X, y, weights))
        )
        same(found.lower[0], expected.lower[0])
    model = sklearn.clone(estimator).fit(there, theirs)
    found = slice_importance(model, there, theirs, random_state=0)
    expected = slice_importance(sklearn.clone(estimator).fit(X, y), X, y, random_state=0)
    same(found.importances[0], expected.importances[0])


@pytest.mark.usefixtures("dispatching")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("per", ["element", "global", 1])
def test_the_scaler_works_on_the_device(library, per, dtype, tmp_path):
    X, y = draw(dtype)
    X, weights = X + 1000, np.linspace(0, 2, len(y))
    there = library.array(X)
    expected = TensorScaler(per=per).fit(X, sample_weight=weights)
    scaler = TensorScaler(per=per).fit(there, sample_weight=library.array(weights))
    for name in ("mean_", "scale_"):
        assert library.has(getattr(scaler, name))
        same(getattr(scaler, name), getattr(expected, name), 1e-12)
    scaled = scaler.transform(there)
    assert library.has(scaled)
    assert scaled.dtype == there.dtype
    same(scaled, expected.transform(X), 1e-4 if dtype is np.float32 else 1e-10)
    assert library.has(scaler.inverse_transform(scaled))
    same(scaler.inverse_transform(scaled), X, 1e-6)
    assert_array_equal(pyfastr.load(scaler.save(tmp_path / "s")).mean_, to_host(scaler.mean_))
    with pytest.raises(ValueError, match=r"TensorScaler.transform\(\).*same namespace"):
        scaler.transform(X)
    X[3, 1, 2, 0] = np.inf
    with pytest.raises(ValueError, match="X contains infinity: first at sample 3"):
        scaler.transform(library.array(X))


@pytest.mark.usefixtures("dispatching")
def test_pipelines_stay_on_the_device(library, tmp_path):
    X, y = draw()
    there, theirs = library.array(X), library.array(y)
    pipeline = make_pipeline(TensorScaler(), FasTRRegressor(random_state=0))
    expected = sklearn.clone(pipeline).fit(X, y)
    model = sklearn.clone(pipeline).fit(there, theirs)
    assert library.has(model.predict(there))
    same(model.predict(there), expected.predict(X))
    importances = [
        slice_importance(own, *data, random_state=0).importances[0]
        for own, data in ((model, (there, theirs)), (expected, (X, y)))
    ]
    same(*importances)
    loaded = pyfastr.load(pyfastr.save(model, tmp_path / "model.fastr"))
    same(loaded.predict(X), expected.predict(X))


@pytest.mark.usefixtures("dispatching")
def test_steps_on_the_host_read_tensors(torch):
    X, y = draw()
    selector = SliceSelector(FasTRRegressor(threshold=0.3, random_state=0))
    cropped = selector.fit(torch.asarray(X), torch.asarray(y)).transform(torch.asarray(X))
    assert_array_equal(cropped, sklearn.clone(selector).fit(X, y).transform(X))
