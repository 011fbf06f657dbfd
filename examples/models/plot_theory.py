r"""
The theorem's bound beside the error
====================================

The paper proves a bound on the largest error of each factor, of the order of
:math:`\bigl(\sqrt{k}\,\log p / (N d)\bigr)^{1/3}`: k of p entries are not zero, N is the number
of samples, and d is the smallest singular value of :math:`P^T P / N`, with P the samples contracted
with the other factor. The theorem leaves a constant open. ``threshold="theory"`` takes the same
order for the threshold, with a constant of 0.1 (:func:`pyfastr.theory_threshold`).
"""

import matplotlib.pyplot as plt
import numpy as np

from pyfastr import FasTRRegressor, theory_threshold
from pyfastr.datasets import make_tensor_regression

SHAPE, SIZES = (30, 30), (100, 200, 400, 800, 1600)


def bound(X: np.ndarray, other: np.ndarray, n_nonzero: int) -> float:
    """Order of the bound on the largest error of the first factor."""
    P = X @ other
    d = np.linalg.eigvalsh(P.T @ P / len(P))[0]
    return float((np.sqrt(n_nonzero) * np.log(P.shape[1]) / (len(P) * d)) ** (1 / 3))


# %%
# Half of the entries of each factor are zero. The error is that of the first factor, of unit length
# and up to its sign.

bounds, errors = [], []
print("    N  threshold  bound  largest error")
for n_samples in SIZES:
    X, y, W = make_tensor_regression(n_samples, SHAPE, sparsity=0.5, coef=True, random_state=0)
    left, _, right = np.linalg.svd(W)
    model = FasTRRegressor(threshold="theory", random_state=0).fit(X, y)
    found = model.factors_[0][:, 0]
    found *= np.sign(found @ left[:, 0])
    bounds.append(bound(X, right[0], SHAPE[0] // 2))
    errors.append(np.abs(found - left[:, 0]).max())
    threshold = theory_threshold(n_samples, SHAPE)
    print(f"{n_samples:5d}  {threshold:9.3f}  {bounds[-1]:5.2f}  {errors[-1]:13.4f}")

# %%
# The bound holds with room to spare, and tells little about the size of the error: a threshold
# chosen by folds (:class:`pyfastr.FasTRRegressorCV`) is the better choice for data.

figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
axis.loglog(SIZES, bounds, "s--", color="0.5", label="order of the bound")
axis.loglog(SIZES, errors, "o-", color="C0", label="largest error measured")
axis.set(xlabel="samples", ylabel="error of the first factor")
axis.legend()
plt.show()
