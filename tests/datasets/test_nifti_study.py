"""A study as files: what is written is what is told."""

import nibabel as nib
import numpy as np
import pandas as pd
import pytest

from pyfastr.datasets import make_nifti_study


def load(study):
    return np.stack([nib.load(path).get_fdata() for path in study.images])


def test_the_table_and_the_images_are_those_of_the_study(tmp_path):
    study = make_nifti_study(tmp_path / "study", 12, random_state=0)
    table = pd.read_csv(study.table, sep="\t")
    assert table.columns.tolist() == ["image", "score", "group", "age"]
    assert [study.folder / name for name in table["image"]] == study.images
    assert sorted(study.folder.glob("sub-*.nii.gz")) == study.images
    np.testing.assert_array_equal(table["score"], study.scores)
    np.testing.assert_array_equal(table["age"], study.ages)
    assert table["group"].tolist() == study.groups.tolist()
    np.testing.assert_array_equal(nib.load(study.mask).affine, study.affine)


def test_without_noise_scores_are_the_coefficient_and_age(tmp_path):
    study = make_nifti_study(tmp_path, 15, noise=0.0, random_state=1)
    signal = np.tensordot(load(study), study.coef, axes=3)
    rest = study.scores - signal - 0.02 * study.ages
    np.testing.assert_allclose(rest, rest.mean(), atol=1e-5)
    assert signal.std() == pytest.approx(1.0, rel=1e-6)
    order = np.argsort(signal)
    assert set(study.groups[order[:8]]) == {"control"}
    assert set(study.groups[order[8:]]) == {"patient"}


def test_the_coefficient_is_of_unit_rank_inside_the_head(tmp_path):
    study = make_nifti_study(tmp_path, 5, random_state=0)
    mask = nib.load(study.mask).get_fdata() != 0
    assert not study.coef[~mask].any()
    assert np.linalg.matrix_rank(study.coef.reshape(12, -1)) == 1
    assert (load(study)[:, ~mask] == 0).all()


def test_a_seed_gives_the_same_study(tmp_path):
    first = make_nifti_study(tmp_path / "a", 3, shape=(6, 7, 5), random_state=3)
    second = make_nifti_study(tmp_path / "b", 3, shape=(6, 7, 5), random_state=3)
    np.testing.assert_array_equal(load(first), load(second))
    assert first.table.read_text() == second.table.read_text()


def test_the_folder_one_is_in_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"folder is \., the one you are in; expected another"):
        make_nifti_study(".")
    assert list(tmp_path.iterdir()) == []


def test_files_of_others_are_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="is not empty; expected a new or empty folder"):
        make_nifti_study(tmp_path, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_nothing_half_written_is_left(tmp_path, monkeypatch):
    def fail(self, name):
        raise OSError("the disk is full")

    monkeypatch.setattr(nib.Nifti1Image, "to_filename", fail)
    with pytest.raises(OSError, match="the disk is full"):
        make_nifti_study(tmp_path / "study", 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"n_subjects": 0}, "n_subjects is 0"),
        ({"shape": (4, 4)}, r"shape is \(4, 4\); expected three ints of at least 5"),
        ({"shape": (12, 14, 4)}, "at least 5"),
        ({"noise": -1}, "noise is -1"),
        ({"noise": 1e308}, "noise is 1e[+]308"),
    ],
)
def test_bad_parameters(tmp_path, params, words):
    with pytest.raises(ValueError, match=words):
        make_nifti_study(tmp_path / "study", **params)
    assert not (tmp_path / "study").exists()
