"""Files that are damaged, foreign, newer or hostile are refused, in words."""

import os
import pickle
import struct
import sys
import time
import tracemalloc
import zlib

import numpy as np
import pytest

from pyfastr import load, save
from pyfastr.persistence import ModelFileError, read_header, strict_json


def refusal(path):
    """Return the words with which a file is refused, which name it."""
    with pytest.raises(ModelFileError) as caught:
        load(path)
    words = str(caught.value)
    assert words.startswith(f"Cannot load {str(path)!r}: ")
    assert words.endswith((".", "pyfastr"))
    return words


def png():
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(b"\0\0"))
    return b"\x89PNG\r\n\x1a\n" + header + pixels + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{}", b"\0" * 7, b"\0" * 100, png(), pickle.dumps({"a": np.arange(3)})),
        *(b"x,y\n1,2\n" * 50, b"PK\x03\x04" + bytes(50), b'{"format_version": 1}' * 9),
    ],
    ids=["empty", "short", "zeros", "more_zeros", "png", "pickle", "csv", "zip", "json"],
)
def test_files_of_other_kinds_are_refused(tmp_path, content):
    path = tmp_path / "other.fastr"
    path.write_bytes(content)
    assert "not a pyfastr model file" in refusal(path)
    assert "Expected a file that pyfastr.save has written." in refusal(path)


def test_a_pickle_is_not_run(tmp_path):
    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    path = tmp_path / "model.fastr"
    path.write_bytes(pickle.dumps(Hostile()))
    assert "not a pyfastr model file" in refusal(path)
    assert not (tmp_path / "ran").exists()


def test_other_safetensors_files_are_refused(tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "weights.safetensors"
    for metadata in (None, {"format": "pt"}):
        numpy_files.save_file({"layer": np.ones((3, 3))}, path, metadata=metadata)
        assert "a safetensors file of another program" in refusal(path)


def test_what_is_no_file_is_refused(tmp_path):
    assert "it is a folder" in refusal(tmp_path)
    assert "there is no such file. Check the path." in refusal(tmp_path / "missing.fastr")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are of POSIX")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in refusal(tmp_path / "pipe")


def test_every_truncation_is_refused(saved):
    whole = saved.read_bytes()
    for length in range(0, len(whole), 7):
        saved.write_bytes(whole[:length])
        refusal(saved)
    saved.write_bytes(whole[:-1])
    assert "cut short: 1 bytes are missing" in refusal(saved)
    saved.write_bytes(whole + b"\0")
    assert "1 bytes that belong to no array" in refusal(saved)


def test_every_flipped_bit_is_noticed(saved):
    whole = saved.read_bytes()
    for place in range(0, len(whole), 3):
        changed = bytearray(whole)
        changed[place] ^= 1 << (place % 8)
        saved.write_bytes(changed)
        refusal(saved)


def test_a_newer_file_asks_for_an_upgrade(saved, forge):
    def change(document, tensors):
        document.update(format_version=2, library_version="3.1", model={"unknown": "layout"})

    words = refusal(forge(saved, change))
    assert "written by a newer pyfastr, '3.1'" in words
    assert words.endswith("pip install --upgrade pyfastr")
    with pytest.raises(ModelFileError, match="newer"):
        read_header(forge(saved, change))


@pytest.mark.parametrize("version", [0, -1, "1", None, 1.0, True, []])
def test_a_strange_version_is_refused(saved, forge, version):
    assert "version of the format" in refusal(
        forge(saved, lambda document, tensors: document.update(format_version=version))
    )


def entry(shape=(2,), offsets=(0, 16), dtype="F64"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"a": entry((2,), (0, 16)), "b": entry((2,), (8, 24))}, "does not begin where"),
        ({"a": entry((2,), (8, 24))}, "does not begin where"),
        ({"a": entry((4,), (0, 32))}, "cut short"),
        ({"a": entry((1,), (0, 8))}, "belong to no array"),
        ({"a": entry((3,), (0, 16))}, "does not fit its 16 bytes"),
        ({"a": entry((2**40, 2**40), (0, 16))}, "does not fit its 16 bytes"),
        ({"a": entry((2**61 + 2,), (0, 16))}, "does not fit its 16 bytes"),
        ({"a": entry((0, 2**62), (0, 0)), "b": entry((2,), (0, 16))}, "empty but of shape"),
        ({"a": entry((1,) * 40 + (2,), (0, 16))}, "does not fit"),
        ({"a": entry((2,), (16, 0))}, "does not fit"),
        ({"a": entry((-2,), (0, 16))}, "no whole numbers"),
        ({"a": entry((2.0,), (0, 16))}, "no whole numbers"),
        ({"a": entry((2,), (0, 16, 32))}, "no whole numbers"),
        ({"a": entry(dtype="O")}, "of type 'O'"),
        ({"a": entry(dtype=[])}, "of type []"),
        ({"a": []}, "no type, shape and place"),
        ({"a": entry() | {"more": 1}}, "no type, shape and place"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_entries_that_lie_are_refused(raw_file, entries, words):
    path = raw_file({"__metadata__": {"pyfastr": "{}"}} | entries, data=bytes(16))
    assert words in refusal(path)


@pytest.mark.parametrize("length", [0, 2**24, 2**31, 2**60, 2**64 - 1])
def test_a_forged_length_is_refused(raw_file, length):
    assert "not a pyfastr model file" in refusal(raw_file({"a": 1}, length=length))


@pytest.mark.parametrize(
    "header",
    [
        b'{"__metadata__":{"pyfastr":"' + b"[" * 1_000_000 + b'"}}',
        b'{"a":' * 300_000,
        b"{" + b",".join(b'"%d":0' % i for i in range(500_000)) + b"}",
        b'{"__metadata__":{"pyfastr":"[' + b"[]," * 300_000 + b'[]]"}}',
        b'{"__metadata__":{"pyfastr":"[' + b"1," * 390_000 + b'1]"}}',
        b'{"a":"' + b"x" * (15 * 2**20) + b'"}',
        b'{"a":' + b"9" * 1_000_000 + b"}",
        b'{"a":"\xc3\xbc"}',
        b'{"a":1,"a":2}',
    ],
    ids=["deep", "deeper", "keys", "lists", "numbers", "text", "digits", "utf8", "twice"],
)
def test_headers_beyond_all_measure_are_refused_in_little_time_and_memory(raw_file, header):
    path = raw_file(header)
    began = time.process_time()
    refusal(path)
    assert time.process_time() - began < 2
    tracemalloc.start()
    refusal(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6


@pytest.mark.skipif(sys.platform == "win32", reason="holes are not made so there")
def test_a_file_with_a_hole_is_not_read_before_its_header_is_believed(raw_file):
    path = raw_file({"__metadata__": {"pyfastr": "{}"}, "a": entry((2**36,), (0, 2**39))})
    os.truncate(path, path.stat().st_size + 2**39)
    assert "version of the format" in refusal(path)


def node_of(document):
    return document["model"]


DOCUMENTS = {
    "unknown class": (lambda d, t: node_of(d).update({"class": "Ridge"}), "none of pyfastr's"),
    "class of another module": (
        lambda d, t: node_of(d).update({"class": "os.system"}),
        "none of pyfastr's",
    ),
    "another class": (lambda d, t: d.update({"class": "TensorScaler"}), "not describe"),
    "no estimator": (lambda d, t: d.update(model={"a": 1}) or t.clear(), "not describe"),
    "no model": (lambda d, t: d.pop("model"), "lacks 'model'"),
    "strange summary": (lambda d, t: d.update(search=[]), "'search' in its document is of type"),
    "strange sizes": (lambda d, t: d.update(sample_shape=["4"]), "not made of whole numbers"),
    "no document": (lambda d, t: d.clear(), "version of the format"),
    "unknown parameter": (
        lambda d, t: node_of(d)["params"].update(evil=1),
        "has no parameter 'evil'",
    ),
    "wrong parameter": (
        lambda d, t: node_of(d)["params"].update(ridge="much"),
        "'ridge' parameter",
    ),
    "private attribute": (
        lambda d, t: node_of(d)["fitted"].update(__class__="x"),
        "has no attribute '__class__'",
    ),
    "method": (lambda d, t: node_of(d)["fitted"].update(predict=1), "has no attribute 'predict'"),
    "property": (lambda d, t: node_of(d)["fitted"].update(coef_=1), "has no attribute 'coef_'"),
    "no factors": (lambda d, t: node_of(d)["fitted"].pop("factors_"), "nothing refers"),
    "no intercept": (
        lambda d, t: node_of(d)["fitted"].pop("intercept_"),
        "has no intercept_",
    ),
    "text for a number": (
        lambda d, t: node_of(d)["fitted"].update(intercept_="0"),
        "intercept_ of FasTRRegressor is '0'; expected a finite number",
    ),
    "nan for a number": (
        lambda d, t: node_of(d)["fitted"].update(intercept_={"@": "float", "value": "nan"}),
        "intercept_ of FasTRRegressor is nan",
    ),
    "another shape": (
        lambda d, t: node_of(d)["fitted"].update(
            tensor_shape_in_={"@": "tuple", "items": [3, 4]}, n_features_in_=3
        ),
        "expected finite float matrices that fit",
    ),
    "shape of nothing": (
        lambda d, t: node_of(d)["fitted"].update(tensor_shape_in_={"@": "tuple", "items": []}),
        "expected a tuple of positive whole numbers",
    ),
    "factors with nan": (
        lambda d, t: t.update({"factors_.0": t["factors_.0"] * np.nan}),
        "expected finite float matrices that fit",
    ),
    "factors of whole numbers": (
        lambda d, t: t.update({"factors_.0": t["factors_.0"].astype(np.int64)}),
        "expected finite float matrices that fit",
    ),
    "factors of two types": (
        lambda d, t: t.update({"factors_.0": t["factors_.0"].astype(np.float32)}),
        "expected finite float matrices that fit",
    ),
    "more scales": (
        lambda d, t: t.update({"scales_": np.ones(2)}),
        "expected a finite number for each column",
    ),
    "classes of a regressor": (
        lambda d, t: node_of(d)["fitted"].update(
            classes_={"@": "texts", "width": 3, "shape": [2], "items": ["yes", "no"]}
        ),
        "classes_ of FasTRRegressor",
    ),
    "no record": (
        lambda d, t: node_of(d)["fitted"]["starts_"].update({"class": "Popen"}),
        "has a record 'Popen'",
    ),
    "record of other fields": (
        lambda d, t: node_of(d)["fitted"]["starts_"]["fields"].update(more=1),
        "lacks fields, or has unknown ones",
    ),
    "a probability of two": (
        lambda d, t: node_of(d)["fitted"]["starts_"]["fields"].update(confidence=2.0),
        "expected a complete record of starts",
    ),
    "output": (lambda d, t: node_of(d).update(output="pandas"), "set to give 'pandas'"),
    "spare array": (lambda d, t: t.update(spare=np.ones(3)), "nothing refers to its array 'spare'"),
    "array that is missing": (lambda d, t: t.pop("scales_"), "that is not there"),
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_forged_documents_are_refused(saved, forge, case):
    change, words = DOCUMENTS[case]
    assert words in refusal(forge(saved, change))


def fitted(document):
    return document["model"]["fitted"]


def drop_column(document, tensors, name):
    del fitted(document)["cv_results_"][name]
    for part in ("", ".data", ".mask"):
        tensors.pop(f"cv_results_.{name}{part}", None)


CHOICES = {
    "one class": (
        lambda d, t: fitted(d).update(
            classes_={"@": "texts", "width": 3, "shape": [1], "items": ["yes"]}
        ),
        "classes_ of FasTRClassifierCV",
    ),
    "equal classes": (
        lambda d, t: fitted(d).update(
            classes_={"@": "texts", "width": 3, "shape": [2], "items": ["yes", "yes"]}
        ),
        "expected different labels, two or one for each output",
    ),
    "slope of zero": (
        lambda d, t: fitted(d).update(calibration_=0.0),
        "calibration_ of FasTRClassifierCV is 0.0",
    ),
    "best of another class": (
        lambda d, t: fitted(d)["best_estimator_"].update({"class": "FasTRRegressor"}),
        "FasTRRegressor has no parameter",
    ),
    "best without factors": (
        lambda d, t: fitted(d)["best_estimator_"]["fitted"].pop("scales_"),
        "expected the model whose coefficient the choice shows",
    ),
    "best of another intercept": (
        lambda d, t: fitted(d)["best_estimator_"]["fitted"].update(intercept_=3.0),
        "expected the model whose coefficient the choice shows",
    ),
    "covariates of the best alone": (
        lambda d, t: fitted(d)["best_estimator_"]["fitted"].update(
            covariate_coef_={"@": "array", "tensor": "scores_path_"}
        ),
        "expected the model whose coefficient the choice shows",
    ),
    "best that is none": (
        lambda d, t: fitted(d).update(best_estimator_=None),
        "best_estimator_ of",
    ),
    "point out of range": (lambda d, t: fitted(d).update(best_index_=10**6), "best_index_ of"),
    "table of nothing": (lambda d, t: fitted(d)["cv_results_"].update(params=[]), "cv_results_ of"),
    "columns of other lengths": (
        lambda d, t: t.update({"cv_results_.mean_test_score": np.ones(9)}),
        "cv_results_ of",
    ),
    **{
        f"no column {name}": (
            lambda d, t, name=name: drop_column(d, t, name),
            "expected parameters and scores, in all folds, of each point",
        )
        for name in ("param_ridge", "param_n_terms", "split1_test_score", "mean_test_score")
    },
    "scores of no fold": (
        lambda d, t: t.update(scores_path_=t["scores_path_"][..., :0]),
        "scores_path_ of",
    ),
    "no leverage": (
        lambda d, t: t.update({"best_estimator_.design_.leverage": np.empty(0)}),
        "design_ of",
    ),
    "no held-out samples": (
        lambda d, t: t.update({name: t[name][:0] for name in t if name.startswith("held_out_.")}),
        "held_out_ of",
    ),
    "held-out samples of other lengths": (
        lambda d, t: t.update({"held_out_.folds": np.arange(3)}),
        "held_out_ of",
    ),
}


@pytest.mark.parametrize("case", CHOICES)
def test_forged_choices_are_refused(kinds, forge, tmp_path, case):
    path = save(kinds.made["classifier_cv"][0], tmp_path / "model.fastr")
    change, words = CHOICES[case]
    assert words in refusal(forge(path, change))


STEPS = {
    "scale of zero": (
        lambda d, t: t.update({"tensorscaler.scale_": np.zeros((6, 1))}),
        "scale_ of TensorScaler",
    ),
    "mean of another shape": (
        lambda d, t: t.update({"tensorscaler.mean_": np.zeros((6, 2))}),
        "mean_ of TensorScaler",
    ),
    "no steps": (lambda d, t: d["model"].update(steps=[]) or t.clear(), "steps without a name"),
    "one name twice": (
        lambda d, t: d["model"]["steps"][1].__setitem__(0, "tensorscaler"),
        "two steps of one name",
    ),
    "step without name": (
        lambda d, t: d["model"]["steps"][0].__setitem__(0, 3),
        "steps without a name",
    ),
    "step that is none": (
        lambda d, t: d["model"]["steps"][0].__setitem__(1, "passthrough"),
        "steps without a name",
    ),
    "strange parameter": (lambda d, t: d["model"]["params"].update(steps=[]), "contradict"),
    "folder of pickles": (
        lambda d, t: d["model"]["params"].update(memory="elsewhere"),
        "a parameter 'memory', which is never saved",
    ),
    "file to overwrite": (
        lambda d, t: d["model"]["steps"][1][1]["params"].update(checkpoint="elsewhere"),
        "a parameter 'checkpoint', which is never saved",
    ),
}


def test_steps_that_do_not_fit_are_refused(kinds, forge, tmp_path):
    path = save(kinds.made["pipeline_of_slices"][0], tmp_path / "model.fastr")

    def change(document, tensors):
        for name, own in tensors.items():
            if "support_" in name:
                own[:] = True

    assert "takes samples of shape" in refusal(forge(path, change))


@pytest.mark.parametrize("case", STEPS)
def test_forged_pipelines_are_refused(kinds, forge, tmp_path, case):
    path = save(kinds.made["pipeline"][0], tmp_path / "model.fastr")
    change, words = STEPS[case]
    assert words in refusal(forge(path, change))


def image(document):
    return fitted(document)["transformer_"]["fitted"]["mask_img_"]


def rename(document, tensors):
    document["class"] = document["model"]["class"] = "NiftiClassifier"


MASK = "transformer_.mask_img_"
IMAGES = {
    "empty mask": (
        lambda d, t: t.update({f"{MASK}.data": np.zeros((7, 6, 5), np.uint8)}),
        "voxels inside",
    ),
    "smaller mask": (
        lambda d, t: t[f"{MASK}.data"].__setitem__(slice(0, 3), 0),
        "box is of the shape",
    ),
    "mask of two axes": (
        lambda d, t: t.update({f"{MASK}.data": np.ones((7, 6), np.uint8)}),
        "array of shape (7, 6)",
    ),
    "flat affine": (lambda d, t: t.update({f"{MASK}.affine": np.zeros((4, 4))}), "invertible"),
    "huge affine": (lambda d, t: t.update({f"{MASK}.affine": np.eye(4) * 1e300}), "invertible"),
    "no affine": (
        lambda d, t: image(d).update(affine=None) or t.pop(f"{MASK}.affine"),
        "no affine",
    ),
    "strange type": (
        lambda d, t: fitted(d)["transformer_"]["fitted"].update(
            dtype_={"@": "dtype", "name": "float16"}
        ),
        "dtype_",
    ),
    "strange width": (
        lambda d, t: fitted(d)["transformer_"]["fitted"].update(smoothing_fwhm_="wide"),
        "smoothing_fwhm_",
    ),
    "another kind of model": (rename, "FasTRClassifier or FasTRClassifierCV"),
}


@pytest.mark.parametrize("case", IMAGES)
def test_forged_models_of_images_are_refused(kinds, forge, tmp_path, case):
    path = save(kinds.made["image_regressor"][0], tmp_path / "model.fastr")
    change, words = IMAGES[case]
    assert words in refusal(forge(path, change))


def test_starts_of_files_that_do_not_tell_a_confidence_have_none(saved, forge):
    assert 0 <= load(saved).starts_.confidence <= 1

    def change(document, tensors):
        del node_of(document)["fitted"]["starts_"]["fields"]["confidence"]

    starts = load(forge(saved, change)).starts_
    assert starts.confidence is None
    assert starts.n_hits == load(saved).starts_.n_hits


def test_optional_attributes_may_be_absent_and_new_ones_may_come(saved, forge, model):
    def change(document, tensors):
        own = document["model"]["fitted"]
        del own["fingerprint_"], own["n_samples_in_"], own["starts_"], tensors["starts_.losses"]
        own["of_a_later_version_"] = [1, 2]

    loaded = load(forge(saved, change))
    assert loaded.of_a_later_version_ == [1, 2]
    X = np.ones((2, 4, 3))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_limits_leave_room_for_large_choices():
    points = [{"n_terms": 1, "ridge": 0.1, "threshold": 0.01 * i} for i in range(20_000)]
    assert strict_json.within_limits(strict_json.dumps(points))
