"""
Beside other methods
====================

:mod:`pyfastr.baselines` has the methods that the paper compares, all with the same interface. Two
data sets: one whose coefficient is an outer product, as our model assumes, and one with a few
scattered pixels, where it is the wrong tool. Every method chooses its parameters by folds.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from pyfastr import FasTRRegressorCV
from pyfastr.baselines import GLTRM, ElementaryRidge, PublishedFasTR, Remurs, VectorizedLasso
from pyfastr.metrics import coefficient_error

# %%

rng = np.random.default_rng(0)
X = rng.standard_normal((150, 16, 16))
block = np.zeros((16, 16))
block[3:9, 5:13] = np.outer(np.hanning(8)[1:-1], np.hanning(10)[1:-1])
scattered = np.zeros((16, 16))
scattered.flat[rng.choice(256, 12, replace=False)] = rng.choice([-1, 1], 12)
truths = {"outer product": block, "scattered pixels": scattered}

methods = {
    "FasTR": FasTRRegressorCV(n_terms=1, random_state=0),
    "FasTR, terms by folds": FasTRRegressorCV(random_state=0),
    "FasTR as published": GridSearchCV(
        PublishedFasTR(max_iter=200, random_state=0),
        {"threshold": [0.0, 1e-3, 1e-2], "ridge": [0.01, 1.0, 10.0]},
    ),
    "GLTRM": GLTRM(random_state=0),
    "Remurs": GridSearchCV(
        Remurs(max_iter=200), {"alpha": [1.0, 10.0, 100.0], "beta": [1.0, 10.0]}
    ),
    "lasso": VectorizedLasso(),
    "EE-Ridge": GridSearchCV(ElementaryRidge(), {"threshold": [0.01, 0.05, 0.1]}),
}

# %%
# Errors of the coefficient: 0 is the truth, 1 is as good as a coefficient of zeros.

errors: dict[str, list[float]] = {name: [] for name in methods}
maps: dict[str, list[np.ndarray]] = {name: [] for name in methods}
with warnings.catch_warnings():
    # At the far ends of their grids some methods do not converge.
    warnings.simplefilter("ignore", ConvergenceWarning)
    for W in truths.values():
        y = np.tensordot(X, W, axes=2)
        y += 0.3 * y.std() * rng.standard_normal(len(X))
        for name, method in methods.items():
            fitted = method.fit(X, y)
            coef = getattr(fitted, "best_estimator_", fitted).coef_
            errors[name].append(coefficient_error(coef, W))
            maps[name].append(coef)

print(f"{'':20s} " + "  ".join(truths))
for name, (first, second) in errors.items():
    print(f"{name:20s} {first:13.2f}  {second:16.2f}")

# %%
# The pictures say why. A sum of outer products spreads scattered pixels along rows and columns; the
# lasso has no idea of neighbours, and needs more samples for a block than there are here.

shown = ["FasTR", "FasTR, terms by folds", "Remurs", "lasso"]
figure, axes = plt.subplots(2, 5, figsize=(12, 5), layout="constrained")
for row, (truth, W) in enumerate(truths.items()):
    images = [W, *(maps[name][row] for name in shown)]
    titles = [f"truth: {truth}", *(f"{name} ({errors[name][row]:.2f})" for name in shown)]
    for axis, image, title in zip(axes[row], images, titles, strict=True):
        axis.imshow(image, vmin=-1, vmax=1, cmap="RdBu_r")
        axis.set_title(title, fontsize=10)
        axis.set(xticks=[], yticks=[])
plt.show()
