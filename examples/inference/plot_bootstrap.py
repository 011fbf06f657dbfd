"""
Intervals for the factors
=========================

How far would the factors move with other samples? The bootstrap draws samples with repetition,
fits each draw from the solution at hand, matches signs and order of the terms, and reads intervals
off the spread.
"""

import matplotlib.pyplot as plt
import numpy as np

from pyfastr import FasTRRegressor
from pyfastr.inference import bootstrap_factors

# %%

rng = np.random.default_rng(0)
profile, weights = np.sin(np.linspace(0, 2 * np.pi, 25)), np.array([0, 0.3, 1, 1, 0.3, 0, 0, 0])
X = rng.standard_normal((150, 25, 8))
y = np.tensordot(X, np.outer(profile, weights), axes=2) + 3 * rng.standard_normal(150)

model = FasTRRegressor(ridge=0.01, random_state=0)
result = bootstrap_factors(model, X, y, n_bootstrap=200, random_state=0)

# %%
# Intervals are of unit vectors: if one entry grows, the others shrink. They are narrower for the
# mode of 8 entries than for the one of 25, because each entry is then estimated from more numbers.
# A threshold or a large ridge pulls factors towards zero, and the intervals do not make up for it.

truths = [v / np.linalg.norm(v) for v in (profile, weights)]
axes = result.plot()
covered = 0
for axis, truth, factor, lower, upper in zip(
    axes, truths, result.factors, result.lower, result.upper, strict=True
):
    turned = truth * np.sign(truth @ factor[:, 0])
    covered += np.count_nonzero((lower[:, 0] <= turned) & (turned <= upper[:, 0]))
    axis.plot(turned, color="k", linewidth=1, label="truth", zorder=3)
axes[0].legend()
print(f"{covered} of {25 + 8} intervals of 95 % cover the truth")
plt.show()
