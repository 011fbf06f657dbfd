"""The factors of each mode."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display import style
from pyfastr.display.axes import Axes, Display, name_panels
from pyfastr.display.fitted import attribute_of
from pyfastr.display.modes import Mode, modes_of, modes_of_result, plain_modes

Array = NDArray[Any]

# Terms drawn unless others are asked for, and the share of an entry's width that they share.
N_TERMS, SPREAD = 4, 0.5
# Above so many entries in a mode marks are small.
MANY = 40


class FactorsDisplay(Display):
    """Entries of the factors of each mode, one panel a mode.

    Entries that are zero are drawn hollow. Terms stand side by side and differ in colour and mark.

    Parameters
    ----------
    factors : list of M ndarrays of shape (p_m, n_terms)
        Components of unit length.
    scales : ndarray of shape (n_terms,), optional
        Named in the legend.
    lower, upper : list of M ndarrays of shape (p_m, n_terms), optional
        Ends of the intervals of all entries.
    modes : list of M Mode, optional
        Names and coordinates; numbers by default.

    Attributes
    ----------
    axes_ : ndarray of M matplotlib axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.display import FactorsDisplay
    >>> X, y = make_tensor_regression(100, (8, 6), sparsity=0.5, random_state=0)
    >>> model = FasTRRegressor(threshold=0.1, random_state=0).fit(X, y)
    >>> len(FactorsDisplay.from_estimator(model).axes_)
    2
    """

    def __init__(
        self,
        factors: Sequence[Array],
        scales: Array | None = None,
        *,
        lower: Sequence[Array] | None = None,
        upper: Sequence[Array] | None = None,
        modes: Sequence[Mode] | None = None,
    ) -> None:
        self.factors = [np.asarray(factor) for factor in factors]
        self.scales = None if scales is None else np.asarray(scales)
        self.lower = lower
        self.upper = upper
        self.modes = plain_modes(len(self.factors)) if modes is None else list(modes)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        intervals: Any = None,
        terms: Sequence[int] | None = None,
        axes: Any = None,
        **kwargs: Any,
    ) -> "FactorsDisplay":
        """Draw the factors of a fitted model.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted.
        intervals : BootstrapResult, optional
            Of the same model; its factors are drawn, with their intervals.
        terms, axes, **kwargs
            As in `plot`.

        Returns
        -------
        FactorsDisplay
        """
        factors, scales = (attribute_of(estimator, name) for name in ("factors_", "scales_"))
        modes = modes_of(estimator)
        if intervals is None:
            return cls(factors, scales, modes=modes).plot(axes, terms=terms, **kwargs)
        _check_alike(factors, intervals)
        bounds = {"lower": intervals.lower, "upper": intervals.upper}
        display = cls(intervals.factors, scales, **bounds, modes=modes)
        return display.plot(axes, terms=terms, **kwargs)

    @classmethod
    def from_result(
        cls,
        result: Any,
        *,
        modes: Sequence[Mode] | None = None,
        terms: Sequence[int] | None = None,
        axes: Any = None,
        **kwargs: Any,
    ) -> "FactorsDisplay":
        """Draw the factors and intervals of a bootstrap.

        Parameters
        ----------
        result : BootstrapResult
        modes : list of M Mode, optional
            Names and coordinates; those of the result by default.
        terms, axes, **kwargs
            As in `plot`.

        Returns
        -------
        FactorsDisplay
        """
        bounds = {"lower": result.lower, "upper": result.upper}
        display = cls(result.factors, **bounds, modes=modes or modes_of_result(result))
        return display.plot(axes, terms=terms, **kwargs)

    def plot(
        self, axes: Any = None, *, terms: Sequence[int] | None = None, **kwargs: Any
    ) -> "FactorsDisplay":
        """Draw.

        Parameters
        ----------
        axes : sequence of M matplotlib axes, optional
            A new figure by default.
        terms : sequence of int, optional
            Which terms to draw; the first four by default.
        **kwargs : dict
            For the marks of entries that are not zero, as `Axes.plot` takes them.

        Returns
        -------
        FactorsDisplay
        """
        chosen = self._checked_terms(terms)
        panels = self._take_axes("axes", axes, len(self.factors))
        for mode in range(len(panels)):
            panels[mode].axhline(0, color=style.faint(panels[mode]), linewidth=0.8, zorder=0)
            for place, term in enumerate(chosen):
                self._draw_term(panels, mode, term, (place + 0.5) / len(chosen) - 0.5, kwargs)
        name_panels(panels, self.modes, "entry of the unit component")
        if len(chosen) > 1:
            self._name_terms(panels[-1], len(chosen))
        return self

    def _draw_term(
        self, panels: Axes, mode: int, term: int, shift: float, kwargs: dict[str, Any]
    ) -> None:
        """Draw the entries of one term in one mode, moved by a share of what they may take up."""
        panel, values = panels[mode], self.factors[mode][:, term]
        own = self.modes[mode]
        places = own.positions(len(values)) + SPREAD * own.step(len(values)) * shift
        colour, on = style.hue(panel, term), values != 0
        looks: dict[str, Any] = {"marker": style.marker(term), "linestyle": "", "color": colour}
        looks["markersize"] = 3 if len(values) > MANY else 5
        if self.lower is None or self.upper is None:
            panel.vlines(places[on], 0, values[on], color=colour, linewidth=1)
        else:
            ends = self.lower[mode][:, term], self.upper[mode][:, term]
            panel.vlines(places, *ends, color=colour, linewidth=1.5)
        panel.plot(places[on], values[on], **{**looks, "label": self._name(term), **kwargs})
        hollow = {"markerfacecolor": "none", "markeredgecolor": colour, "alpha": 0.5}
        panel.plot(places[~on], values[~on], **looks, **hollow)

    def _name(self, term: int) -> str:
        """Name a term, with its scale."""
        if self.scales is None:
            return f"term {term}"
        return f"term {term}, scale {self.scales[term]:.3g}"

    def _name_terms(self, panel: Any, n_drawn: int) -> None:
        """Name the terms above the entries, which are everywhere else."""
        low, high = panel.get_ylim()
        panel.set_ylim(low, high + 0.3 * (high - low))
        title = self._legend_title(n_drawn)
        panel.legend(title=title, loc="upper center", ncols=2, fontsize="small")

    def _legend_title(self, n_drawn: int) -> str | None:
        """Say so where not all terms are drawn."""
        n_terms = self.factors[0].shape[1]
        return None if n_drawn == n_terms else f"{n_drawn} of {n_terms} terms"

    def _checked_terms(self, terms: Sequence[int] | None) -> list[int]:
        """Return which terms are drawn."""
        n_terms = self.factors[0].shape[1]
        if terms is None:
            return list(range(min(n_terms, N_TERMS)))
        if not len(terms) or not all(0 <= term < n_terms for term in terms):
            raise ValueError(
                f"terms is {terms!r}; expected whole numbers from 0 to {n_terms - 1}, one or more."
            )
        return [int(term) for term in terms]


def _check_alike(factors: Sequence[Array], intervals: Any) -> None:
    """Refuse intervals of another kind of model."""
    found = [np.shape(factor) for factor in getattr(intervals, "factors", [])]
    expected = [factor.shape for factor in factors]
    if found != expected:
        raise ValueError(
            f"intervals has factors of shapes {found}; expected {expected}, those of the "
            "estimator. Pass what bootstrap_factors(estimator, X, y) returns."
        )
