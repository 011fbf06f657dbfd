"""What the modes of a fitted model are called, and where their entries lie."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display import style
from pyfastr.display.fitted import fitted_part
from pyfastr.estimators.selector import SliceSelector

Array = NDArray[Any]

# Coordinates are evenly spaced if steps differ by less than this share: affines are rounded.
_UNEVEN = 1e-3


@dataclass(frozen=True)
class Mode:
    """A mode of the samples.

    Parameters
    ----------
    name : str
    ticks : ndarray of shape (p,) or None, default=None
        Coordinates of the entries, numbers or labels; None counts them from 0.
    unit : str, default=""

    Examples
    --------
    >>> from pyfastr.display.modes import Mode
    >>> mode = Mode("z", [-10.0, -8.0, -6.0], "mm")
    >>> mode.label, mode.value(2)
    ('z (mm)', '-6 mm')
    """

    name: str
    ticks: Array | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        if self.ticks is not None:
            object.__setattr__(self, "ticks", np.asarray(self.ticks))

    @property
    def label(self) -> str:
        """The name with its unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def is_even(self) -> bool:
        """Whether entries lie at numbers that are evenly spaced, and so can be an axis."""
        if self.ticks is None or len(self.ticks) < 2 or self.ticks.dtype.kind not in "iuf":
            return False
        steps = np.diff(self.ticks.astype(float))
        return bool(
            np.isfinite(steps).all()
            and steps[0] != 0
            and np.abs(steps - steps[0]).max() <= _UNEVEN * abs(steps[0])
        )

    def positions(self, size: int) -> Array:
        """Return where the entries are drawn: at their coordinates if even, else counted.

        Parameters
        ----------
        size : int
            Number of entries.

        Returns
        -------
        ndarray of shape (size,)
        """
        self.check(size)
        if self.ticks is None or not self.is_even:
            return np.arange(size)
        return self.ticks.astype(float)

    def step(self, size: int) -> float:
        """Return the distance between entries that are drawn."""
        places = self.positions(size)
        return abs(float(places[1] - places[0])) if size > 1 else 1.0

    def check(self, size: int) -> None:
        """Refuse coordinates of another number of entries."""
        if self.ticks is not None and len(self.ticks) != size:
            raise ValueError(
                f"ticks of mode {self.name!r} has {len(self.ticks)} coordinates; expected one for "
                f"each of the {size} entries of the mode."
            )

    def cropped(self, kept: Array) -> "Mode":
        """Return the mode of some entries, which keep their coordinates or else their numbers."""
        if kept.all():
            return self
        ticks = np.arange(len(kept)) if self.ticks is None else self.ticks
        return replace(self, ticks=ticks[kept])

    def value(self, index: int) -> str:
        """Return the coordinate of an entry as text, with its unit."""
        if self.ticks is None:
            return str(index)
        tick = self.ticks[index]
        text = f"{tick:.4g}" if self.ticks.dtype.kind == "f" else str(tick)
        return f"{text} {self.unit}" if self.unit else text

    def label_axis(self, axis: Any) -> None:
        """Name an axis, and write coordinates beside it that are labels or unevenly spaced."""
        axis.set_label_text(self.label)
        if self.is_even:
            return
        # Entries have whole numbers, and there is nothing between them.
        style.whole_numbers(axis)
        if self.ticks is not None:
            axis.set_major_formatter(self._tick_text)

    def _tick_text(self, position: float, _: Any = None) -> str:
        """Return the coordinate at a position of the axis, if there is an entry."""
        ticks: Array = np.asarray(self.ticks)
        index = round(position)
        if abs(index - position) > 1e-6 or not 0 <= index < len(ticks):
            return ""
        tick = ticks[index]
        return f"{tick:.4g}" if ticks.dtype.kind == "f" else str(tick)


def modes_of(model: Any) -> list[Mode]:
    """Return the modes of a fitted model with the names and coordinates that its X had.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted.

    Returns
    -------
    list of M Mode
        Called "mode 0", "mode 1" and so on where X was a plain array.

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.display.modes import modes_of
    >>> X, y = make_tensor_regression(50, (4, 3), random_state=0)
    >>> [mode.name for mode in modes_of(FasTRRegressor().fit(X, y))]
    ['mode 0', 'mode 1']
    """
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    modes = _named_by(steps) or plain_modes(len(fitted_part(model).tensor_shape_in_))
    for step in steps:
        if isinstance(step, SliceSelector):
            pairs = zip(modes, step.get_support(), strict=True)
            modes = [mode.cropped(kept) for mode, kept in pairs]
    return modes


def modes_of_result(result: Any) -> list[Mode] | None:
    """Return the modes that a result of inference or a path knows; None if they have no names."""
    names = getattr(result, "mode_names", None)
    if names is not None:
        return _named_modes(names, result.mode_coords)
    return getattr(result, "labels", None) or None


def plain_modes(n_modes: int) -> list[Mode]:
    """Return modes that are numbered."""
    return [Mode(f"mode {mode}") for mode in range(n_modes)]


def _named_by(steps: Sequence[Any]) -> list[Mode] | None:
    """Return the modes as the first of the steps that knows names calls them."""
    # What a transformer of images gives the modes is called so without "in".
    for step, end in product(steps, ("in_", "")):
        if hasattr(step, f"mode_names_{end}"):
            names = getattr(step, f"mode_names_{end}")
            return _named_modes(names, getattr(step, f"mode_coords_{end}", None))
    return None


def _named_modes(names: Sequence[Any], ticks: Sequence[Any] | None) -> list[Mode]:
    pairs = zip(names, ticks or [None] * len(names), strict=True)
    return [_mode(str(name), own) for name, own in pairs]


def _mode(name: str, ticks: Any) -> Mode:
    """Take the unit out of a name such as "x (mm)"."""
    found = re.fullmatch(r"(.*\S)\s*\(([^()]+)\)", name)
    return Mode(found[1], ticks, found[2]) if found else Mode(name, ticks)
