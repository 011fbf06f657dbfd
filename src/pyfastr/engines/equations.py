"""Sums over all blocks, and what they tell of models: normal equations and residuals."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyfastr.engines.kernels import Stated, work_parts
from pyfastr.engines.parallel import map_threads
from pyfastr.engines.samples import Samples, rows_of
from pyfastr.engines.solving import solve

Array = NDArray[Any]

# Taking the nuisance out leaves errors of about this many units in the last place.
ROUNDING = 32
# If the nuisance leaves less of a feature than this power of the precision, a difference of
# products is mostly rounding.
CANCELLATION = 0.25


@dataclass(frozen=True)
class Fits:
    """How well K models fit the response.

    Attributes
    ----------
    rss : ndarray of shape (K,)
        Sums of squared weighted residuals beside intercept and covariates.
    misfit : ndarray of shape (K,)
        Share of the response that is left unexplained at the scale that fits best.
    """

    rss: Array
    misfit: Array

    @classmethod
    def of(cls, left: Array, samples: Samples, task: Array) -> "Fits":
        """Read them off the sums of residuals; there are none of models that are not judged."""
        if not left.shape[1]:
            return cls(np.empty(0), np.empty(0))
        rss = np.maximum(left[:, 0] - np.sum(left[:, 2:] ** 2, axis=1), 0)
        total = rows_of(samples.total, task)
        with_z = left[:, 1] - np.sum(left[:, 2:] * rows_of(samples.explained, task), axis=1)
        aligned = (total - with_z) ** 2
        explained = total - 2 * with_z + rss
        size = total * explained
        return cls(rss, 1 - aligned / np.where(size > 0, size, 1))

    @staticmethod
    def are_doubtful(left: Array) -> Array:
        """Tell where intercept and covariates explain nearly all of the sums of residuals."""
        explained = np.sum(left[:, 2:] ** 2, axis=1)
        return left[:, 0] - explained < np.finfo(float).eps ** CANCELLATION * left[:, 0]

    def overwrite(self, which: Array, new: "Fits") -> None:
        """Replace those of some models, if models are judged."""
        if len(self.rss):
            self.rss[which], self.misfit[which] = new.rss, new.misfit

    def take(self, which: Array | slice) -> "Fits":
        """Return those of some models."""
        return Fits(self.rss[which], self.misfit[which])


@dataclass(frozen=True)
class Equations:
    """Normal equations of K models, intercept and covariates taken out, and their fits.

    Attributes
    ----------
    gram : ndarray of shape (K, q, q)
    moment : ndarray of shape (K, q)
    fits : Fits
        Of the models that the equations were made at, if these were judged.
    """

    gram: Array
    moment: Array
    fits: Fits

    def overwrite(self, which: Array, new: "Equations") -> None:
        """Replace those of some models."""
        self.gram[which], self.moment[which] = new.gram, new.moment
        self.fits.overwrite(which, new.fits)


@dataclass(frozen=True)
class Unfinished:
    """Products of features, nuisance and response, and the fit of features by the nuisance.

    Attributes
    ----------
    gram, cross, own, left : ndarray
        As `kernels.products` returns them.
    fit : ndarray of shape (K, c, q)
    is_doubtful : ndarray of shape (K,)
        Where little is left of a feature beside the nuisance.
    """

    gram: Array
    cross: Array
    own: Array
    left: Array
    fit: Array
    is_doubtful: Array

    @classmethod
    def of(cls, gram: Array, cross: Array, own: Array, left: Array) -> "Unfinished":
        """Fit features by the nuisance."""
        columns = cross[:, :, :-1]
        fit = solve_nuisance(own[:, :-1, :-1], columns.transpose(0, 2, 1)).astype(gram.dtype)
        size = np.einsum("kii->ki", gram)
        rest = size - np.einsum("kqc,kcq->kq", columns, fit)
        doubtful = np.any(rest < np.finfo(gram.dtype).eps ** CANCELLATION * size, axis=1)
        return cls(gram, cross, own, left, fit, doubtful)

    def without_nuisance(self) -> tuple[Array, Array]:
        """Return Gram matrices, overwritten, and moments of what the nuisance leaves."""
        gram, moment = self.gram, self.cross[:, :, -1]
        if not self.fit.shape[1]:
            return gram, moment

        def subtract(part: slice) -> None:
            gram[part] -= self.cross[part, :, :-1] @ self.fit[part]

        map_threads(subtract, work_parts(gram))
        beside = self.own[:, None, :-1, -1].astype(gram.dtype) @ self.fit
        return gram, moment - beside[:, 0]

    def settled(
        self, n_samples: int, shift: Array | None, explained: Array | None, weight: Any = 1.0
    ) -> tuple[Array, Array]:
        """Return the same; where X does not vary beside the nuisance, zeros instead of rounding.

        Parameters
        ----------
        n_samples : int
        shift : ndarray of shape (K, q), optional
            What was subtracted from the features of every sample.
        explained : ndarray of shape (K, c, q), optional
            Coefficients of the nuisance that was taken out of the features first.
        weight : float or ndarray of shape (K,)
            Mean weight of the samples.
        """
        gram, moment = self.without_nuisance()
        size = np.zeros(len(gram))
        if shift is not None:
            size += n_samples * np.einsum("kq,kq->k", shift, shift)
        if explained is not None:
            size += np.einsum("kcq,kcq->k", explained, explained)
        rounding = (ROUNDING * np.finfo(gram.dtype).eps) ** 2 * weight * size
        nothing = (np.einsum("kii->k", gram) <= rounding) & (size > 0)
        gram[nothing], moment[nothing] = 0, 0
        return gram, moment

    def finish(self, samples: Samples, stated: Stated, shift: Array | None) -> Equations:
        """Return the equations, and how well the models fit."""
        gram, moment = self.settled(len(samples), shift, stated.explained)
        return Equations(gram, moment, Fits.of(self.left, samples, stated.task))

    def explained(self) -> Array:
        """Return the fit of features by the nuisance for doubtful models, and zero for others.

        What is left of one model must not decide how the products of another are rounded.
        """
        return np.where(self.is_doubtful[:, None, None], self.fit, 0)


def solve_nuisance(gram: Array, rhs: Array) -> Array:
    """Solve for coefficients of the nuisance; those of zero columns are zero."""
    if gram.shape[1] == 1:
        # An intercept alone, mostly: one division.
        return np.asarray(rhs / np.where(gram == 0, 1, gram))
    diagonal = np.arange(gram.shape[1])
    gram = gram.copy()
    gram[:, diagonal, diagonal] += gram[:, diagonal, diagonal] == 0
    return solve(gram, rhs)
