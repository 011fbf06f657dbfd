"""A score beside those of permuted responses."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display import style
from pyfastr.display.axes import Display

Array = NDArray[Any]


class PermutationDisplay(Display):
    """Scores of permuted responses as a histogram, and the score as a line.

    Parameters
    ----------
    score : float
    permutation_scores : ndarray of shape (n_permutations,)
    p_value : float

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from pyfastr.display import PermutationDisplay
    >>> display = PermutationDisplay(0.5, [0.1, 0.0, 0.2, -0.1], p_value=0.2).plot()
    >>> display.ax_.get_xlabel()
    'cross-validated score'
    """

    def __init__(self, score: float, permutation_scores: Array, p_value: float) -> None:
        self.score = score
        self.permutation_scores = np.asarray(permutation_scores)
        self.p_value = p_value

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None, **kwargs: Any) -> "PermutationDisplay":
        """Draw a permutation test.

        Parameters
        ----------
        result : PermutationResult
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        PermutationDisplay
        """
        return cls(result.score, result.permutation_scores, result.p_value).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "PermutationDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            A new figure by default.
        **kwargs : dict
            For the histogram, as `Axes.hist` takes them.

        Returns
        -------
        PermutationDisplay
        """
        panel = self._take_axes("ax", ax, 1)[0]
        looks = {"bins": "auto", "color": style.faint(panel), "label": "permuted"}
        panel.hist(self.permutation_scores, **{**looks, **kwargs})
        label = f"observed, p = {self.p_value:.3g}"
        panel.axvline(self.score, color=style.hue(panel, 1), linewidth=2, label=label)
        panel.set_xlabel("cross-validated score")
        panel.set_ylabel("permutations")
        panel.legend()
        return self
