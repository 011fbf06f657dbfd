"""What times and digits depend on: versions, processor, threads."""

import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info

import pyfastr

_PACKAGES = ("numpy", "scipy", "scikit-learn", "celer")


def environment() -> dict[str, str]:
    """Describe the machine and the versions.

    Returns
    -------
    dict of str
    """
    # Threads are counted where a BLAS is loaded; importing NumPy loads it.
    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    return {
        "pyfastr": pyfastr.__version__,
        "Python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
        "system": f"{platform.system()} {platform.machine()}",
        "CPU": _processor(),
        "cores": str(os.cpu_count()),
        "BLAS threads": str(threads),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
    }


def environment_name(facts: dict[str, str]) -> str:
    """Give facts a short name: the same facts, the same name.

    Parameters
    ----------
    facts : dict of str

    Returns
    -------
    str
    """
    return hashlib.sha256(repr(sorted(facts.items())).encode()).hexdigest()[:8]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _processor() -> str:
    """Name the processor as the system does."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
