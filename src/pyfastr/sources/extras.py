"""Packages that only some users need, loaded when they are used."""

from importlib import import_module
from types import ModuleType


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Return a package that an extra brings, or say how to install it.

    Parameters
    ----------
    module : str
        Name to import.
    extra : str
        The extra of `pyfastr` that installs it.
    purpose : str
        What it is for, as the subject of a sentence: "Reading brain images".

    Returns
    -------
    module
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise ImportError(
            f"{purpose} needs {package}, which is not installed. "
            f"Run: pip install 'pyfastr[{extra}]'",
            name=package,
        ) from error
