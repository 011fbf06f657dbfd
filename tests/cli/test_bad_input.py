"""Bad input: one line that says what, where and what to do, code 2, and nothing left behind."""

import gzip
import json
import struct
import sys

import numpy as np
import pytest

from pyfastr import FasTRRegressor, TensorScaler, save

FIT = ("fit", "X.npy", "people.csv:score", "-o", "model.fastr")


def rewritten(path, change):
    """Rewrite the lines of a table."""
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")


def without(arguments, *changes):
    """Replace some of the arguments."""
    return [dict(changes).get(argument, argument) for argument in arguments]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("X.np", "DATA: there is no file 'X.np'. Is it X.npy?"),
        ("nowhere/X.npy", "There is no folder nowhere either."),
        ("none.h5:X", "DATA: there is no file 'none.h5'."),
        ("C:\\none.npy:X", "DATA: there is no file 'C:\\none.npy'."),
        ("", "DATA is empty"),
        ("X.npy:X", "X.npy has no names; leave out ':X'"),
        ("all.npz", "all.npz has several arrays; say which is meant. It has X, y; for example"),
        ("all.npz:Z", "all.npz has no array 'Z'. It has X, y; for example all.npz:X"),
        (
            "broken.npy",
            "broken.npy cannot be read: its first bytes are of another kind of file. It",
        ),
        ("zip.npy", "It is damaged, or not what its name says, .npy. Save it anew."),
        ("nothing.npy", "DATA: nothing.npy is an empty file. Save it anew."),
        ("nothing.h5:X", "DATA: nothing.h5 is an empty file. Save it anew."),
        ("folder.npy", "DATA: folder.npy is a folder; expected a file, as its name ends in .npy."),
        ("folder.h5:X", "DATA: folder.h5 is a folder; expected a file, as its name ends in .h5."),
        ("folder.csv", "Give one that is in it, or rename the folder."),
        ("folder.csv:image", "DATA: folder.csv is a folder; expected a file"),
        ("broken.npz", "broken.npz"),
        ("broken.h5:X", "DATA: broken.h5 cannot be read"),
        ("broken.mat:X", "broken.mat"),
        ("objects.npy", "objects.npy cannot be read: it holds Python objects; expected numbers or"),
        ("objects.npz", "it holds Python objects; expected numbers or text. Save it with such a"),
        ("y.npy", "y.npy has shape (40,) and dtype float64; expected numbers with an axis of"),
        ("people.csv:score", "line 2 of people.csv:score"),
        ("people.csv:image", "has no column 'image'. It has id, score, age, group, site"),
        ("people.csv", "people.csv is a table; say which column is meant"),
        ("notes.txt", "notes.txt is of no known kind; expected .npy"),
        ("empty", "empty has no images"),
        ("*.nii", "*.nii has no images"),
        ("none.npy", "none.npy is empty: its shape is (0, 6, 5)"),
        ("x" * 300, "File name too long"),
    ],
)
def test_data_that_cannot_be_read(refused, here, data, place, message):
    np.savez(here / "all.npz", X=data[0], y=data[1])
    (here / "all.npz").rename(here / "zip.npy")
    np.savez(here / "all.npz", X=data[0], y=data[1])
    np.save(here / "objects.npy", np.array([{}, []], dtype=object))
    np.savez(here / "objects.npz", X=np.array([{}, []], dtype=object))
    for ending in ("npy", "h5"):
        (here / f"nothing.{ending}").touch()
    for ending in ("npy", "h5", "csv"):
        (here / f"folder.{ending}").mkdir()
    for ending in ("npy", "npz", "h5", "mat"):
        (here / f"broken.{ending}").write_bytes(b"nothing of the kind" * 20)
    np.save(here / "none.npy", data[0][:0])
    (here / "notes.txt").touch()
    (here / "empty").mkdir()
    assert message in refused(*without(FIT, ("X.npy", place)))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("people.csv:points", "TARGET: people.csv has no column 'points'. It has id, score, age"),
        ("points", "TARGET: there is no file"),
        (
            "people.csv:scor",
            "It has id, score, age, group, site. Is it score?",
        ),
        ("peple.csv:score", "TARGET: there is no file 'peple.csv'. Is it people.csv?"),
        (
            "people.csv:group",
            "on line 2, which is not a number. If the values are classes, add --c",
        ),
        ("text.npy", "text.npy holds text, not numbers. If the values are classes, add --classify"),
        ("short.npy", "short.npy has 39 rows, but X.npy has 40 samples. They must be as many"),
        ("X.npy", "X.npy has shape 40×6×5; expected one value for each sample"),
        ("one.npy", "TARGET: one.npy is a single value; expected one value for each sample."),
        ("folder.csv:score", "TARGET: folder.csv is a folder; expected a file"),
        ("nan.npy", "nan.npy has NaN or infinity in rows 3, 7 (counted from 0). Remove these"),
    ],
)
def test_targets_that_make_no_sense(refused, here, data, place, message):
    y = data[1].copy()
    np.save(here / "short.npy", y[1:])
    np.save(here / "one.npy", y[0])
    (here / "folder.csv").mkdir()
    np.save(here / "text.npy", np.array(["a"] * 40))
    y[[3, 7]] = np.nan, np.inf
    np.save(here / "nan.npy", y)
    if place == "points":
        # A name alone is one of the file of the samples, which has none here.
        message = "X.npy has no names"
    assert message in refused(*without(FIT, ("people.csv:score", place)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "people.csv:score has 39 rows, but X.npy has 40 samples"),
        (lambda lines: [*lines[:3], "p2,,1,a,b", *lines[4:]], "has no value in line 4. Remove"),
        (
            lambda lines: [lines[0], *("p,n/a,1,a,b" for _ in lines[1:])],
            "has no value in lines 2, 3, 4, 5, 6 and 35 more",
        ),
        (lambda lines: [*lines[:3], "p2,1_000,1,a,b", *lines[4:]], "has '1_000' on line 4, which"),
        (lambda lines: [*lines[:3], 'p2,"3,5",1,a,b', *lines[4:]], "has '3,5' on line 4, which is"),
        (lambda lines: [*lines[:3], "p2,3,5,1,a,b", *lines[4:]], "line 4 has 6 cells, the header"),
        (lambda lines: lines[:1], "people.csv has no rows"),
        (lambda lines: ["id,score,score,group,site", *lines[1:]], "several columns 'score'"),
        (
            lambda lines: [line.replace(",", ";") for line in lines],
            "has one column, 'id;score;age;group;site'. Set cells apart by commas in a .csv file",
        ),
    ],
)
def test_tables_that_make_no_sense(refused, here, data, change, message):
    rewritten(here / "people.csv", change)
    assert message in refused(*FIT)


@pytest.mark.parametrize("ending", ["npy", "npz", "mat"])
def test_arrays_that_are_cut_short(invoke, here, data, ending):
    from scipy.io import savemat

    whole = here / f"whole.{ending}"
    writers = {"npy": np.save, "npz": lambda path, X: np.savez_compressed(path, X=X)}
    writers.get(ending, lambda path, X: savemat(path, {"X": X}))(whole, data[0])
    content = whole.read_bytes()
    for length in range(0, 400, 23):
        (here / f"cut.{ending}").write_bytes(content[:length])
        outcome = invoke(*without(FIT, ("X.npy", f"cut.{ending}")))
        assert outcome.exit_code == 2, outcome.stderr
        assert outcome.stderr.startswith(f"Error: DATA: cut.{ending} ")


def test_a_table_that_is_not_utf_8(refused, here, data):
    (here / "people.csv").write_bytes("id,score\nJosé,1\n".encode("latin-1"))
    assert "people.csv is not UTF-8 text; save it as UTF-8" in refused(*FIT)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--covariates", "people.csv:age,sex"], "--covariates: people.csv has no column 'sex'"),
        (["--covariates", "people.csv:age, age"], "names 'age' more than once; give each column"),
        (["--covariates", "people.csv:group"], "Write categories as columns of 0 and 1."),
        (["--covariates", "X.npy"], "--covariates: X.npy has shape (40, 6, 5)"),
        (["--groups", "people.csv:family"], "--groups: people.csv has no column 'family'"),
        (["--groups", "people.csv:site", "--no-cv"], "--groups keeps samples together in folds"),
        (["--folds", "3", "--no-cv"], "--folds is of --cv"),
        (["--threshold", "0.1,0.2", "--no-cv"], "--threshold is 0.1,0.2, but --no-cv takes one"),
        (["--threshold", "1.5"], "--threshold is 1.5; expected a number from 0 to below 1"),
        (["--ridge", ""], "--ridge is empty; expected a number from 0 on"),
        (["--ridge", "x"], "--ridge is x; expected a number from 0 on"),
        (["--n-terms", "0"], "--n-terms is 0; expected an int from 1 on"),
        (["--n-terms", "auto,1"], "--n-terms is auto,1; expected"),
        (["--folds", "1"], "--folds"),
        (["--folds", "41"], "fitting people.csv:score to X.npy"),
        (["--scale", "rows"], "--scale is rows; expected none, element, global, or mode:"),
        (["--scale", ""], "--scale is empty; expected none"),
        (["--scale", "mode:2"], "--scale is mode:2; expected"),
        (["--mask", "mask.nii"], "--mask is of images, but DATA is X.npy"),
        (["--coef-img", "coef.nii"], "--coef-img is of images, but DATA is X.npy"),
        (["--report", "report.pdf"], "--report is report.pdf; expected a name ending in .html"),
        (["--report", "none/report.html"], "there is no folder none. Make it."),
        (["--classify"], "TARGET: people.csv:score has numbers that are no classes, such as"),
        (
            ["--classify"],
            "expected text or whole numbers. To predict numbers, leave out --classify",
        ),
        (["--nothing"], "No such option: --nothing"),
    ],
)
def test_options_that_make_no_sense(refused, data, arguments, message):
    assert message in refused(*FIT, *arguments)


def test_a_command_that_is_not_there(refused):
    assert "No such command 'fitt'" in refused("fitt")
    assert "Missing option" in refused("fit", "X.npy", "y.npy")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("model.fastr", "--output is model.fastr, which exists. Add --force to replace it"),
        ("model.pkl", "--output is model.pkl; expected a name ending in .fastr"),
        ("folder.fastr", "--output is folder.fastr, a folder; give the name of a file"),
    ],
)
def test_outputs_are_checked_before_the_work(refused, here, data, output, message):
    (here / "model.fastr").touch()
    (here / "folder.fastr").mkdir()
    # The data are no data: nobody has looked at them yet.
    (here / "X.npy").write_bytes(b"")
    assert message in refused(*without(FIT, ("model.fastr", output)))


def test_data_are_not_replaced_even_by_force(refused, here, data):
    np.savez(here / "all.npz", X=data[0], y=data[1])
    (here / "m.fastr").touch()
    line = refused("predict", "m.fastr", "m.fastr", "-o", "m.fastr", "--force")
    assert "expected a name ending in .csv or .tsv" in line
    line = refused("predict", "m.fastr", "people.csv:id", "-o", "people.csv", "--force")
    assert "--output is people.csv, which is read as input" in line


def test_a_table_of_covariates_is_not_replaced_even_by_force(refused, model):
    covariates = ("--covariates", "people.csv:age,score", "-o", "people.csv", "--force")
    line = refused("predict", "two.fastr", "X.npy", *covariates)
    assert "--output is people.csv, which is read as input; give another name." in line


def test_a_file_where_the_folder_of_the_demo_should_be(refused, here):
    (here / "demo").touch()
    assert "--out is demo, a file; give the name of a folder." in refused("demo", "--force")


def test_rows_as_many_as_the_last_axis(refused, here, data):
    np.save(here / "last.npy", np.moveaxis(data[0], 0, -1))
    line = refused(*without(FIT, ("X.npy", "last.npy")))
    assert "The last axis has 40: if it counts samples, add --samples-axis last." in line


def test_a_sample_with_nan_is_named_with_its_files(refused, here, data):
    X = data[0].copy()
    X[5, 2, 1] = np.nan
    np.save(here / "X.npy", X)
    line = refused(*FIT)
    assert line.startswith("Error: fitting people.csv:score to X.npy: ")
    assert "NaN" in line


@pytest.fixture
def model(here, data):
    """A model of the data, with two covariates that have no names."""
    X, y, age = data
    fitted = FasTRRegressor(ridge=0.1, random_state=0).fit(X, y)
    save(fitted, here / "plain.fastr")
    covariates = np.column_stack([age, age**2])
    save(FasTRRegressor(random_state=0).fit(X, y, covariates=covariates), here / "two.fastr")
    save(TensorScaler().fit(X), here / "scaler.fastr")
    return fitted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.fastr", "X.npy"], "Cannot load 'none.fastr': there is no such file."),
        (["people.csv", "X.npy"], "Cannot load 'people.csv': it is not a pyfastr model file"),
        (["newer.fastr", "X.npy"], "it was written by a newer pyfastr"),
        (["scaler.fastr", "X.npy"], "scaler.fastr holds a TensorScaler, which does not predict"),
        (["plain.fastr", "wide.npy"], "has samples of shape 6×7, but plain.fastr was fitted to sa"),
        (["plain.fastr", "last.npy"], "If the last axis counts samples, add --samples-axis last."),
        (["plain.fastr", "X.npy", "--covariates", "people.csv:age"], "fitted without covariates"),
        (["two.fastr", "X.npy"], "two.fastr was fitted with covariates: 2 of them. Add --covar"),
        (["two.fastr", "X.npy", "--covariates", "people.csv:age"], "has 1 columns, but two.fastr"),
    ],
)
def test_models_that_do_not_suit(refused, here, data, model, arguments, message):
    content = (here / "plain.fastr").read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = content[8 : 8 + size].replace(b'format_version\\":1', b'format_version\\":9')
    assert header != content[8 : 8 + size]
    (here / "newer.fastr").write_bytes(content[:8] + header + content[8 + size :])
    np.save(here / "wide.npy", np.zeros((3, 6, 7)))
    np.save(here / "last.npy", np.moveaxis(data[0], 0, -1))
    assert message in refused("predict", *arguments, "-o", "out.csv")


def test_info_of_no_model(refused, data):
    assert "is not a pyfastr model file" in refused("info", "people.csv")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "X.npy"], "--data and --target go together"),
        (["--covariates", "people.csv:age"], "--covariates are those of --data"),
        (["--background", "b.nii"], "--background is of images, but plain.fastr was fitted to"),
        (
            ["--data", "X.npy", "--target", "people.csv:none"],
            "--target: people.csv has no column 'none'",
        ),
    ],
)
def test_reports_that_cannot_be(refused, model, arguments, message):
    assert message in refused("report", "plain.fastr", "-o", "report.html", *arguments)


@pytest.mark.parametrize(
    ("labels", "target", "message"),
    [
        ("people.csv:group", "y.npy", "expected text or whole numbers. MODEL is of classes."),
        ("y.npy", "people.csv:group", "which is not a number. MODEL was fitted to numbers."),
    ],
)
def test_further_samples_have_a_target_of_the_kind_of_the_model(
    invoke, refused, data, labels, target, message
):
    fit = ("fit", "X.npy", labels, "-o", "m.fastr", "--no-cv")
    assert invoke(*fit, *(["--classify"] if "group" in labels else [])).exit_code == 0
    arguments = ("-o", "r.html", "--data", "X.npy", "--target", target)
    line = refused("report", "m.fastr", *arguments)
    assert line.startswith(("Error: --target: ", f"Error: {target}"))
    assert line.endswith(message)


def test_a_file_that_may_not_be_read(refused, data, monkeypatch):
    def fail(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(np, "load", fail)
    line = refused(*FIT)
    assert "X.npy cannot be read: Permission denied. Check that you may read it." in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Say where the data go: either --output FILE.npz or --nifti FOLDER."),
        (["-o", "d.npz", "--nifti", "study"], "Say where the data go"),
        (["-o", "d.npz", "--shape", "20x"], "--shape is 20x; expected sizes with an x between"),
        (["-o", "d.npy"], "--output is d.npy; expected a name ending in .npz"),
        (["-o", "d.npz", "--shape", ""], "--shape is empty; expected sizes with an x between"),
        (["-o", "d.npz", "--noise", "1e308"], "noise is 1e+308, which makes y infinite in float64"),
        (["-o", "d.npz", "--noise", "inf"], "noise is inf; expected a number"),
        (["--nifti", "study", "--terms", "2"], "are of --output; leave them out"),
        (["--nifti", "study", "--shape", "5x5"], "expected three ints"),
        (["--nifti", "used"], "exists and is not empty"),
    ],
)
def test_simulations_that_make_no_sense(refused, here, arguments, message):
    pytest.importorskip("nibabel")
    (here / "used").mkdir()
    (here / "used" / "file").touch()
    assert message in refused("simulate", *arguments)


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("h5py", "stored", ["fit", "a.h5:X", "y.npy", "-o", "m.fastr"]),
        ("zarr", "stored", ["fit", "a.zarr", "y.npy", "-o", "m.fastr"]),
        ("nibabel", "imaging", ["fit", "a.nii", "y.npy", "-o", "m.fastr"]),
        ("jinja2", "report", ["fit", "X.npy", "y.npy", "-o", "m.fastr", "--report", "r.html"]),
    ],
)
def test_a_missing_package_names_its_extra(
    refused, here, data, monkeypatch, package, extra, arguments
):
    for name in ("a.h5", "a.nii"):
        (here / name).write_bytes(b"something")
    (here / "a.zarr").mkdir()
    monkeypatch.setitem(sys.modules, package, None)
    line = refused(*arguments)
    assert f"needs {package}, which is not installed. Run: pip install 'pyfastr[{extra}]'" in line


def test_what_nobody_expected_is_one_line_and_says_how_to_see_more(invoke, data, monkeypatch):
    def fail(*_args, **_kwargs):
        raise RuntimeError("the sky\nfell")

    monkeypatch.setattr("pyfastr.cli.run_fit.make_estimator", fail)
    outcome = invoke(*FIT)
    assert outcome.exit_code == 1
    (line,) = outcome.stderr.splitlines()
    assert line.startswith("Unexpected RuntimeError: the sky fell To see where it came from: ")
    assert "PYFASTR_TRACEBACK=1 pyfastr" in line
    monkeypatch.setenv("PYFASTR_TRACEBACK", "1")
    outcome = invoke(*FIT)
    assert outcome.exit_code == 1
    assert "Traceback (most recent call last)" in outcome.stderr
    assert 'raise RuntimeError("the sky\\nfell")' in outcome.stderr


class TestImages:
    """Folders and tables of images."""

    @pytest.fixture
    def study(self, here):
        pytest.importorskip("nilearn")
        from pyfastr.datasets import make_nifti_study

        return make_nifti_study(here / "study", n_subjects=6, shape=(6, 6, 6), random_state=0)

    def fit(self, refused, data, target="study/participants.tsv:score", *arguments):
        return refused("fit", data, target, "-o", "m.fastr", *arguments)

    def test_one_that_is_not_there(self, refused, study):
        study.images[2].unlink()
        line = self.fit(refused, "study/participants.tsv:image", "score")
        assert "line 4 of study/participants.tsv:image is study/sub-03.nii.gz, which is not" in line

    def test_one_that_cannot_be_read(self, refused, study):
        whole = gzip.decompress(study.images[2].read_bytes())
        study.images[2].write_bytes(gzip.compress(whole)[:-40])
        assert "sub-03.nii.gz" in self.fit(refused, "study/participants.tsv:image", "score")

    def test_the_first_one_is_none(self, refused, study):
        study.images[0].write_bytes(b"no image")
        line = self.fit(refused, "study/participants.tsv:image", "score")
        assert "study/sub-01.nii.gz cannot be read as an image" in line

    def test_one_of_another_shape(self, refused, study):
        import nibabel

        nibabel.Nifti1Image(np.zeros((4, 4, 4), np.float32), np.eye(4)).to_filename(study.images[2])
        assert "sub-03.nii.gz" in self.fit(refused, "study/participants.tsv:image", "score")

    def test_more_of_them_than_rows(self, refused, study):
        line = self.fit(refused, "study")
        assert "has 6 rows, but study has 7 images" in line
        assert "give study/participants.tsv:image as DATA" in line

    def test_rows_in_another_order(self, refused, here, study):
        rewritten(study.table, lambda lines: [lines[0], *reversed(lines[1:])])
        line = self.fit(refused, "study/sub-*.nii.gz")
        assert "Image 1 is sub-01.nii.gz, but line 2 of study/participants.tsv:image is" in line

    @pytest.mark.parametrize("option", ["--covariates", "--groups"])
    def test_rows_of_another_table_in_another_order(self, refused, here, study, option):
        lines = study.table.read_text().splitlines()
        (here / "other.tsv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
        arguments = ("study/sub-*.nii.gz", "study/participants.tsv:score", option, "other.tsv:age")
        line = self.fit(refused, *arguments)
        assert "Image 1 is sub-01.nii.gz, but line 2 of other.tsv:image is" in line

    def test_the_mask_and_the_images_are_not_replaced(self, refused, study):
        for name in ("mask.nii.gz", "sub-01.nii.gz"):
            outputs = ("--mask", "study/mask.nii.gz", "--coef-img", f"study/{name}", "--force")
            line = self.fit(refused, "study/participants.tsv:image", "score", *outputs)
            assert f"--coef-img is study/{name}, which is read as input" in line

    def test_a_folder_of_a_mask_alone(self, refused, study):
        for path in study.images:
            path.unlink()
        line = self.fit(refused, "study", "y.npy", "--mask", "study/mask.nii.gz")
        assert "DATA: study has no images beside the mask." in line

    def test_a_model_that_only_reads_images(self, refused, here, study):
        from pyfastr.imaging import NiftiTransformer

        save(NiftiTransformer(study.mask).fit(study.images), here / "reader.fastr")
        line = refused("predict", "reader.fastr", "study/sub-*", "-o", "out.csv")
        assert "reader.fastr holds a NiftiTransformer, which does not predict" in line

    def test_scaling_is_of_arrays(self, refused, study):
        line = self.fit(refused, "study/participants.tsv:image", "score", "--scale", "element")
        assert "--scale is of arrays" in line

    def test_a_mask_that_is_not_there(self, refused, study):
        line = self.fit(refused, "study/participants.tsv:image", "score", "--mask", "m.nii")
        assert "--mask: there is no file m.nii" in line

    def test_arrays_for_a_model_of_images(self, refused, invoke, here, study):
        place = "study/participants.tsv:image"
        assert invoke("fit", place, "score", "-o", "m.fastr", "--no-cv").exit_code == 0
        np.save(here / "X.npy", np.zeros((3, 6, 6, 6)))
        line = refused("predict", "m.fastr", "X.npy", "-o", "out.csv")
        assert "X.npy holds arrays, but m.fastr was fitted to images" in line


def test_json_has_no_room_for_infinity():
    from pyfastr.cli.voice import _plain

    assert json.dumps(_plain({"gap": np.inf, "a": np.float32(0.5), "b": (1, None)})) == (
        '{"gap": null, "a": 0.5, "b": [1, null]}'
    )
