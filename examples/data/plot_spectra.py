"""
Spectra at several temperatures
===============================

In chemometrics a sample is often measured twice over: a spectrum at each of several temperatures,
or an emission spectrum for each excitation. The absorbance of one substance is then nearly an outer
product, a band shape times a temperature profile, and so is the coefficient that measures its
concentration. The data here are simulated: three substances whose bands overlap, 60 mixtures,
120 wavelengths, 7 temperatures.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict

from pyfastr import FasTRRegressorCV

# %%
# Each substance has a band of two peaks and a response to temperature. A baseline drifts from one
# sample to the next, as it does in real instruments.

rng = np.random.default_rng(1)
wavelengths = np.linspace(900, 1100, 120)
temperatures = np.linspace(30, 60, 7)


def band(*peaks: tuple[float, float, float]) -> np.ndarray:
    """Sum of Gaussian peaks (centre, width, height) over the wavelengths."""
    return sum(h * np.exp(-0.5 * ((wavelengths - c) / w) ** 2) for c, w, h in peaks)


bands = np.array(
    [
        band((960, 8, 1.0), (1040, 12, 0.4)),
        band((968, 10, 0.9), (1010, 15, 0.6)),
        band((985, 14, 0.8), (1060, 10, 0.5)),
    ]
)
t = (temperatures - 45) / 15
profiles = np.array([1 + 0.3 * t, 1 - 0.2 * t, 1 + 0.25 * t**2])

concentrations = rng.dirichlet((1, 1, 1), size=60)
X = np.einsum("nk,kw,kt->nwt", concentrations, bands, profiles)
drift = rng.standard_normal((60, 2)) * (0.2, 0.1)
X += drift[:, :1, None] + drift[:, 1:, None] * np.linspace(-1, 1, 120)[:, None]
X += 0.1 * rng.standard_normal(X.shape)
y = concentrations[:, 0]

# %%
# Predict the concentration of the first substance in mixtures that the model has not seen. Ridge
# regression on the 840 numbers of a sample is a usual choice, and hard to beat: many wavelengths
# carry the signal.

folds = KFold(5, shuffle=True, random_state=0)
ours = FasTRRegressorCV(n_terms=1, refit=True, random_state=0)  # one term, to be read
prediction = cross_val_predict(ours, X, y, cv=folds)
ridge = RidgeCV(alphas=np.logspace(-4, 4, 25))
ridge_prediction = cross_val_predict(ridge, X.reshape(60, -1), y, cv=folds)
print(f"FasTR: R² {r2_score(y, prediction):.4f}")
print(f"ridge: R² {r2_score(y, ridge_prediction):.4f}")

# %%
# What the model gives beside the number is a spectrum and a temperature profile to read. The
# coefficient is positive where the first substance absorbs and negative where the others do.

model = ours.fit(X, y)
spectral, thermal = (factor[:, 0] for factor in model.factors_)
sign = np.sign(thermal.sum())
figure, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
axes[0].plot(wavelengths, bands.T)
axes[0].set(title="bands of the three substances", xlabel="wavelength (nm)")
axes[1].axhline(0, color="0.8")
axes[1].plot(wavelengths, sign * spectral, color="k")
axes[1].set(title="factor of the wavelengths", xlabel="wavelength (nm)")
axes[2].scatter(y, ridge_prediction, marker="x", color="0.6", label="ridge")
axes[2].scatter(y, prediction, s=14, label="FasTR")
axes[2].axline((0.5, 0.5), slope=1, color="0.8", zorder=0)
axes[2].set(title="held-out mixtures", xlabel="concentration", ylabel="predicted")
axes[2].legend()
plt.show()
