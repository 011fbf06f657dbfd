"""
Saving a model and handing it on
================================

A model file holds parameters, factors and a summary of the choice, and no code: it can be loaded
from people you do not know. Predictions after loading are equal to the last bit.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

import pyfastr
from pyfastr import FasTRRegressorCV, TensorScaler
from pyfastr.datasets import make_tensor_regression
from pyfastr.display import CoefficientDisplay
from pyfastr.persistence import ModelFileError, read_header

# %%

X, y = make_tensor_regression(200, (20, 15), sparsity=0.5, random_state=0)
model = FasTRRegressorCV(random_state=0).fit(X[:150], y[:150])

folder = Path(tempfile.mkdtemp())
path = model.save(folder / "model.fastr")
print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB")

# %%
# Whoever gets the file needs pyfastr and nothing else.

again = pyfastr.load(path)
print("same predictions:", np.array_equal(again.predict(X), model.predict(X)))
print(f"R² on 50 samples held out: {again.score(X[150:], y[150:]):.4f}")
CoefficientDisplay.from_estimator(again)
plt.show()

# %%
# What the file says about itself, without loading any array:

header = read_header(path)
for key, value in header.items():
    print(f"{key}: {str(value)[:70]}")

# %%
# Pipelines of scaler and model are saved by :func:`pyfastr.save`.

pipeline = make_pipeline(TensorScaler(), model).fit(X[:150], y[:150])
pyfastr.save(pipeline, folder / "pipeline.fastr")
print(type(pyfastr.load(folder / "pipeline.fastr")).__name__)

# %%
# A file that is damaged, or is none of ours, is refused.

(folder / "broken.fastr").write_bytes(path.read_bytes()[:1000])
try:
    pyfastr.load(folder / "broken.fastr")
except ModelFileError as error:
    print(str(error).replace(str(folder), "..."))

# %%
# For other programs: a MATLAB file, and a CP tensor for tensorly.

model.to_mat(folder / "model.mat")
cp = model.to_tensorly()
print("weights", cp.weights.shape, "factors", [factor.shape for factor in cp.factors])
