"""The reference lists what is public."""

import importlib
from pathlib import Path

import pytest

REFERENCE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
ROOMS = [
    *["pyfastr", "pyfastr.estimators", "pyfastr.inference", "pyfastr.imaging"],
    *["pyfastr.display", "pyfastr.persistence", "pyfastr.datasets", "pyfastr.baselines"],
]


@pytest.mark.parametrize("room", ROOMS)
def test_the_reference_has_every_public_name(room):
    names = importlib.import_module(room).__all__
    wanted = {name for name in names if f"{room}.{name}" not in ROOMS and name[0] != "_"}
    listed = {line.split(".")[-1].strip() for line in REFERENCE.splitlines()}
    assert wanted - listed - {"metrics"} == set()
