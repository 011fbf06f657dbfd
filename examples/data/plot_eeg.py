"""
Channels and times: a response in the EEG
=========================================

An evoked response is a map over the scalp that comes up at some time after the stimulus: an outer
product of a vector over channels and a vector over times. Here trials with and without such a
response are simulated on a ring of electrodes, below background activity that is stronger than the
response and correlated in space and time, and the classifier has to find where and when they
differ.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter1d
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from pyfastr import FasTRClassifierCV, TensorScaler

# %%
# Thirty-two electrodes in three rings, 80 times from −100 to 690 ms. Background activity comes from
# twelve sources with random maps and slow time courses.

rng = np.random.default_rng(3)
radius = np.repeat([0.25, 0.6, 0.95], [6, 11, 15])
angle = np.concatenate([np.linspace(0, 2 * np.pi, n, endpoint=False) for n in (6, 11, 15)])
places = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
times = np.arange(80) * 10 - 100


def scalp_map(centre: np.ndarray, width: float = 0.45) -> np.ndarray:
    """Potential of a source, largest at the electrode next to it."""
    return np.exp(-0.5 * np.sum((places - centre) ** 2, axis=1) / width**2)


sources = np.array([scalp_map(centre) for centre in rng.uniform(-0.8, 0.8, (12, 2))])
courses = gaussian_filter1d(rng.standard_normal((300, 12, 80)), 4, axis=2)
X = 1.5 * np.einsum("nkt,kc->nct", courses, sources)
X += 0.5 * rng.standard_normal(X.shape)

where, when = scalp_map(np.array([0.0, -0.5])), np.exp(-0.5 * ((times - 300) / 50) ** 2)
y = np.repeat(["standard", "target"], 150)
X[y == "target"] += 1.5 * np.outer(where, when)

# %%
# Half of the trials train the model, the others test it. The scaler gives every channel the same
# variance; inside the pipeline it learns from the training trials only. Beside it stands a ridge
# classifier of the 2560 numbers of a trial.

X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
choice = FasTRClassifierCV([0.0, 0.1, 0.2, 0.3], [0.1, 1.0, 10.0], random_state=0)
model = make_pipeline(TensorScaler(per=0), choice).fit(X, y)
flat = RidgeClassifierCV(alphas=np.logspace(-2, 5, 15)).fit(X.reshape(len(X), -1), y)

area = roc_auc_score(y_test, model.decision_function(X_test))
flat_area = roc_auc_score(y_test, flat.decision_function(X_test.reshape(len(X_test), -1)))
print(f"area under the ROC curve of new trials: FasTR {area:.3f}, ridge {flat_area:.3f}")

# %%
# The coefficient is a filter, not the response itself: to suppress the background it may weigh
# electrodes without any response. The pattern that the filter picks up is the covariance of the
# data with the decision, and that is what to compare with physiology.

scaled = model[:-1].transform(X)
decision = model.decision_function(X)
pattern = np.tensordot(decision - decision.mean(), scaled - scaled.mean(axis=0), axes=1) / len(X)

figure, axes = plt.subplots(2, 2, figsize=(9, 5.6), layout="constrained")
for row, (title, image) in zip(
    axes, {"coefficient": model[-1].coef_, "pattern": pattern}.items(), strict=True
):
    left, course, right = np.linalg.svd(image, full_matrices=False)
    sign = np.sign(right[0, np.argmax(np.abs(right[0]))])
    limit = np.abs(left[:, 0]).max()
    row[0].scatter(
        *places.T, c=sign * left[:, 0], s=160, cmap="RdBu_r", vmin=-limit, vmax=limit, ec="0.7"
    )
    row[0].add_patch(plt.Circle((0, 0), 1.1, fill=False, color="0.5"))
    row[0].set(title=f"{title}: channels", aspect="equal", xticks=[], yticks=[])
    row[1].axhline(0, color="0.8")
    row[1].plot(times, when / np.linalg.norm(when), color="0.7", label="true response")
    row[1].plot(times, sign * right[0], color="C0", label=title)
    row[1].set(title=f"{title}: times", xlabel="time (ms)")
    row[1].legend()
plt.show()
