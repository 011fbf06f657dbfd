"""
The path of the factors along the threshold
===========================================

The threshold is a share of the largest entry of a factor, between 0 and 1.
:func:`pyfastr.fastr_path` follows the solution from no threshold to a high one, all points in one
batch.
"""

import matplotlib.pyplot as plt
import numpy as np

from pyfastr import FasTRRegressorCV, fastr_path

# %%
# Half of the entries of both true factors are zero, and half of y is noise.

rng = np.random.default_rng(4)
true = [rng.uniform(0.5, 1.5, size) * rng.choice([-1, 1], size) for size in (16, 12)]
for factor in true:
    factor[len(factor) // 2 :] = 0
W = np.outer(*true)
X = rng.standard_normal((120, 16, 12))
y = np.tensordot(X, W, axes=2)
y += y.std() * rng.standard_normal(120)

path = fastr_path(X, y, ridge=0.1, random_state=0)

# %%
# A line for each entry. Grey ones are truly zero, and the threshold takes most of them out before
# it reaches the others. The dashed line is where cross-validation stops.

chosen = FasTRRegressorCV(ridges=[0.1], random_state=0).fit(X, y).threshold_
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
for axis, factor, truth, name in zip(axes, path.factors, true, ("rows", "columns"), strict=True):
    axis.plot(path.thresholds, factor[:, truth == 0, 0], color="0.75")
    axis.plot(path.thresholds, factor[:, truth != 0, 0])
    axis.axvline(chosen, color="k", linestyle="--", linewidth=1)
    axis.set(title=name, xlabel="threshold")
axes[0].set_ylabel("entry of the unit factor")
plt.show()

# %%
# How many entries are left at each threshold:

for index in range(0, len(path.thresholds), 5):
    left = " × ".join(str(mode[index]) for mode in np.atleast_2d(path.n_nonzero.T))
    print(f"threshold {path.thresholds[index]:.2f}: {left} entries")
