"""Where X lives: blocks of samples behind one small protocol."""

from pyfastr.sources.base import (
    Source,
    as_source,
    block_where_it_is,
    is_stored,
    largest_entry,
    look_over,
    size_of,
)
from pyfastr.sources.cluster import ClusterSource
from pyfastr.sources.dask_array import WholeSamples, computed, dask_behind
from pyfastr.sources.device import DeviceSource, is_on_device
from pyfastr.sources.memory import ArraySource
from pyfastr.sources.rounded import RoundedSource
from pyfastr.sources.scaled import ScaledSource
from pyfastr.sources.stored import KeptSource, Reader, StoredSource, is_in_memory
from pyfastr.sources.symmetry import Pair, equal_modes, first_asymmetry
from pyfastr.sources.thinned import ThinnedSource, some_samples, thin

__all__ = [
    "ArraySource",
    "ClusterSource",
    "DeviceSource",
    "KeptSource",
    "Pair",
    "Reader",
    "RoundedSource",
    "ScaledSource",
    "Source",
    "StoredSource",
    "ThinnedSource",
    "WholeSamples",
    "as_source",
    "block_where_it_is",
    "computed",
    "dask_behind",
    "equal_modes",
    "first_asymmetry",
    "is_in_memory",
    "is_on_device",
    "is_stored",
    "largest_entry",
    "look_over",
    "size_of",
    "some_samples",
    "thin",
]
