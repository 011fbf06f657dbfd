"""Where X lives: blocks of samples behind one small protocol."""

from pyfastr.sources.base import Source, as_source, largest_entry
from pyfastr.sources.memory import ArraySource
from pyfastr.sources.rounded import RoundedSource
from pyfastr.sources.scaled import ScaledSource
from pyfastr.sources.thinned import ThinnedSource

__all__ = [
    "ArraySource",
    "RoundedSource",
    "ScaledSource",
    "Source",
    "ThinnedSource",
    "as_source",
    "largest_entry",
]
