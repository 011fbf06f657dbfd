"""The methods the paper names, behind the same estimator interface."""

from pyfastr.baselines.published import PublishedFasTR

__all__ = ["PublishedFasTR"]
