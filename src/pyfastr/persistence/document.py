"""The document in the header of a model file: what it holds, in words and numbers."""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

import pyfastr
from pyfastr.estimators.outputs import n_outputs_of
from pyfastr.persistence import strict_json
from pyfastr.persistence.codec import TAG, Encoder
from pyfastr.persistence.errors import RefusedError, damaged

FORMAT_VERSION = 1
Types = tuple[type, ...]
FIELDS: dict[str, Types] = {
    "format_version": (int,),
    "library_version": (str,),
    "class": (str,),
    "sample_shape": (list, type(None)),
    "n_samples": (int, type(None)),
    "fingerprint": (str, type(None)),
    "search": (dict,),
    "unrestored": (dict,),
    "model": (dict,),
}
# Of the summary of the search, each of which may be missing.
SEARCH_FIELDS: dict[str, Types] = {
    "best_score": (int, float, str),
    "best_params": (dict,),
    "choice": (str,),
    "n_iter": (int,),
    "converged": (bool,),
    "starts": (dict,),
}


def write_document(model: Any, encoder: Encoder) -> str:
    """Return the document of a model whose arrays the encoder keeps."""
    tree = encoder.encode(model, "")
    last = inner_model(model)
    shape = _sample_shape(model)
    document = {
        "format_version": FORMAT_VERSION,
        "library_version": pyfastr.__version__,
        "class": type(model).__name__,
        "sample_shape": None if shape is None else [int(p) for p in shape],
        "n_samples": _plain(getattr(last, "n_samples_in_", None)),
        "fingerprint": getattr(last, "fingerprint_", None),
        "search": _search(last),
        "unrestored": encoder.unrestored,
        "model": tree,
    }
    return strict_json.dumps(document)


def read_document(text: str) -> dict[str, Any]:
    """Return the parsed document of a version that can be read."""
    document = strict_json.loads(text)
    version = document.get("format_version") if isinstance(document, dict) else None
    if type(version) is not int or version < 1:
        raise damaged("its document does not say which version of the format it is")
    if version > FORMAT_VERSION:
        raise RefusedError(
            f"it was written by a newer pyfastr, {document.get('library_version')!r:.40}, in "
            f"version {version} of the format; this is pyfastr {pyfastr.__version__}, which reads "
            f"up to version {FORMAT_VERSION}. Upgrade: pip install --upgrade pyfastr"
        )
    missing = sorted(set(FIELDS) - set(document))
    if missing:
        raise damaged(f"its document lacks {missing[0]!r}")
    _check_types(document, FIELDS)
    _check_types(document["search"], SEARCH_FIELDS)
    if not all(type(size) is int for size in document["sample_shape"] or ()):
        raise damaged("'sample_shape' in its document is not made of whole numbers")
    return dict(document)


def _check_types(found: dict[str, Any], expected: dict[str, Types]) -> None:
    for name, types in expected.items():
        if name in found and type(found[name]) not in types:
            raise damaged(f"{name!r} in its document is of type {type(found[name]).__name__}")


def inner_model(model: Any) -> Any:
    """Return the estimator with the factors: the last step, or the one within images."""
    if isinstance(model, Pipeline):
        return inner_model(model.steps[-1][1])
    return getattr(model, "estimator_", model)


def _sample_shape(model: Any) -> Any:
    """Return the shape of the samples; of images, that of the arrays made of them."""
    parts = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    shapes = (getattr(inner_model(part), "tensor_shape_in_", None) for part in parts)
    return next((shape for shape in shapes if shape is not None), None)


def _search(model: Any) -> dict[str, Any]:
    """Summarise how the model was found."""
    names = ["best_score_", "best_params_", "choice_"]
    several = n_outputs_of(model) is not None
    names += [] if several else ["n_iter_", "converged_"]
    found = {n.rstrip("_"): _plain(getattr(model, n)) for n in names if hasattr(model, n)}
    starts = getattr(model, "starts_", None)
    if starts is not None and not several:
        counts = ("n_starts", "n_polished", "n_hits", "n_rounds", "gap", "sure", "confidence")
        found["starts"] = {n: _plain(getattr(starts, n)) for n in counts}
    return found


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; what is not finite becomes text."""
    if isinstance(value, dict):
        return {str(name): _plain(own) for name, own in value.items()}
    own = value.item() if isinstance(value, np.generic) else value
    return str(own) if isinstance(own, float) and not np.isfinite(own) else own


def readable(node: Any) -> Any:
    """Return a piece of the document without tags, for people and other programs."""
    if isinstance(node, list):
        return [readable(item) for item in node]
    if not isinstance(node, dict):
        return node
    if TAG not in node:
        return {name: readable(own) for name, own in node.items()}
    return _readable_kind(node)


def _readable_kind(node: dict[str, Any]) -> Any:
    if node[TAG] == "pipeline":
        return {"class": "Pipeline", "steps": readable(node.get("steps"))}
    if node[TAG] == "estimator":
        return {"class": node.get("class"), "parameters": readable(node.get("params"))}
    if node[TAG] == "array":
        return f"array {node.get('tensor')}"
    shown = next((node[key] for key in ("value", "items") if key in node), None)
    return f"a {node[TAG]}" if shown is None else readable(shown)
