"""
Scaling inside a pipeline, and which slices matter
==================================================

Channels with large units would dominate a model with a ridge. :class:`pyfastr.TensorScaler` gives
each channel the same variance. Put it in a pipeline, so that what it learns comes from training
samples only. Scikit-learn's permutation importance does not take samples that are arrays;
:func:`pyfastr.inference.slice_importance` does, and asks by how much the score falls when one
slice, a channel or a time, is shuffled between samples.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from pyfastr import FasTRRegressor, TensorScaler
from pyfastr.inference import slice_importance

# %%
# Ten channels in units that differ by factors of up to a thousand, 20 times. Channels 2, 3 and 4 at
# the times 8 to 13 tell of the response.

rng = np.random.default_rng(0)
units = 10.0 ** rng.integers(-1, 3, size=10)
signal = rng.standard_normal((240, 10, 20))
y = signal[:, 2:5, 8:14].sum(axis=(1, 2)) + 2 * rng.standard_normal(240)
X = signal * units[:, None]
train, test = slice(0, 160), slice(160, 240)

# %%
# The same model without and with the scaler.

plain = FasTRRegressor(threshold=0.1, ridge=0.1, random_state=0)
scaled = make_pipeline(TensorScaler(per=0), plain)
for name, model in {"as it is": plain, "scaled per channel": scaled}.items():
    scores = cross_val_score(model, X[train], y[train])
    print(f"{name}: cross-validated R² {scores.mean():.2f}")

# %%
# The importance of slices, on samples that had no part in the fit. A channel is shuffled as a
# whole, all its times together.

scaled.fit(X[train], y[train])
importance = slice_importance(scaled, X[test], y[test], random_state=0)
importance.plot()
plt.show()
