"""
Recovering a sparse coefficient
===============================

A sample is a 30×40 image, so an ordinary linear model has 1200 coefficients to estimate. If the
coefficient is an outer product of two vectors, only 70 numbers have to be learnt, and 150 samples
are plenty.
"""

import matplotlib.pyplot as plt
import numpy as np

from pyfastr import FasTRRegressorCV
from pyfastr.metrics import coefficient_error, support_precision, support_recall

# %%
# The true coefficient is non-zero in one rectangle: rows 8 to 15 times columns 18 to 29, with a
# smooth profile along each. The noise is a tenth of the signal.

rng = np.random.default_rng(0)
rows, columns = np.zeros(30), np.zeros(40)
rows[8:16] = np.hanning(10)[1:-1]
columns[18:30] = np.hanning(14)[1:-1]
W = np.outer(rows, columns)

X = rng.standard_normal((350, 30, 40))
signal = np.tensordot(X, W, axes=2)
y = 5 + signal + 0.1 * signal.std() * rng.standard_normal(350)

# %%
# :class:`~pyfastr.FasTRRegressorCV` chooses the threshold, which makes the coefficient sparse, and
# the ridge, which steadies it, by five folds. All folds and all points of the grid are fitted
# together.

model = FasTRRegressorCV(random_state=0).fit(X[:150], y[:150])
print(f"threshold {model.threshold_:.2g}, ridge {model.ridge_:.2g}")
print(f"R² on 200 samples held out: {model.score(X[150:], y[150:]):.3f}")
print(f"relative error of the coefficient: {coefficient_error(model.coef_, W):.3f}")
print(f"entries found that are truly not zero: {support_precision(model.coef_, W):.0%}")
print(f"entries truly not zero that were found: {support_recall(model.coef_, W):.0%}")

# %%
# Nothing was found where there is nothing. What was missed are the ends of the two profiles, where
# the truth is close to zero. One sample, to show what the model has to work with, beside truth and
# estimate:

limit = W.max()
figure, axes = plt.subplots(1, 3, figsize=(9, 2.9), layout="constrained")
panels = {"one sample": X[0] / 3, "true coefficient": W, "estimated coefficient": model.coef_}
for axis, (title, image) in zip(axes, panels.items(), strict=True):
    picture = axis.imshow(image, vmin=-limit, vmax=limit, cmap="RdBu_r")
    axis.set_title(title)
figure.colorbar(picture, ax=axes, shrink=0.85, label="coefficient")
plt.show()

# %%
# Each factor is a vector along one axis of the image. Up to its sign and scale, it is the profile
# that made the data.

figure, axes = plt.subplots(1, 2, figsize=(9, 2.6), layout="constrained")
for axis, factor, truth, name in zip(
    axes, model.factors_, (rows, columns), ("row", "column"), strict=True
):
    found = factor[:, 0] * np.sign(factor[:, 0] @ truth)
    axis.plot(truth / np.linalg.norm(truth), color="0.6", linewidth=4, label="truth")
    axis.plot(found, "o-", markersize=3, color="C0", label="estimate")
    axis.set_xlabel(name)
axes[0].set_ylabel("factor of unit length")
axes[0].legend()
plt.show()
