"""Which point of a grid is chosen by the scores of folds, and the table of all scores."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from pyfastr.estimators.choice_policy import RankingPolicy
from pyfastr.estimators.warning import warn
from pyfastr.solver.problem import power_of_two

Array = NDArray[Any]
# Number of terms, ridge and threshold.
Point = tuple[int, float, float]


def usable_scores(scores: Array) -> Array:
    """Leave out folds in which no model has a score, such as the ROC curve of one class."""
    scored = np.isfinite(scores).any(axis=1)
    if not scored.all() and scored.any():
        warn(
            f"Folds {np.flatnonzero(~scored).tolist()} have no finite score and are left out of "
            "the choice. Use fewer or stratified folds."
        )
    return scores[scored] if scored.any() else scores


def choose(
    points: list[Point],
    scores: Array,
    losses: Array | None = None,
    eligible: Array | None = None,
    *,
    one_standard_error: bool,
    policy: RankingPolicy,
) -> int:
    """Return the index of the simplest point that is as good as the best of those eligible.

    Points are compared by their losses ``(S, G)`` sample by sample where these are known, else by
    their scores ``(F, G)`` fold by fold.
    """
    mean = scores.mean(axis=0)
    finite = _check_finite(mean, eligible)
    if one_standard_error:
        best = int(np.argmax(np.where(finite, mean, -np.inf)))
        _, error = mean_and_error(scores[:, best])
        as_good = finite & (mean >= mean[best] - error)
    else:
        gains, chance = (
            (scores, policy.chance_of_folds) if losses is None else (-losses, policy.chance)
        )
        ranked = np.where(finite, gains.mean(axis=0), -np.inf)
        best = _best_of_best_terms(points, ranked, policy.best)
        as_good = finite & _hardly_worse(points, gains, best, chance)
    return int(min(np.flatnonzero(as_good), key=lambda i: _complexity(points[i])))


def leading(
    scores: Array,
    losses: Array | None = None,
    eligible: Array | None = None,
    *,
    policy: RankingPolicy,
) -> list[int]:
    """Return the indices of the best point and of those that fall short of it by chance, in order.

    Points are compared by what `choose` compares them by, and up to a whole standard error.
    """
    finite = _check_finite(scores.mean(axis=0), eligible)
    gains = scores if losses is None else -losses
    ranked = np.where(finite, gains.mean(axis=0), -np.inf)
    order = np.argsort(-ranked, kind="stable")[: min(policy.averaged, np.count_nonzero(finite))]
    shortfall, error = mean_and_error(gains[:, order[0], None] - gains[:, order])
    return [int(i) for i in order[shortfall <= policy.chance * error]]


def _check_finite(mean: Array, eligible: Array | None) -> Array:
    """Tell which eligible points have a mean score that is a number; it is an error if none has."""
    finite = np.isfinite(mean)
    if not finite.any():
        raise ValueError(
            "No point of the grid has a finite score in every fold. Check `scoring`, or use "
            "fewer folds, so that each holds out samples that can be scored."
        )
    if not finite.all():
        warn(f"One or more of the test scores are non-finite: {mean}")
    return finite if eligible is None else finite & eligible


def _best_of_best_terms(points: list[Point], ranked: Array, n_leaders: int) -> int:
    """Return the best point of the number of terms whose leading points are the best on average."""
    terms = np.array([point[0] for point in points])
    own = {n: np.where(terms == n, ranked, -np.inf) for n in np.unique(terms).tolist()}
    # Of equals the first has the fewest terms.
    best = max(own, key=lambda n: _mean_of_leaders(own[n], n_leaders))
    return int(np.argmax(own[best]))


def _mean_of_leaders(ranked: Array, n_leaders: int) -> float:
    leaders = np.sort(ranked)[-n_leaders:]
    leaders = leaders[np.isfinite(leaders)]
    return float(leaders.mean()) if len(leaders) else -np.inf


def _hardly_worse(points: list[Point], gains: Array, best: int, chance: float) -> Array:
    """Tell which thresholds, at the best number of terms and ridge, fall short by chance."""
    shortfall, error = mean_and_error(gains[:, best, None] - gains)
    alike = np.array([point[:2] == points[best][:2] for point in points])
    return alike & (shortfall <= chance * error)


def mean_and_error(scores: Array) -> tuple[Array, Array]:
    """Return the mean over folds or samples and its standard error, of scores or of differences.

    The folds are the same for all models, so what they have in common cancels in a difference.
    """
    n = len(scores)
    error = _deviation(scores, ddof=min(1, n - 1)) / np.sqrt(n)
    return scores.mean(axis=0), error


def _deviation(scores: Array, ddof: int = 0) -> Array:
    """Return standard deviations; scores of models that went astray may be too large to square."""
    size = power_of_two(np.abs(scores).max(axis=0))
    deviation: Array = size * (scores / size).std(axis=0, ddof=ddof)
    return deviation


def _complexity(point: Point) -> tuple[float, float, float]:
    """Order models from simple to complex."""
    n_terms, ridge, threshold = point
    return n_terms, -threshold, -ridge


def scores_path(points: list[Point], scores: Array) -> Array:
    """Return scores ``(F, G)`` by number of terms, ridge, threshold and fold; NaN if not fitted."""
    axes = [list(dict.fromkeys(point[axis] for point in points)) for axis in range(3)]
    path = np.full((*(len(axis) for axis in axes), len(scores)), np.nan)
    for point, own in zip(points, scores.T, strict=True):
        path[tuple(axis.index(value) for axis, value in zip(axes, point, strict=True))] = own
    return path


def cv_results(
    points: list[Point], scores: Array, times: list[tuple[float, float]]
) -> dict[str, Any]:
    """Return what GridSearchCV would."""
    n_folds, n_points = scores.shape
    numbers = [point[0] for point in points]
    each = np.array([numbers.count(n) for n in dict.fromkeys(numbers)])
    seconds = np.repeat(np.array(times) / (each * n_folds)[:, None], each, axis=0)
    results: dict[str, Any] = {
        "mean_fit_time": seconds[:, 0],
        "std_fit_time": np.zeros(n_points),
        "mean_score_time": seconds[:, 1],
        "std_score_time": np.zeros(n_points),
    }
    params = [{"n_terms": n, "ridge": r, "threshold": t} for n, r, t in points]
    for name in ("n_terms", "ridge", "threshold"):
        values = [p[name] for p in params]
        results[f"param_{name}"] = np.ma.MaskedArray(values, mask=np.zeros(n_points, bool))
    results["params"] = params
    return results | score_columns(scores)


def score_columns(scores: Array) -> dict[str, Array]:
    """Return the columns of that table which tell scores ``(F, G)``."""
    usable = scores[np.isfinite(scores).any(axis=1)]
    mean = usable.mean(axis=0)
    # Scores that are no numbers come last, as in GridSearchCV.
    ranked = np.where(np.isfinite(mean), mean, -np.inf)
    return {
        **{f"split{fold}_test_score": own for fold, own in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": _deviation(usable),
        "rank_test_score": rankdata(-ranked, method="min").astype(np.int32),
    }
