"""What several outputs and classes cost in one fit, beside one fit for each, and one fit alone.

Ten classes of scikit-learn's digits (8 x 8) and ten simulated outputs are fitted three ways: all in
one, by scikit-learn's `OneVsRestClassifier` or `MultiOutputRegressor`, and one output by itself.
The first two make the same models, but for what folds choose. Times are processor time, the best of
a few repeats, so that other work on the machine counts little; all are measured in one run.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _report import environment, print_table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from threadpoolctl import threadpool_limits

from pyfastr import FasTRClassifier, FasTRClassifierCV, FasTRRegressor, FasTRRegressorCV

N_OUTPUTS = 10
SHAPE, N_SAMPLES = (10, 10, 10), 400
HEADER = ("", "all in one (s)", "one each (s)", "one alone (s)", "all / one each", "all / alone")


def seconds(fit: Callable[[], Any], n_repeats: int) -> tuple[float, Any]:
    """Return the processor time of a fit, the best of some, and what it returns."""
    times, fitted = list[float](), None
    for _ in range(n_repeats):
        began = time.process_time()
        fitted = fit()
        times.append(time.process_time() - began)
    return min(times), fitted


def digits() -> tuple[list[Any], list[Any]]:
    """Return samples and labels of digits to train on, and others."""
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8)
    split = train_test_split(images, labels, train_size=898, stratify=labels, random_state=0)
    return [split[0], split[2]], [split[1], split[3]]


def outputs() -> tuple[list[Any], list[Any]]:
    """Return samples with linear outputs of unit rank to train on, and others."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * N_SAMPLES, *SHAPE))
    flat = X.reshape(len(X), -1)
    coefs = [
        np.einsum("i,j,k->ijk", *(rng.standard_normal(p) for p in SHAPE)).ravel()
        for _ in range(N_OUTPUTS)
    ]
    Y = np.stack([flat @ W for W in coefs], axis=1)
    Y += Y.std(axis=0) * rng.standard_normal(Y.shape)
    return [X[:N_SAMPLES], Y[:N_SAMPLES]], [X[N_SAMPLES:], Y[N_SAMPLES:]]


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--skip-cv", action="store_true", help="leave the choices out")
    options = parser.parse_args()
    cases: list[tuple[str, Any, Any, Callable[[], Any]]] = [
        ("10 digits", FasTRClassifier(random_state=0), OneVsRestClassifier, digits),
        ("10 outputs", FasTRRegressor(ridge=0.1, random_state=0), MultiOutputRegressor, outputs),
    ]
    if not options.skip_cv:
        for twin, wrapper, load, name in (
            (FasTRClassifierCV, OneVsRestClassifier, digits, "10 digits"),
            (FasTRRegressorCV, MultiOutputRegressor, outputs, "10 outputs"),
        ):
            cases += [
                (f"{name}, chosen, 1 term", twin(n_terms=1, random_state=0), wrapper, load),
                (f"{name}, chosen", twin(random_state=0), wrapper, load),
            ]
    costs, scores = list[list[str]](), list[list[str]]()
    for name, model, wrapper, load in cases:
        (X, y), held_out = load()
        one = y == 0 if y.ndim == 1 else y[:, 0]
        whole, all_in_one = seconds(lambda m=model, X=X, y=y: m.fit(X, y), options.repeats)
        score = all_in_one.score(*held_out)
        n_repeats = 1 if "chosen" in name else options.repeats
        many = wrapper(model)
        each, wrapped = seconds(lambda m=many, X=X, y=y: m.fit(X, y), n_repeats)
        alone, _ = seconds(lambda m=model, X=X, y=one: m.fit(X, y), options.repeats)
        ratios = [f"{whole / each:.2f}", f"{whole / alone:.2f}"]
        costs.append([name, f"{whole:.3f}", f"{each:.3f}", f"{alone:.3f}", *ratios])
        scores.append([name, f"{score:.4f}", f"{wrapped.score(*held_out):.4f}"])
    print_table("Processor time", HEADER, costs)
    print_table("Accuracy, or mean R², of other samples", ("", "all in one", "one each"), scores)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        print(environment())
        main()
