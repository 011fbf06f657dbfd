import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import r2_score, roc_auc_score, roc_curve
from sklearn.pipeline import make_pipeline

from pyfastr import FasTRClassifier, FasTRRegressor, TensorScaler
from pyfastr.display import PredictionDisplay, RocDisplay


def points(panel):
    parts = [c.get_offsets().data for c in panel.collections if len(c.get_offsets())]
    return np.concatenate(parts)


def test_held_out_predictions_are_drawn_against_what_was_observed(chosen):
    held = chosen.held_out_
    display = PredictionDisplay.from_estimator(chosen)
    assert_array_equal(points(display.ax_), np.stack([held.prediction, held.target], axis=1))
    assert display.r2_ == r2_score(held.target, held.prediction)
    assert_allclose(display.correlation_, np.corrcoef(held.target, held.prediction)[0, 1])
    label = display.ax_.get_legend().get_texts()[1].get_text()
    assert label == f"R² = {display.r2_:.3f}\ncorrelation = {display.correlation_:.3f}"
    assert display.ax_.get_xlabel() == "predicted, held out"


def test_the_line_is_where_both_are_equal(chosen):
    (line,) = PredictionDisplay.from_estimator(chosen).ax_.get_lines()
    assert_array_equal(line.get_xdata(), line.get_ydata())
    held = chosen.held_out_
    both = np.concatenate([held.target, held.prediction])
    assert_array_equal(line.get_xdata(), [both.min(), both.max()])


def test_folds_may_differ_in_colour_and_mark(chosen):
    held = chosen.held_out_
    panel = PredictionDisplay.from_estimator(chosen, by_fold=True).ax_
    drawn = [c for c in panel.collections if len(c.get_offsets())]
    assert len(drawn) == 5
    for fold, own in enumerate(drawn):
        assert_array_equal(own.get_offsets()[:, 1], held.target[held.folds == fold])
    assert len({own.get_paths()[0].vertices.tobytes() for own in drawn}) == 5
    assert "R² =" in panel.get_legend().get_texts()[-1].get_text()


def test_samples_of_the_user(draw, fitted):
    X, y = draw((6, 5), seed=1)
    display = PredictionDisplay.from_estimator(fitted[2], X, y)
    assert_array_equal(points(display.ax_)[:, 0], fitted[2].predict(X))
    assert_array_equal(points(display.ax_)[:, 1], y)
    assert display.ax_.get_xlabel() == "predicted"


def test_covariates_reach_the_model_also_through_a_pipeline(draw):
    X, y = draw((4, 3))
    Z = np.linspace(0, 1, len(X))[:, None]
    model = FasTRRegressor(n_init=2, random_state=0).fit(X, y + 3 * Z[:, 0], covariates=Z)
    display = PredictionDisplay.from_estimator(model, X, y, covariates=Z)
    assert_array_equal(display.prediction, model.predict(X, covariates=Z))
    pipeline = make_pipeline(TensorScaler(), model)
    pipeline.fit(X, y, fastrregressor__covariates=Z)
    display = PredictionDisplay.from_estimator(pipeline, X, y, covariates=Z)
    assert_array_equal(display.prediction, pipeline.predict(X, covariates=Z))


def test_a_constant_prediction_has_no_correlation():
    display = PredictionDisplay([1.0, 2.0, 3.0], [2.0, 2.0, 2.0]).plot()
    assert np.isnan(display.correlation_)
    assert display.r2_ == 0


def label_of(display):
    return display.ax_.get_legend().get_texts()[-1].get_text()


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
def test_numbers_of_any_size_are_scored_and_drawn(size):
    target, prediction = np.array([1.0, -2.0, 3.0]), np.array([1.5, -1.0, 2.0])
    display = PredictionDisplay(size * target, size * prediction).plot()
    display.figure_.canvas.draw()
    assert display.r2_ == pytest.approx(r2_score(target, prediction))
    assert display.correlation_ == pytest.approx(np.corrcoef(target, prediction)[0, 1])
    assert "in units of 10" in display.ax_.get_xlabel()
    assert "in units of 10" in display.ax_.get_ylabel()
    assert 1 <= np.abs(points(display.ax_)).max() < 10
    assert_array_equal(np.sign(points(display.ax_)), np.sign(np.stack([prediction, target], 1)))


def test_a_score_that_is_not_defined_is_not_written():
    display = PredictionDisplay(np.full(3, 1e300), [1.0, 2.0, 3.0]).plot()
    assert label_of(display) == "R² = 0.000"
    astray = PredictionDisplay([1e-250, 2e-250], [1.0, 2.0]).plot()
    assert label_of(astray) == "R² = −1 × 10³⁰⁰\ncorrelation = 1.000"
    assert label_of(PredictionDisplay([1.0], [2.0]).plot()) == "equal"


def test_responses_that_no_fit_takes_are_refused(draw, fitted):
    X, _ = draw((6, 5))
    with pytest.raises(ValueError, match=r"y is of size 1e\+308; expected .* 1e\+300\. Rescale y"):
        PredictionDisplay.from_estimator(fitted[2], X, np.full(len(X), 1e308))


def test_the_roc_curve_of_held_out_samples(classifier):
    held = classifier.held_out_
    display = RocDisplay.from_estimator(classifier)
    fpr, tpr, _ = roc_curve(held.target, held.prediction)
    chance, *folds, curve = display.ax_.get_lines()
    assert_array_equal(chance.get_xdata(), chance.get_ydata())
    assert_array_equal(curve.get_xdata(), fpr)
    assert_array_equal(curve.get_ydata(), tpr)
    assert display.roc_auc_ == roc_auc_score(held.target, held.prediction)
    assert curve.get_label() == f"area = {display.roc_auc_:.3f}"
    assert len(folds) == 5
    own = held.folds == 2
    expected = roc_curve(held.target[own], held.prediction[own])
    assert_array_equal(folds[2].get_ydata(), expected[1])
    assert display.ax_.get_ylabel() == "true positive rate (yes)"


def test_the_roc_curve_of_the_users_samples(draw, classifier):
    X, y = draw((6, 5), seed=1)
    labels = np.where(y > 0, "yes", "no")
    display = RocDisplay.from_estimator(classifier, X, labels)
    decision = classifier.decision_function(X)
    assert display.roc_auc_ == roc_auc_score(labels == "yes", decision)
    assert len(display.ax_.get_lines()) == 2


def test_folds_of_one_class_have_no_curve():
    display = RocDisplay([0, 1, 1, 1], [0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1]).plot()
    assert len(display.fold_curves()) == 1
    assert display.roc_auc_ == 1


def test_the_users_axes_and_options_are_used(chosen, classifier):
    _, axes = plt.subplots(1, 2)
    before = plt.get_fignums()
    assert PredictionDisplay.from_estimator(chosen, ax=axes[0], s=5).ax_ is axes[0]
    assert axes[0].collections[0].get_sizes() == 5
    assert RocDisplay.from_estimator(classifier, ax=axes[1], color="red").ax_ is axes[1]
    assert axes[1].get_lines()[-1].get_color() == "red"
    assert plt.get_fignums() == before


def test_what_cannot_be_drawn_is_told(draw, fitted, chosen, classifier):
    X, y = draw((6, 5))
    with pytest.raises(AttributeError, match=r"no held_out_, .*or pass X and y"):
        PredictionDisplay.from_estimator(fitted[2])
    with pytest.raises(TypeError, match=r"expected a regressor\. Use RocDisplay"):
        PredictionDisplay.from_estimator(classifier)
    with pytest.raises(TypeError, match=r"expected a classifier\. Use PredictionDisplay"):
        RocDisplay.from_estimator(chosen)
    with pytest.raises(ValueError, match="X is given without y; expected both"):
        PredictionDisplay.from_estimator(chosen, X)
    with pytest.raises(ValueError, match="y is given without X; expected both"):
        PredictionDisplay.from_estimator(chosen, y=y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PredictionDisplay.from_estimator(chosen, X, y[:-1])
    with pytest.raises(ValueError, match="not fitted"):
        RocDisplay.from_estimator(FasTRClassifier(), X, y > 0)
    with pytest.raises(ValueError, match="samples of one class only"):
        RocDisplay.from_estimator(classifier, X, ["yes"] * len(X))
