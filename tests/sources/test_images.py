"""Lists of NIfTI files as X: nibabel's values, headers looked at first, and errors with names."""

import gzip
import sys

import nibabel
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pyfastr import FasTRRegressor, config_context
from pyfastr.sources import as_source, largest_entry

SHAPE = (12, 10, 8)


def save(path, data, *, slope=None, affine=None, dtype=None):
    """Write one image, its stored integers times a slope if there is one."""
    affine = np.eye(4) if affine is None else affine
    image = nibabel.Nifti1Image(data, affine, dtype=data.dtype if dtype is None else dtype)
    if slope is not None:
        image.header.set_slope_inter(slope, 3.0)
    image.to_filename(path)
    return str(path)


@pytest.fixture(name="paths")
def thirty_images(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, *SHAPE)).astype(np.float32)
    return [save(tmp_path / f"sub-{i:02d}.nii.gz", v) for i, v in enumerate(values)]


def values_of(paths):
    return np.stack([nibabel.load(path).get_fdata() for path in paths])


def test_each_file_is_scaled_by_its_own_slope_and_intercept(tmp_path):
    rng = np.random.default_rng(1)
    paths = [
        save(tmp_path / f"{i}.nii", rng.normal(size=SHAPE), slope=2.0**-i, dtype=np.int16)
        for i in range(8, 14)
    ]
    stored = [np.asarray(nibabel.load(path).dataobj.get_unscaled()) for path in paths]
    assert all(array.dtype == np.int16 for array in stored)
    source = as_source(paths)
    assert source.dtype == np.float32
    assert_array_equal(np.asarray(source), values_of(paths).astype(np.float32))


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ([np.uint16, np.int16], np.float32),
        ([np.int16, np.float32], np.float32),
        ([np.float32, np.float64], np.float64),
        ([np.int32], np.float64),
    ],
)
def test_the_type_has_the_digits_of_every_file(tmp_path, stored, expected):
    numbers = np.arange(960).reshape(SHAPE)
    paths = [save(tmp_path / f"{np.dtype(d)}.nii", numbers.astype(d)) for d in stored]
    source = as_source(paths)
    assert source.dtype == expected
    assert_array_equal(np.asarray(source), [numbers] * len(paths))


def test_samples_may_have_other_than_three_modes(tmp_path):
    X = np.random.default_rng(2).normal(size=(3, 4, 3, 2, 5))
    paths = [save(tmp_path / f"{i}.nii", x) for i, x in enumerate(X)]
    assert_array_equal(np.asarray(as_source(paths)), X)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (lambda p: p.unlink(), FileNotFoundError, "no sample 17: there is no file .*sub-17.nii.gz"),
        (
            lambda p: save(p, np.zeros((12, 8, 10))),
            ValueError,
            r"17 in .*sub-17.nii.gz of shape \(12, 8, 10\); expected shape \(12, 10, 8\), .*sub-00",
        ),
        (lambda p: save(p, np.zeros(SHAPE, complex)), ValueError, "17 in .*dtype complex128"),
        (lambda p: p.write_text("no image"), OSError, "17 in .*sub-17.nii.gz, which cannot be"),
        (lambda p: p.write_bytes(b""), OSError, "17 in .*sub-17.nii.gz, which cannot be read"),
    ],
)
def test_all_headers_are_looked_at_before_values_are_read(paths, tmp_path, damage, error, message):
    damage(tmp_path / "sub-17.nii.gz")
    # Its header is whole, its values are not: they would be found first if they were read.
    cut(tmp_path / "sub-05.nii.gz")
    with pytest.raises(error, match=message):
        FasTRRegressor().fit(paths, np.arange(30))


def test_values_that_were_cut_short_are_named(paths, tmp_path):
    plain = [save(tmp_path / f"plain-{i:02d}.nii", v) for i, v in enumerate(values_of(paths))]
    cut(tmp_path / "plain-17.nii")
    cut(tmp_path / "sub-17.nii.gz")
    for files, name in ((plain, "plain-17.nii"), (paths, "sub-17.nii.gz")):
        with pytest.raises(OSError, match=f"sample 17 in .*{name}, which cannot be read .* whole"):
            FasTRRegressor().fit(files, np.arange(30))


@pytest.mark.parametrize("ending", ["nii", "nii.gz"])
def test_no_room_is_made_for_what_a_file_cannot_hold(tmp_path, ending):
    header = nibabel.Nifti1Header()
    header.set_data_shape((30_000, 30_000, 30_000))
    path = tmp_path / f"huge.{ending}"
    pack = gzip.compress if ending == "nii.gz" else bytes
    path.write_bytes(pack(header.binaryblock + bytes(2000)))
    with pytest.raises(OSError, match=r"sample 0 in .*huge.nii.*\(it has at most \d+ of 10800"):
        as_source([path, path])


def test_values_beyond_float32_are_infinite(paths, tmp_path):
    save(tmp_path / "sub-17.nii.gz", np.full(SHAPE, 7e38), slope=1e38, dtype=np.int16)
    with pytest.raises(ValueError, match=r"infinity: first at sample 17 \(file .*sub-17.nii.gz\)"):
        largest_entry(as_source(paths))


def test_images_of_another_place_are_warned_of(paths, tmp_path):
    moved = np.diag([1.0, 1.0, -1.0, 1.0])
    save(tmp_path / "sub-17.nii.gz", values_of(paths)[17], affine=moved)
    y = values_of(paths)[:, 0, 0, 0]
    with pytest.warns(UserWarning, match="17 in .*sub-17.nii.gz with another affine than .*sub-00"):
        FasTRRegressor(n_init=2, random_state=0).fit(paths, y)


def test_a_missing_package_is_named_with_its_extra(paths, monkeypatch):
    monkeypatch.setitem(sys.modules, "nibabel", None)
    with pytest.raises(ImportError, match=r"needs nibabel.*pip install 'pyfastr\[imaging\]'"):
        FasTRRegressor().fit(paths, np.arange(30))


def test_the_file_of_a_nan_is_named_by_fit_and_predict(paths, tmp_path):
    X = values_of(paths).astype(np.float32)
    model = FasTRRegressor(n_init=2, random_state=0).fit(paths, X[:, 0, 0, 0])
    assert_array_equal(model.predict(paths), model.predict(X))
    X[17, 1, 2, 3] = np.nan
    save(tmp_path / "sub-17.nii.gz", X[17])
    for use in (model.predict, lambda X: model.fit(X, np.arange(30))):
        with (
            config_context(memory_budget="16MB"),
            pytest.raises(ValueError, match=r"NaN: first at sample 17 \(file .*sub-17.nii.gz\)"),
        ):
            use(paths)
