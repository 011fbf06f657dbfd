"""
Reading a report
================

``generate_report`` describes a fitted model in one self-contained page: how well it predicts
samples held out, what was chosen, a viewer to walk through the coefficient, how the search went,
warnings in plain words, and a paragraph for the methods section. The page asks nothing of any
network.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from pyfastr import FasTRRegressorCV
from pyfastr.display import CoefficientDisplay

# %%
# A model of volumes.

rng = np.random.default_rng(0)
profiles = [np.exp(-0.5 * ((np.arange(n) - c) / 1.5) ** 2) for n, c in ((12, 4), (14, 8), (10, 5))]
W = np.einsum("i,j,k->ijk", *profiles)
X = rng.standard_normal((160, *W.shape))
y = np.tensordot(X, W, axes=3)
y += 0.5 * y.std() * rng.standard_normal(160)

model = FasTRRegressorCV(random_state=0).fit(X[:120], y[:120])
CoefficientDisplay.from_estimator(model)
plt.show()

# %%
# With samples that had no part in the fit, the page also tells how well those are predicted. In a
# notebook the report shows itself, as it does here. Click into a slice, or use the arrow keys, to
# move the crosshair.

model.generate_report(X[120:], y[120:], title="Volumes, simulated")

# %%
# Elsewhere, save it or open it in a browser (``report.open_in_browser()``).

report = model.generate_report(X[120:], y[120:], title="Volumes, simulated")
path = Path(tempfile.mkdtemp()) / "report.html"
report.save_as_html(path)
print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB, one file")
