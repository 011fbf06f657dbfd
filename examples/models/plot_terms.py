"""
More than one term
==================

One outer product is a strong assumption. A coefficient with two separate spots, or a shape that is
not a rectangle, needs a sum of several. The folds that choose threshold and ridge choose their
number too: terms are added while held-out samples show a gain.
"""

import matplotlib.pyplot as plt
import numpy as np

from pyfastr import FasTRRegressorCV
from pyfastr.metrics import coefficient_error

# %%
# Two spots are two terms exactly. A cross also takes two: a bar each. A disc is of high rank,
# though a few terms come near it.

row, column = np.mgrid[:16, :16]
spots = np.zeros((16, 16))
spots[2:6, 2:7] = 1
spots[9:14, 8:13] = -1
cross = ((abs(row - 7) < 2) | (abs(column - 8) < 2)).astype(float)
disc = ((row - 7) ** 2 + (column - 8) ** 2 < 26).astype(float)
truths = {"two spots": spots, "a cross": cross, "a disc": disc}

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 16, 16))
noise = rng.standard_normal(300)

# %%
# Every coefficient is estimated with one term, and with as many as the folds choose.

options = {"thresholds": [0.0, 0.1, 0.2], "ridges": [0.01, 0.1], "n_init": 16, "random_state": 0}

figure, axes = plt.subplots(3, 3, figsize=(8, 8), layout="constrained")
for axis, (name, W) in zip(axes, truths.items(), strict=True):
    y = np.tensordot(X, W, axes=2) + 2 * noise
    one = FasTRRegressorCV(**options, n_terms=1).fit(X, y)
    chosen = FasTRRegressorCV(**options).fit(X, y)
    print(
        f"{name}: error {coefficient_error(one.coef_, W):.2f} with one term, "
        f"{coefficient_error(chosen.coef_, W):.2f} with {chosen.n_terms_}"
    )
    titles = [f"truth: {name}", "one term", f"{chosen.n_terms_} terms, chosen by folds"]
    for panel, image, title in zip(axis, (W, one.coef_, chosen.coef_), titles, strict=True):
        panel.imshow(image, vmin=-1, vmax=1, cmap="RdBu_r")
        panel.set(title=title, xticks=[], yticks=[])
plt.show()

# %%
# More terms are not free: each adds 16 + 16 − 1 parameters here, and with few samples the folds
# prefer fewer. ``choice_`` says what each term was worth; see :doc:`/guide/terms`.
