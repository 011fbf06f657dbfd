"""A fitted model of every kind, and files forged so that their checksum is right."""

import json
import runpy
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from pyfastr import FasTRRegressor
from pyfastr.datasets import make_tensor_regression
from pyfastr.persistence import container, save, strict_json

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "tests" / "data" / "models"


@pytest.fixture(name="kinds", scope="session")
def models_of_every_kind():
    """By name: the fitted model, and what to ask it about."""
    pytest.importorskip("nibabel")
    pytest.importorskip("xarray")
    script = runpy.run_path(str(MODELS / "make_models.py"))
    made = {make.__name__: make() for make in script["MAKERS"]}
    return SimpleNamespace(made=made, answers=script["answers"])


@pytest.fixture(name="mutations", scope="session")
def ways_to_damage_a_file():
    """What the benchmark of 10,000 damaged files uses."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "benchmarks" / "_mutations.py")))


@pytest.fixture(name="model", scope="session")
def small_model():
    X, y = make_tensor_regression(40, (4, 3), noise=0.1, random_state=0)
    return FasTRRegressor(ridge=0.1, random_state=0).fit(X, y)


@pytest.fixture(name="saved")
def file_of_small_model(model, tmp_path):
    return save(model, tmp_path / "model.fastr")


@pytest.fixture(name="forge")
def change_and_sign_anew(tmp_path):
    """Return a copy of a file whose document and arrays a function has changed."""

    def forge(path, change):
        with path.open("rb") as file:
            header = container.read_header(file)
            tensors = container.read_tensors(file, header)
        document = json.loads(header.document)
        change(document, tensors)
        target = tmp_path / "forged.fastr"
        with target.open("wb") as file:
            container.write(file, tensors, strict_json.dumps(document))
        return target

    return forge


@pytest.fixture(name="raw_file")
def file_of_header_and_data(tmp_path):
    """Write a file of any header, true or not."""

    def write(header, data=b"", length=None):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        size = len(text) if length is None else length
        target = tmp_path / "raw.fastr"
        target.write_bytes(size.to_bytes(8, "little") + text + data)
        return target

    return write


@pytest.fixture(name="same")
def equal_to_the_last_bit():
    return _same


def _same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and not isinstance(a, np.ma.MaskedArray):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return False
        return a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    parts = _parts(a)
    return a == b or (a != a and b != b) if parts is None else _same(parts, _parts(b))


def _parts(value):
    """Return what an object is made of."""
    if isinstance(value, np.ma.MaskedArray):
        return [value.data, np.ma.getmaskarray(value)]
    if isinstance(value, np.random.RandomState):
        return value.get_state(legacy=True)
    if hasattr(value, "dataobj"):
        return [np.ascontiguousarray(value.dataobj), value.affine]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return _state(value) if isinstance(value, BaseEstimator) else None


def _state(estimator):
    fitted = {n: v for n, v in sorted(vars(estimator).items()) if n.endswith("_")}
    return {"params": dict(estimator.get_params(deep=False)), "fitted": fitted}
