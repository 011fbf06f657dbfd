"""
Telling handwritten digits apart
================================

The digits that come with scikit-learn are images of 8×8 pixels. A linear classifier has a weight
for each of the 64; a unit-rank one has 16 numbers, eight for rows and eight for columns. How far
does that go, and what do more terms buy?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split

from pyfastr import FasTRClassifierCV

# %%
# Threes and eights are among the pairs that are easily confused.

digits = load_digits()
wanted = np.isin(digits.target, (3, 8))
X, y = digits.images[wanted] / 16, digits.target[wanted]
print(f"{len(X)} images of {X.shape[1]}×{X.shape[2]} pixels")

# %%
# Half of the images choose and fit the models, the others test them. The competitor is logistic
# regression on the 64 pixels, which chooses its penalty in the same way.

X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
models = {
    terms: FasTRClassifierCV(
        [0.0, 0.1], [0.1, 1.0, 10.0], terms, loss="logistic", random_state=0
    ).fit(X, y)
    for terms in (1, 2, 4)
}
plain = GridSearchCV(LogisticRegression(max_iter=1000), {"C": np.logspace(-3, 3, 13)})
plain.fit(X.reshape(len(X), -1), y)

for terms, model in models.items():
    wrong = np.count_nonzero(model.predict(X_test) != y_test)
    print(f"{terms} term{'s' * (terms > 1)}: {wrong} of {len(y_test)} images wrong")
wrong = np.count_nonzero(plain.predict(X_test.reshape(len(X_test), -1)) != y_test)
print(f"logistic regression: {wrong} of {len(y_test)} images wrong")

# %%
# The weights can be looked at as images. Blue pixels speak for an eight, red ones for a three: the
# left side of the upper and of the lower loop, which a three leaves open.

figure, axes = plt.subplots(1, 4, figsize=(10, 2.9), layout="constrained")
axes[0].imshow(X[y == 8].mean(axis=0) - X[y == 3].mean(axis=0), cmap="RdBu", vmin=-0.6, vmax=0.6)
axes[0].set_title("mean 8 − mean 3")
for axis, (terms, model) in zip(axes[1:], models.items(), strict=True):
    limit = np.abs(model.coef_).max()
    axis.imshow(model.coef_, cmap="RdBu", vmin=-limit, vmax=limit)
    axis.set_title(f"coefficient, {terms} term{'s' * (terms > 1)}")
for axis in axes:
    axis.set_axis_off()
plt.show()
