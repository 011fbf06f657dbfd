"""In which two modes samples are symmetric: recognised, or asked for and checked."""

from numbers import Integral
from typing import Any, NoReturn

from pyfastr.solver.ties import UNTIED, Ties
from pyfastr.sources import Pair, Source, equal_modes, first_asymmetry, look_over


def looked_over(source: Source, symmetry: Any) -> tuple[float, Ties]:
    """Return the size of the largest entry of X, and the modes to tie, in one pass over X.

    Parameters
    ----------
    source : Source
    symmetry : "auto", None or pair of int
        As estimators take it.
    """
    asked = None if symmetry is None or isinstance(symmetry, str) else symmetry
    shape = source.shape[1:]
    pairs: tuple[Pair, ...] = ()
    if asked is not None:
        pairs = (_checked_pair(asked, shape),)
    elif symmetry is not None:
        pairs = equal_modes(shape)
    largest, symmetric = look_over(source, pairs)
    if asked is not None and not symmetric:
        _raise_not_symmetric(source, pairs[0], asked)
    return largest, Ties(symmetric[0]) if symmetric else UNTIED


def _checked_pair(symmetry: Any, shape: tuple[int, ...]) -> Pair:
    """Return two modes that a user names, in ascending order, negative ones from the last."""
    n_modes, named = len(shape), list(symmetry)
    known = all(isinstance(m, Integral) and -n_modes <= int(m) < n_modes for m in named)
    modes = sorted({int(m) % n_modes for m in named}) if known else []
    if len(named) != 2 or len(modes) != 2:
        raise ValueError(
            f"symmetry is {symmetry!r}; expected 'auto', None or two different modes of samples of "
            f"shape {shape}, counted from 0 to {n_modes - 1}."
        )
    first, second = modes
    if shape[first] != shape[second]:
        raise ValueError(
            f"symmetry is {symmetry!r}, but modes {first} and {second} of samples of shape {shape} "
            f"have {shape[first]} and {shape[second]} entries; expected two of one size."
        )
    return first, second


def _raise_not_symmetric(source: Source, pair: Pair, asked: Any) -> NoReturn:
    """Name the first entry that differs from its mirror image."""
    for rows in source.slices:
        block = source.read(rows)
        place = first_asymmetry(block, pair)
        if place is None:
            continue
        number, *entry = place
        mirrored = list(entry)
        mirrored[pair[0]], mirrored[pair[1]] = entry[pair[1]], entry[pair[0]]
        values = (float(block[(number, *own)]) for own in (entry, mirrored))
        raise ValueError(
            f"symmetry is {asked!r}, but X is not symmetric in these modes: first in sample "
            f"{rows.start + number}, where element {tuple(entry)} is {next(values):.6g} and "
            f"element {tuple(mirrored)} is {next(values):.6g}. Pass "
            f"(X + np.swapaxes(X, {pair[0] + 1}, {pair[1] + 1})) / 2 if these are to be equal, or "
            "symmetry=None."
        )
    raise AssertionError("samples differ from one pass over X to the next")
