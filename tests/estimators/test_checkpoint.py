"""A fit that is interrupted goes on where it was, and ends as if it never had been."""

import io
import itertools
import json
import signal
import subprocess
import sys
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from pyfastr import (
    FasTRClassifier,
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
    load,
)
from pyfastr.datasets import make_tensor_regression
from pyfastr.display.code_text import code_for
from pyfastr.estimators.checkpoint import CheckpointFile
from pyfastr.solver.journal import Entry
from pyfastr.sources import ArraySource

# The first reads look for NaN and make the fingerprint: there is nothing to write down yet.
N_CHECKS = 3
GRID = {"thresholds": [0.0, 0.1, 0.3], "ridges": [0.01, 0.1]}


class Frail(ArraySource):
    """Samples that cannot be read any more after so many reads."""

    def __init__(self, X, last=None, error=KeyboardInterrupt):
        super().__init__(X)
        self.n_reads, self.last, self.error = 0, last, error

    def read(self, rows):
        self.n_reads += 1
        if self.n_reads == self.last:
            raise self.error
        return super().read(rows)


def noisy(n_samples=80, shape=(8, 7, 6), mean=0.0, dtype=float, n_terms=1):
    X, y = make_tensor_regression(n_samples, shape, n_terms=n_terms, random_state=1)
    noise = np.random.default_rng(0).standard_normal(n_samples)
    return (X + mean).astype(dtype), y + 0.3 * y.std() * noise


CASES = {
    "regressor": (FasTRRegressor(), noisy()),
    "two terms": (FasTRRegressor(n_terms=2, n_init=40), noisy()),
    "few samples": (FasTRRegressor(n_init=30), noisy(15)),
    "evidence": (FasTRRegressor(n_init=16, refit_support="evidence"), noisy(12, (5, 4))),
    "refit, far from zero": (FasTRRegressor(0.25, 0.01, refit_support=True), noisy(mean=1e4)),
    "simultaneous, float32": (FasTRRegressor(0.05, 0.01, sweep="simultaneous"), noisy(dtype="f4")),
    "logistic": (FasTRClassifier(0.05, 0.1, loss="logistic"), noisy()),
    "choice of terms": (FasTRRegressorCV(**GRID, cv=3), noisy(90, (6, 5, 4), n_terms=2)),
    "mean of folds": (FasTRRegressorCV(**GRID, cv=3, refit=False), noisy(60, (6, 5, 4))),
    "choice": (FasTRRegressorCV(**GRID, n_terms=(1, 2), cv=3), noisy(60, (6, 5, 4))),
    "choice of classes": (FasTRClassifierCV(**GRID, loss="logistic", cv=3), noisy(60, (6, 5))),
    "choice by evidence": (FasTRRegressorCV(criterion="evidence", n_init=16), noisy(40, (6, 5))),
    "choice of vectors": (FasTRRegressorCV(**GRID, cv=3), noisy(60, (9,))),
}


def fitted(case, path=None, last=None):
    """Fit a case; return the model and how often X was read."""
    model, (X, y) = CASES[case]
    source = Frail(X, last)
    y = y > 0 if "lassifier" in type(model).__name__ else y
    model = clone(model).set_params(random_state=0, checkpoint=path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(source, y), source.n_reads


def seen(model):
    """Return all that a fit leaves behind, but for times."""
    found = {"coef": model.coef_, "intercept": model.intercept_}
    found |= {f"history {name}": own for name, own in getattr(model, "history_", {}).items()}
    for name in ("starts_", "calibration_", "evidence_", "scores_path_", "choice_"):
        if hasattr(model, name):
            found[name] = getattr(model, name)
    if hasattr(model, "held_out_"):
        found["held out"] = model.held_out_.prediction
    return found


@pytest.fixture(scope="module")
def whole():
    """Fits without interruption or checkpoint, made when they are first asked for."""
    known = {}

    def whole(case):
        if case not in known:
            known[case] = fitted(case)
        return known[case]

    return whole


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


@pytest.fixture
def left(path):
    """A checkpoint that an interrupted fit left."""
    with pytest.raises(KeyboardInterrupt):
        fitted("regressor", path, last=60)
    return path


@pytest.mark.parametrize("case", CASES)
def test_a_checkpoint_changes_nothing_and_is_gone_at_the_end(case, path, whole):
    model, n_reads = fitted(case, path)
    expected, n_expected = whole(case)
    np.testing.assert_equal(seen(model), seen(expected))
    assert n_reads == n_expected
    assert not any(path.parent.iterdir())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.7, 0.9, 1.0])
def test_the_same_call_ends_in_the_same_bits(case, share, path, whole):
    expected, n_whole = whole(case)
    last = max(int(share * n_whole), N_CHECKS + 1)
    with pytest.raises(KeyboardInterrupt) as caught:
        fitted(case, path, last)
    assert any(str(path) in note for note in caught.value.__notes__)
    model, n_reads = fitted(case, path)
    np.testing.assert_equal(seen(model), seen(expected))
    assert not any(path.parent.iterdir())
    # A few reads check the data again, and what is made of ended loops.
    assert n_reads <= n_whole - last + 0.1 * n_whole + 12


def test_terms_are_added_in_a_choice_that_is_interrupted(whole):
    model, _ = whole("choice of terms")
    assert model.n_terms_ == 2
    assert len(model.scores_path_) == 3


def test_a_fit_may_be_interrupted_again_and_again(path, whole):
    expected, n_whole = whole("choice")
    model, sizes = None, []
    for _ in range(100):
        try:
            model, _ = fitted("choice", path, last=n_whole // 4)
            break
        except KeyboardInterrupt:
            sizes.append(path.stat().st_size)
    assert len(sizes) >= 3
    np.testing.assert_equal(seen(model), seen(expected))


def test_errors_leave_a_checkpoint_too(path):
    X, y = noisy()
    model = FasTRRegressor(random_state=0, checkpoint=str(path))
    with pytest.raises(OSError, match="gone") as caught:
        model.fit(Frail(X, 60, OSError("the disk is gone")), y)
    assert "the same call goes on there" in caught.value.__notes__[0]
    again = Frail(X)
    model.fit(again, y)
    assert again.n_reads < 60


SCRIPT = """
import sys, time
import numpy as np
from pyfastr import FasTRRegressor
from pyfastr.datasets import make_tensor_regression
from pyfastr.sources import ArraySource

class Slow(ArraySource):
    def read(self, rows):
        time.sleep(float(sys.argv[2]))
        return super().read(rows)

class Hasty(FasTRRegressor):
    _checkpoint_interval = 0.0

X, y = make_tensor_regression(80, (8, 7, 6), random_state=1)
model = Hasty(n_terms=2, n_init=40, random_state=0, checkpoint=sys.argv[1])
model.fit(Slow(X), y)
sys.stdout.buffer.write(np.ascontiguousarray(model.coef_).tobytes())
"""


@contextmanager
def script(path, pause):
    """Run a fit in a process of its own, which ends with the context."""
    command = [sys.executable, "-c", SCRIPT, str(path), str(pause)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def coefficient_of_script(path):
    with script(path, 0) as process:
        found, _ = process.communicate(timeout=300)
        assert process.returncode == 0
    return found


def entries_in(path):
    with np.load(path, allow_pickle=False) as file:
        return json.loads(file["document"].tobytes())["entries"]


def test_a_process_that_is_killed_leaves_what_the_next_one_goes_on_with(path, soon):
    whole = coefficient_of_script(path)
    with script(path, 0.02) as process:
        assert soon(lambda: path.exists() and len(entries_in(path)) >= 2)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    done = entries_in(path)
    assert done[0]["ended"]
    assert coefficient_of_script(path) == whole
    assert not path.exists()


X, Y = noisy()
OTHERS = {
    "What differs: threshold (0.0 there, 0.1 here). Delete": ({"threshold": 0.1}, X, Y, {}),
    "What differs: random_state (0 there, 1 here). ": ({"random_state": 1}, X, Y, {}),
    "What differs: n_init ('auto' there, 9 here); n_terms (1 there, 2 here). ": (
        {"n_terms": 2, "n_init": 9},
        X,
        Y,
        {},
    ),
    "What differs: X, y, sample_weight or covariates. ": ({}, X, Y + 1, {}),
    "X, y, sample_weight or covariates. ": ({}, X, Y, {"sample_weight": np.arange(80.0)}),
    "y, sample_weight or covariates. ": ({}, 2 * X, Y, {}),
}


@pytest.mark.parametrize("words", OTHERS)
def test_another_fit_is_refused_and_told_what_differs(left, words):
    params, samples, y, options = OTHERS[words]
    before = left.read_bytes()
    model = FasTRRegressor(random_state=0, checkpoint=left).set_params(**params)
    with pytest.raises(ValueError, match="is of another fit") as caught:
        model.fit(samples, y, **options)
    assert words in str(caught.value)
    assert "Delete the file to begin anew, or pass another path" in str(caught.value)
    assert left.read_bytes() == before


def test_another_kind_of_estimator_and_another_version_are_refused(left):
    with pytest.raises(ValueError, match=r"estimator .'FasTRRegressor' there, 'FasTRClassifier'"):
        FasTRClassifier(random_state=0, checkpoint=left).fit(X, Y > 0)
    with np.load(left, allow_pickle=False) as file:
        arrays = dict(file)
    document = arrays["document"].tobytes().replace(b'"pyfastr": "', b'"pyfastr": "9.')
    arrays["document"] = np.frombuffer(document, np.uint8)
    with left.open("wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(ValueError, match=r"pyfastr \('9\..* there, "):
        FasTRRegressor(random_state=0, checkpoint=left).fit(X, Y)


def test_other_folds_are_refused(path):
    def choice(seed):
        cv = KFold(3, shuffle=True, random_state=seed)
        return FasTRRegressorCV(**GRID, cv=cv, random_state=0, checkpoint=path)

    with pytest.raises(KeyboardInterrupt):
        choice(0).fit(Frail(X, 60), Y)
    with pytest.raises(ValueError, match="What differs: the folds of cv"):
        choice(1).fit(X, Y)


def test_what_is_shown_may_change(left):
    assert FasTRRegressor(random_state=0, checkpoint=left, verbose=1).fit(X, Y).n_iter_ >= 1
    assert not left.exists()


DAMAGE = {
    "cut short": lambda whole: whole[: len(whole) // 2],
    "a bit": lambda whole: whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:],
    "empty": lambda whole: b"",
    "text": lambda whole: b"my notes",
    "pickle": lambda whole: b"\x80\x04N.",
    "another archive": lambda whole: _archive(X=np.zeros(3)),
    "another format": lambda whole: _archive(document=np.frombuffer(b'{"format": "a"}', np.uint8)),
    "no document": lambda whole: _archive(document=np.frombuffer(b"[1]", np.uint8)),
    "one array": lambda whole: _array(),
}


def _archive(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _array():
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_no_checkpoint_is_refused_and_left_alone(left, kind):
    content = DAMAGE[kind](left.read_bytes())
    left.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged, or no checkpoint .* Delete the file"):
        FasTRRegressor(random_state=0, checkpoint=left).fit(X, Y)
    assert left.read_bytes() == content


@pytest.mark.parametrize("seed", [None, np.random.RandomState(0)])
def test_random_numbers_must_be_the_same_again(path, seed):
    source = Frail(X)
    with pytest.raises(ValueError, match="expected an int for random_state"):
        FasTRRegressorCV(random_state=seed, checkpoint=path).fit(source, Y)
    assert source.n_reads == 0
    assert not path.exists()


def test_places_that_cannot_be_written_to_are_refused_before_x_is_read(tmp_path):
    source = Frail(X)
    with pytest.raises(ValueError, match=r"missing is no directory that can be written to"):
        FasTRRegressor(random_state=0, checkpoint=tmp_path / "missing" / "file").fit(source, Y)
    with pytest.raises(ValueError, match=r"a directory; expected the path of a file"):
        FasTRClassifier(random_state=0, checkpoint=tmp_path).fit(source, Y > 0)
    with pytest.raises(ValueError, match="'checkpoint' parameter"):
        FasTRRegressor(random_state=0, checkpoint=3).fit(source, Y)
    assert source.n_reads == 0


def test_the_home_directory_may_be_given_by_its_short_name(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        FasTRRegressor(random_state=0, checkpoint="~/fit.checkpoint").fit(Frail(X, 60), Y)
    assert (tmp_path / "fit.checkpoint").exists()


def test_a_full_disk_leaves_the_last_good_state_and_lets_the_fit_go_on(path):
    resource = pytest.importorskip("resource")
    file = CheckpointFile(path, {"data": "some"})
    good = [Entry("loop", 3, [[2]], 1, False, [{"value": np.arange(2.0)}])]
    large = [Entry("loop", 3, [[2]], 2, False, [{"value": np.zeros(1 << 18)}])]
    file.write(good)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.warns(UserWarning, match="could not be written .* file is as it was before"):
            file.try_to_write(large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    (found,) = file.read()
    assert found.is_like(good[0])
    assert found.n_done == 1
    np.testing.assert_array_equal(found.memories[0]["value"], np.arange(2.0))
    assert list(path.parent.iterdir()) == [path]


def test_an_array_that_many_loops_remember_is_written_once(path):
    means = np.random.default_rng(0).normal(size=10_000)
    loops = [Entry("loop", 1, [], 1, True, [{"means": means}]) for _ in range(50)]
    file = CheckpointFile(path, {})
    file.write(loops)
    assert path.stat().st_size < 2 * means.nbytes
    for entry in file.read():
        np.testing.assert_array_equal(entry.memories[0]["means"], means)


def test_a_fit_inside_of_a_checkpointed_one_has_no_part_in_its_checkpoint(path):
    sizes = itertools.count(4)

    def score(estimator, X, y):
        # No two of these fits are alike, so that a journal of theirs would fit no other.
        FasTRRegressor(n_init=next(sizes), random_state=1).fit(*noisy(30, (4, 3)))
        return estimator.score(X, y)

    model = FasTRRegressorCV([0.1], [0.01], cv=2, scoring=score, random_state=0)
    whole, again = Frail(X), Frail(X)
    expected = clone(model).fit(whole, Y)
    model.set_params(checkpoint=path)
    with pytest.raises(KeyboardInterrupt):
        clone(model).fit(Frail(X, whole.n_reads), Y)
    np.testing.assert_array_equal(clone(model).fit(again, Y).coef_, expected.coef_)
    assert again.n_reads < whole.n_reads / 2


def test_model_files_and_code_to_fit_again_say_nothing_of_a_checkpoint(path, tmp_path):
    model = FasTRRegressorCV(**GRID, cv=2, random_state=0, checkpoint=path).fit(X, Y)
    assert model.best_estimator_.checkpoint is None
    loaded = load(model.save(tmp_path / "model.fastr"))
    assert loaded.checkpoint is None
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert b"checkpoint" not in (tmp_path / "model.fastr").read_bytes()
    assert "checkpoint" not in code_for(model, model)
