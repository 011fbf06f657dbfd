"""Files appear whole or not at all, and what cannot be kept is named."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from pyfastr import FasTRRegressor, FasTRRegressorCV, TensorScaler, load, save
from pyfastr.datasets import make_tensor_regression
from pyfastr.persistence import ModelFileError, read_header, to_mat


def interrupt(file_number):
    """Stand in for a slow disk while the user presses Ctrl-C: the signal is a real one."""
    signal.raise_signal(signal.SIGINT)


def fail(file_number):
    raise OSError(28, "No space left on device")


@pytest.fixture
def ctrl_c_is_heard():
    """A process in the background ignores it from its begin on."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.usefixtures("ctrl_c_is_heard")
@pytest.mark.parametrize("write", [save, to_mat], ids=["save", "to_mat"])
@pytest.mark.parametrize(
    ("fsync", "error"), [(interrupt, KeyboardInterrupt), (fail, ModelFileError)]
)
def test_nothing_is_left_behind_by_a_write_that_fails(
    model, tmp_path, monkeypatch, write, fsync, error
):
    path = tmp_path / "model"
    path.write_bytes(b"what was there before")
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(error):
        write(model, path)
    assert path.read_bytes() == b"what was there before"
    assert list(tmp_path.iterdir()) == [path]


def test_an_existing_file_is_replaced(model, saved):
    other = FasTRRegressor(random_state=0).fit(*make_tensor_regression(30, (3, 3), random_state=1))
    save(other, saved)
    assert load(saved).tensor_shape_in_ == (3, 3)
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


@pytest.mark.skipif(sys.platform == "win32", reason="links need privileges there")
def test_a_link_is_followed(model, tmp_path):
    (tmp_path / "link.fastr").symlink_to(tmp_path / "real.fastr")
    save(model, tmp_path / "link.fastr")
    assert (tmp_path / "link.fastr").is_symlink()
    assert (tmp_path / "real.fastr").is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")
def test_the_file_may_be_read_by_those_who_may_read_new_files(model, tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    path = save(model, tmp_path / "model.fastr")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("write", [save, to_mat], ids=["save", "to_mat"])
def test_a_folder_that_is_not_there_is_named(model, tmp_path, write):
    with pytest.raises(ModelFileError, match=r"nowhere.*No such file.*folder that exists"):
        write(model, tmp_path / "nowhere" / "model.fastr")


def test_a_folder_is_not_replaced(model, tmp_path):
    with pytest.raises(ModelFileError, match="directory"):
        save(model, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_folder_that_cannot_be_written_to_is_named(model, tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ModelFileError, match="Permission denied"):
            save(model, tmp_path / "model.fastr")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    "model",
    [
        *(FasTRRegressor(), TensorScaler(), FasTRRegressorCV()),
        make_pipeline(TensorScaler(), FasTRRegressor()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_is_not_fitted_is_not_saved(model, tmp_path):
    with pytest.raises(NotFittedError, match=r"not fitted. Call fit, then save it"):
        save(model, tmp_path / "model.fastr")
    assert list(tmp_path.iterdir()) == []


class Own(FasTRRegressor):
    """A class that a file cannot name."""


@pytest.mark.parametrize("other", [Own(), Ridge(), "text", None], ids=lambda m: type(m).__name__)
def test_other_classes_are_refused_by_name(other, tmp_path):
    with pytest.raises(TypeError, match=f"model is a {type(other).__name__}; expected one of"):
        save(other, tmp_path / "model.fastr")


def test_a_pipeline_with_a_strange_step_is_refused(tmp_path):
    X, y = make_tensor_regression(30, (4,), random_state=0)
    pipeline = make_pipeline(TensorScaler(), Ridge()).fit(X, y)
    with pytest.raises(ModelFileError, match=r"step 'ridge' of the pipeline is Ridge\(\)"):
        save(pipeline, tmp_path / "model.fastr")
    assert list(tmp_path.iterdir()) == []


def test_parameters_that_cannot_be_kept_are_named_and_get_their_defaults(tmp_path):
    X, y = make_tensor_regression(40, (4, 3), noise=0.1, random_state=0)
    model = FasTRRegressorCV((0.0, 0.1), (0.1,), cv=KFold(3), random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match=r"cannot keep cv=KFold\(n_splits=3"):
        path = save(model, tmp_path / "model.fastr")
    assert list(read_header(path)["unrestored"]) == ["cv"]
    loaded = load(path)
    assert loaded.cv == 5
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_folds_given_as_arrays_are_kept(same, tmp_path):
    X, y = make_tensor_regression(40, (4, 3), noise=0.1, random_state=0)
    folds = list(KFold(3).split(X))
    model = FasTRRegressorCV((0.0, 0.1), (0.1,), cv=folds, random_state=0).fit(X, y)
    assert same(load(save(model, tmp_path / "model.fastr")).cv, folds)


def test_a_cache_is_never_restored(tmp_path):
    X, y = make_tensor_regression(40, (4, 3), noise=0.1, random_state=0)
    steps = TensorScaler(), FasTRRegressor(random_state=0)
    pipeline = make_pipeline(*steps, memory=str(tmp_path / "cache")).fit(X, y)
    with pytest.warns(UserWarning, match="memory="):
        path = save(pipeline, tmp_path / "model.fastr")
    assert load(path).memory is None


def test_a_model_that_could_not_predict_is_not_saved(tmp_path):
    X, y = make_tensor_regression(30, (4, 3), random_state=0)
    model = FasTRRegressor(random_state=0).fit(X, y)
    model.intercept_ = np.nan
    with pytest.raises(ModelFileError, match="intercept_ of FasTRRegressor is nan; expected a fin"):
        save(model, tmp_path / "model.fastr")
    model.set_params(threshold=7.0).intercept_ = 0.0
    with pytest.raises(ModelFileError, match="'threshold' parameter"):
        save(model, tmp_path / "model.fastr")


def test_an_attribute_that_cannot_be_kept_is_named(tmp_path):
    X, y = make_tensor_regression(30, (4, 3), random_state=0)
    model = FasTRRegressor(random_state=0).fit(X, y)
    model.extra_ = object()
    with pytest.raises(ModelFileError, match="extra_ is of type object, which a model file cannot"):
        save(model, tmp_path / "model.fastr")


def test_names_beyond_all_measure_are_refused_when_saving(tmp_path):
    X, y = make_tensor_regression(30, (4,), random_state=0)
    model = FasTRRegressor(random_state=0).fit(X, y)
    model.notes_ = ["x"] * 500_000
    with pytest.raises(ModelFileError, match="more than a model file can hold"):
        save(model, tmp_path / "model.fastr")
    assert list(tmp_path.iterdir()) == []


def test_arrays_need_no_package_beyond_the_core(tmp_path):
    """Whoever has pyfastr can open a model: the format is written and read here."""
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("safetensors", "nibabel", "nilearn", "tensorly", "xarray", "pandas"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from pyfastr import FasTRRegressorCV, load
from pyfastr.datasets import make_tensor_regression
X, y = make_tensor_regression(40, (4, 3), noise=0.1, random_state=0)
model = FasTRRegressorCV((0.0, 0.1), (0.1,), random_state=0).fit(X, y)
assert (load(model.save(sys.argv[1])).predict(X) == model.predict(X)).all()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model.fastr")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
