"""What is fitted: the paper's simulation at one setting, and one participant of CMU2008."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from pyfastr.datasets import load_cmu2008, make_cmu2008_like, make_tensor_regression
from pyfastr.estimators import TensorScaler
from pyfastr.metrics import coefficient_error

Array = NDArray[Any]

# X that would exceed this in float64 is drawn in float32, to save memory and time. The limit is the
# same on every machine, so that a setting means the same data everywhere.
FLOAT64_BYTES = 2**30

# Held-out samples: as many as this, fewer where they would take more than so many bytes.
_N_TEST, _MIN_N_TEST, _TEST_BYTES = 1000, 200, 256 * 2**20

# Folds and starts are drawn by other seeds than the data: a random start by the seed of the data
# could repeat the draws of the true components.
METHOD_SEED = 10_000


@dataclass(frozen=True)
class TrialData:
    """The samples of one trial.

    Attributes
    ----------
    X, y : ndarray
        Samples to fit; y holds -1 and 1 where `is_classes`.
    X_test, y_test : ndarray
        Samples held out.
    seed : int
        Seed of whatever a method draws.
    coef : ndarray of shape (p1, ..., pM) or None
        The truth, where it is known.
    is_classes : bool
        Whether the task is to tell two classes apart.
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    seed: int
    coef: Array | None = None
    is_classes: bool = False

    @property
    def truth(self) -> Array:
        """The true coefficient, where it is known."""
        if self.coef is None:
            raise ValueError("the true coefficient of these samples is not known.")
        return self.coef


class Problem(Protocol):
    """A task with as many trials as are asked for."""

    @property
    def key(self) -> str:
        """Name in the file of results, unique among all problems."""

    @property
    def title(self) -> str:
        """Name in tables."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(p1, ..., pM)`` of a sample."""

    @property
    def n_entries(self) -> int:
        """Entries of X."""

    def draw(self, trial: int) -> TrialData:
        """Return the samples of a trial, the same each time."""

    def score(self, model: Any, data: TrialData) -> dict[str, float]:
        """Measure a fitted model."""


@dataclass(frozen=True)
class Simulation:
    """The paper's simulation at one size, sparsity and noise.

    Examples
    --------
    >>> from pyfastr.experiments.problems import Simulation
    >>> problem = Simulation((20, 20), 40)
    >>> problem.title, problem.n_free, problem.is_identifiable
    ('20×20 (40)', 40, True)
    """

    shape: tuple[int, ...]
    n_samples: int
    sparsity: float = 0.2
    noise: float = 0.1

    @property
    def key(self) -> str:
        """Name in the file of results."""
        size = "x".join(map(str, self.shape))
        return f"{size}-n{self.n_samples}-zeros{self.sparsity:g}-noise{self.noise:g}"

    @property
    def title(self) -> str:
        """Size as the paper writes it."""
        return f"{'×'.join(map(str, self.shape))} ({self.n_samples})"

    @property
    def n_entries(self) -> int:
        """Entries of X."""
        return self.n_samples * prod(self.shape)

    @property
    def n_free(self) -> int:
        """Free parameters of a unit-rank coefficient and an intercept."""
        return n_free(self.shape)

    @property
    def is_identifiable(self) -> bool:
        """Whether there are at least as many samples as free parameters."""
        return self.n_samples >= self.n_free

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the samples."""
        fits = 8 * self.n_entries <= FLOAT64_BYTES
        return np.dtype(np.float64 if fits else np.float32)

    @property
    def n_test(self) -> int:
        """Number of samples held out."""
        affordable = _TEST_BYTES // (prod(self.shape) * self.dtype.itemsize)
        return max(_MIN_N_TEST, min(_N_TEST, affordable))

    def draw(self, trial: int) -> TrialData:
        """Draw samples to fit and to hold out by the number of the trial.

        Parameters
        ----------
        trial : int

        Returns
        -------
        TrialData
        """
        N = self.n_samples
        X, y, W = make_tensor_regression(
            N + self.n_test,
            self.shape,
            sparsity=self.sparsity,
            noise=self.noise,
            coef=True,
            dtype=self.dtype,
            random_state=trial,
        )
        return TrialData(X[:N], y[:N], X[N:], y[N:], METHOD_SEED + trial, coef=W)

    def score(self, model: Any, data: TrialData) -> dict[str, float]:
        """Measure the coefficient against the truth, and predictions on samples held out.

        Parameters
        ----------
        model : estimator
            Fitted.
        data : TrialData

        Returns
        -------
        dict of float
            ``ce``, the relative error of the coefficient; ``mse``, the mean of squares on samples
            held out, and ``relative_mse``, the same over the variance of y;
            ``training_metric``, ‖y − ŷ‖₂ / N on the samples fitted, which is what the paper's
            tables seem to give as MSE.
        """
        mse = float(np.mean(_residuals(model, data.X_test, data.y_test) ** 2))
        residuals = _residuals(model, data.X, data.y)
        return {
            "ce": coefficient_error(coefficient_of(model), data.truth),
            "mse": mse,
            "relative_mse": mse / float(np.var(data.y_test, dtype=np.float64)),
            "training_metric": float(np.linalg.norm(residuals)) / len(residuals),
        }


def n_free(shape: Sequence[int]) -> int:
    """Count the free parameters of a unit-rank coefficient of this shape and an intercept.

    Parameters
    ----------
    shape : sequence of int

    Returns
    -------
    int
    """
    return sum(shape) - len(shape) + 2


def coefficient_of(model: Any) -> Array:
    """Return the coefficient of a fitted model or of the best one that a search fitted."""
    return np.asarray(getattr(model, "best_estimator_", model).coef_)


def _residuals(model: Any, X: Array, y: Array) -> Array:
    return y.astype(np.float64) - model.predict(X)


@dataclass(frozen=True)
class Recording:
    """Tools against animals in the scans of one participant; without a file, of a stand-in.

    Attributes
    ----------
    participant : int
    path : Path or None
        The file; None: simulated scans of the same geometry.
    """

    participant: int
    path: Path | None = None

    @property
    def is_simulated(self) -> bool:
        """Whether the scans are those of the stand-in."""
        return self.path is None

    @property
    def key(self) -> str:
        """Name in the file of results."""
        return f"cmu2008{'-simulated' if self.is_simulated else ''}-P{self.participant}"

    @property
    def title(self) -> str:
        """Name in tables."""
        return f"{'simulated ' if self.is_simulated else ''}#{self.participant}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels of a scan."""
        return (51, 61, 23)

    @property
    def n_entries(self) -> int:
        """Entries of X: 120 scans."""
        return 120 * prod(self.shape)

    def draw(self, trial: int) -> TrialData:
        """Split the scans by the number of the trial, four fifths to fit.

        Every voxel is centred and scaled by the scans to fit.

        Parameters
        ----------
        trial : int

        Returns
        -------
        TrialData
        """
        scans = self._load()
        y = np.where(np.unique(scans.target, return_inverse=True)[1] == 1, 1.0, -1.0)
        X, X_test, y, y_test = train_test_split(
            np.asarray(scans.data), y, test_size=0.2, stratify=y, random_state=trial
        )
        scaler = TensorScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
        return TrialData(X, y, X_test, y_test, METHOD_SEED + trial, is_classes=True)

    def _load(self) -> Any:
        if self.path is None:
            return make_cmu2008_like(random_state=self.participant)
        return load_cmu2008(self.path)

    def score(self, model: Any, data: TrialData) -> dict[str, float]:
        """Measure how well the classes are told apart on scans held out.

        Parameters
        ----------
        model : estimator
            Fitted.
        data : TrialData

        Returns
        -------
        dict of float
            ``auc``, the area under the ROC curve.
        """
        decide = getattr(model, "decision_function", model.predict)
        return {"auc": float(roc_auc_score(data.y_test, decide(data.X_test)))}
