"""
Names and coordinates with xarray
=================================

Samples often come with names for their axes and coordinates along them. Given an
:class:`xarray.DataArray`, a model keeps both: in the coefficient, in pictures, and in the checks of
what it is asked to predict.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from pyfastr import FasTRRegressorCV
from pyfastr.display import CoefficientDisplay, FactorsDisplay

# %%
# Spectrograms: 180 recordings of 30 frequencies and 40 times. The response follows the power around
# 8 Hz in the first second.

rng = np.random.default_rng(0)
X = xr.DataArray(
    rng.standard_normal((180, 30, 40)),
    dims=("recording", "frequency", "time"),
    coords={"frequency": np.arange(1.0, 31.0), "time": np.arange(40) * 0.05},
)
weight = np.exp(-0.5 * ((X.frequency - 8) / 2) ** 2) * (X.time < 1)
signal = (X * weight).sum(("frequency", "time"))
y = signal.values + 0.5 * signal.values.std() * rng.standard_normal(180)

model = FasTRRegressorCV(random_state=0).fit(X, y)
print("modes:", model.mode_names_in_)

# %%
# ``to_xarray`` returns the coefficient with names and coordinates, so questions are asked in hertz
# and seconds.

coef = model.to_xarray()
peak = coef.where(coef == coef.max(), drop=True)
print(f"largest at {peak.frequency.item():.0f} Hz and {peak.time.item():.2f} s")
inside = abs(coef.sel(frequency=slice(4, 12), time=slice(0, 0.99))).sum() / abs(coef).sum()
print(f"share of the coefficient at 4 to 12 Hz in the first second: {inside.item():.0%}")

# %%
# Pictures are labelled by the same names.

CoefficientDisplay.from_estimator(model)
plt.show()

# %%

FactorsDisplay.from_estimator(model)
plt.show()

# %%
# Arrays whose axes do not match those of the fit are refused.

try:
    model.predict(X.transpose("recording", "time", "frequency"))
except ValueError as error:
    print(error)
