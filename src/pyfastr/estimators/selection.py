"""Regression that chooses its threshold, ridge and number of terms."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.parallel import blas_for
from pyfastr.estimators.choice import FasTRSelection
from pyfastr.estimators.choice_parameters import CV_CONSTRAINTS
from pyfastr.estimators.data import Data
from pyfastr.estimators.fitting import FasTRBase, check_together
from pyfastr.estimators.folds import Split
from pyfastr.estimators.namespaces import answers_in_kind, fits_arrays
from pyfastr.estimators.regressor import REGRESSOR_CONSTRAINTS, FasTRRegressor, NumberMixin
from pyfastr.estimators.validation import check_tensor_and_response
from pyfastr.estimators.watching import fit_method

Array = NDArray[Any]


class FasTRRegressorCV(NumberMixin, FasTRSelection):
    """Sparse unit-rank tensor regression that chooses threshold, ridge and number of terms.

    Every fold, ridge and threshold is a model of one batch that shares each pass over X. Every
    fold has its own starts, which serve its whole grid. The choice is then fitted to all data or,
    where the folds' coefficients differ, is the mean of their models.

    Parameters
    ----------
    thresholds : sequence of float or "auto", default="auto"
        Relative thresholds to choose from; "auto" has eleven from 0 to 0.9.
    ridges : sequence of float or "auto", default="auto"
        Relative ridges; "auto" has five from 1e-5 (hardly any noise) to 10 (mostly noise), or from
        0.01 where folds train on no more samples than there are free parameters.
    n_terms : int, sequence of int or "auto", default="auto"
        Numbers of unit-rank terms to choose from; ``(1,)`` is the model of the paper. "auto" gives
        promising points of the grid one more term at a time, begun from what the others leave
        unexplained, while held-out samples show a gain beyond chance; eight at most.
    loss : {"squared", "poisson"}, default="squared"
        As in :class:`FasTRRegressor`.
    cv : int, splitter or iterable, default=5
        An integer makes so many shuffled folds (`GroupKFold` if groups are given), drawn by
        `random_state`: rows are often sorted.
    scoring : str, callable or None, default=None
        Any of scikit-learn; None is R², or D² of counts. Sample weights count in the score too, if
        it can.
    criterion : {"cv", "evidence"}, default="cv"
        "evidence" holds no data out, for samples too few to split and little noise: it fits with
        ``refit_support="evidence"``, and chooses support and number of terms by the lowest
        ``(N - dof) log(RSS / (N - dof))``. It needs neither `thresholds`, nor any but the least of
        `ridges`, and is of the squared loss only.
    one_standard_error : bool, default=False
        By default a choice has the number of terms that paid, the ridge of the point with the least
        mean squared error (or deviance) of all held-out samples, and the highest threshold that
        falls short of it by less than a standard error of the difference, sample by sample. Other
        scores are compared fold by fold, by half a standard error. Of numbers of terms that are
        listed, the one counts whose five best points are the best on average.
        True chooses the simplest model (fewest terms, then largest threshold, then largest ridge)
        whose score is within one standard error of the best.
    refit : bool or "auto", default="auto"
        Whether the choice is fitted to all data. False takes the mean of the coefficients that the
        folds found, at the best point and at up to nine others, of any number of terms, that fall
        short by less than a standard error (`averaged_`): a sum of many terms, which predicts noisy
        recordings better but is not of unit rank. With `one_standard_error` the mean is of that
        choice alone. "auto" is True if most of the folds' coefficients agree, with an `agreement_`
        of 0.95 or more.
    init, n_init, sweep, max_iter, tol, fit_intercept, symmetry, verbose, checkpoint
        As in :class:`FasTRRegressor`, for the final fit; the folds make at most 15 sweeps. With
        ``n_init="auto"`` they have at most 512 starts each, and the final fit begins from their
        solutions: it searches no further if these agree. One checkpoint serves folds and final fit.
    refit_support : bool, default=True
        Whether supports found by a threshold are fitted anew without it, in folds and at the end.
    random_state : int, RandomState or None, default=None
        Seed of folds and starts.

    Attributes
    ----------
    threshold_, ridge_, n_terms_ : float, float, int
        The choice; also as `best_params_`, at `best_index_` of `cv_results_`.
    choice_ : str
        What was chosen and why, in a line.
    refitted_ : bool
        Whether the choice was fitted to all data, rather than taken as the mean of the folds'.
    agreement_ : float
        Median cosine between the coefficients of different folds at the best point; NaN if there is
        one fold. Not there by evidence.
    averaged_ : ndarray of int
        The points of `cv_results_` that a mean is of, the choice first; that alone if it was fitted
        to all data.
    best_score_ : float
        Mean score at `best_index_`, or the negative ``(N - dof) log(RSS / (N - dof))``.
    best_estimator_ : FasTRRegressor
        Fitted to all data, or the mean of the folds' models.
    cv_results_ : dict of arrays
        With the keys of scikit-learn's GridSearchCV. Times are shares of the whole batch's.
    scores_path_ : ndarray of shape (n_terms, n_ridges, n_thresholds, n_folds)
        NaN where points were not given further terms.
    output_scores_ : ndarray of shape (n_outputs, n_folds, n_points)
        Of several outputs: the scores that `cv_results_` has the means of. Not there if `scoring`
        takes all outputs together.
    held_out_ : HeldOut
        Predictions of the choice for `samples` that each of `folds` held out, beside their
        `target`; those of a mean are averaged over its points. Not there by evidence.
    reference_score_ : float
        Mean score, in the same folds, of ridge regression on the flattened samples at its best
        penalty; NaN where that would cost too much, or a function scores fitted estimators.
    reference_ : Reference or None
        More of it: `alpha`, `scores` of the folds, `results` of all penalties, `held_out`
        predictions; `unseen_score` and `unseen_score_of_choice`, where each fold is predicted by
        what the others would have chosen, the `lead` between these and the `lead_error`. Not there
        by evidence.
    reference_is_better_ : bool
        Whether that lead is clear. The fit then warns, unless samples are vectors, that a sum of so
        few outer products does not describe how y depends on X.
    reference_missing_ : str
        Why there is no reference; empty if there is one.
    coef_, factors_, scales_, intercept_, design_, n_iter_, converged_, history_, starts_
        Of the best estimator; the last four only of a refit.
    outputs_ : list of FasTRRegressorCV
        Each of several outputs as a fitted choice of one.
    symmetric_modes_, tensor_shape_in_, n_features_in_ : tuple of int or None, tuple of int, int

    Examples
    --------
    >>> from pyfastr import FasTRRegressorCV
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y, W = make_tensor_regression(100, (8, 8), sparsity=0.5, coef=True, random_state=0)
    >>> model = FasTRRegressorCV(random_state=0).fit(X, y)
    >>> bool(model.best_score_ > 0.99)
    True
    """

    _estimator_type_of_twin: ClassVar[type[FasTRBase]] = FasTRRegressor
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CV_CONSTRAINTS,
        "loss": REGRESSOR_CONSTRAINTS["loss"],
    }

    def __init__(
        self,
        thresholds: Sequence[float] | Literal["auto"] = "auto",
        ridges: Sequence[float] | Literal["auto"] = "auto",
        n_terms: int | Sequence[int] | Literal["auto"] = "auto",
        *,
        loss: Literal["squared", "poisson"] = "squared",
        cv: Any = 5,
        scoring: Any = None,
        criterion: Literal["cv", "evidence"] = "cv",
        one_standard_error: bool = False,
        refit: bool | Literal["auto"] = "auto",
        init: Literal["mixed", "spectral", "random"] = "mixed",
        n_init: int | Literal["auto"] = "auto",
        sweep: Literal["cyclic", "simultaneous"] = "cyclic",
        max_iter: int = 1000,
        tol: float = 1e-3,
        fit_intercept: bool = True,
        refit_support: bool = True,
        symmetry: Literal["auto"] | Sequence[int] | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.thresholds = thresholds
        self.ridges = ridges
        self.n_terms = n_terms
        self.loss = loss
        self.cv = cv
        self.scoring = scoring
        self.criterion = criterion
        self.one_standard_error = one_standard_error
        self.refit = refit
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
        self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None, **params: Any
    ) -> "FasTRRegressorCV":
        """Choose the model and fit it to all data.

        Parameters
        ----------
        X : array-like or stored, of shape (n_samples, p1, ..., pM)
            M >= 1. Never copied or written to. A memory map, a dataset of h5py or Zarr and a list
            of .npy or NIfTI files, one a sample, are read block by block within the memory budget.
            A Dask array is computed once if it fits the budget, else chunk by chunk in every pass;
            that of a cluster stays with its workers.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers of 0 or more if the loss is "poisson". Several outputs share threshold, ridge
            and number of terms, chosen by the mean of their scores, and every pass over X.
        sample_weight : array-like of shape (n_samples,), optional
            Counts in fits and scores.
        covariates : array-like of shape (n_samples, n_covariates), optional
            Columns with an ordinary, unpenalised coefficient each.
        **params : dict
            `groups`, an array of shape (n_samples,), for the splitter: samples of a group stay
            together. With metadata routing, whatever the splitter has requested.

        Returns
        -------
        FasTRRegressorCV
            The fitted estimator itself.
        """
        check_together(self)
        tensor, response = check_tensor_and_response(self, X, y, multi_output=True)
        data = self._checked_data(tensor, response.T, sample_weight, covariates)
        with blas_for(data.source):
            self._select(data, X, response, self._routed(params))
        return self

    @answers_in_kind
    def predict(self, X: Any, covariates: Any = None) -> Array:
        """Predict the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        covariates : array-like of shape (n_samples, n_covariates), optional

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs), as y was
            Mean counts if the loss is "poisson". A Dask array if X is one, not computed yet.
        """
        return self.best_estimator_.predict(X, covariates)

    def _splits(self, data: Data, y: Any, groups: dict[str, Any]) -> list[Split]:
        """Return the folds; of counts each must have one to train on."""
        splits = super()._splits(data, y, groups)
        counted = np.atleast_2d(data.y if data.weights is None else data.y * data.weights)
        for fold, (train, _) in enumerate(splits):
            if self.loss == "poisson" and not counted[:, train].any(axis=1).all():
                raise ValueError(
                    f"cv leaves fold {fold} only training samples whose count is 0; expected a "
                    "positive count in every fold. Use fewer or other folds."
                )
        return splits
