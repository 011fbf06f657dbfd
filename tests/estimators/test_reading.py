"""What is no number is refused in words that name the argument, not with a dump of it."""

import numpy as np
import pytest

from pyfastr import FasTRClassifier, FasTRRegressor, FasTRRegressorCV, TensorScaler

X = np.random.default_rng(0).normal(size=(12, 4, 3))
Y = X[:, 0, 0] + 0.1 * np.random.default_rng(1).normal(size=12)


class Image:
    """What images of nibabel offer, of which this room needs to know no more."""

    affine = np.eye(4)
    shape = (4, 3)

    def get_fdata(self):
        return np.ones(self.shape)


@pytest.mark.parametrize("given", [[Image()] * 12, (Image(),) * 12, Image()])
@pytest.mark.parametrize("estimator", [FasTRRegressor(), FasTRRegressorCV(), TensorScaler()])
def test_images_in_memory_are_sent_to_the_estimators_that_take_them(estimator, given):
    with pytest.raises(ValueError, match=r"X is an? .*\(Image\); expected.*NiftiRegressor") as e:
        estimator.fit(given, Y)
    assert len(str(e.value)) < 400


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ([[[1.0, 2.0]]] * 11 + [[[1.0]]], r"sample 11 is of shape \(1, 1\), sample 0 is of shape"),
        ([[1.0, 2.0]] * 11 + [[[1.0], 2.0]], "sample 11 is of unequal parts, sample 0 is of shape"),
        ([["a", "b"]] * 12, "not compatible with arrays of bytes/strings"),
        (np.full((12, 2), "1.5"), "not compatible with arrays of bytes/strings"),
        (X.astype(complex), "Complex data not supported"),
        (np.full((12, 2), "a", object), "could not convert string to float"),
    ],
    ids=["ragged", "ragged inside", "strings", "array of strings", "complex", "objects"],
)
def test_samples_that_are_no_numbers_are_told_in_one_line(given, what):
    message = rf"X, of type \w+, is no array of real numbers \(.*{what}.*\); expected real numbers"
    with pytest.raises(ValueError, match=message) as e:
        FasTRRegressor().fit(given, Y)
    assert len(str(e.value)) < 300


def test_vectors_are_told_how_to_become_samples():
    model = FasTRRegressor(random_state=0).fit(X, Y)
    for work in (lambda: FasTRRegressor().fit(Y, Y), lambda: model.predict(Y)):
        with pytest.raises(ValueError, match=r"X has shape \(12,\); expected \(n_samples, p1"):
            work()


@pytest.mark.parametrize(
    ("covariates", "message"),
    [
        (["control", "patient"] * 6, r"covariates, of type list, is no .*columns of 0 and 1"),
        ([[1.0]] * 11 + [[1.0, 2.0]], r"covariates, .* \(sample 11 is of shape \(2,\)"),
        (np.empty((12, 0)), r"covariates has shape \(12, 0\); expected \(12, n_covariates\)"),
        (np.ones((12, 1), complex), "covariates, of type ndarray, .*Complex data"),
    ],
)
def test_covariates_that_are_no_numbers_are_named(covariates, message):
    with pytest.raises(ValueError, match=message):
        FasTRRegressor().fit(X, Y, covariates=covariates)


def test_a_column_of_words_among_covariates_is_named():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": np.arange(12.0), "site": ["north", "south"] * 6})
    with pytest.raises(ValueError, match=r"covariates.*categories as columns"):
        FasTRRegressor().fit(X, Y, covariates=frame)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (["a"] * 12, "sample_weight, of type list, is no array of real numbers"),
        (np.zeros(12), "sample_weight is zero for all samples"),
        (np.r_[-1.0, np.ones(11)], r"sample_weight is from -1.0 to 1.0; expected weights of 0"),
        (np.full(12, 1e305), r"expected weights of 0 or more and at most 1e\+300"),
        (np.ones((12, 1)), r"sample_weight has shape \(12, 1\); expected \(12,\)"),
        (np.r_[np.nan, np.ones(11)], "sample_weight contains NaN: first at sample 0, 1 such"),
    ],
)
def test_weights_that_weigh_nothing_are_named(weights, message):
    for work in (
        lambda: FasTRRegressor().fit(X, Y, sample_weight=weights),
        lambda: FasTRClassifier().fit(X, Y > 0, sample_weight=weights),
        lambda: TensorScaler().fit(X, sample_weight=weights),
    ):
        with pytest.raises(ValueError, match=message):
            work()


def test_several_outputs_have_one_weight_for_each_sample():
    weights = np.arange(1.0, 13.0)
    both = FasTRRegressor(random_state=0).fit(X, np.stack([Y, -Y], axis=1), weights)
    assert both.coef_.shape == (2, 4, 3)
    with pytest.raises(ValueError, match=r"sample_weight has shape \(2,\); expected \(12,\)"):
        FasTRRegressor().fit(X, np.stack([Y, -Y], axis=1), weights[:2])


def test_folds_that_cannot_be_made_name_cv():
    with pytest.raises(ValueError, match="cv is 13, which cannot split these 12 samples: "):
        FasTRRegressorCV(cv=13).fit(X, Y)


def test_scores_name_what_is_wrong_with_y():
    model = FasTRRegressor(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="y has 11 values, but X has 12 samples"):
        model.score(X, Y[:-1])
    with pytest.raises(ValueError, match="y contains NaN: first at sample 3"):
        model.score(X, np.where(np.arange(12) == 3, np.nan, Y))


@pytest.mark.parametrize("estimator", [FasTRRegressor(), FasTRRegressorCV(n_terms=1, cv=3)])
def test_columns_of_covariates_in_another_order_are_refused(estimator):
    pd = pytest.importorskip("pandas")
    Z = pd.DataFrame(np.random.default_rng(2).normal(size=(12, 2)), columns=["age", "dose"])
    model = estimator.set_params(random_state=0).fit(X, Y, covariates=Z)
    for work in (
        lambda: model.predict(X, Z[["dose", "age"]]),
        lambda: model.score(X, Y, covariates=Z[["dose", "age"]]),
    ):
        with pytest.raises(
            ValueError, match=r"columns \['dose', 'age'\], but .* \['age', 'dose'\]"
        ):
            work()
