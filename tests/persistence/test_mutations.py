"""Many damaged and forged files: each loads or is refused, quickly and in little memory."""

import json
import time
import tracemalloc
import warnings
from contextlib import suppress

import numpy as np
import pytest

from pyfastr import load, save
from pyfastr.persistence import ModelFileError, read_header


@pytest.mark.slow
def test_mutated_files_load_or_are_refused(kinds, mutations, tmp_path):
    corpus = []
    for name, (model, _) in kinds.made.items():
        corpus.append(save(model, tmp_path / f"{name}.fastr").read_bytes())
    rng, path = np.random.default_rng(20), tmp_path / "mutant.fastr"
    n_loaded, slowest, largest = 0, 0.0, 0
    # The benchmark of model files tries ten times as many.
    for _ in range(1000):
        path.write_bytes(mutations.mutate(corpus, rng))
        model, seconds, n_bytes = measured(path)
        with suppress(ModelFileError):
            json.dumps(read_header(path))
        slowest, largest = max(slowest, seconds), max(largest, n_bytes)
        if model is not None:
            n_loaded += 1
            mutations.ask(model)
    # Forged parameters and records of the search may be sound.
    assert 10 < n_loaded < 500
    assert slowest < 1
    assert largest < 200e6


def measured(path):
    """Load a file if it can be; return the model, the time and the memory that it took."""
    tracemalloc.start()
    began = time.process_time()
    try:
        model = load(path)
    except ModelFileError:
        model = None
    seconds = time.process_time() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return model, seconds, peak


def test_whatever_loads_can_predict(mutations, kinds):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model, _ in kinds.made.values():
            mutations.ask(model)
