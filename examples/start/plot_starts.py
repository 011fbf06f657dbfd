"""
Local minima, and how to read ``starts_``
=========================================

The fitting problem has many local solutions. Every fit therefore runs a search from many starts and
reports how it went. This example shows three situations: plenty of samples, just enough, too few.
"""

import matplotlib.pyplot as plt

from pyfastr import FasTRRegressor
from pyfastr.datasets import make_tensor_regression
from pyfastr.display import StartsDisplay
from pyfastr.metrics import coefficient_error

# %%
# Samples of shape 12×12×12 have 3 · 12 − 3 + 1 = 34 free parameters, and the intercept is one more.

models = {}
for n_samples in (300, 60, 30):
    X, y, W = make_tensor_regression(n_samples, (12, 12, 12), coef=True, random_state=5)
    model = FasTRRegressor(random_state=0).fit(X, y)
    starts = model.starts_
    models[n_samples] = model
    print(
        f"{n_samples:3d} samples: {starts.n_starts} starts, {starts.n_hits} of {starts.n_polished} "
        f"polished ones agree, gap {starts.gap:.3g}, sure: {starts.sure}, "
        f"error of the coefficient {coefficient_error(model.coef_, W):.3f}"
    )

# %%
# With 300 samples a few starts are enough: all that were polished end in one place. With 60 the
# search takes more of them. With 30, fewer samples than free parameters, many different
# coefficients fit the samples almost perfectly: no search can know which one is right, and the
# model says that it is not sure. More samples help then, or a larger ridge.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for axis, (n_samples, model) in zip(axes, models.items(), strict=True):
    StartsDisplay.from_estimator(model, ax=axis)
    axis.set_xlabel(f"polished solution ({n_samples} samples)")
plt.show()
