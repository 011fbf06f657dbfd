"""The Python that makes the same fit again."""

import inspect
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, str, type(None))


def code_for(
    model: Any, part: Any, *, fingerprint: str = "", call: str = "", holder: str = ""
) -> str:
    """Return code that fits a model with the same parameters.

    Parameters
    ----------
    model : estimator or Pipeline
    part : estimator
        The one with the coefficient: `model` itself, or its last step.
    fingerprint : str, optional
        Of the training data.
    call : str, optional
        How it is fitted; ``model.fit(X, y)`` by default, with covariates if there were any.
    holder : str, optional
        What has the fingerprint; the model, or the last step of a pipeline by default.

    Returns
    -------
    str

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.display.code_text import code_for
    >>> model = FasTRRegressor(0.1, random_state=0)
    >>> print(code_for(model, model))
    from pyfastr import FasTRRegressor
    <BLANKLINE>
    model = FasTRRegressor(threshold=0.1, random_state=0)
    model.fit(X, y)
    """
    writer = _Writer()
    is_pipeline = hasattr(model, "steps")
    made = writer.pipeline(model) if is_pipeline else writer.call(model)
    lines = [*writer.imports(), "", *writer.notes, f"model = {made}", call or _fit(model, part)]
    if fingerprint:
        holder = holder or ("model[-1]" if is_pipeline else "model")
        lines.append(f'assert {holder}.fingerprint_ == "{fingerprint}"  # the same X, y, weights')
    return "\n".join(lines)


def _fit(model: Any, part: Any) -> str:
    """Write how a model is fitted to arrays."""
    if not hasattr(part, "covariate_coef_"):
        return "model.fit(X, y)"
    step = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
    return f"model.fit(X, y, {step}covariates=covariates)"


class _Writer:
    """Writes constructors, and remembers what they need."""

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {}
        self.notes: list[str] = []

    def imports(self) -> list[str]:
        """Return the import lines, scikit-learn's after our own."""
        return [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self.names.items())
        ]

    def pipeline(self, model: Any) -> str:
        """Write a pipeline with its steps' names."""
        self.names.setdefault("sklearn.pipeline", set()).add("Pipeline")
        steps = [f"    ({name!r}, {self.value(name, step)})," for name, step in model.steps]
        return "\n".join(["Pipeline([", *steps, "])"])

    def call(self, thing: Any) -> str:
        """Write the constructor of an estimator with the parameters that differ from default."""
        kind = type(thing)
        module = _public(kind.__module__)
        self.names.setdefault(module, set()).add(kind.__name__)
        values = thing.get_params(deep=False)
        # Of no account for what is fitted, and a place on somebody's machine.
        values.pop("checkpoint", None)
        changed = [
            f"{name}={self.value(name, values[name])}"
            for name, parameter in inspect.signature(kind).parameters.items()
            if name in values and not _same(values[name], parameter.default)
        ]
        return f"{kind.__name__}({', '.join(changed)})"

    def value(self, name: str, value: Any) -> str:
        """Write a parameter, or a name for what cannot be written in a line."""
        if isinstance(value, np.generic):
            value = value.item()
        if _is_plain(value):
            return repr(value)
        if hasattr(value, "get_params") and not isinstance(value, type):
            return self.call(value)
        if isinstance(value, np.ndarray) and value.ndim == 1 and value.size <= 40:
            return repr(value.tolist())
        if type(value).__module__.startswith("sklearn.model_selection"):
            self.names.setdefault("sklearn.model_selection", set()).add(type(value).__name__)
            return repr(value)
        self.notes.append(f"# {name}: what you passed, a {type(value).__name__}")
        return name


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) <= 40 and all(isinstance(v, _PLAIN) for v in value)
    if isinstance(value, dict):
        return all(isinstance(v, _PLAIN) for pair in value.items() for v in pair)
    return isinstance(value, _PLAIN)


def _same(value: Any, default: Any) -> bool:
    """Tell whether a parameter was left alone; arrays never were."""
    return type(value) is type(default) and not isinstance(value, np.ndarray) and value == default


def _public(module: str) -> str:
    """Return the module that people import from."""
    parts = module.split(".")
    if parts[0] == "pyfastr":
        return "pyfastr.imaging" if "imaging" in parts else "pyfastr"
    public = parts[: next((i for i, p in enumerate(parts) if p.startswith("_")), len(parts))]
    return ".".join(public)
