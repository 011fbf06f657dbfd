"""
Which entries are selected again and again
==========================================

A threshold gives zeros, but which ones it gives depends on the samples at hand. Stability selection
fits the model to many halves of the samples and counts how often each entry of each factor is not
zero. Entries that are found in most halves deserve trust.
"""

import matplotlib.pyplot as plt
import numpy as np

from pyfastr import FasTRRegressor
from pyfastr.inference import stability_selection

# %%
# Six of 20 rows and five of 15 columns matter. The noise has twice the variance of the signal.

rng = np.random.default_rng(1)
rows, columns = np.zeros(20), np.zeros(15)
rows[4:10], columns[7:12] = 1, 1
X = rng.standard_normal((200, 20, 15))
y = np.tensordot(X, np.outer(rows, columns), axes=2)
y += np.sqrt(2) * y.std() * rng.standard_normal(200)

# %%
# All 100 halves are fitted in one batch that shares each pass over X.

model = FasTRRegressor(threshold=0.3, ridge=0.1)
stability = stability_selection(model, X, y, n_subsamples=100, random_state=0)

for name, chosen, truth in zip(
    ("rows", "columns"), stability.selected(0.6), (rows, columns), strict=True
):
    found = np.flatnonzero(chosen).tolist()
    print(f"{name} in at least 60 % of the halves: {found}, truly {np.flatnonzero(truth).tolist()}")

# %%
# One fit to all samples, for comparison: which entries does it select that are truly zero?

once = model.fit(X, y)
for name, factor, truth in zip(("rows", "columns"), once.factors_, (rows, columns), strict=True):
    extra = np.flatnonzero((factor[:, 0] != 0) & (truth == 0)).tolist()
    print(f"one fit selects these {name} without need: {extra}")

# %%

axes = stability.plot()
for axis, truth, name in zip(axes, (rows, columns), ("row", "column"), strict=True):
    for place in np.flatnonzero(truth):
        axis.axvspan(place - 0.5, place + 0.5, color="C1", alpha=0.2, zorder=0, linewidth=0)
    axis.set_xlabel(f"{name} (shaded: truly not zero)")
plt.show()
