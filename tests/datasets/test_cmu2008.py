"""Files of CMU2008: every value at its voxel, every class its trials, damage reported."""

import tracemalloc
import zlib

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import savemat

from pyfastr.datasets import load_cmu2008

SHAPE = (51, 61, 23)


def load_saved(contents, tmp_path, name="file.mat", **options):
    return load_cmu2008(contents.save(tmp_path / name), **options)


@pytest.mark.parametrize("compress", [False, True])
def test_each_value_is_at_the_voxel_that_its_column_names(contents, tmp_path, compress):
    trials = load_cmu2008(contents.save(tmp_path / "file.mat", compress=compress), categories="all")
    assert trials.data.shape == (360, *SHAPE)
    assert trials.data.dtype == np.float32
    for column, (i, j, k) in enumerate(contents.meta["colToCoord"].astype(int)):
        expected = contents.values[:, column].astype(np.float32)
        assert_array_equal(trials.data[:, i - 1, j - 1, k - 1], expected)


def test_the_mask_is_where_coord_to_col_is_not_zero_and_data_are_zero_outside(contents, tmp_path):
    trials = load_saved(contents, tmp_path)
    assert_array_equal(trials.mask, contents.meta["coordToCol"] > 0)
    assert trials.mask.dtype == bool
    assert not trials.data[:, ~trials.mask].any()


def test_columns_run_with_x_fastest(contents, tmp_path):
    trials = load_saved(contents, tmp_path, categories="all")
    in_matlab_order = trials.data.transpose(0, 3, 2, 1)[:, trials.mask.transpose(2, 1, 0)]
    assert_array_equal(in_matlab_order, contents.values.astype(np.float32))


def test_the_affine_gives_the_known_millimetres(contents, tmp_path):
    affine = load_saved(contents, tmp_path).affine
    # Voxels (31, 10, 1) and (29, 9, 2), counted from 1, of the published files.
    voxels = np.array([[30, 9, 0, 1], [28, 8, 1, 1]])
    assert_allclose(voxels @ affine.T, [[-15.625, -84.375, -48, 1], [-9.375, -87.5, -42, 1]])


def test_the_default_is_tools_against_animals(contents, tmp_path):
    trials = load_saved(contents, tmp_path)
    chosen = [t for t in contents.trials if t["cond"] in ("tool", "furniture", "animal", "insect")]
    assert trials.target_names == ["tools", "animals"]
    assert_array_equal(np.bincount(trials.target), [60, 60])
    assert_array_equal(trials.cond, [t["cond"] for t in chosen])
    assert_array_equal(trials.word, [t["word"] for t in chosen])
    assert_array_equal(trials.epoch, [t["epoch"] for t in chosen])
    assert_array_equal(trials.target == 0, np.isin(trials.cond, ["tool", "furniture"]))
    assert trials.subject == "P1"
    assert "CMU2008" in trials.DESCR


def test_epochs_are_groups_with_both_classes(contents, tmp_path):
    trials = load_saved(contents, tmp_path)
    for epoch in range(1, 7):
        assert_array_equal(np.bincount(trials.target[trials.epoch == epoch]), [10, 10])


@pytest.mark.parametrize(
    ("categories", "names", "counts"),
    [
        (("vehicle", "building"), ["vehicle", "building"], [30, 30]),
        (["tool", "insect", "kitchen"], ["tool", "insect", "kitchen"], [30, 30, 30]),
        ({"food": "vegetable", "made": ["tool", "manmade"]}, ["food", "made"], [30, 60]),
    ],
)
def test_other_classes(contents, tmp_path, categories, names, counts):
    trials = load_saved(contents, tmp_path, categories=categories)
    assert trials.target_names == names
    assert_array_equal(np.bincount(trials.target), counts)


@pytest.mark.parametrize("categories", ["all", None])
def test_all_twelve_categories(contents, tmp_path, categories):
    trials = load_saved(contents, tmp_path, categories=categories)
    assert_array_equal(np.array(trials.target_names)[trials.target], trials.cond)
    assert_array_equal(np.bincount(trials.target), [30] * 12)


def test_only_the_trials_asked_for_are_built(contents, tmp_path):
    path = contents.save(tmp_path / "file.mat")
    tracemalloc.start()
    try:
        trials = load_cmu2008(path, categories=("tool", "insect"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Beside them: the mask, the maps between columns and voxels, and the small file.
    assert peak < trials.data.nbytes + 8e6


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        ("tool", "categories is 'tool'; expected \"tools-animals\""),
        (("tool",), "categories is .*at least two"),
        (("tool", "wrench"), "categories has 'wrench'; the categories of CMU2008 are animal, "),
        (("tool", "tool"), "categories has 'tool' more than once"),
        ({"a": ["tool", "insect"], "b": "tool"}, "categories has 'tool' more than once"),
        ({"a": "tool", "b": []}, "categories is .*expected"),
        (3, "categories is 3; expected"),
    ],
)
def test_errors_of_the_argument_come_before_the_file_is_looked_for(categories, message):
    with pytest.raises(ValueError, match=message):
        load_cmu2008("nowhere.mat", categories=categories)


def test_a_missing_file_says_where_to_get_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such file.*www\.cs\.cmu\.edu"):
        load_cmu2008(tmp_path / "data-science-P1.mat")


def test_the_file_of_another_participant_is_refused(contents, tmp_path):
    with pytest.raises(ValueError, match=r"meta\.subject is 'P1'; expected 'P3'"):
        load_saved(contents, tmp_path, "data-science-P3.mat")
    with pytest.raises(ValueError, match=r"meta\.subject is 'P1'; expected 'P2'"):
        load_saved(contents, tmp_path, subject=2)
    assert load_saved(contents, tmp_path, "data-science-P3.mat", subject=1).subject == "P1"


@pytest.mark.parametrize(
    "name",
    ["subject", "ntrials", "nvoxels", "dimx", "dimy", "dimz", "colToCoord", "coordToCol"],
)
def test_a_missing_field_of_meta(contents, tmp_path, name):
    del contents.meta[name]
    with pytest.raises(ValueError, match=rf"meta\.{name} is missing.*found: study.*download"):
        load_saved(contents, tmp_path)


@pytest.mark.parametrize("name", ["cond", "word", "epoch"])
def test_a_missing_field_of_info(contents, tmp_path, name):
    for trial in contents.trials:
        del trial[name]
    with pytest.raises(ValueError, match=rf"info\.{name} is missing"):
        load_saved(contents, tmp_path)


@pytest.mark.parametrize("name", ["meta", "info", "data"])
def test_a_missing_variable(contents, tmp_path, name):
    variables = contents.as_variables()
    del variables[name]
    savemat(tmp_path / "file.mat", variables)
    with pytest.raises(ValueError, match=f"variable {name} is missing; expected meta, info, data"):
        load_cmu2008(tmp_path / "file.mat")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("subject", "P10", r"meta\.subject is 'P10'; expected P1 to P9"),
        ("subject", 1.0, r"meta\.subject is .*expected a text"),
        ("dimx", 1e12, r"meta\.dimx is 1000000000000; expected 51"),
        ("dimz", 24.0, r"meta\.dimz is 24; expected 23"),
        ("dimy", "61", r"meta\.dimy is of type <U2; expected real numbers"),
        ("nvoxels", 1e15, r"meta\.colToCoord is 40×3; expected 1000000000000000×3"),
        ("nvoxels", 39.5, r"meta\.nvoxels is 39\.5; expected a whole number"),
        ("nvoxels", np.nan, r"meta\.nvoxels is nan; expected a whole number"),
        ("ntrials", 359.0, r"info is 1×360; expected 359 entries, as meta\.ntrials"),
        ("colToCoord", np.ones((40, 2)), r"meta\.colToCoord is 40×2; expected 40×3"),
        ("colToCoord", np.full((40, 3), 52.0), r"meta\.colToCoord runs from \[52, 52, 52\]"),
        ("colToCoord", np.zeros((40, 3)), r"meta\.colToCoord runs from \[0, 0, 0\]"),
        ("colToCoord", np.full((40, 3), np.nan), r"meta\.colToCoord has values that are no ind"),
        ("coordToCol", np.zeros((51, 61, 22)), r"coordToCol is 51×61×22; expected 51×61×23"),
        ("coordToCol", np.zeros(SHAPE), r"coordToCol disagrees with meta\.colToCoord in 40 of 40"),
        ("coordToCol", np.ones(SHAPE), r"coordToCol disagrees.*has 71553 voxels that are not 0"),
    ],
)
def test_a_wrong_field_of_meta(contents, tmp_path, name, value, message):
    contents.meta[name] = value
    with pytest.raises(ValueError, match=rf"file\.mat: .*{message}.*download"):
        load_saved(contents, tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("cond", "wrench", r"info\(3\)\.cond is 'wrench'; expected one of animal"),
        ("cond", 4.0, r"info\(3\)\.cond is .*expected a text"),
        ("epoch", 1.5, r"info\(3\)\.epoch is 1\.5; expected a whole number"),
        ("epoch", np.ones(2), r"info\(3\)\.epoch is 1×2; expected a single number"),
    ],
)
def test_a_wrong_field_of_a_trial(contents, tmp_path, name, value, message):
    contents.trials[2][name] = value
    with pytest.raises(ValueError, match=message):
        load_saved(contents, tmp_path)


def test_a_category_without_trials(contents, tmp_path):
    for trial in contents.trials:
        trial["cond"] = trial["cond"].replace("tool", "vehicle")
    with pytest.raises(ValueError, match=r"info\.cond has no trial of 'tool' \(found: animal, "):
        load_saved(contents, tmp_path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_values_that_are_not_finite(contents, tmp_path, value):
    chosen = next(i for i, t in enumerate(contents.trials) if t["cond"] == "tool")
    contents.values[chosen, 5] = value
    with pytest.raises(ValueError, match=rf"data\{{{chosen + 1}\}} has 1 values that are NaN"):
        load_saved(contents, tmp_path)
    load_saved(contents, tmp_path, categories=("animal", "insect"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (np.zeros((1, 39)), "is 1×39; expected 1×40"),
        (np.zeros((2, 20)), "is 2×20; expected 1×40"),
        ("text", "is of type <U4; expected real numbers"),
        (np.zeros((1, 40), dtype=complex), "is of MATLAB class 6; expected real numbers"),
    ],
)
def test_a_trial_of_the_wrong_shape_or_kind(contents, tmp_path, row, message):
    contents.variables = {"data": contents.as_variables()["data"]}
    contents.variables["data"][7, 0] = row
    with pytest.raises(ValueError, match=rf"data\{{8\}} {message}"):
        load_saved(contents, tmp_path, categories="all")


def test_data_that_are_no_cell(contents, tmp_path):
    contents.variables = {"data": np.zeros((360, 1))}
    with pytest.raises(ValueError, match="data is an array of float64; expected a cell"):
        load_saved(contents, tmp_path)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.5, 0.9, 0.999])
def test_a_truncated_file(contents, tmp_path, share, compress):
    path = contents.save(tmp_path / "file.mat", compress=compress)
    complete = path.read_bytes()
    path.write_bytes(complete[: int(share * len(complete))])
    with pytest.raises(ValueError, match=r"file\.mat: .*(breaks off|starts with).*download"):
        load_cmu2008(path)


@pytest.mark.parametrize(
    "head", [b"<!DOCTYPE html><html>Please log in", b"MATLAB 7.3 MAT-file, Platform", b""]
)
def test_a_file_of_another_kind(tmp_path, head):
    path = tmp_path / "file.mat"
    path.write_bytes(head.ljust(4 * len(head), b" "))
    with pytest.raises(ValueError, match=r"the file starts with .*expected a MATLAB 5\.0 MAT-file"):
        load_cmu2008(path)


def with_huge_dimensions(stored, dims, *, compress):
    """Say that the array of `dims` has 2**31 - 1 rows; nothing else is changed."""
    old = np.array([5, 8, *dims], dtype="<i4").tobytes()
    new = np.array([5, 8, 2**31 - 1, dims[1]], dtype="<i4").tobytes()
    assert old in stored
    damaged = stored.replace(old, new, 1)
    if not compress:
        return damaged
    packed = zlib.compress(damaged[128:])
    return damaged[:128] + np.array([15, len(packed)], dtype="<i4").tobytes() + packed


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("name", ["info", "data", "meta"])
def test_huge_dimensions_are_noticed_before_anything_is_allocated(
    contents, tmp_path, name, compress
):
    path = tmp_path / "file.mat"
    variables = contents.as_variables()
    savemat(path, {name: variables[name]})
    dims = {"info": (1, 360), "data": (360, 1), "meta": (40, 3)}[name]
    path.write_bytes(with_huge_dimensions(path.read_bytes(), dims, compress=compress))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"says that it is 2147483647×\d+; expected at most"):
            load_cmu2008(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e6


@pytest.mark.parametrize("seed", range(30))
def test_damaged_bytes_never_end_in_anything_but_an_error_that_names_the_file(
    contents, tmp_path, seed
):
    rng = np.random.default_rng(seed)
    path = contents.save(tmp_path / "file.mat")
    stored = bytearray(path.read_bytes())
    # The tags are in the first bytes and, for the trials, in the last third.
    for place in rng.choice([*range(124, 700), *range(2 * len(stored) // 3, len(stored))], size=3):
        stored[place] = rng.integers(256)
    path.write_bytes(stored)
    try:
        load_cmu2008(path)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017 - no error is right, too: a value changed
