"""Packages that only some users need, for this room and those above."""

from pyfastr.sources.extras import require

__all__ = ["require"]
