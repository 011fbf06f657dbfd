"""The error bound of the paper's theorem beside the error that is measured.

For each mode the theorem bounds the largest error of the component by the order of
``(sqrt(k) log(p) / (N d)) ** (1/3)``: k entries of p are not zero, and d is the smallest singular
value of ``P'P / N``, P being the samples contracted with the other components. It leaves the
constant open; ``threshold="theory"`` takes the same order for the threshold.
"""

import numpy as np

from pyfastr import FasTRRegressor, theory_threshold
from pyfastr.datasets import make_tensor_regression

SHAPE, SPARSITY = (30, 30), 0.5


def true_factors(W: np.ndarray) -> list[np.ndarray]:
    """Components of unit length of a coefficient of rank one."""
    left, _, right = np.linalg.svd(W)
    return [left[:, 0], right[0]]


def bound(X: np.ndarray, factors: list[np.ndarray], mode: int) -> float:
    """Order of the theorem's bound on the largest error of one component."""
    P = np.tensordot(X, factors[1 - mode], axes=(2 - mode, 0))
    d = np.linalg.eigvalsh(P.T @ P / len(P))[0]
    k = np.count_nonzero(np.abs(factors[mode]) > 1e-12)
    return float((np.sqrt(k) * np.log(P.shape[1]) / (len(P) * d)) ** (1 / 3))


def largest_error(found: np.ndarray, true: np.ndarray) -> float:
    """Largest difference of the entries, up to the sign."""
    return float(np.abs(found * np.sign(found @ true) - true).max())


def main() -> None:
    """Print a line for each number of samples."""
    print("    N  threshold  bound (mode 1, 2)  largest error (mode 1, 2)")
    for n_samples in (100, 200, 400, 800, 1600):
        X, y, W = make_tensor_regression(
            n_samples, SHAPE, sparsity=SPARSITY, coef=True, random_state=0
        )
        model = FasTRRegressor(threshold="theory", random_state=0).fit(X, y)
        true = true_factors(W)
        bounds = [bound(X, true, mode) for mode in (0, 1)]
        errors = [largest_error(f[:, 0], w) for f, w in zip(model.factors_, true, strict=True)]
        print(
            f"{n_samples:5d}  {theory_threshold(n_samples, SHAPE):9.3f}"
            f"  {bounds[0]:8.2f} {bounds[1]:8.2f}  {errors[0]:12.4f} {errors[1]:12.4f}"
        )


if __name__ == "__main__":
    main()
