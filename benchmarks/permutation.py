"""What a permutation test costs, beside one fit of the same estimator and a loop of such fits.

The loop is scikit-learn's `permutation_test_score`, extrapolated from a few permutations.
"""

import argparse
import time
import warnings

from _report import environment, print_table, size_name, verdict
from sklearn.model_selection import permutation_test_score

from pyfastr import FasTRRegressorCV
from pyfastr.datasets import make_tensor_regression
from pyfastr.inference import permutation_test

SHAPE, N_SAMPLES, LIMIT, LOOPED = (12, 8), 80, 10.0, 2


def seconds_of(work) -> float:
    """Time a piece of work."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    """Print the seconds of each way, and the ratio to one fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--permutations", type=int, default=100)
    n = parser.parse_args().permutations
    X, y = make_tensor_regression(N_SAMPLES, SHAPE, noise=1.0, random_state=0)
    model = FasTRRegressorCV(random_state=0)
    options = {"cv": 5, "n_permutations": LOOPED, "random_state": 0}
    with warnings.catch_warnings():
        # Permuted responses are noise, and fits of noise say so.
        warnings.simplefilter("ignore")
        fit = seconds_of(lambda: model.fit(X, y))
        test = seconds_of(lambda: permutation_test(model, X, y, n_permutations=n, random_state=0))
        few = seconds_of(lambda: permutation_test_score(model, X, y, **options))
    loop = few * (n + 1) / (LOOPED + 1)
    ways = {"one fit": fit, "permutation_test": test, "loop, extrapolated": loop}
    rows = [[name, f"{s:.2f}", f"{s / fit:.1f}", "", ""] for name, s in ways.items()]
    rows[1][3:] = [f"≤ {LIMIT:g} s", verdict(test <= LIMIT)]
    title = f"{n} permutations, {size_name(SHAPE, N_SAMPLES)}"
    print_table(title, ["way", "seconds", "/ one fit", "needed", ""], rows)
    print(f"\n{environment()}")


if __name__ == "__main__":
    main()
