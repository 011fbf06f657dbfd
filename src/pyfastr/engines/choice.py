"""Which engine works on a source."""

from pyfastr.engines.base import Engine
from pyfastr.engines.cluster import ClusterEngine
from pyfastr.engines.device import DeviceEngine
from pyfastr.engines.local import LocalEngine
from pyfastr.engines.samples import Samples
from pyfastr.sources import ClusterSource, Source, is_on_device


def engine_of(source: Source, samples: Samples | None = None, scale: float = 1.0) -> Engine:
    """Return the engine that works where a source is."""
    if isinstance(source, ClusterSource):
        return ClusterEngine(source, samples, scale)
    if is_on_device(source):
        return DeviceEngine(source, samples, scale)
    return LocalEngine(source, samples, scale)
