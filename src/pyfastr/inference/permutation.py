"""Whether the score of an estimator could have come about by chance."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyfastr.display.permutation import PermutationDisplay
from pyfastr.estimators.validation import as_generator
from pyfastr.estimators.watching import showing
from pyfastr.inference._statistic import PermutationStatistic
from pyfastr.inference._summary import Summary, counted
from pyfastr.inference._tasks import check_count

Array = NDArray[Any]


@dataclass(frozen=True, repr=False)
class PermutationResult(Summary):
    """A score, and what it is when the response is permuted.

    Attributes
    ----------
    score : float
        Mean cross-validated score; of an estimator that chooses, the best of its grid.
    permutation_scores : ndarray of shape (n_permutations,)
        The same of permuted responses.
    p_value : float
    """

    score: float
    permutation_scores: Array

    @property
    def p_value(self) -> float:
        """``(1 + number of permuted scores >= score) / (1 + n_permutations)``."""
        as_good = int(np.count_nonzero(self.permutation_scores >= self.score))
        return (1 + as_good) / (1 + len(self.permutation_scores))

    def _facts(self) -> dict[str, str]:
        permuted = self.permutation_scores
        return {
            "score": f"{self.score:.4g}",
            "p_value": f"{self.p_value:.3g}",
            "n_permutations": str(len(permuted)),
            "permuted_mean": f"{permuted.mean():.4g}",
            "permuted_max": f"{permuted.max():.4g}",
        }

    def _sentence(self) -> str:
        permuted = self.permutation_scores
        as_good = int(np.count_nonzero(permuted >= self.score))
        return (
            f"{as_good} of {counted(len(permuted), 'permuted response')} had a cross-validated "
            "score as good as the observed one."
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the permuted scores as a histogram, and the score as a line.

        Parameters
        ----------
        ax : matplotlib axes, optional
            A new figure by default.

        Returns
        -------
        matplotlib axes
        """
        return PermutationDisplay.from_result(self, ax=ax).ax_


def permutation_test(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_permutations: int = 100,
    cv: Any = 5,
    scoring: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    covariates: Any = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> PermutationResult:
    r"""Test whether X tells anything of y, by the score of an estimator on permuted responses.

    The statistic is the mean cross-validated score at the estimator's parameters. For an
    estimator that chooses its parameters it is the best mean score of its grid, which the
    choice makes optimistic, but equally so for permuted responses. With b of n permuted scores
    at least as good as the observed one

    .. math:: p = \frac{1 + b}{1 + n},

    which is valid for any n. All folds of many permutations are fitted in one batch that shares
    each pass over X, and the observed response is one among them.

    Parameters
    ----------
    estimator : FasTRRegressor, FasTRClassifier, FasTRRegressorCV or FasTRClassifierCV
        Need not be fitted, and is left as it is. A threshold "theory" is that of all samples. With
        ``n_init="auto"`` every fold has one round of starts, a short one where samples abound, and
        grids are fitted to two digits: the observed response and its permutations alike. With
        ``n_terms="auto"`` these have one term; give numbers of terms to test those.

        In a Pipeline after TensorScaler, X is scaled by the training samples of each fold, and
        the folds' own choice of parameters is judged on X scaled in this way. Folds that do not
        depend on y share each pass over scaled X among all permutations; stratified ones, the
        default for classes, cannot.
    X : array-like of shape (n_samples, p1, ..., pM)
    y : array-like of shape (n_samples,)
    n_permutations : int, default=100
    cv : int, splitter, iterable or None, default=5
        An integer makes so many shuffled folds, stratified for classes, that keep groups whole.
        Folds that depend on y are drawn anew for each permutation, others stay. None takes the
        estimator's own `cv`, or 5.
    scoring : str, callable or None, default=None
        Any of scikit-learn; None takes the estimator's own, or else R², D² of counts, or the area
        under the ROC curve.
    groups : array-like of shape (n_samples,), optional
        Responses are permuted within groups only. Also passed to the splitter.
    sample_weight : array-like of shape (n_samples,), optional
        Counts in fits and scores, and stays with the samples.
    covariates : array-like of shape (n_samples, n_covariates), optional
        Stay with the samples: what they explain of y is permuted too, so the hypothesis tested
        is that neither X nor the covariates tell anything of y. To test X alone, permute within
        `groups` of alike covariates.
    random_state : int, RandomState or None, default=None
        Seed of permutations, folds and starts.
    verbose : int, default=0
        1 shows a bar where a person watches, 2 prints lines.

    Returns
    -------
    PermutationResult

    See Also
    --------
    sklearn.model_selection.permutation_test_score : The same test by a loop of fits.

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.inference import permutation_test
    >>> X, y = make_tensor_regression(60, (4, 4), random_state=0)
    >>> model = FasTRRegressor(ridge=0.1, n_init=2)
    >>> permutation_test(model, X, y, n_permutations=19, random_state=0).p_value
    0.05
    """
    check_count("n_permutations", n_permutations)
    test = PermutationStatistic.check(
        estimator, X, y, cv, scoring, groups, sample_weight, covariates
    )
    draw = check_random_state(random_state)
    n_samples = len(test.y)
    orders = [_permutation(n_samples, test.groups, draw) for _ in range(n_permutations)]
    test.selection.random_state = int(draw.randint(2**31))
    with showing(verbose):
        scores = test.scores([np.arange(n_samples), *orders], as_generator(draw))
    return PermutationResult(float(scores[0]), scores[1:])


def _permutation(n_samples: int, groups: Array | None, draw: np.random.RandomState) -> Array:
    """Draw an order of the samples, within groups if there are any, as scikit-learn does."""
    if groups is None:
        return draw.permutation(n_samples)
    order = np.arange(n_samples)
    for group in np.unique(groups):
        own = groups == group
        order[own] = draw.permutation(order[own])
    return order
