"""Kinds of objects: records of a fit, images, estimators and pipelines."""

import inspect
import re
from dataclasses import MISSING, fields
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from pyfastr.estimators.coefficient import LazyCoefficient
from pyfastr.estimators.extras import require
from pyfastr.persistence.codec import OBJECT_CLAIM, Decoder, Encoder, Kind, expect
from pyfastr.persistence.errors import UnstorableError, damaged
from pyfastr.persistence.registry import ESTIMATORS, RECORDS, find, is_registered
from pyfastr.persistence.values import VALUES

FITTED = re.compile(r"[a-z][a-z0-9_]*_")
OUTPUT = "_sklearn_output_config"
OUTPUTS = ("default", "pandas", "polars")
# The most that the header of an image can say, and what voxels may measure.
LONGEST_AXIS, MILLIMETRES = 32767, (1e-6, 1e6)
# joblib would read pickles from the folder that is named here, and a fit would write and remove
# the checkpoint.
NEVER_RESTORED = ("memory", "checkpoint")
# Says how a fit was watched over, not how to make the same again.
LEFT_OUT = ("checkpoint",)


def _encode_record(encoder: Encoder, value: Any, path: str) -> Any:
    own = {f.name: getattr(value, f.name) for f in fields(value)}
    return {"class": type(value).__name__, "fields": encoder.encode(own, path)}


def _decode_record(decoder: Decoder, node: dict[str, Any]) -> Any:
    if not isinstance(node["class"], str) or node["class"] not in RECORDS:
        raise damaged(f"its document has a record {node['class']!r:.60}")
    cls = find(RECORDS, node["class"])
    values = decoder.decode(expect(node["fields"], dict, "a record"))
    known = {f.name for f in fields(cls)}
    needed = {f.name for f in fields(cls) if f.default is f.default_factory is MISSING}
    if not needed <= set(values) <= known:
        raise damaged(f"its record {node['class']} lacks fields, or has unknown ones")
    return cls(**values)


def _nibabel() -> ModuleType:
    return require("nibabel", "imaging", "A model file with brain images")


def _is_image(value: Any) -> bool:
    return type(value).__module__.startswith("nibabel.") and hasattr(value, "dataobj")


def _encode_image(encoder: Encoder, value: Any, path: str) -> Any:
    data, affine = np.asarray(value.dataobj), np.asarray(value.affine)
    flaw = _flaw_of_image(data, affine)
    if flaw is not None:
        raise UnstorableError(f"{path}: {flaw}")
    return {
        "data": encoder.encode(data, f"{path}.data"),
        "affine": encoder.encode(affine, f"{path}.affine"),
    }


def _decode_image(decoder: Decoder, node: dict[str, Any]) -> Any:
    data, affine = decoder.decode(node["data"]), decoder.decode(node["affine"])
    if not isinstance(data, np.ndarray) or not isinstance(affine, np.ndarray):
        raise damaged("an image has no array or no affine")
    flaw = _flaw_of_image(data, affine)
    if flaw is not None:
        raise damaged(flaw)
    # What was one image stays one: nibabel gives each a copy of its affine.
    image = decoder.shared.get((id(data), id(affine)))
    if image is None:
        image = _nibabel().Nifti1Image(data, affine, dtype=data.dtype)
        decoder.shared[id(data), id(affine)] = image
    return image


def _flaw_of_image(data: Any, affine: Any) -> str | None:
    """Say what keeps an array and an affine from being an image."""
    sizes = data.ndim in (3, 4) and 1 <= min(data.shape) <= max(data.shape) <= LONGEST_AXIS
    if not sizes or data.dtype.kind not in "iuf" or data.dtype == np.float16:
        return f"an image is an array of shape {data.shape} and type {data.dtype}"
    if not _is_affine(affine):
        return "the affine of an image is no invertible matrix of shape (4, 4)"
    return None


def _is_affine(matrix: Any) -> bool:
    """Whether voxels of a size from nanometres to kilometres have a place in space."""
    if matrix.shape != (4, 4) or matrix.dtype != np.float64 or not np.isfinite(matrix).all():
        return False
    sizes = np.linalg.svd(matrix[:3, :3], compute_uv=False)
    small, large = MILLIMETRES
    return small < sizes[-1] <= sizes[0] < large and bool(np.abs(matrix).max() < large)


def _encode_estimator(encoder: Encoder, value: Any, path: str) -> Any:
    own = vars(value)
    fitted = {n: own[n] for n in sorted(own) if FITTED.fullmatch(n) and not _is_built(value, n)}
    if "_metadata_request" in own:
        encoder.unrestored[_join(path, "metadata requests")] = "set by the user"
    return {
        "class": type(value).__name__,
        "params": _encode_params(encoder, value.get_params(deep=False), path),
        "fitted": {n: encoder.encode(v, _join(path, n)) for n, v in fitted.items()},
        "output": own.get(OUTPUT, {}).get("transform"),
    }


def _encode_params(encoder: Encoder, params: dict[str, Any], path: str) -> dict[str, Any]:
    """Encode what can be; the rest is named with what it was."""
    encoded = {}
    for name, value in params.items():
        if name in LEFT_OUT:
            continue
        own = _join(path, name)
        try:
            if name in NEVER_RESTORED and value is not None:
                raise UnstorableError(f"{own} is never restored")
            encoded[name] = encoder.attempt(value, own)
        except UnstorableError:
            encoder.unrestored[own] = f"{value!r:.300}"
    return encoded


def _decode_estimator(decoder: Decoder, node: dict[str, Any]) -> Any:
    name = node["class"]
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise damaged(f"it holds an estimator {name!r:.60}, which is none of pyfastr's")
    cls = find(ESTIMATORS, name)
    estimator = cls(**_decode_params(decoder, cls, node["params"]))
    for attribute, value in expect(node["fitted"], dict, "fitted attributes").items():
        if not FITTED.fullmatch(attribute) or hasattr(cls, attribute):
            raise damaged(f"{name} has no attribute {attribute!r:.60}")
        setattr(estimator, attribute, decoder.decode(value))
    if node["output"] is not None:
        _set_output(estimator, node["output"])
    _build(estimator)
    return estimator


def _decode_params(decoder: Decoder, cls: Any, node: Any) -> dict[str, Any]:
    """Return constructor parameters; those that are missing keep their defaults."""
    params = decoder.decode(expect(node, dict, "parameters"))
    unknown = sorted(set(params) - set(inspect.signature(cls).parameters))
    if unknown:
        raise damaged(f"{cls.__name__} has no parameter {unknown[0]!r:.60}")
    for name in NEVER_RESTORED:
        if params.get(name) is not None:
            raise damaged(f"{cls.__name__} has a parameter {name!r}, which is never saved")
    return dict(params)


def _set_output(estimator: Any, output: Any) -> None:
    if output not in OUTPUTS or not hasattr(estimator, "set_output"):
        raise damaged(f"a transformer is set to give {output!r:.60}")
    estimator.set_output(transform=output)


def _is_built(estimator: Any, name: str) -> bool:
    """Whether an attribute is made of others whenever it is asked for."""
    return isinstance(getattr(type(estimator), name, None), property)


def _build(estimator: Any) -> None:
    """Give a model the coefficient that it builds from its factors when it is needed."""
    if type(estimator).__name__ in ("FasTRRegressor", "FasTRClassifier"):
        scales, factors = getattr(estimator, "scales_", None), getattr(estimator, "factors_", None)
        if scales is not None and factors is not None:
            estimator._coefficient = LazyCoefficient(factors, scales)


def _encode_pipeline(encoder: Encoder, value: Pipeline, path: str) -> Any:
    params = value.get_params(deep=False)
    steps = params.pop("steps")
    for name, step in steps:
        if not is_registered(ESTIMATORS, step):
            raise UnstorableError(f"step {name!r} of the pipeline is {step!r:.100}")
    return {
        "steps": [[name, encoder.encode(step, _join(path, name))] for name, step in steps],
        "params": _encode_params(encoder, params, path),
    }


def _decode_pipeline(decoder: Decoder, node: dict[str, Any]) -> Pipeline:
    steps = decoder.decode(expect(node["steps"], list, "the steps of a pipeline"))
    if not steps or not all(_is_step(step) for step in steps):
        raise damaged("a pipeline has steps without a name or an estimator")
    names = [name for name, _ in steps]
    if len(set(names)) != len(names):
        raise damaged("a pipeline has two steps of one name")
    params = _decode_params(decoder, Pipeline, node["params"])
    return Pipeline([(name, step) for name, step in steps], **params)


def _is_step(step: Any) -> bool:
    named = type(step) is list and len(step) == 2 and type(step[0]) is str
    return named and is_registered(ESTIMATORS, step[1])


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


KINDS = (
    *VALUES,
    Kind(
        "record",
        lambda v: is_registered(RECORDS, v),
        ("class", "fields"),
        _encode_record,
        _decode_record,
        OBJECT_CLAIM,
    ),
    Kind("image", _is_image, ("data", "affine"), _encode_image, _decode_image, OBJECT_CLAIM),
    Kind(
        "estimator",
        lambda v: is_registered(ESTIMATORS, v),
        ("class", "params", "fitted", "output"),
        _encode_estimator,
        _decode_estimator,
        OBJECT_CLAIM,
    ),
    Kind(
        "pipeline",
        lambda v: type(v) is Pipeline,
        ("steps", "params"),
        _encode_pipeline,
        _decode_pipeline,
        OBJECT_CLAIM,
    ),
)
