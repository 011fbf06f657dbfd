"""What the page's viewer is given: factors and scales, from which it multiplies any slice."""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.display.modes import Mode, modes_of
from pyfastr.display.slices import peak
from pyfastr.display.templating import json_for_page

Array = NDArray[Any]

# Grey levels span these percentiles of the anatomy, as a few bright voxels would darken all else.
DARKEST, BRIGHTEST = 1.0, 99.5


@dataclass(frozen=True)
class ViewedMode:
    """A mode as the controls name it."""

    label: str
    size: int


@dataclass(frozen=True)
class Viewer:
    """The viewer of one coefficient, for its template.

    Attributes
    ----------
    data : str
        JSON for the script.
    modes : list of ViewedMode
    terms : list of str
        Scale of each term; empty if there is one.
    n_panels : int
        Three linked slices, or the one of a matrix.
    has_background : bool
    is_anatomical : bool
        Whether the sides of slices have names.
    """

    data: Any
    modes: list[ViewedMode]
    terms: list[str]
    n_panels: int
    has_background: bool
    is_anatomical: bool


def make_viewer(model: Any, part: Any, background: Any = None, mask: Any = None) -> Viewer | None:
    """Gather what the viewer needs of a fitted model.

    Parameters
    ----------
    model : estimator or Pipeline
        Knows the names of modes.
    part : estimator
        Has the coefficient.
    background : array-like of the shape of coef_, optional
    mask : array-like of bool of the shape of coef_, optional
        Where the coefficient meets data; elsewhere it is shown as zero.

    Returns
    -------
    Viewer or None
        None for vectors, of which there are no slices.
    """
    shape = part.coef_.shape
    anatomy = None if background is None else _as_bytes(background, shape)
    seen = part.coef_ if mask is None else np.where(_checked_mask(mask, shape), part.coef_, 0)
    if len(shape) < 2:
        return None
    modes = modes_of(model)
    terms = [f"{scale:.3g}" for scale in part.scales_] if len(part.scales_) > 1 else []
    data = {
        "shape": list(shape),
        "factors": [_encoded(factor) for factor in part.factors_],
        "scales": _encoded(part.scales_),
        "modes": [_mode_data(mode) for mode in modes],
        "shown": _shown(modes),
        "anatomical": _is_anatomical(modes),
        "peak": list(peak(seen)),
        "limits": _limits(part, seen),
        "background": anatomy,
        "mask": None if mask is None else _as_bits(mask),
    }
    return Viewer(
        data=json_for_page(data),
        modes=[ViewedMode(mode.label, size) for mode, size in zip(modes, shape, strict=True)],
        terms=terms,
        n_panels=1 if len(shape) == 2 else 3,
        has_background=anatomy is not None,
        is_anatomical=_is_anatomical(modes),
    )


def _encoded(numbers: Array) -> str:
    """Write float64 numbers, little-endian and in C order, as base64."""
    return base64.b64encode(np.ascontiguousarray(numbers, "<f8").tobytes()).decode()


def _limits(part: Any, seen: Array) -> list[float]:
    """Return the largest magnitude of all terms together, then of each."""
    highest = np.prod([np.abs(factor).max(axis=0) for factor in part.factors_], axis=0)
    alone = np.abs(np.asarray(part.scales_, float)) * highest
    return [float(np.abs(seen).max()), *alone.tolist()]


def _is_anatomical(modes: list[Mode]) -> bool:
    """Tell whether modes are the axes of space: x to the right, y to the front, z upwards."""
    return sorted(mode.name for mode in modes) == ["x", "y", "z"] and {
        mode.unit for mode in modes
    } == {"mm"}


def _shown(modes: list[Mode]) -> list[int]:
    """Return the modes to begin with: the columns and rows of a matrix, else the first three."""
    if len(modes) == 2:
        return [1, 0]
    if _is_anatomical(modes):
        names = [mode.name for mode in modes]
        return [names.index(name) for name in "xyz"]
    return [0, 1, 2]


def _mode_data(mode: Mode) -> dict[str, Any]:
    return {"name": mode.name, "unit": mode.unit, "coords": _coordinates(mode.ticks)}


def _coordinates(ticks: Array | None) -> list[float] | list[str] | None:
    """Return coordinates as numbers, or as text where they are labels or dates."""
    if ticks is None:
        return None
    if ticks.dtype.kind in "iuf" and np.isfinite(ticks).all():
        return [float(tick) for tick in ticks]
    return [str(tick) for tick in ticks]


def _checked_mask(mask: Any, shape: tuple[int, ...]) -> Array:
    """Return a mask as bool, of the shape of the coefficient."""
    inside = np.asarray(mask, dtype=bool)
    if inside.shape != shape:
        raise ValueError(f"mask has shape {inside.shape}; expected {shape}, the shape of coef_.")
    return inside


def _as_bits(mask: Any) -> str:
    """Return a mask as bits in base64, the first entry in the highest bit of a byte."""
    return base64.b64encode(np.packbits(np.asarray(mask, dtype=bool).ravel()).tobytes()).decode()


def _as_bytes(background: Any, shape: tuple[int, ...]) -> str:
    """Return an anatomical image as grey levels in base64."""
    image = np.asarray(background, dtype=float)
    if image.shape != shape:
        raise ValueError(
            f"background has shape {image.shape}; expected {shape}, the shape of coef_: an image "
            "on the grid of the samples."
        )
    seen = image[np.isfinite(image) & (image != 0)]
    low, high = np.percentile(seen, [DARKEST, BRIGHTEST]) if seen.size else (0.0, 1.0)
    low = min(low, 0.0) if low >= 0 else low
    share = np.nan_to_num((image - low) / ((high - low) or 1.0), posinf=1.0, neginf=0.0)
    return base64.b64encode(np.round(255 * share.clip(0, 1)).astype(np.uint8).tobytes()).decode()
