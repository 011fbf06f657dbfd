"""The slices of tensors that a model uses, as a step of a pipeline."""

from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.lazy import by_chunks
from pyfastr.estimators.namespaces import hosted
from pyfastr.estimators.outlets import SavedMixin
from pyfastr.estimators.sklearn_private import (
    HasMethods,
    check_feature_names_in,
    checks_parameters,
    routing_enabled,
)
from pyfastr.estimators.validation import check_modes_asked_for, check_tensor, finite_blocks
from pyfastr.estimators.warning import warn
from pyfastr.sources import Source, as_source

Array = NDArray[Any]


class SliceSelector(SavedMixin, MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    r"""Keep the slices of every mode that the coefficient of an estimator uses.

    It is scikit-learn's ``SelectFromModel`` for tensors. With :math:`S_m` the entries of mode m
    that are not zero in some term of the coefficient, a sample becomes

    .. math:: X_i[S_1 \times \dots \times S_M],

    a smaller tensor of as many modes, which any estimator of tensors takes.

    Parameters
    ----------
    estimator : estimator
        FasTRRegressor, FasTRClassifier, a CV twin, or another whose fit leaves `factors_`, or a
        `coef_` of the shape of a sample. Without a threshold it uses every slice.
    modes : int, sequence of int or None, default=None
        Modes to crop, counted from 0 over the axes of a sample, negative ones from the last; the
        others keep all slices. None crops all.
    prefit : bool, default=False
        Whether `estimator` is fitted already; it is then used as it is.

    Attributes
    ----------
    estimator_ : estimator
        The fitted one.
    support_ : list of M ndarrays of shape (p_m,)
        Of bool: which slices are kept.
    tensor_shape_in_ : tuple of int
        Shape ``(p1, ..., pM)`` of a sample.
    n_features_in_ : int
        Size of the first mode.

    See Also
    --------
    pyfastr.inference.stability_selection : How often entries are used in subsamples.

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.estimators.selector import SliceSelector
    >>> X, y, W = make_tensor_regression(100, (8, 6), sparsity=0.5, coef=True, random_state=0)
    >>> selector = SliceSelector(FasTRRegressor(threshold=0.1, random_state=0)).fit(X, y)
    >>> selector.transform(X).shape == (100, W.any(axis=1).sum(), W.any(axis=0).sum())
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods("fit")],
        "modes": [Integral, "array-like", None],
        "prefit": ["boolean"],
    }

    tensor_shape_in_: tuple[int, ...]

    def __init__(
        self, estimator: Any, *, modes: int | Sequence[int] | None = None, prefit: bool = False
    ) -> None:
        self.estimator = estimator
        self.modes = modes
        self.prefit = prefit

    @partial(checks_parameters, nested=True)
    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> "SliceSelector":
        """Fit the estimator, unless it is fitted already, and find the slices that it uses.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)
        y : array-like of shape (n_samples,)
        **fit_params : dict
            For the estimator's `fit`, such as `sample_weight` and `covariates`.

        Returns
        -------
        SliceSelector
            The fitted selector itself.
        """
        tensor = check_tensor(self, X, reset=True)
        cropped = check_modes_asked_for(self.modes, len(tensor.shape) - 1)
        if self.prefit:
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
        else:
            routed = dict(fit_params)
            if routing_enabled():
                routed = process_routing(self, "fit", **fit_params).estimator.fit
            self.estimator_ = clone(self.estimator).fit(X, y, **routed)
        used = _used_slices(self.estimator_, self.tensor_shape_in_)
        self.support_ = [
            own if mode in cropped else np.ones_like(own) for mode, own in enumerate(used)
        ]
        return self

    @by_chunks
    def transform(self, X: Any) -> Array:
        """Crop samples to the slices that are kept.

        Parameters
        ----------
        X : array-like of shape (n_samples, p1, ..., pM)

        Returns
        -------
        ndarray of shape (n_samples, q1, ..., qM)
            Of the type of X; a view of it if the slices kept are neighbours in every mode.
        """
        check_is_fitted(self)
        tensor = check_tensor(self, X, reset=False)
        if not all(own.any() for own in self.support_):
            warn("No slice is kept, because the coefficient of the estimator is zero.")
        kept = self.get_support(indices=True)
        if isinstance(tensor, Source):
            return _cropped_blocks(tensor, kept)
        cropped = _cropped(tensor, kept)
        if cropped.size:
            for _ in finite_blocks(as_source(cropped)):
                pass
        return cropped

    def inverse_transform(self, X: Any) -> Array:
        """Put cropped samples back in their place, with zeros for what was left out.

        Parameters
        ----------
        X : array-like of shape (n_samples, q1, ..., qM)

        Returns
        -------
        ndarray of shape (n_samples, p1, ..., pM)
        """
        check_is_fitted(self)
        X = np.asarray(X)
        expected = tuple(int(own.sum()) for own in self.support_)
        if X.shape[1:] != expected:
            raise ValueError(
                f"X has samples of shape {X.shape[1:]}; expected {expected}, as `transform` "
                "returns them."
            )
        out = np.zeros((len(X), *self.tensor_shape_in_), dtype=X.dtype)
        out[np.ix_(np.arange(len(X)), *self.get_support(indices=True))] = X
        return out

    def get_support(self, indices: bool = False) -> list[Array]:
        """Return which slices of each mode are kept.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return numbers of slices instead of masks.

        Returns
        -------
        list of M ndarrays
        """
        check_is_fitted(self)
        return [np.flatnonzero(own) for own in self.support_] if indices else list(self.support_)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns kept, for samples that are vectors (M = 1).

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
                f"SliceSelector was fitted on samples of shape {self.tensor_shape_in_}: only "
                "the columns of a two-dimensional X have names and fit into a data frame. "
                'For arrays use set_output(transform="default").'
            )
        names: Array = check_feature_names_in(self, input_features)[self.support_[0]]
        return names

    def get_metadata_routing(self) -> MetadataRouter:
        """Say that `fit` passes metadata on to the estimator.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = get_tags(self.estimator).target_tags.required
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _used_slices(estimator: Any, shape: tuple[int, ...]) -> list[Array]:
    """Return which slices of each mode some term of the coefficient uses."""
    estimator = hosted(estimator)
    factors = getattr(estimator, "factors_", [])
    if tuple(len(factor) for factor in factors) == shape:
        alive = np.asarray(getattr(estimator, "scales_", 1.0)) != 0
        return [((factor != 0) & alive).any(axis=1) for factor in factors]
    coef = np.asarray(getattr(estimator, "coef_", np.empty(0)))
    if coef.shape != shape:
        raise ValueError(
            f"estimator is {estimator!r}, whose fit leaves neither `factors_` nor a `coef_` of the "
            f"shape {shape} of a sample; expected an estimator that does, such as FasTRRegressor, "
            "and fitted to samples of that shape if it is `prefit`."
        )
    others = [tuple(m for m in range(coef.ndim) if m != mode) for mode in range(coef.ndim)]
    return [(coef != 0).any(axis=axes) for axes in others]


def _cropped_blocks(source: Source, kept: list[Array]) -> Array:
    """Keep slices of samples in files, reading a block at a time."""
    shape = (source.shape[0], *(len(own) for own in kept))
    out = np.empty(shape, source.dtype)
    if out.size:
        for rows, block in finite_blocks(source):
            out[rows] = _cropped(block, kept)
    return out


def _cropped(tensor: Array, kept: list[Array]) -> Array:
    """Keep slices: neighbours by a view, others by one copy of what is kept."""
    ranges = [_neighbours(own) for own in kept]
    view = tensor[(slice(None), *(own or slice(None) for own in ranges))]
    if None not in ranges:
        return view
    rest = [
        chosen if own is None else np.arange(len(chosen))
        for own, chosen in zip(ranges, kept, strict=True)
    ]
    return view[np.ix_(np.arange(len(view)), *rest)]


def _neighbours(chosen: Array) -> slice | None:
    """Return ascending numbers without gaps as a slice, others as None."""
    if not len(chosen):
        return slice(0, 0)
    first, last = int(chosen[0]), int(chosen[-1])
    return slice(first, last + 1) if last - first == len(chosen) - 1 else None
