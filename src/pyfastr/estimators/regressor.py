"""FasTR for real numbers and for counts."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score, r2_score

from pyfastr.estimators.checkpoint import checkpointed
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import CONSTRAINTS, FasTRBase, check_together
from pyfastr.estimators.lazy import by_chunks
from pyfastr.estimators.namespaces import answers_in_kind, fits_arrays, on_host
from pyfastr.estimators.reading import (
    check_as_many,
    check_finite,
    in_plain_units,
    read_numbers,
    read_weights,
)
from pyfastr.estimators.sklearn_private import StrOptions
from pyfastr.estimators.validation import check_tensor_and_response
from pyfastr.estimators.watching import fit_method
from pyfastr.solver.losses import LOSSES, POISSON
from pyfastr.solver.problem import power_of_two
from pyfastr.sources import computed
from pyfastr.sources.namespaces import to_host

Array = NDArray[Any]

REGRESSOR_CONSTRAINTS: dict[str, list[Any]] = {
    **CONSTRAINTS,
    "loss": [StrOptions({"squared", "poisson"})],
}


class NumberMixin(RegressorMixin):
    """Scores of predicted numbers, and what they may be."""

    loss: str

    def score(self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None) -> float:
        """Return R² of the prediction, or D² of counts: the share of the deviance it explains.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The score of several outputs is the mean of theirs.
        sample_weight : array-like of shape (n_samples,), optional
        covariates : array-like of shape (n_samples, n_covariates), optional

        Returns
        -------
        float
        """
        predict: Any = self.predict
        prediction = predict(X) if covariates is None else predict(X, covariates)
        y, sample_weight = on_host(X, y=computed(y), sample_weight=computed(sample_weight))
        return score_numbers(self.loss, y, to_host(computed(prediction)), sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        tags.target_tags.multi_output = True
        return tags


def score_numbers(loss: str, y: Any, prediction: Array, sample_weight: Any = None) -> float:
    """Return R², or D² of counts, which is 0 where all are the same: nothing is to be explained."""
    y = read_numbers("y", y)
    check_as_many("y", len(y), len(prediction))
    check_finite("y", y)
    if sample_weight is not None:
        sample_weight = in_plain_units(read_weights(sample_weight, len(prediction)))
    # Scores are shares: in units of y its squares are in range, however large or small it is.
    unit = power_of_two(np.abs(y).max(axis=0, initial=0.0))
    y, prediction = y / unit, prediction / unit
    if loss == "squared":
        return float(r2_score(y, prediction, sample_weight=sample_weight))
    if y.ndim == 1:
        return _score_counts(y, prediction, sample_weight)
    columns = zip(y.T, prediction.T, strict=True)
    return float(np.mean([_score_counts(*own, sample_weight) for own in columns]))


def _score_counts(y: Array, prediction: Array, sample_weight: Array | None) -> float:
    """Return D² of one output."""
    counts = y if sample_weight is None else y[sample_weight > 0]
    if len(counts) > 1 and POISSON.are_equal(counts):
        return 0.0
    return float(d2_tweedie_score(y, prediction, sample_weight=sample_weight, power=1))


class FasTRRegressor(NumberMixin, FasTRBase):
    r"""Sparse unit-rank tensor regression.

    The samples are arrays, the coefficient is a sum of `n_terms` outer products of vectors:

    .. math:: y_i = \langle W, X_i\rangle + b + \text{noise}, \qquad
              W = \sum_r \sigma_r\, w^1_r \circ \dots \circ w^M_r

    With P the samples contracted with all components but :math:`w^m`, those being of unit length,
    each component is a fixed point of the paper's update

    .. math:: w^m \propto S_\lambda\bigl((P^T P + \varepsilon I)^{-1} P^T y\bigr).

    Where such fixed points are many, the best one is sought: batches of random and spectral
    starts are shaken by bootstrap weights while a ridge cools, raced, and polished by joint
    Levenberg-Marquardt steps, all models sharing each pass over X.

    Parameters
    ----------
    threshold : float or "theory", default=0.0
        The paper's :math:`\lambda` as a fraction of the largest entry of the ridge solution, in
        [0, 1): free of the units of X and y. 0 leaves every entry in. "theory" takes the order of
        the paper's theorem, see `pyfastr.theory_threshold`.
    ridge : float, default=1e-5
        The paper's :math:`\varepsilon` relative to the scale of the projection:
        :math:`\varepsilon =` `ridge` :math:`\cdot\,\mathrm{trace}(P^T P) / p_m`. Noisy data want
        more; try 0.01 to 10.
    n_terms : int, default=1
        Number of unit-rank terms. Samples that are vectors have one.
    loss : {"squared", "poisson"}, default="squared"
        "poisson" is for counts: :math:`\log E[y_i] = \langle W, X_i\rangle + b`, fitted by the
        same updates with weights and a response that are renewed in each (IRLS), from a solution
        for the logarithms. `predict` returns mean counts and `score` D², the share of the deviance
        that is explained.
    init : {"mixed", "spectral", "random"} or sequence of M arrays, default="mixed"
        Starts: half random and half spectral, or only one kind. Arrays of shape ``(p_m,)`` or
        ``(p_m, n_terms)`` are the one start, whose outer product is the first W (only their
        directions decide the sweeps); `n_init` is then not used.
    n_init : int or "auto", default="auto"
        Number of starts. "auto" runs rounds of more and more starts until the best solution
        stands far apart, has been found many times, or 960 starts have run (64 with a ridge of
        0.01 or more, which leaves few solutions).
    sweep : {"cyclic", "simultaneous"}, default="cyclic"
        "cyclic" updates one mode after another, each from the newest components. "simultaneous"
        updates all from the same old ones, in one pass over X, and converges less surely.
    max_iter : int, default=1000
        Largest number of sweeps from the best start.
    tol : float, default=1e-3
        Sweeps end when :math:`\lVert W_{t+1}-W_t\rVert_F \le` `tol` :math:`\lVert W_t\rVert_F`.
        Changes below 1e-7 are not seen. Those of a refit end at a tenth of it.
    fit_intercept : bool, default=True
        Whether to fit b. Neither X nor y needs to be centred, and X is not copied for it.
    refit_support : bool or "evidence", default=False
        True refits the non-zero entries without threshold, which takes its shrinkage away, and
        with less of a `ridge`: it shrinks by the square of their share of the free parameters, two
        of which do not count if there are as many samples as entries of any mode, as shrinking so
        few does not pay. For counts it shrinks by the share itself.
        "evidence" also chooses which entries those are, without a threshold, by the lowest
        :math:`(N - \mathrm{dof})\log(\mathrm{RSS} / (N - \mathrm{dof}))`: for sparse coefficients
        and few samples, and for the squared loss only.
    symmetry : "auto", pair of int or None, default="auto"
        Two modes, counted from 0, in which every sample is symmetric, such as the regions of a
        connectome: they share one component, up to a sign in each term, and half the free
        parameters are left. "auto" looks for them in the pass over X that looks for NaN, and takes
        the first such pair; entries may differ from their mirror image by 1e-5 of the range of
        their sample. A pair asks for it, and other samples are an error. None never ties.
    random_state : int, RandomState or None, default=None
        Seed of the starts; an int gives the same result each time.
    verbose : int, default=0
        1 draws a progress bar where a person watches: in a terminal or a notebook, if rich is
        installed. 2 prints lines instead, wherever they go. Callbacks of scikit-learn 1.9 and newer
        (`set_callbacks`) hear of every step, too.
    checkpoint : str or Path, default=None
        A file to which long fits write, every two minutes and when they are interrupted, how far
        they are: the same call goes on from there, to the same result. A file of other data or
        parameters is refused. It is removed when the fit has ended. `random_state` must be an int.

    Attributes
    ----------
    coef_ : ndarray of shape (p1, ..., pM)
        The coefficient W, built from the factors on first use. If y has two axes, this and all
        that follow up to `starts_` have a first axis of outputs: ``(n_outputs, p1, ..., pM)``.
    factors_ : list of M ndarrays of shape (p_m, n_terms)
        Components of unit length; a term that vanished is zero. The largest entry is positive in
        all modes but the first. Those of `symmetric_modes_` are equal, or one is minus the other.
        Of several outputs ``(n_outputs, p_m, n_terms)``.
    scales_ : ndarray of shape (n_terms,)
        :math:`\sigma_r`, in descending order.
    intercept_ : float
    covariate_coef_ : ndarray of shape (n_covariates,)
        Only after a fit with covariates.
    n_iter_ : int
        Sweeps from the best start.
    converged_ : bool
        Whether they ended by `tol`.
    history_ : dict of ndarrays of shape (n_iter\_,)
        Of several outputs ``(n_outputs, max(n_iter_))``, NaN where the sweeps of one have ended.
        For each sweep "loss", the (weighted) mean squared residual on the training data, or for
        counts the mean Poisson deviance, and "change", the relative change of W. Simultaneous
        sweeps give the loss before all but the last mode are replaced.
    starts_ : Starts
        `n_starts` that ran, `n_polished` that survived the race, `n_hits` of those that reached
        this solution, `gap` (what the next best solution leaves over what this one does, penalty
        included), `confidence` (the probability that 4,096 starts would find no better solution),
        `sure` (whether that is at least 0.98), `n_rounds`. They speak of the optimum of the fit;
        where N hardly exceeds the degrees of freedom, even the best fit may be far from the truth.
        Of several outputs a list.
    design_ : Design or None
        What the samples say of the fit, for `diagnose`: the `leverage` of each, their sum
        `n_effective`, and the slices of each mode that are the most `alike`, with their
        `correlation`. None where measuring that would not fit the memory budget. Of several
        outputs a list.
    outputs_ : list of FasTRRegressor
        Each of several outputs as a fitted model of one, which can be drawn, reported and
        exported.
    symmetric_modes_ : tuple of two int, or None
        Modes that share a component.
    tensor_shape_in_ : tuple of int
        Shape ``(p1, ..., pM)`` of a sample.
    n_features_in_ : int
        Size of the first mode, as scikit-learn counts.

    Notes
    -----
    Multiplying X by a and y by c multiplies `coef_` by c / a and `intercept_` by c; adding a
    constant to y, or an array to all samples, moves only the intercept; permuting the modes
    permutes the factors. (The mode updated last sets the scale, so with a large ridge or threshold
    the order of the modes changes `scales_` by a percent or so.)

    For counts, multiplying y by c adds log c to the intercept and changes nothing else. With P
    centred in the weights :math:`\mu_i`, the fitted means, :math:`\varepsilon =` `ridge`
    :math:`\cdot\,\mathrm{trace}(P^T \mathrm{diag}(\mu) P) / p_m`. Of vectors it is scikit-learn's
    `PoissonRegressor` with an `alpha` of :math:`\varepsilon / N`.

    The evidence counts samples: a weight of 2 is then not quite the same as a repeated sample.

    References
    ----------
    J. Zhang and B. Wang, "Fast and Scalable Estimator for Sparse and Unit-Rank Higher-Order
    Regression Models", ECAI 2020.

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.metrics import coefficient_error
    >>> X, y, W = make_tensor_regression(100, (15, 15, 15), coef=True, random_state=0)
    >>> model = FasTRRegressor(random_state=0).fit(X, y)
    >>> bool(coefficient_error(model.coef_, W) < 0.01)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = REGRESSOR_CONSTRAINTS

    def __init__(
        self,
        threshold: float | Literal["theory"] = 0.0,
        ridge: float = 1e-5,
        *,
        n_terms: int = 1,
        loss: Literal["squared", "poisson"] = "squared",
        init: Literal["mixed", "spectral", "random"] | Sequence[Array] = "mixed",
        n_init: int | Literal["auto"] = "auto",
        sweep: Literal["cyclic", "simultaneous"] = "cyclic",
        max_iter: int = 1000,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        refit_support: bool | Literal["evidence"] = False,
        symmetry: Literal["auto"] | Sequence[int] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.threshold = threshold
        self.ridge = ridge
        self.n_terms = n_terms
        self.loss = loss
        self.init = init
        self.n_init = n_init
        self.sweep = sweep
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.refit_support = refit_support
        self.symmetry = symmetry
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @fit_method
    @fits_arrays
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None
    ) -> "FasTRRegressor":
        """Fit the coefficient.

        Parameters
        ----------
        X : array-like or stored, of shape (n_samples, p1, ..., pM)
            M >= 1. Never copied or written to. A memory map, a dataset of h5py or Zarr and a list
            of .npy or NIfTI files, one a sample, are read block by block within the memory budget.
            A Dask array is computed once if it fits the budget, else chunk by chunk in every pass;
            that of a cluster stays with its workers.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers of 0 or more if the loss is "poisson". Several outputs are fitted each for
            itself, but share every pass over X. Each is what a fit of it alone would be, but for
            rounding, which `tol` may magnify, and if `random_state` is an int.
        sample_weight : array-like of shape (n_samples,), optional
            Whole-number weights equal repeated samples.
        covariates : array-like of shape (n_samples, n_covariates), optional
            Columns with an ordinary, unpenalised coefficient each (age, site, motion, ...).

        Returns
        -------
        FasTRRegressor
            The fitted estimator itself.
        """
        check_together(self)
        X, y = check_tensor_and_response(self, X, y, multi_output=True)
        data = Data.check(
            self,
            X,
            y.T,
            sample_weight,
            covariates,
            fit_intercept=self.fit_intercept,
            loss=LOSSES[self.loss],
        )
        with checkpointed(self):
            self._fit_data(data)
        return self

    @by_chunks
    @answers_in_kind
    def predict(self, X: Any, covariates: Any = None) -> Array:
        """Predict the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional
            Needed if and only if the fit had them.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs), as y was
            Mean counts if the loss is "poisson". A Dask array if X is one, not computed yet.
        """
        return LOSSES[self.loss].predict(self._with_covariates(X, covariates))
