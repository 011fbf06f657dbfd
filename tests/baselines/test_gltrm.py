"""GLTRM against TensorReg, against ordinary models, and at its stationary points."""

import warnings
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import loadmat
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV

from pyfastr.baselines import GLTRM, limits
from pyfastr.baselines.glm import FAMILIES, Penalty, fit_penalised
from pyfastr.datasets import make_tensor_regression
from pyfastr.metrics import coefficient_error

DATA = Path(__file__).parents[1] / "data"
SHAPES = ["8x7", "6x5x4"]
TIGHT = {"tol": 1e-12, "max_iter": 2000}


def reference(name):
    """The authors' outputs, with samples on the first axis of X."""
    found = loadmat(DATA / f"{name}.mat")
    return found, np.moveaxis(found["X"], -1, 0), found["y"].ravel()


def factors_of(cell):
    return list(cell.ravel())


def fit_silently(model, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **more)


def contract(X, vectors, mode):
    """Contract every mode of X (samples first) but one, from the last to the first."""
    for m in reversed(range(len(vectors))):
        if m != mode:
            X = np.tensordot(X, vectors[m], (m + 1, 0))
    return X


def respond(family, predictor, rng):
    if family == "normal":
        return predictor + 0.1 * rng.standard_normal(len(predictor))
    if family == "binomial":
        return (rng.random(len(predictor)) < 1 / (1 + np.exp(-predictor))).astype(float)
    return rng.poisson(np.exp(predictor)).astype(float)


def simulated(family, shape=(5, 4, 3), n=400, seed=0):
    rng = np.random.default_rng(seed)
    X, _, W = make_tensor_regression(n, shape, coef=True, random_state=seed)
    W /= np.linalg.norm(W)
    covariates = rng.standard_normal((n, 2))
    predictor = np.tensordot(X, W, len(shape)) + covariates @ [0.5, -0.3] + 0.2
    return X, respond(family, predictor, rng), covariates, W


DENSE = [
    {},
    {"max_iter": 2000, "tol": 1e-13},
    {"max_iter": 2},
    {"fit_intercept": False},
    {"n_terms": 2},
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("row", range(5))
def test_dense_fits_are_those_of_tensorreg(shape, row):
    found, X, y = reference(f"kruskal_reg_{shape}")
    init = factors_of(found["r2"] if row == 4 else found["U0"])
    model = fit_silently(GLTRM(init=init, **DENSE[row]), X, y)
    assert_allclose(model.coef_, found["W_hat"].ravel()[row], atol=1e-9)
    if row != 2:
        assert_allclose(model.deviance_, found["dev"].ravel()[row].item(), atol=1e-9)
    if row in (0, 1, 4):
        assert_allclose(model.intercept_, found["beta0"].ravel()[row].item(), atol=1e-9)
    if row == 2:
        # Cut off after two sweeps, theirs has the intercept and deviance of the first; ours fits
        # them to the coefficient returned.
        assert_allclose(model.intercept_, np.mean(y - np.tensordot(X, model.coef_, X.ndim - 1)))
        assert model.deviance_ < found["dev"].ravel()[row].item()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("row", range(6))
def test_sparse_fits_are_those_of_tensorreg_up_to_their_last_scale(shape, row):
    found, X, y = reference(f"kruskal_sparsereg_{shape}")
    more = {"tol_penalty": 1e-12, "max_iter_penalty": 1000} if row >= 3 else {}
    penalty = found["params"].ravel()[row]
    model = GLTRM(penalty=penalty, init=factors_of(found["U_start"]), **more).fit(X, y)
    theirs = found["W_hat"].ravel()[row]
    predictor = np.tensordot(X, theirs, X.ndim - 1)
    columns = np.column_stack([np.ones(len(y)), predictor])
    intercept, scale = np.linalg.lstsq(columns, y, rcond=None)[0]
    assert_allclose(intercept, found["beta0"].ravel()[row].item(), atol=1e-9)
    # 1e-5 and not less because of how exactly theirs solves the last block: the next test.
    assert_allclose(model.intercept_, intercept, atol=2e-5)
    assert_allclose(model.coef_, scale * theirs, atol=3e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("row", range(3, 6))
def test_ours_solves_the_last_block_and_theirs_nearly(shape, row):
    found, X, y = reference(f"kruskal_sparsereg_{shape}")
    penalty = found["params"].ravel()[row]
    theirs = [u.ravel() for u in factors_of(found["U_hat"].ravel()[row])]
    features = contract(X, theirs, len(theirs) - 1)
    free = np.ones(len(y))
    start = np.append(theirs[-1], 0.0)
    ours = fit_penalised(features, free, y, FAMILIES["normal"], Penalty(penalty, 1.0), start)[:-1]

    def violation(u):
        gradient = (features - features.mean(axis=0)).T @ (y - y.mean() - features @ u)
        exact = np.abs(gradient - penalty * np.sign(u))
        return np.where(u != 0, exact, np.maximum(np.abs(gradient) - penalty, 0)).max()

    assert violation(ours) < 1e-6
    assert violation(theirs[-1]) > 1e-4
    assert_allclose(ours, theirs[-1], atol=5e-5)


@pytest.mark.parametrize("family", ["normal", "binomial", "poisson"])
def test_all_derivatives_vanish_at_the_solution(family):
    X, y, covariates, W = simulated(family)
    model = GLTRM(family=family, random_state=0, **TIGHT).fit(X, y, covariates=covariates)
    assert model.converged_
    assert coefficient_error(model.coef_, W) < 0.5
    binomial = family == "binomial"
    means = model.predict_proba(X, covariates)[:, 1] if binomial else model.predict(X, covariates)
    left = y - means
    assert_allclose(covariates.T @ left, 0, atol=1e-3)
    assert_allclose(left.sum(), 0, atol=1e-3)
    vectors = [f[:, 0] for f in model.factors_]
    for mode in range(3):
        assert_allclose(contract(X, vectors, mode).T @ left, 0, atol=2e-3)


def test_vectors_give_the_ordinary_models():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    predictor = X @ [1.0, -0.5, 0.0, 0.3] + 0.4
    for family, ordinary in [
        ("normal", LinearRegression()),
        ("binomial", LogisticRegression(C=1e10, tol=1e-10, max_iter=1000)),
        ("poisson", PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000)),
    ]:
        y = respond(family, predictor, rng)
        model = GLTRM(family=family, **TIGHT).fit(X, y)
        expected = ordinary.fit(X, y)
        assert_allclose(model.coef_, np.ravel(expected.coef_), atol=1e-4)
        assert_allclose(model.intercept_, np.ravel(expected.intercept_)[0], atol=1e-4)


def test_predictions_of_counts_are_rates():
    X, y, _, _ = simulated("poisson")
    model = GLTRM(family="poisson", random_state=0).fit(X, y)
    assert (model.predict(X) > 0).all()
    assert model.score(X, y) > 0.3
    assert_allclose(FAMILIES["poisson"].deviance(y, np.log(model.predict(X))), model.deviance_)


def test_two_classes_are_told_apart_whatever_their_labels():
    X, y, covariates, _ = simulated("binomial")
    numbers = GLTRM(family="binomial", random_state=0).fit(X, y, covariates=covariates)
    labels = np.where(y == 1, "yes", "no")
    model = GLTRM(family="binomial", random_state=0).fit(X, labels, covariates=covariates)
    assert model.classes_.tolist() == ["no", "yes"]
    assert_array_equal(model.coef_, numbers.coef_)
    assert_array_equal(model.predict(X, covariates) == "yes", numbers.predict(X, covariates) == 1)
    p = model.predict_proba(X, covariates)
    assert_allclose(p.sum(axis=1), 1)
    assert_array_equal(p[:, 1] > 0.5, model.predict(X, covariates) == "yes")
    assert_allclose(np.log(p[:, 1] / p[:, 0]), model.decision_function(X, covariates))
    accuracy = np.mean(model.predict(X, covariates) == labels)
    assert model.score(X, labels, covariates=covariates) == accuracy > 0.7


def test_only_a_binomial_family_makes_a_classifier():
    X, y, _, _ = simulated("binomial")
    model = GLTRM(family="binomial", random_state=0)
    assert is_classifier(model)
    assert not is_regressor(model)
    model.fit(X, y).set_params(family="normal").fit(X, y)
    assert is_regressor(model)
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "decision_function")


def test_covariates_are_fitted_along_and_asked_for_again():
    X, y, covariates, W = simulated("normal")
    model = GLTRM(random_state=0).fit(X, y, covariates=covariates)
    assert_allclose(model.covariate_coef_, [0.5, -0.3], atol=0.05)
    assert_allclose(model.intercept_, 0.2, atol=0.05)
    assert coefficient_error(model.coef_, W) < 0.05
    with pytest.raises(ValueError, match=r"covariates has 0 columns.*fitted with 2"):
        model.predict(X)
    model.fit(X, y)
    assert not hasattr(model, "covariate_coef_")
    assert model.predict(X).shape == y.shape


def test_several_terms_are_found():
    X, y, W = make_tensor_regression(300, (6, 5, 4), n_terms=2, coef=True, random_state=3)
    model = fit_silently(GLTRM(2, max_iter=500, random_state=0), X, y)
    assert coefficient_error(model.coef_, W) < 0.05
    outer = (reduce(np.multiply.outer, [f[:, r] for f in model.factors_]) for r in range(2))
    assert_allclose(sum(outer), model.coef_, atol=1e-12)
    lengths = [np.linalg.norm(f, axis=0) for f in model.factors_]
    assert_allclose(lengths[0], lengths[1])
    assert_allclose(lengths[0], lengths[2])


@pytest.mark.parametrize("penalty", [0.0, 5.0])
def test_the_order_of_the_modes_does_not_matter_in_the_end(penalty):
    X, y = make_tensor_regression(100, (5, 4, 3), random_state=0)
    tight = {**TIGHT, "tol_penalty": 1e-12, "max_iter_penalty": 2000}
    # A penalised sweep begins with factors of one size and ends with others, so that its fixed
    # points are nearly the same only.
    tolerance = 1e-2 if penalty else 1e-6
    expected = GLTRM(1, penalty, random_state=0, **tight).fit(X, y)
    turned = GLTRM(1, penalty, random_state=0, **tight).fit(X.transpose(0, 3, 1, 2), y)
    assert coefficient_error(turned.coef_.transpose(1, 2, 0), expected.coef_) < tolerance


def test_the_deviance_falls_with_sweeps_and_starts():
    X, y = make_tensor_regression(60, (6, 5, 4), n_terms=2, random_state=0)
    sweeps = [
        fit_silently(GLTRM(2, max_iter=k, tol=0.0, n_init=1, random_state=0), X, y).deviance_
        for k in range(1, 12)
    ]
    assert (np.diff(sweeps) <= 1e-9).all()
    one, five = (
        fit_silently(GLTRM(2, n_init=k, max_iter=20, random_state=0), X, y).deviance_
        for k in (1, 5)
    )
    # The best of five may be the first, by products that round otherwise beside the others.
    assert five <= one * (1 + 1e-9)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_the_deviance_of_other_families_falls_too(family):
    X, y, _, _ = simulated(family, n=100)
    sweeps = [
        fit_silently(
            GLTRM(family=family, max_iter=k, tol=0.0, n_init=1, random_state=0), X, y
        ).deviance_
        for k in range(1, 10)
    ]
    assert (np.diff(sweeps) <= 1e-8 * np.abs(sweeps[:-1])).all()


def test_a_penalty_makes_zeros():
    X, y, W = make_tensor_regression(100, (8, 7), sparsity=0.5, coef=True, random_state=0)
    dense = GLTRM(random_state=0).fit(X, y)
    sparse = GLTRM(penalty=5.0, random_state=0).fit(X, y)
    assert not (dense.coef_ == 0).any()
    assert ((sparse.coef_ == 0) & (W == 0)).sum() > 0.5 * (W == 0).sum()
    assert sparse.n_iter_ > dense.n_iter_
    mixed = GLTRM(penalty=5.0, l1_ratio=0.1, random_state=0).fit(X, y)
    assert (mixed.coef_ == 0).sum() < (sparse.coef_ == 0).sum()


@pytest.mark.parametrize(("family", "penalty"), [("binomial", 5.0), ("poisson", 15.0)])
def test_other_families_can_be_sparse(family, penalty):
    X, y, covariates, _ = simulated(family, n=200)
    model = GLTRM(penalty=penalty, family=family, random_state=0)
    model.fit(X, y, covariates=covariates)
    assert (model.coef_ == 0).any()
    assert model.score(X, y, covariates=covariates) > (0.6 if family == "binomial" else 0.1)


def test_the_starts_follow_the_random_state():
    X, y = make_tensor_regression(60, (6, 5, 4), n_terms=2, random_state=0)
    one, again, other = (
        fit_silently(GLTRM(2, max_iter=2, random_state=s), X, y).coef_ for s in (0, 0, 1)
    )
    assert_array_equal(one, again)
    assert not np.allclose(one, other)


@pytest.mark.parametrize("convert", [np.asfortranarray, lambda X: X.astype(">f8")])
def test_the_layout_of_the_data_does_not_matter_and_x_is_not_written(convert):
    X, y = make_tensor_regression(60, (5, 4, 3), random_state=0)
    expected = GLTRM(penalty=1.0, random_state=0).fit(X, y)
    X = convert(X)
    X.setflags(write=False)
    given = GLTRM(penalty=1.0, random_state=0).fit(X, y)
    assert_allclose(given.coef_, expected.coef_, atol=1e-8)


def test_float32_stays_float32():
    X, y = make_tensor_regression(100, (6, 5), dtype=np.float32, random_state=0)
    model = GLTRM(random_state=0).fit(X, y)
    assert model.coef_.dtype == model.factors_[0].dtype == model.predict(X).dtype == np.float32


def test_the_grid_serves_a_search():
    X, y = make_tensor_regression(100, (4, 3), random_state=0)
    search = GridSearchCV(GLTRM(random_state=0, max_iter=500), GLTRM.param_grid_, cv=2)
    fit_silently(search, X, y)
    assert search.best_params_["penalty"] < 100


def test_what_went_wrong_is_told():
    X, y = make_tensor_regression(40, (8, 8), random_state=0)
    with pytest.warns(ConvergenceWarning, match="after 2 sweeps; raise `max_iter`") as caught:
        model = GLTRM(max_iter=2, random_state=0).fit(X, y)
    assert caught[0].filename == __file__
    assert not model.converged_
    with pytest.warns(ConvergenceWarning, match="coefficient is zero.*lower `penalty`"):
        model = GLTRM(penalty=1e6, random_state=0).fit(X, y)
    assert not model.coef_.any()
    with pytest.warns(ConvergenceWarning, match="X separates the two classes of y"):
        model = GLTRM(family="binomial", random_state=0).fit(X, (y > 0).astype(float))
    assert np.isfinite(model.coef_).all()


def test_constant_data_give_a_constant():
    X = np.ones((12, 3, 2))
    with pytest.warns(ConvergenceWarning, match="coefficient is zero"):
        model = GLTRM(random_state=0).fit(np.zeros_like(X), np.arange(12.0))
    assert_allclose(model.predict(X), 5.5)


def test_a_fit_beyond_memory_is_refused(monkeypatch):
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    monkeypatch.setattr(limits, "MAX_WORKING_BYTES", 0)
    with pytest.raises(ValueError, match=r"n_init=5 starts.*GiB of memory.*Lower n_init"):
        GLTRM().fit(X, y)


def test_bad_input_is_told():
    X, y = make_tensor_regression(20, (4, 3), random_state=0)
    bad = X.copy()
    bad[7, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN: first at sample 7, element \(2, 1\)"):
        GLTRM().fit(bad, y)
    with pytest.raises(ValueError, match=r"needs at least 24 for n_terms=6.*Lower n_terms, or use"):
        GLTRM(6).fit(X, y)
    with pytest.raises(ValueError, match="n_terms is 2, but the samples are vectors"):
        GLTRM(2).fit(X[..., 0], y)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        GLTRM(family="binomial").fit(X, y)
    with pytest.raises(ValueError, match=r"y has 3 classes; expected 2. Use"):
        GLTRM(family="binomial").fit(X, np.arange(20) % 3)
    with pytest.raises(ValueError, match=r"y has only one class, 1\.0"):
        GLTRM(family="binomial").fit(X, np.ones(20))
    with pytest.raises(ValueError, match="no negative numbers for family='poisson'"):
        GLTRM(family="poisson").fit(X, y)
    with pytest.raises(ValueError, match=r"init has arrays of shapes.*expected \[\(4, 1\)"):
        GLTRM(init=[np.ones(3), np.ones(4)]).fit(X, y)
    with pytest.raises(ValueError, match="covariates has 3 rows"):
        GLTRM().fit(X, y, covariates=np.ones((3, 1)))
    with pytest.raises(ValueError, match="'family' parameter of GLTRM must be"):
        GLTRM(family="gamma").fit(X, y)
    with pytest.raises(ValueError, match=r"y has entries up to .*Rescale y"):
        GLTRM().fit(X, 1e100 * y)
