"""Whatever is passed, there is a valid model or an error of this package's own, and X stays."""

import traceback
import warnings
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyfastr
from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    TensorScaler,
    fastr_path,
)

OURS = str(Path(pyfastr.__file__).parent)
LARGEST_MODES = {1: 9, 2: 6, 3: 4, 4: 3, 5: 3}


@dataclass
class Case:
    """What a fit is given; shown by hypothesis if it fails."""

    shape: tuple[int, ...]
    n_samples: int
    seed: int
    values: str
    dtype: str
    order: str
    x_power: int
    y_kind: str
    y_power: int
    weights: str
    covariates: str
    rng: Any = field(init=False, repr=False)

    def __post_init__(self):
        self.rng = np.random.default_rng(self.seed)
        self.X = ordered(typed(self._values(), self.dtype, self.x_power), self.order)
        self.y = self._response()
        self.sample_weight = self._weights()
        self.Z = self._covariates()

    def _values(self):
        X = self.rng.normal(size=(self.n_samples, *self.shape))
        mode = int(self.rng.integers(len(self.shape))) + 1
        if self.values == "repeated samples":
            X = X[self.rng.integers(0, 1 + len(X) // 2, len(X))]
        elif self.values == "repeated slices":
            p = X.shape[mode]
            X = np.take(X, self.rng.integers(0, 1 + p // 2, p), axis=mode)
        elif self.values == "constant sample":
            X[0] = 7.0
        elif self.values == "constant slice":
            np.moveaxis(X, mode, 0)[0] = 3.0
        elif self.values == "collinear mode":
            direction = self.rng.normal(size=X.shape[mode])
            X = np.moveaxis(X.mean(axis=mode)[..., None] * direction, -1, mode)
        elif self.values == "far from zero":
            X += 1e8
        elif self.values == "constant":
            X[:] = 0.1
        elif self.values == "one to another's multiple":
            X = np.multiply.outer(X.reshape(len(X), -1)[:, 0], X[0])
        return X

    def _response(self):
        signal = self.X.reshape(self.n_samples, -1).astype(float) @ np.ones(prod(self.shape))
        size = np.abs(signal).max() or 1.0
        y = {
            "signal": signal / size,
            "noise": self.rng.normal(size=self.n_samples),
            "constant": np.full(self.n_samples, 3.0),
            "one": np.eye(self.n_samples)[0],
            "far from zero": 1e9 + signal / size,
        }[self.y_kind]
        return y / np.abs(y).max() * 10.0**self.y_power if y.any() else y

    def _weights(self):
        g = self.rng.exponential(size=self.n_samples)
        return {
            "none": None,
            "some zero": g * (self.rng.random(self.n_samples) < 0.5),
            "all but one zero": g * (np.arange(self.n_samples) == 0),
            "zero": 0 * g,
            "huge": 1e200 * g,
            "of all sizes": 10.0 ** self.rng.uniform(-200, 200, self.n_samples),
            "whole": np.ceil(g),
        }[self.weights]

    def _covariates(self):
        Z = self.rng.normal(size=(self.n_samples, 2))
        return {
            "none": None,
            "two": Z,
            "one that is constant": 5.0 * np.ones(self.n_samples),
            "collinear": Z[:, [0, 0, 1]],
            "more than samples": self.rng.normal(size=(self.n_samples, self.n_samples + 2)),
            "tiny and huge": Z * [1e-150, 1e150],
        }[self.covariates]

    @property
    def labels(self):
        return np.where(self.y > np.median(self.y), "patient", "control")


def typed(X, dtype, power):
    """Values of another type: scaled if it can hold that, else clipped."""
    if dtype in ("f8", ">f8"):
        return (X * 10.0**power).astype(dtype)
    if dtype == "bool":
        return X > 0
    low, high = (
        (-120, 120) if dtype in ("i1", ">i4") else (0, 250) if dtype == "u1" else (-6e4, 6e4)
    )
    return np.clip(X, low, high).astype(dtype)


def ordered(X, order):
    """The same values in another layout."""
    if order == "F":
        return np.asfortranarray(X)
    if order == "backwards":
        return X[::-1, ..., ::-1]
    if order == "strided":
        return np.repeat(X, 2, axis=-1)[..., ::2]
    X = np.ascontiguousarray(X)
    X.setflags(write=order != "read-only")
    return X


@st.composite
def cases(
    draw,
    responses=("signal", "noise", "constant", "one", "far from zero"),
    sizes=(2, 3, 5, 8, 20, 40, 1),
):
    M = draw(st.integers(1, 5))
    shape = tuple(draw(st.lists(st.integers(1, LARGEST_MODES[M]), min_size=M, max_size=M)))
    power = st.sampled_from([0, 0, -150, -30, 8, 150])
    return Case(
        shape,
        n_samples=draw(st.sampled_from(sizes)),
        seed=draw(st.integers(0, 99)),
        values=draw(
            st.sampled_from(
                [
                    "normal",
                    "repeated samples",
                    "repeated slices",
                    "constant sample",
                    "constant slice",
                    "collinear mode",
                    "far from zero",
                    "constant",
                    "one to another's multiple",
                ]
            )
        ),
        dtype=draw(st.sampled_from(["f8", "f4", "f2", ">f8", "i1", ">i4", "u1", "bool"])),
        order=draw(st.sampled_from(["C", "F", "backwards", "strided", "read-only"])),
        x_power=draw(power),
        y_kind=draw(st.sampled_from(responses)),
        y_power=draw(power | st.just(249)),
        weights=draw(
            st.sampled_from(
                [
                    *("none", "some zero", "huge", "of all sizes", "whole"),
                    *("zero", "all but one zero"),
                ]
            )
        ),
        covariates=draw(
            st.sampled_from(
                [
                    *("none", "none", "two", "one that is constant", "collinear"),
                    *("more than samples", "tiny and huge"),
                ]
            )
        ),
    )


THRESHOLDS = st.sampled_from([0.0, 1e-6, 0.1, 0.5, 0.9, 0.999])
RIDGES = st.sampled_from([0.0, 1e-14, 1e-5, 0.1, 10.0, 1e6, 1e12])


@st.composite
def parameters(draw, shape, loss):
    """Parameters of a plain estimator; at times one term more than a coefficient needs."""
    most = prod(shape) // max(shape)
    return {
        "threshold": draw(THRESHOLDS),
        "ridge": draw(RIDGES),
        "n_terms": draw(st.sampled_from([1, 1, 2, min(most, 6), most + 1])),
        "loss": draw(st.sampled_from(["squared", "squared", loss])),
        "sweep": draw(st.sampled_from(["cyclic", "simultaneous"])),
        "refit_support": draw(st.sampled_from([False, True, "evidence"])),
        "fit_intercept": draw(st.booleans()),
        "tol": draw(st.sampled_from([0.0, 1e-3])),
        "n_init": draw(st.sampled_from([1, 4])),
        "max_iter": 20,
        "random_state": 0,
    }


def attempt(work):
    """Return what comes of it; None if it is refused by an error raised in this package."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = work()
        except (TypeError, ValueError) as error:
            raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
            assert raised_in.startswith(OURS), traceback.format_exc()
            found = None
    for warning in caught:
        # Numbers that leave their range warn as RuntimeWarning.
        assert issubclass(warning.category, UserWarning), str(warning)
    return found


def fitted(model, case, y):
    """Fit, predict and score; None if that is refused."""
    before = np.array(case.X)

    def work():
        model.fit(case.X, y, sample_weight=case.sample_weight, covariates=case.Z)
        return model.predict(case.X, case.Z), model.score(case.X, y, covariates=case.Z)

    answers = attempt(work)
    assert np.array_equal(case.X, before)
    return answers


def assert_valid(model):
    """What a fitted model says of itself is made of numbers, and its components are of length 1."""
    numbers = [model.coef_, model.intercept_, model.scales_, *model.factors_]
    numbers.append(getattr(model, "covariate_coef_", 0.0))
    assert all(np.isfinite(own).all() for own in numbers)
    for factor in model.factors_:
        lengths = np.linalg.norm(factor.astype(float), axis=0)
        assert np.all((np.abs(lengths - 1) < 1e-4) | (lengths == 0))
    assert np.all(np.diff(model.scales_) <= 0)
    assert np.all(model.scales_ >= 0)
    if hasattr(model, "history_"):
        assert not np.isnan(model.history_["loss"]).any()
        assert len(model.history_["change"]) == model.n_iter_ <= model.max_iter
    assert not np.isnan(getattr(model, "evidence_", 0.0))


@given(case=cases(), data=st.data())
def test_regression_ends_in_a_valid_model_or_is_refused(case, data):
    model = FasTRRegressor(**data.draw(parameters(case.shape, "poisson")))
    y = np.abs(case.y) if model.loss == "poisson" else case.y
    answers = fitted(model, case, y)
    if answers is not None:
        assert_valid(model)
        assert all(np.isfinite(answer).all() for answer in answers)


@given(case=cases(("signal", "noise", "one")), data=st.data())
def test_classification_ends_in_a_valid_model_or_is_refused(case, data):
    model = FasTRClassifier(**data.draw(parameters(case.shape, "logistic")))
    answers = fitted(model, case, case.labels)
    if answers is not None:
        assert_valid(model)
        assert set(answers[0]) <= {"patient", "control"}
        P = model.predict_proba(case.X, case.Z)
        assert np.all((P >= 0) & (P <= 1))
        np.testing.assert_allclose(P.sum(axis=1), 1)


@pytest.mark.parametrize("kind", [FasTRRegressorCV, FasTRClassifierCV])
@given(case=cases(("signal", "noise"), (8, 20, 40)), data=st.data())
def test_a_choice_ends_in_a_valid_model_or_is_refused(kind, case, data):
    model = kind(
        thresholds=(0.0, data.draw(THRESHOLDS)),
        ridges=data.draw(st.lists(RIDGES, min_size=1, max_size=2)),
        n_terms=data.draw(st.sampled_from([1, (1, 2), "auto", 50])),
        criterion=data.draw(st.sampled_from(["cv", "cv", "evidence"])),
        refit=data.draw(st.sampled_from([True, False, "auto"])),
        cv=2,
        n_init=2,
        max_iter=20,
        random_state=0,
    )
    y = case.y if kind is FasTRRegressorCV else case.labels
    answers = fitted(model, case, y)
    if answers is not None:
        assert_valid(model)
        assert np.isfinite(model.best_score_)
        assert np.isfinite(answers[1])


@given(case=cases(), data=st.data())
def test_a_path_is_made_of_numbers_or_refused(case, data):
    options = {
        "thresholds": [0.0, 0.3, 0.999],
        "ridge": data.draw(RIDGES),
        "n_terms": data.draw(st.sampled_from([1, 2])),
        "refit_support": data.draw(st.booleans()),
    }
    path = attempt(
        lambda: fastr_path(
            case.X,
            case.y,
            sample_weight=case.sample_weight,
            covariates=case.Z,
            n_init=2,
            max_iter=20,
            random_state=0,
            **options,
        )
    )
    if path is not None:
        numbers = [path.scales, path.intercepts, path.covariate_coefs, *path.factors, *path.start]
        assert all(np.isfinite(own).all() for own in numbers)


@given(
    case=cases(),
    per=st.sampled_from(["element", "global", 0, -1]),
    with_mean=st.booleans(),
    with_std=st.booleans(),
)
def test_scaled_samples_are_numbers_and_scale_back(case, per, with_mean, with_std):
    scaler = TensorScaler(per=per, with_mean=with_mean, with_std=with_std)

    def there_and_back():
        there = scaler.fit(case.X, sample_weight=case.sample_weight).transform(case.X)
        return there, scaler.inverse_transform(there)

    found = attempt(there_and_back)
    if found is not None:
        there, back = found
        assert np.isfinite(there).all()
        size = np.abs(case.X.astype(float)).max()
        tolerance = 1e-4 if there.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(back, case.X.astype(float), rtol=0, atol=tolerance * size)
