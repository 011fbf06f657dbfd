"""Centring and scaling of tensors, with statistics that may be shared over modes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.lazy import by_chunks
from pyfastr.estimators.namespaces import DispatchMixin, check_same_place, fits_arrays
from pyfastr.estimators.outlets import SavedMixin
from pyfastr.estimators.reading import in_plain_units, read_weights
from pyfastr.estimators.sklearn_private import StrOptions, checks_parameters
from pyfastr.estimators.validation import (
    check_tensor,
    finite_blocks,
    finite_blocks_there,
)
from pyfastr.sources import DeviceSource, ScaledSource, Source, as_source, computed, is_in_memory
from pyfastr.sources.namespaces import device_of, is_foreign, namespace_of, to_device, to_host

Array = NDArray[Any]


class TensorScaler(
    SavedMixin, DispatchMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator
):
    r"""Centre and scale tensors: per element, per slice of some modes, or as a whole.

    .. math:: z = (x - \mu) / \sigma

    where :math:`\mu` and :math:`\sigma` (with the divisor n) are taken over all samples
    and over the modes that `per` does not name. A :math:`\sigma` of zero counts as 1.

    Parameters
    ----------
    with_mean : bool, default=True
        Whether to centre.
    with_std : bool, default=True
        Whether to scale to unit standard deviation.
    per : "element", "global", int or tuple of int, default="element"
        What has a mean and a scale of its own.

        - ``"element"``: every element of a sample, as
          :class:`~sklearn.preprocessing.StandardScaler` does for columns.
        - ``"global"``: nothing; one mean and one scale serve all.
        - an int or a tuple: every slice of these modes. Modes are counted from 0 over
          the axes of a sample, negative ones from the last. With samples of shape
          ``(channels, times)``, ``per=0`` scales each channel over all its times.

    Attributes
    ----------
    mean_ : ndarray or None
        The means, of the shape of a sample with size 1 in the shared modes, so that
        ``X - mean_`` broadcasts. None if ``with_mean=False``.
    scale_ : ndarray or None
        The scales in the same shape. None if ``with_std=False``.
    n_samples_seen_ : int or float
        Number of samples, or the sum of their weights.
    tensor_shape_in_ : tuple of int
        Shape ``(p1, ..., pM)`` of a sample.
    n_features_in_ : int
        Size of the first mode.

    Notes
    -----
    `fit` reads X once, block by block, and merges the moments of the blocks by the
    update of Chan, Golub and LeVeque, which does not subtract large squares from each
    other. Beside X it needs memory for a few blocks and the statistics.

    Examples
    --------
    >>> import numpy as np
    >>> from pyfastr.estimators import TensorScaler
    >>> X = np.arange(24.0).reshape(4, 3, 2)
    >>> scaler = TensorScaler(per=0).fit(X)
    >>> scaler.mean_.ravel()
    array([ 9.5, 11.5, 13.5])
    >>> bool(np.isclose(scaler.transform(X)[:, 0].std(), 1.0))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "with_mean": ["boolean"],
        "with_std": ["boolean"],
        "per": [StrOptions({"element", "global"}), Integral, tuple, list],
    }

    mean_: Array | None
    scale_: Array | None
    tensor_shape_in_: tuple[int, ...]

    def __init__(
        self,
        *,
        with_mean: bool = True,
        with_std: bool = True,
        per: str | int | tuple[int, ...] = "element",
    ) -> None:
        self.with_mean = with_mean
        self.with_std = with_std
        self.per = per

    @checks_parameters
    @fits_arrays
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "TensorScaler":
        """Compute means and scales.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 equals a sample that is there twice, a weight of 0 one that is
            not there.

        Returns
        -------
        TensorScaler
            The fitted scaler itself.
        """
        X = check_tensor(self, X, reset=True)
        weights = read_weights(computed(sample_weight), X.shape[0])
        self.n_samples_seen_ = X.shape[0] if sample_weight is None else float(weights.sum())
        self._set_statistics(as_source(X), in_plain_units(weights))
        return self

    def _set_statistics(self, source: Source, weights: Array) -> None:
        """Compute means and scales in one pass."""
        moments = _moments(source, weights, _shared_modes(self.per, len(source.shape) - 1))
        self.mean_ = _check_no_overflow(moments.mean) if self.with_mean else None
        self.scale_ = _scale(moments, source.shape[0]) if self.with_std else None

    @by_chunks
    def transform(self, X: Any) -> Any:
        """Centre and scale into a new array, or as blocks are read if X is in files.

        Parameters
        ----------
        X : array-like or stored, of shape (n_samples, p1, ..., pM)

        Returns
        -------
        ndarray of shape (n_samples, p1, ..., pM)
            float32 for float32 input, otherwise float64. For X in files, a source that all
            estimators take as X, that scales each block when it is read, and of which
            ``np.asarray`` makes an array. For a Dask array, another one, not computed yet.
        """
        check_is_fitted(self)
        check_same_place(self, X, "transform")
        source = as_source(check_tensor(self, X, reset=False))
        if isinstance(source, DeviceSource):
            return self._scaled_there(source)
        mean, scale = to_host(self.mean_), to_host(self.scale_)
        if not is_in_memory(source):
            return ScaledSource(source, mean, scale)
        out = np.empty(source.shape, dtype=source.dtype)
        for rows, block in finite_blocks(source):
            # Written straight into the result; the mean is float64, so a float32 block
            # is rounded once.
            np.subtract(block, 0.0 if mean is None else mean, out=out[rows])
            if scale is not None:
                out[rows] /= scale
        return out

    @by_chunks
    def inverse_transform(self, X: Any) -> Array:
        """Undo `transform` into a new array.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)

        Returns
        -------
        ndarray of shape (n_samples, p1, ..., pM)
            float32 for float32 input, otherwise float64.
        """
        check_is_fitted(self)
        check_same_place(self, X, "inverse_transform")
        source = as_source(check_tensor(self, X, reset=False, feature_names=False))
        if isinstance(source, DeviceSource):
            return self._scaled_back_there(source)
        mean, scale = to_host(self.mean_), to_host(self.scale_)
        out = np.empty(source.shape, dtype=source.dtype)
        for rows, block in finite_blocks(source):
            np.multiply(block, 1.0 if scale is None else scale, out=out[rows])
            if mean is not None:
                out[rows] += mean
        return out

    def _scaled_there(self, source: DeviceSource) -> Any:
        """Centre and scale on the device of X."""

        def scaled(block: Any) -> Any:
            block = block if self.mean_ is None else block - self.mean_
            return block if self.scale_ is None else block / self.scale_

        return _mapped_there(source, scaled)

    def _scaled_back_there(self, source: DeviceSource) -> Any:
        """Undo that on the device of X."""

        def scaled_back(block: Any) -> Any:
            block = block if self.scale_ is None else block * self.scale_
            return block if self.mean_ is None else block + self.mean_

        return _mapped_there(source, scaled_back)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns, for samples that are vectors (M = 1).

        Parameters
        ----------
        input_features : array-like of str or None, default=None

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        if len(self.tensor_shape_in_) > 1:
            raise ValueError(
                f"TensorScaler was fitted on samples of shape {self.tensor_shape_in_}: only "
                "the columns of a two-dimensional X have names and fit into a data frame. "
                'For arrays use set_output(transform="default").'
            )
        names: Array = super().get_feature_names_out(input_features)
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # In addition to two_d_array, which stays True: a matrix is the case M = 1.
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _mapped_there(source: DeviceSource, change: Callable[[Any], Any]) -> Any:
    """Return an array on the device, made of X block by block."""
    xp = namespace_of(source.array)
    out = xp.empty(source.shape, dtype=source.block_dtype, device=device_of(source.array))
    for rows, block in finite_blocks_there(source):
        out[rows, ...] = xp.astype(change(block), source.block_dtype)
    return out


@dataclass(frozen=True)
class _Moments:
    """How much was seen, its mean, and the sum of squared deviations from it."""

    weight: float
    mean: Array
    squares: Array

    def merge(self, other: "_Moments") -> "_Moments":
        """Moments of both sets together (Chan, Golub and LeVeque)."""
        weight = self.weight + other.weight
        step = other.mean - self.mean
        return _Moments(
            weight,
            self.mean + step * (other.weight / weight),
            self.squares + other.squares + step**2 * (self.weight * other.weight / weight),
        )


def _moments(source: Source, weights: Array, shared: tuple[int, ...]) -> _Moments:
    """Weighted moments of X over the samples and the shared modes, in one pass."""
    total: _Moments | None = None
    # What overflows is refused afterwards, in words.
    with np.errstate(over="ignore", invalid="ignore"):
        for rows, block in finite_blocks_there(source):
            if weights[rows].any():
                moments = _moments_there if is_foreign(block) else _block_moments
                part = moments(block, weights[rows], shared)
                total = part if total is None else total.merge(part)
    assert total is not None, "weights that are all zero have been refused"
    return total


def _block_moments(block: Array, weights: Array, shared: tuple[int, ...]) -> _Moments:
    """Moments of one block: a float64 block of deviations is all that is made.

    Three products with the weights and one subtraction: 8 flops an entry.
    """
    weight = float(weights.sum())

    def total(values: Array) -> Array:
        per_element = weights @ values.reshape(len(values), -1)
        summed: Array = per_element.reshape(values.shape[1:]).sum(axis=shared, keepdims=True)
        return summed

    count = weight * np.prod([block.shape[mode + 1] for mode in shared])
    mean = total(block) / count
    deviations = np.subtract(block, mean, dtype=np.float64)
    # The first mean carries the rounding of a long sum; the deviations are small, so
    # their mean repairs it.
    repair = total(deviations) / count
    squares = total(np.square(deviations, out=deviations)) - count * repair**2
    return _Moments(float(count), mean + repair, np.maximum(squares, 0.0))


def _moments_there(block: Any, weights: Array, shared: tuple[int, ...]) -> _Moments:
    """Return the same of a block on a device, in the widest type that it has."""
    xp = namespace_of(block)
    wide = to_device(np.ones(1), like=block).dtype
    values = xp.astype(block, wide, copy=False)
    g = xp.reshape(to_device(weights, like=block), (-1, *[1] * (block.ndim - 1)))
    axes = (0, *(mode + 1 for mode in shared))
    count = float(weights.sum()) * prod(block.shape[mode + 1] for mode in shared)
    mean = xp.sum(g * values, axis=axes, keepdims=True) / count
    values = values - mean
    repair = xp.sum(g * values, axis=axes, keepdims=True) / count
    squares = xp.sum(g * values**2, axis=axes, keepdims=True)
    mean, repair, squares = (to_host(own)[0].astype(float) for own in (mean, repair, squares))
    return _Moments(count, mean + repair, np.maximum(squares - count * repair**2, 0.0))


def _scale(moments: _Moments, n_samples: int) -> Array:
    """Return the standard deviation, 1 where it is no more than rounding."""
    variance = _check_no_overflow(moments.squares / moments.weight)
    rounding = np.finfo(np.float64).eps * n_samples
    constant = variance <= rounding * variance + (rounding * moments.mean) ** 2
    scale: Array = np.where(constant, 1.0, np.sqrt(variance))
    return scale


def _check_no_overflow(statistic: Array) -> Array:
    """Refuse a sum that has left the range of float64."""
    if not np.isfinite(statistic).all():
        raise ValueError(
            "The entries of X are too large for their mean or variance to be a float64; "
            "bring X to a scale below 1e150 before fitting TensorScaler."
        )
    return statistic


def _shared_modes(per: Any, n_modes: int) -> tuple[int, ...]:
    """Modes that a mean and a scale are taken over, beside the samples."""
    if isinstance(per, str):
        return () if per == "element" else tuple(range(n_modes))
    named: Iterable[Any] = (per,) if isinstance(per, Integral) else per
    own = {_check_mode(mode, n_modes, per) for mode in named}
    return tuple(mode for mode in range(n_modes) if mode not in own)


def _check_mode(mode: Any, n_modes: int, per: Any) -> int:
    """Return a mode counted from the first."""
    if not isinstance(mode, Integral) or not -n_modes <= int(mode) < n_modes:
        raise ValueError(
            f"per={per!r} names mode {mode!r}; expected ints from {-n_modes} to "
            f"{n_modes - 1}, because samples have {n_modes} modes."
        )
    return int(mode) % n_modes
