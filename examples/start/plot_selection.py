"""
Choosing threshold and ridge
============================

Two numbers shape a model: the threshold (how sparse) and the ridge (how steady). Neither has a
unit, so the same grid serves every data set, and :class:`~pyfastr.FasTRRegressorCV` chooses from it
by folds. This example shows what the choice looks like and how to check it.
"""

import matplotlib.pyplot as plt
import numpy as np

from pyfastr import FasTRRegressorCV
from pyfastr.display import PredictionDisplay, SelectionDisplay

# %%
# As much noise as signal: here the ridge matters, and even the truth would have an R² of only about
# one half.

rng = np.random.default_rng(0)
rows, columns = np.zeros(20), np.zeros(16)
rows[3:9], columns[6:12] = 1, 1
X = rng.standard_normal((200, 20, 16))
y = np.tensordot(X, np.outer(rows, columns), axes=2)
y += y.std() * rng.standard_normal(200)

model = FasTRRegressorCV(random_state=0).fit(X, y)
print(f"chosen: threshold {model.threshold_:.2f}, ridge {model.ridge_:.3g}")
print(f"cross-validated R² of the choice: {model.best_score_:.3f}")

# %%
# A line for each ridge, along the threshold, and the point that was taken. Among thresholds whose
# scores differ by chance the highest is preferred: of models that predict alike, the sparsest.

SelectionDisplay.from_estimator(model)
plt.show()

# %%
# Predicted against observed, each sample predicted by a model of the folds that did not see it.
# This is what to judge a model by; the fit to the training samples always looks better.

PredictionDisplay.from_estimator(model)
plt.show()

# %%
# ``one_standard_error=True`` goes further and takes the simplest model within a standard error of
# the best.

simple = FasTRRegressorCV(one_standard_error=True, random_state=0).fit(X, y)
for name, fitted in {"default": model, "one standard error": simple}.items():
    sizes = " × ".join(str(np.count_nonzero(factor)) for factor in fitted.factors_)
    print(f"{name}: {sizes} entries are not zero (truly 6 × 6)")
