"""
Confounds belong in the model
=============================

Older people have other scans, and older people have other scores. A model that predicts the score
from scans may then do no more than guess the age. What is known about the subjects goes into
``covariates``: columns with an ordinary coefficient each, without penalty, fitted together with the
rest, within every fold. This example shows what happens otherwise.
"""

import matplotlib.pyplot as plt
import numpy as np

from pyfastr import FasTRRegressorCV
from pyfastr.metrics import coefficient_error

# %%
# Age shows in the lower left of every image. The score depends on age, and on what another part of
# the image shows, at the upper right.

rng = np.random.default_rng(0)
n = 300
age = rng.standard_normal(n)
atrophy, activity = np.zeros((18, 18)), np.zeros((18, 18))
atrophy[11:16, 2:8] = 1
activity[2:6, 10:15] = 1
X = rng.standard_normal((n, 18, 18)) + 0.5 * age[:, None, None] * atrophy
y = np.tensordot(X, activity, axes=2) + 6 * age + 2 * rng.standard_normal(n)
train, test = slice(0, 150), slice(150, n)

# %%
# Three ways to deal with it: not at all; take age out of y beforehand; hand age to the model.

options = {"ridges": [0.01, 0.1, 1.0], "random_state": 0}
ignored = FasTRRegressorCV(**options).fit(X[train], y[train])
slope = np.polyfit(age[train], y[train], 1)
removed = FasTRRegressorCV(**options).fit(X[train], y[train] - np.polyval(slope, age[train]))
Z = age[:, None]
modelled = FasTRRegressorCV(**options).fit(X[train], y[train], covariates=Z[train])

for name, model in {"ignored": ignored, "removed": removed, "modelled": modelled}.items():
    print(f"age {name}: error of the coefficient {coefficient_error(model.coef_, activity):.2f}")
print(f"score per unit of age: {modelled.covariate_coef_[0]:.1f} (truly 6)")

# %%
# Without the covariate the model reads the age off the image: its coefficient has a spot where age
# shows, although the score has nothing to do with that part. The covariate leaves the spot that
# matters. To take age out of y beforehand does as well here, but has to be learnt from the training
# samples alone, in each fold anew; covariates are, wherever the model chooses or is tested.

figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
panels = [activity, ignored.coef_, removed.coef_, modelled.coef_]
titles = ["truth", "age ignored", "age removed from y", "age as covariate"]
for axis, image, title in zip(axes, panels, titles, strict=True):
    axis.imshow(image, vmin=-1, vmax=1, cmap="RdBu_r")
    axis.set(title=title, xticks=[], yticks=[])
plt.show()

# %%
# The leak. Suppose that the score has *only* to do with age. The images then tell something of it,
# since they show the age, and a good held-out R² seems to speak for a link of images and score. The
# question is what the images add to the age: compare with covariates against covariates alone.

y = 6 * age + 2 * rng.standard_normal(n)
naive = FasTRRegressorCV(**options).fit(X[train], y[train])
honest = FasTRRegressorCV(**options).fit(X[train], y[train], covariates=Z[train])
slope = np.polyfit(age[train], y[train], 1)
alone = 1 - np.var(y[test] - np.polyval(slope, age[test])) / np.var(y[test])
print(f"R² of images alone:         {naive.score(X[test], y[test]):.2f}")
print(f"R² of age alone:            {alone:.2f}")
print(f"R² of images and covariate: {honest.score(X[test], y[test], covariates=Z[test]):.2f}")

# %%
# The images alone seem to do well, and add nothing to what the age tells.
