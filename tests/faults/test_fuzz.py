"""Damaged input for every reader: it is taken or refused, in the way that the reader promises."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# The same in each run: benchmarks/fuzz.py looks for more.
FIXED = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
NAMES = [
    *("model", "header", "npy", "nifti", "nifti.gz", "hdf5", "zarr", "zarr chunk", "npz"),
    *("mat", "cmu2008", "table", "checkpoint"),
]
NUMBERS = st.sampled_from([b"\0", b"\xff" * 4, b"\x7f", b"\x80", b"\0\0\0\x80", b"\xff" * 8])
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 9), NUMBERS | st.binary(max_size=8)), max_size=4
)


def edited(content, edits):
    """Put bytes in place of others, at a share of the way through."""
    for share, n_cut, new in edits:
        at = int(share * len(content))
        content = content[:at] + new + content[at + n_cut :]
    return content


@pytest.fixture(name="target", scope="module", params=NAMES)
def one_reader(request, benchmarks, tmp_path_factory):
    target = benchmarks.fuzz_targets.TARGETS[request.param]
    folder = tmp_path_factory.mktemp("sound")
    corpus = target.prepare(folder)
    for content in corpus:
        target.attempt(folder, content)
    return target, folder, corpus


@FIXED
@given(edits=EDITS, which=st.integers(0, 99), seed=st.none() | st.integers(0, 2**32))
def test_damaged_input_is_taken_or_refused(benchmarks, target, edits, which, seed):
    reader, folder, corpus = target
    content = edited(corpus[which % len(corpus)], edits)
    if seed is not None:
        content = reader.change(corpus, np.random.default_rng(seed))
    told = refusal_of(reader, folder, content)
    assert told is None or told.strip()


@settings(FIXED, max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_command_lines_that_make_no_sense_are_told_in_one_line(benchmarks, commands, seed):
    folder, corpus = commands
    target = benchmarks.fuzz_targets.TARGETS["command"]
    told = refusal_of(target, folder, target.change(corpus, np.random.default_rng(seed)))
    if told is not None:
        (line,) = told.strip().splitlines()
        assert line.startswith("Error: ")


@pytest.fixture(name="commands", scope="module")
def small_data_and_commands(benchmarks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    return folder, benchmarks.fuzz_targets.TARGETS["command"].prepare(folder)


def refusal_of(target, folder, content):
    """Return what is said of input that is refused; other errors are none of its promises."""
    try:
        target.attempt(folder, content)
    except target.refusals as refusal:
        return str(refusal)
    return None
