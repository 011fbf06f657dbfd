"""The work of `pyfastr info`: what a model file says of itself."""

from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from rich.text import Text

from pyfastr.cli.errors import as_input_error
from pyfastr.cli.samples import times
from pyfastr.cli.summary import chosen_text, facts, printable, sureness
from pyfastr.cli.voice import Voice

# What a forged header may come to.
_CONTRADICTIONS = (AttributeError, LookupError, TypeError, ValueError)


def run_info(path: Path, voice: Voice) -> None:
    """Read the header and show it.

    Parameters
    ----------
    path : Path
        Model file.
    voice : Voice
    """
    from pyfastr.persistence import ModelFileError, read_header

    with as_input_error(ModelFileError):
        header = read_header(path)
    size = path.stat().st_size
    with as_input_error(*_CONTRADICTIONS, what=f"The header of {path} makes no sense"):
        rows = _rows(path, header, size)
    voice.show(Text(printable(header["class"]), style="bold"), facts(rows))
    voice.document({"command": "info", "file": path, "bytes": size, **header})


def _rows(path: Path, header: dict[str, Any], size: int) -> dict[str, Any]:
    """Name what a person wants to know first."""
    search = header["search"]
    score = search.get("best_score")
    return {
        "file": f"{path} ({_size(size)})",
        "fitted to": _fitted_to(header),
        "held-out score": None if score is None else f"{float(score):.4f}",
        "chosen": chosen_text(search["best_params"]) if "best_params" in search else None,
        "why": search.get("choice"),
        "starts": _starts(search.get("starts")),
        "made by": _made_by(header["class"], header["parameters"]),
        "data": header["fingerprint"] and f"fingerprint {header['fingerprint'][:16]}",
        "written by": f"pyfastr {header['library_version']}, format {header['format_version']}",
    }


def _fitted_to(header: dict[str, Any]) -> str | None:
    """Say how many samples there were, and of which shape."""
    shape, n_samples = header["sample_shape"], header["n_samples"]
    if shape is None:
        return None
    count = "samples" if n_samples is None else f"{n_samples} samples"
    return f"{count} of {times(shape)}"


def _starts(starts: dict[str, Any] | None) -> str | None:
    """Say how the search went."""
    if starts is None:
        return None
    return f"{starts['n_hits']} of {starts['n_polished']} agreed, {sureness(starts)}"


def _made_by(name: str, parameters: dict[str, Any]) -> str:
    """Write the call that makes the estimator, without what is so by default."""
    if name == "Pipeline":
        steps = [_written(step) for _, step in parameters["steps"]]
        return f"make_pipeline({', '.join(steps)})"
    defaults = _defaults_of(name)
    given = {
        key: value
        for key, value in parameters.items()
        if _as_list(defaults.get(key)) != _as_list(value)
    }
    return f"{name}({', '.join(f'{key}={_written(value)}' for key, value in given.items())})"


def _written(value: Any) -> str:
    """Write a parameter, which may be an estimator."""
    if isinstance(value, dict) and "class" in value:
        return _made_by(value["class"], value.get("parameters") or {"steps": value.get("steps")})
    return repr(value)


def _defaults_of(name: str) -> dict[str, Any]:
    """Return the defaults of one of our estimators."""
    import pyfastr

    kind = getattr(pyfastr, name, None)
    if kind is None and name.startswith("Nifti"):
        kind = getattr(import_module("pyfastr.imaging"), name, None)
    return {} if kind is None else {k: p.default for k, p in signature(kind).parameters.items()}


def _as_list(value: Any) -> Any:
    """Return a tuple as JSON has it."""
    return list(value) if isinstance(value, tuple) else value


def _size(n_bytes: int) -> str:
    """Write a number of bytes as people do."""
    for unit, amount in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= amount:
            return f"{n_bytes / amount:.1f} {unit}"
    return f"{n_bytes} bytes"
