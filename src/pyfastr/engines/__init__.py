"""The one door to X: what is made of it, block by block, where the blocks are."""

from pyfastr.engines.base import Engine, Projected
from pyfastr.engines.choice import engine_of
from pyfastr.engines.device import DeviceEngine
from pyfastr.engines.draws import Draw
from pyfastr.engines.equations import Equations, Fits
from pyfastr.engines.local import LocalEngine
from pyfastr.engines.samples import Samples

__all__ = [
    "DeviceEngine",
    "Draw",
    "Engine",
    "Equations",
    "Fits",
    "LocalEngine",
    "Projected",
    "Samples",
    "engine_of",
]
