"""scikit-learn's own checks of every estimator, on matrices and again on tensors."""

from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
)
from pyfastr.baselines import (
    GLTRM,
    SURF,
    DantzigSelector,
    ElementaryRidge,
    OrTRR,
    PublishedFasTR,
    Remurs,
    Sturm,
    VectorizedElasticNet,
    VectorizedLasso,
)
from pyfastr.estimators.selector import SliceSelector


@pytest.fixture
def array_api(monkeypatch):
    """Let scikit-learn's checks of arrays of other libraries run: they ask for SciPy's consent."""
    if find_spec("array_api_compat") is not None:
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")


@pytest.fixture
def no_array_api(monkeypatch):
    """Keep these checks from running where an estimator of the tests is not made for them."""
    monkeypatch.delenv("SCIPY_ARRAY_API", raising=False)


def expected_failures(estimator):
    """Return the checks that ask for what an estimator says it does not do.

    The evidence counts samples: one that is there twice counts more than one of weight 2. Counts
    are positive, which is in the tags, but the check of several outputs takes no notice of it.
    """
    if getattr(estimator, "refit_support", None) == "evidence":
        return {"check_sample_weight_equivalence_on_dense_data": "weights are not counts"}
    if getattr(estimator, "loss", None) == "poisson":
        return {"check_regressor_multioutput": "gives counts below 0"}
    return {}


# With a state, because a check compares shapes of attributes, and with them numbers of terms.
FEW = {"thresholds": (0.0, 0.1), "ridges": (0.01, 1.0), "n_init": 2, "random_state": 0}


# The data of some checks are too large for the steps of SURF, too small for the penalty of OrTRR,
# of two classes that GLTRM separates, or too few for folds, which all of them say.
@pytest.mark.usefixtures("array_api")
@pytest.mark.filterwarnings("ignore:(SURF|OrTRR|GLTRM):sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:No model predicts held-out samples better:UserWarning")
# Some checks of older versions have fewer samples of a class than folds.
@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.filterwarnings("ignore:The ROC curve of held-out samples of one class")
@pytest.mark.filterwarnings("ignore:Folds .* have no finite score")
@parametrize_with_checks(
    [
        FasTRRegressor(),
        FasTRRegressor(threshold=0.1, ridge=0.01, fit_intercept=False),
        FasTRRegressor(threshold=0.1, refit_support=True),
        FasTRRegressor(refit_support="evidence"),
        FasTRRegressor(threshold=0.1, ridge=0.01, loss="poisson"),
        FasTRClassifier(),
        FasTRClassifier(threshold=0.1, loss="logistic"),
        FasTRRegressorCV(**FEW),
        FasTRRegressorCV(**FEW, loss="poisson"),
        FasTRClassifierCV(**FEW),
        TensorScaler(),
        TensorScaler(per="global"),
        TensorScaler(per=0),
        SliceSelector(FasTRRegressor()),
        SliceSelector(FasTRRegressor(threshold=0.1, ridge=0.01), modes=0),
        PublishedFasTR(),
        SURF(),
        GLTRM(),
        GLTRM(penalty=0.1),
        GLTRM(family="poisson"),
        GLTRM(family="poisson", penalty=0.1),
        GLTRM(family="binomial"),
        GLTRM(family="binomial", penalty=0.1),
        OrTRR(),
        DantzigSelector(),
        ElementaryRidge(),
        Remurs(),
        Sturm(),
        VectorizedElasticNet(),
        VectorizedLasso(),
    ],
    expected_failed_checks=expected_failures,
)
def test_matrices(estimator, check):
    check(estimator)


def fold(X, n_modes):
    """Give every feature of a matrix a small tensor of its own, linear in the sample.

    What is no matrix of real numbers passes as it is, for the estimator to refuse.
    """
    try:
        folded = np.asarray(X, dtype=None if np.asarray(X).dtype.kind in "biufc" else float)
    except (TypeError, ValueError):
        return X
    if folded.ndim != 2 or folded.dtype.kind == "c" or 0 in folded.shape:
        return X
    for mode in range(1, n_modes):
        folded = np.stack([folded, (mode + 1) * folded[:, ::-1]], axis=-1)
    return folded


class Folding:
    """An estimator to whom every matrix ``(n, f)`` is a tensor ``(n, f, 2, ...)``."""

    n_modes: int

    def fit(self, X, y=None, sample_weight=None):
        super().fit(fold(X, self.n_modes), y, sample_weight)
        # Number and names of the columns are those of the matrix.
        validate_data(self, X, reset=True, skip_check_array=True)
        return self

    def _fold_like_fitted(self, X):
        if hasattr(self, "n_features_in_") and np.asarray(X).ndim == 2:
            validate_data(self, X, reset=False, skip_check_array=True)
        return fold(X, self.n_modes)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Folding makes arrays of NumPy.
        tags.array_api_support = False
        return tags


class FoldingRegressor(Folding, FasTRRegressor):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        return super().predict(self._fold_like_fitted(X))

    def score(self, X, y, sample_weight=None):
        return super().score(X, y, sample_weight)


class FoldingScaler(Folding, TensorScaler):
    """Returns the slice that holds the matrix itself."""

    get_feature_names_out = OneToOneFeatureMixin.get_feature_names_out

    def transform(self, X):
        # Without what makes data frames of the result: that comes after the slice is taken.
        folded = TensorScaler.transform.__wrapped__(self, self._fold_like_fitted(X))
        return folded[(..., *[0] * (self.n_modes - 1))]


class MatrixRegressor(FoldingRegressor):
    n_modes = 2


class CubeRegressor(FoldingRegressor):
    n_modes = 3


class MatrixScaler(FoldingScaler):
    n_modes = 2


class CubeScaler(FoldingScaler):
    n_modes = 3


@pytest.mark.parametrize("n_modes", [2, 3])
def test_folding_makes_tensors(n_modes):
    X = np.arange(12.0).reshape(4, 3)
    folded = fold(X, n_modes)
    assert folded.shape == (4, 3, *[2] * (n_modes - 1))
    np.testing.assert_array_equal(folded[(..., *[0] * (n_modes - 1))], X)


# Convergence to the last digits, because some checks compare fits of equal problems.
TIGHT = {"ridge": 0.1, "n_init": 16, "tol": 1e-7, "max_iter": 500, "random_state": 0}


@pytest.mark.usefixtures("no_array_api")
@pytest.mark.filterwarnings("ignore:The least populated class")
@parametrize_with_checks(
    [
        MatrixRegressor(**TIGHT),
        CubeRegressor(**TIGHT),
        MatrixRegressor(loss="poisson", **TIGHT),
        MatrixScaler(),
        CubeScaler(),
        CubeScaler(per="global"),
    ],
    expected_failed_checks=expected_failures,
)
def test_tensors(estimator, check):
    check(estimator)
