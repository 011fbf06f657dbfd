"""
From published FasTR to pyfastr
===============================

The published algorithm starts from one random guess and updates one factor after the other. That
works where samples are plenty. Where they are few, most guesses lead into a wrong valley, and the
algorithm has no way to notice. Here both are shown on the same data: Algorithm 1 to the letter
(:class:`pyfastr.baselines.PublishedFasTR`) from 40 guesses, and :class:`pyfastr.FasTRRegressor`.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pyfastr import FasTRRegressor
from pyfastr.baselines import PublishedFasTR
from pyfastr.datasets import make_tensor_regression
from pyfastr.metrics import coefficient_error

# %%
# The paper's simulation at 20×20×20: 8000 coefficients, 58 free parameters, 100 samples.

X, y, W = make_tensor_regression(100, (20, 20, 20), coef=True, random_state=0)

with warnings.catch_warnings():
    # Guesses that lead nowhere often do not converge either.
    warnings.simplefilter("ignore", ConvergenceWarning)
    published = [PublishedFasTR(random_state=seed).fit(X, y) for seed in range(40)]
errors = np.array([coefficient_error(model.coef_, W) for model in published])
print(f"published: {np.count_nonzero(errors < 0.05)} of 40 guesses find the coefficient")

# %%
# Ours tries many starts together, drops the worse ones early, polishes the rest, and stops when one
# solution stands out. It says so in ``starts_``.

ours = FasTRRegressor(random_state=0).fit(X, y)
starts = ours.starts_
print(f"pyfastr: error {coefficient_error(ours.coef_, W):.4f}")
print(f"{starts.n_starts} starts, {starts.n_hits} of {starts.n_polished} polished ones agree")
print(f"the next best solution leaves {starts.gap:.3g} times its squared residuals")
print(f"sure: {starts.sure}")

# %%
# The training residuals tell good from bad without any knowledge of the truth: solutions in wrong
# valleys fit visibly worse.

residuals = [np.mean((y - model.predict(X)) ** 2) for model in published]
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
axis.loglog(errors, residuals, "o", color="C1", alpha=0.7, label="published, 40 random guesses")
axis.loglog(
    coefficient_error(ours.coef_, W),
    np.mean((y - ours.predict(X)) ** 2),
    "*",
    markersize=16,
    color="C0",
    label="FasTRRegressor",
)
axis.set(xlabel="error of the coefficient", ylabel="mean squared residual (training)")
axis.legend()
plt.show()

# %%
# What changes in a script
# ------------------------
# ``threshold`` and ``ridge`` have the same roles, λ and ε in the paper, but no units any more: the
# threshold is a share of the largest entry of each factor, the ridge is relative to the size of the
# data. Values tuned for the published form do not carry over; let
# :class:`pyfastr.FasTRRegressorCV` choose. An intercept is fitted by default.
#
# Why the absolute threshold had to go: the outer product fixes only the product of the factors'
# norms, so the threshold wears one factor down while another grows, and in the end W is zero.

X, y, W = make_tensor_regression(300, (20, 20), coef=True, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for threshold in (0.0, 0.01, 0.1):
        worn = PublishedFasTR(threshold, ridge=1.0, tol=0, max_iter=200, random_state=0).fit(X, y)
        print(f"published, λ = {threshold}: error {coefficient_error(worn.coef_, W):.3f}")
model = FasTRRegressor(0.1, refit_support=True, random_state=0).fit(X, y)
print(f"pyfastr, threshold = 0.1: error {coefficient_error(model.coef_, W):.3f}")
