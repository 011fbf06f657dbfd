"""
Is the score more than chance?
==============================

With few samples a cross-validated score moves a lot by luck. The permutation test asks how often
the same procedure, folds and choice of parameters included, scores as well when the responses are
shuffled. All permutations and folds are further models of one batch, so the test takes seconds.
"""

import matplotlib.pyplot as plt
import numpy as np

from pyfastr import FasTRRegressorCV
from pyfastr.inference import permutation_test

# %%
# Two studies of 80 samples. In the first half of the variance of y comes from the images, in the
# second nothing does.

rng = np.random.default_rng(2)
X = rng.standard_normal((80, 8, 6))
W = np.outer(np.hanning(8), np.hanning(6))
signal = np.tensordot(X, W, axes=2)
noise = rng.standard_normal(80)
responses = {
    "images tell something": signal / signal.std() + noise,
    "images tell nothing": rng.standard_normal(80),
}

# %%
# The model chooses its ridge. The statistic is then the best mean score of the grid. That is
# optimistic, and equally so for every permutation, which keeps the test valid.

model = FasTRRegressorCV([0.0], [0.1, 1.0])
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained", sharex=True)
for axis, (name, y) in zip(axes, responses.items(), strict=True):
    test = permutation_test(model, X, y, n_permutations=199, random_state=0)
    print(f"{name}: R² {test.score:.2f}, p = {test.p_value:.3f}")
    test.plot(ax=axis)
    axis.set_title(name)
plt.show()
