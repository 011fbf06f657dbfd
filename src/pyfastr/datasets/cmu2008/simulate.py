"""Data of the geometry of CMU2008, drawn: a stand-in where the files cannot be had."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from pyfastr.datasets.cmu2008.classes import class_indices
from pyfastr.datasets.cmu2008.layout import (
    N_EPOCHS,
    SHAPE,
    TOOLS_AND_ANIMALS,
    Array,
    mni_affine,
)
from pyfastr.estimators.validation import as_generator

RandomState = int | np.random.RandomState | np.random.Generator | None

# The box that holds the brains of the nine participants, and a hollow core for white matter:
# 20,736 voxels, as the files have 19,750 to 21,764.
_CENTRE = (25.0, 30.5, 10.5)
_RADII = (22.5, 29.0, 10.5)
_CORE = 0.65

# Standard deviations in voxels: 4 mm of smoothness, 8 mm blobs, on voxels of 3.125×3.125×6 mm.
_NOISE_WIDTH = (1.28, 1.28, 0.67)
_BLOB_WIDTH = (2.56, 2.56, 1.33)
_N_BLOBS = 4
_EPOCH_SHARE = 0.3
_CONDITIONS = ("tool", "animal", "furniture", "insect")
_N_WORDS = 5

_DESCR = """SIMULATED data of the geometry of CMU2008: no participant, no measurement

{n_trials} trials on the grid of 51×61×23 voxels of CMU2008 within an ellipsoid with a hollow core.
Each is smooth Gaussian noise of standard deviation 1, of which its epoch shares a part, plus
or minus half of `difference`, {n_blobs} smooth blobs of height {signal} at random places. Results
on it say how methods behave at this size and smoothness, and nothing about brains.
"""


def make_cmu2008_like(
    n_trials: int = 120,
    *,
    signal: float = 0.9,
    random_state: RandomState = None,
) -> Bunch:
    r"""Draw trials of the geometry of CMU2008: simulated, to stand in for the files.

    Within a mask of a brain's size, in the class of sign :math:`s_i = \pm 1` and the epoch
    :math:`e_i`,

    .. math:: X_i = \tfrac{s_i}{2} D + \sqrt{0.3}\, E_{e_i} + \sqrt{0.7}\, F_i

    with smooth Gaussian noise E and F of unit variance and a difference D of four smooth blobs.

    Parameters
    ----------
    n_trials : int, default=120
        At least 12. Categories take turns, and the trials are cut into six epochs.
    signal : float, default=0.9
        Height of the blobs of D, in standard deviations of the noise of a voxel. 0 is pure
        noise; at 0.9 ridge reaches an AUC of about .8 on epochs it has not seen, and the
        difference of means in the 300 voxels where it is largest about .93.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws; an int gives the same data each time.

    Returns
    -------
    Bunch
        The fields of `load_cmu2008`, with `subject` "simulated", and also `difference`, an ndarray
        of float32 of shape (51, 61, 23): D, mean of the animals minus mean of the tools, the truth
        to be found.

    Examples
    --------
    >>> from pyfastr.datasets import make_cmu2008_like
    >>> trials = make_cmu2008_like(24, random_state=0)
    >>> trials.data.shape, trials.target_names
    ((24, 51, 61, 23), ['tools', 'animals'])
    """
    _check_arguments(n_trials, signal)
    rng = as_generator(random_state)
    mask = _brain_mask()
    difference = _blobs(rng, mask, signal)
    cond, word, epoch = _design(n_trials)
    target = class_indices(cond, dict(TOOLS_AND_ANIMALS))
    return Bunch(
        data=_draw_trials(rng, mask, difference, target, epoch),
        target=target,
        target_names=list(TOOLS_AND_ANIMALS),
        cond=cond,
        word=word,
        epoch=epoch,
        mask=mask,
        affine=mni_affine(),
        subject="simulated",
        difference=difference,
        DESCR=_DESCR.format(n_trials=n_trials, n_blobs=_N_BLOBS, signal=signal),
    )


def _check_arguments(n_trials: Any, signal: Any) -> None:
    """Refuse too few trials for both classes in every epoch, and what is no height."""
    least = 2 * N_EPOCHS
    if not isinstance(n_trials, Integral) or n_trials < least:
        raise ValueError(f"n_trials is {n_trials!r}; expected an int of at least {least}.")
    if not isinstance(signal, Real) or not 0.0 <= float(signal) < np.inf:
        raise ValueError(f"signal is {signal!r}; expected a number in [0, inf).")


def _brain_mask() -> Array:
    """Return an ellipsoid without its core."""
    distance = _squared_distance(_CENTRE, _RADII)
    return (distance <= 1.0) & (distance > _CORE**2)


def _squared_distance(centre: Sequence[float], radii: Sequence[float]) -> Array:
    """Return the squared distance of each voxel from a centre, in units of the radii."""
    squares = [
        ((np.arange(size) - middle) / radius) ** 2
        for size, middle, radius in zip(SHAPE, centre, radii, strict=True)
    ]
    return squares[0][:, None, None] + squares[1][:, None] + squares[2]


def _blobs(rng: np.random.Generator, mask: Array, signal: float) -> Array:
    """Return Gaussian bumps of either sign around voxels of the mask."""
    centres = rng.permutation(np.argwhere(mask))[:_N_BLOBS]
    signs = np.resize([1.0, -1.0], _N_BLOBS)
    bumps = sum(
        sign * np.exp(-0.5 * _squared_distance(centre, _BLOB_WIDTH))
        for sign, centre in zip(signs, centres, strict=True)
    )
    return np.asarray(signal * bumps * mask, dtype=np.float32)


def _design(n_trials: int) -> tuple[Array, Array, Array]:
    """Return category, word and epoch of each trial."""
    trial = np.arange(n_trials)
    cond = np.resize(_CONDITIONS, n_trials)
    number = trial // len(_CONDITIONS) % _N_WORDS + 1
    word = np.array([f"{c}{i}" for c, i in zip(cond, number, strict=True)])
    return cond, word, trial * N_EPOCHS // n_trials + 1


def _draw_trials(
    rng: np.random.Generator, mask: Array, difference: Array, target: Array, epoch: Array
) -> Array:
    """Return the trials, drawn one by one into the only array of their size."""
    shared = [_smooth_noise(rng) for _ in range(N_EPOCHS)]
    data = np.empty((len(target), *SHAPE), dtype=np.float32)
    own, common = np.sqrt(np.array([1 - _EPOCH_SHARE, _EPOCH_SHARE], dtype=np.float32))
    for image, label, time in zip(data, target, epoch, strict=True):
        noise = own * _smooth_noise(rng) + common * shared[time - 1]
        image[...] = (noise + np.float32(label - 0.5) * difference) * mask
    return data


def _smooth_noise(rng: np.random.Generator) -> Array:
    """Return a grid of smooth noise of unit variance, periodic so that edges are as the rest."""
    from scipy.ndimage import gaussian_filter

    white = rng.standard_normal(SHAPE, dtype=np.float32)
    smooth: Array = gaussian_filter(white, _NOISE_WIDTH, mode="wrap")
    return smooth / _norm_of_filter()


def _norm_of_filter() -> float:
    """Return the standard deviation that the filter leaves of white noise."""
    from scipy.ndimage import gaussian_filter1d

    norm = 1.0
    for size, width in zip(SHAPE, _NOISE_WIDTH, strict=True):
        impulse = np.zeros(size)
        impulse[size // 2] = 1.0
        norm *= float(np.linalg.norm(gaussian_filter1d(impulse, width, mode="wrap")))
    return norm
