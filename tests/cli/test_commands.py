"""The other commands, and what holds for all of them."""

import csv
import json
import os
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pyfastr
from pyfastr import FasTRClassifierCV, FasTRRegressor, TensorScaler

COMMANDS = ("fit", "predict", "report", "info", "simulate", "reproduce", "demo")


def told(outcome):
    """The JSON document of a command that succeeded: all that is on its standard output."""
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


def rows_of(path, delimiter=","):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


def test_predictions_are_written_in_full(invoke, here, data):
    X, y, _ = data
    model = FasTRRegressor(random_state=0).fit(X, y)
    pyfastr.save(model, here / "m.fastr")
    document = told(invoke("predict", "m.fastr", "X.npy", "-o", "out.csv", "--json"))
    assert document["files"] == {"predictions": "out.csv"}
    rows = rows_of(here / "out.csv")
    assert [row["sample"] for row in rows] == list(map(str, range(40)))
    assert [float(row["prediction"]) for row in rows] == model.predict(X).tolist()


def test_predictions_of_classes_have_probabilities(invoke, here, data):
    X, y, _ = data
    labels = np.where(y > np.median(y), "high", "low, or so")
    model = FasTRClassifierCV(ridges=[0.1], thresholds=[0.0], random_state=0).fit(X, labels)
    pyfastr.save(model, here / "m.fastr")
    told(invoke("predict", "m.fastr", "X.npy", "-o", "out.tsv", "--json"))
    rows = rows_of(here / "out.tsv", "\t")
    assert [row["prediction"] for row in rows] == model.predict(X).tolist()
    given = [[float(row[f"probability_{c}"]) for c in ("high", "low, or so")] for row in rows]
    np.testing.assert_array_equal(given, model.predict_proba(X))


def test_pipelines_of_selected_slices_take_whole_samples(invoke, here, data):
    from sklearn.pipeline import make_pipeline

    from pyfastr import SliceSelector

    X, y, _ = data
    some = SliceSelector(FasTRRegressor(threshold=0.3, random_state=0))
    model = make_pipeline(some, FasTRRegressor(random_state=0)).fit(X, y)
    assert model[1].tensor_shape_in_ != (6, 5)
    pyfastr.save(model, here / "m.fastr")
    told(invoke("predict", "m.fastr", "X.npy", "-o", "out.csv", "--json"))
    given = [float(row["prediction"]) for row in rows_of(here / "out.csv")]
    assert given == model.predict(X).tolist()
    assert told(invoke("info", "m.fastr", "--json"))["sample_shape"] == [6, 5]


def test_pipelines_of_images_take_images(invoke, here):
    pytest.importorskip("nilearn")
    from sklearn.pipeline import make_pipeline

    from pyfastr.datasets import make_nifti_study
    from pyfastr.imaging import NiftiTransformer

    study = make_nifti_study(here / "study", n_subjects=8, shape=(6, 6, 6), random_state=0)
    steps = NiftiTransformer(study.mask), TensorScaler(), FasTRRegressor(random_state=0)
    model = make_pipeline(*steps).fit(study.images, study.scores)
    pyfastr.save(model, here / "m.fastr")
    told(invoke("predict", "m.fastr", "study/sub-*", "-o", "out.csv", "--json"))
    given = [float(row["prediction"]) for row in rows_of(here / "out.csv")]
    assert given == model.predict(study.images).tolist()


def test_covariates_go_by_the_names_of_the_fit(invoke, here, data):
    fit = ("fit", "X.npy", "people.csv:score", "-o", "m.fastr", "--scale", "global", "--no-cv")
    assert invoke(*fit, "--covariates", "people.csv:age").exit_code == 0
    predict = ("predict", "m.fastr", "X.npy", "--json", "--covariates")
    told(invoke(*predict, "people.csv", "-o", "a.csv"))
    X, _, age = data
    model = pyfastr.load("m.fastr")
    with pytest.warns(UserWarning, match="no names"):
        same = model.predict(X, covariates=age[:, None])
    assert [float(row["prediction"]) for row in rows_of(here / "a.csv")] == same.tolist()
    outcome = invoke(*predict, "people.csv:score", "-o", "b.csv")
    assert outcome.exit_code == 2
    assert "--covariates are score, but m.fastr was fitted with age" in outcome.stderr


def test_a_report_of_a_model_and_of_further_samples(invoke, here, data):
    X, y, _ = data
    pyfastr.save(FasTRRegressor(random_state=0).fit(X[:30], y[:30]), here / "m.fastr")
    document = told(invoke("report", "m.fastr", "-o", "a.html", "--json"))
    assert document["files"] == {"report": "a.html"}
    arguments = ("--data", "X.npy", "--target", "people.csv:score")
    assert invoke("report", "m.fastr", "-o", "b.html", *arguments).exit_code == 0
    plain, scored = (here / n for n in ("a.html", "b.html"))
    assert "40 samples" in scored.read_text(encoding="utf-8")
    assert "40 samples" not in plain.read_text(encoding="utf-8")


def test_info_reads_only_the_header(invoke, here, data):
    from sklearn.pipeline import make_pipeline

    X, y, _ = data
    model = make_pipeline(TensorScaler(per=0), FasTRRegressor(ridge=0.1, random_state=0)).fit(X, y)
    pyfastr.save(model, here / "m.fastr")
    document = told(invoke("info", "m.fastr", "--json"))
    assert document["class"] == "Pipeline"
    assert document["sample_shape"] == [6, 5]
    assert document["bytes"] == (here / "m.fastr").stat().st_size
    shown = invoke("info", "m.fastr").stdout
    assert "40 samples of 6×5" in shown
    call = "make_pipeline(TensorScaler(per=0), FasTRRegressor(random_state=0, ridge=0.1))"
    assert call in " ".join(shown.split())


def test_a_forged_header_is_refused_in_one_line(invoke, here, data, monkeypatch):
    X, y, _ = data
    path = pyfastr.save(FasTRRegressor(random_state=0).fit(X, y), here / "m.fastr")
    content = path.read_bytes()
    forged = content.replace(b'\\"n_hits\\":', b'\\"n_hots\\":')
    assert forged != content
    path.write_bytes(forged)
    outcome = invoke("info", "m.fastr")
    assert outcome.exit_code == 2
    assert len(outcome.stderr.splitlines()) == 1


def test_a_forged_header_cannot_steer_the_terminal(invoke, here, data):
    X, y, _ = data
    path = pyfastr.save(FasTRRegressor(random_state=0).fit(X, y), here / "m.fastr")
    version = f'\\"library_version\\":\\"{pyfastr.__version__}\\"'.encode()
    steering = b'\\"library_version\\":\\"' + rb"\\u001b[2J" + b'\\"'
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = content[8 : 8 + length].replace(version, steering)
    path.write_bytes(struct.pack("<Q", len(header)) + header + content[8 + length :])
    outcome = invoke("info", "m.fastr")
    assert outcome.exit_code == 0, outcome.output
    assert "[2J" in outcome.stdout
    assert "\x1b" not in outcome.stdout


def test_simulated_arrays_are_those_of_python(invoke, here):
    from pyfastr.datasets import make_tensor_regression

    options = ("--shape", "4x3", "--samples", 9, "--noise", 0.5, "--sparsity", 0.5, "--terms", 2)
    document = told(invoke("simulate", "-o", "d.npz", *options, "--seed", 7, "--json"))
    assert (document["n_samples"], document["sample_shape"]) == (9, [4, 3])
    X, y, W = make_tensor_regression(
        9, (4, 3), noise=0.5, sparsity=0.5, n_terms=2, coef=True, random_state=7
    )
    with np.load("d.npz") as drawn:
        for name, array in (("X", X), ("y", y), ("coef", W)):
            np.testing.assert_array_equal(drawn[name], array)
    assert invoke("simulate", "-o", "d.npz").exit_code == 2
    assert invoke("simulate", "-o", "d.npz", *options, "--force").exit_code == 0


def test_a_folder_of_images_and_a_table_become_a_model_an_image_and_a_report(command, invoke, here):
    nibabel = pytest.importorskip("nibabel")
    pytest.importorskip("nilearn")
    shape = ("--shape", "8x9x7", "--samples", 24)
    assert invoke("simulate", "--nifti", "study", *shape).exit_code == 0
    (here / "people.csv").write_text(
        (here / "study" / "participants.tsv").read_text().replace("\t", ",")
    )
    options = (
        *("--mask", "study/mask.nii.gz", "--covariates", "people.csv:age"),
        *("--ridge", "0.1", "--threshold", "0.1"),
    )
    code, out, errors = command(
        *("fit", "study", "people.csv:score", "-o", "m.fastr", "--coef-img", "coef.nii.gz"),
        *("--report", "report.html", "--json", *options),
    )
    assert code == 0, errors
    assert json.loads(out)["files"] == {
        "model": "m.fastr",
        "coef_img": "coef.nii.gz",
        "report": "report.html",
    }
    image = nibabel.load(here / "coef.nii.gz")
    first = nibabel.load(here / "study" / "sub-01.nii.gz")
    assert image.shape == first.shape
    np.testing.assert_array_equal(image.affine, first.affine)
    model = pyfastr.load(here / "m.fastr")
    np.testing.assert_array_equal(image.get_fdata(), model.coef_img_.get_fdata())
    told_of = json.loads(out)
    assert told_of["n_nonzero"] == np.count_nonzero(image.get_fdata())
    assert told_of["n_entries"] == model.n_elements_
    assert (here / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    covariates = ("--covariates", "people.csv", "--json")
    told(invoke("predict", "m.fastr", "study/sub-*", "-o", "p.csv", *covariates))
    rows = rows_of(here / "p.csv")
    assert rows[0]["image"] == "study/sub-01.nii.gz"
    assert len(rows) == 24


def test_rows_without_names_are_matched_in_order_and_that_is_said(invoke, here):
    pytest.importorskip("nilearn")
    from pyfastr.datasets import make_nifti_study

    study = make_nifti_study(here / "study", n_subjects=8, shape=(6, 6, 6), random_state=0)
    lines = [f"{score}" for score in study.scores]
    (here / "scores.csv").write_text("\n".join(["score", *lines]) + "\n")
    fit = ("fit", "study/sub-*.nii.gz", "scores.csv:score", "-o", "m.fastr", "--no-cv")
    outcome = invoke(*fit)
    assert outcome.exit_code == 0, outcome.output
    assert "are matched to the images in order, from sub-01" in outcome.stderr
    lines = [
        f"{image.name},{score}" for image, score in zip(study.images, study.scores, strict=True)
    ]
    (here / "scores.csv").write_text("\n".join(["file,score", *lines]) + "\n")
    outcome = invoke(*fit, "--force")
    assert "matched" not in outcome.stderr


@pytest.mark.parametrize("names", [("müller", "möller"), ("sub-1", "sub-10"), ("a_b", "b_a")])
def test_names_of_images_tell_the_order_of_rows(here, names):
    from pyfastr.cli.errors import InputError
    from pyfastr.cli.images import check_order
    from pyfastr.cli.tables import read_table

    images = [Path(f"scans/{name}_T1.nii.gz") for name in names]
    for rows in (names, names[::-1]):
        (here / "t.csv").write_text("\n".join(["id,age", *(f"{n},30" for n in rows)]), "utf-8")
        if rows == names:
            assert check_order(images, read_table(here / "t.csv"))
        else:
            with pytest.raises(InputError, match=f"Image 1 is {names[0]}_T1.nii.gz, but line 2"):
                check_order(images, read_table(here / "t.csv"))


def test_a_four_dimensional_image_is_many_samples(invoke, here):
    nibabel = pytest.importorskip("nibabel")
    pytest.importorskip("nilearn")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 5, 5, 30)).astype(np.float32) + 10
    nibabel.Nifti1Image(X, np.eye(4)).to_filename("run.nii")
    np.save("y.npy", X[2, 2, 2] * 3)
    document = told(invoke("fit", "run.nii", "y.npy", "-o", "m.fastr", "--no-cv", "--json"))
    assert (document["n_samples"], document["sample_shape"]) == (30, [6, 5, 5])
    told(invoke("predict", "m.fastr", "run.nii", "-o", "p.csv", "--json"))
    assert len(rows_of(here / "p.csv")) == 30


def test_the_demo_writes_a_report_a_picture_and_a_model(invoke, here, monkeypatch):
    # What the extra `cli` does not bring must not be needed.
    for package in ("safetensors", "nibabel", "nilearn", "celer"):
        monkeypatch.setitem(sys.modules, package, None)
    # A smaller problem: what is shown is the same.
    for name, value in (("SHAPE", (6, 6, 6)), ("N_TRAIN", 60), ("N_TEST", 40)):
        monkeypatch.setattr(f"pyfastr.experiments.demo.{name}", value)
    (here / "demo").mkdir()
    (here / "demo" / "mine.txt").touch()
    assert invoke("demo").exit_code == 2
    document = told(invoke("demo", "--force", "--json"))
    assert [fit["method"] for fit in document["fits"]] == [
        *("FasTRRegressorCV", "PublishedFasTR", "LassoCV"),
    ]
    assert document["fits"][0]["CE"] < 0.05
    page = Path(document["files"]["report"]).read_text(encoding="utf-8")
    assert "Beside other methods" in page
    assert Path(document["files"]["picture"]).read_bytes().startswith(b"\x89PNG")
    assert pyfastr.load(document["files"]["model"]).tensor_shape_in_ == (6, 6, 6)
    assert sorted(path.name for path in (here / "demo").iterdir()) == [
        *("coefficient.png", "mine.txt", "model.fastr", "report.html"),
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_ctrl_c_during_a_fit_leaves_nothing(start, here, soon, tmp_path_factory):
    from scipy.io import savemat

    # Elsewhere, as it stays.
    checkpoint = tmp_path_factory.mktemp("elsewhere") / "c"
    rng = np.random.default_rng(0)
    savemat(here / "d.mat", {"X": rng.standard_normal((80, 30, 30, 20))})
    np.save(here / "y.npy", rng.standard_normal(80))
    before = sorted(here.iterdir())
    process = start(
        *("fit", "d.mat:X", "y.npy", "-o", "m.fastr", "--report", "r.html"),
        *("--n-terms", "1,2,3,4,5", "--checkpoint", checkpoint),
    )
    assert "the first axis is taken to count samples" in process.stderr.readline()
    assert soon(lambda: checkpoint.exists() or process.poll() is not None)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    told = f"How far the fit was is in {checkpoint}: the same call goes on there."
    assert errors == f"Interrupted. Nothing is left half-written. {told}\n"
    assert sorted(here.iterdir()) == before


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_fit_that_is_stopped_goes_on_from_its_checkpoint(start, here, soon, number):
    rng = np.random.default_rng(0)
    np.savez(here / "d.npz", X=rng.standard_normal((60, 20, 20, 10)), y=rng.standard_normal(60))
    command = ("fit", "d.npz:X", "y", "-o", "m.fastr", "--no-cv", "--checkpoint", "c", "--quiet")
    process = start(*command, "--n-terms", "6")
    assert soon(lambda: (here / "c").exists() or process.poll() is not None)
    assert process.poll() is None
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 128 + number
    if number == signal.SIGINT:
        assert "the same call goes on there" in errors
    other = start(*command, "--n-terms", "5")
    _, errors = other.communicate(timeout=300)
    assert other.returncode == 2
    assert "What differs: n_terms (6 there, 5 here)" in errors
    same = start(*command, "--n-terms", "6")
    assert same.communicate(timeout=300)[1] == ""
    assert same.returncode == 0
    assert sorted(path.name for path in here.iterdir()) == ["d.npz", "m.fastr"]


def test_a_person_who_watches_sees_progress_and_programs_do_not(here, data):
    """On a terminal the fit draws on the standard error, unless asked to be quiet."""
    pty = pytest.importorskip("pty")

    def shown(*arguments):
        leader, follower = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "pyfastr.cli", *arguments],
            stdout=subprocess.PIPE,
            stderr=follower,
            cwd=here,
            env={**os.environ, "TERM": "xterm", "OMP_NUM_THREADS": "1"},
        ) as process:
            os.close(follower)
            seen = b""
            try:
                while piece := os.read(leader, 4096):
                    seen += piece
            except OSError:
                pass  # Linux ends a terminal that nobody holds by an error.
            out = process.stdout.read()
        os.close(leader)
        assert process.returncode == 0, seen
        return out.decode(), seen.decode()

    fit = ("fit", "X.npy", "people.csv:score", "-o", "m.fastr", "--force", "--ridge", "0.1")
    out, seen = shown(*fit)
    assert "held-out R²" in out
    assert seen
    out, seen = shown(*fit, "--json")
    assert (json.loads(out)["command"], seen) == ("fit", "")


def test_the_version(invoke):
    outcome = invoke("--version")
    assert (outcome.exit_code, outcome.stdout) == (0, f"pyfastr {pyfastr.__version__}\n")


def test_help_is_what_one_gets_without_a_command(invoke):
    asked, bare = invoke("--help"), invoke()
    assert (asked.exit_code, bare.exit_code) == (0, 0)
    assert "0 done, 1 unexpected failure, 2 bad input" in " ".join(asked.stdout.split())
    for name in COMMANDS:
        assert re.search(rf"^\W*{name} ", asked.stdout, flags=re.MULTILINE)
        assert re.search(rf"^\W*{name} ", bare.stdout, flags=re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_speaks_json(invoke, name):
    assert "--json" in invoke(name, "--help").stdout


def test_help_names_what_the_experiments_have():
    from pyfastr.cli.commands.reproduce import EXPERIMENTS, METHODS
    from pyfastr.experiments import methods, studies

    assert EXPERIMENTS == studies.NAMES
    assert tuple(methods.METHODS) == METHODS


def test_help_imports_nothing_heavy():
    script = """
import sys
from pyfastr.cli.app import app
try:
    app(["fit", "--help"])
except SystemExit:
    pass
heavy = {name.partition(".")[0] for name in sys.modules}
heavy &= {"numpy", "scipy", "sklearn", "pandas", "matplotlib", "jinja2", "nibabel", "safetensors"}
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=300)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("pyfastr pre", ["predict"]),
        ("pyfastr fit --thr", ["--threshold"]),
        ("pyfastr reproduce table", ["table1", "table2", "table3"]),
    ],
)
def test_the_shell_completes(command, typed, offered):
    words = {"_PYFASTR_COMPLETE": "complete_bash", "COMP_WORDS": typed}
    code, out, errors = command(**words, COMP_CWORD=str(len(typed.split()) - 1))
    assert code == 0, errors
    assert out.split() == offered


class TestPlaces:
    """FILE:NAME"""

    @pytest.fixture
    def place(self, here):
        from pyfastr.cli.places import parse_place

        for name in ("a.csv", "a.csv:b", "plain:file.npy"):
            (here / name).touch()
        return lambda text, **options: parse_place(text, "TARGET", **options)

    @pytest.mark.parametrize(
        ("text", "file", "name"),
        [
            ("a.csv", "a.csv", ""),
            ("a.csv:score", "a.csv", "score"),
            ("a.csv:score: total", "a.csv", "score: total"),
            ("a.csv:b", "a.csv:b", ""),
            ("a.csv:b:c", "a.csv:b", "c"),
            ("plain:file.npy", "plain:file.npy", ""),
            ("./a.csv:x", "a.csv", "x"),
        ],
    )
    def test_the_longest_name_that_exists_is_the_file(self, place, text, file, name):
        found = place(text)
        assert (str(found.file), found.name) == (file, name)

    def test_the_colon_of_a_drive_is_none(self):
        from pyfastr.cli.places import _colons

        assert _colons(r"C:\data\a.csv:score") == [13]
        assert _colons("C:/a.csv") == []
        assert _colons("a.h5:b:c") == [6, 4]

    def test_a_name_alone_is_in_the_file_of_the_data(self, place, here):
        assert place("score", within=here / "a.csv").name == "score"

    def test_patterns_have_no_names(self, place):
        assert place("scans/*.nii.gz").is_pattern
