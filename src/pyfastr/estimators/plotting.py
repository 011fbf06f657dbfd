"""Axes to draw on; matplotlib is an extra, and loaded when something is drawn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Axes = NDArray[Any]


def axes_for(axes: Any, n_panels: int) -> Axes:
    """Return the user's axes as an array, or those of a new figure with panels side by side."""
    if axes is None:
        return _new_axes(n_panels)
    given = np.asarray(axes, dtype=object).reshape(-1)
    if len(given) != n_panels:
        raise ValueError(
            f"axes has {len(given)} matplotlib axes; expected {n_panels}, or None for a new figure."
        )
    return given


def mode_axes(axes: Any, n_modes: int, y_label: str) -> Axes:
    """Return one panel for each mode, with titles."""
    panels = axes_for(axes, n_modes)
    for mode, panel in enumerate(panels):
        panel.set_title(f"mode {mode}")
    panels[0].set_ylabel(y_label)
    return panels


def _new_axes(n_panels: int) -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib, which is not installed. Run: pip install 'pyfastr[plot]'"
        ) from error
    size = (4.0 * n_panels, 3.5)
    _, panels = plt.subplots(1, n_panels, squeeze=False, figsize=size, layout="constrained")
    return panels[0]
