"""The example of the README."""

from pyfastr import FasTRRegressor
from pyfastr.datasets import make_tensor_regression
from pyfastr.metrics import coefficient_error

# Samples of shape 20×20×20: 100 of them to learn 8000 coefficients from, 400 held out.
X, y, W = make_tensor_regression(500, (20, 20, 20), coef=True, random_state=0)
model = FasTRRegressor(random_state=0).fit(X[:100], y[:100])
starts = model.starts_
print(f"held-out R²: {model.score(X[100:], y[100:]):.4f}")
print(f"error of the coefficient: {coefficient_error(model.coef_, W):.4f}")
print(f"starts: {starts.n_starts}, that agreed: {starts.n_hits}, sure: {starts.sure}")
